//! The machine's part of the boot: brings processor and interrupt controller into the kernel's state, and finds out what
//! there is.

use super::cores;
use super::handlers::{self, TIMER};
use crate::arch::aarch64::machine::gic::GIC;
use crate::arch::aarch64::machine::layout::{self, physical, PAGE_SIZE, TREE_ENTRY};
use crate::arch::aarch64::machine::loaded::Loaded;
use crate::arch::aarch64::machine::platform::Machine;
use crate::arch::aarch64::machine::{cache, cpu, firmware, paging, serial};
use crate::arch::abi::boot::FirmwareInfo;
use crate::arch::abi::clock::UNIT_US;
use crate::arch::device_tree::board::{Board, Uart, MOST_RANGES};
use crate::arch::device_tree::ram::{self, around, lowest, FIRST_PAGE};
use crate::arch::device_tree::tree::{self, Tree};
use crate::arch::turn::KernelGuard;
use crate::arch::Platform;
use crate::boot::{self, List, MachineInfo, Range, Refusal, RootTask, MAX_RESERVED};
use crate::cores::{CoreId, CORES};
use crate::mem::objects::Ram;

/// Status with which the machine stops when the kernel refuses to start.
const REFUSED: u8 = 1;

/// End of the physical addresses that are handed out (06, section 5).
const DEVICE_TOP: u64 = sandglass_abi::vspace::aarch64::DEVICE_TOP;

/// Bytes of the registers of a console, all of which are in the first page.
const CONSOLE_BYTES: u64 = PAGE_SIZE;

/// The least that the counter must tell apart (06, section 3 of the promises of `Platform`): a tick a microsecond.
const SLOWEST_HZ: u64 = 1_000_000;

unsafe extern "C" {
    // From the linker script: the end of the kernel's image, and in it the bounds of the code that runs once.
    static kernel_end: u8;
    static init_text_start: u8;
    static init_text_end: u8;
}

/// The device tree: its physical address, and as many bytes of it as start-up has mapped.
#[derive(Clone, Copy)]
struct TreePlace {
    paddr: u64,
    bytes: u64,
}

/// What the loader tells.
#[derive(Clone, Copy)]
struct Told {
    tree: TreePlace,
    /// Physical address of the kernel's image.
    image: u64,
    loaded: Loaded,
}

/// Called by the entry code with the physical addresses of the device tree and of the kernel's image, on the kernel's
/// stack, with everything masked; and with what the loader tells of the root task, if it is the reference's.
pub extern "C" fn start(
    tree: u64,
    tree_bytes: u64,
    image: u64,
    start: u64,
    end: u64,
    offset: u64,
    entry: u64,
) -> ! {
    layout::set_image(image);
    let told = Told {
        tree: TreePlace {
            paddr: tree,
            bytes: tree_bytes,
        },
        image,
        loaded: Loaded {
            start,
            end,
            offset,
            entry,
        },
    };
    cores::init(CoreId::BOOT);
    // SAFETY: called once, by assembly; does not return.
    let guard = unsafe { KernelGuard::enter(CoreId::BOOT) };
    let outcome = match find(&guard.k.machine, told) {
        Ok(found) => boot::start(guard.k, guard.turn, found),
        Err(refusal) => Err(refusal),
    };
    match outcome {
        Ok(()) => handlers::leave_boot(guard),
        Err(refusal) => {
            let machine = &guard.k.machine;
            refusal.report(machine);
            machine.halt(REFUSED);
            cpu::stop()
        }
    }
}

/// Everything about the machine. Its interrupt controller and its clock work afterwards.
fn find(machine: &Machine, told: Told) -> Result<MachineInfo, Refusal> {
    let (board, used) = read_board(told.tree)?;
    if let Some(psci) = board.psci {
        firmware::init(psci);
    }
    machine.max_irq.set(board.max_irq);
    check_processor(&board)?;
    start_clock(machine)?;

    let kernel = Range {
        start: told.image,
        end: physical(&raw const kernel_end),
    };
    let own = [kernel, around(used)];
    let reserved = start_interrupts(&board, own)?;
    map_ram(&board)?;
    let (module, root_task) = root_task(told.loaded, &board)?;
    check_module(&board, module, own)?;
    if CORES > 1 {
        cores::start(machine, &board, told.loaded.is_there())?;
    }
    // SAFETY: RAM of the device tree that the window maps, and in which nothing is: each byte is vouched for once, as
    // holes are left out and `lowest` goes on behind what it returned. And the code that executes this: nobody writes there
    // before the first user instruction, when this core has left it (`leave_boot`); others never are in it.
    let vouch = |range: Range| unsafe { Ram::vouch(range.start, range.end) };
    let pieces = pieces(&board);
    let [kernel, tree] = own;
    let mut holes = [kernel; 3 + MOST_RANGES];
    let taken = [tree, module].into_iter();
    let taken = taken.chain(board.reserved.iter().copied().map(around));
    holes.iter_mut().skip(1).zip(taken).for_each(put);
    let mut ram = List::new();
    let mut from = 0;
    while let Some(range) = lowest(&pieces, &holes, from) {
        from = range.end;
        ram.push(vouch(range)).unwrap_or_else(drop);
    }
    let tree = is_ram(&board, around(used)).then(|| {
        shorten(used);
        vouch(used)
    });
    let init_code = Range {
        start: physical(&raw const init_text_start),
        end: physical(&raw const init_text_end),
    };
    Ok(MachineInfo {
        firmware: FirmwareInfo { tree },
        ram,
        init_code: vouch(init_code),
        module: vouch(module),
        module_is_free: true,
        root_task,
        reserved,
        device_top: DEVICE_TOP,
    })
}

/// The board, and where its device tree is. The console works afterwards, if there is one.
fn read_board(place: TreePlace) -> Result<(Board, Range), Refusal> {
    let wrong = |error: tree::Error| Refusal::Machine(error.message());
    let bytes = tree_bytes(place).map_err(wrong)?;
    let tree = Tree::new(bytes).map_err(wrong)?;
    let mut console = None;
    let board = Board::read(&tree, &mut console);
    start_console(console);
    let used = Range {
        start: place.paddr,
        end: place.paddr.wrapping_add(tree.used() as u64),
    };
    Ok((board.map_err(wrong)?, used))
}

/// Starts the interrupt controller. Returns what nobody is to have: its registers, what is the kernel's `own`, and what the
/// board reserves.
fn start_interrupts(board: &Board, own: [Range; 2]) -> Result<List<Range, MAX_RESERVED>, Refusal> {
    let mut reserved = Reserved {
        list: List::new(),
        fits: true,
    };
    own.into_iter().for_each(|range| reserved.add(range));
    GIC.init(&board.controller, &mut |range| reserved.add(range))
        .map_err(Refusal::Machine)?;
    handlers::start_interrupts(CoreId::BOOT);
    board.reserved.iter().for_each(|&range| reserved.add(range));
    if board.memory.iter().any(|range| range.overlaps(FIRST_PAGE)) {
        reserved.add(FIRST_PAGE);
    }
    reserved
        .fits
        .then_some(reserved.list)
        .ok_or(Refusal::Machine(
            "the device tree reserves more memory, in pieces, than the kernel can write down",
        ))
}

/// What nobody is to have, and whether all of it could be written down.
struct Reserved {
    list: List<Range, MAX_RESERVED>,
    fits: bool,
}

impl Reserved {
    #[inline(never)]
    fn add(&mut self, range: Range) {
        self.fits &= range.is_empty() || self.list.push(range).is_ok();
    }
}

/// Whether all of `range` is RAM that the window maps.
#[inline(never)]
fn is_ram(board: &Board, range: Range) -> bool {
    lowest(&pieces(board), &[], range.start)
        .is_some_and(|ram| ram.start <= range.start && range.end <= ram.end)
}

/// The loader put the root task into RAM, beside what is the kernel's `own`.
fn check_module(board: &Board, module: Range, own: [Range; 2]) -> Result<(), Refusal> {
    if !is_ram(board, module) {
        return Err(Refusal::Machine(
            "the loader put the root task outside of RAM",
        ));
    }
    if own.into_iter().any(|range| module.overlaps(range)) {
        return Err(Refusal::Machine(
            "the loader put the root task over the kernel or the device tree",
        ));
    }
    Ok(())
}

/// The bytes of the device tree, as many as it says.
fn tree_bytes(place: TreePlace) -> Result<&'static [u8], tree::Error> {
    let TreePlace { paddr, bytes: most } = place;
    if paddr == 0 || paddr % 8 != 0 {
        return Err(tree::Error::Magic);
    }
    if most < 8 {
        return Err(tree::Error::NoHeader);
    }
    let address = paging::tree_at(paddr) as *const u8;
    // The block in which it begins is mapped, and an address that is a multiple of 8 has 8 bytes there.
    // SAFETY: start-up has mapped it, and nobody writes it but `shorten`.
    let header = unsafe { core::slice::from_raw_parts(address, 8) };
    let bytes = Tree::claimed_bytes(header)?;
    if bytes as u64 > most {
        return Err(tree::Error::Truncated);
    }
    // SAFETY: as before. Start-up has mapped as much, up to 4 MiB from the beginning of the block, and the tree has no more
    // than 2 MiB.
    Ok(unsafe { core::slice::from_raw_parts(address, bytes) })
}

/// Makes the device tree at `used` say that it ends where the last of its parts does: firmware leaves room behind.
fn shorten(used: Range) {
    let address = paging::tree_at(used.start).wrapping_add(tree::TOTAL_SIZE as u64);
    let bytes = used.end.wrapping_sub(used.start) as u32;
    // SAFETY: start-up has mapped it, writable; a multiple of 4. Volatile, and the last use of the tree by this address:
    // whatever was borrowed from it has been copied.
    unsafe { (address as *mut u32).write_volatile(bytes.to_be()) }
}

/// The whole pages of each piece of the board's memory that the window can map; behind them, ranges that are empty.
fn pieces(board: &Board) -> [Range; MOST_RANGES] {
    let mut pieces = [Range { start: 0, end: 0 }; MOST_RANGES];
    let whole = |&piece: &Range| ram::whole_pages(piece, layout::WINDOW_SIZE);
    let told = board.memory.iter().map(whole);
    pieces.iter_mut().zip(told).for_each(put);
    pieces
}

fn put((place, range): (&mut Range, Range)) {
    *place = range;
}

fn start_console(console: Option<(Uart, u64)>) {
    if let Some((uart, paddr)) = console {
        if let Some(registers) = paging::map_device(paddr, CONSOLE_BYTES) {
            // The low bits tell kinds apart.
            if paddr % PAGE_SIZE == 0 {
                // SAFETY: they have just been mapped.
                unsafe { serial::init(uart, registers.address(0)) }
            }
        }
    }
}

/// Where the loader left the root task, and what of it.
fn root_task(loaded: Loaded, board: &Board) -> Result<(Range, RootTask), Refusal> {
    if loaded.is_there() {
        let (range, start) = loaded.image().map_err(Refusal::Machine)?;
        let entry = loaded.entry;
        return Ok((range, RootTask::Loaded { start, entry }));
    }
    let file = board.root_task.ok_or(Refusal::NoRootTask)?;
    Ok((around(file), RootTask::File(file)))
}

/// What the kernel cannot do without.
fn check_processor(board: &Board) -> Result<(), Refusal> {
    if !cpu::has_wide_asids() {
        return Err(Refusal::Machine(
            "Sandglass needs a processor with address-space identifiers of 16 bits",
        ));
    }
    if !cache::has_usable_lines() {
        return Err(Refusal::Machine(
            "Sandglass needs a processor whose caches have lines of 64 bytes or more (CTR_EL0)",
        ));
    }
    if board.timer != TIMER {
        return Err(Refusal::Machine(
            "the interrupt of the virtual timer is not number 27",
        ));
    }
    Ok(())
}

/// Finds out the frequency of the clock.
fn start_clock(machine: &Machine) -> Result<(), Refusal> {
    const UNITS: u64 = 1_000_000 / UNIT_US;
    let hz = cpu::counter_hz();
    if hz < SLOWEST_HZ || hz % UNITS != 0 {
        return Err(Refusal::Machine(
            "the counter's frequency (CNTFRQ_EL0) is below 1 MHz, or not a multiple of 1 kHz",
        ));
    }
    machine.ticks_per_unit.set(hz / UNITS);
    Ok(())
}

/// Maps all RAM, of whole pages, in the window.
fn map_ram(board: &Board) -> Result<(), Refusal> {
    let pieces = pieces(board);
    let mut from = 0;
    while let Some(ram) = lowest(&pieces, &[], from) {
        from = ram.end;
        paging::map_ram(ram).map_err(|_| {
            Refusal::Machine(
                "RAM begins or ends amid more than 8 gigabytes of the machine, or more than 8 blocks of 2 MiB",
            )
        })?;
    }
    if from == 0 {
        return Err(Refusal::Machine(
            "no memory of the device tree has whole pages below 510 GiB, but for that at address 0",
        ));
    }
    Ok(())
}

const _: () = assert!(
    tree::MOST_BYTES as u64 <= layout::BLOCK && TREE_ENTRY + 1 < layout::DEVICE_ENTRIES.start
);
