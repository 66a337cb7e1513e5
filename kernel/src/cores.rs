//! The cores that the kernel is built for, by number and as sets.

/// Number of cores that the kernel is built for: with several, as the profile has it (ABI 09, section 1).
pub const CORES: usize = sandglass_abi::profile::cores(cfg!(feature = "smp"));

const _: () = assert!(CORES.is_power_of_two() && CORES <= 8 * size_of::<Cores>());

/// The number of a core: below [`CORES`], always.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct CoreId(u8);

impl CoreId {
    /// The core that boots; affinity of whatever was never given another (04, section 15).
    pub const BOOT: CoreId = CoreId(0);

    /// Core `number`, if the kernel is built for that many.
    pub const fn new(number: u64) -> Option<CoreId> {
        if number < CORES as u64 {
            Some(CoreId(number as u8))
        } else {
            None
        }
    }

    /// All cores, ascending.
    pub fn all() -> impl Iterator<Item = CoreId> {
        (0..CORES as u8).map(CoreId)
    }

    /// Its number.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// Index into an array with an entry for each core. The mask keeps the compiler from checking.
    pub const fn index(self) -> usize {
        self.0 as usize & (CORES - 1)
    }
}

/// A set of cores.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cores(sandglass_abi::profile::CoreBits);

impl Cores {
    pub const NONE: Cores = Cores(0);

    /// The set with `core` in it as well.
    #[must_use]
    pub const fn with(self, core: CoreId) -> Cores {
        Cores(self.0 | 1 << core.0)
    }

    /// The set without `core`.
    #[must_use]
    pub const fn without(self, core: CoreId) -> Cores {
        Cores(self.0 & !(1 << core.0))
    }

    pub const fn has(self, core: CoreId) -> bool {
        self.0 >> core.0 & 1 != 0
    }

    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Bit i for core i.
    pub const fn bits(self) -> u32 {
        self.0 as u32
    }

    /// Its members, ascending.
    pub fn iter(self) -> impl Iterator<Item = CoreId> {
        CoreId::all().filter(move |&core| self.has(core))
    }
}
