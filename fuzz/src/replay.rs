//! The short run: the corpus, then changed copies of it for a moment.

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::panic::catch_unwind;
use std::time::{Duration, Instant};

use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use crate::{Target, change, corpus};

/// How long changed copies are tried.
const MOMENT: Duration = Duration::from_millis(500);
/// How many are made at a time.
const BATCH: u32 = 64;
/// What one input may cost in a debug build on a busy machine. Work that grows with the square of
/// the input is far above it.
const MAX_TIME: Duration = Duration::from_secs(5);

/// Replays the corpus, then tries changed copies of it.
pub(crate) fn run(name: &str, target: Target) {
    let inputs = corpus::inputs(name);
    for (file, input) in &inputs {
        let began = Instant::now();
        let ended = catch_unwind(|| target(input));
        // What went wrong stands above; this says which input it was.
        assert!(ended.is_ok(), "fuzz/corpus/{name}/{file} fails again");
        let took = began.elapsed();
        assert!(took < MAX_TIME, "fuzz/corpus/{name}/{file} takes {took:?}");
    }
    let inputs = inputs.into_iter().map(|(_, input)| input).collect();
    if let Some(input) = failing(inputs, target, MOMENT) {
        let at = keep(name, &input);
        panic!("`{name}` fails with {at}: \"{}\"", input.escape_ascii());
    }
}

/// The smallest input found within that time that makes the target fail.
fn failing(inputs: Vec<Vec<u8>>, target: Target, time: Duration) -> Option<Vec<u8>> {
    let began = Instant::now();
    let config = Config {
        cases: BATCH,
        max_shrink_time: 20_000,
        failure_persistence: None,
        ..Config::default()
    };
    let copies = change::changed(inputs, corpus::words());
    for batch in 0_u64.. {
        if began.elapsed() > time {
            break;
        }
        // The same copies in every run: a merge never fails by chance. Chance is for the long run.
        let mut seed = [0; 32];
        for (to, from) in seed.iter_mut().zip(batch.to_le_bytes()) {
            *to = from;
        }
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
        // A runner counts its cases over all of its runs: it is good for one batch.
        let mut runner = TestRunner::new_with_rng(config.clone(), rng);
        match runner.run(&copies, |input| try_one(&input, target)) {
            Ok(()) => {}
            Err(TestError::Fail(_, input)) => return Some(input),
            Err(TestError::Abort(reason)) => panic!("no inputs were made: {reason}"),
        }
    }
    None
}

fn try_one(input: &[u8], target: Target) -> Result<(), TestCaseError> {
    let began = Instant::now();
    let ended = catch_unwind(|| target(input));
    let is_fine = ended.is_ok() && began.elapsed() < MAX_TIME;
    is_fine
        .then_some(())
        .ok_or_else(|| TestCaseError::fail("the target fails"))
}

/// Keeps a finding in the corpus, where every later run begins with it.
fn keep(name: &str, input: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    input.hash(&mut hasher);
    let path = crate::folder(name).join(format!("found-{:016x}", hasher.finish()));
    match fs::write(&path, input) {
        Ok(()) => path.display().to_string(),
        Err(error) => format!("an input that cannot be kept ({error})"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{MOMENT, failing};

    fn no_negative(input: &[u8]) {
        assert!(!input.windows(2).any(|pair| pair == b"-1"));
    }

    #[test]
    fn a_fault_is_found_and_made_small() {
        let inputs = vec![br#"{"count": 12, "name": "x"}"#.to_vec()];
        // It ends when something is found, which is a matter of chance and of the machine.
        let found = failing(inputs, no_negative, Duration::from_mins(1)).unwrap();
        assert!(found.windows(2).any(|pair| pair == b"-1"), "{found:?}");
        assert_eq!(failing(vec![b"x".to_vec()], |_| {}, MOMENT), None);
    }
}
