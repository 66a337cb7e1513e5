//! The host's C library is the reference.

use std::ffi::{c_char, c_int, CString};
use std::string::String;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;

extern "C" {
    fn vsnprintf(
        buffer: *mut c_char,
        size: usize,
        format: *const c_char,
        arguments: *mut ArgumentList,
    ) -> c_int;
}

fn theirs(format: &str, arguments: &[u64]) -> String {
    let format = CString::new(format).unwrap();
    let mut list = ArgumentList::in_memory(arguments.as_ptr());
    let mut buffer = std::vec![0u8; 8192];
    // SAFETY: the arguments are what the test's format says; the list has the ABI's layout.
    let len = unsafe {
        vsnprintf(
            buffer.as_mut_ptr().cast(),
            buffer.len(),
            format.as_ptr(),
            &raw mut list,
        )
    };
    buffer.truncate(len as usize);
    String::from_utf8(buffer).unwrap()
}

fn ours(format: &str, arguments: &[u64]) -> String {
    let mut list = ArgumentList::in_memory(arguments.as_ptr());
    let mut text = String::new();
    write(&mut text, format.as_bytes(), &mut Arguments::new(&mut list)).unwrap();
    text
}

#[track_caller]
fn same(format: &str, arguments: &[u64]) {
    assert_eq!(
        ours(format, arguments),
        theirs(format, arguments),
        "{format}"
    );
}

#[test]
fn formats_of_every_kind_are_those_of_the_c_library() {
    let text = CString::new("hello").unwrap();
    let text = text.as_ptr() as u64;
    same("nothing", &[]);
    same(
        "100%% of %s, %10s, %-10s|, %.2s, %*.*s|",
        &[text, text, text, text, 7, 3, text],
    );
    same("%c%5c%-5c|", &[b'a'.into(), b'b'.into(), b'c'.into()]);
    same("%p %20p %-20p|", &[0x1234, 0xdead, 0xbeef]);
    same("%d %i %u %x %X %o", &[-5i64 as u64, 7, 8, 255, 255, 8]);
    same(
        "%hhd %hd %ld %lld %jd %zu %td",
        &[300, 70000, u64::MAX, 1 << 40, 5, 6, 7],
    );
    same("%*d|%-*d|", &[-8i32 as u32 as u64, 42, 8, 42]);
    same("%.*d", &[-3i32 as u32 as u64, 42]);
    for value in [
        0.0,
        -0.0,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::MAX,
        f64::MIN_POSITIVE,
    ] {
        same("%f %e %g %G %010.3f %+g", &[value.to_bits(); 6]);
    }
}

#[test]
fn what_is_not_understood_stands_as_it_is() {
    assert_eq!(ours("%y %5", &[]), "%y %5");
    assert_eq!(ours("%s", &[0]), "(null)");
}

fn flags() -> impl Strategy<Value = String> {
    let width = prop_oneof![
        Just(String::new()),
        (0u32..30).prop_map(|n| std::format!("{n}"))
    ];
    let precision = prop_oneof![
        Just(String::new()),
        Just(".".to_owned()),
        (0u32..25).prop_map(|n| std::format!(".{n}"))
    ];
    let flag = prop::sample::subsequence(Vec::from(["-", "+", " ", "#", "0"]), 0..=5);
    (flag, width, precision).prop_map(|(flags, width, precision)| {
        let flags: String = flags.concat();
        std::format!("{flags}{width}{precision}")
    })
}

proptest! {
    #[test]
    fn integers_are_those_of_the_c_library(
        flags in flags(), length in prop::sample::select(&["hh", "h", "", "l", "ll", "z", "j", "t"][..]),
        letter in prop::sample::select(&["d", "i", "u", "x", "X", "o"][..]),
        value in prop_oneof![Just(0u64), 0u64..300, any::<u64>()],
    ) {
        let format = std::format!("%{flags}{length}{letter}|");
        prop_assert_eq!(ours(&format, &[value]), theirs(&format, &[value]), "{}", format);
    }

    #[test]
    fn floating_point_numbers_are_those_of_the_c_library(
        flags in flags(), letter in prop::sample::select(&["f", "F", "e", "E", "g", "G"][..]),
        value in prop_oneof![
            any::<f64>(), -1000.0..1000.0, (-1000i32..1000).prop_map(f64::from),
            (-1e7..1e7).prop_map(|x: f64| (x / 1000.0).round() / 100.0),
        ],
    ) {
        let format = std::format!("%{flags}{letter}|");
        let arguments = [value.to_bits()];
        prop_assert_eq!(ours(&format, &arguments), theirs(&format, &arguments), "{}", format);
    }
}
