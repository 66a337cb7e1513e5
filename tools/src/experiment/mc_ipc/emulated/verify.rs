//! Signatures, verified by another implementation than the one that made them: the command `openssl`.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{bail, Context, Result};
use key_server_study::record::Request;

use crate::{side_by_side, workspace};

/// The key, in OpenSSL's form.
const KEY: &str = "systems/components/signatures/tests/test-key.pem";

/// Words of an answer before the signature: time and sequence number.
const NUMBERS: usize = 2;

/// When the server began with the request, in ticks.
pub const fn signed_at(request: &Request) -> u64 {
    request.signed[0]
}

/// The number of the signature, from 1 on.
pub const fn sequence(request: &Request) -> u64 {
    request.signed[1]
}

/// What was signed, by the documentation of `signatures::Statement`: the digest that the client sent, time and number, with the
/// most significant byte first. Digest and signature are bytes that were in memory as these words.
fn statement(request: &Request) -> Vec<u8> {
    let mut bytes = in_memory(&request.digest);
    for number in &request.signed[..NUMBERS] {
        bytes.extend(number.to_be_bytes());
    }
    bytes
}

fn in_memory(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Whether each signature is right, in order.
///
/// # Errors
/// `openssl` cannot be run, or says something else.
pub fn all(requests: &[&Request]) -> Result<Vec<bool>> {
    let folder = workspace::target_dir().join(format!("signatures-{}", std::process::id()));
    fs::create_dir_all(&folder)
        .with_context(|| format!("cannot make the folder `{}`", folder.display()))?;
    let numbered: Vec<(usize, &Request)> = requests.iter().copied().enumerate().collect();
    let accepted = side_by_side::run(
        &numbered,
        |(number, request)| is_right(&folder, *number, request),
        |_, _| {},
    );
    // Only we have read it; a folder that stays behind is no failure.
    let _ = fs::remove_dir_all(&folder);
    accepted
}

fn is_right(folder: &Path, number: usize, request: &Request) -> Result<bool> {
    let file = |what: &str, content: Vec<u8>| {
        let path = folder.join(format!("{number}.{what}"));
        fs::write(&path, content).with_context(|| format!("cannot write `{}`", path.display()))?;
        Ok::<_, anyhow::Error>(path)
    };
    let mut command = Command::new("openssl");
    command
        .args(["dgst", "-sha256", "-prverify"])
        .arg(workspace::root().join(KEY))
        .arg("-signature")
        .arg(file("signature", in_memory(&request.signed[NUMBERS..]))?)
        .arg(file("bytes", statement(request))?);
    let output = command
        .output()
        .context("cannot run `openssl`, which verifies signatures: must be installed")?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    match (output.status.success(), said.trim()) {
        (true, "Verified OK") => Ok(true),
        (false, "Verification failure" | "Verification Failure") => Ok(false),
        _ => bail!("`openssl` said {output:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OpenSSL computes the same bytes: PKCS #1 v1.5 has no randomness.
    fn signed(request: &Request) -> Vec<u64> {
        let path = workspace::target_dir().join(format!("statement-{}", std::process::id()));
        fs::write(&path, statement(request)).unwrap();
        let mut command = Command::new("openssl");
        command.args(["dgst", "-sha256", "-sign"]);
        command.arg(workspace::root().join(KEY)).arg(&path);
        let output = command.output().unwrap();
        fs::remove_file(&path).unwrap();
        let (words, rest) = output.stdout.as_chunks::<8>();
        assert!(rest.is_empty(), "{output:?}");
        words.iter().map(|word| u64::from_le_bytes(*word)).collect()
    }

    #[test]
    fn a_signature_is_accepted_and_none_of_something_else() {
        let words = std::array::from_fn(|place| 0x0102_0304_0506_0708 * place as u64);
        let mut request = Request::from_words(&words);
        let signature = signed(&request);
        request.signed[NUMBERS..].copy_from_slice(&signature);
        let (mut later, mut other, mut damaged) = (request, request, request);
        later.signed[1] += 1;
        other.digest[0] ^= 1;
        damaged.signed[NUMBERS] ^= 1;
        let accepted = all(&[&request, &later, &other, &damaged]).unwrap();
        assert_eq!(accepted, [true, false, false, false]);
    }
}
