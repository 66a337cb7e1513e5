//! Long deletions, prepared event by event: of a full CNode, or of memory with many capabilities to what is
//! in it, and with the last one to an endpoint where somebody waits who is above whoever deletes. By chance
//! alone nothing that is deleted takes so many steps that the kernel looks at the clock on the way.

use sandglass_abi::boot::slot;
use sandglass_abi::invocation as label;
use sandglass_abi::message::MessageInfo;
use sandglass_abi::object as types;
use sandglass_abi::syscall::Syscall;
use sandglass_model::state::{
    Cap, Endpoint, EndpointId, Held, SchedContext, SlotId, Thread, ThreadState,
};

use super::view::Node;
use super::{Generator, Invocation, View};
use crate::script::{Action, Call};
use crate::world;

/// Size of the CNode, in bits.
const RADIX: u8 = 4;
/// Most capabilities to be deleted besides.
const MOST: u64 = (1 << RADIX) - 2;
/// Actions after which a deletion that could not be prepared is given up.
const MOST_ACTIONS: u32 = 48;

/// What contains all that is to be deleted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Container {
    /// A CNode, to be deleted.
    Node,
    /// Memory in which the endpoint is, to be revoked.
    Memory,
}

/// What is being prepared.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    container: Container,
    /// Slots of the root CNode for the container and for the endpoint.
    at: u64,
    endpoint: u64,
    /// Capabilities to be deleted besides.
    copies: u64,
    /// They are there, and the endpoint is where it is to be.
    is_full: bool,
    /// It has been said how long the kernel takes.
    is_slow: bool,
    /// Actions left.
    actions: u32,
}

impl Generator {
    /// The next step to a long deletion, if one is being prepared; now and then one begins.
    pub(super) fn long_deletion(&mut self, view: &View) -> Option<Action> {
        let root = *view.nodes.iter().find(|node| node.cptr == slot::CNODE)?;
        let mut plan = match self.plan.take() {
            Some(plan) => plan,
            None if self.chance(4) => self.begin(view, root)?,
            None => return None,
        };
        plan.actions = plan.actions.checked_sub(1)?;
        if self.chance(10) {
            // Something else happens meanwhile.
            self.plan = Some(plan);
            return None;
        }
        let (action, is_last) = self.step(view, root, &mut plan)?;
        self.plan = (!is_last).then_some(plan);
        Some(action)
    }

    fn begin(&mut self, view: &View, root: Node) -> Option<Plan> {
        let free = Self::free(view, root);
        Some(Plan {
            container: self.choose(&[Container::Node, Container::Memory])?,
            at: self.choose(&free)?,
            endpoint: self.choose(&free)?,
            copies: self.rng.u64(0..=MOST),
            is_full: false,
            is_slow: false,
            actions: MOST_ACTIONS,
        })
    }

    /// What is next, and whether that is the deletion. `None` if it cannot be prepared any further.
    fn step(&mut self, view: &View, root: Node, plan: &mut Plan) -> Option<(Action, bool)> {
        let Some(container) = Self::held(view, root, plan.at) else {
            return Some((self.make_container(view, plan)?, false));
        };
        if !plan.is_full {
            let endpoint = Self::held(view, root, plan.endpoint).map(|held| held.cap);
            let action = match endpoint {
                Some(Cap::Endpoint { object, .. }) if Self::is_awaited(view, object) => {
                    self.fill_up(view, root, container.cap, object, plan)?
                }
                Some(Cap::Endpoint { .. }) => self.bring_somebody(view, plan.endpoint)?,
                Some(_) => return None,
                None => {
                    let memory = match plan.container {
                        Container::Memory => plan.at,
                        Container::Node => self.memory(view)?,
                    };
                    self.make(view, memory, plan.endpoint, (types::ENDPOINT, 0))
                }
            };
            return Some((action, false));
        }
        if self.delays && !plan.is_slow {
            plan.is_slow = true;
            let mut delays = vec![0; 1 + self.rng.usize(0..3)];
            delays.push(self.rest_of_budget(view.state)?);
            return Some((Action::Delays(delays), false));
        }
        let label = match plan.container {
            Container::Node => label::CNODE_DELETE,
            Container::Memory => label::CNODE_REVOKE,
        };
        let (index, depth) = root.address(plan.at);
        let action = self.of_node(view, root, label, vec![index, depth]);
        Some((action, true))
    }

    /// Slots of the root CNode that scripts may use, and that are empty.
    fn free(view: &View, root: Node) -> Vec<u64> {
        world::FREE.filter(|&i| view.is_empty(root, i)).collect()
    }

    fn held<'s>(view: &View<'s>, node: Node, i: u64) -> Option<&'s Held> {
        view.state.caps.slots.get(&SlotId::CNode(node.object, i))
    }

    /// Memory with room for some small objects, maybe.
    fn memory(&mut self, view: &View) -> Option<u64> {
        self.pick(view, |cap| {
            matches!(
                cap,
                Cap::Untyped {
                    bits: 10..=14,
                    device: false,
                    ..
                }
            )
        })
    }

    fn make_container(&mut self, view: &View, plan: &Plan) -> Option<Action> {
        let memory = self.memory(view)?;
        let kind = match plan.container {
            Container::Node => (types::CNODE, RADIX.into()),
            Container::Memory => (types::UNTYPED, 7),
        };
        Some(self.make(view, memory, plan.at, kind))
    }

    /// Makes an object, of a type and a size, in a slot of the root CNode.
    fn make(&mut self, view: &View, memory: u64, slot: u64, (object, size): (u64, u64)) -> Action {
        let invocation = Invocation {
            cap: memory,
            label: label::UNTYPED_RETYPE,
            words: vec![object, size, 0, 0, slot, 1],
            caps: vec![slot::CNODE],
        };
        self.send(view, invocation)
    }

    fn of_node(&mut self, view: &View, node: Node, label: u64, words: Vec<u64>) -> Action {
        let caps = match label {
            label::CNODE_DELETE | label::CNODE_REVOKE => vec![],
            _ => vec![slot::CNODE],
        };
        let invocation = Invocation {
            cap: node.cptr,
            label,
            words,
            caps,
        };
        self.send(view, invocation)
    }

    /// The context of `thread`, if that is one with a budget.
    fn budget_of<'s>(view: &View<'s>, thread: &Thread) -> Option<&'s SchedContext> {
        let context = view.state.contexts.get(&thread.context?)?;
        (context.max_refills > 0 && context.period > 0).then_some(context)
    }

    /// Whether somebody waits at the endpoint who is above the current thread, which has a budget to
    /// exceed.
    fn is_awaited(view: &View, endpoint: EndpointId) -> bool {
        let s = view.state;
        let here = &s.threads[&view.thread];
        let is_above = |it: &Thread| it.priority > here.priority && it.context.is_some();
        match s.endpoints.get(&endpoint) {
            Some(Endpoint::Receivers(waiting)) => {
                waiting.iter().any(|it| is_above(&s.threads[it]))
                    && Self::budget_of(view, here).is_some()
            }
            _ => false,
        }
    }

    /// The current thread waits at the endpoint, if somebody below can go on; or somebody else is started
    /// who may.
    fn bring_somebody(&mut self, view: &View, endpoint: u64) -> Option<Action> {
        let s = view.state;
        let here = &s.threads[&view.thread];
        let is_near = |it: &Thread| it.core == here.core && Self::budget_of(view, it).is_some();
        let is_below = |it: &Thread| it.priority < here.priority && it.state.is_runnable();
        if self.chance(70) && s.threads.values().any(|it| is_below(it) && is_near(it)) {
            let idle = |cap: &Cap| match cap {
                Cap::Reply { object, .. } => {
                    s.replies.get(object).is_some_and(|it| it.thread.is_none())
                }
                _ => false,
            };
            return Some(Action::Call(Call {
                number: Syscall::Recv as i64,
                cap: endpoint,
                reply: self.pick(view, idle)?,
                info: MessageInfo::new(0, 0, 0, 0).raw(),
                ..Call::default()
            }));
        }
        let can_start = |cap: &Cap| {
            view.thread_of(*cap).is_some_and(|it| {
                !matches!(it.state, ThreadState::Running | ThreadState::Restart) && is_near(it)
            })
        };
        let invocation = Invocation {
            cap: self.pick(view, can_start)?,
            label: label::TCB_RESUME,
            ..Invocation::default()
        };
        Some(self.send(view, invocation))
    }

    /// One capability more that is to be deleted; in the end the endpoint's goes into the CNode.
    fn fill_up(
        &mut self,
        view: &View,
        root: Node,
        container: Cap,
        endpoint: EndpointId,
        plan: &mut Plan,
    ) -> Option<Action> {
        let (from, from_depth) = root.address(plan.endpoint);
        if plan.container == Container::Memory {
            let is_copy = |held: &&Held| matches!(held.cap, Cap::Endpoint { object, .. } if object == endpoint);
            let copies = view.state.caps.slots.values().filter(is_copy).count() as u64;
            plan.is_full = copies >= plan.copies;
            let to = self.choose(&Self::free(view, root))?;
            let (to, depth) = root.address(to);
            let words = vec![to, depth, from, from_depth, self.rng.u64(1..16)];
            return Some(self.of_node(view, root, label::CNODE_COPY, words));
        }
        let Cap::CNode { object, .. } = container else {
            return None;
        };
        let node = *view.nodes.iter().find(|node| node.object == object)?;
        let slots = 0..1 << RADIX;
        let empty: Vec<u64> = slots.filter(|&i| view.is_empty(node, i)).collect();
        let (to, depth) = node.address(self.choose(&empty)?);
        plan.is_full = (1 << RADIX) - empty.len() as u64 >= plan.copies;
        if plan.is_full {
            let words = vec![to, depth, from, from_depth];
            return Some(self.of_node(view, node, label::CNODE_MOVE, words));
        }
        let copied = self.rng.u64(world::FIRST..world::FREE.start);
        let (from, from_depth) = root.address(copied);
        let words = vec![to, depth, from, from_depth, self.rng.u64(0..16)];
        Some(self.of_node(view, node, label::CNODE_COPY, words))
    }
}
