//! `printf`'s formats, as C11 (7.21.6.1) has them, without `%n`, `%a` and `long double`: what is not understood is shown as
//! it stands in the format.
//!
//! Floating-point numbers are exact. A precision above [`MOST_PRECISE`] counts as that.

mod float;
mod integer;

use core::ffi::{c_char, CStr};
use core::fmt::{self, Write};
use core::marker::PhantomData;

pub use crate::arch::ArgumentList;

/// The highest precision, digits: more than a `double` has.
const MOST_PRECISE: usize = 1100;

/// The arguments of a format: C promises that they are what the format says.
pub struct Arguments<'a>(&'a mut ArgumentList, PhantomData<&'a ()>);

impl<'a> Arguments<'a> {
    /// Those of a call from C.
    pub fn new(list: &'a mut ArgumentList) -> Self {
        Self(list, PhantomData)
    }

    fn integer(&mut self) -> u64 {
        // SAFETY: C promises it (above).
        unsafe { self.0.integer() }
    }

    fn float(&mut self) -> f64 {
        // SAFETY: as above.
        unsafe { self.0.float() }
    }

    /// At most `limit` bytes of a text.
    fn text(&mut self, limit: Option<usize>) -> &'a [u8] {
        let text = self.integer() as *const c_char;
        if text.is_null() {
            return b"(null)";
        }
        // SAFETY: C promises text; with a limit, as much of it as that, with or without a zero.
        unsafe {
            match limit {
                None => CStr::from_ptr(text).to_bytes(),
                Some(limit) => {
                    let len = (0..limit)
                        .take_while(|&at| text.add(at).read() != 0)
                        .count();
                    core::slice::from_raw_parts(text.cast(), len)
                }
            }
        }
    }
}

/// Text that should be UTF-8, and shows what is not as what it is: a replacement character.
pub struct Lossy<'t>(pub &'t [u8]);

impl fmt::Display for Lossy<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            f.write_str(chunk.valid())?;
            if !chunk.invalid().is_empty() {
                f.write_char(char::REPLACEMENT_CHARACTER)?;
            }
        }
        Ok(())
    }
}

/// What stands between `%` and the letter of a conversion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Spec {
    left: bool,
    plus: bool,
    space: bool,
    alternative: bool,
    zeros: bool,
    width: usize,
    precision: Option<usize>,
    /// Bits of an integer.
    bits: u32,
}

impl Spec {
    /// Reads it from the begin of `format`; returns what comes behind.
    fn parse<'f>(mut format: &'f [u8], arguments: &mut Arguments<'_>) -> (Self, &'f [u8]) {
        let mut spec = Self {
            bits: 32,
            ..Self::default()
        };
        while let [flag, rest @ ..] = format {
            match flag {
                b'-' => spec.left = true,
                b'+' => spec.plus = true,
                b' ' => spec.space = true,
                b'#' => spec.alternative = true,
                b'0' => spec.zeros = true,
                _ => break,
            }
            format = rest;
        }
        let (width, rest) = number(format, arguments);
        spec.left |= width.is_some_and(|width| width < 0);
        spec.width = width.unwrap_or(0).unsigned_abs() as usize;
        format = rest;
        if let [b'.', rest @ ..] = format {
            let (precision, rest) = number(rest, arguments);
            // A negative one is none.
            let precision = usize::try_from(precision.unwrap_or(0)).ok();
            spec.precision = precision.map(|precision| precision.min(MOST_PRECISE));
            format = rest;
        }
        let (bits, len) = match format {
            [b'h', b'h', ..] => (8, 2),
            [b'h', ..] => (16, 1),
            [b'l', b'l', ..] => (64, 2),
            [b'l' | b'j' | b'z' | b't', ..] => (64, 1),
            _ => (32, 0),
        };
        spec.bits = bits;
        (spec, &format[len..])
    }

    /// Writes `prefix` and what `body` writes in a field of the width: `len` is the length of both. Zeros go between them.
    fn pad(
        &self,
        out: &mut dyn Write,
        prefix: &str,
        len: usize,
        zeros: bool,
        body: impl FnOnce(&mut dyn Write) -> fmt::Result,
    ) -> fmt::Result {
        let missing = self.width.saturating_sub(len);
        let zeros = zeros && !self.left;
        if !self.left && !zeros {
            repeat(out, ' ', missing)?;
        }
        out.write_str(prefix)?;
        if zeros {
            repeat(out, '0', missing)?;
        }
        body(out)?;
        repeat(out, ' ', if self.left { missing } else { 0 })
    }

    /// The sign of a number.
    fn sign(&self, is_negative: bool) -> &'static str {
        match (is_negative, self.plus, self.space) {
            (true, ..) => "-",
            (false, true, _) => "+",
            (false, false, true) => " ",
            (false, false, false) => "",
        }
    }
}

fn repeat(out: &mut dyn Write, what: char, times: usize) -> fmt::Result {
    (0..times).try_for_each(|_| out.write_char(what))
}

/// A width or a precision: digits, or `*`, which is an argument. `None` if neither is there.
fn number<'f>(format: &'f [u8], arguments: &mut Arguments<'_>) -> (Option<i32>, &'f [u8]) {
    if let [b'*', rest @ ..] = format {
        return (Some(arguments.integer() as i32), rest);
    }
    let digits = format
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let (digits, rest) = format.split_at(digits);
    let add = |value: i32, digit: &u8| {
        value
            .saturating_mul(10)
            .saturating_add(i32::from(digit - b'0'))
    };
    let value = digits.iter().fold(0, add);
    ((!digits.is_empty()).then_some(value), rest)
}

/// Writes `format`, with its arguments.
///
/// # Errors
/// Those of `out`.
pub fn write(out: &mut dyn Write, mut format: &[u8], arguments: &mut Arguments<'_>) -> fmt::Result {
    loop {
        let plain = format.iter().position(|&byte| byte == b'%');
        let (text, rest) = format.split_at(plain.unwrap_or(format.len()));
        write!(out, "{}", Lossy(text))?;
        let [_, directive @ ..] = rest else {
            return Ok(());
        };
        let (spec, rest) = Spec::parse(directive, arguments);
        let [letter, behind @ ..] = rest else {
            return write!(out, "{}", Lossy(&format[text.len()..]));
        };
        if !convert(out, &spec, *letter, arguments)? {
            let shown = directive.len() - behind.len() + 1;
            write!(out, "{}", Lossy(&format[text.len()..][..shown]))?;
        }
        format = behind;
    }
}

/// Writes the next argument; false if there is no such conversion.
fn convert(
    out: &mut dyn Write,
    spec: &Spec,
    letter: u8,
    arguments: &mut Arguments<'_>,
) -> Result<bool, fmt::Error> {
    match letter {
        b'd' | b'i' => integer::signed(out, spec, arguments.integer())?,
        b'u' | b'o' | b'x' | b'X' => integer::unsigned(out, spec, letter, arguments.integer())?,
        b'p' => integer::pointer(out, spec, arguments.integer())?,
        b'f' | b'F' | b'e' | b'E' | b'g' | b'G' => {
            float::write(out, spec, letter, arguments.float())?;
        }
        b'c' => {
            let byte = [arguments.integer() as u8];
            spec.pad(out, "", 1, false, |out| write!(out, "{}", Lossy(&byte)))?;
        }
        b's' => {
            let text = arguments.text(spec.precision);
            spec.pad(out, "", text.len(), false, |out| {
                write!(out, "{}", Lossy(text))
            })?;
        }
        b'%' => out.write_char('%')?,
        _ => return Ok(false),
    }
    Ok(true)
}

#[cfg(test)]
mod tests;
