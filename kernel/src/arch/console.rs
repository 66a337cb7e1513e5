//! Words and numbers on the kernel console, without formatting machinery.

use super::bounds::{turns, Turns};
use super::Platform;

/// Most characters of a text at once.
const LONGEST: u64 = 1024;
/// Most decimal digits of a number.
const DECIMAL_DIGITS: u64 = 20;

/// Writes to the console of a machine. The calls chain.
pub struct Console<'m, P: Platform>(&'m P);

impl<'m, P: Platform> Console<'m, P> {
    pub fn new(machine: &'m P) -> Self {
        Console(machine)
    }

    /// Writes one byte; a line feed goes out as carriage return and line feed (06, section 9).
    pub fn byte(&self, byte: u8) -> &Self {
        if byte == b'\n' {
            self.0.put_char(b'\r');
        }
        self.0.put_char(byte);
        self
    }

    #[inline(never)]
    pub fn text(&self, text: &str) -> &Self {
        for &byte in turns::<LONGEST, _>(text.as_bytes().iter()) {
            self.byte(byte);
        }
        self
    }

    /// Writes `value` in decimal digits.
    pub fn decimal(&self, value: u64) -> &Self {
        let mut power = 1u64;
        let mut digits = Turns::<DECIMAL_DIGITS>::new();
        while let Some(next) = power.checked_mul(10) {
            digits.turn();
            if next > value {
                break;
            }
            power = next;
        }
        let mut digits = Turns::<DECIMAL_DIGITS>::new();
        while let Some(digit) = value.checked_div(power) {
            digits.turn();
            self.byte(b'0' + (digit % 10) as u8);
            power /= 10;
        }
        self
    }

    /// Writes `value` in hexadecimal digits, with the prefix 0x.
    pub fn hexadecimal(&self, value: u64) -> &Self {
        self.text("0x");
        let mut left = (64 - value.leading_zeros()).div_ceil(4).max(1);
        let mut digits = Turns::<16>::new();
        while left > 0 {
            digits.turn();
            left -= 1;
            let digit = (value >> (4 * left) & 0xf) as u8;
            self.byte(if digit < 10 {
                b'0' + digit
            } else {
                b'a' + digit - 10
            });
        }
        self
    }
}
