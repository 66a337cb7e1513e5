//! Times and sizes, as descriptions write them.

use std::fmt;

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};

/// A time, µs: an integer of µs, or text like `"250us"`, `"5ms"`, `"1s"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Micros(pub u64);

/// A size, bytes: an integer, or text like `"64KiB"`, `"2MiB"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bytes(pub u64);

/// Memory of the machine, MiB: an integer of MiB, or text like `"64MiB"`, `"1GiB"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mebibytes(pub u64);

/// A number for a component: an integer, or a time, which becomes µs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Number(pub u64);

const TIME_UNITS: &[(&str, u64)] = &[("us", 1), ("µs", 1), ("ms", 1000), ("s", 1_000_000)];
const SIZE_UNITS: &[(&str, u64)] = &[
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("B", 1),
];
const MACHINE_UNITS: &[(&str, u64)] = &[("MiB", 1), ("GiB", 1 << 10)];

const A_TIME: &str = "a time: an integer of µs, or text like \"250us\", \"5ms\", \"1s\"";
const A_SIZE: &str = "a size: an integer of bytes, or text like \"64KiB\", \"2MiB\"";
const A_MEMORY: &str = "an integer of MiB, or text like \"64MiB\", \"1GiB\"";
const A_NUMBER: &str = "an integer from 0 on, or a time like \"5ms\" (which becomes µs)";

/// Reads an integer, or an integer followed by one of the units.
struct WithUnit {
    units: &'static [(&'static str, u64)],
    expected: &'static str,
}

impl Visitor<'_> for WithUnit {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<u64, E> {
        u64::try_from(value).map_err(|_| E::invalid_value(Unexpected::Signed(value), &self))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<u64, E> {
        Ok(value)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<u64, E> {
        parse(text, self.units).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }
}

/// A time with its unit, in µs.
pub fn micros(text: &str) -> Option<u64> {
    parse(text, TIME_UNITS)
}

/// An integer directly followed by, or separated by spaces from, a unit.
fn parse(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let (_, factor) = units.iter().find(|(name, _)| *name == unit.trim_start())?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
}

/// What was probably meant by text that is no quantity, as advice.
pub fn suggestion(text: &str) -> Option<String> {
    let number_end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(number_end);
    let unit = unit.trim_start();
    let value: f64 = number.parse().ok()?;
    let units = || TIME_UNITS.iter().chain(SIZE_UNITS);
    if let Some((name, factor)) = units().find(|(name, _)| *name == unit) {
        let (smallest, of) = match SIZE_UNITS.contains(&(*name, *factor)) {
            true => ("B", 1),
            false => ("us", 1),
        };
        // Only to be read: what cannot be written exactly is rounded.
        let whole = (value * *factor as f64 / f64::from(of)).round();
        return number
            .contains('.')
            .then(|| format!("decimals are not allowed; write `\"{whole:.0}{smallest}\"`"));
    }
    let meant = match unit.to_ascii_lowercase().as_str() {
        "sec" | "secs" | "second" | "seconds" => "s",
        "msec" | "millis" | "millisecond" | "milliseconds" => "ms",
        "usec" | "micros" | "microsecond" | "microseconds" => "us",
        "k" | "kb" | "kib" => "KiB",
        "m" | "mb" | "mib" => "MiB",
        "g" | "gb" | "gib" => "GiB",
        "ns" => return Some("the smallest unit of time is `us`, 1000 ns".to_owned()),
        _ => return None,
    };
    Some(format!("did you mean `\"{number}{meant}\"`?"))
}

impl<'de> Deserialize<'de> for Mebibytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let visitor = WithUnit {
            units: MACHINE_UNITS,
            expected: A_MEMORY,
        };
        deserializer.deserialize_any(visitor).map(Self)
    }
}

impl<'de> Deserialize<'de> for Micros {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let visitor = WithUnit {
            units: TIME_UNITS,
            expected: A_TIME,
        };
        deserializer.deserialize_any(visitor).map(Self)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let visitor = WithUnit {
            units: SIZE_UNITS,
            expected: A_SIZE,
        };
        deserializer.deserialize_any(visitor).map(Self)
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let visitor = WithUnit {
            units: TIME_UNITS,
            expected: A_NUMBER,
        };
        deserializer.deserialize_any(visitor).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_scale_and_what_is_no_quantity_is_refused() {
        assert_eq!(parse("250us", TIME_UNITS), Some(250));
        assert_eq!(parse("5 ms", TIME_UNITS), Some(5000));
        assert_eq!(parse("1s", TIME_UNITS), Some(1_000_000));
        assert_eq!(parse("64KiB", SIZE_UNITS), Some(65536));
        for wrong in [
            "",
            "5",
            "ms",
            "-5ms",
            "5xs",
            "5.5ms",
            "99999999999999999999s",
        ] {
            assert_eq!(parse(wrong, TIME_UNITS), None, "{wrong}");
        }
        assert_eq!(parse("99999999999999999MiB", SIZE_UNITS), None);
        assert_eq!(parse("2GiB", MACHINE_UNITS), Some(2048));
    }

    #[test]
    fn what_was_meant_is_said() {
        let said = |text: &str| suggestion(text).unwrap_or_default();
        assert!(said("1.5ms").contains("\"1500us\""), "{}", said("1.5ms"));
        assert!(said("0.5KiB").contains("\"512B\""));
        assert!(said("5sec").contains("\"5s\""));
        assert!(said("64mb").contains("\"64MiB\""));
        for nothing in ["", "ms", "5ms", "x", "1.2.3s", "5parsec"] {
            assert_eq!(suggestion(nothing), None, "{nothing}");
        }
    }
}
