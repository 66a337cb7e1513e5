//! Files of root tasks, as any bytes.

use sandglass_kernel::arch::hosted::{self, Machine};
use sandglass_kernel::arch::Register;
use sandglass_kernel::event::Next;
use sandglass_kernel::Kernel;

use crate::{memory, Target};

pub const TARGET: Target = Target {
    name: "root-task",
    what: "a root task's ELF file",
    run,
    explain,
};

/// Memory of the machine in bytes: half of it is the kernel's.
const MEMORY: usize = 4 << 20;
/// Longest file that a machine of this size holds.
const MAX_FILE: usize = 1 << 20;
const PAGE: u64 = 4096;
const LOAD: u64 = 1;

/// A file is refused, or it is loaded exactly as it says and its entry point is what runs first.
fn run(input: &[u8]) {
    if input.len() > MAX_FILE {
        return;
    }
    let Ok((k, next)) = hosted::boot(Machine::new(MEMORY, 1000), input) else {
        return;
    };
    let Next::Thread(root) = next else {
        panic!("a root task was started, but nobody runs");
    };
    let file = File(input);
    let context = root.at(&k).context();
    assert_eq!(
        context.get(Register::NextIp),
        file.number(24, 8),
        "entry point"
    );
    for segment in file.segments() {
        check_segment(&k, file, segment);
    }
}

/// A segment that is loaded, as the program headers say.
#[derive(Clone, Copy, Debug)]
struct Segment {
    offset: u64,
    vaddr: u64,
    file_bytes: u64,
    memory_bytes: u64,
}

/// A file that the kernel found right: its numbers are read as they are.
#[derive(Clone, Copy)]
struct File<'a>(&'a [u8]);

impl<'a> File<'a> {
    fn number(self, offset: u64, size: u64) -> u64 {
        let bytes = &self.0[offset as usize..(offset + size) as usize];
        bytes
            .iter()
            .rev()
            .fold(0, |value, &byte| value << 8 | u64::from(byte))
    }

    fn segments(self) -> impl Iterator<Item = Segment> + use<'a> {
        let (headers, size, count) = (self.number(32, 8), self.number(54, 2), self.number(56, 2));
        let headers = (0..count).map(move |i| headers + i * size);
        headers
            .filter(move |&header| self.number(header, 4) == LOAD)
            .map(move |header| Segment {
                offset: self.number(header + 8, 8),
                vaddr: self.number(header + 16, 8),
                file_bytes: self.number(header + 32, 8),
                memory_bytes: self.number(header + 40, 8),
            })
    }
}

/// Memory has the segment's bytes of the file, and zeroes behind them.
fn check_segment(k: &Kernel, file: File, segment: Segment) {
    let mut vaddr = segment.vaddr;
    let end = segment.vaddr + segment.memory_bytes;
    let file_end = segment.vaddr + segment.file_bytes;
    while vaddr < end {
        let start = vaddr & !(PAGE - 1);
        let next = (start + PAGE).min(end);
        let page = memory::page(&k.machine, start)
            .unwrap_or_else(|| panic!("{start:#x} of {segment:x?} is not mapped"));
        let there = &page[(vaddr - start) as usize..(next - start) as usize];
        let from_file = file_end.clamp(vaddr, next) - vaddr;
        let (bytes, zeroes) = there.split_at(from_file as usize);
        let offset = (segment.offset + vaddr - segment.vaddr) as usize;
        assert!(bytes.is_empty() || bytes == &file.0[offset..offset + bytes.len()]);
        assert!(zeroes.iter().all(|&byte| byte == 0));
        vaddr = next;
    }
}

fn explain(input: &[u8]) -> String {
    match hosted::boot(
        Machine::new(MEMORY, 1000),
        &input[..input.len().min(MAX_FILE)],
    ) {
        Ok(_) => "it is loaded".to_owned(),
        Err(refusal) => {
            let console = Machine::new(1, 1);
            refusal.report(&console);
            String::from_utf8_lossy(&console.take_console()).into_owned()
        }
    }
}
