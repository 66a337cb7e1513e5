//! From a checked description to the image of a root task: the launcher's ELF file, with one more
//! segment behind its own, which holds the archive.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{bail, ensure, Context, Result};
use object::elf::{self, FileHeader64, ProgramHeader64};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};
use object::{pod, LittleEndian, U32, U64};
use sandglass_description::archive::{self, PAGE};
use sandglass_description::{MemorySource, Restart};

use super::check::{Content, Description};
use super::executable::Executable;
use super::findings::{Finding, Report};
use super::{format, images};
use crate::arch::Arch;
use crate::program::{self, Elf, Profile};
use crate::{c_program, project, stripped, workspace};

/// The launcher's package.
const LAUNCHER: &str = "launcher";
/// Section of the launcher that says where the archive is: two words.
const LOCATION_SECTION: &[u8] = b".sandglass.archive";
/// Largest image that the kernel starts: its pages need slots in the initial CNode of 8192, of
/// which 256 are left for everything else (ABI 06, section 1.2).
const MAX_IMAGE_BYTES: u64 = (8192 - 256) * PAGE as u64;
const MIB: u64 = 1 << 20;
/// What the first megabyte, the kernel and its objects take of the machine's memory, roughly: a
/// description that is short of this ends with the launcher's message instead of ours.
const KERNEL_BYTES: u64 = 4 * MIB;

type Header = FileHeader64<LittleEndian>;
type Segment = ProgramHeader64<LittleEndian>;
const LE: LittleEndian = LittleEndian;

/// Packs everything and writes the image to `output`, or where built systems are kept. `built` has
/// what the description names.
///
/// # Errors
/// What was built does not fit, as a [`Report`]; or a file cannot be read or written.
pub fn pack(description: &Description, built: &Programs, output: Option<&Path>) -> Result<PathBuf> {
    let arch = description.arch;
    let launcher = &stripped::bytes(arch, built.launcher(arch)?)?[..];
    let programs = built.of_components(description)?;
    let programs = programs
        .iter()
        .map(|program| stripped::bytes(arch, program));
    let programs = programs.collect::<Result<Vec<_>>>()?;
    let images = programs
        .iter()
        .map(|program| span_of(program))
        .collect::<Result<Vec<_>>>()?;
    check_images(description, &images)?;

    let mut system = description.system.clone();
    let mut builder = archive::Builder::new();
    for (component, program) in system.components.iter_mut().zip(&programs) {
        component.executable = builder.add(program);
    }
    for file in &description.files {
        let blob = match &file.content {
            Content::Path(path) => builder.add(&read(path)?),
            Content::Bytes(bytes) => builder.add(bytes),
        };
        system.memory[file.memory].source = MemorySource::File(blob);
    }
    let archive = builder
        .finish(&system)
        .context("cannot encode the description")?;
    let image = append(launcher, &archive)?;
    check_size(description, launcher, &programs, &image)?;

    let path = match output {
        Some(path) => path.to_owned(),
        None => images::kept(&description.source, &system.name),
    };
    write(&path, &image)?;
    Ok(path)
}

/// Writes an image. Who reads a former one meanwhile has that to the end.
fn write(path: &Path, image: &[u8]) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
    }
    // What is no regular file, such as a pipe, cannot be replaced.
    let is_special = path.metadata().is_ok_and(|metadata| !metadata.is_file());
    if is_special {
        return fs::write(path, image).with_context(|| format!("cannot write {}", path.display()));
    }
    let mut fresh = path.as_os_str().to_owned();
    fresh.push(".new");
    // Somebody else may write the same image.
    let _lock = workspace::lock(&images::folder())?;
    fs::write(&fresh, image)
        .and_then(|()| fs::rename(&fresh, path))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// What is built for descriptions, with debugging information: the launchers, and the programs that they name, by what they
/// are built for.
pub struct Programs(BTreeMap<(Arch, Executable), Elf>);

impl Programs {
    /// Builds what `descriptions` name, by `profile`, and the launcher, each once.
    ///
    /// # Errors
    /// One does not build; or this command is of another version than the launcher.
    pub fn build<'d>(
        descriptions: impl IntoIterator<Item = &'d Description>,
        profile: Profile,
    ) -> Result<Self> {
        format::check()?;
        let mut wanted: BTreeMap<Arch, BTreeSet<Executable>> = BTreeMap::new();
        for description in descriptions {
            let named = description.executables.iter();
            let named = named.map(|packed| packed.executable.clone());
            wanted.entry(description.arch).or_default().extend(named);
        }
        let mut built = BTreeMap::new();
        for (arch, mut executables) in wanted {
            if profile == Profile::Release {
                executables.insert(launcher());
            }
            let programs = build_for(arch, &executables, profile)?.into_iter();
            built.extend(programs.map(|(executable, elf)| ((arch, executable), elf)));
        }
        Ok(Self(built))
    }

    /// That of the launcher for `arch`.
    ///
    /// # Errors
    /// It was not built.
    pub fn launcher(&self, arch: Arch) -> Result<&[u8]> {
        let launcher = self.0.get(&(arch, launcher()));
        launcher
            .map(|elf| elf.bytes.as_slice())
            .context("the launcher was not built")
    }

    fn get(&self, arch: Arch, executable: &Executable) -> Option<&Elf> {
        self.0.get(&(arch, executable.clone()))
    }

    /// The files of the executables of a description's components, with the components' names.
    pub fn paths(&self, description: &Description) -> Vec<(String, PathBuf)> {
        let components = description.system.components.iter();
        let paths = description
            .executables
            .iter()
            .map(|packed| match &packed.executable {
                Executable::File(path) => Some(path.clone()),
                built => self
                    .get(description.arch, built)
                    .map(|elf| elf.path.clone()),
            });
        components
            .zip(paths)
            .filter_map(|(component, path)| Some((component.name.clone(), path?)))
            .collect()
    }

    /// The executables of a description's components, with the debugging information that they have.
    ///
    /// # Errors
    /// One was not built, or cannot be read.
    pub fn of_components(&self, description: &Description) -> Result<Vec<Cow<'_, [u8]>>> {
        let executables = description.executables.iter();
        executables
            .map(|packed| match &packed.executable {
                Executable::File(path) => read(path).map(Cow::Owned),
                built => {
                    let program = self.get(description.arch, built);
                    program
                        .map(|elf| Cow::Borrowed(elf.bytes.as_slice()))
                        .with_context(|| format!("{built:?} was not built"))
                }
            })
            .collect()
    }
}

/// Builds executables for `arch` by `profile`, and the launcher as it ships.
fn build_for(
    arch: Arch,
    executables: &BTreeSet<Executable>,
    profile: Profile,
) -> Result<Vec<(Executable, Elf)>> {
    let (mut packages, mut own, mut in_c) = (Vec::new(), Vec::new(), Vec::new());
    for executable in executables {
        match executable {
            Executable::Package(name) => packages.push(name.as_str()),
            Executable::Own(program) => own.push(program),
            Executable::C(program) => in_c.push(program),
            Executable::File(_) => {}
        }
    }
    // A mistake in the user's sources is found before ours are built.
    let c_contents = c_program::read_all(arch, &in_c, profile)?;
    let own_contents = project::read_all(arch, &own, profile)?;
    let contents = program::read_all(arch, &packages, profile)?;
    let own = own.into_iter().cloned().map(Executable::Own);
    let packages = packages
        .into_iter()
        .map(str::to_owned)
        .map(Executable::Package);
    let in_c = in_c.into_iter().cloned().map(Executable::C);
    let built = own.zip(own_contents).chain(packages.zip(contents));
    let mut built: Vec<_> = built.chain(in_c.zip(c_contents)).collect();
    if profile != Profile::Release {
        let launchers = program::read_all(arch, &[LAUNCHER], Profile::Release)?;
        built.extend(launchers.into_iter().map(|elf| (launcher(), elf)));
    }
    Ok(built)
}

fn launcher() -> Executable {
    Executable::Package(LAUNCHER.to_owned())
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// The addresses that an executable occupies, in whole pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ImageSpan {
    start: u64,
    end: u64,
}

fn segments(elf: &[u8]) -> Result<&[Segment]> {
    let header = Header::parse(elf).context("not an ELF file")?;
    header
        .program_headers(LE, elf)
        .context("the ELF file's program headers cannot be read")
}

fn span_of(elf: &[u8]) -> Result<ImageSpan> {
    let page = PAGE as u64;
    let mut span = ImageSpan {
        start: u64::MAX,
        end: 0,
    };
    for segment in segments(elf)? {
        if segment.p_type(LE) == elf::PT_LOAD && segment.p_memsz(LE) > 0 {
            let start = segment.p_vaddr(LE);
            let end = start
                .checked_add(segment.p_memsz(LE))
                .and_then(|end| end.checked_next_multiple_of(page));
            span.start = span.start.min(start / page * page);
            span.end = span
                .end
                .max(end.context("a segment exceeds the address space")?);
        }
    }
    ensure!(span.start < span.end, "the ELF file has nothing to load");
    Ok(span)
}

/// Whether the executables begin where programs may, and leave room for memory at fixed addresses.
fn check_images(description: &Description, images: &[ImageSpan]) -> Result<()> {
    let mut findings = Vec::new();
    let lowest = description.arch.lowest_program();
    for (packed, image) in description.executables.iter().zip(images) {
        if image.start < lowest {
            findings.push(
                Finding::new(
                    packed.span.clone(),
                    format!("the executable has a segment at {:#x}", image.start),
                )
                .label(format!("must begin at {lowest:#x} or above"))
                .help(
                    "null pointers lead to lower addresses; link with `-Wl,--image-base=0x400000`",
                ),
            );
        }
    }
    for map in &description.fixed_maps {
        let image = images[map.component];
        if map.start < image.end && image.start < map.end {
            findings.push(
                Finding::new(
                    map.span.clone(),
                    format!(
                        "the memory at {:#x} to {:#x} overlaps the executable of `{}`",
                        map.start, map.end, description.system.components[map.component].name
                    ),
                )
                .label(format!("must be at {:#x} or above", image.end))
                .related(
                    description.executables[map.component].span.clone(),
                    "its executable",
                ),
            );
        }
    }
    report(description, findings)
}

/// Whether the kernel would start the image, and the machine hold everything.
fn check_size(
    description: &Description,
    launcher: &[u8],
    programs: &[Vec<u8>],
    image: &[u8],
) -> Result<()> {
    let span = span_of(image)?;
    let bytes = span.end - span.start;
    let launcher_span = span_of(launcher)?;
    let program_bytes: usize = programs.iter().map(|program| program.len()).sum();
    let (mut shared, mut files) = (0, 0);
    for memory in &description.system.memory {
        match memory.source {
            MemorySource::New { bytes } => shared += bytes,
            MemorySource::File(blob) => files += blob.len,
            MemorySource::Device { .. } => {}
        }
    }
    for component in &description.system.components {
        shared += component.spawning.map_or(0, |spawning| spawning.bytes());
        shared += component.restart.map_or(0, |_| Restart::BYTES);
    }
    let mut findings = Vec::new();
    if bytes > MAX_IMAGE_BYTES {
        let largest = description
            .files
            .iter()
            .max_by_key(|file| description.system.memory[file.memory].source.bytes());
        let place = match largest {
            Some(file) if files > program_bytes as u64 => file.span.clone(),
            _ => description.machine_span.clone(),
        };
        findings.push(
            Finding::new(
                place,
                format!(
                    "the system's image has {bytes} bytes, of which {} are the launcher, \
                     {program_bytes} executables and {files} files",
                    launcher_span.end - launcher_span.start
                ),
            )
            .label(format!("must be at most {MAX_IMAGE_BYTES} bytes (31 MiB)"))
            .help(
                "the kernel starts no larger root task: each page of the image takes a slot of \
                 the initial CNode, which has 8192",
            ),
        );
    }
    let loaded = programs
        .iter()
        .map(|program| span_of(program).map(|span| span.end - span.start))
        .sum::<Result<u64>>()?;
    let needed = KERNEL_BYTES + bytes + loaded + shared;
    let machine = u64::from(description.memory_mib) * MIB;
    if needed > machine {
        findings.push(
            Finding::new(
                description.machine_span.clone(),
                format!(
                    "the system needs {} MiB: {} for the kernel, {} for its image, {} for \
                     components, {} for memory",
                    needed.div_ceil(MIB),
                    KERNEL_BYTES / MIB,
                    bytes.div_ceil(MIB),
                    loaded.div_ceil(MIB),
                    shared.div_ceil(MIB)
                ),
            )
            .label(format!("the machine has {} MiB", description.memory_mib))
            .help("give the machine more memory: `machine = { memory = MIB }`"),
        );
    }
    report(description, findings)
}

fn report(description: &Description, findings: Vec<Finding>) -> Result<()> {
    if findings.is_empty() {
        return Ok(());
    }
    Err(Report::new(&description.source, findings).into())
}

/// Adds the archive to the launcher's file as a segment behind its image, and tells the launcher
/// where it is.
///
/// The table of program headers stays where it is, since programs find their thread-local
/// variables through it: the new segment takes the place of the header that says that the stack is
/// not executable, which means nothing to this kernel.
fn append(launcher: &[u8], archive: &[u8]) -> Result<Vec<u8>> {
    let header = Header::parse(launcher).context("the launcher is not an ELF file")?;
    let address = span_of(launcher)?.end;
    let spare = segments(launcher)?
        .iter()
        .position(|segment| segment.p_type(LE) == elf::PT_GNU_STACK)
        .context("the launcher's ELF file has no header of type GNU_STACK to replace")?;
    let header_offset = header.e_phoff(LE) as usize + spare * size_of::<Segment>();
    let sections = header
        .sections(LE, launcher)
        .context("the launcher's section headers cannot be read")?;
    let (_, location) = sections
        .section_by_name(LE, LOCATION_SECTION)
        .context("the launcher has no section for the archive's location")?;
    let location_offset = location.sh_offset(LE) as usize;
    if location.sh_size(LE) != 16 {
        bail!("the launcher's section for the archive's location is not two words");
    }

    let mut image = launcher.to_vec();
    image.resize(image.len().next_multiple_of(PAGE), 0);
    let len = archive.len() as u64;
    let segment = Segment {
        p_type: U32::new(LE, elf::PT_LOAD),
        p_flags: U32::new(LE, elf::PF_R),
        p_offset: U64::new(LE, image.len() as u64),
        p_vaddr: U64::new(LE, address),
        p_paddr: U64::new(LE, address),
        p_filesz: U64::new(LE, len),
        p_memsz: U64::new(LE, len),
        p_align: U64::new(LE, PAGE as u64),
    };
    image.extend_from_slice(archive);
    overwrite(&mut image, header_offset, pod::bytes_of(&segment))?;
    let location = [address.to_le_bytes(), len.to_le_bytes()].concat();
    overwrite(&mut image, location_offset, &location)?;
    Ok(image)
}

fn overwrite(image: &mut [u8], offset: usize, bytes: &[u8]) -> Result<()> {
    let place = offset
        .checked_add(bytes.len())
        .and_then(|end| image.get_mut(offset..end))
        .context("the launcher's ELF file is cut off")?;
    place.copy_from_slice(bytes);
    Ok(())
}
