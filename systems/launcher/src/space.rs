//! Room for capabilities: the initial CSpace may be too small for a large system.

use sandglass::image::{Image, PAGE};
use sandglass::{BootInfo, Process};
use sandglass_description::archive::Archive;
use sandglass_description::{Component, MemorySource, System};

use crate::failure::{Context, Failure};
use crate::trace;

/// Capabilities for the objects of a component beside those counted, and for its share of paging
/// structures and of untyped memory; generous.
const PER_COMPONENT: u64 = 128;

/// Enlarges the CSpace if the system needs more slots than are left.
pub fn make_room(
    process: &mut Process,
    info: &BootInfo,
    system: &System,
    archive: &Archive<'_>,
) -> Result<(), Failure> {
    let mut wanted = PER_COMPONENT + u64::from(system.endpoints) * 2;
    wanted += u64::from(system.notifications);
    wanted += trace::slots(info, system);
    for memory in &system.memory {
        // The pages of files are in the image, and their capabilities there already.
        if !matches!(memory.source, MemorySource::File(_)) {
            wanted += pages(memory.source.bytes());
        }
    }
    for component in &system.components {
        wanted += slots_for(component, system, archive)?;
    }
    let empty = info.empty_slots();
    if wanted <= empty.len() {
        return Ok(());
    }
    let radix = (empty.start + wanted).next_power_of_two().ilog2();
    process
        .resources
        .enlarge_cspace(radix)
        .context(format_args!("cannot make room for {wanted} capabilities"))
}

/// Slots that a component takes in the launcher's CSpace, at most.
fn slots_for(
    component: &Component,
    system: &System,
    archive: &Archive<'_>,
) -> Result<u64, Failure> {
    let name = &component.name;
    let elf = archive
        .blob(component.executable)
        .context(format_args!("cannot read the executable of `{name}`"))?;
    let image =
        Image::parse(elf).context(format_args!("cannot load the executable of `{name}`"))?;
    let mut slots = PER_COMPONENT + image.pages().len() as u64;
    slots += component.grants.len() as u64;
    for thread in &component.threads {
        slots += 8 + 2 * (pages(thread.stack_bytes) + 1);
    }
    for map in &component.maps {
        let memory = system.memory.get(map.memory as usize);
        slots += memory.map_or(0, |memory| pages(memory.source.bytes()));
    }
    Ok(slots)
}

const fn pages(bytes: u64) -> u64 {
    bytes.div_ceil(PAGE)
}
