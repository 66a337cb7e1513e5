//! What the same costs on the reference, seL4 16.0.0 (x86_64, MCS, release), measured the same way:
//! instructions with 10, 1,000 and 100,000 attackers, or of the one measurement.

use crate::arch::Arch;

/// Figures of the reference for an operation.
pub struct Reference {
    pub name: &'static str,
    pub figures: &'static [u64],
}

const fn row(name: &'static str, figures: &'static [u64]) -> Reference {
    Reference { name, figures }
}

/// The deletion of an endpoint or notification, and the cancellation of badged sends, none of which
/// can be preempted there.
const EMPTYING: &[u64] = &[3_592, 93_978, 9_201_978];

pub const REFERENCE: &[Reference] = &[
    row("due-at-once-delay", &[2_300, 71_600, 7_001_600]),
    row("due-in-turn-taken", &[13_920, 1_364_148, 136_400_115]),
    row("endpoint-insert-sender", &[735, 5_685, 500_685]),
    row("endpoint-reprioritise-sender", &[667, 5_617, 500_617]),
    row("release-insert", &[636, 8_556, 800_816]),
    row("cancel-badged-sends", EMPTYING),
    row("endpoint-delete-senders", EMPTYING),
    row("endpoint-delete-receivers", EMPTYING),
    row("notification-delete", EMPTYING),
    // How late a periodic thread is.
    row("revoke-100-endpoints", &[11_170, 44_710, 5_714_079]),
    // With 250, 1,018 and 65,530 refills.
    row("sporadic-wake-fragmented", &[4_334, 15_854, 983_534]),
    row("retype-tcb", &[1_086_592]),
    row("revoke-page-tables", &[1_745_494]),
    row("send-120-words-3-caps", &[24_416]),
    row("pool-delete", &[25_165]),
];

/// The figures of the reference for `name`; on aarch64 it was not measured.
pub fn of(arch: Arch, name: &str) -> Option<&'static [u64]> {
    if arch != Arch::X86_64 {
        return None;
    }
    let row = REFERENCE.iter().find(|reference| reference.name == name);
    row.map(|reference| reference.figures)
}
