//! Times on the command line: `5s`, `500ms`, `250us`, or a number of the unit that an option has had
//! always.

use std::time::Duration;

use crate::system::quantity;

/// A time, in seconds if it has no unit.
///
/// # Errors
/// It is no time, with what would be one.
pub fn seconds(text: &str) -> Result<Duration, String> {
    parse(text, Duration::from_secs).ok_or_else(|| {
        "expected a time: a number of seconds, or text like `5s`, `500ms`".to_owned()
    })
}

/// A time, in ms if it has no unit.
///
/// # Errors
/// It is no time, with what would be one.
pub fn milliseconds(text: &str) -> Result<Duration, String> {
    parse(text, Duration::from_millis)
        .ok_or_else(|| "expected a time: a number of ms, or text like `500ms`, `2s`".to_owned())
}

fn parse(text: &str, bare: impl Fn(u64) -> Duration) -> Option<Duration> {
    match text.parse() {
        Ok(number) => Some(bare(number)),
        Err(_) => quantity::micros(text).map(Duration::from_micros),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_without_a_unit_means_what_the_option_says() {
        assert_eq!(seconds("5"), Ok(Duration::from_secs(5)));
        assert_eq!(milliseconds("5"), Ok(Duration::from_millis(5)));
        for parse in [seconds, milliseconds] {
            assert_eq!(parse("5s"), Ok(Duration::from_secs(5)));
            assert_eq!(parse("1500ms"), Ok(Duration::from_millis(1500)));
            for wrong in ["", "-5", "5x", "1.5s"] {
                assert!(parse(wrong).unwrap_err().contains("like `5"), "{wrong}");
            }
        }
    }
}
