//! A passive server that turns the text in shared memory into capitals. A request's first word is
//! the length of the text; the answer's is the number of letters that changed.

#![no_std]
#![no_main]

use core::slice;

use sandglass::{Environment, Message};

sandglass::entry!(main, stack = 0x4000, heap = 0x4000);

fn main(env: &'static Environment) {
    let page = env.memory("page");
    env.service("shout").serve(|request| {
        // A client's length is a claim until checked.
        let len = request.message.word(0).min(page.len) as usize;
        // SAFETY: the system maps the memory writable; its client waits for the answer meanwhile.
        let text = unsafe { slice::from_raw_parts_mut(page.as_mut_ptr(), len) };
        let changed = text.iter().filter(|byte| byte.is_ascii_lowercase()).count();
        text.make_ascii_uppercase();
        Message::new(0, [changed as u64])
    })
}
