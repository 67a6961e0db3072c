//! Passes log entries on to listeners in this process, for example an MCP client.

use std::fmt::{Debug, Write as _};

use serde_json::{Map, Value, json};
use tokio::sync::broadcast;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use super::level::{FATAL_FIELD, PANIC_FIELD};

/// The most entries that a slow listener may be behind.
const BEHIND: usize = 256;

/// One entry of the log.
#[derive(Debug, Clone)]
pub struct LogEntry {
    /// The severity.
    pub level: Level,
    /// True if the entry reports a panic.
    pub is_panic: bool,
    /// True if the entry reports that the process, or its whole task, cannot go on.
    pub is_fatal: bool,
    pub message: String,
    pub fields: Map<String, Value>,
}

/// Subscribes to all entries from now on; `None` if no log was started.
pub fn subscribe() -> Option<broadcast::Receiver<LogEntry>> {
    tracing::dispatcher::get_default(|dispatch| {
        let relay = dispatch.downcast_ref::<Relay>();
        relay.map(|relay| relay.entries.subscribe())
    })
}

/// The layer that passes entries on.
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
        // Only entries of our own crates: entries about sending would cause further entries.
        let is_ours = event.metadata().target().starts_with(crate::PROGRAM);
        if !is_ours || self.entries.receiver_count() == 0 {
            return;
        }
        let mut fields = Fields::default();
        event.record(&mut fields);
        // An error only means that nobody listens any more.
        let _ = self.entries.send(LogEntry {
            level: *event.metadata().level(),
            is_panic: fields.others.contains_key(PANIC_FIELD),
            is_fatal: fields.others.contains_key(FATAL_FIELD),
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

    use super::{LogEntry, Relay, subscribe};

    /// The entries that a listener receives.
    fn heard(log: fn()) -> Vec<LogEntry> {
        let subscriber = tracing_subscriber::registry().with(Relay::default());
        tracing::subscriber::with_default(subscriber, || {
            let mut entries = subscribe().unwrap();
            log();
            std::iter::from_fn(|| entries.try_recv().ok()).collect()
        })
    }

    #[test]
    fn a_listener_hears_our_entries_with_their_fields() {
        let heard = heard(|| tracing::warn!(tool.name = "a", count = 2, "Dropped `{}`", "x"));
        assert_eq!(heard.len(), 1);
        assert_eq!(heard[0].message, "Dropped `x`");
        assert_eq!(heard[0].fields["tool.name"], "a");
        assert_eq!(heard[0].fields["count"], 2);
        assert!(!heard[0].is_panic && !heard[0].is_fatal);
    }

    #[test]
    fn a_panic_and_a_fatal_entry_are_known_and_a_library_is_not_heard() {
        let fatal = heard(|| tracing::error!(fatal = true, "gone"));
        assert!(fatal[0].is_fatal && !fatal[0].is_panic);
        assert!(heard(|| tracing::error!(panic.location = "a:1", "Panicked: x"))[0].is_panic);
        assert!(heard(|| tracing::warn!(target: "hyper", "noise")).is_empty());
    }
}
