//! What descriptions of a kernel for x86_64 say, as JSON (ABI 09, section 8).

use sandglass_abi::invocation::{self, x86_64};
use sandglass_abi::object;
use sandglass_abi::profile::{Fpu, Profile, SegmentBases};
use sandglass_abi::vspace::x86_64::USER_TOP_EXCLUSIVE;
use serde::{Serialize, Serializer};

/// Bits of an address that a paging structure, and one of an IOMMU, takes.
const TABLE_INDEX_BITS: u64 = 9;
/// Entries of the table of identifiers of address spaces, and a VCPU, as descriptions have them, as powers of two: there is
/// neither in the kernel's ABI, and the tool wants numbers.
const ASID_TABLE_BITS: u32 = 9;
const VCPU_BITS: u32 = 14;
/// The first physical address that no device can have.
const DEVICE_TOP: u64 = 1 << 47;
/// Objects that one Retype makes at most (ABI 03, section 3).
const FAN_OUT: u64 = 256;
/// Units of work after which a kernel of the ABI looks for interrupts, as its configuration has it.
const WORK_UNITS: u64 = 100;
/// Bytes that are zeroed between two such looks, as a power of two (ABI 03, section 3).
const CHUNK_BITS: u64 = 8;
/// The initial thread's slice of time in ms (ABI 06, section 1.1).
const SLICE_MS: u64 = 5;

/// A value of the flat descriptions of configurations, in which numbers are text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Value {
    Switch(bool),
    Text(String),
}

impl From<bool> for Value {
    fn from(on: bool) -> Self {
        Value::Switch(on)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::Text(text.to_owned())
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Value::Text(number.to_string())
    }
}

/// A JSON object with its keys in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table<V>(pub Vec<(&'static str, V)>);

impl<V: Serialize> Serialize for Table<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

/// A kernel, as others know it.
#[derive(Clone, Copy, Debug)]
pub struct Configuration {
    pub profile: &'static Profile,
    pub is_debug: bool,
    /// The most cores that it runs on.
    pub nodes: u32,
}

impl Configuration {
    /// The kernel's `gen_config.json`: what Microkit's tool reads, then what conditions of libsel4's interfaces ask for.
    pub fn kernel(&self) -> Table<Value> {
        let mut table = self.read_by_the_tool();
        table.extend(self.asked_for_by_interfaces());
        Table(table)
    }

    fn read_by_the_tool(&self) -> Vec<(&'static str, Value)> {
        let profile = self.profile;
        vec![
            ("SEL4_ARCH", "x86_64".into()),
            ("WORD_SIZE", 64.into()),
            ("PADDR_USER_DEVICE_TOP", DEVICE_TOP.into()),
            (
                "ROOT_CNODE_SIZE_BITS",
                u64::from(profile.root_cnode_bits).into(),
            ),
            ("RETYPE_FAN_OUT_LIMIT", FAN_OUT.into()),
            (
                "MAX_NUM_BOOTINFO_UNTYPED_CAPS",
                (sandglass_abi::boot::MAX_UNTYPEDS as u64).into(),
            ),
            ("VTX", false.into()),
            ("IOMMU", profile.iommu.into()),
            ("ENABLE_SMP_SUPPORT", (self.nodes > 1).into()),
            ("MAX_NUM_NODES", u64::from(self.nodes).into()),
            ("NUM_DOMAINS", profile.domains.into()),
            (
                "NUM_DOMAIN_SCHEDULES",
                (profile.schedule_entries as u64).into(),
            ),
            ("HAVE_FPU", true.into()),
        ]
    }

    fn asked_for_by_interfaces(&self) -> Vec<(&'static str, Value)> {
        let profile = self.profile;
        let instructions = profile.segment_bases == SegmentBases::Instructions;
        let mut table: Vec<(&'static str, Value)> = vec![
            ("ARCH_X86", true.into()),
            ("ARCH_X86_64", true.into()),
            ("PLAT", "pc99".into()),
            ("PLAT_PC99", true.into()),
            ("KERNEL_MCS", true.into()),
            ("DEBUG_BUILD", self.is_debug.into()),
            ("PRINTING", self.is_debug.into()),
            ("HARDWARE_DEBUG_API", profile.hardware_debug.into()),
            ("HUGE_PAGE", true.into()),
            ("SET_TLS_BASE_SELF", profile.set_tls_base_call.into()),
            ("FSGSBASE_INST", instructions.into()),
            ("FSGSBASE_MSR", (!instructions).into()),
            ("NUM_PRIORITIES", 256.into()),
            ("BOOT_THREAD_TIME_SLICE", SLICE_MS.into()),
            ("MAX_NUM_WORK_UNITS_PER_PREEMPTION", WORK_UNITS.into()),
            ("RESET_CHUNK_BITS", CHUNK_BITS.into()),
            ("ENABLE_BENCHMARKS", false.into()),
        ];
        match profile.fpu {
            Fpu::Fxsave => table.push(("FXSAVE", true.into())),
            Fpu::Xsave { bytes, features } => table.extend([
                ("XSAVE", true.into()),
                ("XSAVE_SIZE", u64::from(bytes).into()),
                ("XSAVE_FEATURE_SET", features.into()),
            ]),
        }
        table
    }

    /// libsel4's `gen_config.json`.
    pub fn library(&self) -> Table<Value> {
        Table(vec![("LIB_SEL4_USE_THREAD_LOCALS", false.into())])
    }

    /// `invocations_all.json`.
    pub fn invocations(&self) -> Table<u64> {
        let all = invocation::all(self.profile, x86_64::TABLE);
        Table(all.map(|(number, label)| (label.key, number)).collect())
    }

    /// `object_sizes.json`: log2 bytes.
    pub fn object_sizes(&self) -> Table<u32> {
        Table(vec![
            ("tcb", object::TCB_BITS),
            ("endpoint", object::ENDPOINT_BITS),
            ("notification", object::NOTIFICATION_BITS),
            ("small_page", object::x86_64::PAGE_BITS),
            ("large_page", object::x86_64::LARGE_PAGE_BITS),
            ("asid_pool", object::ASID_POOL_BITS),
            ("asid_table", ASID_TABLE_BITS),
            ("slot", object::SLOT_BITS),
            ("min_untyped_bits", object::MIN_UNTYPED_BITS),
            ("max_untyped_bits", object::MAX_UNTYPED_BITS),
            ("vspace", object::PAGING_STRUCTURE_BITS),
            ("reply", object::REPLY_BITS),
            ("vcpu", VCPU_BITS),
            ("page_table", object::PAGING_STRUCTURE_BITS),
            ("huge_page", object::x86_64::HUGE_PAGE_BITS),
            ("io_page_table", object::PAGING_STRUCTURE_BITS),
        ])
    }

    /// `address_space_constants.json`.
    pub fn address_space(&self) -> Table<u64> {
        Table(vec![
            ("page_table_index_bits", TABLE_INDEX_BITS),
            ("vspace_user_top", USER_TOP_EXCLUSIVE - 1),
            ("io_page_table_index_bits", TABLE_INDEX_BITS),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandglass_abi::profile::{BASE, MICROKIT_DEBUG, MICROKIT_RELEASE};

    const RELEASE: Configuration = Configuration {
        profile: &MICROKIT_RELEASE,
        is_debug: false,
        nodes: 1,
    };

    /// As ABI 09, section 8, has them, by hand.
    #[test]
    fn sizes_and_addresses_are_those_of_the_page() {
        let page = r#"{"tcb":11,"endpoint":4,"notification":6,"small_page":12,"large_page":21,"asid_pool":12,
            "asid_table":9,"slot":5,"min_untyped_bits":4,"max_untyped_bits":47,"vspace":12,"reply":5,"vcpu":14,
            "page_table":12,"huge_page":30,"io_page_table":12}"#;
        let page: serde_json::Value = serde_json::from_str(page).unwrap();
        assert_eq!(serde_json::to_value(RELEASE.object_sizes()).unwrap(), page);
        let page = r#"{"page_table_index_bits":9,"vspace_user_top":140737488351231,"io_page_table_index_bits":9}"#;
        assert_eq!(
            serde_json::to_string(&RELEASE.address_space()).unwrap(),
            page
        );
    }

    /// The keys that the tool reads, with the values of the page: numbers are text.
    #[test]
    fn the_configuration_is_flat_and_its_numbers_are_text() {
        let page = r#"{"SEL4_ARCH":"x86_64","WORD_SIZE":"64","PADDR_USER_DEVICE_TOP":"140737488355328",
            "ROOT_CNODE_SIZE_BITS":"17","RETYPE_FAN_OUT_LIMIT":"256","MAX_NUM_BOOTINFO_UNTYPED_CAPS":"230","VTX":false,
            "IOMMU":true,"ENABLE_SMP_SUPPORT":false,"MAX_NUM_NODES":"1","NUM_DOMAINS":"16","NUM_DOMAIN_SCHEDULES":"100",
            "HAVE_FPU":true}"#;
        let page: serde_json::Value = serde_json::from_str(page).unwrap();
        let tool = Table(RELEASE.read_by_the_tool());
        assert_eq!(serde_json::to_value(tool).unwrap(), page);
        let base = Configuration {
            profile: &BASE,
            is_debug: true,
            nodes: 4,
        };
        let base = serde_json::to_value(base.kernel()).unwrap();
        assert_eq!(base["ENABLE_SMP_SUPPORT"], true);
        assert_eq!(base["MAX_NUM_NODES"], "4");
        assert_eq!(base["DEBUG_BUILD"], true);
        assert_eq!(base["HARDWARE_DEBUG_API"], false);
        assert_eq!(base["FXSAVE"], true);
    }

    #[test]
    fn a_key_is_there_once() {
        let Table(mut keys) = RELEASE.kernel();
        let count = keys.len();
        keys.sort_by_key(|&(key, _)| key);
        keys.dedup_by_key(|&mut (key, _)| key);
        assert_eq!(keys.len(), count);
    }

    #[test]
    fn invocations_are_those_of_the_profile() {
        let debug = Configuration {
            profile: &MICROKIT_DEBUG,
            is_debug: true,
            nodes: 1,
        };
        let [release, debug] = [RELEASE, debug].map(|it| it.invocations());
        assert!(!release.0.iter().any(|(key, _)| key.ends_with("Breakpoint")));
        assert!(debug.0.contains(&("TCBSetBreakpoint", 16)));
        assert_eq!(release.0.last(), Some(&("X86IRQIssueIRQHandlerMSI", 61)));
        assert_eq!(debug.0.last(), Some(&("X86IRQIssueIRQHandlerMSI", 65)));
    }
}
