//! Who runs, and on whose time (ABI 04, sections 6 and 8).

use sandglass_kernel::arch::abi::boot::Root;
use sandglass_kernel::arch::abi::space;
use sandglass_kernel::mem;
use sandglass_kernel::object::core::Core;
use sandglass_kernel::object::tcb::TcbSlot;
use sandglass_kernel::time::refills::Refills;
use sandglass_kernel::{CoreId, Kernel, CORES};

use super::{require, Finding};
use crate::census::{cores, Census};
use crate::isa;

/// On every core, the current thread can run, and its context pays. The context's head refill has
/// begun, and the least budget of it is left; the end of it is known. On the core of the last event,
/// nothing is left to be decided, unless it was another core that left it so: system calls after
/// which nobody decides leave that to the look.
pub fn the_current_thread_has_budget(census: &Census) -> Finding {
    let k = census.k;
    let core = k.core();
    let is_decided = !core.undecided();
    let is_programmed = !core.reprogram() || CORES > 1;
    require!(
        (is_decided || k.machine.is_interrupted(k.core_id())) && is_programmed,
        "the scheduler still has to decide: {}, and program the timer: {}",
        core.undecided(),
        core.reprogram()
    );
    cores(k).try_for_each(|(_, core)| has_budget(k, core))
}

fn has_budget(k: &Kernel, core: &Core) -> Finding {
    let Some(thread) = core.thread() else {
        require!(
            core.context().is_none() && core.budget_end(k) == u64::MAX,
            "nobody runs, but {:?} pays until {}",
            core.context(),
            core.budget_end(k)
        );
        return Ok(());
    };
    let tcb = thread.at(k);
    require!(
        tcb.is_runnable(),
        "{thread:?} runs in state {:?}",
        tcb.state()
    );
    let Some(handle) = tcb.sched_context() else {
        return Err(format!("{thread:?} runs without a context"));
    };
    require!(
        core.context() == Some(handle),
        "{thread:?} runs on {handle:?}, but {:?} pays",
        core.context()
    );
    let context = handle.at(k);
    require!(context.is_active(), "{handle:?} pays and is not active");
    let head = Refills::of(k, handle).head();
    let end = core
        .now()
        .wrapping_sub(core.consumed())
        .wrapping_add(head.amount);
    require!(
        core.budget_end(k) == end,
        "the budget of {handle:?} ends at {end}, not {}",
        core.budget_end(k)
    );
    if !context.is_round_robin() {
        require!(
            head.time <= core.now(),
            "{handle:?} pays before its refill, at {}",
            head.time
        );
        require!(
            core.now() + k.constants.min_budget() <= end,
            "{handle:?} has only until {end} at {}",
            core.now()
        );
    }
    Ok(())
}

/// On every core that was not asked to look at its queues, nobody of a priority above the current
/// thread's is ready or had a refill due at the last event there; if nobody runs, nobody is.
pub fn nobody_better_waits(census: &Census) -> Finding {
    let k = census.k;
    let not_asked = |(id, _): &(CoreId, _)| !k.machine.is_interrupted(*id);
    cores(k)
        .filter(not_asked)
        .try_for_each(|(id, core)| is_the_best(k, id, core))
}

fn is_the_best(k: &Kernel, id: CoreId, core: &Core) -> Finding {
    let running = core.thread().map(|thread| thread.at(k).priority());
    // Of the domain that runs.
    let ready = core.ready().highest();
    require!(
        ready <= running,
        "{ready:?} is ready, while {running:?} runs"
    );
    for priority in (0..=u8::MAX).rev() {
        if running.is_some_and(|running| priority <= running) {
            break;
        }
        if let Some(first) = core.release().of(priority).first() {
            let due = first.at(k).links().key().time();
            // Unless the timer, which was programmed in time, has just not been taken yet.
            require!(
                due > core.now() || k.machine.deadline_of(id) <= due,
                "{first:?} of priority {priority} is due at {due}, while {running:?} runs"
            );
        }
    }
    Ok(())
}

/// A core whose scheduler has something to decide, or whose timer comes too late for the release of
/// somebody above its current thread, was asked to look at its queues (ABI 04, section 15).
pub fn cores_are_asked_to_look(census: &Census) -> Finding {
    let k = census.k;
    for (id, core) in cores(k) {
        if k.machine.is_interrupted(id) {
            continue;
        }
        require!(
            !core.undecided(),
            "{id:?} is not asked to look, and has to decide who runs"
        );
        let running = core.thread().map(|thread| thread.at(k).priority());
        let release = core.release().earliest_above(running);
        require!(
            core.armed() <= release,
            "{id:?} is not asked to look at {release}, when somebody above {running:?} is released, \
             before its timer fires at {}",
            core.armed()
        );
    }
    Ok(())
}

/// The machine has the address space of the current thread, and its FPU state if it may use the FPU.
pub fn the_machine_runs_the_current_thread(census: &Census) -> Finding {
    let k = census.k;
    let Some(thread) = k.core().thread() else {
        return Ok(());
    };
    let cap = mem::objects::tcb_slot(thread, TcbSlot::VSpace).at(k).cap();
    let named = cap.root_asid().and_then(|asid| space::root_of(k, asid));
    let own = named.filter(|&root| cap.word().get::<Root>() == Some(root));
    let own = own.filter(|root| census.has(isa::ROOT_TABLE, root.address().get()));
    let used = k.machine.address_space();
    require!(
        used == own.map(|root| root.address()),
        "{thread:?} has the address space {own:?}, but {used:?} is in use"
    );
    let may_use = !thread.at(k).fpu_disabled();
    require!(
        k.machine.fpu_enabled() == may_use,
        "{thread:?} may use the FPU: {may_use}, which is switched otherwise"
    );
    require!(
        !may_use || k.core().fpu_owner() == Some(thread),
        "{thread:?} runs with the FPU state of {:?}",
        k.core().fpu_owner()
    );
    Ok(())
}

/// The FPU of a core has the state of a thread of that core: whoever migrates leaves nothing behind
/// (ABI 04, section 15).
pub fn the_state_in_the_fpu_is_of_its_core(census: &Census) -> Finding {
    let k = census.k;
    for (id, core) in cores(k) {
        let owner = core.fpu_owner();
        require!(
            owner.is_none_or(|owner| owner.at(k).core() == id),
            "the FPU of {id:?} has the state of {owner:?}, which is elsewhere"
        );
    }
    Ok(())
}
