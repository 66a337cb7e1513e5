#![no_std]
#![no_main]

use sandglass::{println, BootInfo};

sandglass::entry!(main);

fn main(boot: &'static BootInfo) {
    println!("hello: {} cores, {} untypeds", boot.cores(), boot.untypeds().count());
}
