//! What the instructions of the storm are of, and what becomes of them.

use sandglass::abi::fault;
use sandglass::message::Message;

/// Kinds of instructions, which are counted one by one.
#[repr(u8)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Far calls, jumps and returns.
    FarTransfer,
    InterruptReturn,
    /// Loads and stores of segment registers, LSS and its kin.
    SegmentRegister,
    SoftwareInterrupt,
    /// SYSCALL, SYSENTER and their returns, with odd flags.
    SystemCall,
    Port,
    /// LOCK, repetition, sizes and segments before what does not take them, and too many.
    Prefix,
    SelfModifying,
    /// The stack pointer, the flags, and what uses both.
    StackAndFlags,
    /// Control, debug and model-specific registers, and what invalidates.
    ControlRegister,
    /// Descriptor tables, the task register, and what looks at descriptors.
    DescriptorTable,
    /// Loads of the whole state of the FPU, from odd images too.
    FpuImage,
    FpuOperation,
    /// FS and GS bases.
    SegmentBase,
    /// What follows a load of SS, which holds traps and interrupts off.
    StackShadow,
    /// HLT, CLI, STI, MONITOR, prefetches, flushes, and what does nothing.
    Waiting,
    /// Loads and stores anywhere.
    Memory,
    /// Near jumps anywhere.
    Jump,
    /// New descriptors for the tables at address 0 and below the edge.
    Descriptor,
    /// Any bytes, any opcode.
    Noise,
    /// Instructions that end with the last byte of user memory, or are cut off there.
    Edge,
}

impl Class {
    pub const COUNT: usize = Self::ALL.len();

    pub const ALL: [Self; 21] = [
        Self::FarTransfer,
        Self::InterruptReturn,
        Self::SegmentRegister,
        Self::SoftwareInterrupt,
        Self::SystemCall,
        Self::Port,
        Self::Prefix,
        Self::SelfModifying,
        Self::StackAndFlags,
        Self::ControlRegister,
        Self::DescriptorTable,
        Self::FpuImage,
        Self::FpuOperation,
        Self::SegmentBase,
        Self::StackShadow,
        Self::Waiting,
        Self::Memory,
        Self::Jump,
        Self::Descriptor,
        Self::Noise,
        Self::Edge,
    ];

    /// As in the report.
    pub const fn name(self) -> &'static str {
        match self {
            Self::FarTransfer => "far_transfer",
            Self::InterruptReturn => "interrupt_return",
            Self::SegmentRegister => "segment_register",
            Self::SoftwareInterrupt => "software_interrupt",
            Self::SystemCall => "system_call",
            Self::Port => "port",
            Self::Prefix => "prefix",
            Self::SelfModifying => "self_modifying",
            Self::StackAndFlags => "stack_and_flags",
            Self::ControlRegister => "control_register",
            Self::DescriptorTable => "descriptor_table",
            Self::FpuImage => "fpu_image",
            Self::FpuOperation => "fpu_operation",
            Self::SegmentBase => "segment_base",
            Self::StackShadow => "stack_shadow",
            Self::Waiting => "waiting",
            Self::Memory => "memory",
            Self::Jump => "jump",
            Self::Descriptor => "descriptor",
            Self::Noise => "noise",
            Self::Edge => "edge",
        }
    }

    /// Whether one that never faults is a mistake of the grammar.
    pub const fn must_fault(self) -> bool {
        !matches!(self, Self::Descriptor)
    }

    /// How often it is chosen, relative to the others. (An edge is put where a batch lies.)
    pub const fn weight(self) -> u64 {
        match self {
            Self::FarTransfer => 16,
            Self::InterruptReturn | Self::SegmentRegister | Self::SystemCall => 8,
            Self::DescriptorTable | Self::FpuImage | Self::FpuOperation | Self::Noise => 5,
            Self::Edge => 0,
            _ => 4,
        }
    }
}

/// What may become of an instruction, as faults tell: exceptions by vector, then these.
pub const OUTCOMES: usize = 34;
/// A system call, or an interrupt by its number, that the kernel does not know.
const UNKNOWN_CALL: usize = 32;
/// A system call on a capability that is not there.
const CAPABILITY: usize = 33;
/// Vector of page faults, which have a message of their own.
const PAGE_FAULT: usize = 14;

/// What became of the instruction that this fault is about.
pub fn outcome(message: &Message) -> usize {
    match message.label() {
        fault::USER_EXCEPTION => message.word(fault::user_exception::NUMBER) as usize,
        fault::VM_FAULT => PAGE_FAULT,
        fault::UNKNOWN_SYSCALL => UNKNOWN_CALL,
        _ => CAPABILITY,
    }
}
