//! Floating-point numbers.

use core::fmt::{self, Write};

use super::Spec;

/// How many digits behind the point, unless the format says.
const DEFAULT_PRECISION: usize = 6;

/// How a finite number is shown.
#[derive(Clone, Copy)]
enum Style {
    /// All digits before the point.
    Fixed,
    /// One digit before the point, and an exponent.
    Scientific { upper: bool },
}

/// `%f`, `%e`, `%g`, and the same in capitals.
pub fn write(out: &mut dyn Write, spec: &Spec, letter: u8, value: f64) -> fmt::Result {
    let sign = spec.sign(value.is_sign_negative());
    let upper = letter.is_ascii_uppercase();
    if !value.is_finite() {
        let text = match (value.is_nan(), upper) {
            (true, false) => "nan",
            (true, true) => "NAN",
            (false, false) => "inf",
            (false, true) => "INF",
        };
        let len = sign.len() + text.len();
        return spec.pad(out, sign, len, false, |out| out.write_str(text));
    }
    let shown = Shown::of(spec, letter, value.abs());
    let mut length = Length(0);
    shown.write(&mut length)?;
    let len = sign.len() + length.0;
    spec.pad(out, sign, len, spec.zeros, |out| shown.write(out))
}

/// A finite number without its sign.
struct Shown {
    value: f64,
    style: Style,
    precision: usize,
    /// A point, also without digits behind it.
    point: bool,
    /// Zeros at the end of the fraction are left out.
    short: bool,
}

impl Shown {
    fn of(spec: &Spec, letter: u8, value: f64) -> Self {
        let precision = spec.precision.unwrap_or(DEFAULT_PRECISION);
        let upper = letter.is_ascii_uppercase();
        let (style, precision, short) = match letter.to_ascii_lowercase() {
            b'f' => (Style::Fixed, precision, false),
            b'e' => (Style::Scientific { upper }, precision, false),
            _ => {
                let significant = precision.max(1);
                let exponent = exponent(value, significant - 1);
                match usize::try_from(exponent) {
                    Ok(exponent) if exponent < significant => {
                        (Style::Fixed, significant - 1 - exponent, !spec.alternative)
                    }
                    Err(_) if exponent >= -4 => {
                        let zeros = exponent.unsigned_abs() as usize;
                        (Style::Fixed, significant - 1 + zeros, !spec.alternative)
                    }
                    _ => (
                        Style::Scientific { upper },
                        significant - 1,
                        !spec.alternative,
                    ),
                }
            }
        };
        Self {
            value,
            style,
            precision,
            point: spec.alternative,
            short,
        }
    }

    fn write(&self, out: &mut dyn Write) -> fmt::Result {
        let mut mantissa = Mantissa {
            out,
            short: self.short,
            behind_point: false,
            held: Held::default(),
            exponent: None,
            is_small: false,
        };
        match self.style {
            Style::Fixed => write!(mantissa, "{:.*}", self.precision, self.value)?,
            Style::Scientific { .. } => write!(mantissa, "{:.*e}", self.precision, self.value)?,
        }
        let (behind_point, exponent) = (mantissa.behind_point, mantissa.exponent());
        if self.point && !behind_point {
            out.write_char('.')?;
        }
        match self.style {
            Style::Fixed => Ok(()),
            Style::Scientific { upper } => {
                let letter = if upper { 'E' } else { 'e' };
                let sign = if exponent < 0 { '-' } else { '+' };
                write!(out, "{letter}{sign}{:0>2}", exponent.unsigned_abs())
            }
        }
    }
}

/// The decimal exponent of a number that is rounded to so many digits behind the first.
fn exponent(value: f64, precision: usize) -> i32 {
    let mut nowhere = Length(0);
    let mut mantissa = Mantissa {
        out: &mut nowhere,
        short: false,
        behind_point: false,
        held: Held::default(),
        exponent: None,
        is_small: false,
    };
    // Counting never fails.
    let _ = write!(mantissa, "{value:.precision$e}");
    mantissa.exponent()
}

/// Counts what is written.
struct Length(usize);

impl Write for Length {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 += text.len();
        Ok(())
    }
}

/// What is left out if nothing but zeros follows.
#[derive(Default)]
struct Held {
    point: bool,
    zeros: usize,
}

/// Passes the digits of a number on, as C shows them, and keeps the exponent.
struct Mantissa<'o> {
    out: &'o mut dyn Write,
    short: bool,
    behind_point: bool,
    held: Held,
    /// Its amount, and whether it is negative.
    exponent: Option<i32>,
    is_small: bool,
}

impl Mantissa<'_> {
    fn exponent(&self) -> i32 {
        let amount = self.exponent.unwrap_or(0);
        match self.is_small {
            true => -amount,
            false => amount,
        }
    }

    fn digit(&mut self, digit: char) -> fmt::Result {
        if self.short && self.behind_point && digit == '0' {
            self.held.zeros += 1;
            return Ok(());
        }
        let held = core::mem::take(&mut self.held);
        if held.point {
            self.out.write_char('.')?;
        }
        super::repeat(self.out, '0', held.zeros)?;
        self.out.write_char(digit)
    }
}

impl Write for Mantissa<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            match (character, &mut self.exponent) {
                ('e', exponent) => *exponent = Some(0),
                ('-', Some(_)) => self.is_small = true,
                (digit, Some(exponent)) => {
                    let digit = digit.to_digit(10).unwrap_or(0) as i32;
                    *exponent = *exponent * 10 + digit;
                }
                ('.', None) => {
                    self.behind_point = true;
                    match self.short {
                        true => self.held.point = true,
                        false => self.out.write_char('.')?,
                    }
                }
                (digit, None) => self.digit(digit)?,
            }
        }
        Ok(())
    }
}
