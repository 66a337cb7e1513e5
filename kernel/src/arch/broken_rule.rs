//! Which rule a kernel breaks that is wrong on purpose ([`crate::wrong`]).

#[cfg(target_os = "none")]
unsafe extern "C" {
    /// The broken rule's position is the address of this symbol, which the binary defines: so the
    /// library is compiled once for all wrong kernels.
    static sandglass_broken_rule: u8;
}

/// The position of the rule: a constant of the binary.
#[cfg(target_os = "none")]
#[inline(always)]
pub fn position() -> usize {
    &raw const sandglass_broken_rule as usize
}

/// The position of the rule: what the environment variable says when the process asks first, or none.
#[cfg(not(target_os = "none"))]
pub fn position() -> usize {
    static POSITION: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    *POSITION.get_or_init(|| {
        let number = std::env::var("SANDGLASS_WRONG_RULE").ok();
        number.and_then(|number| number.parse().ok()).unwrap_or(0)
    })
}
