//! The root task: it makes what a system consists of, with system calls, before time begins.

use sandglass_abi::boot::slot;
use sandglass_abi::error::ErrorNumber;
use sandglass_abi::invocation as label;
use sandglass_abi::message::{ipc_buffer, MessageInfo};
use sandglass_abi::object as types;
use sandglass_abi::syscall::Syscall;
use sandglass_kernel::arch::hosted::{self, Machine};
use sandglass_kernel::arch::{MessageRegister, Register};
use sandglass_kernel::cap::Capability;
use sandglass_kernel::event::{self, Event, Next};
use sandglass_kernel::ipc::message;
use sandglass_kernel::mem::{Ref, Span};
use sandglass_kernel::object::tcb::Tcb;
use sandglass_kernel::{CoreId, Kernel};

use crate::script::{Entry, STEP};

/// Bytes of memory of the machine: little, because sweeps look at all of it.
const MEMORY: usize = 16 << 20;
/// Where the IPC buffer of every thread is in its frame, and log2 of the size of a context with
/// room for a few refills.
const BUFFER: u64 = 0x7000_0000;
pub const CONTEXT_BITS: u64 = 9;

/// The kernel, while the root task runs.
pub struct Root {
    pub k: Box<Kernel>,
    slots: Span,
    /// First empty slot of the root CNode.
    next_slot: u64,
    /// A large piece of untyped memory.
    untyped: u64,
}

/// An ELF file without code: what the root task does is in here.
fn root_task() -> Vec<u8> {
    const ENTRY: u64 = 0x40_0000;
    const OFFSET: u64 = 0x1000;
    let mut file = vec![0; 0x2000];
    let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
    // For x86_64, with one segment of a page.
    put(0, &[0x7f, b'E', b'L', b'F', 2, 1, 1]);
    put(16, &2u16.to_le_bytes());
    put(18, &62u16.to_le_bytes());
    put(20, &1u32.to_le_bytes());
    put(24, &ENTRY.to_le_bytes());
    put(32, &64u64.to_le_bytes());
    put(52, &64u16.to_le_bytes());
    put(54, &56u16.to_le_bytes());
    put(56, &1u16.to_le_bytes());
    put(64, &1u32.to_le_bytes());
    put(68, &7u32.to_le_bytes());
    put(72, &OFFSET.to_le_bytes());
    put(80, &ENTRY.to_le_bytes());
    put(96, &OFFSET.to_le_bytes());
    put(104, &OFFSET.to_le_bytes());
    file
}

impl Root {
    /// Boots a kernel on a machine of `cores` cores with a clock of `ticks_per_us`.
    pub fn boot(cores: usize, ticks_per_us: u64) -> Root {
        let machine = Machine::new(MEMORY, ticks_per_us);
        machine.set_cores(cores as u8);
        let Ok((k, Next::Thread(root))) = hosted::boot(machine, &root_task()) else {
            panic!("the kernel refuses the machine")
        };
        let slots = sandglass_kernel::cap::lookup::cspace(&k, root)
            .cnode()
            .and_then(|cap| cap.slots());
        let mut root = Root {
            k,
            slots: slots.expect("the root task's slots"),
            next_slot: 0,
            untyped: 0,
        };
        let mut used = (0..root.slots.length()).filter(|&i| !root.cap(i).is_null());
        root.next_slot = used.next_back().expect("initial capabilities") + 1;
        let size = |i: &u64| {
            let untyped = root.cap(*i).untyped();
            untyped.filter(|u| !u.is_device()).map(|u| u.bits())
        };
        root.untyped = (0..root.next_slot)
            .max_by_key(size)
            .expect("untyped memory");
        root
    }

    /// The capability in `slot` of the root CNode.
    pub fn cap(&self, slot: u64) -> Capability {
        let slot = self.slots.slot(slot).expect("a slot of the root CNode");
        slot.at(&self.k).cap()
    }

    /// A slot of the root CNode that is used for nothing yet.
    pub fn fresh_slot(&mut self) -> u64 {
        self.next_slot += 1;
        self.next_slot - 1
    }

    /// Makes one object of the type `object`; returns the slot of its capability.
    pub fn make(&mut self, object: u64, size: u64) -> u64 {
        let made = self.fresh_slot();
        let words = [object, size, 0, 0, made, 1];
        self.invoke(self.untyped, label::UNTYPED_RETYPE, &words, &[slot::CNODE]);
        made
    }

    /// A thread of `priority` that is stopped, in the root task's spaces, which it shares.
    pub fn make_thread(&mut self, priority: u8) -> u64 {
        let tcb = self.make(types::TCB, 0);
        let frame = self.make(types::x86_64::PAGE, 0);
        let caps = [slot::CNODE, slot::VSPACE, frame];
        self.invoke(tcb, label::TCB_CONFIGURE, &[0, 0, BUFFER], &caps);
        let words = [u64::from(priority)];
        self.invoke(tcb, label::TCB_SET_PRIORITY, &words, &[slot::TCB]);
        self.invoke(tcb, label::TCB_SET_MC_PRIORITY, &[255], &[slot::TCB]);
        tcb
    }

    /// Whoever runs on the core that booted.
    fn running(&self) -> Ref<Tcb> {
        let core = self.k.core_of(CoreId::BOOT);
        core.thread().expect("a thread runs")
    }

    /// An invocation by the root task, which must succeed.
    pub fn invoke(&mut self, cap: u64, label: u64, words: &[u64], caps: &[u64]) {
        let caller = self.running();
        self.call(cap, label, words, caps);
        let info = MessageInfo::from_raw(caller.at(&self.k).context().info());
        let error = ErrorNumber::from_raw(info.label());
        assert_eq!(
            error,
            Some(ErrorNumber::NoError),
            "invocation {label} of {cap}: {words:?}, {caps:?}"
        );
    }

    /// An invocation by whoever runs, after which it may not run any more.
    pub fn call(&mut self, cap: u64, label: u64, words: &[u64], caps: &[u64]) {
        let caller = self.running();
        let call = Call {
            syscall: Syscall::Call,
            cap,
            label,
            caps,
            ..Call::default()
        };
        call.set(&self.k, caller, words);
        self.event(Event::Syscall);
    }

    /// Whoever runs waits for the notification in `cap`.
    pub fn wait(&mut self, cap: u64) {
        let call = Call {
            syscall: Syscall::Wait,
            cap,
            ..Call::default()
        };
        call.set(&self.k, self.running(), &[]);
        self.event(Event::Syscall);
    }

    /// Whoever runs does `entry`, of which it has received nothing.
    pub fn enter(&mut self, entry: &Entry) {
        Call::of(entry).set(&self.k, self.running(), &entry.message.words(&[]));
        self.event(Event::Syscall);
    }

    fn event(&mut self, event: Event) {
        self.k.execute_on(CoreId::BOOT);
        let _ = event::handle(&mut self.k, event);
    }
}

/// The registers of a system call, but for the words of its message.
pub struct Call<'a> {
    syscall: Syscall,
    cap: u64,
    reply: u64,
    destination: u64,
    label: u64,
    caps: &'a [u64],
}

impl Default for Call<'_> {
    fn default() -> Self {
        Call {
            syscall: Syscall::Yield,
            cap: 0,
            reply: 0,
            destination: 0,
            label: 0,
            caps: &[],
        }
    }
}

impl<'a> Call<'a> {
    /// Those of `entry`.
    pub fn of(entry: &'a Entry) -> Call<'a> {
        Call {
            syscall: entry.syscall,
            cap: entry.cap,
            reply: entry.reply,
            destination: entry.destination,
            label: entry.label,
            caps: &entry.caps,
        }
    }

    /// `thread` has executed the system call with `words`, and is about to enter the kernel.
    pub fn set(&self, k: &Kernel, thread: Ref<Tcb>, words: &[u64]) {
        let context = thread.at(k).context();
        let info = MessageInfo::new(self.label, 0, self.caps.len(), words.len());
        context.set(k, Register::Rdx, self.syscall.raw());
        context.set(k, Register::Rdi, self.cap);
        context.set(k, Register::Rsi, info.raw());
        context.set(k, Register::R12, self.reply);
        context.set(k, Register::R13, self.destination);
        let ip = context.get(Register::NextIp);
        context.set(k, Register::FaultIp, ip);
        context.set(k, Register::NextIp, ip + STEP);
        for (i, &word) in words.iter().enumerate() {
            match MessageRegister::new(i) {
                Some(register) => context.set_message(k, register, word),
                None => write_buffer(k, thread, ipc_buffer::MESSAGE + i, word),
            }
        }
        for (i, &cap) in self.caps.iter().enumerate() {
            write_buffer(k, thread, ipc_buffer::CAPS_OR_BADGES + i, cap);
        }
    }
}

fn write_buffer(k: &Kernel, thread: Ref<Tcb>, at: usize, word: u64) {
    let buffer = message::buffer(k, thread, true).expect("a buffer");
    buffer.write(k, at, word);
}

/// The words of the message that `thread` has received.
pub fn received(k: &Kernel, thread: Ref<Tcb>) -> Vec<u64> {
    let context = thread.at(k).context();
    let length = MessageInfo::from_raw(context.info()).length();
    let word = |i| match MessageRegister::new(i) {
        Some(register) => context.message(register),
        None => {
            let buffer = message::buffer(k, thread, false).expect("a buffer");
            buffer.read(k, ipc_buffer::MESSAGE + i)
        }
    };
    (0..length).map(word).collect()
}
