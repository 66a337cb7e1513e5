//! Which board this is, by its device tree.

use dtoolkit::fdt::Fdt;
use sandglass_abi::boot::extra;

use crate::boot::BootInfo;

/// Whether the machine's device tree calls it `name`, such as `xlnx,zynqmp`: one of the names of its root. A machine without a
/// tree is called nothing.
pub fn is(boot: &BootInfo, name: &str) -> bool {
    let chunk = boot.extra().find(|chunk| chunk.id == extra::DEVICE_TREE);
    chunk.is_some_and(|tree| names(tree.payload, name))
}

fn names(tree: &[u8], name: &str) -> bool {
    let Ok(tree) = Fdt::new(tree) else {
        return false;
    };
    let Some(mut names) = tree.root().compatible() else {
        return false;
    };
    names.any(|known| known == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dtoolkit::model::{DeviceTree, DeviceTreeProperty};

    #[test]
    fn a_board_is_one_of_the_names_of_the_trees_root() {
        let mut tree = DeviceTree::new();
        let property = DeviceTreeProperty::new("compatible", &b"xlnx,zcu\0xlnx,zynqmp\0"[..]);
        tree.root.add_property(property.unwrap());
        let tree = tree.to_dtb();
        assert!(names(&tree, "xlnx,zynqmp") && names(&tree, "xlnx,zcu"));
        assert!(!names(&tree, "xlnx") && !names(&tree, "linux,dummy-virt"));
        assert!(!names(b"no tree", "xlnx,zynqmp"));
    }
}
