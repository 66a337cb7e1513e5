//! Faults are messages, and the answer decides how the thread goes on (ABI page 05).

use core::arch::asm;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sandglass::abi::context::x86_64 as register;
use sandglass::abi::fault::{self, unknown_syscall, user_exception};
use sandglass::abi::invocation::tcb_flags;
use sandglass::cap::{
    Attributes, Capability, Endpoint, FrameSize, Notification, Reply, Rights, SchedControl,
    SchedParams, Tcb,
};
use sandglass::error::LookupFailure;
use sandglass::fault::Fault;
use sandglass::testing::{shared, Suite, TestResult};
use sandglass::thread::ThreadParams;
use sandglass::{boot, ensure, ensure_eq, Message, Received, SetupError};

use crate::fixture::{Fixture, FULL};

const PRIORITY: u8 = 100;
const PAGE: u64 = 4096;

/// Bits of the page-fault error code.
const PRESENT: u64 = 1;
const WRITE: u64 = 2;
const USER: u64 = 4;

pub fn run(suite: &mut Suite, fixture: &mut Fixture) {
    fixture.run(
        suite,
        "faults",
        &[
            ("a_missing_page_is_told_and_can_be_supplied", missing_page),
            ("a_read_only_page_cannot_be_written", read_only),
            ("kernel_memory_cannot_be_touched", kernel_memory),
            ("a_missing_instruction_page_is_told", fetch),
            ("an_unknown_system_call_can_be_emulated", unknown_syscall),
            ("a_32_bit_number_is_an_unknown_system_call", narrow_number),
            ("exceptions_are_told_with_their_number", exceptions),
            ("the_spurious_vector_does_nothing", spurious),
            ("a_disabled_fpu_is_an_exception", fpu_disabled),
            ("registers_can_be_changed_before_the_restart", changed),
            ("an_answer_with_a_label_stops_the_thread", stopped),
            ("a_bad_pointer_is_told_by_send_and_not_by_nb_send", bad_send),
            ("receiving_from_nothing_is_told", bad_receive),
            ("a_bad_reply_object_is_told_with_its_pointer", bad_reply),
            ("a_deleted_handler_leaves_the_thread_stopped", no_handler),
            ("a_handler_needs_the_right_to_answer", handler_rights),
        ],
    );
}

/// A thread whose faults the test handles.
pub struct Patient {
    tcb: Tcb,
    handler: Endpoint,
    reply: Reply,
}

impl Patient {
    fn new(
        fixture: &mut Fixture,
        body: impl FnOnce() + Send + 'static,
    ) -> Result<Self, SetupError> {
        Self::on(fixture, fixture.control, FULL, body)
    }

    /// As [`Self::new`], on the core of `control` and with a context of these parameters.
    pub fn on(
        fixture: &mut Fixture,
        control: SchedControl,
        params: SchedParams,
        body: impl FnOnce() + Send + 'static,
    ) -> Result<Self, SetupError> {
        let handler = fixture.process.resources.endpoint()?;
        let context = fixture.context_on(control, params)?;
        let params = ThreadParams {
            fault_handler: Some(handler),
            ..ThreadParams::new(PRIORITY, context)
        };
        Ok(Self {
            tcb: fixture.spawn(params, body)?,
            handler,
            reply: fixture.process.resources.reply()?,
        })
    }

    fn receive(&self) -> Received {
        self.handler.recv(self.reply)
    }

    pub fn next(&self) -> Result<Fault, &'static str> {
        Fault::decode(&self.receive().message).ok_or("no fault")
    }

    /// Lets the thread go on at `ip`.
    fn go_on_at(&self, ip: u64) -> TestResult {
        let mut context = self.tcb.read_registers(false)?;
        context.set(register::RIP, ip);
        self.tcb.write_registers(&context, false)?;
        self.reply.send(Message::EMPTY);
        Ok(())
    }
}

/// Maps a fresh frame at `address`.
pub fn supply(fixture: &mut Fixture, address: u64, rights: Rights, fill: u8) -> TestResult {
    let process = &mut fixture.process;
    let frame = process.resources.frame(FrameSize::Small)?;
    process
        .space
        .fill_frame(&mut process.resources, frame, |page| page.fill(fill))?;
    let vspace = process.space.vspace();
    vspace.map(
        &mut process.resources,
        frame,
        address,
        rights,
        Attributes::WriteBack,
    )?;
    Ok(())
}

fn missing_page(fixture: &mut Fixture) -> TestResult {
    for (write, expected) in [(false, USER), (true, USER | WRITE)] {
        let address = fixture.process.space.reserve(PAGE, 12)? + 24;
        let seen: &AtomicU64 = shared();
        let patient = Patient::new(fixture, move || {
            let pointer = address as *mut u64;
            // SAFETY: the test maps the page before this continues.
            unsafe {
                if write {
                    pointer.write_volatile(1);
                }
                seen.store(pointer.read_volatile(), Relaxed);
            }
        })?;
        let fault = patient.next()?;
        let Fault::Memory {
            address: at,
            instruction,
            status,
            ..
        } = fault
        else {
            return Err(alloc::format!("{fault:?}").into());
        };
        ensure_eq!((at, instruction, status), (address, false, expected));
        supply(fixture, address - 24, Rights::READ_WRITE, 0x22)?;
        patient.reply.send(Message::EMPTY);
        fixture.settle();
        let expected = if write { 1 } else { 0x2222_2222_2222_2222 };
        ensure_eq!(seen.load(Relaxed), expected);
    }
    Ok(())
}

fn read_only(fixture: &mut Fixture) -> TestResult {
    let address = fixture.process.space.reserve(PAGE, 12)?;
    supply(fixture, address, Rights::READ, 0x33)?;
    let patient = Patient::new(fixture, move || {
        // SAFETY: does not return to Rust's notice: the write faults for good.
        unsafe { (address as *mut u8).write_volatile(1) }
    })?;
    let fault = patient.next()?;
    ensure!(
        matches!(fault, Fault::Memory { address: at, status, .. }
            if at == address && status == PRESENT | WRITE | USER),
        "{fault:?}"
    );
    Ok(())
}

fn kernel_memory(fixture: &mut Fixture) -> TestResult {
    for address in [0xffff_ffff_8000_0000, 0xffff_ff80_0000_0000, !7] {
        let patient = Patient::new(fixture, move || {
            // SAFETY: faults for good.
            unsafe {
                asm!("mov {0}, [{0}]", inout(reg) address => _);
            }
        })?;
        let fault = patient.next()?;
        ensure!(
            matches!(fault, Fault::Memory { address: at, .. } if at == address),
            "{fault:?}"
        );
    }
    Ok(())
}

/// A page of RET instructions is supplied for a call into the void.
fn fetch(fixture: &mut Fixture) -> TestResult {
    let address = fixture.process.space.reserve(PAGE, 12)?;
    let done: &AtomicU64 = shared();
    let patient = Patient::new(fixture, move || {
        // SAFETY: the test supplies the code before this continues.
        unsafe { asm!("call {}", in(reg) address, clobber_abi("C")) };
        done.store(1, Relaxed);
    })?;
    let fault = patient.next()?;
    ensure!(
        matches!(fault, Fault::Memory { ip, address: at, .. } if ip == address && at == address),
        "{fault:?}"
    );
    supply(fixture, address, Rights::READ, 0xc3)?;
    patient.reply.send(Message::EMPTY);
    fixture.settle();
    ensure_eq!(done.load(Relaxed), 1);
    Ok(())
}

/// Makes system call `number` with `rax`; returns what is in rax afterwards.
fn raw_syscall(number: u64, rax: u64) -> u64 {
    let result;
    // SAFETY: rsp is restored from a register that the kernel preserves.
    unsafe {
        asm!(
            "mov r14, rsp",
            "syscall",
            "mov rsp, r14",
            in("rdx") number,
            inlateout("rax") rax => result,
            out("rcx") _,
            out("r11") _,
            out("r14") _,
        );
    }
    result
}

/// The handler gets the registers and the number, and answers with other registers, of which
/// FaultIP is behind the instruction.
fn unknown_syscall(fixture: &mut Fixture) -> TestResult {
    const NUMBER: u64 = 0x7fff_1234_5678;
    let result: &AtomicU64 = shared();
    let patient = Patient::new(fixture, move || {
        result.store(raw_syscall(NUMBER, 0x1111), Relaxed);
    })?;
    let message = patient.receive().message;
    ensure_eq!(message.len(), unknown_syscall::LENGTH);
    let mut words = [0; unknown_syscall::LENGTH];
    message.copy_words(&mut words);
    ensure_eq!(words[unknown_syscall::SYSCALL], NUMBER);
    ensure_eq!(words[unknown_syscall::RAX], 0x1111);
    ensure_eq!(words[unknown_syscall::RDX], NUMBER);
    words[unknown_syscall::RAX] = 0x2222;
    words[unknown_syscall::FAULT_IP] += register::SYSCALL_INSTRUCTION_BYTES;
    let answer = Message::long(0, &words[..unknown_syscall::REPLY_LENGTH]);
    patient.reply.send(answer);
    fixture.settle();
    ensure_eq!(result.load(Relaxed), 0x2222);
    Ok(())
}

fn narrow_number(fixture: &mut Fixture) -> TestResult {
    let patient = Patient::new(fixture, || {
        raw_syscall(0xffff_ffff, 0);
    })?;
    let fault = patient.next()?;
    ensure!(
        matches!(fault, Fault::UnknownSyscall { number, .. } if number == 0xffff_ffff),
        "{fault:?}"
    );
    Ok(())
}

/// Each faulting instruction is skipped by the answer, which also checks where the fault was
/// reported.
fn exceptions(fixture: &mut Fixture) -> TestResult {
    /// Body, vector, and bytes from the reported address to the next instruction.
    type Case = (fn(), u64, u64);
    const CASES: [Case; 4] = [
        // SAFETY: the handler skips the instruction, which changes nothing.
        (|| unsafe { asm!("ud2") }, 6, 2),
        (
            // SAFETY: likewise; the operands are scratch registers.
            || unsafe { asm!("div cl", in("cl") 0u8, inout("ax") 1u16 => _) },
            0,
            2,
        ),
        // SAFETY: likewise; reported behind the instruction.
        (|| unsafe { asm!("int3") }, 3, 0),
        // SAFETY: likewise; privileged.
        (|| unsafe { asm!("cli") }, 13, 1),
    ];
    for (body, number, skip) in CASES {
        let survived: &AtomicU64 = shared();
        let patient = Patient::new(fixture, move || {
            body();
            survived.store(1, Relaxed);
        })?;
        let message = patient.receive().message;
        ensure_eq!(message.label(), fault::USER_EXCEPTION);
        ensure_eq!(message.len(), user_exception::LENGTH);
        ensure_eq!(message.word(user_exception::NUMBER), number);
        ensure_eq!(message.word(user_exception::CODE), 0);
        let ip = message.word(user_exception::FAULT_IP);
        patient.reply.send(Message::new(0, [ip + skip]));
        fixture.settle();
        ensure_eq!(survived.load(Relaxed), 1);
    }
    Ok(())
}

/// `int 255` is a no-op (ABI 05, section 7), also behind SYSRET, which leaves another code segment.
fn spurious(fixture: &mut Fixture) -> TestResult {
    let survived: &AtomicU64 = shared();
    fixture.spawn_full(PRIORITY, move || {
        sandglass::sys::yield_now();
        // SAFETY: changes nothing.
        unsafe { asm!("int 255") };
        survived.store(1, Relaxed);
    })?;
    fixture.settle();
    ensure_eq!(survived.load(Relaxed), 1);
    Ok(())
}

fn fpu_disabled(fixture: &mut Fixture) -> TestResult {
    let survived: &AtomicU64 = shared();
    let patient = Patient::new(fixture, move || {
        // SAFETY: faults while the FPU is disabled, and changes a register afterwards.
        unsafe { asm!("pxor xmm0, xmm0", out("xmm0") _) };
        survived.store(1, Relaxed);
    })?;
    ensure_eq!(patient.tcb.set_flags(0, tcb_flags::FPU_DISABLED)?, 1);
    let fault = patient.next()?;
    ensure!(
        matches!(fault, Fault::Exception { number: 7, .. }),
        "{fault:?}"
    );
    ensure_eq!(patient.tcb.set_flags(tcb_flags::FPU_DISABLED, 0)?, 0);
    patient.reply.send(Message::EMPTY);
    fixture.settle();
    ensure_eq!(survived.load(Relaxed), 1);
    Ok(())
}

static ARGUMENT: AtomicU64 = AtomicU64::new(0);

/// Notes its argument and faults again.
extern "C" fn other_path(argument: u64) -> ! {
    ARGUMENT.store(argument, Relaxed);
    // SAFETY: never continues here.
    unsafe { asm!("ud2", options(noreturn)) }
}

fn changed(fixture: &mut Fixture) -> TestResult {
    let patient = Patient::new(fixture, || {
        // SAFETY: never continues here.
        unsafe { asm!("ud2") }
    })?;
    patient.next()?;
    let mut context = patient.tcb.read_registers(false)?;
    context.set(register::RIP, other_path as *const () as u64);
    context.set(register::RSP, (context.get(register::RSP) & !15) - 8);
    context.set(register::RDI, 0xabcd);
    patient.tcb.write_registers(&context, false)?;
    let again = patient.reply.reply_recv(patient.handler, Message::EMPTY);
    ensure_eq!(ARGUMENT.load(Relaxed), 0xabcd);
    ensure_eq!(again.message.label(), fault::USER_EXCEPTION);
    ensure!(again.message.word(user_exception::FAULT_IP) > context.ip());
    Ok(())
}

fn stopped(fixture: &mut Fixture) -> TestResult {
    let survived: &AtomicU64 = shared();
    let patient = Patient::new(fixture, move || {
        // SAFETY: skipped by the handler in the end.
        unsafe { asm!("ud2") };
        survived.store(1, Relaxed);
    })?;
    let fault = patient.next()?;
    let Fault::Exception { ip, .. } = fault else {
        return Err(alloc::format!("{fault:?}").into());
    };
    patient.reply.send(Message::new(1, [ip + 2]));
    fixture.settle();
    ensure_eq!(survived.load(Relaxed), 0);
    // The registers were taken all the same: resumed, it starts behind the instruction.
    patient.tcb.resume()?;
    fixture.settle();
    ensure_eq!(survived.load(Relaxed), 1);
    Ok(())
}

fn bad_send(fixture: &mut Fixture) -> TestResult {
    const NOWHERE: u64 = 1 << 63;
    let passed: &AtomicU64 = shared();
    let patient = Patient::new(fixture, move || {
        Endpoint::at(NOWHERE).nb_send(Message::EMPTY);
        passed.store(1, Relaxed);
        Endpoint::at(NOWHERE).send(Message::EMPTY);
    })?;
    let fault = patient.next()?;
    ensure_eq!(passed.load(Relaxed), 1);
    let radix = fixture.boot.raw().init_thread_cnode_size_bits;
    let failure = LookupFailure::GuardMismatch {
        bits_left: 64,
        guard_found: 0,
        bits_found: 64 - radix,
    };
    ensure!(
        matches!(fault, Fault::Capability { address: NOWHERE, in_receive_phase: false, failure: f, .. }
            if f == failure),
        "{fault:?}"
    );
    Ok(())
}

fn bad_receive(fixture: &mut Fixture) -> TestResult {
    let patient = Patient::new(fixture, || {
        Notification::at(boot::TCB.address()).wait();
    })?;
    let fault = patient.next()?;
    let missing = LookupFailure::MissingCapability { bits_left: 0 };
    ensure!(
        matches!(fault, Fault::Capability { address, in_receive_phase: true, failure, .. }
            if address == boot::TCB.address() && failure == missing),
        "{fault:?}"
    );
    // An empty answer repeats the system call, which fails again.
    let again = patient.reply.reply_recv(patient.handler, Message::EMPTY);
    ensure_eq!(Fault::decode(&again.message), Some(fault));
    let Fault::Capability { ip, .. } = fault else {
        return Ok(());
    };
    patient.go_on_at(ip + register::SYSCALL_INSTRUCTION_BYTES)?;
    fixture.settle();
    Ok(())
}

fn bad_reply(fixture: &mut Fixture) -> TestResult {
    let endpoint = fixture.process.resources.endpoint()?;
    let patient = Patient::new(fixture, move || {
        endpoint.recv(Reply::from_cptr(boot::TCB.cptr()));
    })?;
    let fault = patient.next()?;
    ensure!(
        matches!(fault, Fault::Capability { address, in_receive_phase: true, .. }
            if address == boot::TCB.address()),
        "{fault:?}"
    );
    Ok(())
}

/// A fault that waits in the queue of an endpoint that goes away (ABI 05, section 3).
fn no_handler(fixture: &mut Fixture) -> TestResult {
    let survived: &AtomicU64 = shared();
    let patient = Patient::new(fixture, move || {
        // SAFETY: skipped by the test in the end.
        unsafe { asm!("ud2") };
        survived.store(1, Relaxed);
    })?;
    fixture.settle();
    let resources = &mut fixture.process.resources;
    resources.slot_of(patient.handler).revoke()?;
    resources.delete(patient.handler)?;
    fixture.settle();
    ensure_eq!(survived.load(Relaxed), 0);
    let mut context = patient.tcb.read_registers(false)?;
    context.set(register::RIP, context.ip() + 2);
    patient.tcb.write_registers(&context, true)?;
    fixture.settle();
    ensure_eq!(survived.load(Relaxed), 1);
    Ok(())
}

/// Without Grant or GrantReply, and without Write, an endpoint is no handler (ABI 05, section 5).
fn handler_rights(fixture: &mut Fixture) -> TestResult {
    let tcb = fixture.spawn_full(PRIORITY, || ())?;
    let handler = fixture.process.resources.endpoint()?;
    let no_write = Rights::READ.union(Rights::GRANT);
    for (rights, valid) in [
        (Rights::ALL, true),
        (Rights::WRITE.union(Rights::GRANT), true),
        (Rights::WRITE.union(Rights::GRANT_REPLY), true),
        (Rights::READ_WRITE, false),
        (no_write, false),
    ] {
        let copy = fixture.process.resources.copy(handler, rights)?;
        ensure!(
            tcb.set_timeout_endpoint(Some(copy)).is_ok() == valid,
            "rights {:#b}",
            rights.raw()
        );
    }
    Ok(())
}
