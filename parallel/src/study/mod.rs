//! The case studies of several cores (thesis, section 8.5).

pub mod cipher;
pub mod pairs;

use std::fmt::Write;

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
        let mut text = String::from("scenario,spin,cores,work,time\n");
        // Writing to a string does not fail.
        for point in &self.cipher {
            let name = point.variant.name();
            let (cores, work, time) = (point.cores, point.bytes, point.ticks);
            let _ = writeln!(text, "{name},0,{cores},{work},{time}");
        }
        for point in &self.pairs {
            let (cores, work, time) = (point.cores, point.calls, point.ticks);
            let _ = writeln!(text, "pairs,{},{cores},{work},{time}", point.bound);
        }
        text
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
