//! The sweep is not vacuous: every invariant fails on a kernel that was damaged in the way that it
//! is about.

use sandglass_abi::syscall::Syscall;
use sandglass_assurance::census::{Census, Site};
use sandglass_assurance::invariants::budgets::Budgets;
use sandglass_assurance::invariants::INVARIANTS;
use sandglass_assurance::isa;
use sandglass_assurance::pair::{Checks, Pair};
use sandglass_assurance::script::{Action, Call};
use sandglass_assurance::world;
use sandglass_kernel::arch::Platform;
use sandglass_kernel::cap::Capability;
use sandglass_kernel::mem::{Kind, Ref};
use sandglass_kernel::object::fault::Fault;
use sandglass_kernel::object::sched_context::{Refill, SchedContext};
use sandglass_kernel::object::tcb::{Place, State, Tcb};
use sandglass_kernel::{CoreId, CORES};

/// Offsets of the words of a slot.
const WORD: u64 = 0;
const DATA: u64 = 8;
const PREV: u64 = 16;

/// A world with threads in every kind of queue: some ready, one waiting for a refill, one waiting
/// to receive.
struct Scene {
    pair: Pair,
}

impl Scene {
    fn new() -> Scene {
        let mut pair = world::create(Checks::None).unwrap();
        let endpoint = world::FIRST;
        for _ in 0..100 {
            if pair.k.core().release().earliest() != u64::MAX {
                break;
            }
            pair.perform(&Action::Pass(100_000)).unwrap();
        }
        let wait = Action::Call(Call {
            number: Syscall::Wait as i64,
            cap: endpoint,
            ..Call::default()
        });
        let script = if CORES > 1 {
            // The first core has two that are ready, and both are needed.
            vec![Action::On(1), Action::Look, wait, Action::On(0)]
        } else {
            // One of them cannot name the endpoint.
            vec![wait; 2]
        };
        for action in script {
            pair.perform(&action).unwrap();
        }
        Scene { pair }
    }

    fn census(&self) -> Census<'_> {
        Census::of(&self.pair.k, self.pair.anchor)
    }

    /// The `n`th slot with a capability that is `wanted`.
    fn site(&self, n: usize, wanted: impl Fn(Capability) -> bool) -> Site {
        let census = self.census();
        let sites = census.sites.iter();
        *sites.filter(|site| wanted(site.view.cap)).nth(n).unwrap()
    }

    fn of(&self, kind: Kind) -> Site {
        self.site(0, |cap| cap.is(kind))
    }

    /// Overwrites a word of the slot.
    fn poke(&self, site: Site, offset: u64, value: u64) {
        let at = site.slot.address().get() + offset;
        // SAFETY: any word is a word of a slot, as far as Rust is concerned; that it is a wrong one
        // is what the tests are about.
        unsafe { self.pair.k.machine.write_memory(at, &value.to_le_bytes()) }
    }

    fn peek(&self, site: Site, offset: u64) -> u64 {
        let at = site.slot.address().get() + offset;
        self.pair.k.machine.look_at(at, 1, |words| words[0])
    }

    /// Makes the slot empty without telling anybody.
    fn forget(&self, site: Site) {
        for offset in (0..32).step_by(8) {
            self.poke(site, offset, 0);
        }
    }

    fn thread(&self, wanted: impl Fn(&Tcb) -> bool) -> Ref<Tcb> {
        let k = &self.pair.k;
        let census = self.census();
        let mut threads = census.threads.iter().copied();
        threads.find(|thread| wanted(thread.at(k))).unwrap()
    }

    fn ready(&self) -> Ref<Tcb> {
        self.thread(|tcb| tcb.place() == Place::Ready)
    }

    fn current(&self) -> Ref<Tcb> {
        self.pair.k.core().thread().unwrap()
    }

    /// A context that is active and not round-robin.
    fn context(&self) -> Ref<SchedContext> {
        let k = &self.pair.k;
        let census = self.census();
        let mut contexts = census.contexts.iter().map(|&(context, _)| context);
        let is_wanted = |context: &Ref<SchedContext>| {
            let context = context.at(k);
            context.is_active() && !context.is_round_robin()
        };
        contexts.find(is_wanted).unwrap()
    }
}

/// A way to damage a kernel, and the invariant that notices.
type Damage = (&'static str, fn(&Scene));

const DAMAGES: &[Damage] = &[
    ("neighbours_name_each_other", |scene| {
        let site = scene.site(1, |cap| cap.is(Kind::Endpoint));
        scene.poke(site, PREV, 0);
    }),
    ("neighbours_name_each_other", |scene| {
        // A slot that belongs to nothing.
        let cnode = scene.site(1, |cap| cap.is(Kind::CNode) && cap.word().shape() == 1);
        scene.forget(cnode);
    }),
    ("lists_have_an_end", |scene| {
        let census = scene.census();
        let first = census
            .sites
            .iter()
            .find(|site| site.view.prev.is_none() && site.view.next.is_some());
        let first = *first.unwrap();
        scene.poke(first, PREV, first.slot.address().get());
    }),
    ("capabilities_to_one_object_are_neighbours", |scene| {
        let source = scene.of(Kind::Endpoint);
        let target = scene.of(Kind::Domain);
        scene.poke(target, WORD, scene.peek(source, WORD));
    }),
    ("children_follow_their_parent", |scene| {
        let between = scene.site(2, |cap| cap.is(Kind::Tcb));
        scene.poke(between, WORD, u64::from(Kind::Domain.number()));
    }),
    ("references_are_to_live_objects", |scene| {
        let context = scene.site(1, |cap| cap.is(Kind::SchedContext));
        scene.forget(context);
    }),
    ("objects_do_not_overlap", |scene| {
        let page = |cap: Capability| {
            cap.frame()
                .is_some_and(|f| f.bits() == 12 && !f.is_device())
        };
        let frame = scene.site(4, page);
        // Twice as large.
        scene.poke(frame, WORD, scene.peek(frame, WORD) + (1 << 19));
    }),
    ("bindings_are_mutual", |scene| {
        let thread = scene.ready();
        thread
            .at(&scene.pair.k)
            .set_sched_context(&scene.pair.k, None);
    }),
    ("ready_queues_are_linked", |scene| {
        let thread = scene.ready();
        let tcb = thread.at(&scene.pair.k);
        tcb.set_priority(&scene.pair.k, tcb.priority() ^ 1);
    }),
    ("ordered_queues_are_trees", |scene| {
        let receives = |tcb: &Tcb| matches!(tcb.state(), State::BlockedOnReceive { .. });
        let thread = scene.thread(receives);
        thread.at(&scene.pair.k).set_priority(&scene.pair.k, 1);
    }),
    ("release_times_are_those_of_the_refills", |scene| {
        let k = &scene.pair.k;
        let thread = scene.thread(|tcb| tcb.place() == Place::Release);
        let context = thread.at(k).sched_context().unwrap().at(k);
        let head = context.head();
        context.set_head(
            k,
            Refill {
                time: head.time + 1,
                ..head
            },
        );
    }),
    ("the_tournament_knows_the_earliest", |scene| {
        let k = &scene.pair.k;
        let thread = scene.thread(|tcb| tcb.place() == Place::Release);
        let priority = thread.at(k).priority();
        k.home(thread).release().of(priority).remove(k, thread);
    }),
    ("each_thread_is_in_one_place", |scene| {
        let thread = scene.ready();
        thread
            .at(&scene.pair.k)
            .set_state(&scene.pair.k, State::Inactive);
    }),
    ("each_thread_is_in_one_place", |scene| {
        // A context that may run is lost.
        let k = &scene.pair.k;
        let thread = scene.ready();
        k.home(thread).ready().remove(k, thread);
    }),
    ("cores_are_asked_to_look", |scene| {
        scene.pair.k.core().leave_undecided(&scene.pair.k);
    }),
    ("a_fault_waits_for_its_handler", |scene| {
        let fault = Fault::UnknownSyscall { number: 1 };
        scene
            .ready()
            .at(&scene.pair.k)
            .set_fault(&scene.pair.k, Some(fault));
    }),
    ("who_waits_for_a_reply_is_named_by_it", |scene| {
        let reply = scene.census().replies[0];
        reply
            .at(&scene.pair.k)
            .set_thread(&scene.pair.k, Some(scene.ready()));
    }),
    ("stacks_are_linked", |scene| {
        let census = scene.census();
        census.replies[0]
            .at(census.k)
            .set_below(&scene.pair.k, Some(census.replies[1]));
    }),
    ("refills_are_in_order", |scene| {
        let context = scene.context().at(&scene.pair.k);
        context.set_head(
            &scene.pair.k,
            Refill {
                amount: context.period(),
                ..context.head()
            },
        );
    }),
    ("heads_have_the_least_budget", |scene| {
        let context = scene.context().at(&scene.pair.k);
        context.set_head(
            &scene.pair.k,
            Refill {
                amount: 1,
                ..context.head()
            },
        );
    }),
    ("the_current_thread_has_budget", |scene| {
        scene.pair.k.core().leave_undecided(&scene.pair.k);
    }),
    ("the_current_thread_has_budget", |scene| {
        let k = &scene.pair.k;
        let context = k.core().context().unwrap().at(k);
        let head = context.head();
        context.set_head(
            k,
            Refill {
                amount: head.amount - 1,
                ..head
            },
        );
    }),
    ("nobody_better_waits", |scene| {
        scene
            .current()
            .at(&scene.pair.k)
            .set_priority(&scene.pair.k, 0);
    }),
    ("the_machine_runs_the_current_thread", |scene| {
        let _ = scene.pair.k.machine.use_address_space(0, None);
    }),
    ("tables_have_one_owner", |scene| {
        let table = scene.of(isa::DAMAGED.0);
        scene.poke(table, DATA, 0);
    }),
    ("identifiers_name_their_roots", |scene| {
        let root = scene.of(isa::DAMAGED.1);
        scene.poke(root, DATA, 5);
    }),
    ("threads_remember_their_own", |scene| {
        // As if who takes it away said so to nobody.
        scene.pair.k.arch.asids.set(&scene.pair.k, 0, None);
    }),
    ("objects_lie_below_the_watermark", |scene| {
        let used = |cap: Capability| {
            cap.untyped()
                .is_some_and(|m| m.bits() == 18 && m.watermark() < m.size())
        };
        scene.poke(scene.site(0, used), DATA, 1 << 12);
    }),
    ("free_memory_is_zero", |scene| {
        let free = |cap: Capability| {
            let memory = cap.untyped();
            memory.is_some_and(|m| m.watermark() < m.size() && !m.is_device())
        };
        let memory = scene.site(0, free).view.cap.untyped().unwrap();
        let last = memory.start().get() + memory.size() - 1;
        // SAFETY: the memory is free.
        unsafe { scene.pair.k.machine.write_memory(last, &[1]) }
    }),
    ("issued_interrupts_have_handlers", |scene| {
        scene.forget(scene.of(Kind::IrqHandler));
    }),
    ("issued_devices_are_as_capabilities_say", |scene| {
        let (kind, data) = isa::DAMAGED.2;
        let other = scene.of(Kind::Domain);
        scene.poke(other, WORD, kind.number().into());
        scene.poke(other, DATA, data);
    }),
];

/// What needs a second core.
const DAMAGES_ON_CORES: &[Damage] = &[
    ("each_thread_is_in_one_place", |scene| {
        // It runs on two cores.
        let k = &scene.pair.k;
        k.core_of(other_core()).set_thread(k, Some(scene.current()));
    }),
    ("ready_queues_are_linked", |scene| {
        scene
            .ready()
            .at(&scene.pair.k)
            .set_core(&scene.pair.k, other_core());
    }),
    ("threads_are_where_their_contexts_are", |scene| {
        scene
            .context()
            .at(&scene.pair.k)
            .set_core(&scene.pair.k, other_core());
    }),
    ("cores_are_asked_to_look", |scene| {
        scene.pair.k.machine.take_interrupted(other_core());
        let core = scene.pair.k.core_of(other_core());
        core.leave_undecided(&scene.pair.k);
    }),
    ("the_state_in_the_fpu_is_of_its_core", |scene| {
        let core = scene.pair.k.core_of(other_core());
        core.set_fpu_owner(&scene.pair.k, Some(scene.current()));
    }),
];

/// A core on which nothing has happened, of a kernel for several.
fn other_core() -> CoreId {
    CoreId::all().last().unwrap()
}

fn damages() -> impl Iterator<Item = &'static Damage> {
    let on_cores = DAMAGES_ON_CORES.iter().filter(|_| CORES > 1);
    DAMAGES.iter().chain(on_cores)
}

#[test]
fn damage_is_noticed_by_the_invariant_that_is_about_it() {
    for (name, damage) in damages() {
        let scene = Scene::new();
        let (_, invariant) = INVARIANTS.iter().find(|(other, _)| other == name).unwrap();
        assert_eq!(invariant(&scene.census()), Ok(()), "{name} before");
        damage(&scene);
        assert!(
            invariant(&scene.census()).is_err(),
            "{name} does not notice"
        );
    }
}

#[test]
fn every_invariant_is_shown_to_notice_something() {
    for (name, _) in INVARIANTS {
        let mut damages = DAMAGES.iter().chain(DAMAGES_ON_CORES);
        let shown = damages.any(|(other, _)| other == name);
        assert!(shown, "{name} is not shown to notice anything");
    }
}

#[test]
fn a_budget_that_changes_by_itself_is_noticed() {
    for change in [1, -1] {
        let scene = Scene::new();
        let mut budgets = Budgets::default();
        budgets.follow(&scene.census(), true).unwrap();
        budgets.follow(&scene.census(), false).unwrap();
        let context = scene.context().at(&scene.pair.k);
        let head = context.head();
        context.set_head(
            &scene.pair.k,
            Refill {
                amount: head.amount.checked_add_signed(change).unwrap(),
                ..head
            },
        );
        assert!(budgets.follow(&scene.census(), false).is_err());
    }
}
