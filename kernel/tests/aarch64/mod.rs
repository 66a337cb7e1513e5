//! What only aarch64 has, or has in another way.

mod caches;
mod devices;
mod mappings;
mod threads;

use sandglass_abi::boot::slot;
use sandglass_abi::error::ErrorNumber;
use sandglass_abi::invocation::aarch64 as label;
use sandglass_abi::object::aarch64 as types;
use sandglass_testkit::world::{Refused, World};

const ALL: u64 = 0b1111;
const READ_WRITE: u64 = 0b11;
const BASE: u64 = 0x100_0000_0000;

/// What refuses an invocation, with its details.
fn error<T: std::fmt::Debug>(result: Result<T, Refused>) -> (ErrorNumber, Vec<u64>) {
    let refused = result.expect_err("refused");
    (refused.error, refused.details)
}

/// A lookup of tables ended where entries cover 2^`bits` bytes.
fn missing(bits: u64) -> (ErrorNumber, Vec<u64>) {
    (ErrorNumber::FailedLookup, vec![0, 2, bits])
}

/// A page table of the next level that is missing at `at` in the address space `root`.
fn map_table_in(w: &mut World, root: u64, at: u64) -> Result<u64, Refused> {
    let table = w.make(types::PAGE_TABLE, 0);
    w.invoke(table, label::PAGE_TABLE_MAP, &[at, 0], &[root])?;
    Ok(table)
}

fn map_table(w: &mut World, at: u64) -> Result<u64, Refused> {
    map_table_in(w, slot::VSPACE, at)
}

/// Tables of all levels at `at`, from the upper to the lower.
fn map_tables(w: &mut World, at: u64) -> [u64; 3] {
    [(); 3].map(|()| map_table(w, at).expect("mapped"))
}

fn map_page(w: &mut World, page: u64, at: u64) -> Result<Vec<u64>, Refused> {
    map_page_with(w, page, at, READ_WRITE, 0b11)
}

fn map_page_with(
    w: &mut World,
    page: u64,
    at: u64,
    rights: u64,
    attributes: u64,
) -> Result<Vec<u64>, Refused> {
    let words = [at, rights, attributes];
    w.invoke(page, label::PAGE_MAP, &words, &[slot::VSPACE])
}

/// A root table with an identifier.
fn make_space(w: &mut World) -> u64 {
    let root = w.make(types::VSPACE, 0);
    w.invoke(slot::ASID_POOL, label::ASID_POOL_ASSIGN, &[], &[root])
        .expect("an identifier");
    root
}

/// The physical address of the frame in `slot`.
fn start_of(w: &World, slot: u64) -> u64 {
    w.cap(slot).word().address().get()
}
