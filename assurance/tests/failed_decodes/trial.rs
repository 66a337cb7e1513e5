//! An invocation is made, and what it changed is compared with what it may change.

use sandglass_abi::message::{ipc_buffer, MessageInfo};
use sandglass_abi::object::TCB_BITS;
use sandglass_abi::syscall::Syscall;
use sandglass_assurance::abstraction;
use sandglass_assurance::census::Anchor;
use sandglass_kernel::arch::{Context, MessageRegister, Register, Transfer};
use sandglass_kernel::event::{self, Event, Next};
use sandglass_kernel::ipc::{message, notification};
use sandglass_kernel::mem::objects::tcb_slot;
use sandglass_kernel::mem::Ref;
use sandglass_kernel::object::tcb::{Tcb, TcbSlot};
use sandglass_kernel::time::turn::Turn;
use sandglass_model::event as specification;
use sandglass_model::isa::{
    CAP_OR_BADGE as BADGE, MESSAGE_INFO as INFO, MESSAGE_REGISTERS as WORDS,
};
use sandglass_model::state::{Registers, State, ThreadId};

use sandglass_refusals::case::{Arguments, Call, Case, Refusal};
use sandglass_testkit::call;
use sandglass_testkit::world::World;

/// Ticks that pass before a call, in user code.
const PASSES: u64 = 17;
/// Memory that is compared: below it there is the image of a kernel, here nothing.
const FIRST_BYTE: u64 = 2 << 20;
/// The badge of a signal.
const SIGNAL: u64 = 0x516;
/// What no case has as a word.
const STALE: u64 = 0x57a1_e000_0000_0000;

/// A kernel in which nothing ever changes, and what is known of it.
pub struct Trial<'w> {
    w: &'w mut World,
    anchor: Anchor,
    caller: Ref<Tcb>,
    /// Physical address of the caller's IPC buffer, if it has one.
    buffer: Option<u64>,
    /// The state, but for the caller's registers; `None` where the specification has no word for it.
    state: Option<State>,
    /// The caller's.
    registers: Registers,
    /// Memory from [`FIRST_BYTE`] on.
    bytes: Vec<u8>,
    /// Slot of a notification for the caller to wait for, where it also sends before it receives.
    signals: Option<u64>,
}

impl<'w> Trial<'w> {
    /// The root task of `w` makes the invocations.
    ///
    /// # Panics
    /// If a long operation is unfinished.
    pub fn new(w: &'w mut World) -> Self {
        let mut trial = Self::unfinished(w);
        let state = abstraction::of(&trial.w.k, trial.anchor);
        trial.state = Some(state.expect("a state of the specification"));
        trial
    }

    /// As [`Self::new`], but a long operation may be unfinished: only memory is compared.
    pub fn unfinished(w: &'w mut World) -> Self {
        let anchor = Anchor::of(&w.k);
        let caller = w.running().expect("the root task runs");
        let buffer = message::buffer(&w.k, caller, true);
        let buffer = buffer.map(|_| buffer_address(w, caller));
        let bytes = memory(w);
        let registers = registers(caller.at(&w.k).context());
        Trial {
            w,
            anchor,
            caller,
            buffer,
            state: None,
            registers,
            bytes,
            signals: None,
        }
    }

    /// Invocations are also made by NBSendWait, whose second phase finds a signal of the
    /// notification in `slot`, which nobody else uses.
    pub fn with_signals(mut self, slot: u64) -> Self {
        self.signals = Some(slot);
        self
    }

    /// Makes the invocation of `case`, by every system call that invokes.
    ///
    /// # Panics
    /// If it is not refused as it is to be, or changes memory.
    pub fn run(&mut self, case: &Case) {
        let first = self.signals.map(|_| Syscall::NBSendWait);
        let all = [Syscall::Send, Syscall::NBSend, Syscall::Call];
        for by in all.into_iter().chain(first) {
            self.make(case, by);
            self.check_memory(&name(case, by));
        }
    }

    /// Makes the invocation of `case` by Call; what it did to anything but the caller is for
    /// [`Self::settle`] to find.
    ///
    /// # Panics
    /// If it is not refused as it is to be.
    pub fn call(&mut self, case: &Case) {
        self.make(case, Syscall::Call);
    }

    /// # Panics
    /// If the state is not what it was, but for time and what callers were told.
    pub fn settle(&mut self) {
        self.check_memory("one of the last calls");
        let Some(state) = &self.state else { return };
        let found = abstraction::of(&self.w.k, self.anchor).expect("a state of the specification");
        let expected = self.with_registers(state);
        assert_eq!(differences(&expected, &found), [] as [String; 0]);
    }

    fn make(&mut self, case: &Case, by: Syscall) {
        let name = format!(
            "{by:?}, label {}: {}\n{case:?}",
            case.call.label, case.check
        );
        self.prepare(&case.call, by);
        let specified = self.specified(by);
        if by == Syscall::NBSendWait {
            self.signal();
        }
        self.w.k.machine.advance(PASSES);
        let next = event::handle(&mut self.w.k, Event::Syscall);
        assert_eq!(
            next,
            Next::Thread(self.caller),
            "somebody else runs: {name}"
        );
        if let Some(state) = &mut self.state {
            state.core_mut().now += PASSES;
            state.core_mut().consumed += PASSES;
        }
        match by {
            Syscall::Call => self.answer(&case.refusal),
            // The signal is received: its badge, and nothing else.
            Syscall::NBSendWait => self.registers.user[BADGE] = SIGNAL,
            _ => {}
        }
        self.check_registers(&name);
        if let Some(specified) = specified {
            self.check_specification(specified, &name);
        }
    }

    /// The state that the specification starts from, where it makes the call too: not where a signal comes first.
    fn specified(&self, by: Syscall) -> Option<State> {
        let state = self.state.as_ref()?;
        (by != Syscall::NBSendWait).then(|| self.with_registers(state))
    }

    /// `state` with the caller's registers.
    fn with_registers(&self, state: &State) -> State {
        let mut state = state.clone();
        let id = ThreadId(self.caller.address().get());
        let caller = state.threads.get_mut(&id).expect("the caller");
        caller.registers = self.registers.clone();
        state
    }

    /// The specification refuses the call, too, and has the same state afterwards.
    fn check_specification(&self, mut specified: State, name: &str) {
        let now = self.w.k.machine.clock();
        let core = abstraction::core_id(self.w.k.core_id());
        specification::handle(&mut specified, core, specification::Event::Syscall, now);
        let state = self.state.as_ref().expect("a state of the specification");
        let found = differences(&self.with_registers(state), &specified);
        assert_eq!(found, [] as [String; 0], "the specification: {name}");
    }

    /// Sets the caller's registers and buffer for `call`.
    fn prepare(&mut self, call: &Call, by: Syscall) {
        let k = &*self.w.k;
        let Arguments { cap, words, caps } = call.arguments();
        let context: &Context = self.caller.at(k).context();
        for (i, register) in MessageRegister::ALL.into_iter().enumerate() {
            context.set_message(k, register, STALE + i as u64);
        }
        // NBSendWait sends to what the reply register names.
        let (named, reply) = match self.signals {
            Some(signals) if by == Syscall::NBSendWait => (signals, cap),
            _ => (cap, STALE),
        };
        let made = call::Call {
            reply,
            ..call::Call::new(by, named, call.label, &words, &caps)
        };
        let fifth = ipc_buffer::MESSAGE + MessageRegister::ALL.len();
        call::store(k, self.caller, fifth, STALE);
        made.issue(k, self.caller);
        self.registers = registers(context);
        self.know(fifth, STALE);
        for (place, word) in made.buffer() {
            self.know(place, word);
        }
    }

    /// Word `place` of the caller's buffer is `word`.
    fn know(&mut self, place: usize, word: u64) {
        let Some(buffer) = self.buffer else { return };
        let address = buffer + 8 * place as u64;
        let at = (address - FIRST_BYTE) as usize;
        self.bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
        if let Some(state) = &mut self.state {
            match word {
                0 => state.memory.remove(&address),
                _ => state.memory.insert(address, word),
            };
        }
    }

    /// The notification that the caller is about to wait for is signalled.
    fn signal(&self) {
        let slot = self.signals.expect("a notification");
        let cap = self.w.cap(slot).notification().expect("a notification");
        // Nobody waits for it yet.
        notification::signal(&self.w.k, &Turn::new(), cap.object, SIGNAL);
    }

    /// The caller is told of `refusal`.
    fn answer(&mut self, refusal: &Refusal) {
        let Refusal { error, details } = refusal;
        let info = MessageInfo::new(*error as u64, 0, 0, details.len());
        if let Some(&fifth) = details.get(WORDS.len()) {
            self.know(ipc_buffer::MESSAGE + WORDS.len(), fifth);
        }
        self.registers.user[BADGE] = 0;
        self.registers.user[INFO] = info.raw();
        for (&register, &word) in WORDS.iter().zip(details) {
            self.registers.user[register] = word;
        }
    }

    fn check_registers(&self, name: &str) {
        let found = registers(self.caller.at(&self.w.k).context());
        assert_eq!(found, self.registers, "registers: {name}");
    }

    /// All memory is as it was, but for the caller's TCB, which the specification compares.
    fn check_memory(&mut self, name: &str) {
        let found = memory(self.w);
        let tcb = (self.caller.address().get() - FIRST_BYTE) as usize;
        let tcb = tcb..tcb + (1 << TCB_BITS);
        self.bytes[tcb.clone()].copy_from_slice(&found[tcb]);
        if self.bytes != found {
            let i = (0..found.len()).find(|&i| found[i] != self.bytes[i]);
            let at = FIRST_BYTE + i.unwrap_or(0) as u64;
            panic!("memory at {at:#x} has changed: {name}");
        }
    }
}

/// For those who read of a failure.
fn name(case: &Case, by: Syscall) -> String {
    format!(
        "{by:?}, label {}: {}\n{case:?}",
        case.call.label, case.check
    )
}

/// Memory from [`FIRST_BYTE`] on.
fn memory(w: &World) -> Vec<u8> {
    let machine = &w.k.machine;
    let length = machine.memory_bytes() - FIRST_BYTE;
    let bytes = machine.read_memory(FIRST_BYTE, length as usize);
    bytes.expect("the machine's memory")
}

/// Registers as the specification has them.
fn registers(context: &Context) -> Registers {
    let order = Transfer::UserContext;
    Registers {
        user: std::array::from_fn(|i| context.transfer_get(order, i).unwrap_or(0)),
        next_ip: context.get(Register::NextIp),
    }
}

/// Physical address of the IPC buffer of `thread`.
fn buffer_address(w: &World, thread: Ref<Tcb>) -> u64 {
    let frame = tcb_slot(thread, TcbSlot::Buffer).at(&w.k).cap().frame();
    let frame = frame.expect("a frame");
    let offset = thread.at(&w.k).buffer_address() & ((1 << frame.bits()) - 1);
    frame.start().get() + offset
}

/// The parts of the state in which `expected` and `found` differ.
fn differences(expected: &State, found: &State) -> Vec<String> {
    let mut differences = Vec::new();
    macro_rules! compare {
        ($($field:ident),*) => {$(
            if expected.$field != found.$field {
                differences.push(format!(
                    "{}: {:?}\ninstead of {:?}",
                    stringify!($field),
                    found.$field,
                    expected.$field
                ));
            }
        )*};
    }
    compare!(
        clock,
        caps,
        cnodes,
        threads,
        endpoints,
        notifications,
        replies,
        contexts,
        tables,
        pools,
        asids,
        irqs,
        ports,
        domains,
        cores,
        executing,
        memory,
        devices
    );
    differences
}
