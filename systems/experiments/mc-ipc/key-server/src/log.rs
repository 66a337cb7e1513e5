//! Memory that components share: words, each of which one of them writes.

use core::slice;
use core::sync::atomic::AtomicU64;

use sandglass::Environment;

/// The memory called `name`, as words.
///
/// # Panics
/// There is none of that name.
pub fn words(env: &Environment, name: &str) -> &'static [AtomicU64] {
    let memory = env.memory(name);
    let count = memory.len as usize / size_of::<AtomicU64>();
    // SAFETY: mapped for good, in whole pages; everybody uses it as atomic words, of which any content is valid. Who may only
    // read it calls no method that writes.
    unsafe { slice::from_raw_parts(memory.as_mut_ptr().cast(), count) }
}
