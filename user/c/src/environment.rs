//! What the component was given, by name.

use alloc::ffi::CString;
use core::ffi::{c_char, c_void};
use core::sync::atomic::{AtomicPtr, Ordering};

use sandglass::cap::CPtr;
use sandglass::env::MemoryRegion;
use sandglass::Environment;

use crate::foreign::Text;

/// A capability: the address of a slot; 0 is none.
pub type Capability = u64;

/// Memory that the system maps into the component.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Region {
    pub address: *mut c_void,
    /// Bytes.
    pub length: usize,
}

impl From<MemoryRegion> for Region {
    fn from(region: MemoryRegion) -> Self {
        Self {
            address: region.as_mut_ptr().cast(),
            length: region.len as usize,
        }
    }
}

static ENVIRONMENT: AtomicPtr<Environment> = AtomicPtr::new(core::ptr::null_mut());

/// Says what the component was given; before anything else.
#[cfg(feature = "program")]
pub(crate) fn set(environment: &'static Environment) {
    ENVIRONMENT.store(
        core::ptr::from_ref(environment).cast_mut(),
        Ordering::Release,
    );
}

/// What the component was given.
pub(crate) fn get() -> &'static Environment {
    // SAFETY: null, or what `set` was given.
    let environment = unsafe { ENVIRONMENT.load(Ordering::Acquire).as_ref() };
    environment.expect("the program begins before `main`")
}

/// The component's name, ended with a zero.
#[no_mangle]
pub extern "C" fn sg_name() -> *const c_char {
    static NAME: AtomicPtr<c_char> = AtomicPtr::new(core::ptr::null_mut());
    let known = NAME.load(Ordering::Acquire);
    if !known.is_null() {
        return known;
    }
    // Kept for good; a second one, if two threads come here at once, too.
    let name = CString::new(get().name()).unwrap_or_default().into_raw();
    NAME.store(name, Ordering::Release);
    name
}

#[no_mangle]
pub extern "C" fn sg_capability(name: Text) -> Capability {
    get().capability::<CPtr>(name.text()).raw()
}

#[no_mangle]
pub extern "C" fn sg_find_capability(name: Text) -> Capability {
    let found = get().find_capability::<CPtr>(name.text());
    found.unwrap_or(CPtr::NULL).raw()
}

#[no_mangle]
pub extern "C" fn sg_memory(name: Text) -> Region {
    get().memory(name.text()).into()
}

#[no_mangle]
pub extern "C" fn sg_find_memory(name: Text) -> Region {
    let none = Region {
        address: core::ptr::null_mut(),
        length: 0,
    };
    get().find_memory(name.text()).map_or(none, Region::from)
}

#[no_mangle]
pub extern "C" fn sg_parameter(name: Text) -> u64 {
    get().parameter(name.text())
}

#[no_mangle]
pub extern "C" fn sg_parameter_or(name: Text, otherwise: u64) -> u64 {
    get().find_parameter(name.text()).unwrap_or(otherwise)
}
