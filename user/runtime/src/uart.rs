//! A driver of serial ports without interrupts whose registers are mapped, as boards of aarch64 have them: ARM's PL011, and
//! Cadence's. The kernel or firmware has set up the one that is the console.

use dtoolkit::fdt::{Fdt, FdtNode};
use dtoolkit::{Node, Property};

/// Looks at the device until it is not waited for any longer.
const PATIENCE: u32 = 1 << 16;

/// Kinds of ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Pl011,
    Cadence,
}

/// What a device tree calls the kinds.
const NAMES: [(&str, Kind); 4] = [
    ("arm,pl011", Kind::Pl011),
    ("cdns,uart-r1p12", Kind::Cadence),
    ("cdns,uart-r1p8", Kind::Cadence),
    ("xlnx,xuartps", Kind::Cadence),
];

/// Where a kind has its registers, as offsets, and their bits.
struct Layout {
    data: u64,
    status: u64,
    empty: u32,
    full: u32,
}

impl Kind {
    const fn layout(self) -> Layout {
        match self {
            Self::Pl011 => Layout {
                data: 0x00,
                status: 0x18,
                empty: 1 << 4,
                full: 1 << 5,
            },
            Self::Cadence => Layout {
                data: 0x30,
                status: 0x2c,
                empty: 1 << 1,
                full: 1 << 4,
            },
        }
    }
}

/// A port of a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub kind: Kind,
    /// Physical address of its registers, which begin at a page.
    pub paddr: u64,
}

impl Place {
    /// The port that a device tree chooses as the console (`/chosen/stdout-path`), or else the first one below the root.
    /// Buses in between do not move addresses.
    pub fn of_tree(tree: &[u8]) -> Option<Self> {
        let tree = Fdt::new(tree).ok()?;
        let first = || tree.root().children().find_map(Self::of_node);
        chosen(tree).and_then(Self::of_node).or_else(first)
    }

    fn of_node(node: FdtNode<'_>) -> Option<Self> {
        let mut names = node.compatible()?;
        let kind = names.find_map(|name| Some(NAMES.iter().find(|known| known.0 == name)?.1))?;
        let first = node.reg().ok()??.next()?;
        let paddr = first.address().ok()?;
        Some(Self { kind, paddr })
    }
}

/// The node of the console. Its path may be known by an alias; rate and format of the line may follow, behind a colon.
fn chosen(tree: Fdt<'_>) -> Option<FdtNode<'_>> {
    let path = tree.find_node("/chosen")?.property("stdout-path")?;
    let path = path.value_as::<&str>().ok()?.split(':').next()?;
    if path.starts_with('/') {
        return tree.find_node(path);
    }
    let alias = tree.find_node("/aliases")?.property(path)?;
    tree.find_node(alias.value_as::<&str>().ok()?)
}

/// A port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uart {
    address: u64,
    kind: Kind,
}

impl Uart {
    /// # Safety
    /// The registers of a port of that kind are mapped at `address`, for good.
    pub const unsafe fn at(address: u64, kind: Kind) -> Self {
        Self { address, kind }
    }

    /// A port that nobody has set up: it sends and receives from now on, at the rate that it has.
    ///
    /// # Safety
    /// As of [`Self::at`].
    pub unsafe fn open(address: u64, kind: Kind) -> Self {
        let (register, value): (u64, u32) = match kind {
            // Transmitter and receiver on.
            Kind::Cadence => (0x00, 1 << 4 | 1 << 2),
            // The port, its transmitter and its receiver on.
            Kind::Pl011 => (0x30, 1 << 9 | 1 << 8 | 1 << 0),
        };
        let control = (address + register) as *mut u32;
        // SAFETY: as the caller promises.
        unsafe { control.write_volatile(value) };
        Self { address, kind }
    }

    /// Where the registers are.
    pub const fn address(self) -> u64 {
        self.address
    }

    pub const fn kind(self) -> Kind {
        self.kind
    }

    /// Sends one byte when there is room for it; drops it when there is none for long.
    pub fn put(self, byte: u8) {
        let layout = self.kind.layout();
        for _ in 0..PATIENCE {
            if self.read(layout.status) & layout.full == 0 {
                let data = (self.address + layout.data) as *mut u32;
                // SAFETY: as `at` was promised.
                unsafe { data.write_volatile(byte.into()) };
                return;
            }
            core::hint::spin_loop();
        }
    }

    /// The next byte that has arrived, if any has.
    pub fn get(self) -> Option<u8> {
        let layout = self.kind.layout();
        let is_empty = self.read(layout.status) & layout.empty != 0;
        (!is_empty).then(|| self.read(layout.data) as u8)
    }

    fn read(self, register: u64) -> u32 {
        // SAFETY: as `at` was promised.
        unsafe { ((self.address + register) as *const u32).read_volatile() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dtoolkit::model::{DeviceTree, DeviceTreeNode, DeviceTreeProperty};

    fn port(name: &str, compatible: &str, paddr: u32) -> DeviceTreeNode {
        let property = |name: &str, value: &[u8]| DeviceTreeProperty::new(name, value).unwrap();
        let reg = [0, paddr, 0, 0x1000].map(u32::to_be_bytes).concat();
        let text = [compatible.as_bytes(), b"\0"].concat();
        DeviceTreeNode::builder(name)
            .unwrap()
            .property(property("compatible", &text))
            .property(property("reg", &reg))
            .build()
    }

    /// A tree with two ports, in which `path` is chosen.
    fn tree(path: &str) -> Vec<u8> {
        let mut tree = DeviceTree::new();
        let text = |name: &str, value: &str| DeviceTreeProperty::new(name, value).unwrap();
        for cells in ["#address-cells", "#size-cells"] {
            let property = DeviceTreeProperty::new(cells, 2u32).unwrap();
            tree.root.add_property(property);
        }
        tree.root
            .add_child(port("serial@1000", "arm,pl011", 0x1000));
        tree.root
            .add_child(port("serial@2000", "cdns,uart-r1p12", 0x2000));
        for (node, name, value) in [
            ("aliases", "serial0", "/serial@2000"),
            ("chosen", "stdout-path", path),
        ] {
            let node = DeviceTreeNode::builder(node).unwrap();
            tree.root
                .add_child(node.property(text(name, value)).build());
        }
        tree.to_dtb()
    }

    #[test]
    fn the_console_is_the_port_that_is_chosen_or_the_first() {
        for (path, kind, paddr) in [
            ("/serial@1000", Kind::Pl011, 0x1000),
            ("/serial@2000:115200", Kind::Cadence, 0x2000),
            ("serial0:115200n8", Kind::Cadence, 0x2000),
            ("serial1", Kind::Pl011, 0x1000),
        ] {
            let found = Place::of_tree(&tree(path));
            assert_eq!(found, Some(Place { kind, paddr }), "{path}");
        }
        assert_eq!(Place::of_tree(b"no tree"), None);
    }
}
