//! Components: programs in their own CSpace and address space, made of an ELF image.
//!
//! The loader makes a component, grants it capabilities and memory under names, and starts it; the
//! component finds them in its [`Environment`](crate::Environment). It holds nothing else.

mod memory;
mod spawning;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use sandglass_abi::cnode::LOOKUP_DEPTH;

use crate::arch;
use crate::cap::{
    Attributes, CNode, CPtr, Capability, Endpoint, Frame, FrameSize, GuardData, IoPort, Rights,
    SchedArguments, Slot, Tcb,
};
use crate::console::Output;
use crate::context::UserContext;
use crate::env::{EnvironmentBuilder, MemoryRegion, ENVIRONMENT_BYTES};
use crate::image::{Image, PAGE};
use crate::process::Process;
use crate::resources::SetupError;
use crate::thread::{self, ThreadParams};
use crate::time::Tsc;
use crate::uart::Uart;
use crate::vspace::VSpace;
use memory::Pages;

/// Where memory is mapped that was given no address: above any image.
pub const FIRST_SHARED: u64 = 0x10_0000_0000;

/// A component that is being made, or was.
#[derive(Clone)]
pub struct Component {
    name: String,
    tcb: Tcb,
    vspace: VSpace,
    cnode: CNode,
    radix: u32,
    next_slot: u64,
    next_address: u64,
    entry: u64,
    thread_start: Option<u64>,
    environment: EnvironmentBuilder,
    environment_address: u64,
    environment_frames: Vec<Frame>,
    buffer_page: (u64, Frame),
    /// Its image and its threads' stacks.
    pages: Pages,
    /// Slots with the memory of threads that it may make.
    spawning: Vec<u64>,
}

/// A thread of a component beside its first.
#[derive(Clone, Copy, Debug)]
pub struct ComponentThread {
    tcb: Tcb,
    buffer_page: (u64, Frame),
}

impl ComponentThread {
    pub const fn tcb(self) -> Tcb {
        self.tcb
    }
}

impl Component {
    /// Radix of a component's CNode: 255 capabilities.
    pub const DEFAULT_RADIX: u32 = 8;

    /// Makes the component `name` of an ELF image: address space, CNode of 2^`radix` slots, TCB.
    pub fn load(
        process: &mut Process,
        name: &str,
        elf: &[u8],
        radix: u32,
    ) -> Result<Self, SetupError> {
        let image = Image::parse(elf)?;
        let vspace = VSpace::new(&mut process.resources)?;
        let pages = load_image(process, vspace, &image)?;
        // A page that stays unmapped, the environment, a page that stays unmapped, the buffer.
        let environment_address = image.end() + PAGE;
        let buffer_address = environment_address + ENVIRONMENT_BYTES as u64 + PAGE;
        let environment_frames = (environment_address..)
            .step_by(PAGE as usize)
            .take(ENVIRONMENT_BYTES / PAGE as usize)
            .map(|address| map_page(process, vspace, address, Rights::READ))
            .collect::<Result<_, _>>()?;
        let buffer_frame = map_page(process, vspace, buffer_address, Rights::READ_WRITE)?;
        Ok(Self {
            name: name.into(),
            tcb: process.resources.tcb()?,
            vspace,
            cnode: process.resources.cnode(radix)?,
            radix,
            next_slot: 1,
            next_address: FIRST_SHARED,
            entry: image.entry(),
            thread_start: image.thread_start(),
            environment: EnvironmentBuilder::new(name, buffer_address),
            environment_address,
            environment_frames,
            buffer_page: (buffer_address, buffer_frame),
            pages,
            spawning: Vec::new(),
        })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub const fn tcb(&self) -> Tcb {
        self.tcb
    }

    pub const fn vspace(&self) -> VSpace {
        self.vspace
    }

    /// The frame of the page of its image, or of a stack, at `address`.
    pub fn frame_at(&self, address: u64) -> Option<Frame> {
        self.pages.at(address)
    }

    /// All pages of its image, its stacks and its IPC buffers, with their frames; those that were mapped for it by
    /// [`Self::map`] are not among them.
    pub fn own_frames(&self) -> impl Iterator<Item = (u64, Frame)> + '_ {
        self.pages.iter().chain([self.buffer_page])
    }

    /// The registers that its first thread starts with.
    pub fn start_context(&self) -> UserContext {
        // The program sets up its own stack and thread block.
        UserContext::start(self.entry, 0, self.environment_address, 0)
    }

    /// The registers that another thread of it starts with.
    pub fn thread_start_context(&self, thread: ComponentThread) -> UserContext {
        let (buffer_address, _) = thread.buffer_page;
        let start = self.thread_start.unwrap_or_default();
        UserContext::start(start, 0, thread::prepared_at(buffer_address), 0)
    }

    /// Grants a copy of a capability with at most the rights given.
    pub fn grant<C: Capability>(
        &mut self,
        process: &Process,
        name: &str,
        capability: C,
        rights: Rights,
    ) -> Result<CPtr, SetupError> {
        let source = process.resources.slot_of(capability);
        self.fill(name, |slot| slot.copy_from(source, rights))
    }

    /// Grants an endpoint or notification with a badge; `capability` must be unbadged.
    pub fn grant_badged<C: Capability>(
        &mut self,
        process: &Process,
        name: &str,
        capability: C,
        rights: Rights,
        badge: u64,
    ) -> Result<CPtr, SetupError> {
        let source = process.resources.slot_of(capability);
        self.fill(name, |slot| slot.mint_from(source, rights, badge))
    }

    /// As [`Self::grant_badged`], of an endpoint that the component can call, and not send to: what it is
    /// granted to brings its time along whenever it is heard.
    ///
    /// # Errors
    /// IllegalOperation also if the kernel has no such capabilities.
    pub fn grant_calls(
        &mut self,
        process: &Process,
        name: &str,
        endpoint: Endpoint,
        rights: Rights,
        badge: u64,
    ) -> Result<CPtr, SetupError> {
        let source = process.resources.slot_of(endpoint);
        self.fill(name, |slot| slot.mint_call_from(source, rights, badge))
    }

    /// Lets the component print to the serial port: grants it the port.
    pub fn grant_serial_console(
        &mut self,
        process: &Process,
        port: IoPort,
    ) -> Result<(), SetupError> {
        let pointer = self.grant(process, "console", port, Rights::ALL)?;
        self.environment
            .set_console(Output::Serial(IoPort::from_cptr(pointer)));
        Ok(())
    }

    /// Lets the component print where this program prints now.
    pub fn share_console(&mut self, process: &mut Process) -> Result<(), SetupError> {
        match crate::console::output() {
            Output::Serial(port) => self.grant_serial_console(process, port)?,
            Output::Mapped(port) => self.map_console(process, port)?,
            output => self.environment.set_console(output),
        }
        self.share_screen(process)
    }

    /// Maps the registers of the serial port `port`, which every component that prints has, and uses for whole bytes.
    fn map_console(&mut self, process: &mut Process, port: Uart) -> Result<(), SetupError> {
        let Some(registers) = process.console() else {
            self.environment.set_console(Output::Silent);
            return Ok(());
        };
        let region = self.map(
            process,
            [registers],
            None,
            FrameSize::Small,
            Rights::READ_WRITE,
            Attributes::Uncached,
        )?;
        // SAFETY: just mapped for good; it is used in the component alone.
        let port = unsafe { Uart::at(region.address, port.kind()) };
        self.environment.set_console(Output::Mapped(port));
        Ok(())
    }

    /// Lets the component draw where this program draws, if it does.
    fn share_screen(&mut self, process: &mut Process) -> Result<(), SetupError> {
        let Some(screen) = process.screen().cloned() else {
            return Ok(());
        };
        let rights = Rights::READ_WRITE;
        let pixels = self.map(
            process,
            screen.frames.iter().copied(),
            None,
            FrameSize::Large,
            rights,
            Attributes::WriteCombining,
        )?;
        let cursor = self.map(
            process,
            [screen.cursor],
            None,
            FrameSize::Small,
            rights,
            Attributes::WriteBack,
        )?;
        self.environment
            .set_screen(screen.at(pixels.address, cursor.address));
        Ok(())
    }

    /// Maps frames, one after the other, into the component and names the memory; returns where it
    /// is. The frames may be mapped elsewhere too: copies of the capabilities are used.
    pub fn grant_memory(
        &mut self,
        process: &mut Process,
        name: &str,
        frames: impl IntoIterator<Item = Frame>,
        size: FrameSize,
        rights: Rights,
        attributes: Attributes,
    ) -> Result<MemoryRegion, SetupError> {
        let region = self.map(process, frames, None, size, rights, attributes)?;
        self.name_memory(name, region)?;
        Ok(region)
    }

    /// As [`Self::grant_memory`], without a name, and at a given address, where nothing may be yet
    /// and which must lie below [`FIRST_SHARED`]; or with `None` where there is room.
    pub fn map(
        &mut self,
        process: &mut Process,
        frames: impl IntoIterator<Item = Frame>,
        address: Option<u64>,
        size: FrameSize,
        rights: Rights,
        attributes: Attributes,
    ) -> Result<MemoryRegion, SetupError> {
        let none = SetupError::NoAddresses {
            bytes: size.bytes(),
        };
        let room = || self.next_address.checked_next_multiple_of(size.bytes());
        let start = address.or_else(room).ok_or(none)?;
        let mut region = MemoryRegion {
            address: start,
            len: 0,
        };
        for frame in frames {
            let copy = process.resources.copy(frame, Rights::ALL)?;
            let vaddr = start + region.len;
            self.vspace
                .map(&mut process.resources, copy, vaddr, rights, attributes)?;
            region.len += size.bytes();
        }
        if address.is_none() {
            self.next_address = start + region.len + PAGE;
        }
        Ok(region)
    }

    /// Tells the component where memory is.
    pub fn name_memory(&mut self, name: &str, region: MemoryRegion) -> Result<(), SetupError> {
        Ok(self.environment.add_memory(name, region)?)
    }

    /// Adds a thread with `stack_bytes` of stack, a multiple of the page size. The component finds
    /// it as [`DescribedThread`](crate::described::DescribedThread) `name`, to tell it what to do;
    /// [`Self::configure_thread`] completes it.
    pub fn add_thread(
        &mut self,
        process: &mut Process,
        name: &str,
        stack_bytes: u64,
    ) -> Result<ComponentThread, SetupError> {
        let pages = stack_bytes.div_ceil(PAGE) + 1;
        let mut frames = Vec::new();
        for _ in 0..pages {
            frames.push(process.resources.frame(FrameSize::Small)?);
        }
        let buffer_frame = frames[frames.len() - 1];
        let stack = self.grant_memory(
            process,
            &format!("{name}.stack"),
            frames.iter().copied(),
            FrameSize::Small,
            Rights::READ_WRITE,
            Attributes::WriteBack,
        )?;
        for (frame, page) in frames
            .into_iter()
            .zip((stack.address..).step_by(PAGE as usize))
        {
            self.pages.add(page, frame);
        }
        let tcb = process.resources.tcb()?;
        let buffer_address = stack.address + stack.len - PAGE;
        let start = self.thread_start.ok_or(SetupError::NoThreadStart)?;
        let prepared = thread::prepared_at(buffer_address);
        let context = UserContext::start(start, 0, prepared, 0);
        tcb.write_registers(&context, false)?;
        Ok(ComponentThread {
            tcb,
            buffer_page: (buffer_address, buffer_frame),
        })
    }

    /// Tells the component a number.
    pub fn set_parameter(&mut self, name: &str, value: u64) -> Result<(), SetupError> {
        Ok(self.environment.add_parameter(name, value)?)
    }

    /// Tells the component the frequency of the time-stamp counter.
    pub fn set_tsc(&mut self, tsc: Tsc) {
        self.environment.set_tsc(tsc);
    }

    /// Lets the component make marks in the trace of the system.
    pub fn set_traced(&mut self) {
        self.environment.set_traced();
    }

    /// Completes the component: it runs once [`Self::start`]ed. Nothing can be granted by name
    /// after this. The stack size among the parameters does not matter: a component's program
    /// brings its own.
    pub fn configure(
        &mut self,
        process: &mut Process,
        params: ThreadParams,
    ) -> Result<(), SetupError> {
        let pages = self.environment.as_bytes().chunks_exact(PAGE as usize);
        for (&frame, content) in self.environment_frames.iter().zip(pages) {
            process
                .space
                .fill_frame(&mut process.resources, frame, |page| {
                    page.copy_from_slice(content);
                })?;
        }
        let first = ComponentThread {
            tcb: self.tcb,
            buffer_page: self.buffer_page,
        };
        self.configure_thread(process, first, params)?;
        Ok(self.tcb.write_registers(&self.start_context(), false)?)
    }

    /// Gives a thread of this component its CSpace, address space and parameters. It runs once it
    /// has been told what to do and its TCB is resumed.
    pub fn configure_thread(
        &self,
        process: &Process,
        thread: ComponentThread,
        params: ThreadParams,
    ) -> Result<(), SetupError> {
        let guard = GuardData::new(0, LOOKUP_DEPTH - self.radix);
        let vspace = self.vspace.root();
        thread
            .tcb
            .configure(self.cnode, guard, vspace, Some(thread.buffer_page))?;
        thread.tcb.set_sched_params(
            process.authority(),
            SchedArguments {
                mcp: params.mcp,
                priority: params.priority,
                sched_context: params.sched_context,
                fault_handler: params.fault_handler,
            },
        )?;
        if params.timeout_handler.is_some() {
            thread.tcb.set_timeout_endpoint(params.timeout_handler)?;
        }
        Ok(())
    }

    /// Its CSpace: whoever has this can take its capabilities away.
    pub const fn cnode(&self) -> CNode {
        self.cnode
    }

    /// Starts the configured component.
    pub fn start(&self) -> Result<(), SetupError> {
        Ok(self.tcb.resume()?)
    }

    /// Puts a capability into the next free slot, and names it; with an empty name it has no entry in the environment, and is
    /// found by its place.
    fn fill(
        &mut self,
        name: &str,
        fill: impl FnOnce(Slot) -> Result<(), crate::Error>,
    ) -> Result<CPtr, SetupError> {
        if self.next_slot >= 1 << self.radix {
            return Err(SetupError::ComponentSlots { radix: self.radix });
        }
        let pointer = CPtr::new(self.next_slot);
        if !name.is_empty() {
            self.environment.add_capability(name, pointer)?;
        }
        fill(self.cnode.slot_at(self.next_slot, self.radix as u8))?;
        self.next_slot += 1;
        Ok(pointer)
    }
}

/// Makes and maps every page of an image.
fn load_image(process: &mut Process, vspace: VSpace, image: &Image) -> Result<Pages, SetupError> {
    let mut pages = Pages::default();
    for page in image.pages() {
        let rights = if page.writable {
            Rights::READ_WRITE
        } else {
            Rights::READ
        };
        let frame = map_page(process, vspace, page.vaddr, rights)?;
        pages.add(page.vaddr, frame);
        if page.has_content {
            process
                .space
                .fill_frame(&mut process.resources, frame, |memory| {
                    image.fill(page.vaddr, memory);
                })?;
            if !page.writable {
                arch::make_executable(frame)?;
            }
        }
    }
    Ok(pages)
}

/// Makes a page and maps it.
fn map_page(
    process: &mut Process,
    vspace: VSpace,
    vaddr: u64,
    rights: Rights,
) -> Result<Frame, SetupError> {
    let frame = process.resources.frame(FrameSize::Small)?;
    vspace.map(
        &mut process.resources,
        frame,
        vaddr,
        rights,
        Attributes::WriteBack,
    )?;
    Ok(frame)
}
