//! Code for aarch64: what the other instruction set has not.

use sandglass_wcet::annotations::{Kind, Record, OF_ARGUMENT};
use sandglass_wcet::code::InstructionSet;
use sandglass_wcet::graph::{End, Graph};
use sandglass_wcet::image::Image;

use crate::programs::{bound, question};

const START: u64 = 0x4008_0000;

/// Functions one after the other, from [`START`] on.
fn image(functions: &[(&str, &[u32])], records: Vec<Record>) -> Image {
    let mut start = START;
    let placed = functions.iter().map(|(name, words)| {
        let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let at = start;
        start += code.len() as u64;
        ((*name).to_owned(), at, code)
    });
    Image::of_code(InstructionSet::Aarch64, placed.collect(), records)
}

const RETURN: u32 = 0xd65f_03c0;
const LEAVE: u32 = 0xd69f_03e0;

#[test]
fn a_loop_that_the_third_argument_bounds_turns_as_often_as_it_says() {
    // mov x2, #200; bl memset; eret
    let fills = [0xd280_1902, 0x9400_0002, LEAVE];
    // subs x2, x2, #64; b.hs to it; ret
    let memset = [0xf101_0042, 0x54ff_ffe2, RETURN];
    let record = |value| Record {
        address: START + 12,
        kind: Kind::Turns,
        value,
        detail: 0,
    };
    let cost = |fills: &[u32], value| {
        let image = image(
            &[("fills", fills), ("memset", &memset)],
            vec![record(value)],
        );
        bound(&image, "fills", question(&image, Vec::new()))
    };
    for (each, turns) in [(64, 3), (50, 4), (201, 0)] {
        let expected = (turns > 0).then_some(3 + 2 * turns + 1);
        let found = cost(&fills, OF_ARGUMENT | each).expect("it can be analysed");
        assert_eq!(found, expected, "{each} bytes in a turn");
    }
    // mov x2, x3
    let unknown = [0xaa03_03e2, fills[1], fills[2]];
    let error = cost(&unknown, OF_ARGUMENT | 64).expect_err("nobody knows how many bytes");
    assert!(format!("{error:#}").contains("at_most"), "{error:#}");
}

#[test]
fn what_only_a_branch_without_a_choice_leads_to_is_left_out() {
    // mov x0, xzr; cbz x0 to the end; b to the beginning; ret
    let code = [0xaa1f_03e0, 0xb400_0040, 0x17ff_fffe, RETURN];
    let mut graph = Graph::of(&image(&[("f", &code)], Vec::new()), 0).expect("a graph");
    graph.keep_reachable();
    let ends: Vec<&End> = graph.blocks.iter().map(|block| &block.end).collect();
    let go = End::Go {
        blocks: vec![2],
        functions: Vec::new(),
    };
    assert_eq!(ends, [&go, &End::Trap, &End::Return]);
    // With mov x1, xzr it has a choice.
    let code = [0xaa1f_03e1, code[1], code[2], RETURN];
    let mut graph = Graph::of(&image(&[("f", &code)], Vec::new()), 0).expect("a graph");
    graph.keep_reachable();
    assert_eq!(graph.blocks[0].successors(), [2, 1]);
    assert_ne!(graph.blocks[1].end, End::Trap);
}
