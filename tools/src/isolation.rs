//! The kernel without page-table isolation: for which builds there is one, and on which processors of the emulator it runs
//! (docs/src/decisions/isolation.md).

use anyhow::{ensure, Result};

use crate::arch::Arch;
use crate::kernel::KernelOptions;

/// A processor of which user code cannot read what is mapped for the kernel, as QEMU's `-cpu` names it.
pub const CPU: &str = "EPYC";

/// This kernel, but without isolation.
///
/// # Errors
/// There is no such kernel.
pub fn leave_out(kernel: KernelOptions) -> Result<KernelOptions> {
    ensure!(
        kernel.arch == Arch::X86_64,
        "`--no-isolation` is for x86_64: kernels for {} have their own root of tables, and enter and leave without another",
        kernel.arch.name()
    );
    ensure!(
        !kernel.is_for_several_cores(),
        "`--no-isolation` is for one core: a kernel for several relies on isolation where one core takes away what another \
         knows translations of"
    );
    Ok(kernel.without_isolation())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Variant;

    #[test]
    fn it_is_left_out_of_kernels_for_one_core_only() {
        let kernel = KernelOptions::new(Variant::Release);
        let without = leave_out(kernel.clone()).unwrap();
        assert_eq!(
            without.file_name(),
            "sandglass-kernel-release-no-isolation.elf"
        );
        assert_eq!(without.cpu(), Some(CPU));
        assert_eq!(kernel.cpu(), None);
    }

    #[test]
    fn where_there_is_none_without_it_the_reason_is_told() {
        let several = KernelOptions::smp(Variant::Debug);
        let text = format!("{:#}", leave_out(several).unwrap_err());
        assert!(text.contains("for one core"), "{text}");
        let aarch64 = KernelOptions::new(Variant::Debug).for_arch(Arch::Aarch64);
        let text = format!("{:#}", leave_out(aarch64).unwrap_err());
        assert!(text.contains("for x86_64"), "{text}");
    }
}
