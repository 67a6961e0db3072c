//! Hands the log's entries to whoever listens in this process, for example an MCP client.

use std::fmt::{Debug, Write as _};

use serde_json::{Map, Value, json};
use tokio::sync::broadcast;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// Entries that a slow listener may be behind.
const BEHIND: usize = 256;
/// The message of a panic begins like this; see `panic.rs`.
const PANIC_FIELD: &str = "panic.location";

/// One entry of the log.
#[derive(Debug, Clone)]
pub struct LogEntry {
    /// How serious it is.
    pub level: Level,
    /// Whether it tells of a panic.
    pub is_panic: bool,
    /// What it says.
    pub message: String,
    /// Its other fields.
    pub fields: Map<String, Value>,
}

/// Everything that is logged from now on; `None` where no log was started.
pub fn subscribe() -> Option<broadcast::Receiver<LogEntry>> {
    tracing::dispatcher::get_default(|dispatch| {
        let relay = dispatch.downcast_ref::<Relay>();
        relay.map(|relay| relay.entries.subscribe())
    })
}

/// The layer that hands entries on.
pub(super) struct Relay {
    entries: broadcast::Sender<LogEntry>,
}

impl Default for Relay {
    fn default() -> Self {
        Self {
            entries: broadcast::Sender::new(BEHIND),
        }
    }
}

impl<S: Subscriber> Layer<S> for Relay {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        // Only our own entries: those about sending would cause further ones.
        let is_ours = event
            .metadata()
            .target()
            .starts_with(env!("CARGO_PKG_NAME"));
        if !is_ours || self.entries.receiver_count() == 0 {
            return;
        }
        let mut fields = Fields::default();
        event.record(&mut fields);
        // An error only says that nobody listens any more.
        let _ = self.entries.send(LogEntry {
            level: *event.metadata().level(),
            is_panic: fields.others.contains_key(PANIC_FIELD),
            message: fields.message,
            fields: fields.others,
        });
    }
}

#[derive(Default)]
struct Fields {
    message: String,
    others: Map<String, Value>,
}

impl Fields {
    fn keep(&mut self, field: &Field, value: Value) {
        self.others.insert(field.name().to_owned(), value);
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            let _ = write!(self.message, "{value:?}");
        } else {
            self.keep(field, json!(format!("{value:?}")));
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            self.message.push_str(value);
        } else {
            self.keep(field, json!(value));
        }
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.keep(field, json!(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.keep(field, json!(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.keep(field, json!(value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.keep(field, json!(value));
    }
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::{Relay, subscribe};

    #[test]
    fn a_listener_hears_our_entries_with_their_fields() {
        let subscriber = tracing_subscriber::registry().with(Relay::default());
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!("nobody listens");
            let mut entries = subscribe().unwrap();
            tracing::warn!(tool.name = "a", count = 2, "Dropped `{}`", "x");
            tracing::warn!(target: "hyper", "noise");
            let entry = entries.try_recv().unwrap();
            assert_eq!(entry.message, "Dropped `x`");
            assert_eq!(entry.fields["tool.name"], "a");
            assert_eq!(entry.fields["count"], 2);
            assert!(!entry.is_panic);
            tracing::error!(panic.location = "a.rs:1", "Panicked: x");
            assert!(entries.try_recv().unwrap().is_panic);
            assert!(entries.try_recv().is_err());
        });
    }
}
