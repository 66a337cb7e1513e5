//! Descriptions of systems, as any text.

use std::path::PathBuf;

use sandglass_description::archive::{Archive, Builder};
use sandglass_tools::system::{check, Source};

use crate::Target;

pub const TARGET: Target = Target {
    name: "description",
    what: "a system description (SYSTEM.toml)",
    run,
    explain,
};

/// A text is a description or everything that is wrong is shown, at places of the text; what is
/// right can be packed and comes out as it was.
fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    if names_files(text) {
        return;
    }
    let source = source(text);
    match check(&source) {
        Ok(description) => {
            let system = &description.system;
            assert_eq!(description.executables.len(), system.components.len());
            let packed = Builder::new().finish(system).expect("a system is encoded");
            let archive = Archive::parse(&packed).expect("what was packed is an archive");
            assert_eq!(archive.system().as_ref(), Ok(system));
        }
        Err(report) => {
            assert!(!report.findings.is_empty(), "refused without a reason");
            for finding in &report.findings {
                let related = finding.related.iter().map(|(span, _)| span);
                for span in std::iter::once(&finding.span).chain(related) {
                    assert!(
                        text.get(span.clone()).is_some(),
                        "a place outside: {span:?}"
                    );
                }
            }
            assert!(!report.to_string().is_empty());
        }
    }
}

/// Whether the text names files outside of its folder: an input must not depend on the machine,
/// nor read what never ends.
fn names_files(text: &str) -> bool {
    let outside = |value: &str| value.starts_with('/') || value.contains("..");
    fn any(value: &toml::Value, is: &dyn Fn(&str) -> bool) -> bool {
        match value {
            toml::Value::String(text) => is(text),
            toml::Value::Array(values) => values.iter().any(|value| any(value, is)),
            toml::Value::Table(table) => table.values().any(|value| any(value, is)),
            _ => false,
        }
    }
    toml::from_str::<toml::Table>(text)
        .is_ok_and(|table| table.values().any(|value| any(value, &outside)))
}

fn source(text: &str) -> Source {
    Source {
        name: "SYSTEM.toml".to_owned(),
        text: text.to_owned(),
        folder: PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/files")),
        arch: None,
    }
}

fn explain(input: &[u8]) -> String {
    let text = String::from_utf8_lossy(input);
    let verdict = match check(&source(&text)) {
        Ok(_) => "nothing is wrong with it".to_owned(),
        Err(report) => report.to_string(),
    };
    format!("{text}\n{verdict}")
}
