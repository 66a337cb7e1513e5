//! What C passes. Only C makes values of these types, and the header says what it promises with them.

use core::ffi::{c_char, c_void, CStr};

/// Text that ends with a zero: null, or valid as long as the call.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub struct Text(*const c_char);

impl Text {
    /// The bytes without the zero; none of null.
    pub fn bytes<'a>(self) -> &'a [u8] {
        if self.0.is_null() {
            return &[];
        }
        // SAFETY: C promises it (above).
        unsafe { CStr::from_ptr(self.0) }.to_bytes()
    }

    /// As text. What is not UTF-8 is no name of anything.
    pub fn text<'a>(self) -> &'a str {
        core::str::from_utf8(self.bytes()).unwrap_or("\u{fffd}")
    }
}

/// The first of some elements that can be read during the call: as many as another argument says.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub struct Elements<T>(*const T);

impl<T> Elements<T> {
    /// `count` of them; none of null.
    pub fn slice<'a>(self, count: usize) -> &'a [T] {
        if self.0.is_null() || count == 0 {
            return &[];
        }
        // SAFETY: C promises it (above).
        unsafe { core::slice::from_raw_parts(self.0, count) }
    }
}

/// The first of some elements that can be written during the call: as many as another argument says.
#[repr(transparent)]
#[derive(Debug)]
pub struct Room<T>(*mut T);

impl<T> Room<T> {
    /// `count` of them; none of null.
    pub fn slice<'a>(self, count: usize) -> &'a mut [T] {
        if self.0.is_null() || count == 0 {
            return &mut [];
        }
        // SAFETY: C promises it (above).
        unsafe { core::slice::from_raw_parts_mut(self.0, count) }
    }
}

/// What C gives a function of its own, and nobody here looks at. Whether several threads may use it is the business of who
/// wrote that function.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub struct Context(*mut c_void);

// SAFETY: it is passed on only.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}
