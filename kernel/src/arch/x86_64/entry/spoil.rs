//! State of the machine that a kernel can be made to set wrong, one piece at a time, so that the test of
//! `docs/src/reference/machine-state.md` can show that it notices.
//!
//! A kernel with the feature `spoil` finds the number of the piece in memory at [`CHOICE`], where the
//! emulator has put it; 0 is none. `tools/src/machine/spoiled.rs` has the same list.

use core::arch::asm;

use super::descriptors::USER_CODE;
use crate::arch::x86_64::machine::apic::{Pin, LOCAL_APIC};
use crate::arch::x86_64::machine::cpu::{self, Msr};
use crate::arch::x86_64::machine::layout::WINDOW_BASE;
use crate::arch::x86_64::machine::platform::Machine;
use crate::cores::CoreId;

/// Physical address of the number.
const CHOICE: u64 = 32 << 20;

#[repr(C, packed)]
#[derive(Default)]
struct Pointer {
    limit: u16,
    base: u64,
}

/// Sets the chosen piece wrong on `core`, which executes this and has all in place.
pub fn spoil(machine: &Machine, core: CoreId) {
    // SAFETY: memory of the machine, through the window; nothing uses it yet.
    let choice = unsafe { (WINDOW_BASE.wrapping_add(CHOICE) as *const u32).read_volatile() };
    let mut segments = Pointer::default();
    let mut gates = Pointer::default();
    // SAFETY: stores where the core's tables are.
    unsafe {
        asm!("sgdt [{}]", in(reg) &raw mut segments, options(nostack, preserves_flags));
        asm!("sidt [{}]", in(reg) &raw mut gates, options(nostack, preserves_flags));
    }
    let (gdt, idt) = (segments.base, gates.base);
    let task = gdt.wrapping_add(72);
    // SAFETY: the tables of this core, which the processor alone reads. What is set is wrong, but the
    // thread that spins does not need it.
    let poke = |address: u64, value: u64| unsafe { (address as *mut u64).write_unaligned(value) };
    // SAFETY: as above.
    let peek = |address: u64| unsafe { (address as *const u64).read_unaligned() };
    // SAFETY: as above; each is a value that the processor takes.
    unsafe {
        match choice {
            1 => {
                // A local table of 64 KiB at 0, as a reset leaves it, by a descriptor that goes again.
                let places = [gdt.wrapping_add(56), gdt.wrapping_add(64)];
                let before = places.map(peek);
                poke(places[0], 0x0000_8200_0000_ffff);
                poke(places[1], 0);
                asm!("lldt {:x}", in(reg) 56u32);
                poke(places[0], before[0]);
                poke(places[1], before[1]);
            }
            2 => {
                segments.limit = 79;
                asm!("lgdt [{}]", in(reg) &raw const segments);
            }
            3 => poke(gdt.wrapping_add(16), 0x00cf_f300_0000_ffff),
            4 => poke(gdt.wrapping_add(56), 0x00cf_f300_0001_ffff),
            5 => {
                gates.limit = 4079;
                asm!("lidt [{}]", in(reg) &raw const gates);
            }
            6 => {
                let gate = idt.wrapping_add(14 * 16);
                poke(gate, peek(gate) | 3 << 45);
            }
            7 => {
                let descriptor = gdt.wrapping_add(24);
                let longer = peek(descriptor) & !0xffff & !(2 << 40) | 0x2067;
                poke(descriptor, longer);
                asm!("ltr {:x}", in(reg) 24u32);
            }
            8 => (task.wrapping_add(102) as *mut u16).write_unaligned(0),
            9 => poke(task.wrapping_add(44), 0),
            10 => poke(task.wrapping_add(12), 1),
            11 => cpu::change_cr0(1 << 16, 0),
            12 => cpu::change_cr0(0, 1 << 18),
            13 => cpu::change_cr4(0, 1 << 8),
            14 => cpu::change_cr4(1 << 11, 0),
            15 => cpu::change_cr4(1 << 20, 0),
            16 => cpu::change_cr4(1 << 21, 0),
            17 => cpu::change_cr4(0, 1 << 7),
            18 => cpu::write_msr(Msr::Efer, cpu::efer() | 1 << 12),
            19 => cpu::write_msr(Msr::Star, 0x002b_0008_0000_0001),
            // The thread of the first core makes system calls.
            20 if core != CoreId::BOOT => cpu::write_msr(Msr::Lstar, 0),
            21 => cpu::write_msr(Msr::Cstar, 0),
            22 => cpu::write_msr(Msr::Fmask, 0x200),
            23 => cpu::write_msr(Msr::SysenterCs, 8),
            24 => cpu::write_msr(Msr::SysenterEsp, 1),
            25 => cpu::write_msr(Msr::SysenterEip, 1),
            26 => cpu::write_msr(Msr::KernelGsBase, 1),
            27 => cpu::write_msr(Msr::GsBase, 1),
            28 => asm!("mov dr7, {}", in(reg) 0x401u64),
            29 => cpu::write_msr(Msr::Pat, cpu::read_msr(Msr::Pat) ^ 0x100),
            30 => cpu::write_msr(Msr::TscAux, 1),
            31 => LOCAL_APIC.poke(0xf0, 0x1fe),
            32 => LOCAL_APIC.poke(0x350, 200),
            33 => LOCAL_APIC.poke(0x360, 0x400),
            34 => LOCAL_APIC.poke(0x370, 200),
            35 => LOCAL_APIC.poke(0x340, 200),
            36 => LOCAL_APIC.poke(0x330, 200),
            37 => LOCAL_APIC.poke(0x80, 0x10),
            38 => LOCAL_APIC.poke(0x3e0, 0),
            39 => LOCAL_APIC.poke(0xe0, 0x0fff_ffff),
            40 => LOCAL_APIC.poke(0xd0, 1 << 24),
            41 => cpu::out8(0x21, 0xfe),
            42 => {
                let how = Pin {
                    vector: 200,
                    level: false,
                    active_low: false,
                };
                machine.io_apics.route(0, 23, how, 0);
            }
            43 => asm!("mov es, {:x}", in(reg) u32::from(USER_CODE)),
            44 => poke(gdt.wrapping_add(32), peek(gdt.wrapping_add(32)) ^ 1 << 40),
            _ => {}
        }
    }
}
