//! Capabilities and their derivations.

use std::collections::{BTreeMap, BTreeSet};

use sandglass_kernel::cap::Capability;
use sandglass_kernel::mem::{Kind, Tagged};
use sandglass_model::state::{
    CNodeId, Cap, Capabilities, ContextId, EndpointId, FrameRights, Held, Mapping, NotificationId,
    PoolId, ReplyId, Rights, TableId, ThreadId,
};

use crate::census::{level, Census};

/// All capabilities, and the lists that they are in.
pub fn capabilities(census: &Census) -> Capabilities {
    let slots = census
        .sites
        .iter()
        .filter_map(|site| {
            let held = Held {
                cap: capability(site.view.cap)?,
                revocable: site.view.revocable,
                first_badged: site.view.first_badged,
            };
            Some((site.id, held))
        })
        .collect();
    let ids = |list: &[usize]| list.iter().map(|&site| census.sites[site].id).collect();
    let mut lists: Vec<Vec<_>> = census.lists().map(ids).collect();
    lists.sort_unstable();
    Capabilities { slots, lists }
}

/// Radix of every CNode.
pub fn cnodes(census: &Census) -> BTreeMap<CNodeId, u8> {
    let cnodes = census.cnodes.iter();
    cnodes
        .map(|&(address, radix)| (CNodeId(address), radix))
        .collect()
}

/// The ranges of ports that were issued. The kernel has a mark for each port; that these say the
/// same as the capabilities is an invariant.
pub fn ports(census: &Census) -> BTreeSet<(u16, u16)> {
    let ports = census
        .sites
        .iter()
        .filter_map(|site| site.view.cap.io_ports());
    ports.map(|ports| (ports.first, ports.last)).collect()
}

fn address(cap: Capability) -> u64 {
    cap.word().address().get()
}

/// `cap` in the specification's words; `None` for the null capability and for zombies.
pub fn capability(cap: Capability) -> Option<Cap> {
    Some(match cap.kind() {
        Kind::Null | Kind::Zombie => return None,
        Kind::Untyped => {
            let memory = cap.untyped()?;
            Cap::Untyped {
                start: memory.start().get(),
                bits: memory.bits(),
                device: memory.is_device(),
                watermark: memory.watermark(),
            }
        }
        Kind::Endpoint => {
            let endpoint = cap.endpoint()?;
            Cap::Endpoint {
                object: EndpointId(address(cap)),
                badge: endpoint.badge,
                rights: rights(endpoint.rights),
            }
        }
        Kind::Notification => {
            let notification = cap.notification()?;
            Cap::Notification {
                object: NotificationId(address(cap)),
                badge: notification.badge,
                // The rights that notifications do not have are never looked at.
                rights: Rights {
                    grant: false,
                    grant_reply: false,
                    ..rights(notification.rights)
                },
            }
        }
        Kind::Reply => Cap::Reply {
            object: ReplyId(address(cap)),
            can_grant: cap.reply()?.can_grant,
        },
        Kind::CNode => {
            let node = cap.cnode()?;
            Cap::CNode {
                object: CNodeId(address(cap)),
                radix: node.radix() as u8,
                guard: node.guard(),
                guard_size: node.guard_size() as u8,
            }
        }
        Kind::Tcb => Cap::Thread(ThreadId(address(cap))),
        Kind::SchedContext => Cap::SchedContext {
            object: ContextId(address(cap)),
            bits: bits(cap.word()),
        },
        Kind::SchedControl => Cap::SchedControl { core: cap.core() },
        Kind::Domain => Cap::Domain,
        Kind::IrqControl => Cap::IrqControl,
        Kind::IrqHandler => Cap::IrqHandler { irq: cap.irq()? },
        Kind::Frame => {
            let frame = cap.frame()?;
            Cap::Frame {
                start: frame.start().get(),
                bits: frame.bits(),
                device: frame.is_device(),
                rights: frame_rights(frame.rights),
                mapping: frame.mapping.map(mapping),
            }
        }
        Kind::PageTable | Kind::PageDirectory | Kind::Pdpt => Cap::Paging {
            object: TableId(address(cap)),
            level: level(cap.kind())?,
            mapping: cap.paging()?.mapping.map(mapping),
        },
        Kind::Pml4 => Cap::Pml4 {
            object: TableId(address(cap)),
            asid: cap.root_asid(),
        },
        Kind::AsidControl => Cap::AsidControl,
        Kind::AsidPool => Cap::AsidPool {
            object: PoolId(address(cap)),
            number: cap.pool_number() as u8,
        },
        Kind::IoPortControl => Cap::IoPortControl,
        Kind::IoPort => {
            let ports = cap.io_ports()?;
            Cap::IoPort {
                first: ports.first,
                last: ports.last,
            }
        }
        kind => unreachable!("the kind {kind:?}"),
    })
}

fn bits(word: Tagged) -> u8 {
    (word.shape() & 0x3f) as u8
}

fn rights(rights: sandglass_kernel::object::rights::Rights) -> Rights {
    Rights {
        write: rights.write(),
        read: rights.read(),
        grant: rights.grant(),
        grant_reply: rights.grant_reply(),
        call: rights.calls_only(),
    }
}

fn frame_rights(rights: sandglass_kernel::object::rights::FrameRights) -> FrameRights {
    match rights {
        sandglass_kernel::object::rights::FrameRights::READ_WRITE => FrameRights::ReadWrite,
        sandglass_kernel::object::rights::FrameRights::READ_ONLY => FrameRights::ReadOnly,
        _ => FrameRights::KernelOnly,
    }
}

fn mapping(mapping: sandglass_kernel::arch::abi::Mapping) -> Mapping {
    Mapping {
        asid: mapping.asid,
        vaddr: mapping.vaddr,
    }
}
