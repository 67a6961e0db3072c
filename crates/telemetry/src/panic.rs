//! Logs panics like everything else, so that an operator sees them in the log file.

use std::backtrace::Backtrace;
use std::panic::PanicHookInfo;

use super::redact;

/// Replaces the default panic hook, which writes only to standard error.
pub(super) fn log_panics() {
    std::panic::set_hook(Box::new(log));
}

fn log(info: &PanicHookInfo<'_>) {
    let message = info.payload_as_str().unwrap_or("no message");
    let location = info.location().map(ToString::to_string);
    let thread = std::thread::current();
    tracing::error!(
        panic.location = location.as_deref().unwrap_or("unknown"),
        panic.thread = thread.name().unwrap_or("unnamed"),
        // Empty unless RUST_BACKTRACE is set.
        panic.backtrace = %Backtrace::capture(),
        "Panicked: {}",
        redact(message),
    );
}
