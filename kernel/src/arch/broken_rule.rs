//! Which rule a kernel breaks that is wrong on purpose ([`crate::wrong`]): a constant of its binary.

unsafe extern "C" {
    /// The broken rule's position is the address of this symbol, which the binary defines: so the
    /// library is compiled once for all wrong kernels.
    static sandglass_broken_rule: u8;
}

/// The position of the rule.
#[inline(always)]
pub fn position() -> usize {
    &raw const sandglass_broken_rule as usize
}
