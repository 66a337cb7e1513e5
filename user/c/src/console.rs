//! Printing.

use core::cell::Cell;
use core::ffi::{c_char, c_int};
use core::fmt;

use sandglass::console;

use crate::foreign::{Elements, Room, Text};
use crate::format::{self, ArgumentList, Arguments};

/// A format with its arguments, to be shown once: reading arguments uses them up.
pub(crate) struct Formatted<'f> {
    format: &'f [u8],
    arguments: Cell<Option<Arguments<'f>>>,
}

impl<'f> Formatted<'f> {
    pub(crate) fn new(format: Text, arguments: &'f mut ArgumentList) -> Self {
        Self {
            format: format.bytes(),
            arguments: Cell::new(Some(Arguments::new(arguments))),
        }
    }
}

impl fmt::Display for Formatted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.arguments.take() {
            Some(mut arguments) => format::write(f, self.format, &mut arguments),
            None => Ok(()),
        }
    }
}

/// Counts bytes on their way.
struct Counted<'w, W> {
    to: &'w mut W,
    bytes: usize,
}

impl<W: fmt::Write> fmt::Write for Counted<'_, W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.bytes += text.len();
        self.to.write_str(text)
    }
}

struct Printed<'p, 'f>(&'p Formatted<'f>, &'p Cell<usize>);

impl fmt::Display for Printed<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut counted = Counted { to: f, bytes: 0 };
        let written = fmt::Write::write_fmt(&mut counted, format_args!("{}", self.0));
        self.1.set(counted.bytes);
        written
    }
}

/// The room of `snprintf`: what does not fit is counted only.
struct Buffer<'b> {
    room: &'b mut [u8],
    wanted: usize,
}

impl fmt::Write for Buffer<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // The last byte is the zero's.
        let end = self.room.len().saturating_sub(1);
        let rest = self.room[..end].get_mut(self.wanted..).unwrap_or_default();
        let fitting = rest.len().min(text.len());
        rest[..fitting].copy_from_slice(&text.as_bytes()[..fitting]);
        self.wanted += text.len();
        Ok(())
    }
}

#[no_mangle]
pub extern "C" fn sg_vprintf(format: Text, arguments: Option<&mut ArgumentList>) -> c_int {
    let Some(arguments) = arguments else {
        return -1;
    };
    let formatted = Formatted::new(format, arguments);
    let bytes = Cell::new(0);
    console::print(format_args!("{}", Printed(&formatted, &bytes)));
    c_int::try_from(bytes.get()).unwrap_or(c_int::MAX)
}

#[no_mangle]
pub extern "C" fn sg_vsnprintf(
    buffer: Room<c_char>,
    size: usize,
    format: Text,
    arguments: Option<&mut ArgumentList>,
) -> c_int {
    let room = buffer.slice(size);
    // SAFETY: a char is a byte.
    let room: &mut [u8] =
        unsafe { core::slice::from_raw_parts_mut(room.as_mut_ptr().cast(), room.len()) };
    let mut buffer = Buffer { room, wanted: 0 };
    if let Some(arguments) = arguments {
        // A buffer never fails.
        let _ = format::write(&mut buffer, format.bytes(), &mut Arguments::new(arguments));
    }
    let end = buffer.wanted.min(buffer.room.len().saturating_sub(1));
    if let Some(zero) = buffer.room.get_mut(end) {
        *zero = 0;
    }
    c_int::try_from(buffer.wanted).unwrap_or(c_int::MAX)
}

#[no_mangle]
pub extern "C" fn sg_puts(text: Text) {
    console::print(format_args!("{}\n", format::Lossy(text.bytes())));
}

#[no_mangle]
pub extern "C" fn sg_write(bytes: Elements<u8>, count: usize) {
    console::print(format_args!("{}", format::Lossy(bytes.slice(count))));
}
