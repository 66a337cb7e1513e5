//! Registers and faults of threads (page 05; 07, sections 1 and 3).

use sandglass_abi::fault::{self, unknown_syscall_aarch64 as unknown};
use sandglass_abi::invocation as common;
use sandglass_abi::message::MessageInfo;
use sandglass_abi::object as objects;
use sandglass_abi::syscall::Syscall;
use sandglass_kernel::arch::abi::context::SPSR_FIXED;
use sandglass_kernel::arch::abi::Exception;
use sandglass_kernel::arch::Register;
use sandglass_kernel::event::{Event, Trap};
use sandglass_kernel::mem::Ref;
use sandglass_kernel::object::tcb::Tcb;
use sandglass_testkit::isa::{self, SYSCALL_INSTRUCTION_BYTES};
use sandglass_testkit::world::Thread;

use super::*;

/// The root task waits for the faults of a thread, which runs.
struct Faults {
    w: World,
    endpoint: u64,
    reply: u64,
    thread: Thread,
    handler: Ref<Tcb>,
}

impl Faults {
    fn new() -> Self {
        let mut w = World::new();
        let endpoint = w.make(objects::ENDPOINT, 0);
        let reply = w.make(objects::REPLY, 0);
        let thread = w.start_thread(100, 5_000, 10_000);
        let caps = [endpoint, slot::CNODE, slot::VSPACE];
        w.invoke(thread.tcb, common::TCB_SET_SPACE, &[0, 0], &caps)
            .expect("a fault handler");
        let handler = w.running().expect("the root task");
        w.recv(endpoint, reply);
        assert_eq!(w.running(), Some(thread.handle));
        Faults {
            w,
            endpoint,
            reply,
            thread,
            handler,
        }
    }

    /// The label and the words of the message about `event` of the thread.
    fn message(&mut self, event: Event) -> (u64, Vec<u64>) {
        self.w.event(event);
        assert_eq!(self.w.running(), Some(self.handler));
        let label = MessageInfo::from_raw(self.w.registers().info()).label();
        (label, self.w.message_of(self.handler))
    }

    fn reply(&mut self, words: &[u64]) {
        self.w.reply_recv(self.endpoint, self.reply, words);
        assert_eq!(self.w.running(), Some(self.thread.handle));
    }
}

#[test]
fn exceptions_are_the_faults_of_the_abi() {
    let mut f = Faults::new();
    let context = f.w.registers();
    context.set(&*f.w.k, Register::FaultIp, 0x1234);
    context.set(&*f.w.k, Register::Sp, 0x9000);
    let raised = |exception| Event::Trap(Trap::Exception(exception));
    let data = Exception::DataAbort {
        address: 0xdead,
        status: 0x9200_0045,
    };
    let message = (fault::VM_FAULT, vec![0x1234, 0xdead, 0, 0x9200_0045]);
    assert_eq!(f.message(raised(data)), message);
    f.reply(&[]);
    let fetch = Exception::InstructionAbort {
        status: 0x8200_0005,
    };
    let message = (fault::VM_FAULT, vec![0x1234, 0x1234, 1, 0x8200_0005]);
    assert_eq!(f.message(raised(fetch)), message);
    f.reply(&[]);
    let other = Exception::Other {
        status: 0xf200_0001,
    };
    let words = vec![0x1234, 0x9000, SPSR_FIXED, 0xf200_0001, 0];
    assert_eq!(f.message(raised(other)), (fault::USER_EXCEPTION, words));
    f.reply(&[0x5678, 0x9010, u64::MAX]);
    let context = f.w.registers();
    assert_eq!(context.get(Register::NextIp), 0x5678);
    assert_eq!(context.get(Register::Sp), 0x9010);
    assert_eq!(context.get(Register::Spsr), 0xf000_0000 | SPSR_FIXED);
}

/// 05, sections 2.2 and 6. SetTLSBase is unknown here (01, section 1).
#[test]
fn unknown_system_calls_are_told_with_their_registers() {
    let mut f = Faults::new();
    let number = Syscall::SetTLSBase.raw();
    let context = f.w.registers();
    let registers = [Register::X0, Register::X1, Register::X2, Register::X3];
    let registers = [&registers[..], &[Register::X4, Register::X5, Register::X6]].concat();
    for (i, &register) in registers.iter().enumerate() {
        context.set(&*f.w.k, register, 100 + i as u64);
    }
    context.set(&*f.w.k, Register::X7, number);
    context.set(&*f.w.k, Register::Sp, 0x9000);
    context.set(&*f.w.k, Register::FaultIp, 0x4000);
    context.set(&*f.w.k, Register::NextIp, 0x4004);
    let (label, words) = f.message(Event::Syscall);
    assert_eq!(
        (label, words.len()),
        (fault::UNKNOWN_SYSCALL, unknown::LENGTH)
    );
    assert_eq!(words[..7], [100, 101, 102, 103, 104, 105, 106]);
    assert_eq!(
        words[7..],
        [number, 0x4000, 0x9000, 0x4004, SPSR_FIXED, number]
    );
    let answer: Vec<u64> = (0..unknown::REPLY_LENGTH as u64 + 1)
        .map(|i| 0x1000 + 8 * i)
        .collect();
    f.reply(&answer);
    let context = f.w.registers();
    assert_eq!(context.get(Register::X7), 0x1038);
    assert_eq!(
        context.get(Register::FaultIp),
        0x1000 + 8 * unknown::FAULT_IP as u64
    );
    assert_eq!(
        context.get(Register::NextIp),
        context.fault_ip(),
        "it goes on there"
    );
    assert_eq!(context.get(Register::Sp), 0x1000 + 8 * unknown::SP as u64);
}

/// 01, section 4.3: what a message needs is in the registers that the page names.
#[test]
fn a_message_travels_in_its_registers() {
    let mut f = Faults::new();
    let context = f.w.registers();
    let words = [Register::X2, Register::X3, Register::X4, Register::X5];
    for (i, register) in words.into_iter().enumerate() {
        context.set(&*f.w.k, register, 50 + i as u64);
    }
    context.set(&*f.w.k, Register::X7, Syscall::Send.raw());
    context.set(&*f.w.k, Register::X0, f.endpoint);
    let info = MessageInfo::new(77, 0, 0, 4);
    context.set(&*f.w.k, Register::X1, info.raw());
    f.w.event(Event::Syscall);
    let received = f.handler.at(&f.w.k).context();
    assert_eq!(
        words.map(|register| received.get(register)),
        [50, 51, 52, 53]
    );
    assert_eq!(received.get(Register::X1), info.raw());
    assert_eq!(received.get(Register::X0), 0, "the badge");
}

/// 07, sections 1.3 and 1.4: all 36 registers, of which only the flags are made harmless.
#[test]
fn registers_are_written_in_the_order_of_the_page_and_flags_are_sanitised() {
    use sandglass_abi::context::aarch64 as order;
    let mut w = World::new();
    let thread = w.make_thread(50, 8);
    let read = |w: &mut World| {
        let count = order::COUNT as u64;
        w.invoke(thread.tcb, common::TCB_READ_REGISTERS, &[0, count], &[])
    };
    let mut new = vec![0; order::COUNT];
    new[order::SPSR] = SPSR_FIXED;
    assert_eq!(read(&mut w), Ok(new));
    let values: Vec<u64> = (0..order::COUNT as u64).map(|i| u64::MAX - i).collect();
    let words = [vec![0, order::COUNT as u64], values.clone()].concat();
    w.invoke(thread.tcb, common::TCB_WRITE_REGISTERS, &words, &[])
        .expect("written");
    let mut right = values;
    right[order::SPSR] = 0xf000_0000 | SPSR_FIXED;
    assert_eq!(read(&mut w), Ok(right.clone()));
    let context = thread.handle.at(&w.k).context();
    for (register, i) in [
        (Register::X0, order::X0),
        (Register::X9, order::X9),
        (Register::X18, order::X18),
        (Register::X19, order::X19),
        (Register::X30, order::X30),
        (Register::Tpidr, order::TPIDR_EL0),
        (Register::TpidrRo, order::TPIDRRO_EL0),
        (Register::NextIp, order::PC),
    ] {
        assert_eq!(context.get(register), right[i], "{register:?}");
    }
    w.invoke(thread.tcb, common::TCB_SET_TLS_BASE, &[7], &[])
        .expect("set");
    assert_eq!(thread.handle.at(&w.k).context().get(Register::Tpidr), 7);
    assert_eq!(SYSCALL_INSTRUCTION_BYTES, 4);
    assert_eq!(isa::FPU_WORDS * 8, 528);
}
