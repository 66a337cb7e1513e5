//! What operations cost in seL4 16.0.0, and what they may cost here.

use crate::arch::Arch;

/// Kernel-only instructions of seL4 16.0.0, page-table isolation included where there is any, measured the same way: its MCS
/// configuration, whose ABI Sandglass speaks, and the same kernel without scheduling contexts, where the operation exists
/// there.
pub struct Reference {
    name: &'static str,
    pub mcs: u32,
    pub base: Option<u32>,
}

const fn row(name: &'static str, mcs: u32, base: u32) -> Reference {
    Reference {
        name,
        mcs,
        base: Some(base),
    }
}

const fn mcs_row(name: &'static str, mcs: u32) -> Reference {
    Reference {
        name,
        mcs,
        base: None,
    }
}

const X86_64: &[Reference] = &[
    row("call-0-passive", 221, 193),
    row("reply-recv-0-passive", 285, 219),
    row("call-0-passive-fpu", 236, 208),
    row("reply-recv-0-passive-fpu", 302, 234),
    row("call-0-active", 1023, 194),
    row("reply-recv-0-active", 1233, 220),
    mcs_row("call-10-passive", 1002),
    mcs_row("reply-recv-10-passive", 1247),
    row("call-10-active", 1017, 812),
    row("reply-recv-10-active", 1190, 778),
    row("send-wake-higher", 878, 710),
    row("recv-block", 648, 427),
    row("signal", 446, 364),
    row("signal-wake-higher", 714, 520),
    row("wait-block", 562, 420),
    row("fault-to-handler", 712, 617),
    row("fault-reply", 1237, 699),
    row("yield-alone", 488, 288),
    row("set-priority-self", 725, 623),
    mcs_row("timer-to-timeout-fault", 864),
    mcs_row("interrupt-to-driver", 680),
    row("map-page", 800, 713),
    row("protect-page", 801, 713),
    row("retype-frame", 1020, 892),
];

const AARCH64: &[Reference] = &[
    row("call-0-passive", 209, 191),
    row("reply-recv-0-passive", 266, 215),
    row("call-0-passive-fpu", 261, 243),
    row("reply-recv-0-passive-fpu", 318, 267),
    row("call-0-active", 947, 191),
    row("reply-recv-0-active", 1038, 215),
    mcs_row("call-10-passive", 933),
    mcs_row("reply-recv-10-passive", 1108),
    row("call-10-active", 932, 703),
    row("reply-recv-10-active", 1017, 687),
    row("send-wake-higher", 780, 634),
    row("recv-block", 570, 387),
    row("signal", 401, 333),
    row("signal-wake-higher", 648, 496),
    row("wait-block", 503, 385),
    row("fault-to-handler", 676, 513),
    row("fault-reply", 1076, 612),
    row("yield-alone", 471, 308),
    row("set-priority-self", 673, 590),
    mcs_row("timer-to-timeout-fault", 854),
    row("map-page", 609, 535),
    row("protect-page", 618, 544),
    row("retype-frame", 1259, 1155),
];

/// Most instructions that an operation may take.
const X86_64_LIMITS: &[(&str, u32)] = &[
    ("call-0-passive", 193),
    ("reply-recv-0-passive", 219),
    ("call-0-active", 265),
    ("reply-recv-0-active", 305),
    ("call-10-passive", 260),
    ("reply-recv-10-passive", 295),
    ("call-10-active", 330),
    ("reply-recv-10-active", 375),
    ("send-wake-higher", 290),
    ("recv-block", 300),
    ("nb-send-recv-block", 400),
    ("signal", 185),
    ("signal-no-waiter", 140),
    ("interrupt-to-driver", 345),
    ("signal-wake-higher", 280),
    ("wait-block", 280),
    ("fault-to-handler", 340),
    ("fault-reply", 455),
    ("yield-alone", 185),
    ("set-priority-self", 330),
    ("timer-to-timeout-fault", 355),
    ("map-page", 470),
    ("protect-page", 470),
];

/// On aarch64, percents of the reference's that an operation may take: all that the reference has no path of its own for.
const SHARES: &[(&str, u32)] = &[
    ("call-0-passive", 86),
    ("reply-recv-0-passive", 75),
    ("call-0-active", 30),
    ("reply-recv-0-active", 32),
    ("call-10-passive", 35),
    ("reply-recv-10-passive", 35),
    ("call-10-active", 40),
    ("reply-recv-10-active", 40),
    ("send-wake-higher", 35),
    ("recv-block", 52),
    ("signal-no-waiter", 35),
    ("signal-wake-higher", 42),
    ("wait-block", 56),
    ("fault-to-handler", 43),
    ("fault-reply", 39),
    ("yield-alone", 39),
    ("set-priority-self", 43),
    ("timer-to-timeout-fault", 62),
    ("map-page", 65),
    ("protect-page", 65),
    ("retype-frame", 85),
];

/// The processor on which the reference was measured.
pub const fn cpu(arch: Arch) -> &'static str {
    match arch {
        Arch::X86_64 => "Haswell,-pcid,+pdpe1gb",
        Arch::Aarch64 => arch.cpu(),
    }
}

/// Of QEMU's `-icount`, with which the counter counts instructions: it has a tick in 1 ns on x86_64, in 16 ns on aarch64.
pub const fn shift(arch: Arch) -> u8 {
    match arch {
        Arch::X86_64 => 0,
        Arch::Aarch64 => 4,
    }
}

const fn rows(arch: Arch) -> &'static [Reference] {
    match arch {
        Arch::X86_64 => X86_64,
        Arch::Aarch64 => AARCH64,
    }
}

/// What the reference takes for the operation of this name.
pub fn of(arch: Arch, name: &str) -> Option<&'static Reference> {
    rows(arch).iter().find(|reference| reference.name == name)
}

/// What the operation of this name may take at most.
pub fn limit(arch: Arch, name: &str) -> Option<u32> {
    let find = |limits: &[(&str, u32)]| {
        let limit = limits.iter().find(|(limited, _)| *limited == name)?;
        Some(limit.1)
    };
    match arch {
        Arch::X86_64 => find(X86_64_LIMITS),
        Arch::Aarch64 => {
            // The reference's is of a signal that wakes nobody who goes on, as `signal` is; the limit is for none at all.
            let compared = if name == "signal-no-waiter" {
                "signal"
            } else {
                name
            };
            Some(of(arch, compared)?.mcs * find(SHARES)? / 100)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_have_names_of_their_own() {
        for arch in Arch::ALL {
            let mut names: Vec<&str> = rows(arch).iter().map(|reference| reference.name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), rows(arch).len());
        }
    }

    #[test]
    fn limits_of_aarch64_are_shares_of_the_references() {
        assert_eq!(limit(Arch::Aarch64, "yield-alone"), Some(183));
        assert_eq!(limit(Arch::Aarch64, "signal-no-waiter"), Some(140));
        assert_eq!(limit(Arch::Aarch64, "retype-frame"), Some(1070));
        assert_eq!(limit(Arch::Aarch64, "read-registers"), None);
        for (name, _) in SHARES {
            assert!(limit(Arch::Aarch64, name).is_some(), "{name}");
        }
    }
}
