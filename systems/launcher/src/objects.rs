//! What components share: endpoints, notifications, memory.

use alloc::vec::Vec;

use sandglass::cap::{Attributes, Capability, Endpoint, Frame, FrameSize, Notification, Reply};
use sandglass::image::PAGE;
use sandglass::{arch, BootInfo, Process, SetupError};
use sandglass_description::archive::Archive;
use sandglass_description::{MemorySource, System, OUTPUT_REGISTERS};

use crate::failure::{Context, Failure};

/// The system's objects; indices are those of the description.
pub struct Objects {
    endpoints: Vec<Endpoint>,
    replies: Vec<Reply>,
    notifications: Vec<Notification>,
    memory: Vec<Shared>,
    /// Where the launcher waits, for faults and ends.
    pub launcher: Endpoint,
    pub launcher_reply: Reply,
}

/// Memory to map.
pub struct Shared {
    pub frames: Vec<Frame>,
    pub attributes: Attributes,
    /// Bytes that it shows; the last page may be used in part.
    pub len: u64,
}

impl Objects {
    pub fn make(
        process: &mut Process,
        info: &BootInfo,
        system: &System,
        archive: &Archive<'_>,
    ) -> Result<Self, Failure> {
        let resources = &mut process.resources;
        let endpoints = many(system.endpoints, || resources.endpoint())?;
        let replies = many(system.endpoints, || resources.reply())?;
        let notifications = many(system.notifications, || resources.notification())?;
        let launcher = resources.endpoint().context("cannot make an endpoint")?;
        let launcher_reply = resources.reply().context("cannot make a reply object")?;
        let memory = system
            .memory
            .iter()
            .map(|memory| {
                Shared::make(process, info, &memory.source, archive)
                    .context(format_args!("cannot make the memory `{}`", memory.name))
            })
            .collect::<Result<_, _>>()?;
        Ok(Self {
            endpoints,
            replies,
            notifications,
            memory,
            launcher,
            launcher_reply,
        })
    }

    pub fn endpoint(&self, index: u32) -> Result<Endpoint, Failure> {
        find(&self.endpoints, index, "endpoint")
    }

    pub fn reply(&self, index: u32) -> Result<Reply, Failure> {
        find(&self.replies, index, "reply object")
    }

    pub fn notification(&self, index: u32) -> Result<Notification, Failure> {
        find(&self.notifications, index, "notification")
    }

    pub fn memory(&self, index: u32) -> Result<&Shared, Failure> {
        self.memory
            .get(index as usize)
            .context(format_args!("the description names no memory {index}"))
    }
}

impl Shared {
    fn make(
        process: &mut Process,
        info: &BootInfo,
        source: &MemorySource,
        archive: &Archive<'_>,
    ) -> Result<Self, Failure> {
        let resources = &mut process.resources;
        let len = source.bytes();
        let pages = len.div_ceil(PAGE);
        let mut frames = Vec::new();
        let mut attributes = Attributes::WriteBack;
        match *source {
            MemorySource::New { .. } => {
                for _ in 0..pages {
                    frames.push(resources.frame(FrameSize::Small).context("no memory")?);
                }
            }
            MemorySource::Device { physical, .. } => {
                attributes = Attributes::Uncached;
                if physical == OUTPUT_REGISTERS.0 {
                    arch::enable_output(process).context("no serial port for output")?;
                }
                let resources = &mut process.resources;
                for page in 0..pages {
                    let frame = resources.device_frame(physical + page * PAGE, FrameSize::Small);
                    frames.push(frame.context("no device memory")?);
                }
            }
            // Its pages are those of the launcher's own image.
            MemorySource::File(blob) => {
                let bytes = archive.blob(blob).context("damaged")?;
                let start = bytes.as_ptr() as u64;
                for page in 0..pages {
                    let frame = info.image_frame(start + page * PAGE);
                    frames.push(frame.context("a page of it is not in the image")?);
                }
            }
        }
        Ok(Self {
            frames,
            attributes,
            len,
        })
    }
}

/// Whether the description gives the memory of the framebuffer, or of what may lie beside it, to
/// components: they show what they like there.
pub fn take_framebuffer(system: &System, info: &BootInfo) -> bool {
    let Some(framebuffer) = info.framebuffer() else {
        return false;
    };
    let bytes = u64::from(framebuffer.pitch) * u64::from(framebuffer.height);
    let block = bytes
        .max(FrameSize::Large.bytes())
        .checked_next_power_of_two();
    let end = framebuffer.paddr.saturating_add(block.unwrap_or(u64::MAX));
    system.memory.iter().any(|memory| match memory.source {
        MemorySource::Device { physical, bytes } => {
            physical < end && framebuffer.paddr < physical.saturating_add(bytes)
        }
        MemorySource::New { .. } | MemorySource::File(_) => false,
    })
}

/// `count` new objects.
fn many<C: Capability>(
    count: u32,
    mut make: impl FnMut() -> Result<C, SetupError>,
) -> Result<Vec<C>, Failure> {
    (0..count)
        .map(|_| make().context("cannot make the objects that components share"))
        .collect()
}

fn find<C: Capability>(objects: &[C], index: u32, what: &str) -> Result<C, Failure> {
    objects
        .get(index as usize)
        .copied()
        .context(format_args!("the description names no {what} {index}"))
}
