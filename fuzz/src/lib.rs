//! Runs the fuzzers, which stand beside the parsers that they try (`mod fuzz` there).
//!
//! In an ordinary test run a fuzzer replays its corpus and then half a second of changed copies of it.
//! Built by `./run fuzz`, the same test hands itself to libFuzzer, which watches the coverage.
//! `fuzz/README.md` says how to add one and what to do with a finding.

#[cfg(not(sepal_fuzzing))]
mod change;
#[cfg(not(sepal_fuzzing))]
mod corpus;
#[cfg(sepal_fuzzing)]
mod engine;
#[cfg(not(sepal_fuzzing))]
mod replay;

use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// What tries one parser. It panics where the parser does not keep its word.
pub type Target = fn(&[u8]);

/// Runs the fuzzer with that name, which is the name of its test and of its folder below
/// `fuzz/corpus`. Panics with the input if the target does; libFuzzer ends the process.
pub fn check(name: &str, target: Target) {
    #[cfg(sepal_fuzzing)]
    engine::run(name, target);
    #[cfg(not(sepal_fuzzing))]
    replay::run(name, target);
}

/// Cuts the first byte off: targets that can do several things let it say which.
pub fn choice(input: &[u8]) -> (u8, &[u8]) {
    input
        .split_first()
        .map_or((0, input), |(choice, rest)| (*choice, rest))
}

/// A folder for targets that make files with every input, in memory where the machine has such a
/// place. Panics where no folder can be made.
pub fn scratch() -> TempDir {
    let memory = Path::new("/dev/shm");
    let in_memory = memory.is_dir().then(|| TempDir::new_in(memory));
    match in_memory {
        Some(Ok(folder)) => folder,
        Some(Err(_)) | None => TempDir::new().unwrap_or_else(|error| panic!("no folder: {error}")),
    }
}

/// The folder of a fuzzer's inputs.
fn folder(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "corpus", name]
        .iter()
        .collect()
}
