//! The machines of the matrix.

use super::{Entry, Expected, Kernel, Loader};
use crate::machine::inherited::Place;
use crate::qemu::{Emulator, Firmware};

/// The least that the kernel needs of a processor, with Intel's and AMD's names for the rest.
const CPU: &str = "Nehalem,+pdpe1gb";

/// Clocks by which it is measured, as `hello` names them.
const TWO: &str = "HPET, ACPI timer";

const fn boots(by: &'static str) -> Expected {
    Expected::Boots { cores: 1, by }
}

/// A `pc` that boots on one processor, and is not among the tests.
const PC: Entry = Entry {
    name: "pc",
    emulator: Emulator::Installed,
    machine: "pc",
    cpu: CPU,
    memory_mib: 512,
    processors: "1",
    more: "",
    loader: Loader::Pvh,
    written: None,
    kernel: Kernel::Debug,
    outcome: boots(TWO),
    is_test: false,
};

const fn machine(name: &'static str, machine: &'static str, by: &'static str) -> Entry {
    Entry {
        name,
        machine,
        outcome: boots(by),
        ..PC
    }
}

/// A `q35` with this processor.
const fn processor(cpu: &'static str) -> Entry {
    Entry {
        name: cpu,
        machine: "q35",
        cpu,
        ..PC
    }
}

const fn refused(entry: Entry, words: &'static str) -> Entry {
    Entry {
        outcome: Expected::Refused(words),
        ..entry
    }
}

const fn tested(entry: Entry) -> Entry {
    Entry {
        is_test: true,
        ..entry
    }
}

/// A `q35` of so many MiB, of which the host need not have as much.
const fn memory(name: &'static str, memory_mib: u32, more: &'static str) -> Entry {
    Entry {
        name,
        machine: "q35,memory-backend=ram",
        memory_mib,
        more,
        ..PC
    }
}

/// A `q35` with several processors, of which the kernel for several cores uses so many.
const fn several(name: &'static str, processors: &'static str, cores: u32) -> Entry {
    Entry {
        name,
        machine: "q35",
        processors,
        kernel: Kernel::SmpDebug,
        outcome: Expected::Boots { cores, by: TWO },
        ..PC
    }
}

const fn disk(name: &'static str, machine: &'static str, firmware: Firmware) -> Entry {
    Entry {
        name,
        machine,
        loader: Loader::Disk(firmware),
        kernel: Kernel::Release,
        ..PC
    }
}

/// A `q35` with this processor, and the kernel that stays mapped while user code runs.
const fn not_isolated(name: &'static str, cpu: &'static str) -> Entry {
    Entry {
        name,
        kernel: Kernel::NotIsolated,
        ..processor(cpu)
    }
}

const MELTDOWN: &str = "the kernel is one without page-table isolation, and the processor may let user code read what is mapped";
/// A `q35` on which memory has these types: registers are written by the kernel's loader.
const fn types(name: &'static str, registers: &'static [(u32, u64)]) -> Entry {
    Entry {
        written: Some((Place::Pvh, registers)),
        ..machine(name, "q35", TWO)
    }
}

/// Registers of memory types: the default one, which has them all in use; and the first range, where it begins and how large
/// it is. QEMU's processors have physical addresses of 40 bits.
const DEFAULT_TYPE: u32 = 0x2ff;
const RANGE: u32 = 0x200;
const RANGE_MASK: u32 = 0x201;
const TYPES_ON: u64 = 1 << 11;
const WRITE_BACK: u64 = 6;
const WRITE_THROUGH: u64 = 4;
const UNCACHED: u64 = 0;
const fn of_mib(mib: u64) -> u64 {
    ((1 << 40) - (mib << 20)) | (1 << 11)
}
const NOT_WRITE_BACK: &str =
    "the memory-type range registers (MTRRs) make RAM another type than write-back";

/// A machine of the second emulator.
const fn second(entry: Entry) -> Entry {
    Entry {
        emulator: Emulator::Second,
        ..entry
    }
}

/// A `q35` of the second emulator, whose processors can be in x2APIC mode, with an IOMMU, without which there are no more
/// than 255. QEMU's own firmware for PVH leaves them in xAPIC mode; SeaBIOS and OVMF leave them in x2APIC mode, if
/// one has a number above 254.
const fn x2apic(name: &'static str, processors: &'static str, cores: u32, loader: Loader) -> Entry {
    Entry {
        machine: "q35,kernel-irqchip=split",
        cpu: X2APIC,
        more: "-device intel-iommu,intremap=on,eim=on",
        loader,
        ..second(several(name, processors, cores))
    }
}

/// The same, with four processors, three of which have numbers from 255 on.
const fn far(name: &'static str, cores: u32, loader: Loader) -> Entry {
    Entry {
        more: "-device intel-iommu,intremap=on,eim=on \
               -device Nehalem-x86_64-cpu,socket-id=255,core-id=0,thread-id=0 \
               -device Nehalem-x86_64-cpu,socket-id=256,core-id=0,thread-id=0 \
               -device Nehalem-x86_64-cpu,socket-id=287,core-id=0,thread-id=0",
        ..x2apic(name, "1,maxcpus=288,sockets=288", cores, loader)
    }
}

/// The register of the local APIC's base: of the first processor, on, in x2APIC mode.
const X2APIC_ON: &[(u32, u64)] = &[(0x1b, 0xfee0_0d00)];

const X2APIC: &str = "Nehalem,+pdpe1gb,+x2apic";

const HUGE_PAGES: &str = "Sandglass needs a processor with 1 GiB pages (pdpe1gb)";
const LONG_MODE: &str = "Sandglass needs a processor with long mode";
const NO_ACPI: &str = "no ACPI root pointer (RSDP) with a valid checksum";
const NO_CLOCK: &str = "nothing runs by which the clock could be measured";

pub const MACHINES: &[Entry] = &[
    // Clocks and controllers.
    PC,
    machine("pc without HPET", "pc,hpet=off", "ACPI timer, PIT"),
    machine("pc without PIT", "pc,pit=off", TWO),
    machine("pc without PIC", "pc,pic=off", TWO),
    tested(machine(
        "pc without HPET, PIT and PIC",
        "pc,hpet=off,pit=off,pic=off",
        "ACPI timer",
    )),
    refused(machine("pc without ACPI", "pc,acpi=off", ""), NO_ACPI),
    Entry {
        loader: Loader::PvhAfterSeaBios,
        ..machine("pc after SeaBIOS", "pc", TWO)
    },
    machine("q35", "q35", TWO),
    tested(machine("q35 without HPET", "q35,hpet=off", "ACPI timer, PIT")),
    tested(machine("q35 without PIT", "q35,pit=off", TWO)),
    machine("q35 without PIC", "q35,pic=off", TWO),
    machine("q35 of QEMU 4.0", "pc-q35-4.0", TWO),
    Entry {
        more: "-device intel-iommu,intremap=on",
        ..machine("q35 with Intel's IOMMU", "q35,kernel-irqchip=split", TWO)
    },
    Entry {
        more: "-device amd-iommu",
        ..machine("q35 with AMD's IOMMU", "q35", TWO)
    },
    tested(machine("microvm", "microvm", "PIT")),
    machine("microvm with an RTC", "microvm,pit=on,pic=on,rtc=on", "PIT"),
    tested(refused(
        machine("microvm without PIT", "microvm,pit=off", ""),
        NO_CLOCK,
    )),
    refused(
        machine(
            "microvm without PIT, PIC and RTC",
            "microvm,pit=off,pic=off,rtc=off",
            "",
        ),
        NO_CLOCK,
    ),
    refused(machine("microvm without ACPI", "microvm,acpi=off", ""), NO_ACPI),
    Entry {
        kernel: Kernel::Release,
        ..machine("pc, release kernel", "pc", TWO)
    },
    tested(refused(
        Entry {
            kernel: Kernel::Release,
            ..machine("microvm without PIT, release kernel", "microvm,pit=off", "")
        },
        NO_CLOCK,
    )),
    // Processors.
    processor("max"),
    processor("phenom,+pdpe1gb"),
    processor("Opteron_G5"),
    processor("Nehalem,+pdpe1gb,+x2apic"),
    processor("Westmere,+pdpe1gb"),
    processor("SandyBridge,+pdpe1gb"),
    processor("Haswell,+pdpe1gb"),
    processor("Broadwell,+pdpe1gb"),
    processor("Skylake-Client,+pdpe1gb"),
    processor("Skylake-Server"),
    processor("Cascadelake-Server"),
    processor("Cooperlake"),
    processor("Icelake-Server"),
    processor("Denverton"),
    processor("Snowridge"),
    processor("KnightsMill"),
    processor("EPYC"),
    processor("EPYC-Rome"),
    processor("EPYC-Milan"),
    processor("Dhyana"),
    processor("max,la57=on"),
    tested(refused(processor("qemu64"), HUGE_PAGES)),
    refused(processor("core2duo"), HUGE_PAGES),
    refused(processor("SandyBridge"), HUGE_PAGES),
    refused(processor("athlon"), LONG_MODE),
    refused(processor("n270"), LONG_MODE),
    not_isolated("EPYC, kernel without isolation", "EPYC"),
    not_isolated("Dhyana, kernel without isolation", "Dhyana"),
    tested(refused(
        not_isolated("Nehalem, kernel without isolation", CPU),
        MELTDOWN,
    )),
    tested(refused(
        processor("Nehalem,+pdpe1gb,-apic"),
        "the processor has no local APIC",
    )),
    refused(
        processor("Nehalem,+pdpe1gb,-fxsr"),
        "the processor has no FXSAVE",
    ),
    refused(
        processor("Nehalem,+pdpe1gb,-sse2"),
        "the processor has no SSE2",
    ),
    refused(
        processor("Nehalem,+pdpe1gb,-pat"),
        "the processor has no page-attribute table",
    ),
    refused(
        processor("Nehalem,+pdpe1gb,-tsc"),
        "the processor has no time-stamp counter",
    ),
    tested(refused(
        processor("Nehalem,+pdpe1gb,-hypervisor"),
        "the processor's time-stamp counter is not invariant",
    )),
    // Memory.
    Entry {
        memory_mib: 16,
        ..machine("16 MiB", "pc", TWO)
    },
    Entry {
        memory_mib: 32,
        ..machine("32 MiB", "q35", TWO)
    },
    memory(
        "8 GiB",
        8 << 10,
        "-object memory-backend-ram,id=ram,size=8G,reserve=off",
    ),
    memory(
        "500 GiB",
        500 << 10,
        "-object memory-backend-ram,id=ram,size=500G,reserve=off",
    ),
    memory(
        "600 GiB, of which 510 are used",
        600 << 10,
        "-object memory-backend-ram,id=ram,size=600G,reserve=off",
    ),
    Entry {
        memory_mib: 4 << 10,
        more: "-object memory-backend-ram,id=a,size=1G,reserve=off -object memory-backend-ram,id=b,size=3G,reserve=off \
               -numa node,memdev=a -numa node,memdev=b",
        ..machine("two nodes of memory", "q35", TWO)
    },
    // Several processors.
    Entry {
        processors: "4",
        ..machine("4 processors, kernel for one", "q35", TWO)
    },
    several("1 processor, kernel for several", "1", 1),
    several("2 of 8 processors", "2,maxcpus=8", 2),
    several("3 sockets", "3,sockets=3", 3),
    tested(several("4 processors", "4", 4)),
    several("2 cores of 2 threads", "4,cores=2,threads=2", 2),
    several("2 sockets of 2 cores of 2 threads", "8,sockets=2,cores=2,threads=2", 4),
    several("64 processors", "64", 4),
    several("96 processors in 4 sockets", "96,sockets=4,cores=24", 4),
    several("255 processors", "255", 4),
    Entry {
        cpu: "EPYC",
        ..several("EPYC, 2 cores of 2 threads", "4,cores=2,threads=2", 2)
    },
    Entry {
        machine: "q35,hpet=off,pit=off",
        outcome: Expected::Boots {
            cores: 4,
            by: "ACPI timer",
        },
        ..several("4 processors without HPET and PIT", "4", 4)
    },
    Entry {
        machine: "microvm",
        outcome: Expected::Boots {
            cores: 4,
            by: "PIT",
        },
        ..several("microvm with 4 processors", "4", 4)
    },
    Entry {
        kernel: Kernel::SmpRelease,
        ..several("4 processors, release kernel", "4", 4)
    },
    // Memory types.
    tested(types(
        "MTRRs: the default is write-back",
        &[(DEFAULT_TYPE, TYPES_ON | WRITE_BACK)],
    )),
    types(
        "MTRRs: the RAM is write-back",
        &[
            (DEFAULT_TYPE, TYPES_ON | UNCACHED),
            (RANGE, WRITE_BACK),
            (RANGE_MASK, of_mib(512)),
        ],
    ),
    refused(
        types(
            "MTRRs: all is uncached",
            &[(DEFAULT_TYPE, TYPES_ON | UNCACHED)],
        ),
        NOT_WRITE_BACK,
    ),
    refused(
        types(
            "MTRRs: half of the RAM is write-back",
            &[
                (DEFAULT_TYPE, TYPES_ON | UNCACHED),
                (RANGE, WRITE_BACK),
                (RANGE_MASK, of_mib(256)),
            ],
        ),
        NOT_WRITE_BACK,
    ),
    tested(refused(
        types(
            "MTRRs: 1 MiB of the RAM is uncached",
            &[
                (DEFAULT_TYPE, TYPES_ON | WRITE_BACK),
                (RANGE, (256 << 20) | UNCACHED),
                (RANGE_MASK, of_mib(1)),
            ],
        ),
        NOT_WRITE_BACK,
    )),
    refused(
        Entry {
            kernel: Kernel::Release,
            ..types(
                "MTRRs: the kernel is write-through, release kernel",
                &[
                    (DEFAULT_TYPE, TYPES_ON | WRITE_BACK),
                    (RANGE, WRITE_THROUGH),
                    (RANGE_MASK, of_mib(2)),
                ],
            )
        },
        NOT_WRITE_BACK,
    ),
    tested(refused(
        Entry {
            written: Some((
                Place::FurtherCore,
                &[(DEFAULT_TYPE, TYPES_ON | WRITE_BACK)],
            )),
            ..several("MTRRs: those of two cores differ", "2", 2)
        },
        "the memory-type range registers (MTRRs) of two cores differ",
    )),
    // From a disk.
    disk("BIOS, pc", "pc", Firmware::Bios),
    Entry {
        memory_mib: 8 << 10,
        machine: "q35,memory-backend=ram,pit=off",
        more: "-object memory-backend-ram,id=ram,size=8G,reserve=off",
        ..disk("BIOS, q35 without PIT, 8 GiB", "", Firmware::Bios)
    },
    Entry {
        kernel: Kernel::SmpDebug,
        processors: "4",
        outcome: Expected::Boots { cores: 4, by: TWO },
        ..disk("BIOS, q35 with 4 processors", "q35", Firmware::Bios)
    },
    disk("UEFI, pc", "pc", Firmware::Uefi),
    Entry {
        outcome: boots("ACPI timer"),
        ..disk(
            "UEFI, q35 without HPET and PIT",
            "q35,hpet=off,pit=off",
            Firmware::Uefi,
        )
    },
    Entry {
        cpu: "EPYC",
        kernel: Kernel::SmpDebug,
        processors: "4",
        outcome: Expected::Boots { cores: 4, by: TWO },
        ..disk("UEFI, q35 with 4 processors of AMD", "q35", Firmware::Uefi)
    },
    // Of the second emulator.
    second(machine("newer pc", "pc", TWO)),
    second(machine("newer q35", "q35", TWO)),
    second(machine("newer microvm", "microvm", "PIT")),
    Entry {
        cpu: "max",
        ..second(several("newer max, 4 processors", "4", 4))
    },
    Entry {
        cpu: "EPYC",
        ..second(several("newer EPYC, 2 cores of 2 threads", "4,cores=2,threads=2", 2))
    },
    x2apic("x2APIC: 1 processor", "1", 1, Loader::PvhAfterSeaBios),
    x2apic("x2APIC: 4 processors", "4", 4, Loader::PvhAfterSeaBios),
    x2apic("x2APIC: 255 processors", "255", 4, Loader::PvhAfterSeaBios),
    x2apic("x2APIC: 288 processors", "288", 4, Loader::PvhAfterSeaBios),
    x2apic("x2APIC: 288 processors, off", "288", 4, Loader::Pvh),
    Entry {
        kernel: Kernel::SmpRelease,
        ..x2apic(
            "x2APIC: 288 processors, release kernel",
            "288",
            4,
            Loader::PvhAfterSeaBios,
        )
    },
    Entry {
        kernel: Kernel::Release,
        ..x2apic(
            "x2APIC: 288 processors, kernel for one",
            "288",
            1,
            Loader::PvhAfterSeaBios,
        )
    },
    x2apic(
        "x2APIC: 288 processors, BIOS",
        "288",
        4,
        Loader::Disk(Firmware::Bios),
    ),
    x2apic(
        "x2APIC: 288 processors, UEFI",
        "288",
        4,
        Loader::Disk(Firmware::Uefi),
    ),
    x2apic(
        "x2APIC: 144 cores of 2 threads",
        "288,cores=144,threads=2",
        4,
        Loader::PvhAfterSeaBios,
    ),
    far("x2APIC: numbers 0, 255, 256, 287", 4, Loader::PvhAfterSeaBios),
    far("x2APIC: numbers 0, 255, 256, 287, off", 1, Loader::Pvh),
    Entry {
        written: Some((Place::Pvh, X2APIC_ON)),
        ..x2apic("x2APIC: set by a loader", "1", 1, Loader::Pvh)
    },
    Entry {
        written: Some((Place::Pvh, X2APIC_ON)),
        ..x2apic("x2APIC: set by a loader, on the first of 4", "4", 4, Loader::Pvh)
    },
];
