//! Parses what a server says about a task, in both forms and within bounds.

use std::time::Duration;

use rmcp::model::TaskStatus;
use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use super::TaskEnd;

/// Most bytes of an id: it is stored with the session, and sent with every request.
const MAX_ID_BYTES: usize = 512;
/// The most characters of a task's status text.
const MAX_MESSAGE: usize = 500;
/// The poll interval if the server names none.
const POLL: Duration = Duration::from_secs(2);
/// The shortest poll interval, whatever the server says.
const MIN_POLL: Duration = Duration::from_millis(500);
/// The longest poll interval: a person waits for the answer.
const MAX_POLL: Duration = Duration::from_secs(30);
/// The member that names the task to which a message belongs (2025-11-25).
const RELATED: &str = "io.modelcontextprotocol/related-task";

/// The state of a task, as its server reports it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TaskState {
    pub(crate) id: String,
    pub(crate) status: TaskStatus,
    /// The server's status text, shortened but with secrets unmasked; empty if there is none.
    pub(crate) message: String,
    /// The time until the next poll.
    pub(crate) poll: Duration,
    pub(crate) ttl_ms: Option<u64>,
    /// The task's result, error or questions, if they came with the state (2026-07-28).
    pub(crate) result: Option<Value>,
    pub(crate) error: Option<Value>,
    pub(crate) wanted: Map<String, Value>,
}

impl TaskState {
    /// Parses a task, or the answer that created it.
    pub(crate) fn read(said: &Value) -> Result<Self, TaskEnd> {
        let task = said.get("task").unwrap_or(said);
        let id = task.get("taskId").and_then(Value::as_str);
        let id = id.ok_or_else(|| TaskEnd::Odd("its id is no text".to_owned()))?;
        check_id(id)?;
        let status = task.get("status").unwrap_or(&Value::Null);
        let status = TaskStatus::deserialize(status)
            .map_err(|_| TaskEnd::Odd("its status is none of the protocol".to_owned()))?;
        let message = task.get("statusMessage").and_then(Value::as_str);
        let message = message.unwrap_or_default().chars().take(MAX_MESSAGE);
        let number = |names: [&str; 2]| names.iter().find_map(|name| task.get(name)?.as_f64());
        let poll = number(["pollInterval", "pollIntervalMs"]);
        Ok(Self {
            id: id.to_owned(),
            status,
            message: message.collect(),
            poll: poll.map_or(POLL, bounded),
            ttl_ms: ["ttl", "ttlMs"]
                .iter()
                .find_map(|name| task.get(name)?.as_u64()),
            result: task.get("result").cloned(),
            error: task.get("error").cloned(),
            wanted: match task.get("inputRequests") {
                Some(Value::Object(wanted)) => wanted.clone(),
                _ => Map::new(),
            },
        })
    }

    /// Returns true if the task is over.
    pub(crate) fn is_over(&self) -> bool {
        self.status.is_terminal()
    }
}

fn check_id(id: &str) -> Result<(), TaskEnd> {
    let bytes = id.len();
    if bytes > MAX_ID_BYTES {
        let text = format!("its id has {bytes} bytes, and at most {MAX_ID_BYTES} are kept");
        return Err(TaskEnd::Odd(text));
    }
    if id.is_empty() || id.chars().any(char::is_control) {
        return Err(TaskEnd::Odd(
            "its id is empty or has control characters".to_owned(),
        ));
    }
    Ok(())
}

/// Converts milliseconds to a poll interval within our bounds.
fn bounded(ms: f64) -> Duration {
    let wanted = Duration::try_from_secs_f64(ms.max(0.0) / 1_000.0);
    wanted.unwrap_or(MAX_POLL).clamp(MIN_POLL, MAX_POLL)
}

/// Returns the task to which a message belongs, according to its `_meta`.
pub(crate) fn related(meta: &Map<String, Value>) -> Option<&str> {
    meta.get(RELATED)?.get("taskId")?.as_str()
}

/// Returns the `_meta` member of a message that belongs to a task.
pub(crate) fn relation(task: &str) -> (String, Value) {
    (RELATED.to_owned(), json!({ "taskId": task }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_say_the_same() {
        let old = json!({ "task": {
            "taskId": "7", "status": "working", "statusMessage": "on it", "ttl": 60_000,
            "pollInterval": 1_500, "createdAt": "x", "lastUpdatedAt": "x",
        } });
        let new = json!({
            "resultType": "task", "taskId": "7", "status": "working", "statusMessage": "on it",
            "ttlMs": 60_000, "pollIntervalMs": 1_500, "createdAt": "x", "lastUpdatedAt": "x",
        });
        let read = TaskState::read(&old).unwrap();
        assert_eq!(read, TaskState::read(&new).unwrap());
        assert_eq!((read.id.as_str(), read.message.as_str()), ("7", "on it"));
        assert_eq!(read.poll, Duration::from_millis(1_500));
        assert_eq!(read.ttl_ms, Some(60_000));
        assert!(!read.is_over());
    }

    #[test]
    fn a_server_decides_within_bounds_how_often_it_is_asked() {
        let poll = |interval: Value| {
            let said = json!({ "taskId": "7", "status": "working", "pollInterval": interval });
            TaskState::read(&said).unwrap().poll
        };
        assert_eq!(poll(json!(0)), MIN_POLL);
        assert_eq!(poll(json!(-5)), MIN_POLL);
        assert_eq!(poll(json!(1e300)), MAX_POLL);
        assert_eq!(poll(json!(u64::MAX)), MAX_POLL);
        assert_eq!(poll(json!("soon")), POLL);
        assert_eq!(poll(Value::Null), POLL);
    }

    #[test]
    fn what_cannot_be_followed_says_why() {
        let odd = |said: Value| TaskState::read(&said).unwrap_err().to_string();
        let long = "x".repeat(1_000_000);
        let text = odd(json!({ "taskId": long, "status": "working" }));
        assert!(text.contains("1000000 bytes"), "{text}");
        assert!(odd(json!({ "taskId": "", "status": "working" })).contains("empty"));
        assert!(odd(json!({ "taskId": "a\nb", "status": "working" })).contains("control"));
        assert!(odd(json!({ "taskId": 7, "status": "working" })).contains("no text"));
        assert!(odd(json!({ "taskId": "7", "status": "asleep" })).contains("status"));
    }

    #[test]
    fn words_are_cut() {
        let said =
            json!({ "taskId": "7", "status": "working", "statusMessage": "ü".repeat(5_000) });
        let read = TaskState::read(&said).unwrap();
        assert_eq!(read.message.chars().count(), MAX_MESSAGE);
    }
}
