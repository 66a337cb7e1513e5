//! A message from one thread to another.

use sandglass_abi::message::MessageInfo;

use super::Request;
use crate::{arch::bounds, ipc::message, mem::Ref, object::Tcb, Kernel};

/// A message without capabilities, between two threads.
pub struct Delivery {
    pub from: Ref<Tcb>,
    pub to: Ref<Tcb>,
    pub badge: u64,
    pub info: MessageInfo,
}

impl Delivery {
    #[inline(always)]
    pub fn carry_out(&self, k: &Kernel) {
        let info = if self.info.is_short() {
            message::copy_registers(k, self.from, self.to, self.info.length());
            self.info.plain()
        } else {
            let length = message::copy_words(k, self.from, self.to, self.info.length());
            MessageInfo::new(self.info.label(), 0, 0, length)
        };
        let context = self.to.at(k).context();
        context.set_info(k, info.raw());
        context.set_badge(k, self.badge);
    }
}

/// What a message is about, if it has no capabilities.
#[inline(always)]
pub fn plain_message(request: Request) -> Option<MessageInfo> {
    let info = MessageInfo::from_raw(request.info);
    if info.extra_caps() > 0 {
        return None;
    }
    bounds::mark::<{ bounds::PLAIN }>();
    Some(info)
}
