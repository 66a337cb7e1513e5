//! Components: made, equipped, started.

use alloc::format;
use alloc::vec::Vec;
use core::ops::ControlFlow;

use sandglass::cap::{
    CNode, CPtr, Endpoint, FrameSize, IoApicPin, IrqHandler, Rights, SchedContext, SchedControl,
    SchedParams, Tcb, TimeSlice,
};
use sandglass::component::{Component, ComponentThread};
use sandglass::env::MemoryRegion;
use sandglass::thread::ThreadParams;
use sandglass::{arch, println, BootInfo, ErrorKind, Process, SetupError};
use sandglass_description::archive::Archive;
use sandglass_description::{
    self as description, Grant, Handler, Interrupt, Map, Object, Spawning, System, ThreadId,
    LAUNCHER,
};

use crate::failure::{Context, Failure};
use crate::objects::Objects;
use crate::restart::signals::Signals;
use crate::watch::{self, Watch};

/// A thread that was made.
pub struct Thread {
    tcb: Tcb,
    context: SchedContext,
    /// `None` for a main thread.
    added: Option<ComponentThread>,
}

impl Thread {
    pub const fn tcb(&self) -> Tcb {
        self.tcb
    }

    pub const fn context(&self) -> SchedContext {
        self.context
    }

    /// `None` for a main thread.
    pub const fn added(&self) -> Option<ComponentThread> {
        self.added
    }

    fn make(
        process: &mut Process,
        component: &mut Component,
        thread: &description::Thread,
        is_main: bool,
    ) -> Result<Self, SetupError> {
        let context = process
            .resources
            .sched_context(sched_params(&thread.time).size_bits())?;
        let added = if is_main {
            None
        } else {
            Some(component.add_thread(process, &thread.name, thread.stack_bytes)?)
        };
        Ok(Self {
            tcb: added.map_or(component.tcb(), ComponentThread::tcb),
            context,
            added,
        })
    }
}

/// Makes a component's own objects and memory, and its threads, in the description's order.
pub fn load(
    process: &mut Process,
    description: &description::Component,
    archive: &Archive<'_>,
) -> Result<(Component, Vec<Thread>), Failure> {
    let what = format!("cannot make the component `{}`", description.name);
    let elf = archive.blob(description.executable).context(&what)?;
    let mut component =
        Component::load(process, &description.name, elf, description.cspace_bits).context(&what)?;
    let threads = description
        .threads
        .iter()
        .enumerate()
        .map(|(number, thread)| Thread::make(process, &mut component, thread, number == 0))
        .collect::<Result<_, _>>()
        .context(&what)?;
    Ok((component, threads))
}

/// The work of launching, and all that it needs.
pub struct Launch<'a> {
    pub process: &'a mut Process,
    pub info: &'a BootInfo,
    pub system: &'a System,
    pub objects: &'a Objects,
    /// Of each component, in the description's order; the first is the main thread.
    pub threads: &'a [Vec<Thread>],
    /// Whether the kernel makes capabilities that can be called only.
    pub has_calls_only: bool,
    /// What components signal that can be started anew.
    pub signals: Option<&'a Signals>,
    /// Of each component.
    pub cnodes: Vec<CNode>,
    /// What components were granted: of each, in the description's order.
    pub granted: Vec<Vec<CPtr>>,
}

/// Whether the kernel makes capabilities that can be called only: Sandglass does, others of its ABI do
/// not.
pub fn has_calls_only(process: &mut Process, objects: &Objects) -> Result<bool, Failure> {
    let probe = process.resources.mint_call(objects.launcher, CALL, 0);
    match probe {
        Ok(probe) => {
            let deleted = process.resources.delete(probe);
            deleted.context("cannot delete a capability of its own")?;
            Ok(true)
        }
        Err(SetupError::Invocation(error)) if error.kind == ErrorKind::IllegalOperation => {
            println!(
                "launcher: this kernel has no capabilities that can be called only: every client can \
                 stop a server by a message that is no call"
            );
            Ok(false)
        }
        Err(error) => Err(error).context("cannot make a capability of its own"),
    }
}

/// Rights of who calls and is answered.
const CALL: Rights = Rights::WRITE.union(Rights::GRANT_REPLY);

impl<'a> Launch<'a> {
    /// Gives every component what the description grants it, and completes it.
    pub fn equip(&mut self, components: &mut [Component]) -> Result<(), Failure> {
        self.cnodes = components.iter().map(Component::cnode).collect();
        for ((component, description), index) in
            components.iter_mut().zip(&self.system.components).zip(0..)
        {
            self.equip_one(component, description, index)
                .context(format_args!("cannot equip `{}`", description.name))?;
        }
        Ok(())
    }

    fn equip_one(
        &mut self,
        component: &mut Component,
        description: &description::Component,
        index: u32,
    ) -> Result<(), Failure> {
        if let Some(tsc) = self.info.tsc() {
            component.set_tsc(tsc);
        }
        if self.system.trace.is_some() {
            component.set_traced();
        }
        if description.console {
            component
                .share_console(self.process)
                .context("the console")?;
        }
        let badge = watch::call_badge(index);
        let launcher = self.objects.launcher;
        self.grant_calls(component, LAUNCHER, launcher, CALL, badge)
            .context("the launcher's endpoint")?;
        for parameter in &description.parameters {
            component
                .set_parameter(&parameter.name, parameter.value)
                .context(format_args!("parameter `{}`", parameter.name))?;
        }
        for map in &description.maps {
            self.map(component, map)?;
        }
        let mut granted = Vec::new();
        for grant in &description.grants {
            let own_ready = self.grant_own_ready(component, description, index, grant)?;
            granted.push(match own_ready {
                Some(signal) => signal,
                None => self.grant(component, grant)?,
            });
        }
        self.granted.push(granted);
        if let Some(spawning) = description.spawning {
            self.give_spawning(component, spawning, index, description.threads.len())
                .context("cannot prepare the threads that it may make")?;
        }
        for (thread, number) in description.threads.iter().zip(0..) {
            let id = ThreadId {
                component: index,
                thread: number,
            };
            self.configure(component, thread, id)
                .context(format_args!("its thread `{}`", thread.name))?;
        }
        Ok(())
    }

    /// Lets a component make threads, whose faults arrive as those of a thread behind the described
    /// ones.
    fn give_spawning(
        &mut self,
        component: &mut Component,
        spawning: Spawning,
        index: u32,
        described: usize,
    ) -> Result<(), SetupError> {
        let badge = watch::badge(ThreadId {
            component: index,
            thread: described as u32,
        });
        let [.., faults] = Spawning::CAPABILITIES;
        component.grant_badged(self.process, faults, self.objects.launcher, CALL, badge)?;
        component.give_spawning(
            self.process,
            spawning.threads.into(),
            spawning.stack_bytes,
            spawning.priority,
        )
    }

    fn map(&mut self, component: &mut Component, map: &Map) -> Result<(), Failure> {
        let shared = self.objects.memory(map.memory)?;
        let rights = if map.writable {
            Rights::READ_WRITE
        } else {
            Rights::READ
        };
        let name = &self.system.memory[map.memory as usize].name;
        let what = format_args!("memory `{name}`");
        let region = component
            .map(
                self.process,
                shared.frames.iter().copied(),
                map.address,
                FrameSize::Small,
                rights,
                shared.attributes,
            )
            .context(what)?;
        let exact = MemoryRegion {
            len: shared.len,
            ..region
        };
        component.name_memory(name, exact).context(what)
    }

    /// What a thread signals when it is ready, of a component that can be started anew: a signal of the launcher's own, so
    /// that it can wait for all of them. Returns its capability if the grant is that.
    fn grant_own_ready(
        &mut self,
        component: &mut Component,
        description: &description::Component,
        index: u32,
        grant: &Grant,
    ) -> Result<Option<CPtr>, Failure> {
        let Object::Notification(notification) = grant.object else {
            return Ok(None);
        };
        let mut threads = (0..).zip(&description.threads);
        let thread = threads.find(|(_, thread)| thread.ready == Some(notification));
        let bit = thread.and_then(|(thread, _)| {
            let id = ThreadId {
                component: index,
                thread,
            };
            Some((self.signals?, self.signals?.ready(id)?))
        });
        let Some((signals, bit)) = bit else {
            return Ok(None);
        };
        let badge = Signals::badge(bit);
        let what = format_args!("capability `{}`", grant.name);
        component
            .grant_badged(
                self.process,
                &grant.name,
                signals.notification(),
                Rights::WRITE,
                badge,
            )
            .context(what)
            .map(Some)
    }

    fn grant(&mut self, component: &mut Component, grant: &Grant) -> Result<CPtr, Failure> {
        let objects = self.objects;
        let name = &grant.name;
        let rights = Rights(grant.rights);
        let what = format_args!("capability `{name}`");
        let granted = match grant.object {
            Object::Endpoint(index) if grant.calls_only => {
                let endpoint = objects.endpoint(index)?;
                self.grant_calls(component, name, endpoint, rights, grant.badge)
            }
            Object::Endpoint(index) => {
                let endpoint = objects.endpoint(index)?;
                component.grant_badged(self.process, name, endpoint, rights, grant.badge)
            }
            Object::Notification(index) => {
                let notification = objects.notification(index)?;
                component.grant_badged(self.process, name, notification, rights, grant.badge)
            }
            Object::Reply(index) => {
                component.grant(self.process, name, objects.reply(index)?, rights)
            }
            Object::Tcb(id) => component.grant(self.process, name, self.thread(id)?.tcb, rights),
            Object::SchedContext(id) => {
                component.grant(self.process, name, self.thread(id)?.context, rights)
            }
            Object::SchedControl(core) => {
                component.grant(self.process, name, self.control(core)?, rights)
            }
            Object::CNode(index) => {
                let cnode = self.cnodes.get(index as usize).copied();
                let cnode =
                    cnode.context("the description names a component that does not exist")?;
                component.grant(self.process, name, cnode, rights)
            }
            Object::Ports { first, last } => {
                let ports = self.process.resources.io_ports(first, last).context(what)?;
                component.grant(self.process, name, ports, rights)
            }
            Object::Interrupt(interrupt) => {
                let handler = self.interrupt(interrupt, what)?;
                component.grant(self.process, name, handler, rights)
            }
        };
        granted.context(what)
    }

    /// Lets a component call, and nothing else if the kernel knows how.
    fn grant_calls(
        &mut self,
        component: &mut Component,
        name: &str,
        endpoint: Endpoint,
        rights: Rights,
        badge: u64,
    ) -> Result<CPtr, SetupError> {
        if self.has_calls_only {
            component.grant_calls(self.process, name, endpoint, rights, badge)
        } else {
            component.grant_badged(self.process, name, endpoint, rights, badge)
        }
    }

    /// Makes the handler of an interrupt, which signals its notification from now on.
    fn interrupt(
        &mut self,
        interrupt: Interrupt,
        what: core::fmt::Arguments<'_>,
    ) -> Result<IrqHandler, Failure> {
        const SIGNAL: u64 = 1;
        let notification = self.objects.notification(interrupt.notification)?;
        let resources = &mut self.process.resources;
        let source = IoApicPin {
            ioapic: 0,
            pin: interrupt.pin.into(),
            level: interrupt.level_triggered,
            active_low: interrupt.active_low,
            vector: interrupt.vector.into(),
        };
        let handler = arch::device_irq(resources, source).context(what)?;
        let signal = resources
            .mint(notification, Rights::ALL, SIGNAL)
            .context(what)?;
        handler.set_notification(signal).context(what)?;
        Ok(handler)
    }

    fn configure(
        &mut self,
        component: &mut Component,
        thread: &description::Thread,
        id: ThreadId,
    ) -> Result<(), Failure> {
        let made = self.thread(id)?;
        let fault_handler = match thread.fault_handler {
            Some(handler) => self.handler(handler)?,
            None => self.badged(self.objects.launcher, watch::badge(id))?,
        };
        let timeout_handler = match thread.timeout_handler {
            Some(handler) => Some(self.handler(handler)?),
            None => None,
        };
        let params = ThreadParams {
            mcp: thread.mcp,
            fault_handler: Some(fault_handler),
            timeout_handler,
            ..ThreadParams::new(thread.priority, made.context)
        };
        let configured = match made.added {
            None => component.configure(self.process, params),
            Some(added) => component.configure_thread(self.process, added, params),
        };
        configured.context("configuring it")
    }

    fn handler(&mut self, handler: Handler) -> Result<Endpoint, Failure> {
        self.badged(self.objects.endpoint(handler.endpoint)?, handler.badge)
    }

    fn badged(&mut self, endpoint: Endpoint, badge: u64) -> Result<Endpoint, Failure> {
        let minted = self.process.resources.mint(endpoint, Rights::ALL, badge);
        minted.context("a handler's endpoint")
    }

    fn thread(&self, id: ThreadId) -> Result<&'a Thread, Failure> {
        self.threads
            .get(id.component as usize)
            .and_then(|threads| threads.get(id.thread as usize))
            .context("the description names a thread that does not exist")
    }

    fn control(&self, core: u32) -> Result<SchedControl, Failure> {
        let cores = self.info.cores();
        self.info.sched_control(core.into()).context(format_args!(
            "the system needs core {core}, but the machine has {cores} cores, counted from 0"
        ))
    }

    /// Starts all components, one after the other. Threads that say when they are ready are waited
    /// for, so that whoever comes later finds them serving. Breaks with the status if the system ends
    /// before all are started.
    pub fn start(&self, watch: &mut Watch<'_>) -> Result<ControlFlow<u8>, Failure> {
        let components = self.threads.iter().zip(&self.system.components);
        for (component, (threads, description)) in (0..).zip(components) {
            watch.first_starts(component);
            let threads = threads.iter().zip(&description.threads);
            for (thread, (made, described)) in (0..).zip(threads) {
                let id = ThreadId { component, thread };
                let started = self.start_thread(watch, id, made, described);
                let what = || match thread {
                    0 => format!("cannot start `{}`", description.name),
                    _ => format!("cannot start `{}/{}`", description.name, described.name),
                };
                let started = started.map_err(|failure| failure.within(what()))?;
                if started.is_break() {
                    return Ok(started);
                }
            }
            watch.first_started(component);
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Its time begins now, not when it was made.
    fn start_thread(
        &self,
        watch: &mut Watch<'_>,
        id: ThreadId,
        thread: &Thread,
        described: &description::Thread,
    ) -> Result<ControlFlow<u8>, Failure> {
        let control = self.control(described.time.core)?;
        control
            .configure(thread.context, sched_params(&described.time))
            .context("its time")?;
        thread.tcb.resume().context("its thread")?;
        watch.started(id);
        let Some(index) = described.ready else {
            return Ok(ControlFlow::Continue(()));
        };
        let ready = self.objects.notification(index)?;
        let waited = watch.until_ready(ready, id);
        let waited = waited.map_err(|never| Failure::of(&never))?;
        if waited.is_continue() && described.passive {
            let unbound = thread.context.unbind_tcb(thread.tcb);
            unbound.context("making it passive")?;
        }
        Ok(waited)
    }
}

const fn sched_params(time: &description::Time) -> SchedParams {
    SchedParams {
        time: TimeSlice {
            budget_us: time.budget_us,
            period_us: time.period_us,
        },
        extra_refills: time.extra_refills,
        badge: time.badge,
        sporadic: time.sporadic,
    }
}
