//! Extra boot information: what firmware and loader told, in chunks (06, section 4).

use sandglass_abi::boot::extra::{
    HEADER_LEN, TIMING, TIMING_LEN, X86_ACPI_RSDP, X86_ACPI_RSDP_LEN, X86_CLOCK, X86_CLOCK_LEN,
    X86_FRAMEBUFFER, X86_FRAMEBUFFER_LEN, X86_MEMORY_MAP, X86_MEMORY_MAP_ENTRIES,
    X86_MEMORY_MAP_ENTRY_LEN, X86_MEMORY_MAP_LEN, X86_TSC_MHZ, X86_TSC_MHZ_LEN,
};

use super::FirmwareInfo;
use crate::arch::{bounds, Platform};
use crate::mem::{user, Tagged};
use crate::Kernel;

const PAGES: u64 = 1;

/// The pages that the chunks take, all together: always as many.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pages;

impl Pages {
    pub fn of(_firmware: &FirmwareInfo) -> Self {
        Pages
    }

    #[inline(always)]
    pub const fn count(self) -> u64 {
        PAGES
    }

    /// Pages for which there are tables.
    #[inline(always)]
    pub const fn span(self) -> u64 {
        PAGES
    }
}

const _: () = assert!(
    X86_ACPI_RSDP_LEN
        + X86_FRAMEBUFFER_LEN
        + X86_MEMORY_MAP_LEN
        + X86_TSC_MHZ_LEN
        + X86_CLOCK_LEN
        + TIMING_LEN
        <= 4096 * PAGES as usize
);

/// Bytes of all chunks.
pub fn length(firmware: &FirmwareInfo) -> u64 {
    let rsdp = firmware.rsdp.map_or(0, |_| X86_ACPI_RSDP_LEN);
    let framebuffer = firmware.framebuffer.map_or(0, |_| X86_FRAMEBUFFER_LEN);
    let clock = firmware.clock.map_or(0, |_| X86_CLOCK_LEN);
    (clock + rsdp + framebuffer + X86_MEMORY_MAP_LEN + X86_TSC_MHZ_LEN + TIMING_LEN) as u64
}

/// Writes what is in page `_page` of the chunks, the only one, into the zeroed frame of RAM `frame`.
pub fn write(k: &mut Kernel, frame: Tagged, _page: u64, firmware: &FirmwareInfo) {
    let tsc_mhz = k.machine.ticks_per_unit() as u32;
    let mut page = Writer {
        k,
        frame,
        offset: 0,
    };
    if let Some(rsdp) = firmware.rsdp {
        page.header(X86_ACPI_RSDP, X86_ACPI_RSDP_LEN);
        page.bytes(&rsdp);
    }
    if let Some(framebuffer) = firmware.framebuffer {
        page.header(X86_FRAMEBUFFER, X86_FRAMEBUFFER_LEN);
        page.long(framebuffer.paddr);
        page.word(framebuffer.pitch);
        page.word(framebuffer.width);
        page.word(framebuffer.height);
        page.bytes(&[framebuffer.bits_per_pixel, framebuffer.kind]);
    }
    page.header(X86_MEMORY_MAP, X86_MEMORY_MAP_LEN);
    page.word((firmware.memory_map.len() * X86_MEMORY_MAP_ENTRY_LEN) as u32);
    for entry in firmware.memory_map.iter() {
        // The size of an entry does not count itself.
        page.word(X86_MEMORY_MAP_ENTRY_LEN as u32 - 4);
        page.long(entry.range.start);
        page.long(entry.range.end - entry.range.start);
        page.word(entry.kind);
    }
    let unused = X86_MEMORY_MAP_ENTRIES.saturating_sub(firmware.memory_map.len());
    page.skip(unused * X86_MEMORY_MAP_ENTRY_LEN);
    page.header(X86_TSC_MHZ, X86_TSC_MHZ_LEN);
    page.word(tsc_mhz);
    if let Some(clock) = firmware.clock {
        page.header(X86_CLOCK, X86_CLOCK_LEN);
        for number in [
            clock.hz,
            clock.least_hz,
            clock.most_hz,
            clock.sources,
            clock.windows,
            clock.repeated,
            clock.flags,
        ] {
            page.long(number);
        }
    }
    page.header(TIMING, TIMING_LEN);
    let constants = page.k.constants;
    let [path, latency, path_ns, latency_ns, _] = bounds::analysed();
    for number in [
        u64::from(tsc_mhz) * 1_000_000,
        constants.min_budget() / 2,
        constants.min_budget(),
        constants.ticks(constants.max_period_us()),
        path,
        latency,
        path_ns,
        latency_ns,
    ] {
        page.long(number);
    }
}

/// Writes little-endian numbers one behind the other.
struct Writer<'k> {
    k: &'k mut Kernel,
    frame: Tagged,
    offset: u64,
}

impl Writer<'_> {
    #[inline(never)]
    fn header(&mut self, id: u64, length: usize) {
        const { assert!(HEADER_LEN == 16) };
        self.long(id);
        self.long(length as u64);
    }

    #[inline(never)]
    fn long(&mut self, value: u64) {
        self.bytes(&value.to_le_bytes());
    }

    #[inline(never)]
    fn word(&mut self, value: u32) {
        self.bytes(&value.to_le_bytes());
    }

    #[inline(never)]
    fn bytes(&mut self, bytes: &[u8]) {
        user::fill_frame(self.k, self.frame, self.offset, bytes);
        self.skip(bytes.len());
    }

    fn skip(&mut self, bytes: usize) {
        self.offset += bytes as u64;
    }
}
