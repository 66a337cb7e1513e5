//! What instructions of aarch64 make of general registers, by the fields of their words (*Arm Architecture Reference Manual*,
//! C4.1): 31 is the stack pointer here, and the register that is always zero is none.

use crate::code::{AtMost, Changes, Compared, Register, Sum, Taken, Value};

/// As a register: the stack pointer, or the one that is always zero.
const LAST: Register = 31;
/// Where a call leaves where it came from.
const LINK: Register = 30;

/// What firmware may change (SMC Calling Convention).
const FIRMWARE: u32 = 0x3_ffff;

fn field(word: u32, low: u32, bits: u32) -> u32 {
    word >> low & ((1 << bits) - 1)
}

fn register(word: u32, low: u32) -> Register {
    field(word, low, 5) as Register
}

fn signed(value: u32, bits: u32) -> i64 {
    let unused = 64 - bits;
    (i64::from(value) << unused) >> unused
}

/// A register where 31 is the one that is always zero.
fn plain(register: Register) -> Sum {
    match register {
        LAST => Sum::number(0),
        register => Sum::register(register),
    }
}

/// Instructions that read or write memory by a general register.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Of one register, at so many bytes from another.
    Offset,
    /// The same, and that other one becomes the address, or is added to behind the access.
    Before,
    After,
    /// At a sum of two.
    Register,
    /// Relative to the instruction.
    Literal,
    /// Exclusive, ordered or atomic: at a register.
    Plain,
}

/// The form of a load or store; `None` if it is none.
fn form(word: u32) -> Option<Form> {
    if word & 0x0a00_0000 != 0x0800_0000 {
        return None;
    }
    if word & 0x3b00_0000 == 0x1800_0000 {
        return Some(Form::Literal);
    }
    if is_pair(word) {
        return Some(match field(word, 23, 2) {
            1 => Form::After,
            3 => Form::Before,
            _ => Form::Offset,
        });
    }
    if word & 0x3b00_0000 == 0x3900_0000 {
        return Some(Form::Offset);
    }
    if word & 0x3b20_0000 == 0x3800_0000 {
        return Some(match field(word, 10, 2) {
            1 => Form::After,
            3 => Form::Before,
            _ => Form::Offset,
        });
    }
    if word & 0x3b20_0c00 == 0x3820_0800 {
        return Some(Form::Register);
    }
    Some(Form::Plain)
}

/// Whether it loads or stores two registers, with an offset.
pub(super) fn is_pair(word: u32) -> bool {
    word & 0x3a00_0000 == 0x2800_0000
}

fn is_simd(word: u32) -> bool {
    word & 0x0400_0000 != 0
}

/// log2 of the bytes of a register that is loaded or stored.
fn scale(word: u32) -> u32 {
    match (is_pair(word), is_simd(word)) {
        (true, true) => 2 + field(word, 30, 2),
        (true, false) => 2 + field(word, 31, 1),
        // 16 bytes have another bit for it.
        (false, true) if field(word, 23, 1) == 1 && field(word, 30, 2) == 0 => 4,
        (false, _) => field(word, 30, 2),
    }
}

/// By how much a load or store with an offset is beside its register, in bytes.
fn offset(word: u32) -> i64 {
    if is_pair(word) {
        signed(field(word, 15, 7), 7) << scale(word)
    } else if word & 0x3b00_0000 == 0x3900_0000 {
        i64::from(field(word, 10, 12)) << scale(word)
    } else {
        signed(field(word, 12, 9), 9)
    }
}

/// The address that a load or store is at.
pub(super) fn place(word: u32, address: u64) -> Option<Sum> {
    let base = register(word, 5);
    match form(word)? {
        Form::Literal => {
            let offset = signed(field(word, 5, 19), 19) << 2;
            Some(Sum::number(address.wrapping_add_signed(offset)))
        }
        Form::Offset | Form::Before => Some(Sum::from(base, offset(word))),
        Form::After => Some(Sum::from(base, 0)),
        // Exclusive or ordered, or atomic; others may have an offset.
        Form::Plain => stays_at_base(word).then_some(Sum::from(base, 0)),
        Form::Register => {
            let shift = match field(word, 12, 1) {
                0 => 0,
                _ => scale(word) as u8,
            };
            let index = register(word, 16);
            // Extended with zeros, or of all of it.
            let is_half = field(word, 13, 3) == 0b010;
            let is_it = (is_half || field(word, 13, 3) == 0b011) && index != LAST;
            is_it.then_some(Sum {
                base: Some(base),
                index: Some((index, shift)),
                is_half,
                plus: 0,
            })
        }
    }
}

/// Whether what is neither with an offset nor an index is at its register, which stays: exclusive, ordered or atomic.
fn stays_at_base(word: u32) -> bool {
    word & 0x3f00_0000 == 0x0800_0000 || word & 0x3b20_0c00 == 0x3820_0000
}

/// What a store of whole words writes.
pub(super) fn stored(word: u32) -> [Option<Sum>; 2] {
    if is_simd(word) || form(word).is_none_or(|form| form == Form::Plain) {
        return [None; 2];
    }
    let second = is_pair(word).then(|| plain(register(word, 10)));
    [Some(plain(register(word, 0))), second]
}

/// What becomes of registers; a call leaves all but one to whom it calls.
pub(super) fn changes(word: u32, address: u64) -> Changes {
    let mut changes = Changes::default();
    match form(word) {
        Some(form) => loaded(word, form, &mut changes),
        // Calls.
        None if word & 0xfc00_0000 == 0x9400_0000 || word & 0xffff_fc1f == 0xd63f_0000 => {
            changes.add(LINK, Value::Unknown);
        }
        // Branches, and instructions of the system, of which some write a register.
        None if word & 0x1c00_0000 == 0x1400_0000 => {
            if word & 0xffe0_0000 == 0xd520_0000 {
                set(register(word, 0), Value::Unknown, &mut changes);
            }
            // Hints that authenticate x17 or the link register.
            if word & 0xffff_f01f == 0xd503_201f {
                match field(word, 5, 7) {
                    8 | 10 | 12 | 14 => changes.add(17, Value::Unknown),
                    7 | 24..=31 => changes.add(LINK, Value::Unknown),
                    _ => {}
                }
            }
            // Calls of firmware.
            if word & 0xffe0_001e == 0xd400_0002 {
                changes.lost |= FIRMWARE;
            }
        }
        // What has vectors may still write a general register.
        None => {
            let (to, value, may_be_stack) = computed(word, address);
            if may_be_stack || to != LAST {
                // ADR has another field there.
                let is_half = field(word, 31, 1) == 0 && word & 0x1f00_0000 != 0x1000_0000;
                changes.add_half(to, value, is_half);
            }
        }
    }
    changes
}

fn set(to: Register, value: Value, changes: &mut Changes) {
    if to != LAST {
        changes.add(to, value);
    }
}

/// What a load or store makes of registers.
fn loaded(word: u32, form: Form, changes: &mut Changes) {
    let base = register(word, 5);
    match form {
        Form::Before | Form::After => {
            changes.add(base, Value::Sum(Sum::from(base, offset(word))));
        }
        Form::Plain => {
            // A status, what is compared, and what is read; vectors may move the address on.
            for low in [0, 10, 16] {
                set(register(word, low), Value::Unknown, changes);
            }
            // Pairs of registers that are compared.
            for low in [0, 16] {
                set((register(word, low) + 1) & LAST, Value::Unknown, changes);
            }
            if is_simd(word) || !stays_at_base(word) {
                changes.add(base, Value::Unknown);
            }
            return;
        }
        Form::Offset | Form::Register | Form::Literal => {}
    }
    if is_simd(word) {
        return;
    }
    let first = register(word, 0);
    if is_pair(word) {
        if field(word, 22, 1) == 1 {
            let is_whole = field(word, 30, 2) == 2;
            for (number, to) in [first, register(word, 10)].into_iter().enumerate() {
                let value = match is_whole {
                    true => Value::Loaded(number as u8),
                    false => Value::Unknown,
                };
                set(to, value, changes);
            }
        }
        return;
    }
    let (size, kind) = (field(word, 30, 2), field(word, 22, 2));
    let value = match (form, size, kind) {
        (Form::Literal, _, _) => match size {
            1 => Value::Loaded(0),
            _ => Value::Unknown,
        },
        // It stores, or fetches ahead.
        (_, _, 0) | (_, 3, 2) => return,
        (_, 3, 1) => Value::Loaded(0),
        (_, size, 1) => Value::Narrow(8 << size),
        _ => Value::Unknown,
    };
    set(first, value, changes);
}

/// What else is computed: the register, what becomes of it (of its half, if the instruction is of halves), and whether 31 is the
/// stack pointer.
fn computed(word: u32, address: u64) -> (Register, Value, bool) {
    let (to, from, other) = (register(word, 0), register(word, 5), register(word, 16));
    let is_whole = field(word, 31, 1) == 1;
    // ADD and SUB of a number, without and with flags.
    if word & 0x1f80_0000 == 0x1100_0000 {
        let number = i64::from(field(word, 10, 12)) << (12 * field(word, 22, 1));
        let number = match field(word, 30, 1) {
            0 => number,
            _ => -number,
        };
        let sets_flags = field(word, 29, 1) == 1;
        return (to, Value::Sum(Sum::from(from, number)), !sets_flags);
    }
    // ADR and ADRP.
    if word & 0x1f00_0000 == 0x1000_0000 {
        let offset = signed(field(word, 5, 19) << 2 | field(word, 29, 2), 21);
        let target = match is_whole {
            true => (address & !0xfff).wrapping_add_signed(offset << 12),
            false => address.wrapping_add_signed(offset),
        };
        return (to, Value::Sum(Sum::number(target)), false);
    }
    // MOVN, MOVZ, MOVK.
    if word & 0x1f80_0000 == 0x1280_0000 {
        let number = u64::from(field(word, 5, 16)) << (16 * field(word, 21, 2));
        let value = match field(word, 29, 2) {
            0 => Value::Sum(Sum::number(!number)),
            2 => Value::Sum(Sum::number(number)),
            _ => Value::Inserted(to, 0xffff << (16 * field(word, 21, 2)), number),
        };
        return (to, value, false);
    }
    // BFM of the lowest bits.
    if word & 0x7f80_0000 == 0x3300_0000 && field(word, 16, 6) == 0 && from != LAST {
        let mask = (2_u64.wrapping_shl(field(word, 10, 6))).wrapping_sub(1);
        return (to, Value::Combined(to, from, mask), false);
    }
    // AND, ORR, EOR of a number; ANDS.
    if word & 0x1f80_0000 == 0x1200_0000 {
        let operation = field(word, 29, 2);
        let value = match (operation, bits(word), from) {
            (0 | 3, Some(_), LAST) => Value::Sum(Sum::number(0)),
            (0 | 3, Some(mask), from) => Value::Masked(from, mask),
            (1, Some(mask), LAST) => Value::Sum(Sum::number(mask)),
            (1, Some(mask), from) => Value::Set(from, mask),
            _ => Value::Unknown,
        };
        return (to, value, operation != 3);
    }
    // ORR of registers: mostly a move.
    if word & 0x7f20_0000 == 0x2a00_0000 {
        let is_move = from == LAST && field(word, 10, 6) == 0;
        let value = match is_move {
            true => Value::Sum(plain(other)),
            false => Value::Unknown,
        };
        return (to, value, false);
    }
    // AND of registers.
    if word & 0x7f20_fc00 == 0x0a00_0000 && from != LAST {
        return (to, Value::Part(from), false);
    }
    // ADD of registers.
    if word & 0x7f20_0000 == 0x0b00_0000 {
        let shift = field(word, 10, 6) as u8;
        let value = match (field(word, 22, 2), other) {
            (_, LAST) => Value::Sum(plain(from)),
            (0, other) => Value::Sum(Sum {
                base: (from != LAST).then_some(from),
                index: Some((other, shift)),
                plus: 0,
                ..Sum::default()
            }),
            _ => Value::Unknown,
        };
        return (to, value, false);
    }
    // ADD and SUB of a part of a register.
    if word & 0x1f20_0000 == 0x0b20_0000 {
        let sets_flags = field(word, 29, 1) == 1;
        let is_of_half = field(word, 13, 3) == 0b010 && field(word, 30, 1) == 0 && is_whole;
        let value = match is_of_half && other != LAST {
            true => Value::Sum(Sum {
                base: Some(from),
                index: Some((other, field(word, 10, 3) as u8)),
                is_half: true,
                plus: 0,
            }),
            false => Value::Unknown,
        };
        return (to, value, !sets_flags);
    }
    // CSEL.
    if word & 0x7fe0_0c00 == 0x1a80_0000 && from != LAST && other != LAST {
        return (to, Value::Either(from, other), false);
    }
    // UBFM: shifts and fields of bits.
    if word & 0x7f80_0000 == 0x5300_0000 {
        let (rotated, last) = (field(word, 16, 6) as u8, field(word, 10, 6) as u8);
        let top = if is_whole { 63 } else { 31 };
        let value = match from {
            LAST => Value::Sum(Sum::number(0)),
            from if last == top => Value::ShiftedRight(from, rotated),
            from if last + 1 == rotated => Value::Sum(Sum {
                index: Some((from, top - last)),
                ..Sum::default()
            }),
            from if rotated == 0 => Value::Masked(from, (2 << last) - 1),
            _ if last >= rotated => Value::Narrow(last - rotated + 1),
            // To the left of what is cut off.
            _ => Value::Unknown,
        };
        return (to, value, false);
    }
    (to, Value::Unknown, false)
}

/// The number of a logical instruction (`DecodeBitMasks`).
fn bits(word: u32) -> Option<u64> {
    let (n, rotated, ones) = (field(word, 22, 1), field(word, 16, 6), field(word, 10, 6));
    let is_whole = field(word, 31, 1) == 1;
    let length = (n << 6 | (!ones & 0x3f)).checked_ilog2()?;
    let size = 1 << length;
    let (ones, rotated) = (ones & (size - 1), rotated & (size - 1));
    if length == 0 || ones == size - 1 || (!is_whole && n == 1) {
        return None;
    }
    let element = (1_u64 << (ones + 1)) - 1;
    let within = match size {
        64 => u64::MAX,
        size => (1 << size) - 1,
    };
    let turned = match rotated {
        0 => element,
        by => (element >> by | element << (size - by)) & within,
    };
    let mut all = 0;
    let whole = if is_whole { 64 } else { 32 };
    for at in (0..whole).step_by(size as usize) {
        all |= turned << at;
    }
    Some(all)
}

/// What a branch says of a register that the instruction `before` it compares with a number.
pub(super) fn at_most(before: u32, branch: u32) -> Option<AtMost> {
    if branch & 0xff00_0010 != 0x5400_0000 {
        return None;
    }
    // SUBS to the zero register, of a number or a register.
    let compared = match (before & 0xff80_001f, before & 0xffe0_fc1f) {
        (0xf100_001f, _) => {
            Compared::Number(u64::from(field(before, 10, 12)) << (12 * field(before, 22, 1)))
        }
        (_, 0xeb00_001f) if field(before, 16, 5) != u32::from(LAST) => {
            Compared::Register(register(before, 16))
        }
        _ => return None,
    };
    let taken = match field(branch, 0, 4) {
        // eq, ne, hs, lo, hi, ls
        0 => Taken::Equal,
        1 => Taken::NotEqual,
        2 => Taken::NotBelow,
        3 => Taken::Below,
        8 => Taken::Above,
        9 => Taken::NotAbove,
        _ => return None,
    };
    let register = register(before, 5);
    (register != LAST).then(|| AtMost::of(register, compared, taken))
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: u64 = 0xffff_ff80_4010_0000;

    #[test]
    fn the_stack_pointer_is_followed_as_far_as_it_is_known() {
        for (word, expected) in [
            // sub sp, sp, #16; add sp, sp, #7, lsl #12; stp x29, x30, [sp, #-16]!; ldp x29, x30, [sp], #16
            (0xd100_43ff, Some(-16)),
            (0x9140_1fff, Some(7 << 12)),
            (0xa9bf_7bfd, Some(-16)),
            (0xa8c1_7bfd, Some(16)),
            // mov sp, x0; add sp, sp, x0; mov x29, sp; ldr x0, [sp, #24]; bl .+4; cmp x0, #1; subs xzr, sp, #16
            (0x9100_001f, None),
            (0x8b20_63ff, None),
            (0x9100_03fd, Some(0)),
            (0xf940_0fe0, Some(0)),
            (0x9400_0001, Some(0)),
            (0xf100_041f, Some(0)),
            (0xf100_43ff, Some(0)),
        ] {
            assert_eq!(changes(word, AT).moved(LAST), expected, "{word:08x}");
        }
    }

    #[test]
    fn registers_become_what_the_processor_makes_of_them() {
        let sum = |base, index, plus: i64| {
            Value::Sum(Sum {
                base,
                index,
                is_half: false,
                plus: plus as u64,
            })
        };
        let number = |number: u64| Value::Sum(Sum::number(number));
        for (word, register, value, is_half) in [
            // add x0, x1, #16; sub w0, w1, #1; add x0, x1, x2, lsl #3; add x0, x1, w2, uxtw #3
            (0x9100_4020, 0, sum(Some(1), None, 16), false),
            (0x5100_0420, 0, sum(Some(1), None, -1), true),
            (0x8b02_0c20, 0, sum(Some(1), Some((2, 3)), 0), false),
            (
                0x8b22_4c20,
                0,
                Value::Sum(Sum {
                    base: Some(1),
                    index: Some((2, 3)),
                    is_half: true,
                    plus: 0,
                }),
                false,
            ),
            // mov x0, x1; mov w0, w1; mov x0, #1 << 32; mov x0, #-1; movk x0, #1, lsl #16; mov x0, #0xff as a pattern
            (0xaa01_03e0, 0, sum(Some(1), None, 0), false),
            (0x2a01_03e0, 0, sum(Some(1), None, 0), true),
            (0xd2c0_0020, 0, number(1 << 32), false),
            (0x9280_0000, 0, number(u64::MAX), false),
            (
                0xf2a0_0020,
                0,
                Value::Inserted(0, 0xffff_0000, 0x1_0000),
                false,
            ),
            (0xb240_1fe0, 0, number(0xff), false),
            // adr x0, .+8; adrp x0, .+4096
            (0x1000_0040, 0, number(AT + 8), false),
            (0xb000_0000, 0, number(AT + 4096), false),
            // and x0, x1, #-16; orr x0, x1, #16; and w0, w1, #0xf0; and x0, x1, x2; bfxil x0, x1, #0, #8
            (0x927c_ec20, 0, Value::Masked(1, !15), false),
            (0xb27c_0020, 0, Value::Set(1, 16), false),
            (0x121c_0c20, 0, Value::Masked(1, 0xf0), true),
            (0x8a02_0020, 0, Value::Part(1), false),
            (0xb340_1c20, 0, Value::Combined(0, 1, 0xff), false),
            // lsl x0, x1, #5; lsr x0, x1, #5; lsr w0, w1, #5; ubfx x0, x1, #4, #6; uxtb w0, w1; csel x0, x1, x2, eq
            (0xd37b_e820, 0, sum(None, Some((1, 5)), 0), false),
            (0xd345_fc20, 0, Value::ShiftedRight(1, 5), false),
            (0x5305_7c20, 0, Value::ShiftedRight(1, 5), true),
            (0xd344_2420, 0, Value::Narrow(6), false),
            (0x5300_1c20, 0, Value::Masked(1, 0xff), true),
            (0x9a82_0020, 0, Value::Either(1, 2), false),
            // ldr x0, [x1]; ldrb w0, [x1]; ldr w0, [x1]; ldr x0, .+8
            (0xf940_0020, 0, Value::Loaded(0), false),
            (0x3940_0020, 0, Value::Narrow(8), false),
            (0xb940_0020, 0, Value::Narrow(32), false),
            (0x5800_0040, 0, Value::Loaded(0), false),
        ] {
            let mut expected = Changes::default();
            expected.add_half(register, value, is_half);
            assert_eq!(changes(word, AT), expected, "{word:08x}");
        }
        for (word, lost) in [
            // mul x0, x1, x2; mrs x0, tpidr_el1; ldrsw x0, [x1]; bl .+4; csinc x0, x1, x2, eq; str x0, [x1]; msr tpidr_el1, x0
            (0x9b02_7c20, 1),
            (0xd538_d080, 1),
            (0xb980_0020, 1),
            (0x9400_0001, 1 << 30),
            (0x9a82_0420, 1),
            (0xf900_0020, 0),
            (0xd518_d080, 0),
            // smc #0; ldaxr x0, [x1]: whatever it may be
            (0xd400_0003, FIRMWARE),
            (0xc85f_fc20, 0x8000_0003),
        ] {
            let changes = changes(word, AT);
            assert_eq!(changes.known, [None; 3], "{word:08x}");
            assert_eq!(changes.lost & !(1 << 31), lost & !(1 << 31), "{word:08x}");
        }
    }

    #[test]
    fn pairs_and_addresses_that_move_on_are_followed() {
        // ldp x0, x1, [x2], #16
        let found = changes(0xa8c1_0440, AT);
        let mut expected = Changes::default();
        expected.add(2, Value::Sum(Sum::from(2, 16)));
        expected.add(0, Value::Loaded(0));
        expected.add(1, Value::Loaded(1));
        assert_eq!(found, expected);
        assert_eq!(place(0xa8c1_0440, AT), Some(Sum::from(2, 0)));
        // stp x0, xzr, [x2, #-16]!
        assert_eq!(place(0xa9bf_7c40, AT), Some(Sum::from(2, -16)));
        assert_eq!(
            stored(0xa9bf_7c40),
            [Some(Sum::register(0)), Some(Sum::number(0))]
        );
        // ldr x0, [x1, x2, lsl #3]; ldr x0, [x1, w2, uxtw #3]; ldr x0, [x1, w2, sxtw]
        let index = |is_half| Sum {
            base: Some(1),
            index: Some((2, 3)),
            is_half,
            plus: 0,
        };
        assert_eq!(place(0xf862_7820, AT), Some(index(false)));
        assert_eq!(place(0xf862_5820, AT), Some(index(true)));
        assert_eq!(place(0xf862_c820, AT), None);
    }

    #[test]
    fn a_branch_behind_a_comparison_says_how_much_a_register_is() {
        // cmp x1, #2; b.hi, b.ls, b.hs, b.lo, b.lt
        let compare = 0xf100_083f;
        for (branch, is_less, if_taken) in [
            (0x5400_0048, false, false),
            (0x5400_0049, false, true),
            (0x5400_0042, true, false),
            (0x5400_0043, true, true),
        ] {
            let said = |compared| {
                Some(AtMost {
                    register: 1,
                    compared,
                    is_less,
                    if_taken,
                })
            };
            let number = Compared::Number(2);
            assert_eq!(at_most(compare, branch), said(number), "{branch:08x}");
            // cmp x1, x2
            let register = Compared::Register(2);
            assert_eq!(at_most(0xeb02_003f, branch), said(register), "{branch:08x}");
        }
        assert_eq!(at_most(compare, 0x5400_004b), None);
        // cmp x1, x2, lsl #1; cmp x1, xzr; cmp w1, w2
        for other in [0xeb02_043f, 0xeb1f_003f, 0x6b02_003f] {
            assert_eq!(at_most(other, 0x5400_0048), None, "{other:08x}");
        }
    }

    #[test]
    fn whatever_is_written_back_does_not_stay() {
        // ldraa x5, [x10, #0x70]!; ldrab x15, [x6, #0x58]!; stg x7, [x23, #0x20]!; stzg x19, [x10], #0x10; st2g x12, [x4, #0x10]!
        for (word, base) in [
            (0xf820_ed45, 10),
            (0xf8a0_bccf, 6),
            (0xd920_2ee7, 23),
            (0xd960_1553, 10),
            (0xd9a0_1c8c, 4),
        ] {
            assert_ne!(changes(word, AT).moved(base), Some(0), "{word:08x}");
        }
    }

    #[test]
    fn what_is_inserted_may_be_all() {
        // bfxil x0, x1, #0, #64
        let all = Value::Combined(0, 1, u64::MAX);
        let made = changes(0xb340_fc20, AT).known[0];
        assert_eq!(made.map(|made| made.value), Some(all));
    }

    #[test]
    fn what_authenticates_a_pointer_changes_it() {
        // paciasp; autiasp; xpaclri; pacia1716, on a processor that has them
        for (word, register) in [
            (0xd503_233f, LINK),
            (0xd503_23bf, LINK),
            (0xd503_20ff, LINK),
            (0xd503_211f, 17),
        ] {
            assert_ne!(changes(word, AT).moved(register), Some(0), "{word:08x}");
        }
    }
}
