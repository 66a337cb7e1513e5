//! Models of processors: what is counted on a path.

use std::fs;
use std::path::Path;

use anyhow::{bail, ensure, Context, Result};
use sandglass_cache::{Data, Geometry, Model};
use serde::Deserialize;

/// Counts executed instructions, and nothing else.
pub const INSTRUCTIONS: &str = "instructions";

/// Processors that have names.
pub const KNOWN: [(&str, &str); 2] = [
    ("cortex-a53", include_str!("../models/cortex-a53.toml")),
    ("cortex-a8", include_str!("../models/cortex-a8.toml")),
];

/// A processor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Processor {
    pub name: String,
    pub clock_hz: u64,
    pub model: Model,
}

/// The file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    clock_hz: u64,
    cycles_per_instruction: u64,
    instruction_cache: Cache,
    data_cache: Option<DataCache>,
    data: Option<Uncached>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cache {
    line_bytes: u64,
    sets: u64,
    ways: u64,
    replacement: Replacement,
    miss_cycles: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DataCache {
    line_bytes: u64,
    sets: u64,
    ways: u64,
    replacement: Replacement,
    miss_cycles: u64,
    #[allow(
        dead_code,
        reason = "there is only one, but a file says that it means it"
    )]
    write: WritePolicy,
    write_back_cycles: u64,
}

/// Data without a cache.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Uncached {
    access_cycles: u64,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Replacement {
    /// The least recently used line of a set makes room.
    Lru,
    /// Any line of a set may make room, as if by chance: nobody can rely on more than that the line that was used last is
    /// there, so that one way is all there is.
    Random,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum WritePolicy {
    Back,
}

impl Processor {
    /// The processor with that name, or that a file describes; `None` where instructions are counted.
    ///
    /// # Errors
    /// The file cannot be read, or is none that describes a processor; it says why.
    pub fn named(name: &str) -> Result<Option<Self>> {
        if name == INSTRUCTIONS {
            return Ok(None);
        }
        if let Some((_, text)) = KNOWN.iter().find(|known| known.0 == name) {
            return Self::parse(text).map(Some);
        }
        let path = Path::new(name);
        let text = fs::read_to_string(path).with_context(|| {
            let known = KNOWN.map(|known| known.0).join(", ");
            format!("no model `{name}`: there are {INSTRUCTIONS}, {known}, and files")
        })?;
        Self::parse(&text)
            .map(Some)
            .with_context(|| name.to_owned())
    }

    /// From the text of a file.
    ///
    /// # Errors
    /// It is no such file, or describes no cache that there can be.
    pub fn parse(text: &str) -> Result<Self> {
        let file: File = toml::from_str(text).context("a model of a processor")?;
        let data = match (file.data_cache, file.data) {
            (Some(cache), None) => Data::WriteBack {
                geometry: geometry(cache.line_bytes, cache.sets, cache.ways, cache.replacement)?,
                miss: cache.miss_cycles,
                write_back: cache.write_back_cycles,
            },
            (None, Some(data)) => Data::Uncached {
                access: data.access_cycles,
            },
            _ => bail!("a model has either [data_cache], or [data] if there is no cache for it"),
        };
        let code = file.instruction_cache;
        ensure!(file.clock_hz > 0, "clock_hz is no clock");
        Ok(Self {
            name: file.name,
            clock_hz: file.clock_hz,
            model: Model {
                instruction: file.cycles_per_instruction,
                code: geometry(code.line_bytes, code.sets, code.ways, code.replacement)?,
                code_miss: code.miss_cycles,
                data,
            },
        })
    }

    /// Microseconds that so many cycles take.
    pub fn microseconds(&self, cycles: i64) -> f64 {
        cycles as f64 * 1e6 / self.clock_hz as f64
    }
}

/// A cache as it is analysed.
fn geometry(line: u64, sets: u64, ways: u64, replacement: Replacement) -> Result<Geometry> {
    let ways = match replacement {
        Replacement::Lru => ways,
        Replacement::Random => ways.min(1),
    };
    let geometry = Geometry { line, sets, ways };
    ensure!(
        geometry.is_sound(),
        "{geometry:?} is no cache: bytes of a line and sets are powers of two, and there are two sets and one way at least"
    );
    Ok(geometry)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_replacement_leaves_one_way() {
        let a8 = Processor::named("cortex-a8").expect("it is known");
        let model = a8.expect("it is no count of instructions").model;
        assert_eq!((model.code.sets, model.code.ways), (128, 1));
        assert_eq!(model.data, Data::Uncached { access: 100 });
    }

    #[test]
    fn a_file_that_is_no_model_is_refused() {
        let good = KNOWN[0].1;
        assert!(Processor::parse(good).is_ok());
        for (what, instead) in [
            ("sets = 256", "sets = 100"),
            ("sets = 256", "sets = 1"),
            ("ways = 2", "ways = 0"),
            ("write = \"back\"", "write = \"through\""),
            ("[data_cache]", "[other]"),
            ("clock_hz = 1_200_000_000", "clock_hz = 0"),
        ] {
            assert!(good.contains(what));
            let text = good.replacen(what, instead, 1);
            assert!(Processor::parse(&text).is_err(), "{instead}");
        }
        assert!(Processor::named("no-such-model").is_err());
    }
}
