//! Has a text from a file shouted by the server, prints it, and ends the system.

#![no_std]
#![no_main]

use core::{ptr, slice, str};

use sandglass::cap::Endpoint;
use sandglass::{println, Environment, Message};

sandglass::entry!(main, stack = 0x4000, heap = 0x4000);

fn main(env: &'static Environment) -> u8 {
    let (text, page) = (env.memory("text"), env.memory("page"));
    let len = text.len.min(page.len);
    // SAFETY: the system maps both regions, and the server touches the page only when called.
    unsafe { ptr::copy_nonoverlapping(text.as_mut_ptr(), page.as_mut_ptr(), len as usize) };
    let answer = env
        .capability::<Endpoint>("shout")
        .call(Message::new(0, [len]));
    // SAFETY: as above.
    let shouted = unsafe { slice::from_raw_parts(page.as_mut_ptr(), len as usize) };
    println!(
        "{} ({} letters changed)",
        str::from_utf8(shouted).unwrap_or("not a text").trim_end(),
        answer.word(0)
    );
    env.parameter("status") as u8
}
