//! 06, sections 4 and 6: the chunks of extra boot information.

use sandglass::abi::boot::extra as id;
use sandglass::boot::ExtraChunk;

use crate::arch::page06::{chunk_length, CHUNKS, REQUIRED};
use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("06/4/chunks-come-in-order-and-fill-the-length", order),
    check("06/4/chunks-have-their-lengths", lengths),
];

fn chunk(f: &Fixture, id: u64) -> Option<ExtraChunk<'static>> {
    f.boot.extra().find(|chunk| chunk.id == id)
}

/// A chunk that every boot has.
pub fn required(f: &Fixture, id: u64) -> Result<&'static [u8], Failure> {
    let chunk = chunk(f, id).ok_or_else(|| Failure::from(format!("no chunk {id}")))?;
    Ok(chunk.payload)
}

fn order(f: &mut Fixture) -> TestResult {
    let ids: Vec<u64> = f.boot.extra().map(|chunk| chunk.id).collect();
    // The last are of Sandglass, outside the ABI's numbers.
    let order = CHUNKS.iter().copied().chain([id::X86_CLOCK, id::TIMING]);
    let expected: Vec<u64> = order.filter(|id| ids.contains(id)).collect();
    ensure_eq!(ids, expected);
    for &id in REQUIRED {
        required(f, id)?;
    }
    let bytes: usize = f.boot.extra().map(|chunk| chunk.payload.len() + 16).sum();
    ensure_eq!(bytes as u64, f.boot.raw().extra_len);
    Ok(())
}

fn lengths(f: &mut Fixture) -> TestResult {
    for chunk in f.boot.extra() {
        let expected = match chunk.id {
            id::TIMING => Some(80),
            id::X86_CLOCK => Some(72),
            id => chunk_length(id, chunk.payload),
        };
        ensure!(expected.is_some(), "a chunk with the id {}", chunk.id);
        ensure_eq!(Some(chunk.payload.len() + 16), expected);
    }
    Ok(())
}

/// The processor's clock and the kernel's agree.
pub fn clock_is_right(f: &mut Fixture) -> TestResult {
    // A round-robin thread runs until it is stopped, and its context counts µs by the kernel's
    // own idea of the frequency: within a percent the same as ticks by the reported one.
    const US: u64 = 5_000;
    let context = f.context(FULL)?;
    let params = ThreadParams {
        sched_context: Some(context),
        ..f.passive(100)
    };
    f.spawn(params, || spin())?;
    let begin = time::ticks();
    f.sleep(US)?;
    let elapsed = time::ticks() - begin;
    let consumed = f.ticks(context.consumed_us()?);
    ensure!(
        consumed <= elapsed && consumed * 10 >= elapsed * 9,
        "{consumed} ticks were consumed, of {elapsed}"
    );
    Ok(())
}
