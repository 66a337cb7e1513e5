//! Figures of the book are those that are recorded.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use sandglass_wcet::model::{Processor, KNOWN};
use sandglass_wcet::show;

/// System, levels, what: cycles.
type Recorded = BTreeMap<String, BTreeMap<String, BTreeMap<String, i64>>>;

const PAGE: &str = "../../docs/src/assurance/cost-models.md";

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn bounds_in_cycles_are_those_that_are_recorded() {
    let mut table = String::from(
        "| model | system | levels | system call, µs | interrupt or exception, µs | interrupt latency, µs |\n\
         | --- | --- | --- | --- | --- | --- |\n",
    );
    for (model, _) in KNOWN {
        let processor = Processor::named(model).expect("it is a model");
        let processor = processor.expect("it has cycles");
        let recorded: Recorded =
            toml::from_str(&read(&format!("{model}.toml"))).expect("recorded bounds");
        for system in ["open", "closed"] {
            for levels in ["8", "64"] {
                let bounds = &recorded[system][levels];
                let times = ["system_call", "vector", "interrupt_latency"]
                    .map(|name| format!("{:.0}", processor.microseconds(bounds[name])));
                // Writing to a string does not fail.
                let _ = writeln!(
                    table,
                    "| `{model}` | {system} | {levels} | {} |",
                    times.join(" | ")
                );
            }
        }
    }
    assert!(
        read(PAGE).contains(&table),
        "{PAGE} is to have this table:\n{table}"
    );
}

#[test]
fn a_cost_has_its_unit() {
    assert_eq!(show::cost(4148, None), "4148 instructions");
    let processor = Processor::named("cortex-a8").unwrap();
    let processor = processor.expect("it is a processor");
    assert_eq!(show::cost(800, Some(&processor)), "800 cycles, 1.0 us");
}
