//! Mappings and their errors (ABI 03, section 8).

use sandglass::abi::vspace::x86_64 as limit;
use sandglass::cap::{Attributes, Frame, FrameSize, PageDirectory, PageTable, Pdpt, Pml4, Rights};
use sandglass::error::LookupFailure;
use sandglass::testing::{Suite, TestResult};
use sandglass::{boot, ensure, ensure_eq, Error, ErrorKind};

use crate::fixture::Fixture;

/// An address that nothing else uses, with no paging structure of its own at any level.
const FRESH: u64 = 0x6000_0000_0000;
const WB: Attributes = Attributes::WriteBack;

pub fn run(suite: &mut Suite, fixture: &mut Fixture) {
    fixture.run(
        suite,
        "paging",
        &[
            ("missing_structures_are_named_level_by_level", levels),
            ("a_structure_is_mapped_once", structures),
            ("wrong_addresses_are_refused", addresses),
            ("a_capability_has_one_mapping", one_mapping),
            ("a_mapping_is_replaced_by_another", replaced),
            ("a_large_frame_does_not_replace_a_table", large_over_table),
            ("an_unmapped_table_takes_its_pages_along", unmapped_table),
            ("address_spaces_need_an_identifier", identifiers),
            ("device_memory_is_no_ipc_buffer", device_buffer),
        ],
    );
}

fn kind(result: Result<(), Error>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind)
}

const fn missing(bits_left: u64) -> Option<ErrorKind> {
    Some(ErrorKind::FailedLookup {
        source: false,
        failure: LookupFailure::MissingCapability { bits_left },
    })
}

const fn invalid_argument(argument: u64) -> Option<ErrorKind> {
    Some(ErrorKind::InvalidArgument { argument })
}

const fn invalid_capability(capability: u64) -> Option<ErrorKind> {
    Some(ErrorKind::InvalidCapability { capability })
}

/// Structures for the addresses around [`FRESH`] in a new address space.
struct Space {
    root: Pml4,
    pdpt: Pdpt,
    directory: PageDirectory,
    table: PageTable,
    frame: Frame,
}

impl Space {
    fn new(fixture: &mut Fixture) -> Result<Self, sandglass::SetupError> {
        let resources = &mut fixture.process.resources;
        let root = resources.pml4()?;
        boot::ASID_POOL.assign(root)?;
        Ok(Self {
            root,
            pdpt: resources.pdpt()?,
            directory: resources.page_directory()?,
            table: resources.page_table()?,
            frame: resources.frame(FrameSize::Small)?,
        })
    }

    fn map_frame(&self, address: u64) -> Option<ErrorKind> {
        kind(self.frame.map(self.root, address, Rights::READ_WRITE, WB))
    }

    fn map_all(&self) -> Result<(), Error> {
        self.pdpt.map(self.root, FRESH, WB)?;
        self.directory.map(self.root, FRESH, WB)?;
        self.table.map(self.root, FRESH, WB)
    }
}

fn levels(fixture: &mut Fixture) -> TestResult {
    let space = Space::new(fixture)?;
    ensure_eq!(
        kind(space.directory.map(space.root, FRESH, WB)),
        missing(39)
    );
    ensure_eq!(kind(space.table.map(space.root, FRESH, WB)), missing(39));
    ensure_eq!(space.map_frame(FRESH), missing(39));
    space.pdpt.map(space.root, FRESH, WB)?;
    ensure_eq!(kind(space.table.map(space.root, FRESH, WB)), missing(30));
    ensure_eq!(space.map_frame(FRESH), missing(30));
    space.directory.map(space.root, FRESH, WB)?;
    ensure_eq!(space.map_frame(FRESH), missing(21));
    space.table.map(space.root, FRESH, WB)?;
    ensure_eq!(space.map_frame(FRESH), None);
    Ok(())
}

fn structures(fixture: &mut Fixture) -> TestResult {
    let space = Space::new(fixture)?;
    space.map_all()?;
    let mapped_already = kind(space.table.map(space.root, FRESH + (1 << 21), WB));
    ensure_eq!(mapped_already, invalid_capability(0));
    let resources = &mut fixture.process.resources;
    let other = resources.page_table()?;
    ensure_eq!(
        kind(other.map(space.root, FRESH, WB)),
        Some(ErrorKind::DeleteFirst)
    );
    let copy = resources.copy(space.table, Rights::ALL)?;
    ensure_eq!(kind(space.table.unmap()), Some(ErrorKind::RevokeFirst));
    resources.delete(copy)?;
    space.table.unmap()?;
    space.table.unmap()?;
    other.map(space.root, FRESH, WB)?;
    Ok(())
}

fn addresses(fixture: &mut Fixture) -> TestResult {
    let space = Space::new(fixture)?;
    space.map_all()?;
    ensure_eq!(space.map_frame(FRESH + 8), Some(ErrorKind::Alignment));
    for address in [limit::USER_TOP + 1, limit::HIGHEST_PAGE + 0x1000, 1 << 63] {
        ensure_eq!(space.map_frame(address), invalid_argument(0));
    }
    // Below the limit, the missing structures are the next to be complained of.
    ensure_eq!(space.map_frame(limit::HIGHEST_PAGE), missing(39));
    let pdpt = fixture.process.resources.pdpt()?;
    ensure_eq!(
        kind(pdpt.map(space.root, limit::USER_TOP + 1, WB)),
        invalid_argument(0)
    );
    Ok(())
}

fn one_mapping(fixture: &mut Fixture) -> TestResult {
    let space = Space::new(fixture)?;
    space.map_all()?;
    ensure_eq!(space.map_frame(FRESH), None);
    ensure_eq!(space.map_frame(FRESH + 0x1000), invalid_argument(0));
    let elsewhere = space.frame.map(boot::VSPACE, FRESH, Rights::READ_WRITE, WB);
    ensure_eq!(kind(elsewhere), invalid_capability(1));
    // The same place again: rights may change.
    space.frame.map(space.root, FRESH, Rights::READ, WB)?;
    space.frame.unmap()?;
    space.frame.unmap()?;
    ensure_eq!(space.map_frame(FRESH + 0x1000), None);
    // A copy has its own mapping.
    let copy = fixture.process.resources.copy(space.frame, Rights::READ)?;
    copy.map(space.root, FRESH, Rights::READ, WB)?;
    Ok(())
}

/// In the root task's own space, so that the effect can be seen.
fn replaced(fixture: &mut Fixture) -> TestResult {
    let process = &mut fixture.process;
    let region = process.space.map_new(&mut process.resources, 4096)?;
    let address = region.address();
    let pointer = address as *mut u64;
    // SAFETY: mapped, and used by nothing else.
    let read = || unsafe { pointer.read_volatile() };
    // SAFETY: likewise.
    unsafe { pointer.write_volatile(0x11) };
    let other = process.resources.frame(FrameSize::Small)?;
    process
        .space
        .fill_frame(&mut process.resources, other, |page| page[0] = 0x22)?;
    other.map(boot::VSPACE, address, Rights::READ_WRITE, WB)?;
    ensure_eq!(read(), 0x22);
    // The first frame's capability knows no better; unmapping it leaves the other's mapping.
    let first = region.frames().next().ok_or("no frame")?;
    first.unmap()?;
    ensure_eq!(read(), 0x22);
    first.map(boot::VSPACE, address, Rights::READ_WRITE, WB)?;
    ensure_eq!(read(), 0x11);
    Ok(())
}

fn large_over_table(fixture: &mut Fixture) -> TestResult {
    let space = Space::new(fixture)?;
    space.map_all()?;
    let large = fixture.process.resources.frame(FrameSize::Large)?;
    let over = large.map(space.root, FRESH, Rights::READ_WRITE, WB);
    ensure_eq!(kind(over), Some(ErrorKind::DeleteFirst));
    let beside = FRESH + (1 << 21);
    large.map(space.root, beside, Rights::READ_WRITE, WB)?;
    // A small one inside it finds no table.
    ensure_eq!(space.map_frame(beside + 0x1000), missing(21));
    Ok(())
}

fn unmapped_table(fixture: &mut Fixture) -> TestResult {
    let space = Space::new(fixture)?;
    space.map_all()?;
    ensure_eq!(space.map_frame(FRESH), None);
    space.table.unmap()?;
    space.table.map(space.root, FRESH, WB)?;
    // The frame's capability still believes in its mapping; mapping it again there makes it true.
    ensure_eq!(space.map_frame(FRESH), None);
    Ok(())
}

fn identifiers(fixture: &mut Fixture) -> TestResult {
    let resources = &mut fixture.process.resources;
    let root = resources.pml4()?;
    let (pdpt, frame) = (resources.pdpt()?, resources.frame(FrameSize::Small)?);
    ensure_eq!(kind(pdpt.map(root, FRESH, WB)), invalid_capability(1));
    let unassigned = frame.map(root, FRESH, Rights::READ_WRITE, WB);
    ensure_eq!(kind(unassigned), invalid_capability(1));
    boot::ASID_POOL.assign(root)?;
    ensure_eq!(kind(boot::ASID_POOL.assign(root)), invalid_capability(1));
    pdpt.map(root, FRESH, WB)?;
    // Another pool works as well; it takes a page.
    let page = resources.untyped(12)?;
    let pool: sandglass::cap::AsidPool =
        resources.fill_slot(|slot| boot::ASID_CONTROL.make_pool(page, slot))?;
    let second = resources.pml4()?;
    pool.assign(second)?;
    pdpt.unmap()?;
    pdpt.map(second, FRESH, WB)?;
    // With the pool, the spaces in it lose their identifiers.
    resources.delete(pool)?;
    ensure!(matches!(
        kind(frame.map(second, FRESH, Rights::READ_WRITE, WB)),
        Some(ErrorKind::FailedLookup {
            source: false,
            failure: LookupFailure::InvalidRoot
        })
    ));
    Ok(())
}

fn device_buffer(fixture: &mut Fixture) -> TestResult {
    let resources = &mut fixture.process.resources;
    let tcb = resources.tcb()?;
    let device = resources.device_frame(0xb_8000, FrameSize::Small)?;
    ensure_eq!(
        kind(tcb.set_ipc_buffer(FRESH, device)),
        Some(ErrorKind::IllegalOperation)
    );
    let frame = resources.frame(FrameSize::Small)?;
    ensure_eq!(
        kind(tcb.set_ipc_buffer(FRESH + 8, frame)),
        Some(ErrorKind::Alignment)
    );
    tcb.set_ipc_buffer(FRESH + 1024, frame)?;
    Ok(())
}
