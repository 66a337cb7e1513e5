//! A periodic task with a real workload: the one that the component is named after. The parameter
//! `units` says how much there is to do in a job. What comes out is checked, and otherwise dropped.

#![no_std]
#![no_main]

extern crate alloc;

mod corners;
mod picture;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::convert::Infallible;

use jpeg_encoder::{ColorType, Encoder};
use nanomp3_core::{Decoder, MAX_SAMPLES_PER_FRAME};
use sandglass::Environment;

use crate::picture::Picture;

sandglass::entry!(main, stack = 0x4_0000, heap = 0x20_0000);

const JPEG_QUALITY: u8 = 80;

fn main(env: &'static Environment) -> Infallible {
    let units = env.parameter("units") as usize;
    match env.name() {
        "corners" => {
            let picture = Picture::draw(units);
            releases::run(env, |_| {
                let found = corners::detect(&picture);
                assert!(found > 0 || units < 4, "the picture has corners");
            })
        }
        "jpeg" => {
            let picture = Picture::draw(units);
            releases::run(env, |_| encode(&picture))
        }
        "mp3" => {
            // SAFETY: a file of the description, which nobody writes.
            let file = unsafe { env.memory("chord.mp3").as_bytes() };
            let mut player = Player::new(file);
            releases::run(env, |_| {
                for _ in 0..units {
                    player.frame();
                }
            })
        }
        other => panic!("there is no workload `{other}`"),
    }
}

fn encode(picture: &Picture) {
    if picture.is_empty() {
        return;
    }
    let mut bytes = Vec::new();
    let (width, height) = (picture.width as u16, picture.height as u16);
    Encoder::new(&mut bytes, JPEG_QUALITY)
        .encode(&picture.pixels, width, height, ColorType::Luma)
        .expect("the picture can be encoded");
    assert!(bytes.starts_with(&[0xff, 0xd8]) && bytes.ends_with(&[0xff, 0xd9]));
}

/// Plays a file, over and over.
struct Player {
    file: &'static [u8],
    left: &'static [u8],
    decoder: Box<Decoder>,
    samples: Box<[f32; MAX_SAMPLES_PER_FRAME]>,
}

impl Player {
    fn new(file: &'static [u8]) -> Self {
        Self {
            file,
            left: file,
            decoder: Box::new(Decoder::new()),
            samples: Box::new([0.0; MAX_SAMPLES_PER_FRAME]),
        }
    }

    /// Decodes a frame. Bytes that are none, at the begin and the end of the file, are passed over.
    fn frame(&mut self) {
        for _ in 0..16 {
            if self.left.is_empty() {
                self.left = self.file;
            }
            let (consumed, result) = self.decoder.decode(self.left, &mut self.samples[..]);
            self.left = &self.left[consumed..];
            if result.is_ok_and(|info| info.samples_produced > 0) {
                return;
            }
            if consumed == 0 {
                self.left = &[];
            }
        }
        panic!("the file has no frames");
    }
}
