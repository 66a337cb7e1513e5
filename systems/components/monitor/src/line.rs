//! Lines as they are typed: whoever is at the other end may send anything.

use alloc::string::String;

/// Longest line, bytes; what is beyond is dropped.
const MOST: usize = 120;

/// What to show of a byte that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Typed {
    Nothing,
    /// Shown as it is.
    Echo(u8),
    /// The last character is gone.
    Erased,
    /// A whole line.
    Line(String),
}

/// The line that is being typed.
#[derive(Debug, Default)]
pub struct Line(String);

impl Line {
    pub fn push(&mut self, byte: u8) -> Typed {
        match byte {
            b'\r' | b'\n' if self.0.is_empty() => Typed::Nothing,
            b'\r' | b'\n' => Typed::Line(core::mem::take(&mut self.0)),
            0x08 | 0x7f => match self.0.pop() {
                Some(_) => Typed::Erased,
                None => Typed::Nothing,
            },
            b' '..=b'~' if self.0.len() < MOST => {
                self.0.push(char::from(byte));
                Typed::Echo(byte)
            }
            _ => Typed::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_ends_with_either_end_of_line_and_can_be_corrected() {
        let mut line = Line::default();
        let typed: Vec<Typed> = b"pt\x7fs\r\n".iter().map(|&byte| line.push(byte)).collect();
        let ps = Typed::Line("ps".into());
        let (p, t, s) = (Typed::Echo(b'p'), Typed::Echo(b't'), Typed::Echo(b's'));
        assert_eq!(typed, [p, t, Typed::Erased, s, ps, Typed::Nothing]);
    }

    #[test]
    fn nonsense_takes_no_memory() {
        let mut line = Line::default();
        for byte in (0..=255)
            .cycle()
            .take(100_000)
            .filter(|&byte| byte != 13 && byte != 10)
        {
            let _ = line.push(byte);
            assert!(line.0.len() <= MOST);
        }
        assert_eq!(line.push(0xff), Typed::Nothing);
    }
}
