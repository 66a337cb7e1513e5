//! The release kernel cannot panic: what could does not link.

use sandglass_tools::kernel::{self, KernelOptions, Variant};
use sandglass_tools::mutants::named::Set;

/// Its change adds `a[i]` with an `i` that a user chooses to a path that ships.
#[test]
fn an_index_that_a_user_chooses_does_not_link() {
    let options = KernelOptions::new(Variant::Release).with_mutants(Set::Panics);
    let error = kernel::build(&options).expect_err("the kernel that can panic links");
    let message = format!("{error:#}");
    assert!(
        message.contains("undefined symbol: sandglass_kernel_must_not_panic"),
        "{message}"
    );
}

#[test]
fn the_release_kernel_links() {
    let path = kernel::build(&KernelOptions::new(Variant::Release)).unwrap();
    assert!(path.is_file());
}
