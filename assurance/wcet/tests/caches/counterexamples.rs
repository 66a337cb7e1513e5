//! Programs that cost more than was computed once: each with the one reason.

use sandglass_cache::{Data, Geometry, Model};

use super::code::*;
use super::execution::compare;
use super::layout::{FUNCTIONS, STACK, VARIABLES};
use super::SMALL;

/// No execution costs more than computed with a data cache of so many sets and ways, where only data costs.
fn holds(mut functions: Vec<Code>, sets: u64, ways: u64) {
    let data = Data::WriteBack {
        geometry: Geometry {
            line: 64,
            sets,
            ways,
        },
        miss: 1000,
        write_back: 0,
    };
    let model = Model {
        data,
        code_miss: 0,
        ..SMALL
    };
    functions.resize_with(FUNCTIONS + 1, || Code::Straight(vec![1]));
    compare(&functions, model).expect("no execution costs more");
}

/// What goes through memory step by step is not there in the next turn, if others of its set were used before and behind it.
#[test]
fn a_line_that_a_loop_comes_back_to_may_have_been_driven_out() {
    let (walks, before, behind) = (1, 0, 2);
    // Two others come to another line of the same set in each turn.
    let turn = [
        Code::Through(before, 0, false),
        Code::Through(walks, 0, false),
        Code::Through(behind, 0, false),
        Code::Move(walks, 1),
        Code::Move(before, 16),
        Code::Move(behind, 16),
    ];
    // Where they point depends on how often one pointed before.
    for (points, ways) in (3..40).flat_map(|points| [1, 2, 3, 4].map(|ways| (points, ways))) {
        let points = (0..points).map(|number| Code::Point(number % 3, true));
        let walk = Code::Repeat(40, Box::new(Code::Sequence(turn.to_vec())));
        let parts: Vec<Code> = points.chain([walk]).collect();
        holds(vec![Code::Sequence(parts)], 2, ways);
    }
}

/// What a turn has brought may have been driven out in the same turn.
#[test]
fn a_line_that_a_turn_comes_back_to_may_have_been_driven_out() {
    let walks = 1;
    // If a turn's words begin where a line does, another line of the same set is used behind the first of them. That of the
    // word before the turn is in the other set.
    let turn = [0, 23, 1, 2, 3, 4, 5, 6, 7].map(|words| Code::Through(walks, words, false));
    let turn = turn.into_iter().chain([Code::Move(walks, 8)]).collect();
    let walk = Code::Repeat(40, Box::new(Code::Sequence(turn)));
    let begins = [Code::Point(walks, false), Code::Through(walks, 0, false)];
    let all = Code::Sequence(begins.into_iter().chain([walk]).collect());
    holds(vec![all], 2, 1);
}

/// Where it is known that a pointer is aligned, a line is called by its beginning; elsewhere, by what is accessed. What has one
/// name is one line.
#[test]
fn a_name_of_a_line_does_not_depend_on_what_one_way_knows() {
    let parts = vec![
        unknown(RSI, 0x20_0000),
        load(RAX, at(RSI, 128)),
        either(
            vec![
                Code::Aligned(RSI, 6),
                load(RAX, at(RSI, 8)),
                load(RAX, at(RSI, 8192 + 8)),
            ],
            vec![Code::Straight(vec![1])],
        ),
        load(RAX, at(RSI, 0)),
    ];
    holds(vec![all(parts)], 128, 1);
}

/// Where a loop has its mark behind its beginning, that goes one step further through memory.
#[test]
fn a_loop_begins_once_more_than_it_turns() {
    let header: Vec<Code> = (0..32).map(|word| load(RAX, at(RDI, word * 8))).collect();
    let walk = Code::Late(10, Box::new(all(header)), Box::new(add(RDI, 256)));
    let parts = vec![unknown(RDI, 0x20_0038), load(RAX, at(RDI, -8)), walk];
    holds(vec![all(parts)], 128, 4);
}

/// A function begins with a loop, and has another mark of turns that are counted together.
#[test]
fn turns_that_are_counted_together_do_not_count_those_of_a_loop() {
    let walk = repeat(64, vec![load(RAX, at(RDI, 0)), add(RDI, 8)]);
    let callee = all(vec![walk, Code::Together(8)]);
    let parts = vec![
        unknown(RDI, 0x20_0000),
        load(RAX, at(RDI, -64)),
        Code::Call(1),
    ];
    holds(vec![all(parts), callee], 128, 4);
}

/// A small number is no address of an object: what is written so far behind a pointer may be anywhere.
#[test]
fn what_is_at_a_small_index_may_be_on_the_stack() {
    let parts = vec![
        unknown(RSP, STACK.into()),
        unknown(RSI, 0x20_0000),
        store(RSI, at(RSP, 0)),
        unknown(RBX, STACK.into()),
        unknown(RDX, 0x30_0000),
        either(vec![set(RCX, 0)], vec![set(RCX, 8)]),
        store(RDX, indexed(RBX, RCX, 0, 0)),
        load(RDI, at(RSP, 0)),
        load(RAX, at(RSI, 0)),
        load(RAX, at(RSI, 64)),
        load(RAX, at(RDI, 0)),
        load(RAX, at(RDI, 64)),
    ];
    holds(vec![all(parts)], 128, 4);
}

/// `repne scasq` goes through memory.
#[test]
fn what_either_prefix_repeats_is_repeated() {
    let accesses = (0..9).map(|word| (0x20_0000 + word * 8, false)).collect();
    let parts = vec![
        unknown(RDI, 0x20_0000),
        set(RCX, 9),
        Code::Op(Op::Raw(vec![0xf2, 0x48, 0xaf], accesses)),
    ];
    holds(vec![all(parts)], 128, 4);
}

/// Of a state that changes too often, all is given up: a line that the other way has may have been used on this, and gone.
#[test]
fn what_was_given_up_may_have_been_used() {
    // Each turn moves what is kept by one word: what is known is less, turn by turn.
    let word = |number: i32| at(R8, number * 8);
    let words = 95;
    let mut shift = Vec::new();
    for (to, from) in [
        (RCX, 5),
        (5, 9),
        (9, 10),
        (10, 11),
        (11, 12),
        (12, 13),
        (13, 14),
        (14, 15),
    ] {
        shift.push(Code::Op(Op::Move(to, from)));
    }
    shift.push(load(15, word(0)));
    for number in 0..words - 1 {
        shift.push(load(RDX, word(number + 1)));
        shift.push(store(RDX, word(number)));
    }
    shift.push(Code::Op(Op::Unknown(
        RBX,
        (0..100).map(|it| 0x30_0000 + it * 8).collect(),
    )));
    shift.push(store(RBX, word(words - 1)));
    let used = |way: i32| (0..100).map(move |line| load(RAX, at(RDI, line * 64 + way * 8192)));
    let mut first = vec![unknown(RSI, 0x20_0000), set(R8, 0x10_2000)];
    first.push(load(RAX, at(RSI, 0)));
    for register in [RCX, 5].into_iter().chain(9..16) {
        first.push(Code::Op(Op::Move(register, RSI)));
    }
    first.extend((0..words).map(|number| store(RSI, word(number))));
    first.extend(used(0));
    first.push(repeat(1, shift));
    first.extend(used(1));
    let mut parts = vec![set(RDI, 0x40_0000)];
    parts.push(either(first, used(0).collect()));
    parts.extend(used(0));
    holds(vec![all(parts)], 128, 1);
}

/// What an inner loop goes through is more with each turn of the outer one.
#[test]
fn a_part_of_memory_does_not_move_on_as_one() {
    let used = || (0..32).map(|line| load(RAX, at(R8, line * 256)));
    let mut first: Vec<Code> = used().collect();
    first.extend([Code::Op(Op::Move(RDI, RBX)), load(RAX, at(RDI, 0))]);
    let second = vec![load(RAX, at(RDI, 0)), add(RDI, 256)];
    let inner = Code::Fork(7, Box::new(all(first)), Box::new(all(second)));
    let mut parts = vec![
        set(R8, 0x10_0000),
        unknown(RBX, 0x80_0000),
        unknown(RDI, 0x40_0000),
    ];
    parts.extend([RBX, RDI].map(|it| Code::Op(Op::Lea(RAX, at(it, 0)))));
    parts.extend(used());
    parts.push(load(RAX, at(RDI, 0)));
    parts.push(repeat(14, vec![inner, add(RDI, -256)]));
    parts.extend(used());
    holds(vec![all(parts)], 128, 2);
}

/// Accesses of a loop are paid for at its entrance. A path that begins behind it does not come by there.
#[test]
fn who_begins_behind_a_loop_has_paid_for_nothing_in_it() {
    let mut parts = vec![unknown(R8, 0x80_0000), load(RAX, at(R8, 0))];
    let walking = [RDI, RSI, RBX, RDX];
    for register in walking {
        parts.extend([
            unknown(register, 0x20_0000 + u64::from(register) * 0x1_0440 - 40),
            load(RAX, at(register, -64)),
            repeat(6, vec![load(RAX, at(register, 0)), add(register, 8)]),
        ]);
    }
    parts.push(Code::Call(FUNCTIONS));
    for register in walking {
        parts.extend([load(RAX, at(register, -16)), load(RAX, at(register, -8))]);
    }
    parts.extend((0..50).map(|line| load(RAX, at(R8, line * 64))));
    holds(vec![all(parts)], 128, 4);
}

/// A turn has a mark of its own or one that is counted together: there are as many as both say.
#[test]
fn marks_of_several_kinds_count_turns_only_together() {
    let turn = vec![load(RAX, at(RDI, 0)), add(RDI, 8)];
    let walk = Code::Split(8, 64, Box::new(all(turn)));
    let parts = vec![unknown(RDI, 0x20_0000), load(RAX, at(RDI, -64)), walk];
    holds(vec![all(parts)], 128, 4);
}

/// A string of no words begins at a word that is known.
#[test]
fn what_repeats_itself_never_does_nothing() {
    let parts = vec![
        set(R8, VARIABLES as i32),
        store(R8, at(R8, 64)),
        set(RDI, VARIABLES as i32 + 16),
        set(RCX, 0),
        Code::Op(Op::Raw(vec![0xf3, 0x48, 0xab], vec![])),
        load(RAX, at(R8, 0)),
    ];
    holds(vec![all(parts)], 128, 4);
}

/// `fxsave64` does not touch the last 96 bytes of its 512 (Intel SDM 1, 10.5.1; seen with QEMU 7.2, whose plugins are told of 52
/// words): what follows in their line is not used by it.
#[test]
fn what_fxsave_leaves_alone_is_not_used() {
    let image = 0x190;
    let accesses: Vec<(u64, bool)> = (0..52)
        .map(|word| (0x20_0000 + image + word * 8, true))
        .collect();
    // fxsave64 [rsi + 0x190]
    let bytes = vec![0x48, 0x0f, 0xae, 0x86, 0x90, 0x01, 0, 0];
    // As the address of a thread's buffer behind its registers of the FPU; and others of that set.
    let behind = image as i32 + 512;
    let turn = || {
        [
            load(RAX, at(RSI, behind + 0x28 + 8192)),
            Code::Op(Op::Raw(bytes.clone(), accesses.clone())),
            load(RAX, at(RSI, behind + 0x28 + 2 * 8192)),
            load(RAX, at(RSI, behind)),
        ]
    };
    let begins = [
        unknown(RSI, 0x20_0000),
        Code::Aligned(RSI, 6),
        load(RAX, at(RSI, behind)),
    ];
    let parts = begins.into_iter().chain((0..4).flat_map(|_| turn()));
    holds(vec![all(parts.collect())], 128, 2);
}
