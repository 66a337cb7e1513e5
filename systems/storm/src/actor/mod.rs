//! What a thread of the storm does, for ever: a random step, and another.
//!
//! This code runs in address spaces of the storm, with the image's code and constants and the
//! areas, and without the runtime: no heap, no console, no thread-local storage. A panic faults.

pub mod compose;
mod dice;
pub mod operations;

use core::sync::atomic::Ordering::Relaxed;

use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use sandglass::abi::error::ErrorNumber;
use sandglass::abi::fault;
use sandglass::abi::message::{ipc_buffer, MessageInfo, MAX_EXTRA_CAPS, MAX_LENGTH, REGISTER_MRS};
use sandglass::abi::syscall::Syscall;

use crate::arch::gate::{system_call, Registers};
use crate::arch::{deeds, unknown_syscall};
use crate::area::{buffer_address, Area, CATALOGUE_ADDRESS};
use crate::catalogue::{Catalogue, Kind, Position};
use crate::tally::{count, row_of, syscall_index};
use compose::{Composer, Draft, Effect};
pub use dice::Dice;
use operations::{OPERATIONS, WEIGHTS};

/// A thread of the storm.
struct Actor<'a> {
    area: &'a Area,
    composer: Composer<'a>,
    buffer: *mut u64,
    /// A message has come that is to be answered: label, and the reply object's pointer.
    pending: Option<(u64, u64)>,
}

/// Where every thread's code begins.
pub extern "C" fn actor(area: *const Area) -> ! {
    // SAFETY: the supervisor has set the area up. Two threads may share it by the storm's own
    // doing; what changes is atomic.
    let area = unsafe { &*area };
    let starts = area.control.starts.fetch_add(1, Relaxed);
    let seed = area.control.seed.wrapping_add(starts);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    // SAFETY: mapped as long as the thread is; all access is atomic.
    let catalogue = unsafe { &*(CATALOGUE_ADDRESS as *const Catalogue) };
    let mut actor = Actor {
        area,
        composer: Composer {
            dice: Dice(&mut random),
            catalogue,
            home: area.control.home,
            has_shelf: area.control.has_shelf,
        },
        buffer: buffer_address(area.control.index as usize) as *mut u64,
        pending: None,
    };
    loop {
        actor.step();
    }
}

impl Actor<'_> {
    fn step(&mut self) {
        if !self.area.control.is_alone {
            // The emulator goes to another core here: so that threads meet in the kernel.
            sandglass::time::pause();
        }
        if self.pending.is_some() && !self.composer.dice.one_in(4) {
            return self.answer();
        }
        match self.composer.dice.below(1000) {
            0..720 => self.invoke(),
            720..950 => self.communicate(),
            950..970 => self.noise(),
            970..985 => deeds::perform(&mut self.composer.dice, &self.area.code),
            _ => self.idle(),
        }
    }

    /// A random invocation, mostly by Call, whose answer shows what became of it.
    fn invoke(&mut self) {
        let operation = &OPERATIONS[self.composer.dice.weighted(WEIGHTS)];
        let draft = self.composer.invocation(operation.label, operation.invoked);
        self.load_buffer(&draft);
        let mut registers = self.registers();
        registers.info = draft.info();
        registers
            .message
            .copy_from_slice(&draft.words[..REGISTER_MRS]);
        let call = match self.composer.dice.below(64) {
            0 => Syscall::Send,
            1 => Syscall::NBSend,
            2 => self.composer.dice.choose([
                Syscall::NBSendRecv,
                Syscall::NBSendWait,
                Syscall::ReplyRecv,
            ]),
            _ => Syscall::Call,
        };
        match call {
            Syscall::NBSendRecv => {
                registers.destination = draft.invoked;
                self.receive_from(&mut registers);
            }
            Syscall::NBSendWait | Syscall::ReplyRecv => {
                self.receive_from(&mut registers);
                registers.reply = draft.invoked;
            }
            _ => registers.cap = draft.invoked,
        }
        let row = &self.area.tally.invocations;
        let row = row.get(row_of(draft.label));
        if let Some(row) = row {
            count(&row.issued);
        }
        self.system_call(&mut registers, call.raw());
        if call == Syscall::Call {
            let answer = MessageInfo::from_raw(registers.info).label();
            if let Some(counter) = row.and_then(|row| row.answers.get(answer as usize)) {
                count(counter);
            }
            self.learn(&draft, answer);
        }
    }

    /// Draws conclusions from the answer to an invocation.
    fn learn(&self, draft: &Draft, answer: u64) {
        let catalogue = self.composer.catalogue;
        let set = |at: Position, kind: Kind| catalogue.set(at, kind);
        match (ErrorNumber::from_raw(answer), draft.effect) {
            (Some(ErrorNumber::NoError), Effect::Filled(first, count, kind)) => {
                for slot in (first.slot..first.node.slots()).take(count) {
                    set(Position { slot, ..first }, kind);
                }
            }
            (Some(ErrorNumber::NoError), Effect::Moved(to, from)) => {
                set(to, catalogue.get(from));
                set(from, Kind::Null);
            }
            (Some(ErrorNumber::NoError), Effect::Rotated(to, pivot, source)) => {
                let kinds = (catalogue.get(pivot), catalogue.get(source));
                set(source, Kind::Null);
                set(to, kinds.0);
                set(pivot, kinds.1);
            }
            // The slot that was taken for empty is not.
            (
                Some(ErrorNumber::DeleteFirst),
                Effect::Filled(to, ..) | Effect::Moved(to, _) | Effect::Rotated(to, ..),
            ) if catalogue.get(to) == Kind::Null => set(to, Kind::Unknown),
            // The one that was taken for full is empty.
            (Some(ErrorNumber::FailedLookup), Effect::Moved(_, from)) => set(from, Kind::Null),
            (Some(ErrorNumber::InvalidCapability), _) => {
                let position = Position {
                    node: self.composer.home,
                    slot: draft.invoked as u8 as usize,
                };
                if draft.invoked >> 8 == 0 && draft.caps[0] == 0 {
                    set(position, Kind::Null);
                }
            }
            _ => {}
        }
    }

    /// A message, a signal, or a wait.
    fn communicate(&mut self) {
        const CALLS: [(Syscall, u64); 11] = [
            (Syscall::Call, 6),
            (Syscall::ReplyRecv, 6),
            (Syscall::NBSendRecv, 3),
            (Syscall::NBSendWait, 2),
            (Syscall::Send, 8),
            (Syscall::NBSend, 24),
            (Syscall::Recv, 5),
            (Syscall::NBRecv, 20),
            (Syscall::Wait, 2),
            (Syscall::NBWait, 20),
            (Syscall::Yield, 4),
        ];
        let (call, _) = CALLS[self.composer.dice.weighted(CALLS.map(|(_, weight)| weight))];
        let mut registers = self.message();
        match call {
            Syscall::Send | Syscall::NBSend | Syscall::Call => {
                registers.cap = self.channel(true);
            }
            Syscall::NBSendWait => {
                self.receive_from(&mut registers);
                registers.reply = self.channel(true);
            }
            Syscall::NBSendRecv => {
                self.receive_from(&mut registers);
                registers.destination = self.channel(true);
            }
            _ => self.receive_from(&mut registers),
        }
        self.system_call(&mut registers, call.raw());
        if matches!(
            call,
            Syscall::Recv | Syscall::NBRecv | Syscall::ReplyRecv | Syscall::NBSendRecv
        ) && registers.cap != 0
        {
            let label = MessageInfo::from_raw(registers.info).label();
            self.pending = Some((label, registers.reply));
        }
    }

    /// Answers the message that came last.
    fn answer(&mut self) {
        let Some((label, reply)) = self.pending.take() else {
            return;
        };
        let mut registers = self.message();
        let skip = self.composer.dice.below(4);
        match label {
            // The registers as they came, but for the program counter.
            fault::UNKNOWN_SYSCALL => {
                let word = ipc_buffer::MESSAGE + unknown_syscall::FAULT_IP;
                let ip = self.read_word(word);
                self.write_word(word, ip.wrapping_add(skip));
                let length = unknown_syscall::REPLY_LENGTH;
                registers.info = MessageInfo::new(0, 0, 0, length).raw();
            }
            fault::USER_EXCEPTION | fault::TIMEOUT => {
                let length = self.composer.dice.index(4);
                registers.info = MessageInfo::new(skip / 3, 0, 0, length).raw();
            }
            fault::VM_FAULT | fault::CAP_FAULT => registers.info = 0,
            _ => {}
        }
        let call = self
            .composer
            .dice
            .choose([Syscall::Send, Syscall::NBSend, Syscall::ReplyRecv]);
        if call == Syscall::ReplyRecv {
            self.receive_from(&mut registers);
            registers.reply = reply;
        } else {
            registers.cap = reply;
        }
        self.system_call(&mut registers, call.raw());
    }

    /// Any system call with anything in the registers.
    fn noise(&mut self) {
        let number = match self.composer.dice.below(16) {
            0 => self.composer.dice.wild(),
            _ => 1 + self.composer.dice.below(40),
        };
        let number = number.wrapping_neg();
        match Syscall::from_raw(number) {
            // In the debug kernel they stop the machine, or print for long with interrupts off.
            Some(Syscall::DebugHalt | Syscall::DebugDumpScheduler | Syscall::DebugSnapshot) => {
                return;
            }
            Some(Syscall::DebugPutChar) if !self.composer.dice.one_in(50) => return,
            _ => {}
        }
        let mut registers = self.message();
        registers.info = match self.composer.dice.below(3) {
            0 => self.composer.dice.wild(),
            _ => registers.info,
        };
        registers.cap = match self.composer.dice.below(3) {
            0 => self.composer.dice.wild(),
            1 => self.composer.pick(Kind::Tcb),
            _ => self.channel(false),
        };
        self.system_call(&mut registers, number);
    }

    /// Lets time pass.
    fn idle(&mut self) {
        let rounds = 1 << self.composer.dice.below(10);
        for round in 0..rounds {
            core::hint::black_box(round);
        }
    }

    /// Registers with noise in them.
    fn registers(&mut self) -> Registers {
        Registers::noisy(&mut self.composer.dice)
    }

    /// Registers and IPC buffer with a random message, and pointers of reply objects.
    fn message(&mut self) -> Registers {
        let mut registers = self.registers();
        let length = match self.composer.dice.below(8) {
            0 => self.composer.dice.index(128),
            1 => self.composer.dice.index(MAX_LENGTH),
            _ => self.composer.dice.index(8),
        };
        let extra = match self.composer.dice.below(4) {
            0 => self.composer.dice.index(MAX_EXTRA_CAPS + 1),
            _ => 0,
        };
        let label = match self.composer.dice.below(4) {
            0 => self.composer.dice.wild(),
            _ => self.composer.dice.below(64),
        };
        registers.info = MessageInfo::new(label, 0, extra, length).raw();
        for word in &mut registers.message {
            *word = self.composer.dice.wild();
        }
        for i in 0..extra {
            let cap = match self.composer.dice.below(4) {
                0 => self.channel(true),
                _ => self.composer.dice.below(256),
            };
            self.write_word(ipc_buffer::CAPS_OR_BADGES + i, cap);
        }
        if length > REGISTER_MRS {
            let word = self.composer.dice.wild();
            self.write_word(ipc_buffer::MESSAGE + length.min(MAX_LENGTH) - 1, word);
        }
        registers.reply = self.composer.pick(Kind::Reply);
        registers.destination = self.composer.dice.word();
        registers
    }

    /// Something to send to, or receive from.
    fn channel(&mut self, send: bool) -> u64 {
        let kind = match self.composer.dice.below(8) {
            0..5 => Kind::Endpoint,
            5 if send => Kind::Reply,
            _ => Kind::Notification,
        };
        self.composer.pick(kind)
    }

    /// Chooses what to receive from, with which reply object, and where capabilities go.
    fn receive_from(&mut self, registers: &mut Registers) {
        registers.cap = self.channel(false);
        registers.reply = self.composer.pick(Kind::Reply);
        if self.composer.dice.one_in(2) {
            let words = self.composer.receive_slot();
            for (i, word) in words.into_iter().enumerate() {
                self.write_word(ipc_buffer::RECEIVE_CNODE + i, word);
            }
        }
    }

    /// Writes what does not fit into registers to the IPC buffer.
    fn load_buffer(&mut self, draft: &Draft) {
        for (i, &word) in draft.words[..draft.length]
            .iter()
            .enumerate()
            .skip(REGISTER_MRS)
        {
            self.write_word(ipc_buffer::MESSAGE + i, word);
        }
        for (i, &cap) in draft.caps.iter().enumerate() {
            self.write_word(ipc_buffer::CAPS_OR_BADGES + i, cap);
        }
    }

    fn write_word(&self, index: usize, word: u64) {
        // SAFETY: `index` is in the buffer, which the supervisor has mapped. If the storm has
        // unmapped it, this is a fault like others.
        unsafe { self.buffer.add(index).write_volatile(word) }
    }

    fn read_word(&self, index: usize) -> u64 {
        // SAFETY: as in `write_word`.
        unsafe { self.buffer.add(index).read_volatile() }
    }

    fn system_call(&mut self, registers: &mut Registers, number: u64) {
        registers.number = number;
        let row = &self.area.tally.syscalls[syscall_index(number)];
        count(&row.issued);
        system_call(registers, &self.area.control.made);
        count(&row.returned);
    }
}
