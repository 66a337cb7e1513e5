//! Random programs and models.

use proptest::prelude::*;
use sandglass_cache::{Data, Geometry, Model};

use super::code::*;
use super::layout::{FUNCTIONS, VARIABLES};
use super::SMALL;

pub fn code() -> impl Strategy<Value = Code> {
    let leaf = prop_oneof![
        3 => proptest::collection::vec(1_u8..9, 1..6).prop_map(Code::Straight),
        1 => (0_u8..6).prop_map(Code::Variable),
        1 => (0_u8..4).prop_map(Code::Stack),
        1 => (0_u8..9).prop_map(Code::Fill),
        2 => (0_usize..3, any::<bool>()).prop_map(|(register, aligned)| Code::Point(register, aligned)),
        5 => (0_usize..3, 0_u8..12, any::<bool>()).prop_map(|(register, words, writes)| Code::Through(register, words, writes)),
        1 => (0_usize..3, 0_usize..3).prop_map(|(from, to)| Code::Copy(from, to)),
        2 => (0_usize..3, 1_u8..9).prop_map(|(register, words)| Code::Move(register, words)),
        1 => (0_usize..3, 0_u8..3).prop_map(|(register, which)| Code::Keep(register, which)),
        1 => (0_usize..3, 0_u8..3).prop_map(|(register, which)| Code::Find(register, which)),
        3 => (1..=FUNCTIONS).prop_map(Code::Call),
    ];
    leaf.prop_recursive(4, 14, 4, |inner| {
        let boxed = inner.clone().prop_map(Box::new);
        prop_oneof![
            proptest::collection::vec(inner, 2..5).prop_map(Code::Sequence),
            (boxed.clone(), boxed.clone()).prop_map(|(a, b)| Code::If(a, b)),
            (1_u64..6, boxed.clone()).prop_map(|(most, body)| Code::Repeat(most, body)),
            (1_u64..6, boxed).prop_map(|(most, body)| Code::While(most, body)),
        ]
    })
}

fn geometry() -> impl Strategy<Value = Geometry> {
    (1_u32..3, prop_oneof![Just(1), Just(2), Just(4)]).prop_map(|(sets, ways)| Geometry {
        line: 16,
        sets: 1 << sets,
        ways,
    })
}

/// Small, or as large as those of processors.
fn data_geometry() -> impl Strategy<Value = Geometry> {
    let large = prop_oneof![Just(1), Just(2), Just(4)].prop_map(|ways| Geometry {
        line: 64,
        sets: 128,
        ways,
    });
    prop_oneof![geometry(), large]
}

pub fn model() -> impl Strategy<Value = Model> {
    let data = prop_oneof![
        1 => Just(Data::Uncached { access: 1000 }),
        4 => data_geometry().prop_map(|geometry| Data::WriteBack {
            geometry,
            miss: 1000,
            write_back: 10_000,
        }),
    ];
    (geometry(), data).prop_map(|(code, data)| Model {
        instruction: 1,
        code,
        code_miss: 100,
        data,
    })
}

/// Programs that do little but follow pointers.
pub fn pointers() -> impl Strategy<Value = Code> {
    let register = 0_usize..3;
    let leaf = prop_oneof![
        2 => (register.clone(), any::<bool>()).prop_map(|(register, aligned)| Code::Point(register, aligned)),
        8 => (register.clone(), 0_u8..4, any::<bool>()).prop_map(|(register, words, writes)| Code::Through(register, words * 2, writes)),
        2 => (register.clone(), 0_usize..3).prop_map(|(from, to)| Code::Copy(from, to)),
        4 => (register.clone(), 1_u8..3).prop_map(|(register, words)| Code::Move(register, words)),
        2 => (register.clone(), 0_u8..2).prop_map(|(register, which)| Code::Keep(register, which)),
        2 => (register, 0_u8..2).prop_map(|(register, which)| Code::Find(register, which)),
        1 => (1..=FUNCTIONS).prop_map(Code::Call),
    ];
    leaf.prop_recursive(4, 24, 6, |inner| {
        let several = proptest::collection::vec(inner.clone(), 2..7).prop_map(Code::Sequence);
        let boxed = several.clone().prop_map(Box::new);
        prop_oneof![
            2 => several,
            1 => (boxed.clone(), boxed.clone()).prop_map(|(a, b)| Code::If(a, b)),
            2 => (1_u64..12, boxed).prop_map(|(most, body)| Code::Repeat(most, body)),
        ]
    })
}

/// Only what is missing in the data cache costs anything.
pub fn data_alone() -> impl Strategy<Value = Model> {
    data_geometry().prop_map(|geometry| Model {
        instruction: 1,
        code: SMALL.code,
        code_miss: 0,
        data: Data::WriteBack {
            geometry,
            miss: 1000,
            write_back: 0,
        },
    })
}

/// Where operations access memory.
fn mem() -> impl Strategy<Value = Mem> {
    let base = prop_oneof![Just(RDI), Just(RSI), Just(RBX), Just(RDX), Just(RSP)];
    let plus = prop_oneof![
        6 => (-2_i32..10).prop_map(|it| it * 8),
        1 => (0_i32..6).prop_map(|it| it * 64),
        1 => (-1_i32..3).prop_map(|it| it * 8192 + 8),
        1 => (0_i32..3).prop_map(|it| it * 2048),
    ];
    let index = proptest::option::weighted(0.3, (Just(RCX), 0_u8..4));
    (base, index, plus).prop_map(|(base, index, plus)| Mem { base, index, plus })
}

/// One that does something to a register or to memory.
fn operation() -> impl Strategy<Value = Code> {
    let pointer = || prop_oneof![Just(RDI), Just(RSI), Just(RBX), Just(RDX)];
    let any = || {
        prop_oneof![
            Just(RDI),
            Just(RSI),
            Just(RBX),
            Just(RDX),
            Just(RCX),
            Just(RAX)
        ]
    };
    prop_oneof![
        4 => pointer().prop_map(|to| Code::Op(Op::Any(to, false))),
        3 => (pointer(), 4_u8..8).prop_map(|(to, bits)| all(vec![
            Code::Op(Op::Any(to, true)),
            Code::Aligned(to, bits.min(6)),
        ])),
        10 => mem().prop_map(|at| load(RAX, at)),
        3 => (pointer(), mem()).prop_map(|(to, at)| load(to, at)),
        4 => (any(), mem()).prop_map(|(from, at)| store(from, at)),
        1 => mem().prop_map(|at| Code::Op(Op::LoadHalf(RAX, at))),
        1 => (any(), mem()).prop_map(|(from, at)| Code::Op(Op::StoreHalf(from, at))),
        3 => (0_i32..12).prop_map(|it| set(RCX, it * 8)),
        2 => (pointer(), 0_i32..8).prop_map(|(to, it)| set(to, VARIABLES as i32 + it * 24)),
        4 => (any(), -4_i32..10).prop_map(|(to, it)| add(to, it * 8)),
        1 => (pointer(), 1_i32..3).prop_map(|(to, it)| add(to, it * 4096)),
        1 => (any(), -4_i32..10).prop_map(|(to, it)| Code::Op(Op::AddHalf(to, it * 8))),
        1 => pointer().prop_map(|to| Code::Op(Op::AddRegister(to, RCX))),
        2 => (prop_oneof![Just(8_i32), Just(0x38), Just(0x78), Just(0xf8), Just(0x1ff8)], any()).prop_map(|(mask, from)| all(vec![
            Code::Op(Op::Move(RCX, from)),
            Code::Op(Op::And(RCX, mask)),
        ])),
        1 => pointer().prop_map(|to| Code::Op(Op::And(to, -64))),
        1 => (pointer(), 3_u8..6).prop_map(|(to, bit)| Code::Op(Op::Or(to, 1 << bit))),
        1 => (0_u8..3).prop_map(|by| Code::Op(Op::Shl(RCX, by))),
        // All that is accessed is aligned.
        1 => (0_u8..3).prop_map(|by| all(vec![
            Code::Op(Op::Shr(RCX, by)),
            Code::Op(Op::And(RCX, -8)),
        ])),
        3 => (any(), any()).prop_map(|(to, from)| Code::Op(Op::Move(to, from))),
        1 => (any(), any()).prop_map(|(to, from)| Code::Op(Op::MoveHalf(to, from))),
        2 => (any(), any()).prop_map(|(to, from)| Code::Op(Op::Choose(to, from))),
        2 => (pointer(), mem()).prop_map(|(to, at)| Code::Op(Op::Lea(to, at))),
        1 => (1_usize..=FUNCTIONS).prop_map(Code::Call),
        2 => any().prop_map(|it| Code::Op(Op::Push(it))),
        2 => any().prop_map(|it| Code::Op(Op::Pop(it))),
        1 => (1_i32..4).prop_map(|it| add(RSP, -8 * it)),
        1 => (1_i32..4).prop_map(|it| add(RSP, 8 * it)),
    ]
}

fn test() -> impl Strategy<Value = Test> {
    let register = || prop_oneof![Just(RDI), Just(RSI), Just(RCX), Just(RCX), Just(RCX)];
    let with = prop_oneof![
        4 => (0_i32..20).prop_map(|it| Ok(it * 8)),
        1 => register().prop_map(Err),
    ];
    (
        register(),
        with,
        any::<bool>(),
        proptest::bool::weighted(0.2),
    )
        .prop_map(|(register, with, or_equal, is_half)| Test {
            register,
            with,
            or_equal,
            is_half,
        })
}

/// A function of operations on pointers, small numbers and the stack.
pub fn operations() -> impl Strategy<Value = Code> {
    let parts = operation().prop_recursive(4, 40, 8, |inner| {
        let several = proptest::collection::vec(inner.clone(), 2..9).prop_map(Code::Sequence);
        let boxed = several.clone().prop_map(Box::new);
        prop_oneof![
            3 => several,
            1 => (boxed.clone(), boxed.clone()).prop_map(|(a, b)| Code::If(a, b)),
            1 => (test(), boxed.clone(), boxed.clone()).prop_map(|(test, a, b)| Code::Below(test, a, b)),
            2 => (1_u64..30, boxed.clone()).prop_map(|(most, body)| Code::Repeat(most, body)),
            1 => (1_u64..12, boxed.clone(), boxed.clone()).prop_map(|(most, header, body)| Code::Late(most, header, body)),
            1 => (1_u64..12, boxed.clone(), boxed.clone()).prop_map(|(most, first, second)| Code::Fork(most, first, second)),
        ]
    });
    proptest::collection::vec(parts, 1..6).prop_map(Code::Sequence)
}

fn any_geometry() -> impl Strategy<Value = Geometry> {
    let shape = prop_oneof![
        2 => Just((64, 128)),
        1 => Just((32, 256)),
        1 => Just((16, 512)),
        1 => Just((64, 256)),
        1 => Just((64, 2)),
        1 => Just((16, 2)),
        1 => Just((32, 8)),
    ];
    (shape, 1_u64..5).prop_map(|((line, sets), ways)| Geometry { line, sets, ways })
}

/// Caches of any shape, with costs of both, and of writing back.
pub fn any_model() -> impl Strategy<Value = Model> {
    let code = geometry();
    let costs = prop_oneof![3 => Just(0), 1 => Just(100)];
    (
        any_geometry(),
        code,
        costs,
        prop_oneof![Just(0), Just(10_000)],
    )
        .prop_map(|(geometry, code, code_miss, write_back)| Model {
            instruction: 1,
            code: match code_miss {
                0 => SMALL.code,
                _ => code,
            },
            code_miss,
            data: Data::WriteBack {
                geometry,
                miss: 1000,
                write_back,
            },
        })
}
