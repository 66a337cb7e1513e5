//! What the instructions of the storm are of, and what becomes of them.

use sandglass::abi::fault;
use sandglass::message::Message;

/// Kinds of instructions, which are counted one by one.
#[repr(u8)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// SVC with odd numbers and registers.
    SystemCall,
    /// HVC, SMC, BRK, HLT, DCPS: calls to other levels, and of debuggers.
    OtherCall,
    /// ERET and DRPS, with a target where they would find one.
    ExceptionReturn,
    /// MRS and MSR of the registers of all levels.
    SystemRegister,
    /// MRS and MSR of any encoding.
    AnyRegister,
    /// MSR of a field of the state: the interrupt masks, the stack that is used, PAN and its kin.
    ProcessState,
    /// Caches, translations, and the translation of an address.
    Maintenance,
    /// The counter and the timers.
    Counter,
    /// The thread pointers.
    ThreadPointer,
    /// WFI, WFE and all other hints, barriers.
    Waiting,
    /// Control and status of the FPU.
    FpuControl,
    /// Operations of the FPU and of vectors, and those that this processor does not have.
    FpuOperation,
    /// Loads and stores anywhere, of all sizes, of pairs and vectors, as user level.
    Memory,
    /// Exclusive, acquiring and atomic accesses, also without their beginning and misaligned.
    Exclusive,
    /// Jumps anywhere, also to no instruction.
    Jump,
    /// A lost or crooked stack pointer, and what uses it.
    StackPointer,
    /// An instruction that was written just now, with and without maintenance.
    SelfModifying,
    /// Signed pointers and marked targets, which this processor does not have.
    PointerAuthentication,
    /// Encodings that are none.
    Unallocated,
    /// Any word.
    Noise,
    /// Instructions that end with the last byte of user memory.
    Edge,
}

impl Class {
    pub const COUNT: usize = Self::ALL.len();

    pub const ALL: [Self; 21] = [
        Self::SystemCall,
        Self::OtherCall,
        Self::ExceptionReturn,
        Self::SystemRegister,
        Self::AnyRegister,
        Self::ProcessState,
        Self::Maintenance,
        Self::Counter,
        Self::ThreadPointer,
        Self::Waiting,
        Self::FpuControl,
        Self::FpuOperation,
        Self::Memory,
        Self::Exclusive,
        Self::Jump,
        Self::StackPointer,
        Self::SelfModifying,
        Self::PointerAuthentication,
        Self::Unallocated,
        Self::Noise,
        Self::Edge,
    ];

    /// As in the report.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SystemCall => "system_call",
            Self::OtherCall => "other_call",
            Self::ExceptionReturn => "exception_return",
            Self::SystemRegister => "system_register",
            Self::AnyRegister => "any_register",
            Self::ProcessState => "process_state",
            Self::Maintenance => "maintenance",
            Self::Counter => "counter",
            Self::ThreadPointer => "thread_pointer",
            Self::Waiting => "waiting",
            Self::FpuControl => "fpu_control",
            Self::FpuOperation => "fpu_operation",
            Self::Memory => "memory",
            Self::Exclusive => "exclusive",
            Self::Jump => "jump",
            Self::StackPointer => "stack_pointer",
            Self::SelfModifying => "self_modifying",
            Self::PointerAuthentication => "pointer_authentication",
            Self::Unallocated => "unallocated",
            Self::Noise => "noise",
            Self::Edge => "edge",
        }
    }

    /// Whether one that never faults is a mistake of the grammar.
    pub const fn must_fault(self) -> bool {
        !matches!(self, Self::Waiting | Self::FpuControl)
    }

    /// How often it is chosen, relative to the others. (An edge is put where a batch lies.)
    pub const fn weight(self) -> u64 {
        match self {
            Self::SystemCall => 12,
            Self::OtherCall => 8,
            Self::ExceptionReturn => 6,
            Self::SystemRegister => 16,
            Self::AnyRegister => 8,
            Self::ProcessState => 6,
            Self::Maintenance => 8,
            Self::Counter => 4,
            Self::ThreadPointer => 4,
            Self::Waiting => 4,
            Self::FpuControl => 4,
            Self::FpuOperation => 5,
            Self::Memory => 6,
            Self::Exclusive => 5,
            Self::Jump => 6,
            Self::StackPointer => 4,
            Self::SelfModifying => 4,
            Self::PointerAuthentication => 3,
            Self::Unallocated => 5,
            Self::Noise => 6,
            Self::Edge => 0,
        }
    }
}

/// What may become of an instruction, as faults tell: exceptions by the class in the syndrome (ABI 05, section 2.3), then these.
pub const OUTCOMES: usize = EXCEPTION_CLASSES + 3;
const EXCEPTION_CLASSES: usize = 64;
const CLASS_SHIFT: u32 = 26;
/// A system call that the kernel does not know.
const UNKNOWN_CALL: usize = EXCEPTION_CLASSES;
/// A system call on a capability that is not there.
const CAPABILITY: usize = EXCEPTION_CLASSES + 1;
/// A fault of memory, which has a message of its own.
const MEMORY_FAULT: usize = EXCEPTION_CLASSES + 2;

/// What became of the instruction that this fault is about.
pub fn outcome(message: &Message) -> usize {
    match message.label() {
        fault::USER_EXCEPTION => {
            (message.word(fault::user_exception::NUMBER) >> CLASS_SHIFT) as usize
                % EXCEPTION_CLASSES
        }
        fault::VM_FAULT => MEMORY_FAULT,
        fault::UNKNOWN_SYSCALL => UNKNOWN_CALL,
        _ => CAPABILITY,
    }
}
