//! Configures the log of the process: its level, format and output.

use std::fs::File;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::sync::Arc;

use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::layer::{Layered, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer, Registry, fmt, reload};

use sepal_config::{Log, LogFormat, LogLevel, LogOutput};

use crate::level::Levels;
use crate::{panic, relay};

/// The reason why the log cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file of `runtime.log.output` cannot be opened.
    #[error("the log file `{path}` cannot be opened for appending")]
    Open {
        path: PathBuf,
        source: std::io::Error,
    },
    /// A subscriber was set up before.
    #[error("the log of this process is already set up")]
    AlreadyStarted(#[source] tracing_subscriber::util::TryInitError),
    /// The subscriber no longer exists.
    #[error("the log of this process is gone")]
    Gone(#[source] reload::Error),
}

type Filter = reload::Layer<Levels, Registry>;
type Writer = Box<dyn Layer<Layered<Filter, Registry>> + Send + Sync>;

/// The log of this process. It works from the first line of `main` on (S0.57).
pub struct Telemetry {
    filter: reload::Handle<Levels, Registry>,
    writer: reload::Handle<Writer, Layered<Filter, Registry>>,
}

impl Telemetry {
    /// Starts logging at `info` to standard error, including panics, until [`Self::configure`] is called.
    pub fn start() -> Result<Self, Error> {
        let (filter, filter_handle) = reload::Layer::new(Levels::new(LogLevel::Info));
        let (is_terminal, stderr) = open(&LogOutput::Stderr)?;
        let (writer, writer_handle) =
            reload::Layer::new(writer(LogFormat::Text, is_terminal, stderr));
        tracing_subscriber::registry()
            .with(filter)
            .with(writer)
            .with(relay::Relay::default())
            .try_init()
            .map_err(Error::AlreadyStarted)?;
        panic::log_panics();
        Ok(Self {
            filter: filter_handle,
            writer: writer_handle,
        })
    }

    /// Applies the log settings (D21).
    pub fn configure(&self, log: &Log) -> Result<(), Error> {
        let (is_terminal, output) = open(&log.output)?;
        let writer = writer(log.format, is_terminal, output);
        self.writer.reload(writer).map_err(Error::Gone)?;
        let levels = Levels::new(log.level);
        self.filter.reload(levels).map_err(Error::Gone)
    }
}

/// Opens the output; the flag is true if the output is a terminal.
fn open(output: &LogOutput) -> Result<(bool, BoxMakeWriter), Error> {
    Ok(match output {
        LogOutput::Stderr => (
            std::io::stderr().is_terminal(),
            BoxMakeWriter::new(std::io::stderr),
        ),
        LogOutput::Stdout => (
            std::io::stdout().is_terminal(),
            BoxMakeWriter::new(std::io::stdout),
        ),
        LogOutput::File(path) => {
            let file = File::options().create(true).append(true).open(path);
            let file = file.map_err(|source| Error::Open {
                path: path.clone(),
                source,
            })?;
            // Each entry is one write, so appending needs no lock.
            (false, BoxMakeWriter::new(Arc::new(file)))
        }
    })
}

fn writer<S>(
    format: LogFormat,
    is_terminal: bool,
    output: BoxMakeWriter,
) -> Box<dyn Layer<S> + Send + Sync>
where
    S: tracing::Subscriber + for<'span> tracing_subscriber::registry::LookupSpan<'span>,
{
    let layer = fmt::layer().with_writer(output);
    match format {
        LogFormat::Json => layer
            .json()
            .flatten_event(true)
            .with_current_span(true)
            .with_span_list(false)
            .boxed(),
        // The library's default uses colors unless NO_COLOR is set.
        LogFormat::Text if is_terminal => layer.boxed(),
        LogFormat::Text => layer.with_ansi(false).boxed(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use serde_json::Value;
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::{Error, open, writer};
    use crate::level::Levels;
    use sepal_config::{LogFormat, LogLevel, LogOutput};

    /// The content of a log file after one entry of ours and one of a library.
    fn written(path: &Path, level: LogLevel, format: LogFormat) -> String {
        let (is_terminal, output) = open(&LogOutput::File(path.to_owned())).unwrap();
        let subscriber = tracing_subscriber::registry()
            .with(Levels::new(level))
            .with(writer(format, is_terminal, output));
        tracing::subscriber::with_default(subscriber, || {
            let _span = tracing::info_span!("turn", session.id = "ses_1").entered();
            tracing::info!(tool.name = "read_file", "Execute tool `read_file`");
            tracing::info!(target: "hyper", "noise");
        });
        fs::read_to_string(path).unwrap()
    }

    /// Asserts S0.24, S0.28.
    #[test]
    fn a_file_gets_our_entries_after_what_it_held() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("simple.log");
        fs::write(&path, "before\n").unwrap();
        let text = written(&path, LogLevel::Info, LogFormat::Text);
        assert!(text.starts_with("before\n"), "{text}");
        assert!(text.contains("Execute tool `read_file`"), "{text}");
        assert!(!text.contains("noise"), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
    }

    /// Asserts S1.18.
    #[test]
    fn json_has_one_object_a_line_with_its_span() {
        let folder = tempfile::tempdir().unwrap();
        let text = written(&folder.path().join("log"), LogLevel::Debug, LogFormat::Json);
        let lines: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0]["tool.name"], "read_file");
        assert_eq!(lines[0]["span"]["session.id"], "ses_1");
    }

    /// Asserts S0.28.
    #[test]
    fn an_entry_below_the_level_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        assert_eq!(written(&path, LogLevel::Warn, LogFormat::Text), "");
    }

    #[test]
    fn a_file_that_cannot_be_opened_is_named() {
        let path = Path::new("/no/such/folder/simple.log").to_owned();
        let error = open(&LogOutput::File(path)).err().unwrap();
        assert!(matches!(error, Error::Open { .. }));
        assert!(error.to_string().contains("/no/such/folder/simple.log"));
    }
}
