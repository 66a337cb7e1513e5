//! Privileged instructions, each as one function, and the state that the kernel wants the processor in
//! (07, section 2).

use core::arch::asm;

/// Functions that read and write system registers.
macro_rules! registers {
    ($($(#[$doc:meta])* $name:literal $(read $read:ident)? $(write $write:ident)?;)*) => {
        $(
            $(
                $(#[$doc])*
                #[inline(always)]
                pub fn $read() -> u64 {
                    let value;
                    // SAFETY: reading it has no effect.
                    unsafe {
                        asm!(concat!("mrs {}, ", $name), out(reg) value,
                             options(nomem, nostack, preserves_flags));
                    }
                    value
                }
            )?
            $(
                $(#[$doc])*
                ///
                /// # Safety
                /// The kernel can go on with the processor in that state.
                #[inline(always)]
                pub unsafe fn $write(value: u64) {
                    // SAFETY: the caller's. Memory accesses stay on their side, as the register may be
                    // about them.
                    unsafe {
                        asm!(concat!("msr ", $name, ", {}"), in(reg) value,
                             options(nostack, preserves_flags));
                    }
                }
            )?
        )*
    };
}

registers! {
    /// Ticks of the counter in a second, as firmware has it.
    "cntfrq_el0" read counter_hz;
    /// Whether the virtual timer is on, masked, and has fired.
    "cntv_ctl_el0" write set_timer_control;
    /// The value of the counter from which on the virtual timer fires.
    "cntv_cval_el0" write set_timer_at;
    /// What of the counters and timers user code reaches.
    "cntkctl_el1" write set_counter_access;
    /// Whether the FPU can be used.
    "cpacr_el1" write set_fpu_access;
    /// Root of the user's tables, and the identifier of its address space.
    "ttbr0_el1" write set_user_root;
    /// Where the vectors are.
    "vbar_el1" write set_vectors;
    /// Debugging by the processor itself.
    "mdscr_el1" write set_debugging;
    /// Performance counters for user code.
    "pmuserenr_el0" write set_performance_access;
    /// The number of the core.
    "tpidr_el1" write set_core_number;
    /// The thread pointer that user code only reads.
    "tpidrro_el0" write set_thread_pointer;
    /// The core's affinity.
    "mpidr_el1" read affinity_register;
    /// Interrupts that wait.
    "isr_el1" read waiting;
    /// Features of memory.
    "id_aa64mmfr0_el1" read memory_features;
    /// Features of the processor.
    "id_aa64pfr0_el1" read processor_features;
    /// Features of debugging.
    "id_aa64dfr0_el1" read debug_features;
    /// Sizes of cache lines.
    "ctr_el0" read cache_type;
    /// Why the last exception came.
    "esr_el1" read syndrome;
    /// The address that the last exception was about.
    "far_el1" read fault_address;
    /// Where the last exception came from.
    "elr_el1" read exception_link;
}

/// Interrupt registers of a GICv3, for which assemblers have no names everywhere.
pub mod icc {
    use core::arch::asm;

    registers! {
        /// Acknowledges the interrupt that waits, and says which.
        "s3_0_c12_c12_0" read acknowledge;
        /// Ends it.
        "s3_0_c12_c12_1" write end;
        /// How priorities are divided.
        "s3_0_c12_c12_3" write set_binary_point;
        /// What an end is.
        "s3_0_c12_c12_4" read control write set_control;
        /// Whether these registers are used.
        "s3_0_c12_c12_5" read system_registers write set_system_registers;
        /// Interrupts of group 1.
        "s3_0_c12_c12_7" write set_group1;
        /// The priority below which interrupts wait.
        "s3_0_c4_c6_0" write set_priority_mask;
        /// Raises an interrupt at other cores.
        "s3_0_c12_c11_5" write signal;
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

/// EL0VCTEN, EL0PTEN: user code reads the virtual counter, and sets the physical timer.
const USER_CLOCKS: u64 = if cfg!(feature = "user-clock") {
    1 << 1 | 1 << 9
} else {
    0
};

/// Brings the core that executes this into the kernel's state, in which the kernel's tables are in use already.
/// `number` is that of the core.
pub fn init(number: u64) {
    // SAFETY: user code reaches no counter, no timer (07, section 2) but those of an option, no performance
    // counter; nothing is
    // debugged; the FPU traps. Vectors are set elsewhere.
    unsafe {
        set_counter_access(USER_CLOCKS);
        set_debugging(0);
        set_fpu_access(FPU_FOR_KERNEL);
        set_core_number(number);
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
