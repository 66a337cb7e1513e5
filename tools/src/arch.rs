//! The architectures that the kernel runs on: what the tools must know of each to build for it and to boot it.

use clap::ValueEnum;
use object::elf::{Machine, EM_AARCH64, EM_X86_64};
use sandglass_abi::vspace;
use schemars::JsonSchema;
use serde::Deserialize;

/// An architecture.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    ValueEnum,
    Deserialize,
    JsonSchema,
)]
pub enum Arch {
    #[default]
    #[value(name = "x86_64")]
    #[serde(rename = "x86_64")]
    X86_64,
    #[value(name = "aarch64")]
    #[serde(rename = "aarch64")]
    Aarch64,
}

impl Arch {
    pub const ALL: [Self; 2] = [Self::X86_64, Self::Aarch64];

    /// As on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }

    /// The lowest address at which a program may begin.
    pub const fn lowest_program(self) -> u64 {
        match self {
            Self::X86_64 => vspace::x86_64::LOWEST_PROGRAM,
            Self::Aarch64 => vspace::aarch64::LOWEST_PROGRAM,
        }
    }

    /// The bare-metal target of the kernel.
    pub const fn kernel_target(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64-unknown-none",
            Self::Aarch64 => "aarch64-unknown-none-softfloat",
        }
    }

    /// The code model of the kernel, which lives in the last 2 GiB.
    pub const fn code_model(self) -> &'static str {
        match self {
            Self::X86_64 => "-Ccode-model=kernel",
            // All code and data are within 1 MiB of the code that names them, or it does not link: an address is one
            // instruction.
            Self::Aarch64 => "-Ccode-model=tiny",
        }
    }

    /// Machine number of its ELF files.
    pub const fn elf_machine(self) -> Machine {
        match self {
            Self::X86_64 => EM_X86_64,
            Self::Aarch64 => EM_AARCH64,
        }
    }

    /// The emulator, and Debian's package of it.
    pub const fn emulator(self) -> (&'static str, &'static str) {
        match self {
            Self::X86_64 => ("qemu-system-x86_64", "qemu-system-x86"),
            Self::Aarch64 => ("qemu-system-aarch64", "qemu-system-arm"),
        }
    }

    /// The emulator's model of the machine, unless a run asks for another.
    pub const fn machine_model(self) -> &'static str {
        match self {
            Self::X86_64 => "pc",
            Self::Aarch64 => "virt,gic-version=2",
        }
    }

    /// Physical address at which the memory of that machine begins.
    pub const fn memory_start(self) -> u64 {
        match self {
            Self::X86_64 => 0,
            Self::Aarch64 => 0x4000_0000,
        }
    }

    /// The processor that the ABI's reference configuration was observed on.
    pub const fn cpu(self) -> &'static str {
        match self {
            Self::X86_64 => {
                "Nehalem,-vme,+pdpe1gb,-xsave,-xsaveopt,-xsavec,-fsgsbase,-invpcid,+syscall,+lm,enforce"
            }
            Self::Aarch64 => "cortex-a53",
        }
    }
}
