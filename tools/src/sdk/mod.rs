//! `sandglass sdk`: what other people's tools want of a kernel (ABI 09, section 8).
//!
//! Microkit's tool and rust-sel4 take a kernel's files from a folder, and descriptions of its configuration, of its
//! invocations, and of the sizes of its objects, as JSON. They are made here for a kernel of a profile, as a board of an SDK
//! of Microkit has them, and as the prefix that rust-sel4 is given. What was compiled from libsel4's sources (headers,
//! `libmicrokit.a`, monitor and initialiser) is not ours to write: stock boards have theirs already.

mod description;
mod narrow;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use sandglass_abi::profile::Profile;
use serde::Serialize;

use self::description::Configuration;
use crate::arch::Arch;
use crate::cores::{Cores, MOST_CORES};
use crate::kernel::{self, KernelOptions, Variant};
use crate::profile::{self, ProfileArgs};
use crate::stripped;

/// What profiles of Microkit's board for PCs are named by, before its configuration, and that board.
const STOCK_PREFIX: &str = "microkit-";
const STOCK_BOARD: &str = "x86_64_generic";
/// The board of the base profile, which no stock SDK has.
const OWN_BOARD: &str = "sandglass_x86_64";

/// Arguments of `sandglass sdk`.
#[derive(Args)]
pub struct SdkArgs {
    #[command(flatten)]
    profile: ProfileArgs,
    /// Folder to write to
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
}

/// A configuration of a board: a folder of the SDK, and the kernel in it.
struct Board {
    name: &'static str,
    configuration: String,
    options: KernelOptions,
    /// The most cores that the kernel runs on.
    nodes: u32,
}

impl Board {
    /// The configurations of the board that is `profile`'s: as Microkit names them, one for each stock profile, and all that
    /// there are for base.
    ///
    /// # Errors
    /// There is no such kernel.
    fn all(profile: &'static Profile) -> Result<Vec<Board>> {
        let board = |name, configuration: String, asked, cores: Cores| {
            let options = profile::kernel(profile, Arch::X86_64, asked, Variant::Release, cores)?;
            Ok(Board {
                name,
                configuration,
                options,
                nodes: cores.number(),
            })
        };
        if let Some(configuration) = profile.name.strip_prefix(STOCK_PREFIX) {
            let stock = board(
                STOCK_BOARD,
                configuration.to_owned(),
                None,
                Cores::of_profile(profile, false),
            );
            return Ok(vec![stock?]);
        }
        let both = [("", Cores::Single), ("smp-", Cores::Smp(MOST_CORES))];
        both.into_iter()
            .flat_map(|(prefix, cores)| Variant::ALL.map(|variant| (prefix, cores, variant)))
            .map(|(prefix, cores, variant)| {
                let configuration = format!("{prefix}{}", variant.name());
                board(OWN_BOARD, configuration, Some(variant), cores)
            })
            .collect()
    }

    /// What the descriptions say.
    fn describe(&self) -> Configuration {
        Configuration {
            profile: self.options.profile(),
            is_debug: self.options.variant == Variant::Debug,
            nodes: self.nodes,
        }
    }

    /// Its folder in an SDK.
    fn folder(&self, sdk: &Path) -> PathBuf {
        sdk.join("board").join(self.name).join(&self.configuration)
    }

    /// What rust-sel4 is given as its prefix.
    fn prefix(&self, sdk: &Path) -> PathBuf {
        let name = format!("{}-{}", self.name, self.configuration);
        sdk.join("rust-sel4").join(name)
    }

    /// Writes its files into the folder `sdk`.
    fn write(&self, sdk: &Path) -> Result<()> {
        let (folder, prefix) = (self.folder(sdk), self.prefix(sdk));
        let kernel = folder.join("elf").join("sel4.elf");
        stripped::write(&kernel::build(&self.options)?, &kernel)?;
        let bytes =
            fs::read(&kernel).with_context(|| format!("cannot read {}", kernel.display()))?;
        write(
            &folder.join("elf").join("sel4_32.elf"),
            &narrow::of(&bytes)?,
        )?;
        write(&prefix.join("bin").join("kernel.elf"), &bytes)?;

        let described = self.describe();
        write_json(
            &folder.join("invocations_all.json"),
            &described.invocations(),
        )?;
        write_json(&folder.join("object_sizes.json"), &described.object_sizes())?;
        write_json(
            &folder.join("address_space_constants.json"),
            &described.address_space(),
        )?;
        let includes = [folder.join("include"), prefix.join("libsel4/include")];
        for include in &includes {
            write_json(
                &include.join("kernel").join("gen_config.json"),
                &described.kernel(),
            )?;
        }
        write_json(
            &includes[1].join("sel4").join("gen_config.json"),
            &described.library(),
        )
    }
}

/// Writes a file, and the folders that it is in.
fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    let mut text = serde_json::to_string_pretty(value)
        .with_context(|| format!("cannot describe {}", path.display()))?;
    text.push('\n');
    write(path, text.as_bytes())
}

/// `sandglass sdk`: writes the files, and prints the folder of each configuration.
///
/// # Errors
/// There is no such kernel, or it does not build; or a file cannot be written.
pub fn run(args: &SdkArgs) -> Result<ExitCode> {
    for board in Board::all(args.profile.profile)? {
        board.write(&args.output)?;
        println!("{}", board.folder(&args.output).display());
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandglass_abi::profile::{BASE, MICROKIT_DEBUG, MICROKIT_RELEASE, MICROKIT_SMP_RELEASE};

    fn folders(profile: &'static Profile) -> Vec<String> {
        let boards = Board::all(profile).unwrap();
        let folders = boards.iter().map(|board| board.folder(Path::new("")));
        folders.map(|it| it.display().to_string()).collect()
    }

    #[test]
    fn stock_profiles_are_the_configurations_of_the_stock_board() {
        let debug = folders(&MICROKIT_DEBUG);
        assert_eq!(debug, ["board/x86_64_generic/debug"]);
        let release = folders(&MICROKIT_RELEASE);
        assert_eq!(release, ["board/x86_64_generic/release"]);
        let several = Board::all(&MICROKIT_SMP_RELEASE).unwrap();
        assert_eq!(several.len(), 1);
        assert_eq!(several[0].configuration, "smp-release");
        assert_eq!(several[0].nodes, 16);
    }

    #[test]
    fn base_is_a_board_of_its_own_with_each_kernel_that_there_is() {
        let names = ["debug", "release", "smp-debug", "smp-release"];
        let expected = names.map(|name| format!("board/sandglass_x86_64/{name}"));
        assert_eq!(folders(&BASE), expected);
        let boards = Board::all(&BASE).unwrap();
        assert_eq!(boards[1].nodes, 1);
        assert_eq!(boards[2].nodes, 4);
        let options = KernelOptions::smp(Variant::Release);
        assert_eq!(boards[3].options, options);
    }
}
