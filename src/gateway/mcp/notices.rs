//! Notifies a client about progress and log entries while it waits (S0.54 to S0.56).

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use rmcp::model::{
    CustomNotification, ProgressNotificationParam, ProgressToken, ServerNotification,
};
use rmcp::service::{Peer, RoleServer};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::sync::Mutex;

use super::question::News;
use crate::telemetry::{LogEntry, redact_args};

/// The minimum level of log entries that a client set with `logging/setLevel`; initially `info`.
#[derive(Debug, Clone)]
pub(super) struct Threshold(Arc<AtomicU8>);

impl Default for Threshold {
    fn default() -> Self {
        Self(Arc::new(AtomicU8::new(Severity::Info as u8)))
    }
}

impl Threshold {
    /// Sets the level of `logging/setLevel`.
    pub(super) fn set(&self, level: Severity) {
        self.0.store(level as u8, Ordering::Relaxed);
    }

    fn lets(&self, level: Severity) -> bool {
        level as u8 >= self.0.load(Ordering::Relaxed)
    }
}

/// The severity of a log entry (S0.55). rmcp's own enum is deprecated, but clients still use these levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Severity {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

/// Sends progress and log entries to one client.
#[derive(Debug)]
pub(super) struct Notices {
    peer: Peer<RoleServer>,
    threshold: Threshold,
    /// The progress token and counter. Locked while a notification is sent, so that progress only grows.
    progress: Mutex<(Option<ProgressToken>, u32)>,
}

impl Notices {
    pub(super) fn new(
        peer: Peer<RoleServer>,
        threshold: Threshold,
        token: Option<ProgressToken>,
    ) -> Self {
        Self {
            peer,
            threshold,
            progress: Mutex::new((token, 0)),
        }
    }

    /// Reports news about the question's progress.
    pub(super) async fn report(&self, news: News<'_>) {
        let text = news.words();
        match news {
            News::Thinking(iteration) => {
                self.progress(&text).await;
                let data = json!({ "iteration": iteration });
                self.log(Severity::Debug, &text, data).await;
            }
            News::Waiting(call) => {
                self.progress(&text).await;
                let data = json!({ "tool": call.name, "call": call.id });
                self.log(Severity::Info, &text, data).await;
            }
            News::LeftToPage(call, ..) | News::ForPage(call, _) => {
                self.warn(&text, json!({ "tool": call.name, "call": call.id }))
                    .await;
            }
            News::Package(server, _) | News::Declined(server) => {
                self.warn(&text, json!({ "server": server })).await;
            }
            News::Running(tool, args) => {
                let args = redact_args(args);
                self.progress(&text).await;
                let text = format!(">> Execute tool {tool}({args})");
                let data = json!({ "tool": tool });
                self.log(Severity::Info, &text, data).await;
            }
            News::Ended(tool, went_well) => {
                let level = if went_well {
                    Severity::Debug
                } else {
                    Severity::Warning
                };
                self.progress(&text).await;
                self.log(level, &text, json!({ "tool": tool })).await;
            }
        }
    }

    async fn warn(&self, text: &str, data: Value) {
        self.progress(text).await;
        self.log(Severity::Warning, text, data).await;
    }

    async fn progress(&self, text: &str) {
        let mut progress = self.progress.lock().await;
        let Some(token) = progress.0.clone() else {
            return;
        };
        progress.1 += 1;
        let step = ProgressNotificationParam::new(token, f64::from(progress.1));
        // If the client is gone, its call is cancelled anyway.
        let _ = self.peer.notify_progress(step.with_message(text)).await;
    }

    /// Passes on an entry of the process's log; for the operator's own client only.
    pub(super) async fn pass(&self, entry: LogEntry) {
        let level = level_of(&entry);
        self.log(level, &entry.message, Value::Object(entry.fields))
            .await;
    }

    async fn log(&self, level: Severity, message: &str, data: Value) {
        if !self.threshold.lets(level) {
            return;
        }
        let notification = log_notification(level, message, data);
        let _ = self.peer.send_notification(notification).await;
    }
}

/// S0.56 puts `message` beside `data`, where MCP does not define it and clients ignore it, so `data`
/// contains the message too.
fn log_notification(level: Severity, message: &str, data: Value) -> ServerNotification {
    let mut fields = match data {
        Value::Object(fields) => fields,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Map::new()
        }
    };
    fields.insert("message".to_owned(), json!(message));
    let params = json!({ "level": level, "logger": "sepal", "message": message, "data": fields });
    let notification = CustomNotification::new("notifications/message", Some(params));
    ServerNotification::CustomNotification(notification)
}

/// S0.55: an entry marked as a panic is an alert, and an entry marked as fatal is critical.
fn level_of(entry: &LogEntry) -> Severity {
    if entry.is_panic {
        return Severity::Alert;
    }
    if entry.is_fatal {
        return Severity::Critical;
    }
    match entry.level {
        tracing::Level::TRACE | tracing::Level::DEBUG => Severity::Debug,
        tracing::Level::INFO => Severity::Info,
        tracing::Level::WARN => Severity::Warning,
        tracing::Level::ERROR => Severity::Error,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::{Severity, Threshold, level_of, log_notification};
    use crate::telemetry::LogEntry;

    /// Asserts S0.55.
    #[test]
    fn levels_are_those_of_the_requirements() {
        use tracing::Level;
        for (level, mark, expected) in [
            (Level::TRACE, "", Severity::Debug),
            (Level::DEBUG, "", Severity::Debug),
            (Level::INFO, "", Severity::Info),
            (Level::WARN, "", Severity::Warning),
            (Level::ERROR, "", Severity::Error),
            (Level::ERROR, "fatal", Severity::Critical),
            (Level::ERROR, "panic", Severity::Alert),
        ] {
            let entry = LogEntry {
                level,
                is_panic: mark == "panic",
                is_fatal: mark == "fatal",
                message: String::new(),
                fields: Map::new(),
            };
            assert_eq!(level_of(&entry), expected, "{level} {mark}");
        }
    }

    #[test]
    fn a_threshold_lets_through_what_is_as_serious() {
        let threshold = Threshold::default();
        assert!(threshold.lets(Severity::Info));
        assert!(!threshold.lets(Severity::Debug));
        threshold.set(Severity::Error);
        assert!(threshold.lets(Severity::Alert));
        assert!(!threshold.lets(Severity::Warning));
    }

    /// Asserts S0.56.
    #[test]
    fn a_log_notification_has_level_message_and_data() {
        let notification = log_notification(Severity::Warning, "m", json!({"a": 1}));
        let found = serde_json::to_value(notification).unwrap();
        assert_eq!(found["method"], "notifications/message");
        let expected = json!({
            "level": "warning", "logger": "sepal", "message": "m", "data": {"a": 1, "message": "m"},
        });
        assert_eq!(found["params"], expected);
    }
}
