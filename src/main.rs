//! The `sepal` program.

use std::process::ExitCode;

/// mimalloc, because most of a turn's overhead is memory management: the C library's allocator took about an
/// eighth of the processor time (`docs/performance/diary.md`).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    sepal::cli::run()
}
