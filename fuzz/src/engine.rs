//! The long run: this process becomes libFuzzer.

use std::ffi::{CString, c_char, c_int};
use std::panic::catch_unwind;
use std::sync::OnceLock;

// Only for the library that it links.
use libfuzzer_sys as _;

use crate::Target;

/// Arguments of libFuzzer, as `./run fuzz` sets them.
const ARGUMENTS: &str = "SEPAL_FUZZ_ARGUMENTS";
/// The folder where the corpus grows, outside of the repository.
const GROWN: &str = "SEPAL_FUZZ_CORPUS";

/// As tokio gives its workers.
const STACK: usize = 2 << 20;

static TARGET: OnceLock<Target> = OnceLock::new();

#[expect(unsafe_code, reason = "the C interface of libFuzzer")]
unsafe extern "C" {
    fn LLVMFuzzerRunDriver(
        argc: *mut c_int,
        argv: *mut *mut *mut c_char,
        one: extern "C" fn(*const u8, usize) -> c_int,
    ) -> c_int;
}

#[expect(
    unsafe_code,
    reason = "libFuzzer gives the input as address and length"
)]
extern "C" fn one(data: *const u8, size: usize) -> c_int {
    let input: &[u8] = if size == 0 {
        &[]
    } else {
        // SAFETY: libFuzzer lends `size` bytes at `data` for the time of this call.
        unsafe { std::slice::from_raw_parts(data, size) }
    };
    // An abort is what makes libFuzzer keep the input.
    if let Some(target) = TARGET.get()
        && catch_unwind(|| target(input)).is_err()
    {
        std::process::abort();
    }
    0
}

/// Fuzzes until the time is over or something is found; ends the process.
pub(crate) fn run(name: &str, target: Target) -> ! {
    let _ = TARGET.set(target);
    let arguments = arguments(name);
    // A thread with the stack that the gateway's own have.
    let fuzzing = std::thread::Builder::new()
        .stack_size(STACK)
        .spawn(move || drive(arguments));
    let status = fuzzing.ok().and_then(|fuzzing| fuzzing.join().ok());
    std::process::exit(status.unwrap_or(1))
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is a tool of its own, without settings"
)]
fn arguments(name: &str) -> Vec<String> {
    let seeds = crate::folder(name);
    let dictionary = format!("-dict={}/dictionary", env!("CARGO_MANIFEST_DIR"));
    // What is found lies in the corpus from then on.
    let findings = format!("-artifact_prefix={}/", seeds.display());
    let mut arguments = vec!["sepal-fuzz".to_owned(), dictionary, findings];
    let given = std::env::var(ARGUMENTS).unwrap_or_default();
    arguments.extend(given.split_whitespace().map(str::to_owned));
    arguments.extend(std::env::var(GROWN).ok());
    arguments.push(seeds.display().to_string());
    arguments
}

#[expect(unsafe_code, reason = "the C interface of libFuzzer")]
fn drive(arguments: Vec<String>) -> c_int {
    let mut arguments: Vec<*mut c_char> = arguments
        .into_iter()
        .map(|argument| CString::new(argument).unwrap_or_default().into_raw())
        .collect();
    let mut count = c_int::try_from(arguments.len()).unwrap_or_default();
    arguments.push(std::ptr::null_mut());
    let mut arguments = arguments.as_mut_ptr();
    // SAFETY: the strings live until the process ends, and the list ends with a null.
    unsafe { LLVMFuzzerRunDriver(&raw mut count, &raw mut arguments, one) }
}
