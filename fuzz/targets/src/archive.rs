//! The archive that a system's launcher finds behind itself, as any bytes.

use sandglass_description::archive::{Archive, Blob, Builder};
use sandglass_description::MemorySource;

use crate::Target;

pub const TARGET: Target = Target {
    name: "archive",
    what: "an archive of a described system",
    run,
    explain,
};

/// Bytes are an archive or are refused; what an archive describes survives another packing, and
/// every blob is inside of it or refused.
fn run(input: &[u8]) {
    let Ok(archive) = Archive::parse(input) else {
        return;
    };
    let Ok(system) = archive.system() else { return };
    let files = system
        .memory
        .iter()
        .filter_map(|memory| match memory.source {
            MemorySource::File(blob) => Some(blob),
            _ => None,
        });
    let executables = system
        .components
        .iter()
        .map(|component| component.executable);
    for blob in files.chain(executables) {
        check_blob(&archive, blob);
    }
    let packed = Builder::new()
        .finish(&system)
        .expect("what was decoded can be encoded");
    let again = Archive::parse(&packed).expect("what was packed is an archive");
    assert_eq!(again.system().as_ref(), Ok(&system));
}

fn check_blob(archive: &Archive, blob: Blob) {
    if let Ok(bytes) = archive.blob(blob) {
        assert_eq!(bytes.len() as u64, blob.len);
    }
}

fn explain(input: &[u8]) -> String {
    match Archive::parse(input).and_then(|archive| archive.system()) {
        Ok(system) => format!("{system:#?}"),
        Err(error) => error.to_string(),
    }
}
