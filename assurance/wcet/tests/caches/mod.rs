//! Caches: no execution of a program costs more, in the simulation of the same caches, than what is computed of it.

mod code;
mod counterexamples;
mod execution;
mod generators;
mod layout;

use std::collections::BTreeSet;

use proptest::prelude::*;
use sandglass_cache::{Data, Geometry, Model};
use sandglass_wcet::analysis::Question;
use sandglass_wcet::image::Image;

use self::code::Code;
use self::execution::compare;
use self::generators::{any_model, code, data_alone, model, operations, pointers};
use self::layout::FUNCTIONS;
use crate::programs::{bound, image, number, question};

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_execution_costs_more_than_computed(functions in proptest::collection::vec(code(), FUNCTIONS), check in 0_u8..9, model in model()) {
        compare(&[functions, vec![Code::Straight(vec![check.max(1)])]].concat(), model)?;
    }

    #[test]
    fn no_way_along_pointers_costs_more_than_computed(functions in proptest::collection::vec(pointers(), FUNCTIONS), model in data_alone()) {
        compare(&[functions, vec![Code::Straight(vec![1])]].concat(), model)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_operations_cost_more_than_computed(functions in proptest::collection::vec(operations(), FUNCTIONS), model in any_model()) {
        compare(&[functions, vec![Code::Straight(vec![1])]].concat(), model)?;
    }
}

/// A pointer may lead to where another one is kept: what is found there is not what was kept.
#[test]
fn what_is_written_through_a_pointer_may_change_what_is_kept() {
    let (kept, other) = (1, 0);
    let both = || [0, 8].map(|words| Code::Through(kept, words, false));
    let parts = [
        // So that it is executed many times, with pointers that lead elsewhere.
        vec![Code::Repeat(40, Box::new(Code::Straight(vec![1])))],
        vec![Code::Point(kept, true), Code::Keep(kept, 0)],
        both().to_vec(),
        vec![Code::Point(other, false), Code::Through(other, 0, true)],
        vec![Code::Find(kept, 0)],
        both().to_vec(),
    ];
    let nothing = || Code::Straight(vec![1]);
    let functions = [
        Code::Sequence(parts.concat()),
        nothing(),
        nothing(),
        nothing(),
    ];
    let model = Model {
        code_miss: 0,
        ..WRITES_BACK
    };
    compare(&functions, model).expect("no execution costs more");
}

/// In which order a turn goes through its part of memory does not matter.
#[test]
fn a_loop_through_memory_brings_each_line_once() {
    let walks = 1;
    let turn = [2, 0, 3, 1].map(|words| Code::Through(walks, words, false));
    let turn = turn.into_iter().chain([Code::Move(walks, 4)]).collect();
    let walk = Code::Repeat(40, Box::new(Code::Sequence(turn)));
    let nothing = || Code::Straight(vec![1]);
    let all = Code::Sequence(vec![Code::Point(walks, true), walk]);
    let found = compare(&[all, nothing(), nothing(), nothing()], WRITES_BACK);
    let [observed, computed] = found
        .expect("no execution costs more")
        .expect("it is computed");
    // One comes first, and the first may begin anywhere in its line.
    assert!(computed <= observed + 2 * 1000, "{computed} for {observed}");
}

/// Nobody knows which of several branches is the first to use a line; but only one of them is, on any way.
#[test]
fn what_several_branches_use_is_brought_once() {
    let nothing = || Box::new(Code::Straight(vec![1]));
    let used = [
        Code::Variable(0),
        Code::Stack(2),
        Code::Call(1),
        Code::Through(1, 0, false),
        Code::Repeat(3, Box::new(Code::Through(1, 0, true))),
    ];
    for used in used {
        let branch = Code::If(Box::new(used.clone()), nothing());
        let mut parts = vec![Code::Point(1, true)];
        parts.extend((0..4).map(|_| branch.clone()));
        let functions = [
            Code::Sequence(parts),
            Code::Variable(1),
            *nothing(),
            *nothing(),
        ];
        let code = Geometry {
            sets: 256,
            ways: 2,
            ..SMALL.code
        };
        let model = Model {
            code,
            ..WRITES_BACK
        };
        let found = compare(&functions, model).expect("no execution costs more");
        let [observed, computed] = found.expect("it is computed");
        assert_eq!(observed, computed, "{used:?}");
    }
}

const SMALL: Model = Model {
    instruction: 1,
    code: Geometry {
        line: 64,
        sets: 64,
        ways: 1,
    },
    code_miss: 100,
    data: Data::Uncached { access: 10 },
};

/// The same with a data cache of 32 KiB.
const WRITES_BACK: Model = Model {
    data: Data::WriteBack {
        geometry: Geometry {
            line: 64,
            sets: 128,
            ways: 4,
        },
        miss: 1000,
        write_back: 0,
    },
    ..SMALL
};

fn cycles(image: &Image, name: &str, model: Model) -> i64 {
    let question = Question {
        model: Some(model),
        ..question(image, Vec::new())
    };
    let found = bound(image, name, question);
    found.expect("it can be analysed").expect("it ends")
}

/// Lines that hold bytes of a function.
fn lines(image: &Image, name: &str) -> impl Iterator<Item = u64> {
    let function = &image.functions[number(image, name)];
    SMALL
        .code
        .lines(function.start, function.end - function.start)
}

/// Each line is brought once, whether it is in a loop, in a loop within a loop, or in a function that is called again.
#[test]
fn each_line_is_brought_once_where_all_have_room() {
    let image = image();
    for (name, others, instructions, accesses) in [
        ("straight", &[][..], 4, 9),
        ("nested", &[], 1 + 3 * (1 + 4 * 3 + 2) + 1, 9),
        (
            "calls_in_loop",
            &["three"],
            1 + 3 * (1 + 3 + 2) + 1,
            9 + 3 * 2,
        ),
        ("repeats_constant", &[], 1 + (1 + 7) + 1, 9 + 7 * 2),
    ] {
        let names = others.iter().chain([&name]);
        let all: BTreeSet<u64> = names.flat_map(|name| lines(&image, name)).collect();
        let expected = instructions + 10 * accesses + 100 * all.len() as i64;
        assert_eq!(cycles(&image, name, SMALL), expected, "{name}");
    }
}
