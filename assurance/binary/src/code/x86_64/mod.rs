//! Code for x86_64.

mod memory;
mod registers;

use iced_x86::{
    Decoder as Iced, DecoderOptions, FlowControl, Formatter, Instruction as Decoded,
    InstructionInfoFactory, Mnemonic, NasmFormatter, OpAccess, OpKind, Register,
};

use super::{Change, Decoder, Flow, Instruction, Register as Number};
use memory::accesses;
use registers::{at_most, changes};

/// Numbers of registers, in the order of debugging information (*System V ABI, AMD64 supplement*, figure 3.36).
pub(super) const DEBUGGER_ORDER: &[Number] =
    &[0, 2, 1, 3, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15];

pub(super) const STACK_POINTER: Number = 4;

/// The decoder.
#[derive(Debug, Clone, Copy)]
pub struct X86_64;

impl Decoder for X86_64 {
    fn decode(&self, code: &[u8], address: u64) -> Vec<Instruction> {
        let mut info = InstructionInfoFactory::new();
        let mut before: Option<Decoded> = None;
        Iced::with_ip(64, code, address, DecoderOptions::NONE)
            .into_iter()
            .map(|decoded| Instruction {
                at_most: before
                    .replace(decoded)
                    .and_then(|before| at_most(&before, &decoded)),
                ..instruction(&mut info, &decoded)
            })
            .collect()
    }

    fn text(&self, code: &[u8], address: u64) -> String {
        let mut text = String::new();
        let decoded = Iced::with_ip(64, code, address, DecoderOptions::NONE).decode();
        NasmFormatter::new().format(&decoded, &mut text);
        text
    }

    fn is_padding(&self, code: &[u8]) -> bool {
        let fills = |decoded: Decoded| matches!(decoded.mnemonic(), Mnemonic::Nop | Mnemonic::Int3);
        let decoder = Iced::with_ip(64, code, 0, DecoderOptions::NONE);
        code.iter().all(|&byte| byte == 0) || decoder.into_iter().all(fills)
    }
}

fn instruction(info: &mut InstructionInfoFactory, decoded: &Decoded) -> Instruction {
    let (accesses, more_accesses) = accesses(info, decoded);
    Instruction {
        address: decoded.ip(),
        length: decoded.len() as u8,
        flow: flow(decoded),
        flow_behind: None,
        repeats: (decoded.has_rep_prefix() || decoded.has_repne_prefix())
            && decoded.is_string_instruction(),
        bytes_each: decoded.memory_size().size() as u8,
        third_argument: change(info, decoded, Register::RDX),
        count: change(info, decoded, Register::RCX),
        accesses,
        more_accesses,
        changes: changes(info, decoded),
        at_most: None,
    }
}

/// What an instruction does to a register; calls may change any.
fn change(info: &mut InstructionInfoFactory, decoded: &Decoded, register: Register) -> Change {
    if decoded.flow_control() == FlowControl::Call {
        return Change::Unknown;
    }
    let is_register = |other: Register| other.full_register() == register;
    let is_changed = info.info(decoded).used_registers().iter().any(|used| {
        is_register(used.register())
            && !matches!(used.access(), OpAccess::Read | OpAccess::CondRead)
    });
    let number = matches!(
        decoded.op1_kind(),
        OpKind::Immediate32 | OpKind::Immediate32to64 | OpKind::Immediate64
    );
    let is_move = decoded.mnemonic() == Mnemonic::Mov
        && decoded.op0_kind() == OpKind::Register
        && decoded.op0_register().size() >= 4
        && is_register(decoded.op0_register());
    match is_changed {
        true if is_move && number => Change::Number(decoded.immediate(1)),
        true => Change::Unknown,
        false => Change::None,
    }
}

fn flow(decoded: &Decoded) -> Flow {
    match decoded.mnemonic() {
        Mnemonic::Iret | Mnemonic::Iretd | Mnemonic::Iretq => return Flow::Leave,
        Mnemonic::Sysret | Mnemonic::Sysretq | Mnemonic::Sysexit | Mnemonic::Sysexitq => {
            return Flow::Leave
        }
        Mnemonic::Hlt => return Flow::Wait,
        Mnemonic::Ud0 | Mnemonic::Ud1 | Mnemonic::Ud2 | Mnemonic::Int3 => return Flow::Trap,
        // Strings go forward: what turns them around is unknown.
        Mnemonic::Std | Mnemonic::INVALID => return Flow::Invalid,
        _ => {}
    }
    match decoded.flow_control() {
        FlowControl::Next => Flow::Next,
        FlowControl::UnconditionalBranch => Flow::Jump(decoded.near_branch_target()),
        FlowControl::ConditionalBranch => Flow::Branch(decoded.near_branch_target()),
        FlowControl::Call => Flow::Call(decoded.near_branch_target()),
        FlowControl::Return => Flow::Return,
        _ => Flow::Indirect,
    }
}
