//! What is logged while a test runs.

use std::io;
use std::sync::{Arc, Mutex};

use sepal::config::LogLevel;
use sepal::telemetry::Levels;
use tracing::dispatcher::DefaultGuard;
use tracing_subscriber::layer::SubscriberExt as _;

/// Everything that is logged on the thread of the test, for as long as this lives.
pub(crate) struct Log {
    lines: Lines,
    _second: tracing::Dispatch,
    _logging: DefaultGuard,
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    pub(crate) fn start() -> Self {
        let lines = Lines::default();
        let writer = lines.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        Self {
            lines,
            // With one subscriber alone, tracing lets the thread that comes first to a place in the code
            // say for all threads whether anybody listens there: with a second one it asks both.
            _second: tracing::Dispatch::new(tracing::subscriber::NoSubscriber::new()),
            _logging: tracing::subscriber::set_default(subscriber),
        }
    }

    /// The same with what the gateway itself would write at a level.
    pub(crate) fn at(level: LogLevel) -> Self {
        let lines = Lines::default();
        let writer = lines.clone();
        let written = tracing_subscriber::fmt::layer()
            .with_ansi(false)
            .with_writer(move || writer.clone());
        let subscriber = tracing_subscriber::registry()
            .with(Levels::new(level))
            .with(written);
        Self {
            lines,
            _second: tracing::Dispatch::new(tracing::subscriber::NoSubscriber::new()),
            _logging: tracing::subscriber::set_default(subscriber),
        }
    }

    /// All lines so far.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.lines.0.lock().unwrap()).into_owned()
    }
}
