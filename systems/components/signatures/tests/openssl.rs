//! Signatures, as another implementation sees them: the command `openssl`.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use signatures::known::{known, KNOWN_BEGIN};
use signatures::{digest, Failed, Key, Signed, Signer, Words, DIGEST_WORDS, SIGNED_WORDS};

const TEST_KEY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/test-key.pem");

/// A file of one test, with this content.
fn file(name: &str, content: &[u8]) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, content).expect("a file of the test can be written");
    path
}

fn openssl(command: &mut Command) -> Output {
    let output = command.output();
    output.unwrap_or_else(|error| panic!("cannot run `openssl`, which must be installed: {error}"))
}

/// Whether `openssl` accepts the signature of these bytes, by the test key in its own form.
fn accepts(test: &str, bytes: &[u8], signature: &[u8]) -> bool {
    let mut command = Command::new("openssl");
    command
        .args(["dgst", "-sha256", "-prverify", TEST_KEY, "-signature"])
        .arg(file(&format!("{test}.signature"), signature))
        .arg(file(&format!("{test}.bytes"), bytes));
    let output = openssl(&mut command);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    match (output.status.success(), said.trim()) {
        (true, "Verified OK") => true,
        (false, "Verification failure" | "Verification Failure") => false,
        _ => panic!("`openssl` said {output:?}"),
    }
}

fn signer() -> Signer {
    Signer::new(Key::for_tests().expect("the test key is one"))
}

#[test]
fn another_implementation_accepts_signatures_and_none_of_what_was_changed() {
    let mut signer = signer();
    for (sequence, data) in [&b"a sample"[..], &[], &[0xa5; 4096]]
        .into_iter()
        .enumerate()
    {
        let digest = digest(data);
        let signed = signer
            .sign(digest, u64::MAX - sequence as u64)
            .expect("signed");
        let statement = signed.statement(digest);
        let name = format!("accepted-{sequence}");
        assert!(accepts(&name, &statement.bytes(), &signed.signature));
        for byte in [0, 32, 40, 47] {
            let mut changed = statement.bytes();
            changed[byte] ^= 1;
            assert!(!accepts(&name, &changed, &signed.signature), "byte {byte}");
        }
        let mut changed = signed.signature;
        changed[255] ^= 1;
        assert!(!accepts(&name, &statement.bytes(), &changed));
    }
}

/// PKCS #1 v1.5 has no randomness: both compute the same bytes, and so does the machine (`systems/signature-tests`).
#[test]
fn another_implementation_signs_with_the_same_bytes() {
    let known = known();
    let mut command = Command::new("openssl");
    command
        .args(["dgst", "-sha256", "-sign", TEST_KEY])
        .arg(file("same.bytes", &known.bytes()));
    let output = openssl(&mut command);
    let key = Key::for_tests().expect("the test key is one");
    assert_eq!(
        key.sign(&known).as_ref().map(|bytes| &bytes[..]),
        Ok(&output.stdout[..]),
        "{output:?}"
    );
    let begin = u64::from_be_bytes(output.stdout[..8].try_into().expect("eight"));
    assert_eq!(begin, KNOWN_BEGIN, "{begin:#x}");
}

#[test]
fn no_two_statements_are_the_same() {
    let mut signer = signer();
    let digest = digest(b"replayed");
    let [first, second] = [(); 2].map(|()| signer.sign(digest, 7).expect("signed"));
    assert_eq!((first.sequence, second.sequence), (1, 2));
    assert_ne!(first.signature, second.signature);
}

#[test]
fn messages_have_what_was_put_in_and_no_other_length() {
    let digest = digest(b"a sample");
    let signed = signer().sign(digest, 5).expect("signed");
    let request: [u64; DIGEST_WORDS] = digest.to_words();
    assert_eq!(<[u8; 32]>::from_words(&request), Some(digest));
    assert_eq!(<[u8; 32]>::from_words(&request[1..]), None);
    let answer: [u64; SIGNED_WORDS] = signed.to_words();
    assert_eq!(Signed::from_words(&answer), Some(signed));
    assert_eq!(Signed::from_words(&answer[..33]), None);
    assert_eq!(Signed::from_words(&[]), None);
    assert_eq!(Signed::from_words(&[0; SIGNED_WORDS + 1]), None);
}

#[test]
fn what_is_no_key_is_refused() {
    let prime = "f".repeat(256);
    let other = format!("{}d", "f".repeat(255));
    for (p, q, exponent) in [
        // The same twice; too short; no digits; no number that goes with the primes.
        (prime.as_str(), prime.as_str(), 65_537),
        ("ff", prime.as_str(), 65_537),
        ("zz", "zz", 65_537),
        (prime.as_str(), other.as_str(), 2),
    ] {
        assert_eq!(Key::of_primes(p, q, exponent).err(), Some(Failed::Key));
    }
}
