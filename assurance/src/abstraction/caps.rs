//! Capabilities and their derivations.

use std::collections::BTreeMap;

use sandglass_kernel::cap::Capability;
use sandglass_kernel::mem::{Kind, Tagged};
use sandglass_model::state::{
    CNodeId, Cap, Capabilities, ContextId, EndpointId, FrameRights, Held, Mapping, NotificationId,
    PoolId, ReplyId, Rights, ThreadId,
};

use crate::census::Census;
use crate::isa;

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

pub fn address(cap: Capability) -> u64 {
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
        Kind::AsidControl => Cap::AsidControl,
        Kind::AsidPool => Cap::AsidPool {
            object: PoolId(address(cap)),
            number: cap.pool_number() as u8,
        },
        _ => return isa::capability(cap),
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

pub fn mapping(mapping: sandglass_kernel::arch::abi::Mapping) -> Mapping {
    Mapping {
        asid: mapping.asid,
        vaddr: mapping.vaddr,
    }
}
