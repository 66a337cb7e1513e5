//! What the processor says of itself (CPUID).

use core::arch::x86_64::__cpuid;
use core::fmt;

use crate::{Report, Verdict};

/// The processor's name, as it tells it.
pub struct Brand([u8; 48]);

impl Brand {
    pub fn read() -> Self {
        let mut bytes = [0; 48];
        if __cpuid(0x8000_0000).eax >= 0x8000_0004 {
            for (part, leaf) in bytes.chunks_exact_mut(16).zip(0x8000_0002..) {
                let found = __cpuid(leaf);
                let words = [found.eax, found.ebx, found.ecx, found.edx];
                for (place, word) in part.chunks_exact_mut(4).zip(words) {
                    place.copy_from_slice(&word.to_le_bytes());
                }
            }
        }
        Brand(bytes)
    }
}

impl fmt::Display for Brand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = self.0.iter().position(|&byte| byte == 0);
        let text = self.0.get(..end.unwrap_or(self.0.len())).unwrap_or(&[]);
        f.write_str(
            core::str::from_utf8(text)
                .unwrap_or("of a name that is no text")
                .trim(),
        )?;
        let version = __cpuid(1).eax;
        write!(f, " ({version:#x})")
    }
}

/// A leaf, or zeroes where the processor has none.
fn leaf(number: u32) -> [u32; 4] {
    if __cpuid(number & 0x8000_0000).eax < number {
        return [0; 4];
    }
    let found = __cpuid(number);
    [found.eax, found.ebx, found.ecx, found.edx]
}

/// A feature: its name, leaf, register (0 to 3, EAX to EDX) and bit.
type Feature = (&'static str, u32, usize, u32);

const PROTECTION: [Feature; 4] = [
    ("NX", 0x8000_0001, 3, 20),
    ("SMEP", 7, 1, 7),
    ("SMAP", 7, 1, 20),
    ("UMIP", 7, 2, 2),
];

/// What a processor has against speculation, none of which the kernel uses as it ships.
const SPECULATION: [Feature; 6] = [
    ("IBRS/IBPB", 7, 3, 26),
    ("STIBP", 7, 3, 27),
    ("SSBD", 7, 3, 31),
    ("MD_CLEAR", 7, 3, 10),
    ("L1D_FLUSH", 7, 3, 28),
    ("ARCH_CAPABILITIES", 7, 3, 29),
];

fn has(&(_, number, register, bit): &Feature) -> bool {
    leaf(number)[register] & 1 << bit != 0
}

/// Those of `features` that the processor has, or has not.
struct Those<'f>(&'f [Feature], bool);

impl fmt::Display for Those<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut some = false;
        for feature in self.0.iter().filter(|feature| has(feature) == self.1) {
            let before = if some { " " } else { "" };
            write!(f, "{before}{}", feature.0)?;
            some = true;
        }
        if some {
            Ok(())
        } else {
            f.write_str("none")
        }
    }
}

/// What the kernel uses to protect itself.
pub fn protection(report: &mut Report) {
    report.line(
        "protection",
        Verdict::or_note(PROTECTION.iter().all(has)),
        format_args!(
            "has {}; lacks {}",
            Those(&PROTECTION, true),
            Those(&PROTECTION, false)
        ),
    );
}

/// What it uses only if it was built for it, which it does not tell.
pub fn speculation(report: &mut Report) {
    report.line(
        "speculation",
        Verdict::Note,
        format_args!(
            "offers {}, of which the kernel uses what it was built for, and as it ships nothing",
            Those(&SPECULATION, true)
        ),
    );
}
