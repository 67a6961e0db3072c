//! The `sepal` command line: reads it, loads the settings, hands over to the app.

use std::process::ExitCode;

/// Most of what a turn costs beside its own work is memory: the C library's allocator took about an
/// eighth of the processor time (`docs/performance/diary.md`).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    sepal::cli::run()
}
