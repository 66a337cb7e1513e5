//! Orders: in which priorities, or times, of many things follow each other.

/// How the places of things follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// All have one place.
    Same,
    /// By turns the first and the last.
    Halves,
    Up,
    Down,
    /// From both ends to the middle.
    Inwards,
    /// From the middle to both ends.
    Outwards,
    /// Anyhow.
    Scattered,
}

/// All, as they are written.
pub const NAMES: &[&str] = &[
    "same",
    "halves",
    "up",
    "down",
    "inwards",
    "outwards",
    "scattered",
];

impl Order {
    /// The order that is written as `name`; one that is not known is [`Order::Same`].
    pub fn named(name: &str) -> Self {
        match name {
            "halves" => Self::Halves,
            "up" => Self::Up,
            "down" => Self::Down,
            "inwards" => Self::Inwards,
            "outwards" => Self::Outwards,
            "scattered" => Self::Scattered,
            _ => Self::Same,
        }
    }

    /// Place of thing `i` of `count`: from 0 to `count` − 1.
    pub fn place(self, i: u64, count: u64, seed: u64) -> u64 {
        let last = count.saturating_sub(1);
        let inwards = |i: u64| {
            if i.is_multiple_of(2) {
                i / 2
            } else {
                last - i / 2
            }
        };
        match self {
            Self::Same => 0,
            Self::Halves => i % 2 * last,
            Self::Up => i,
            Self::Down => last - i,
            Self::Inwards => inwards(i),
            Self::Outwards => inwards(last - i),
            Self::Scattered => scatter(i ^ seed << 32) % count.max(1),
        }
    }
}

/// A number that looks like chance (the finaliser of SplitMix64).
fn scatter(i: u64) -> u64 {
    let mut z = i.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    #[test]
    fn orders_are_what_their_names_say() {
        let places =
            |name| -> Vec<u64> { (0..5).map(|i| Order::named(name).place(i, 5, 0)).collect() };
        assert_eq!(places("same"), [0; 5]);
        assert_eq!(places("halves"), [0, 4, 0, 4, 0]);
        assert_eq!(places("up"), [0, 1, 2, 3, 4]);
        assert_eq!(places("down"), [4, 3, 2, 1, 0]);
        assert_eq!(places("inwards"), [0, 4, 1, 3, 2]);
        assert_eq!(places("outwards"), [2, 3, 1, 4, 0]);
        assert!(places("scattered").iter().all(|&place| place < 5));
    }

    #[test]
    fn every_name_is_an_order() {
        let known = NAMES
            .iter()
            .filter(|&&name| Order::named(name) == Order::Same);
        assert_eq!(known.count(), 1);
    }
}
