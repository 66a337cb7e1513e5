//! The hosted kernel as a machine on which arrangements are made.

use std::ops::Range;

use sandglass_abi::boot::slot;
use sandglass_abi::invocation as label;
use sandglass_abi::invocation::registers_flags::WRITE_RESUME_TARGET;
use sandglass_abi::message::{ipc_buffer, MessageInfo};
use sandglass_abi::object::x86_64 as x86_types;
use sandglass_abi::syscall::Syscall;
use sandglass_arrangements::{Call, Machine, Program, Refused};
use sandglass_kernel::arch::abi::Exception;
use sandglass_kernel::arch::hosted::{self, Machine as HostedMachine};
use sandglass_kernel::arch::{MessageRegister, Platform, Register};
use sandglass_kernel::event::{self, Event, Next, Trap};
use sandglass_kernel::ipc::message;
use sandglass_kernel::mem::{Ref, Span};
use sandglass_kernel::object::tcb::Tcb;
use sandglass_kernel::Kernel;

use crate::counters;

/// A machine of 1 GHz, with memory for some thousand threads.
const TICKS_PER_US: u64 = 1_000;
const MEMORY_BYTES: usize = 64 << 20;

/// Ticks that an entry of the kernel takes, and that pass at a preemption point.
const TICKS_PER_ENTRY: u64 = 700;
const TICKS_PER_LOOK: u64 = 3_000;

/// Addresses of the programs: a system call, and what comes behind it.
const ONCE: u64 = 0x1000;
const REPEAT: u64 = 0x2000;
const SYSCALL_BYTES: u64 = 2;

/// Where a thread that is to have an IPC buffer has it.
const BUFFER: u64 = 0x7000_0000;

/// Priority of the root task between arrangements.
const TOP: u64 = 254;

/// The number of the exception that ends a program: invalid opcode.
const INVALID_OPCODE: u32 = 6;

/// A hosted kernel, and its root task.
pub struct Host {
    k: Box<Kernel>,
    root: Ref<Tcb>,
    root_slots: Span,
    slots: Range<u64>,
    memory: (u64, u32),
    frame: u64,
}

impl Host {
    /// A machine that has just booted.
    ///
    /// # Panics
    /// The kernel refuses to boot.
    pub fn new() -> Self {
        let machine = HostedMachine::new(MEMORY_BYTES, TICKS_PER_US);
        let Ok((k, Next::Thread(root))) = hosted::boot(machine, &root_task()) else {
            panic!("the kernel refuses the root task");
        };
        k.machine.set_clock_observer(Some(counters::mark));
        k.machine.set_ticks_per_look(TICKS_PER_LOOK);
        let cspace = sandglass_kernel::cap::lookup::cspace(&k, root)
            .cnode()
            .expect("a CSpace");
        let root_slots = cspace.slots().expect("the slots of a CNode");
        let mut host = Self {
            k,
            root,
            root_slots,
            slots: 0..root_slots.length(),
            memory: (0, 0),
            frame: 0,
        };
        let is_used = |i: &u64| !host.cap(*i).is_null();
        let used = (0..root_slots.length()).rev().find(is_used);
        host.slots.start = used.expect("initial capabilities") + 2;
        host.frame = host.slots.start - 1;
        let mut memories: Vec<(u32, u64)> = (0..host.frame)
            .filter_map(|i| {
                let untyped = host.cap(i).untyped().filter(|memory| !memory.is_device())?;
                Some((u32::from(untyped.bits()), i))
            })
            .collect();
        memories.sort_unstable();
        let [.., (_, other), (bits, largest)] = memories[..] else {
            panic!("the machine has two pieces of memory at least");
        };
        host.memory = (largest, bits);
        let words = [x86_types::PAGE, 0, 0, 0, host.frame, 1];
        host.invoke(other, label::UNTYPED_RETYPE, &words, &[slot::CNODE])
            .expect("memory for a page");
        let long = 3_600_000_000;
        let context = slot::SCHED_CONTEXT;
        let label = label::SCHED_CONTROL_CONFIGURE_FLAGS;
        host.invoke(
            slot::FIRST_DYNAMIC,
            label,
            &[long, long, 0, 0, 0],
            &[context],
        )
        .expect("time for the root task");
        host
    }

    /// Takes apart what was made.
    ///
    /// # Panics
    /// The kernel refuses.
    pub fn clear(&mut self) {
        self.invoke(slot::TCB, label::TCB_SET_PRIORITY, &[TOP], &[slot::TCB])
            .expect("a priority");
        let words = [self.memory.0, 64];
        self.invoke(slot::CNODE, label::CNODE_REVOKE, &words, &[])
            .expect("what was made can be revoked");
    }

    fn cap(&self, slot: u64) -> sandglass_kernel::cap::Capability {
        let slot = self
            .root_slots
            .slot(slot)
            .expect("a slot of the root CNode");
        slot.at(&self.k).cap()
    }

    fn enter(&mut self, event: Event) {
        counters::mark();
        let _ = event::handle(&mut self.k, event);
        counters::mark();
        self.k.machine.advance(TICKS_PER_ENTRY);
    }

    fn set(&self, thread: Ref<Tcb>, register: Register, value: u64) {
        thread.at(&self.k).context().set(&*self.k, register, value);
    }

    fn get(&self, thread: Ref<Tcb>, register: Register) -> u64 {
        thread.at(&self.k).context().get(register)
    }

    /// A system call of `thread`, which runs.
    fn syscall(&mut self, thread: Ref<Tcb>) {
        let ip = self.get(thread, Register::NextIp);
        self.set(thread, Register::FaultIp, ip);
        self.set(thread, Register::NextIp, ip + SYSCALL_BYTES);
        self.enter(Event::Syscall);
    }

    /// A system call of the root task; whoever can then runs before it goes on.
    fn root_call(&mut self, number: Syscall, cap: u64, info: MessageInfo, words: &[u64]) {
        let root = self.root;
        assert_eq!(self.k.core().thread(), Some(root), "the root task runs");
        self.set(root, Register::NextIp, ONCE);
        loop {
            self.set(root, Register::Rdx, number.raw());
            self.set(root, Register::Rdi, cap);
            self.set(root, Register::Rsi, info.raw());
            for (i, &word) in words.iter().enumerate() {
                match MessageRegister::new(i) {
                    Some(register) => root
                        .at(&self.k)
                        .context()
                        .set_message(&*self.k, register, word),
                    None => self.write_root_buffer(ipc_buffer::MESSAGE + i, word),
                }
            }
            self.syscall(root);
            self.run_others();
            // A call that was preempted is executed again.
            if self.get(root, Register::NextIp) != ONCE {
                return;
            }
        }
    }

    fn write_root_buffer(&self, word: usize, value: u64) {
        let buffer = message::buffer(&self.k, self.root, true).expect("a buffer");
        buffer.write(&*self.k, word, value);
    }

    /// All run that come before the root task, until that goes on.
    fn run_others(&mut self) {
        while self.k.core().thread() != Some(self.root) {
            self.step();
        }
    }

    /// Whoever runs does the next thing; if nobody does, time passes.
    fn step(&mut self) {
        if self.k.machine.deadline() <= self.k.machine.now() {
            return self.enter(Event::Trap(Trap::Timer));
        }
        let Some(thread) = self.k.core().thread() else {
            let wait = self.k.machine.deadline() - self.k.machine.now();
            return self.k.machine.advance(wait);
        };
        match self.get(thread, Register::NextIp) {
            ONCE => self.syscall(thread),
            REPEAT => {
                let (cap, info) = (
                    self.get(thread, Register::Rbx),
                    self.get(thread, Register::Rbp),
                );
                self.set(thread, Register::Rdi, cap);
                self.set(thread, Register::Rsi, info);
                self.syscall(thread);
                // Unless it is to be executed again, the next one is the same.
                if self.get(thread, Register::NextIp) != REPEAT {
                    self.set(thread, Register::NextIp, REPEAT);
                }
            }
            ip => {
                self.set(thread, Register::FaultIp, ip);
                self.enter(Event::Trap(Trap::Exception(Exception::Other {
                    number: INVALID_OPCODE,
                    code: 0,
                })));
            }
        }
    }
}

impl Machine for Host {
    fn memory(&self) -> (u64, u32) {
        self.memory
    }

    fn slots(&self) -> Range<u64> {
        self.slots.clone()
    }

    fn control(&self) -> u64 {
        slot::FIRST_DYNAMIC
    }

    fn invoke(&mut self, cap: u64, label: u64, words: &[u64], caps: &[u64]) -> Result<(), Refused> {
        for (i, &cap) in caps.iter().enumerate() {
            self.write_root_buffer(ipc_buffer::CAPS_OR_BADGES + i, cap);
        }
        let info = MessageInfo::new(label, 0, caps.len(), words.len());
        self.root_call(Syscall::Call, cap, info, words);
        let answer = MessageInfo::from_raw(self.root.at(&self.k).context().info());
        match answer.label() {
            0 => Ok(()),
            error => Err(Refused { label, error }),
        }
    }

    fn signal(&mut self, cap: u64) {
        self.root_call(Syscall::Send, cap, MessageInfo::default(), &[]);
    }

    fn write(
        &mut self,
        tcb: u64,
        program: Program,
        call: Call,
        starts: bool,
    ) -> Result<(), Refused> {
        use sandglass_abi::context::x86_64 as order;
        let mut words = [0; 2 + order::COUNT];
        words[0] = if starts { WRITE_RESUME_TARGET } else { 0 };
        words[1] = order::COUNT as u64;
        let registers = &mut words[2..];
        registers[order::RIP] = match program {
            Program::Once => ONCE,
            Program::Repeat => REPEAT,
        };
        registers[order::RFLAGS] = order::INITIAL_RFLAGS;
        registers[order::SYSCALL_NUMBER] = call.number.raw();
        registers[order::CAP_OR_BADGE] = call.cap;
        registers[order::RBX] = call.cap;
        registers[order::MESSAGE_INFO] = call.info.raw();
        registers[order::RBP] = call.info.raw();
        registers[order::REPLY] = call.reply;
        for (register, word) in order::MESSAGE_REGISTERS.into_iter().zip(call.words) {
            registers[register] = word;
        }
        self.invoke(tcb, label::TCB_WRITE_REGISTERS, &words, &[])
    }

    fn has_called(&mut self, tcb: u64) -> Result<bool, Refused> {
        let tcb = self.cap(tcb).word().get::<Tcb>().expect("a thread");
        Ok(self.get(tcb, Register::NextIp) != ONCE)
    }

    fn buffer(&self) -> (u64, u64) {
        (BUFFER, self.frame)
    }

    fn write_buffer(&mut self, tcb: u64, word: usize, value: u64) {
        let tcb = self.cap(tcb).word().get::<Tcb>().expect("a thread");
        let buffer = message::buffer(&self.k, tcb, true).expect("a buffer");
        buffer.write(&*self.k, word, value);
    }

    fn now(&self) -> u64 {
        self.k.machine.now()
    }

    fn ticks_per_us(&self) -> u64 {
        TICKS_PER_US
    }

    fn pass_until(&mut self, tick: u64) {
        while self.now() < tick {
            let until = self.k.machine.deadline().clamp(self.now(), tick);
            self.k.machine.advance(until - self.now());
            if until < tick {
                self.enter(Event::Trap(Trap::Timer));
                self.run_others();
            }
        }
    }

    fn begin(&mut self) {
        counters::begin();
    }

    fn end(&mut self) {
        counters::end();
    }
}

/// A root task that does nothing: one page, whose contents nobody executes.
fn root_task() -> Vec<u8> {
    const ENTRY: u64 = 0x40_0000;
    const PAGE: u64 = 0x1000;
    let mut file = vec![0; 2 * PAGE as usize];
    let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &[0x7f, b'E', b'L', b'F', 2, 1, 1]);
    // An executable for x86_64 with one program header.
    put(16, &2u16.to_le_bytes());
    put(18, &62u16.to_le_bytes());
    put(20, &1u32.to_le_bytes());
    put(24, &ENTRY.to_le_bytes());
    put(32, &64u64.to_le_bytes());
    put(52, &64u16.to_le_bytes());
    put(54, &56u16.to_le_bytes());
    put(56, &1u16.to_le_bytes());
    // A segment of one page, readable, writable and executable.
    put(64, &1u32.to_le_bytes());
    put(68, &7u32.to_le_bytes());
    for (at, value) in [(72, PAGE), (80, ENTRY), (96, PAGE), (104, PAGE)] {
        put(at, &value.to_le_bytes());
    }
    file
}
