//! A thread that accesses addresses of some address space, and says exactly what came of it.

use conformance_kit::arch::order::{RAX, RDI, RIP};
use conformance_kit::arch::{
    status, ACCESS_BYTES, JUMP_THEN_STOP, LOAD_THEN_STOP, STORE_THEN_STOP,
};
use sandglass::abi::fault::{user_exception, vm_fault};
use sandglass::cap::Pml4;
use sandglass::vspace::VSpace;

use crate::fixture::raw::RAW_PRIORITY;
use crate::fixture::SYSCALL_THEN_STOP;
use crate::prelude::*;

/// A load, a store, a jump and a system call, each with an undefined instruction behind it, and where in the page of code
/// they begin.
const CODE: [u8; 64] = {
    let mut code = [0; 64];
    let pieces: [(usize, &[u8]); 4] = [
        (LOAD, &LOAD_THEN_STOP),
        (STORE, &STORE_THEN_STOP),
        (JUMP, &JUMP_THEN_STOP),
        (SYSTEM_CALL, &SYSCALL_THEN_STOP),
    ];
    let mut piece = 0;
    while piece < pieces.len() {
        let (start, bytes) = pieces[piece];
        let mut i = 0;
        while i < bytes.len() {
            code[start + i] = bytes[i];
            i += 1;
        }
        piece += 1;
    }
    code
};
const LOAD: usize = 0;
const STORE: usize = 16;
const JUMP: usize = 32;
const SYSTEM_CALL: usize = 48;
/// Where the code is in address spaces other than the check's.
const CODE_ADDRESS: u64 = 0x7000_0000_0000;

pub use conformance_kit::arch::status::{PRESENT, USER, WRITE};

/// What came of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The word that was loaded or stored; of a jump, the address.
    Word(u64),
    /// A virtual-memory fault. The status is without its fetch bit, which not every processor
    /// sets.
    Fault { address: u64, status: u64 },
}

/// The fault of an access to an address where nothing is mapped.
pub const fn absent(address: u64, kind: u64) -> Seen {
    let status = USER | kind;
    Seen::Fault { address, status }
}

/// The fault of an access that a mapping forbids.
pub const fn forbidden(address: u64, kind: u64) -> Seen {
    let status = PRESENT | USER | kind;
    Seen::Fault { address, status }
}

/// The thread.
#[derive(Clone, Copy, Debug)]
pub struct Visitor {
    pub tcb: Tcb,
    /// Where its faults arrive, and are answered.
    pub endpoint: Endpoint,
    pub reply: Reply,
    /// Address of its code.
    pub code: u64,
}

impl Visitor {
    /// A visitor of the address space of this root, which has an identifier. In another than the
    /// check's, its code is far from all that the checks map.
    pub fn new(f: &mut Fixture, root: Pml4) -> Result<Self, Failure> {
        let code = if root == boot::VSPACE {
            f.code(&CODE)?
        } else {
            f.code_in(VSpace::from_root(root), CODE_ADDRESS, &CODE)?;
            CODE_ADDRESS
        };
        let (endpoint, reply) = (f.endpoint()?, f.reply()?);
        let params = ThreadParams {
            fault_handler: Some(endpoint),
            ..f.active(RAW_PRIORITY)?
        };
        let tcb = f.raw_thread(params, &UserContext::default())?;
        let visitor = Self {
            tcb,
            endpoint,
            reply,
            code,
        };
        visitor.enter(root)?;
        Ok(visitor)
    }

    /// Moves to another address space, in which its code must be at the same address.
    pub fn enter(&self, root: Pml4) -> TestResult {
        let handler = Some(self.endpoint);
        Ok(self
            .tcb
            .set_space(handler, boot::CNODE, GuardData(0), root)?)
    }

    /// Address of a system call with UD2 behind it.
    pub const fn system_call(&self) -> u64 {
        self.code + SYSTEM_CALL as u64
    }

    /// Loads the word at `address`.
    pub fn load(&self, f: &Fixture, address: u64) -> Result<Seen, Failure> {
        self.access(f, LOAD, address, 0)
    }

    /// Stores `word` at `address`.
    pub fn store(&self, f: &Fixture, address: u64, word: u64) -> Result<Seen, Failure> {
        self.access(f, STORE, address, word)
    }

    /// Jumps to `address`, where there is a UD2.
    pub fn jump(&self, f: &Fixture, address: u64) -> Result<Seen, Failure> {
        self.access(f, JUMP, address, 0)
    }

    /// Runs from its registers until it stops by a fault.
    pub fn stopped(&self, f: &Fixture) -> Result<Stopped, Failure> {
        f.stopped(self.tcb, self.endpoint, self.reply)
    }

    fn access(&self, f: &Fixture, code: usize, rdi: u64, rax: u64) -> Result<Seen, Failure> {
        let ip = self.code + code as u64;
        let registers = [(RIP, ip), (RDI, rdi), (RAX, rax)];
        self.tcb
            .write_registers(&changed(&UserContext::default(), &registers), true)?;
        let stopped = self.stopped(f)?;
        match stopped.label {
            // The translation led to an address where nothing is.
            fault::VM_FAULT if status::is_of_the_bus(stopped.words[vm_fault::STATUS]) => {
                Ok(Seen::Word(rax))
            }
            fault::VM_FAULT => fault_of(&stopped),
            fault::USER_EXCEPTION if code == JUMP => {
                Ok(Seen::Word(stopped.words[user_exception::FAULT_IP]))
            }
            fault::USER_EXCEPTION => {
                ensure_eq!(stopped.words[user_exception::FAULT_IP], ip + ACCESS_BYTES);
                Ok(Seen::Word(stopped.registers.get(RAX)))
            }
            other => Err(Failure::from(format!("fault {other} {:x?}", stopped.words))),
        }
    }
}

/// The fault of which the thread stopped, a virtual-memory fault.
pub fn fault_of(stopped: &Stopped) -> Result<Seen, Failure> {
    ensure_eq!(stopped.label, fault::VM_FAULT);
    let status = stopped.words[vm_fault::STATUS];
    ensure_eq!(
        stopped.words[vm_fault::PREFETCH],
        u64::from(status::is_fetch(status))
    );
    Ok(Seen::Fault {
        address: stopped.words[vm_fault::ADDRESS],
        status: status::of_access(status),
    })
}
