//! Integers and pointers.

use core::fmt::{self, Write};

use super::{repeat, Spec};

/// The digits of a number, from the last.
struct Digits {
    bytes: [u8; 22],
    len: usize,
}

impl Digits {
    /// None of 0: how many there are at least is the precision's business.
    fn of(mut value: u64, base: u64, upper: bool) -> Self {
        let digits: &[u8; 16] = match upper {
            true => b"0123456789ABCDEF",
            false => b"0123456789abcdef",
        };
        let mut all = Self {
            bytes: [0; 22],
            len: 0,
        };
        while value != 0 {
            all.bytes[all.len] = digits[(value % base) as usize];
            all.len += 1;
            value /= base;
        }
        all
    }

    fn write(&self, out: &mut dyn Write) -> fmt::Result {
        let digits = self.bytes[..self.len].iter().rev();
        digits
            .copied()
            .try_for_each(|digit| out.write_char(char::from(digit)))
    }
}

fn write(
    out: &mut dyn Write,
    spec: &Spec,
    prefix: &str,
    digits: &Digits,
    least: usize,
) -> fmt::Result {
    let zeros = least.saturating_sub(digits.len);
    let len = prefix.len() + zeros + digits.len;
    let fills = spec.zeros && spec.precision.is_none();
    spec.pad(out, prefix, len, fills, |out| {
        repeat(out, '0', zeros)?;
        digits.write(out)
    })
}

/// `%d`.
pub fn signed(out: &mut dyn Write, spec: &Spec, argument: u64) -> fmt::Result {
    let unused = 64 - spec.bits;
    let value = (argument as i64) << unused >> unused;
    let digits = Digits::of(value.unsigned_abs(), 10, false);
    write(
        out,
        spec,
        spec.sign(value < 0),
        &digits,
        spec.precision.unwrap_or(1),
    )
}

/// `%u`, `%o`, `%x`, `%X`.
pub fn unsigned(out: &mut dyn Write, spec: &Spec, letter: u8, argument: u64) -> fmt::Result {
    let unused = 64 - spec.bits;
    let value = argument << unused >> unused;
    let base = match letter {
        b'o' => 8,
        b'u' => 10,
        _ => 16,
    };
    let digits = Digits::of(value, base, letter == b'X');
    let mut least = spec.precision.unwrap_or(1);
    let prefix = match letter {
        b'x' if spec.alternative && value != 0 => "0x",
        b'X' if spec.alternative && value != 0 => "0X",
        b'o' if spec.alternative => {
            least = least.max(digits.len + 1);
            ""
        }
        _ => "",
    };
    write(out, spec, prefix, &digits, least)
}

/// `%p`.
pub fn pointer(out: &mut dyn Write, spec: &Spec, argument: u64) -> fmt::Result {
    if argument == 0 {
        return spec.pad(out, "", 5, false, |out| out.write_str("(nil)"));
    }
    let digits = Digits::of(argument, 16, false);
    write(out, spec, "0x", &digits, spec.precision.unwrap_or(1))
}
