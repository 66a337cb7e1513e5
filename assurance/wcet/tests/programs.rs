//! The programs of `programs.s`, as a file.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::Result;
use sandglass_wcet::analysis::{Analysis, Question};
use sandglass_wcet::image::Image;
use sandglass_wcet::limits::Bound;

/// Their source.
pub const SOURCE: &str = include_str!("programs.s");

/// The file, assembled once, with lines.
pub fn file() -> &'static Path {
    static FILE: OnceLock<PathBuf> = OnceLock::new();
    FILE.get_or_init(|| assemble("programs", &["-g"]))
}

/// The source as a file of its own, with these options.
pub fn assemble(name: &str, options: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs.s");
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let file = directory.join(name);
    let made = directory.join(format!("{name}.{}", std::process::id()));
    let fixed = ["-nostdlib", "-static", "-no-pie", "-Wl,-e,0", "-o"];
    let status = Command::new("cc")
        .args(options)
        .args(fixed)
        .args([&made, &source])
        .status()
        .expect("a C compiler assembles the programs");
    assert!(status.success(), "the programs do not assemble");
    // At once, as others may be reading the one before.
    fs::rename(made, &file).expect("the file gets its name");
    file
}

pub fn image() -> Image {
    Image::read(file()).expect("the programs are such a file")
}

/// The number of a function.
pub fn number(image: &Image, name: &str) -> usize {
    image
        .function_named(name)
        .unwrap_or_else(|| panic!("no function {name}"))
}

/// What is asked where nothing is limited.
pub fn question(image: &Image, bounds: Vec<Bound>) -> Question {
    Question {
        levels: 8,
        point: image.function_named("point"),
        bounds,
        model: None,
        executed: None,
    }
}

/// The bound of a program; `None` if it never ends.
pub fn bound(image: &Image, name: &str, question: Question) -> Result<Option<i64>> {
    let start = image.functions[number(image, name)].start;
    let longest = Analysis::new(image, question).longest(&[start])?;
    Ok(longest.map(|longest| longest.cost))
}
