//! The case studies of several cores (thesis, section 8.5).

pub mod cipher;
pub mod pairs;

use serde::{Deserialize, Serialize};

use crate::record::{Record, Spent};

/// No run is longer, in ticks.
const LATEST: u64 = 1 << 50;

/// Both studies, on 1 to `most` cores.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Study {
    pub cipher: Vec<cipher::Point>,
    pub pairs: Vec<pairs::Point>,
}

impl Study {
    /// A line for every run, as `sandglass experiment multicore` reads them.
    pub fn csv(&self) -> String {
        let cipher = self.cipher.iter().map(|point| {
            let name = point.variant.name();
            (name, 0, point.cores, point.bytes, point.ticks)
        });
        let pairs = self
            .pairs
            .iter()
            .map(|point| ("pairs", point.bound, point.cores, point.calls, point.ticks));
        let mut writer = csv::WriterBuilder::new()
            .has_headers(false)
            .from_writer(Vec::new());
        let written = writer.write_record(["scenario", "spin", "cores", "work", "time"]);
        written.expect("memory takes everything");
        for line in cipher.chain(pairs) {
            writer.serialize(line).expect("lines have five fields");
        }
        let bytes = writer.into_inner().expect("memory takes everything");
        String::from_utf8(bytes).expect("names and numbers are text")
    }
}

/// Runs both studies on every number of cores up to `most`.
pub fn run(cipher: &cipher::Parameters, pairs: &pairs::Parameters, most: usize) -> Study {
    Study {
        cipher: cipher::run(cipher, most),
        pairs: pairs::run(pairs, most),
    }
}

/// How all cores of a run spent their time.
fn spent(record: &Record) -> Vec<Spent> {
    (0..record.intervals.len())
        .map(|core| record.spent(core))
        .collect()
}
