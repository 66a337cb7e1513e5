//! Runs the points, each on a virtual machine of its own, as many at a time as the host has
//! cores. Virtual time makes each machine's figures independent of the others and of the host.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{bail, Context, Result};
use demo_protocol::record::BEGIN;

use crate::arch::Arch;
use crate::demo::analysis::Run;
use crate::demo::description;
use crate::demo::input::Input;
use crate::demo::measurement::Measurement;
use crate::demo::reference::Reference;
use crate::demo::sweep::Point;
use crate::image;
use crate::kernel::{self, KernelOptions, Variant};
use crate::qemu::{self, Boot, End, Firmware};
use crate::side_by_side;
use crate::system::rogue::Rogue;
use crate::system::{self, Built, Source};
use crate::workspace;

/// Virtual time: an instruction takes 2^0 ns, so the machine has one core of 1 GHz.
const ICOUNT_SHIFT: u8 = 0;

/// Longest that a machine may take, of the host's time: many times what a slow host needs.
const TIMEOUT: Duration = Duration::from_secs(300);

/// A system that can be run.
struct Image {
    built: Built,
    /// Where its record will be.
    record: PathBuf,
}

/// What all machines share.
pub struct Bench<'i> {
    input: &'i Input,
    /// Beside the clients of all.
    rogue: Option<Rogue>,
    arch: Arch,
    kernel: PathBuf,
    /// Where images and records go.
    folder: PathBuf,
    /// Keeps other demos out of the folder.
    _lock: File,
}

impl<'i> Bench<'i> {
    /// Builds the kernel. Waits for another demo of this checkout to end.
    pub fn prepare(arch: Arch, input: &'i Input, rogue: Option<Rogue>) -> Result<Self> {
        let folder = workspace::target_dir().join("demo");
        fs::create_dir_all(&folder)
            .with_context(|| format!("cannot make the folder `{}`", folder.display()))?;
        let lock =
            lock(&folder.join("lock")).context("cannot lock the folder against other demos")?;
        Ok(Self {
            input,
            rogue,
            _lock: lock,
            arch,
            // The control task has the timer.
            kernel: kernel::build(
                &KernelOptions::new(Variant::Release)
                    .for_arch(arch)
                    .with_user_timer(),
            )?,
            folder,
        })
    }

    /// Runs all points; returns their runs in the same order.
    ///
    /// # Errors
    /// The first that occurs; machines that run are waited for, others are not started.
    pub fn run_all(&self, points: &[Point]) -> Result<Vec<Run>> {
        let images = self.build_all(points)?;
        eprintln!(
            "running {} machines, {} at a time",
            points.len(),
            side_by_side::workers(points.len())
        );
        let pairs: Vec<_> = points.iter().zip(&images).collect();
        side_by_side::run(
            &pairs,
            |(point, image)| {
                self.run(point, image)
                    .with_context(|| format!("the machine with {point}"))
            },
            |run, number| eprintln!("[{number:>2}/{}] {}", points.len(), run.progress()),
        )
    }

    /// The system of a point, with the rogue if there is one.
    fn source(&self, point: &Point) -> Result<Source> {
        let source = description::source(point, self.input)?.for_arch(Some(self.arch));
        match &self.rogue {
            None => Ok(source),
            Some(rogue) => rogue.beside(&source),
        }
    }

    /// Builds the image of every point.
    fn build_all(&self, points: &[Point]) -> Result<Vec<Image>> {
        let sources = points
            .iter()
            .map(|point| self.source(point))
            .collect::<Result<Vec<_>>>()?;
        let file =
            |source: &Source, kind: &str| self.folder.join(format!("{}.{kind}", source.name));
        let systems = sources
            .iter()
            .map(|source| Ok((system::check(source)?, file(source, "image"))))
            .collect::<Result<Vec<_>>>()?;
        let built = system::build_all(&systems)?;
        let images = built
            .into_iter()
            .zip(&sources)
            .map(|(built, source)| Image {
                built,
                record: file(source, "record"),
            });
        Ok(images.collect())
    }

    /// Runs one point from a disk image, which `firmware` starts, in virtual time or in the host's:
    /// a firmware may take a minute to wait through seconds of virtual time.
    pub fn run_from_disk(
        &self,
        point: &Point,
        firmware: Firmware,
        in_virtual_time: bool,
    ) -> Result<Run> {
        let images = self.build_all(std::slice::from_ref(point))?;
        let image = images.first().context("one image was asked for")?;
        let disk = image.record.with_extension("disk");
        image::make(firmware.arch(), &self.kernel, &image.built.image, &disk)?;
        let mut boot = Boot {
            machine: image.built.boot(&self.kernel).machine,
            user_semihosting: image.built.is_built,
            ..Boot::from_disk(disk, firmware)
        };
        boot.machine.icount = in_virtual_time.then_some(ICOUNT_SHIFT);
        self.finish(point, image, boot)
    }

    /// Runs one point to its end, and checks its ciphertexts.
    fn run(&self, point: &Point, image: &Image) -> Result<Run> {
        let mut boot = image.built.boot(&self.kernel);
        boot.machine.keep_virtual_time(ICOUNT_SHIFT);
        self.finish(point, image, boot)
    }

    /// Runs a point's machine, and reads and checks what it recorded.
    fn finish(&self, point: &Point, image: &Image, mut boot: Boot) -> Result<Run> {
        // No record of an earlier run may pass for this one's.
        if image.record.exists() {
            fs::remove_file(&image.record).context("cannot remove an old record")?;
        }
        boot.timeout = Some(TIMEOUT);
        image.built.output_to(&mut boot, &image.record)?;
        let outcome = qemu::run(&boot)?;
        let console = outcome.console.trim_end();
        match outcome.end {
            End::Guest(0) => {}
            End::TimedOut => bail!(
                "did not end within {} s: does the control task run, which says when the measured \
                 window ends? Its console:\n{console}",
                TIMEOUT.as_secs()
            ),
            _ => bail!(
                "ended with status {}; its console:\n{console}",
                outcome.status()
            ),
        }
        let record = fs::read(&image.record).context("the machine left no record")?;
        let record = begun(&record).context("the machine's record has no begin")?;
        let measurement =
            Measurement::decode(record).with_context(|| format!("its console:\n{console}"))?;
        let reference = Reference::new(&self.input.bytes, self.input.lap_bytes(point.demand_bytes));
        Ok(Run::new(*point, measurement, &reference))
    }
}

/// What follows a record's begin in what came through the serial port: firmware may show its messages on
/// every port that it finds.
fn begun(bytes: &[u8]) -> Option<&[u8]> {
    let begin = bytes.windows(BEGIN.len()).position(|seen| seen == BEGIN)?;
    bytes.get(begin + BEGIN.len()..)
}

/// Holds the lock file at `path` until the result is dropped.
fn lock(path: &Path) -> Result<File> {
    let file = File::create(path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            eprintln!("waiting for another demo to finish");
            file.lock()?;
        }
        Err(TryLockError::Error(error)) => return Err(error.into()),
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_begins_behind_the_firmwares_messages() {
        let text = b"\x1b[2J\x1b[01;01HBdsDxe: starting Boot0001\r\n";
        let entries = &[1, 2][..];
        let record = [&BEGIN[..], entries].concat();
        assert_eq!(begun(&record), Some(entries));
        assert_eq!(begun(&[&text[..], &record].concat()), Some(entries));
        assert_eq!(begun(text), None);
    }
}
