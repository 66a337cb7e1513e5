//! The emulator's plugin.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Context, Result};
use cargo_metadata::Message;

use crate::toolchain;
use crate::workspace;

const PACKAGE: &str = "sandglass-plugin";

/// Builds the plugin and returns the file that QEMU loads.
///
/// # Errors
/// It does not build, with the compiler's messages.
pub fn build() -> Result<PathBuf> {
    let mut cargo = toolchain::host_cargo();
    cargo.args(["build", "--release", "--package", PACKAGE]);
    cargo.args(["--message-format", "json-render-diagnostics"]);
    cargo
        .arg("--target-dir")
        .arg(workspace::target_dir().join("plugin"));
    eprintln!("building {PACKAGE}");
    let artifacts = toolchain::build(&mut cargo, PACKAGE)?;
    for message in Message::parse_stream(artifacts.as_slice()) {
        let Message::CompilerArtifact(artifact) = message.context("cannot read cargo's output")?
        else {
            continue;
        };
        let library = artifact.filenames.iter().find(|file| {
            artifact.target.is_cdylib() && file.extension() == Some(std::env::consts::DLL_EXTENSION)
        });
        if let Some(library) = library {
            return Ok(library.clone().into_std_path_buf());
        }
    }
    anyhow::bail!("`{PACKAGE}` is not a library that can be loaded")
}

/// QEMU's options for a machine with so much memory whose plugin, with these arguments, reads that memory.
pub fn that_reads_memory(plugin: OsString, memory_mib: u32) -> Vec<OsString> {
    let memory = format!("memory-backend-memfd,id=ram,share=on,size={memory_mib}M");
    vec![
        "-object".into(),
        memory.into(),
        "-machine".into(),
        "memory-backend=ram".into(),
        "-plugin".into(),
        plugin,
    ]
}
