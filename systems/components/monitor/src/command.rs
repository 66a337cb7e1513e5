//! What can be typed.

/// A command. Times are µs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command<'a> {
    Help,
    Ps,
    /// Now, and again after each interval; with `None`, once; 0 ends it.
    Top(Option<u64>),
    Budget {
        thread: &'a str,
        budget_us: u64,
        /// `None`: the one it has.
        period_us: Option<u64>,
    },
}

pub const HELP: &str = "\
ps                              what each thread does
top [INTERVAL]                  what each has used since the last time; again after each interval, until `top 0`
budget THREAD BUDGET [PERIOD]   gives a thread another budget, if the monitor may
Times are like 500us, 5ms, 1s; a number alone is of microseconds.";

impl<'a> Command<'a> {
    /// Reads a line.
    ///
    /// # Errors
    /// What would be right.
    pub fn parse(line: &'a str) -> Result<Self, &'static str> {
        let mut words = line.split_ascii_whitespace();
        let command = match words.next() {
            Some("help" | "?") => Self::Help,
            Some("ps") => Self::Ps,
            Some("top") => Self::Top(words.next().map(interval).transpose()?),
            Some("budget") => Self::budget(&mut words)?,
            _ => return Err("there are `ps`, `top`, `budget` and `help`"),
        };
        match words.next() {
            None => Ok(command),
            Some(_) => Err("that is more than the command takes: see `help`"),
        }
    }

    fn budget(words: &mut impl Iterator<Item = &'a str>) -> Result<Self, &'static str> {
        const USAGE: &str = "say `budget THREAD BUDGET [PERIOD]`, as in `budget client 2ms`";
        let (thread, budget) = words.next().zip(words.next()).ok_or(USAGE)?;
        Ok(Self::Budget {
            thread,
            budget_us: time(budget)?,
            period_us: words.next().map(time).transpose()?,
        })
    }
}

fn interval(text: &str) -> Result<u64, &'static str> {
    match text {
        "0" => Ok(0),
        text => time(text),
    }
}

/// A time above 0.
fn time(text: &str) -> Result<u64, &'static str> {
    const FORM: &str = "a time is like 500us, 5ms or 1s";
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let number: u64 = digits.parse().map_err(|_| FORM)?;
    let unit = match &text[digits.len()..] {
        "" | "us" => 1,
        "ms" => 1_000,
        "s" => 1_000_000,
        _ => return Err(FORM),
    };
    match number.checked_mul(unit) {
        None | Some(0) => Err(FORM),
        Some(us) => Ok(us),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_with_their_times() {
        let parse = Command::parse;
        assert_eq!(parse(" ps "), Ok(Command::Ps));
        assert_eq!(parse("top"), Ok(Command::Top(None)));
        assert_eq!(parse("top 100ms"), Ok(Command::Top(Some(100_000))));
        assert_eq!(parse("top 0"), Ok(Command::Top(Some(0))));
        let budget = Command::Budget {
            thread: "a/b",
            budget_us: 2_000,
            period_us: Some(500),
        };
        assert_eq!(parse("budget a/b 2ms 500"), Ok(budget));
    }

    #[test]
    fn what_is_wrong_is_answered_with_what_would_be_right() {
        for line in [
            "",
            "kill",
            "ps x",
            "top 5h",
            "top ms",
            "budget a",
            "budget a -1",
            "budget a 0",
        ] {
            assert!(Command::parse(line).is_err(), "{line}");
        }
        let long = "budget a 18446744073709551615s";
        assert!(Command::parse(long).unwrap_err().contains("a time"));
    }
}
