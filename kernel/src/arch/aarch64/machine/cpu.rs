//! Privileged instructions, each as one function, and the state that the kernel wants the processor in
//! (07, section 2).

use core::arch::asm;

/// Functions that read system registers.
macro_rules! readable {
    ($($(#[$doc:meta])* $read:ident: $name:literal;)*) => {
        $(
            $(#[$doc])*
            #[inline(always)]
            pub fn $read() -> u64 {
                let value;
                // SAFETY: reading it has no effect that the caller does not want. Volatile, and not moved across accesses
                // to memory.
                unsafe {
                    asm!(concat!("mrs {}, ", $name), out(reg) value,
                         options(nostack, preserves_flags));
                }
                value
            }
        )*
    };
}

/// Functions that write system registers.
macro_rules! writable {
    ($($(#[$doc:meta])* $write:ident: $name:literal;)*) => {
        $(
            $(#[$doc])*
            ///
            /// # Safety
            /// The kernel can go on with the processor in that state.
            #[inline(always)]
            pub unsafe fn $write(value: u64) {
                // SAFETY: the caller's. Memory accesses stay on their side, as the register may be about them.
                unsafe {
                    asm!(concat!("msr ", $name, ", {}"), in(reg) value,
                         options(nostack, preserves_flags));
                }
            }
        )*
    };
}

readable! {
    /// Ticks of the counter in a second, as firmware has it.
    counter_hz: "cntfrq_el0";
    /// The core's affinity.
    affinity_register: "mpidr_el1";
    /// Interrupts that wait.
    waiting: "isr_el1";
    /// Features of memory.
    memory_features: "id_aa64mmfr0_el1";
    /// Features of the processor.
    processor_features: "id_aa64pfr0_el1";
    /// Features of debugging.
    debug_features: "id_aa64dfr0_el1";
    /// Sizes of cache lines.
    cache_type: "ctr_el0";
    /// Why the last exception came.
    syndrome: "esr_el1";
    /// The address that the last exception was about.
    fault_address: "far_el1";
    /// Where the last exception came from.
    exception_link: "elr_el1";
}

writable! {
    /// Whether the virtual timer is on, masked, and has fired.
    set_timer_control: "cntv_ctl_el0";
    /// The value of the counter from which on the virtual timer fires.
    set_timer_at: "cntv_cval_el0";
    /// What of the counters and timers user code reaches.
    set_counter_access: "cntkctl_el1";
    /// Whether the FPU can be used.
    set_fpu_access: "cpacr_el1";
    /// Root of the user's tables, and the identifier of its address space.
    set_user_root: "ttbr0_el1";
    /// Where the vectors are.
    set_vectors: "vbar_el1";
    /// Debugging by the processor itself.
    set_debugging: "mdscr_el1";
    /// Performance counters for user code.
    set_performance_access: "pmuserenr_el0";
    /// By which entries know the core.
    set_identity: "tpidr_el1";
    /// The thread pointer that user code only reads.
    set_thread_pointer: "tpidrro_el0";
}

/// Interrupt registers of a GICv3, for which assemblers have no names everywhere.
pub mod icc {
    use core::arch::asm;

    readable! {
            /// Acknowledges the interrupt that waits, and says which.
        acknowledge: "s3_0_c12_c12_0";
            /// What an end is.
        control: "s3_0_c12_c12_4";
            /// Whether these registers are used.
        system_registers: "s3_0_c12_c12_5";
    }

    writable! {
            /// Ends it.
        end: "s3_0_c12_c12_1";
            /// How priorities are divided.
        set_binary_point: "s3_0_c12_c12_3";
            /// What an end is.
        set_control: "s3_0_c12_c12_4";
            /// Whether these registers are used.
        set_system_registers: "s3_0_c12_c12_5";
            /// Interrupts of group 1.
        set_group1: "s3_0_c12_c12_7";
            /// The priority below which interrupts wait.
        set_priority_mask: "s3_0_c4_c6_0";
            /// Raises an interrupt at other cores.
        signal: "s3_0_c12_c11_5";
    }
}

/// The affinity of this core: the fields of MPIDR_EL1 that are one.
pub fn affinity() -> u64 {
    affinity_register() & AFFINITY
}

/// The fields of an affinity in a register.
pub const AFFINITY: u64 = 0xff_00ff_ffff;

/// The virtual counter, in ticks.
#[inline(always)]
pub fn time_stamp() -> u64 {
    let value;
    // SAFETY: reading it has no effect. ISB: the counter is not read before what comes before has been
    // executed; otherwise a core that has just had its turn could read a time from before that of the core
    // whose turn it was.
    unsafe {
        asm!("isb", "mrs {}, cntvct_el0", out(reg) value, options(nostack, preserves_flags));
    }
    value
}

/// What was written to system registers counts from here on.
#[inline(always)]
pub fn synchronise() {
    // SAFETY: it changes no memory.
    unsafe { asm!("isb", options(nostack, preserves_flags)) }
}

/// Gives way to whoever this core waits for. Not [`core::hint::spin_loop`], an ISB, at which an emulator that executes one core
/// at a time goes on with this one.
#[inline(always)]
pub fn pause() {
    // SAFETY: it does nothing.
    unsafe { asm!("yield", options(nomem, nostack, preserves_flags)) }
}

/// Every access before is seen by every core and table walk before any access after it.
#[inline(always)]
pub fn data_barrier() {
    // SAFETY: it changes no memory.
    unsafe { asm!("dsb ish", options(nostack, preserves_flags)) }
}

/// Entries that were absent, and have been written, are found from here on: the table walk sees what this core
/// has stored, and nothing that comes is executed before. Absent entries are not cached.
pub fn tables_written() {
    // SAFETY: it changes no memory.
    unsafe { asm!("dsb ishst", "isb", options(nostack, preserves_flags)) }
}

/// FPEN: nobody's use of the FPU is an exception.
const FPU_FOR_ALL: u64 = 3 << 20;
/// FPEN: user code's use of the FPU is an exception. The kernel itself saves and loads registers.
const FPU_FOR_KERNEL: u64 = 1 << 20;

/// Lets user code use the FPU, or makes its use an exception. It counts when the kernel is left, which
/// synchronises.
#[inline(always)]
pub fn set_fpu_enabled(enabled: bool) {
    let access = if enabled { FPU_FOR_ALL } else { FPU_FOR_KERNEL };
    // SAFETY: only user code notices.
    unsafe { set_fpu_access(access) }
}

/// ENABLE of a timer's control; neither masked.
const TIMER_ENABLED: u64 = 1;

/// Turns the virtual timer on, which never fires as long as nobody asks for it.
pub fn start_timer() {
    // SAFETY: the timer concerns time only.
    unsafe {
        set_timer_at(u64::MAX);
        set_timer_control(TIMER_ENABLED);
    }
    synchronise();
}

/// Asks the virtual timer to fire when the counter is at `at`, or at once if it is behind. Before, its
/// interrupt is taken back.
#[inline(always)]
pub fn set_timer(at: u64) {
    // SAFETY: the timer concerns time only. The next look at interrupts comes after a synchronisation: that of
    // leaving the kernel, or the one here for whoever asks inside.
    unsafe { set_timer_at(at) }
    synchronise();
}

/// EL0VCTEN: user code reads the virtual counter. EL0PCTEN, EL0PTEN: and the physical one, and sets the physical timer.
const USER_CLOCKS: u64 = if cfg!(feature = "user-timer") {
    1 << 1 | 1 << 0 | 1 << 9
} else if cfg!(feature = "user-clock") {
    1 << 1
} else {
    0
};

/// Brings the core that executes this into the kernel's state, in which the kernel's tables are in use already.
/// Entries will know it by `identity`.
pub fn init(identity: u64) {
    // SAFETY: user code reaches no counter, no timer (07, section 2) but those of an option, no performance
    // counter; nothing is
    // debugged; the FPU traps. Vectors are set elsewhere.
    unsafe {
        set_counter_access(USER_CLOCKS);
        set_debugging(0);
        set_fpu_access(FPU_FOR_KERNEL);
        set_identity(identity);
        set_thread_pointer(0);
        if has_performance_counters() {
            set_performance_access(0);
        }
    }
    synchronise();
}

/// Whether the processor has performance counters of the architecture: 0xf are others.
fn has_performance_counters() -> bool {
    !matches!(debug_features() >> 8 & 0xf, 0 | 0xf)
}

/// Whether address spaces have identifiers of 16 bits, as many as the ABI has (07, section 8).
pub fn has_wide_asids() -> bool {
    memory_features() >> 4 & 0xf == 2
}

/// Whether a GICv3 can be reached by system registers.
pub fn has_gic_registers() -> bool {
    processor_features() >> 24 & 0xf != 0
}

/// Whether an interrupt waits that would be taken if it were not masked.
#[inline(always)]
pub fn interrupt_waits() -> bool {
    const IRQ: u64 = 1 << 7;
    waiting() & IRQ != 0
}

/// Stops this core for good.
pub fn stop() -> ! {
    // SAFETY: interrupts are masked.
    unsafe { asm!("2: wfi", "b 2b", options(noreturn, nostack)) }
}
