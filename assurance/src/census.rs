//! Everything that a kernel holds: the slots that are not empty, and the objects that their
//! capabilities name.
//!
//! The walk starts at what the kernel itself names (the current thread, the queues of the scheduler,
//! the slots of interrupts) and at the CNode that the root task began with ([`Anchor`]), and goes on
//! through every CNode and every thread that a capability names, and along derivation lists: so it
//! finds CNodes too that only their own slots name.

use std::cell::OnceCell;

use rustc_hash::{FxHashMap, FxHashSet};
use sandglass_kernel::arch::abi::object::asid::AsidPool;
use sandglass_kernel::arch::abi::object::table::Table;
use sandglass_kernel::cap::Capability;
use sandglass_kernel::inspect::SlotView;
use sandglass_kernel::mem::{self, Kind, Ref, Slot, Span, Tagged};
use sandglass_kernel::object::core::{Core, Queues};
use sandglass_kernel::object::domain::DOMAINS;
use sandglass_kernel::object::endpoint::Endpoint;
use sandglass_kernel::object::notification::Notification;
use sandglass_kernel::object::reply::Reply;
use sandglass_kernel::object::sched_context::SchedContext;
use sandglass_kernel::object::tcb::{Tcb, TcbSlot};
use sandglass_kernel::{CoreId, Kernel};
use sandglass_model::isa::IrqNumber;
use sandglass_model::state::{CNodeId, Level, SlotId, ThreadId, ThreadSlot};

pub use crate::isa::level;

/// The CNode that the root task began with. Its memory is in no untyped memory, hence never given
/// to anything else: looking at it is right even when its last capability is gone.
#[derive(Clone, Copy)]
pub struct Anchor {
    cnode: Tagged,
}

impl Anchor {
    /// The anchor of a kernel that has just booted.
    ///
    /// # Panics
    /// If no thread with a capability space runs.
    pub fn of(k: &Kernel) -> Anchor {
        let root = k.core().thread().expect("the root task runs");
        let cnode = mem::objects::tcb_slot(root, TcbSlot::CSpace)
            .at(k)
            .cap()
            .word();
        assert!(
            cnode.is(Kind::CNode),
            "the root task has a capability space"
        );
        Anchor { cnode }
    }

    /// Its name.
    pub fn id(self) -> CNodeId {
        CNodeId(self.cnode.address().get())
    }

    /// All its slots.
    pub fn slots(self) -> Span {
        Span::of(self.cnode).expect("it names a CNode")
    }
}

/// A slot that is not empty (or whose links are not).
#[derive(Clone, Copy)]
pub struct Site {
    pub id: SlotId,
    pub slot: Ref<Slot>,
    pub view: SlotView,
}

/// What a kernel holds.
pub struct Census<'k> {
    pub k: &'k Kernel,
    /// By CNode and thread, in the order of their slots.
    pub sites: Vec<Site>,
    site_of: FxHashMap<u64, usize>,
    /// The index of the site behind each in its derivation list, and the lists; once somebody asks.
    next: OnceCell<Vec<Option<usize>>>,
    lists: OnceCell<Lists>,
    /// Slots that a derivation list leads to, but that belong to nothing.
    pub homeless: Vec<Ref<Slot>>,
    /// (first slot's address, radix).
    pub cnodes: Vec<(u64, u8)>,
    pub threads: Vec<Ref<Tcb>>,
    pub endpoints: Vec<Ref<Endpoint>>,
    pub notifications: Vec<Ref<Notification>>,
    pub replies: Vec<Ref<Reply>>,
    /// With log2 of their bytes.
    pub contexts: Vec<(Ref<SchedContext>, u8)>,
    pub tables: Vec<(Ref<Table>, Level)>,
    /// With their numbers.
    pub pools: Vec<(Ref<AsidPool>, u8)>,
    /// Capabilities to objects whose deletion has begun: the last state was not settled.
    pub zombies: usize,
    objects: FxHashSet<u64>,
    spans: FxHashSet<u64>,
}

/// Derivation lists.
struct Lists {
    /// Indices of sites, list by list.
    order: Vec<usize>,
    /// Where each list ends there.
    ends: Vec<usize>,
}

/// Whose slots a span has.
#[derive(Clone, Copy)]
enum Owner {
    CNode(CNodeId),
    Thread(ThreadId),
    Irqs,
}

impl Owner {
    fn id(self, i: u64) -> SlotId {
        match self {
            Owner::CNode(cnode) => SlotId::CNode(cnode, i),
            Owner::Thread(thread) => SlotId::Thread(thread, THREAD_SLOTS[i as usize].1),
            Owner::Irqs => SlotId::Irq(i as IrqNumber),
        }
    }
}

/// The slots of a thread, in their order.
pub const THREAD_SLOTS: [(TcbSlot, ThreadSlot); 5] = [
    (TcbSlot::CSpace, ThreadSlot::CSpace),
    (TcbSlot::VSpace, ThreadSlot::VSpace),
    (TcbSlot::Buffer, ThreadSlot::Buffer),
    (TcbSlot::FaultHandler, ThreadSlot::FaultHandler),
    (TcbSlot::TimeoutHandler, ThreadSlot::TimeoutHandler),
];

/// The words of a slot.
const SLOT_WORDS: usize = 4;
/// The words of many slots, which are looked at together: most of them are empty.
const CHUNK: usize = 64 * SLOT_WORDS;

fn is_used(words: &[u64]) -> bool {
    words.iter().fold(0, |used, word| used | word) != 0
}

impl<'k> Census<'k> {
    /// Walks through `k`.
    pub fn of(k: &'k Kernel, anchor: Anchor) -> Census<'k> {
        let mut census = Census {
            k,
            sites: Vec::with_capacity(512),
            site_of: FxHashMap::default(),
            next: OnceCell::new(),
            lists: OnceCell::new(),
            homeless: Vec::new(),
            cnodes: Vec::new(),
            threads: Vec::new(),
            endpoints: Vec::new(),
            notifications: Vec::new(),
            replies: Vec::new(),
            contexts: Vec::new(),
            tables: Vec::new(),
            pools: Vec::new(),
            zombies: 0,
            objects: FxHashSet::default(),
            spans: FxHashSet::default(),
        };
        census.visit(Owner::CNode(anchor.id()), anchor.slots());
        if let Some(slots) = k.irqs.inspect_slots() {
            census.visit(Owner::Irqs, slots);
        }
        for thread in scheduled(k) {
            census.visit_thread(thread);
        }
        census.follow();
        census
    }

    /// The slot at `slot`, if it is not empty.
    pub fn site(&self, slot: Ref<Slot>) -> Option<&Site> {
        self.index(slot).map(|i| &self.sites[i])
    }

    /// Index of the slot among [`Self::sites`].
    pub fn index(&self, slot: Ref<Slot>) -> Option<usize> {
        self.site_of.get(&slot.address().get()).copied()
    }

    /// By index of a site, that of the one behind it in its derivation list.
    pub fn next(&self) -> &[Option<usize>] {
        self.next.get_or_init(|| {
            let next = |site: &Site| self.index(site.view.next?);
            self.sites.iter().map(next).collect()
        })
    }

    /// The derivation lists that begin somewhere, as indices of sites, each in its order: of one that turns back on itself,
    /// one more than there are sites.
    pub fn lists(&self) -> impl Iterator<Item = &[usize]> {
        let Lists { order, ends } = self.lists.get_or_init(|| self.follow_lists());
        let starts = [0].into_iter().chain(ends.iter().copied());
        starts.zip(ends).map(|(start, &end)| &order[start..end])
    }

    fn follow_lists(&self) -> Lists {
        let next = self.next();
        let mut lists = Lists {
            order: Vec::with_capacity(self.sites.len()),
            ends: Vec::with_capacity(self.sites.len()),
        };
        for (first, site) in self.sites.iter().enumerate() {
            if site.view.prev.is_none() {
                let list = std::iter::successors(Some(first), |&at| next[at]);
                lists.order.extend(list.take(self.sites.len() + 1));
                lists.ends.push(lists.order.len());
            }
        }
        lists
    }

    /// Whether a capability names the object of `kind` at `address`.
    pub fn has(&self, kind: Kind, address: u64) -> bool {
        self.objects.contains(&key(kind, address))
    }

    /// Looks at every site, and at what its capability leads to, until nothing new comes.
    fn follow(&mut self) {
        let mut strays: Vec<Ref<Slot>> = Vec::new();
        let mut at = 0;
        loop {
            while let Some(site) = self.sites.get(at).copied() {
                at += 1;
                self.name(site.view.cap);
                strays.extend([site.view.prev, site.view.next].into_iter().flatten());
            }
            let mut found = false;
            for slot in std::mem::take(&mut strays) {
                if self.index(slot).is_none() {
                    // What owns it may be named by its own capability, or by its neighbours'.
                    let view = slot.at(self.k).inspect();
                    let before = self.sites.len();
                    self.name(view.cap);
                    found |= self.sites.len() > before;
                    if self.homeless.iter().all(|&other| other != slot) {
                        self.homeless.push(slot);
                        strays.extend([view.prev, view.next].into_iter().flatten());
                        found = true;
                    }
                }
            }
            if !found {
                break;
            }
        }
        let site_of = &self.site_of;
        self.homeless
            .retain(|slot| !site_of.contains_key(&slot.address().get()));
    }

    /// Records the object that `cap` names.
    fn name(&mut self, cap: Capability) {
        let word = cap.word();
        if word.address().get() == 0 {
            return;
        }
        if !self.objects.insert(key(cap.kind(), word.address().get())) {
            return;
        }
        let address = word.address().get();
        match cap.kind() {
            Kind::Endpoint => self.endpoints.extend(word.get::<Endpoint>()),
            Kind::Notification => self.notifications.extend(word.get::<Notification>()),
            Kind::Reply => self.replies.extend(word.get::<Reply>()),
            Kind::Tcb => {
                if let Some(thread) = word.get::<Tcb>() {
                    self.threads.push(thread);
                    self.visit_thread(thread);
                }
            }
            Kind::CNode | Kind::Zombie => {
                self.zombies += usize::from(cap.is(Kind::Zombie));
                let Some(slots) = Span::of(word) else { return };
                if cap.is(Kind::CNode) {
                    let radix = slots.length().trailing_zeros() as u8;
                    self.cnodes.push((address, radix));
                }
                self.visit(Owner::CNode(CNodeId(address)), slots);
            }
            Kind::SchedContext => {
                let bits = (word.shape() & 0x3f) as u8;
                self.contexts
                    .extend(word.get::<SchedContext>().map(|context| (context, bits)));
            }
            Kind::AsidPool => self
                .pools
                .extend(word.get().map(|pool| (pool, cap.pool_number() as u8))),
            kind => {
                if let (Some(level), Some(table)) = (
                    level(kind),
                    sandglass_kernel::arch::abi::object::table::named(word),
                ) {
                    self.tables.push((table, level));
                }
            }
        }
    }

    fn visit_thread(&mut self, thread: Ref<Tcb>) {
        let address = thread.address().get();
        if self.spans.insert(address) {
            for (i, (slot, _)) in THREAD_SLOTS.into_iter().enumerate() {
                let slot = mem::objects::tcb_slot(thread, slot);
                self.look(Owner::Thread(ThreadId(address)).id(i as u64), slot);
            }
        }
    }

    /// Looks at all slots of a span, most of which are empty.
    fn visit(&mut self, owner: Owner, slots: Span) {
        let Some(first) = slots.slot(0) else { return };
        if !self.spans.insert(first.address().get()) {
            return;
        }
        let words = slots.length() * SLOT_WORDS as u64;
        let used: Vec<u64> = self
            .k
            .machine
            .look_at(first.address().get(), words, |words| {
                let chunks = words.chunks(CHUNK).zip((0..).step_by(CHUNK / SLOT_WORDS));
                let used = chunks.filter(|(chunk, _)| is_used(chunk));
                used.flat_map(|(chunk, first)| {
                    let slots = chunk.chunks(SLOT_WORDS).zip(first..);
                    slots.filter(|(slot, _)| is_used(slot)).map(|(_, i)| i)
                })
                .collect()
            });
        for i in used {
            let slot = slots.slot(i).expect("within the span");
            self.look(owner.id(i), slot);
        }
    }

    fn look(&mut self, id: SlotId, slot: Ref<Slot>) {
        let view = slot.at(self.k).inspect();
        let linked = view.prev.is_some() || view.next.is_some();
        if view.cap.is_null() && !linked {
            return;
        }
        self.site_of.insert(slot.address().get(), self.sites.len());
        self.sites.push(Site { id, slot, view });
    }
}

fn key(kind: Kind, address: u64) -> u64 {
    // Objects are aligned to 16 bytes and lie below 2^48.
    address << 8 | u64::from(kind.number())
}

/// The cores of a kernel, with their numbers.
pub fn cores(k: &Kernel) -> impl Iterator<Item = (CoreId, &Core)> {
    CoreId::all().map(|id| (id, k.core_of(id)))
}

/// The queues of all cores and domains, with the numbers of both.
pub fn queues(k: &Kernel) -> impl Iterator<Item = (CoreId, u8, Queues<'_>)> {
    let domains = || 0..DOMAINS as u8;
    cores(k).flat_map(move |(id, core)| domains().map(move |it| (id, it, core.of(it))))
}

/// Every thread that the scheduler names.
pub fn scheduled(k: &Kernel) -> Vec<Ref<Tcb>> {
    let mut threads = Vec::new();
    for (_, core) in cores(k) {
        threads.extend(core.thread().into_iter().chain(core.fpu_owner()));
    }
    for (_, _, queues) in queues(k) {
        for priority in 0..=u8::MAX {
            threads.extend(queues.ready.first_of(priority));
            threads.extend(queues.release.of(priority).first());
        }
    }
    threads
}
