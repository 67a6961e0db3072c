//! Filters log entries by `runtime.log.level`. Two levels are above those of the library: `fatal` and `panic`
//! are errors with a marker field (S0.55).

use tracing::level_filters::LevelFilter;
use tracing::subscriber::Interest;
use tracing::{Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::Context;

use sepal_config::LogLevel;

/// Marks an entry that reports that the process, or its whole task, cannot go on.
pub(super) const FATAL_FIELD: &str = "fatal";
/// Marks an entry that reports a panic; see `panic.rs`.
pub(super) const PANIC_FIELD: &str = "panic.location";

/// A library that logs the messages of MCP servers as they come: with secrets, which are masked only afterwards.
/// Only its errors are let through.
const OF_SERVERS: &str = "rmcp";

/// The filter in front of every output.
pub struct Levels {
    targets: Targets,
    /// The marker fields of which an entry needs one; `None` = no marker is needed.
    marks: Option<&'static [&'static str]>,
}

impl Levels {
    /// Lets our own entries through at the level, and those of libraries at a level that is at most one step
    /// more serious, because their `debug` entries would drown ours. At `fatal` and `panic`, no entries of
    /// libraries pass.
    pub fn new(level: LogLevel) -> Self {
        let (ours, theirs) = match level {
            LogLevel::Trace => (LevelFilter::TRACE, LevelFilter::DEBUG),
            LogLevel::Debug => (LevelFilter::DEBUG, LevelFilter::INFO),
            LogLevel::Info => (LevelFilter::INFO, LevelFilter::WARN),
            LogLevel::Warn => (LevelFilter::WARN, LevelFilter::WARN),
            LogLevel::Error => (LevelFilter::ERROR, LevelFilter::ERROR),
            LogLevel::Fatal | LogLevel::Panic => (LevelFilter::ERROR, LevelFilter::OFF),
        };
        let marks: Option<&'static [&'static str]> = match level {
            LogLevel::Fatal => Some(&[FATAL_FIELD, PANIC_FIELD]),
            LogLevel::Panic => Some(&[PANIC_FIELD]),
            LogLevel::Trace
            | LogLevel::Debug
            | LogLevel::Info
            | LogLevel::Warn
            | LogLevel::Error => None,
        };
        Self {
            targets: Targets::new()
                .with_default(theirs)
                .with_target(OF_SERVERS, theirs.min(LevelFilter::ERROR))
                .with_target(crate::PROGRAM, ours),
            marks,
        }
    }

    fn lets(&self, metadata: &Metadata<'_>) -> bool {
        let is_marked = |mark: &&str| metadata.fields().field(*mark).is_some();
        self.marks.is_none_or(|marks| marks.iter().any(is_marked))
    }
}

impl<S: Subscriber> Layer<S> for Levels {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if self.lets(metadata) {
            Layer::<S>::register_callsite(&self.targets, metadata)
        } else {
            Interest::never()
        }
    }

    fn enabled(&self, metadata: &Metadata<'_>, context: Context<'_, S>) -> bool {
        self.lets(metadata) && Layer::<S>::enabled(&self.targets, metadata, context)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Layer::<S>::max_level_hint(&self.targets)
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::fmt;
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::Levels;
    use sepal_config::LogLevel;

    #[derive(Clone, Default)]
    struct LogBuffer(Arc<Mutex<Vec<u8>>>);

    impl io::Write for LogBuffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn grave() {
        tracing::error!(fatal = true, "one-fatal");
        tracing::error!(panic.location = "a:1", "one-panic");
    }

    fn light() {
        tracing::trace!("one-trace");
        tracing::info!("one-info");
    }

    fn errors() {
        tracing::error!("one-error");
        tracing::error!(target: "hyper", "one-foreign");
    }

    /// The entries that are written at the level, out of one of each kind.
    fn written(level: LogLevel) -> Vec<&'static str> {
        let output = LogBuffer::default();
        let writer = output.clone();
        let layer = fmt::layer().with_writer(move || writer.clone());
        let subscriber = tracing_subscriber::registry()
            .with(Levels::new(level))
            .with(layer.with_ansi(false));
        tracing::subscriber::with_default(subscriber, || {
            grave();
            errors();
            light();
        });
        let text = String::from_utf8(output.0.lock().unwrap().clone()).unwrap();
        [
            "one-trace",
            "one-info",
            "one-error",
            "one-fatal",
            "one-panic",
            "one-foreign",
        ]
        .into_iter()
        .filter(|entry| text.contains(entry))
        .collect()
    }

    /// S0.55.
    #[test]
    fn fatal_and_panic_let_only_the_gravest_through() {
        let all_errors = ["one-error", "one-fatal", "one-panic", "one-foreign"];
        assert_eq!(written(LogLevel::Error), all_errors);
        assert_eq!(written(LogLevel::Fatal), ["one-fatal", "one-panic"]);
        assert_eq!(written(LogLevel::Panic), ["one-panic"]);
        assert_eq!(written(LogLevel::Trace).len(), 6);
    }
}
