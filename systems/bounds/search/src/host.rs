//! The hosted kernel as a machine on which arrangements are made.

use std::ops::Range;

use sandglass_abi::boot::slot;
use sandglass_abi::invocation as label;
use sandglass_abi::invocation::registers_flags::WRITE_RESUME_TARGET;
use sandglass_abi::object::x86_64 as x86_types;
use sandglass_abi::syscall::Syscall;
use sandglass_arrangements::{Call, Machine, Program, Refused};
use sandglass_kernel::arch::abi::Exception;
use sandglass_kernel::arch::hosted::Machine as HostedMachine;
use sandglass_kernel::arch::{Platform, Register};
use sandglass_kernel::cap::Capability;
use sandglass_kernel::event::{self, Event, Trap};
use sandglass_kernel::ipc::message;
use sandglass_kernel::mem::Ref;
use sandglass_kernel::object::tcb::Tcb;
use sandglass_kernel::Kernel;
use sandglass_testkit::boot::{boot, RootCNode};
use sandglass_testkit::call;

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
    root_slots: RootCNode,
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
        let (k, root) = boot(machine);
        k.machine.set_clock_observer(Some(counters::mark));
        k.machine.set_ticks_per_look(TICKS_PER_LOOK);
        let root_slots = RootCNode::of(&k, root);
        let mut memories: Vec<(u32, u64)> = root_slots
            .untyped(&k, false)
            .map(|(i, memory)| (memory.bits().into(), i))
            .collect();
        memories.sort_unstable();
        let [.., (_, other), (bits, largest)] = memories[..] else {
            panic!("the machine has two pieces of memory at least");
        };
        let frame = root_slots.first_free(&k);
        let mut host = Self {
            k,
            root,
            root_slots,
            slots: frame + 1..root_slots.length(),
            memory: (largest, bits),
            frame,
        };
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

    fn cap(&self, slot: u64) -> Capability {
        self.root_slots.cap(&self.k, slot)
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
        call::step(&self.k, thread);
        self.enter(Event::Syscall);
    }

    /// A system call of the root task; whoever can then runs before it goes on.
    fn root_call(&mut self, made: &call::Call) {
        let root = self.root;
        assert_eq!(self.k.core().thread(), Some(root), "the root task runs");
        self.set(root, Register::NextIp, ONCE);
        loop {
            made.issue(&self.k, root);
            self.enter(Event::Syscall);
            self.run_others();
            // A call that was preempted is executed again.
            if self.get(root, Register::NextIp) != ONCE {
                return;
            }
        }
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
        self.root_call(&call::Call::new(Syscall::Call, cap, label, words, caps));
        let answer = call::answer(&self.k, self.root);
        answer.map(|_| ()).map_err(|refused| Refused {
            label,
            error: refused.error as u64,
        })
    }

    fn signal(&mut self, cap: u64) {
        self.root_call(&call::Call::new(Syscall::Send, cap, 0, &[], &[]));
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

    fn us_to_ticks(&self, us: u64) -> u64 {
        us * TICKS_PER_US
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
