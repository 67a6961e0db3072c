//! Remembers the requests that a server has not answered yet, so that an answer is read as what was asked for.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage, RequestId};
use serde_json::Value;

/// The most requests that are remembered; beyond that, the oldest is forgotten.
const MAX_PENDING: usize = 1_024;

/// The requests of one connection without an answer. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pending(Arc<Mutex<Vec<Request>>>);

/// A request without an answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Request {
    pub(crate) id: RequestId,
    pub(crate) method: String,
}

impl Pending {
    /// Notes a message that is being sent, if it is a request.
    pub(crate) fn sent(&self, message: &ClientJsonRpcMessage) {
        let JsonRpcMessage::Request(request) = message else {
            return;
        };
        let mut requests = self.requests();
        if requests.len() >= MAX_PENDING {
            requests.remove(0);
        }
        requests.push(Request {
            id: request.id.clone(),
            method: request.request.method().to_owned(),
        });
    }

    /// Takes the request with an id as the server wrote it: some write a number as a text, or the reverse.
    pub(crate) fn take(&self, id: &Value) -> Option<Request> {
        let id = written(id)?;
        let mut requests = self.requests();
        let at = requests.iter().position(|it| it.id.to_string() == id)?;
        Some(requests.remove(at))
    }

    /// Takes a request by our own id, if it asks for the result of a tool.
    pub(crate) fn take_tool_call(&self, id: &RequestId) -> Option<Request> {
        let mut requests = self.requests();
        let at = requests.iter().position(|it| it.id == *id)?;
        let is_call = |it: &Request| matches!(it.method.as_str(), "tools/call" | "tasks/result");
        requests
            .get(at)
            .is_some_and(is_call)
            .then(|| requests.remove(at))
    }

    /// Takes a request by our own id.
    pub(crate) fn take_own(&self, id: &RequestId) -> Option<Request> {
        let mut requests = self.requests();
        let at = requests.iter().position(|it| it.id == *id)?;
        Some(requests.remove(at))
    }

    /// Takes the only request without an answer; `None` if there are several, or none.
    pub(crate) fn take_only(&self) -> Option<Request> {
        let mut requests = self.requests();
        (requests.len() == 1).then(|| requests.pop()).flatten()
    }

    /// Never held across an await.
    fn requests(&self) -> MutexGuard<'_, Vec<Request>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns an id in the form in which both a number and its text are the same.
fn written(id: &Value) -> Option<String> {
    match id {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Number(_) => serde_json::from_value::<RequestId>(id.clone())
            .ok()
            .map(|id| id.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{MAX_PENDING, Pending};

    fn sent(pending: &Pending, id: usize) {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
        pending.sent(&serde_json::from_value(request).unwrap());
    }

    #[test]
    fn an_answer_finds_its_request_once_however_the_id_is_written() {
        for id in [json!(7), json!("7"), json!(7.0), json!(" 7 ")] {
            let pending = Pending::default();
            sent(&pending, 7);
            sent(&pending, 8);
            assert_eq!(pending.take(&id).unwrap().method, "ping", "{id}");
            assert_eq!(pending.take(&id), None);
            assert!(
                pending
                    .take_only()
                    .is_some_and(|it| it.id.to_string() == "8")
            );
        }
        for id in [
            json!(null),
            json!(true),
            json!([7]),
            json!(7.5),
            json!(1e100),
        ] {
            let pending = Pending::default();
            sent(&pending, 7);
            assert_eq!(pending.take(&id), None, "{id}");
        }
    }

    #[test]
    fn requests_that_are_never_answered_do_not_pile_up() {
        let pending = Pending::default();
        (0..=MAX_PENDING).for_each(|id| sent(&pending, id));
        assert_eq!(pending.requests().len(), MAX_PENDING);
        assert_eq!(pending.take(&json!(0)), None);
    }
}
