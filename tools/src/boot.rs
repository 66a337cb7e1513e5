//! `sandglass boot`: one root task on the kernel, its console on standard output.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{anyhow, bail, Context, Result};

use crate::arch::Arch;
use crate::cli::{BootArgs, RunConditions};
use crate::elf;
use crate::kernel;
use crate::program;
use crate::qemu::{self, Boot, End, Input, Machine};
use crate::visits;
use crate::workspace;

/// `sandglass boot`: ends with the guest's status, 0 at the awaited text, 124 at the time-out.
pub fn run(args: &BootArgs) -> Result<ExitCode> {
    let input = match &args.input {
        Some(file) => Input::Bytes(
            fs::read(file).with_context(|| format!("cannot read `{}`", file.display()))?,
        ),
        None => Input::Inherit,
    };
    let (root_task, arch, is_ours) = root_task(args)?;
    let conditions = &args.conditions;
    workspace::ensure_outputs(&root_task, &[conditions.log.as_deref()])?;
    let cores = args.machine.cores.cores();
    let profile = args.profile.profile;
    let mut options = conditions.kernel_of(profile, arch, cores)?;
    if is_ours {
        options = options.with_user_timer();
    }
    let kernel = kernel::build(&options)?;
    let mut machine = Machine {
        cores: cores.number(),
        memory_mib: args.machine.memory,
        ..Machine::of(arch)
    };
    machine.suit(&options);
    // As the test command runs them.
    if let Some(shift) = conditions.icount.filter(|_| is_ours) {
        machine.keep_virtual_time(shift);
    }
    run_under(
        conditions,
        Boot {
            machine,
            user_semihosting: is_ours,
            extra_args: args.for_qemu(),
            input,
            ..Boot::new(kernel, root_task)
        },
    )
}

/// The root task's file, what it is for, and whether it is one of this repository.
///
/// # Errors
/// It is none, or does not build.
fn root_task(args: &BootArgs) -> Result<(PathBuf, Arch, bool)> {
    let path = &args.root_task;
    if let (false, Some(name)) = (path.exists(), path.to_str()) {
        let metadata = program::workspace_metadata()?;
        if program::packages(&metadata).contains(&name) {
            let program = program::build_of_profile(args.arch, name, args.profile.profile)?;
            return Ok((program, args.arch, true));
        }
    }
    Ok((path.clone(), ensure_root_task(path)?, false))
}

/// Sees before anything is built whether a file can be a root task, and for which architecture.
///
/// # Errors
/// It cannot; the message says what it is, and what would be right.
pub fn ensure_root_task(path: &Path) -> Result<Arch> {
    let shown = path.display();
    let header = elf::read_header(path)
        .with_context(|| format!("cannot boot `{shown}`: a root task is an ELF file"))?;
    if path
        .extension()
        .is_some_and(|extension| extension == "toml")
    {
        bail!("`{shown}` is a description, not a root task: `sandglass run {shown}` builds and boots its system");
    }
    elf::check_any(&header).map_err(|why| {
        anyhow!("`{shown}` {why}; a root task is a static ELF file, built for this kernel's ABI")
    })
}

/// Boots under the conditions of a command line, with our own console, and ends as it ends.
///
/// # Errors
/// Those of [`qemu::run`].
pub fn run_under(conditions: &RunConditions, boot: Boot) -> Result<ExitCode> {
    let boot = Boot {
        machine: Machine {
            model: conditions.model.clone().unwrap_or(boot.machine.model),
            cpu: conditions.cpu.clone().unwrap_or(boot.machine.cpu),
            icount: conditions.icount,
            ..boot.machine
        },
        until: conditions.until.clone(),
        timeout: conditions.timeout,
        input: match boot.input {
            Input::None => Input::Inherit,
            given => given,
        },
        echo: true,
        log: conditions.log.clone(),
        ..boot
    };
    let watched = match conditions.visits {
        true => visits::watch_one(&boot)?,
        false => None,
    };
    let outcome = qemu::run(&boot)?;
    if outcome.end == End::TimedOut {
        eprintln!(
            "sandglass: ended by the timeout of {} s",
            conditions.timeout.unwrap_or_default().as_secs_f64()
        );
    }
    let findings = watched.map(visits::show).transpose()?;
    Ok(match findings {
        Some(findings) if !findings.is_empty() => ExitCode::FAILURE,
        _ => ExitCode::from(outcome.status()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The message about a file of this content.
    fn refused(name: &str, content: &[u8]) -> String {
        let folder = std::env::temp_dir().join(format!("sandglass-boot-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join(name);
        std::fs::write(&path, content).unwrap();
        let error = ensure_root_task(&path).unwrap_err();
        std::fs::remove_file(&path).unwrap();
        format!("{error:#}")
    }

    #[test]
    fn what_is_no_root_task_is_told_apart() {
        assert!(refused("ok.toml", b"name = \"a\"").contains("`sandglass run"));
        assert!(refused("text", b"hello").contains("begins with \"hello\""));
        assert!(refused("nothing", b"").contains("is empty"));
        let missing = format!(
            "{:#}",
            ensure_root_task(Path::new("/no/such/file")).unwrap_err()
        );
        assert!(missing.contains("No such file"), "{missing}");
        let folder = format!("{:#}", ensure_root_task(Path::new("/")).unwrap_err());
        assert!(folder.contains("it is a folder"), "{folder}");
        let endless = format!(
            "{:#}",
            ensure_root_task(Path::new("/dev/zero")).unwrap_err()
        );
        assert!(endless.contains("not a regular file"), "{endless}");
    }
}
