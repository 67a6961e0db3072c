//! A client of revision 2026-07-28 that knows tasks.

use serde_json::{Value, json};

use crate::support::{DEADLINE, Person, TestApp};

const TASKS: &str = "io.modelcontextprotocol/tasks";

/// A client of revision 2026-07-28, each of whose requests stands alone.
pub(super) struct Client {
    url: String,
    key: String,
    pub(super) capabilities: Value,
}

impl Client {
    pub(super) fn of(address: std::net::SocketAddr, person: &Person) -> Self {
        Self {
            url: format!("http://{address}/mcp"),
            key: person.key.clone(),
            capabilities: json!({ "elicitation": { "form": {} }, "extensions": { TASKS: {} } }),
        }
    }

    /// The same without forms.
    pub(super) fn mute(mut self) -> Self {
        self.capabilities = json!({ "extensions": { TASKS: {} } });
        self
    }

    /// The whole JSON-RPC answer. News of what goes on may stand before it in its stream, and behind it.
    pub(super) async fn ask(&self, method: &str, with: (&str, Value)) -> Value {
        let (name, params) = with;
        let text = self.send(method, name, params).await;
        let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
        let all = data.chain([text.as_str()]);
        let mut read = all.filter_map(|data| serde_json::from_str::<Value>(data).ok());
        let answer = read.find(|said| said.get("method").is_none());
        answer.unwrap_or_else(|| panic!("{method}: {text}"))
    }

    /// Whatever comes back.
    pub(super) async fn send(&self, method: &str, name: &str, mut params: Value) -> String {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": self.capabilities,
        });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let request = TestApp::http()
            .post(&self.url)
            .bearer_auth(&self.key)
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", method)
            .header("mcp-name", name)
            .json(&body);
        request.send().await.unwrap().text().await.unwrap()
    }

    /// The task that a question becomes.
    pub(super) async fn begin(&self, text: &str) -> String {
        let call = json!({ "name": "process", "arguments": { "input": text } });
        let answer = self.ask("tools/call", ("process", call)).await;
        let task = &answer["result"];
        assert_eq!(task["resultType"], "task", "{answer}");
        assert_eq!(task["status"], "working", "{answer}");
        assert_eq!(task["ttlMs"], Value::Null, "{answer}");
        assert!(task["pollIntervalMs"].as_u64().unwrap() > 0, "{answer}");
        task["taskId"].as_str().unwrap().to_owned()
    }

    pub(super) async fn get(&self, task: &str) -> Value {
        let answer = self
            .ask("tasks/get", (task, json!({ "taskId": task })))
            .await;
        assert_eq!(answer["result"]["taskId"], task, "{answer}");
        answer["result"].clone()
    }

    /// The task once it has come to that status.
    pub(super) async fn until(&self, task: &str, status: &str) -> Value {
        let coming = async {
            loop {
                let now = self.get(task).await;
                if now["status"] == status {
                    return now;
                }
            }
        };
        let found = tokio::time::timeout(DEADLINE, coming).await;
        found.unwrap_or_else(|_| panic!("{task} never was `{status}`"))
    }

    pub(super) async fn update(&self, task: &str, answers: Value) -> Value {
        let params = json!({ "taskId": task, "inputResponses": answers });
        self.ask("tasks/update", (task, params)).await
    }

    pub(super) async fn cancel(&self, task: &str) -> Value {
        self.ask("tasks/cancel", (task, json!({ "taskId": task })))
            .await
    }
}

pub(super) fn yes() -> Value {
    json!({ "action": "accept", "content": { "approve": true } })
}

/// What a task asks, in order of its names.
pub(super) fn asked(task: &Value) -> Vec<(String, String)> {
    let requests = task["inputRequests"].as_object().unwrap();
    let asked = requests.iter().map(|(name, request)| {
        assert_eq!(request["method"], "elicitation/create", "{request}");
        let message = request["params"]["message"].as_str().unwrap();
        (name.clone(), message.to_owned())
    });
    asked.collect()
}

pub(super) fn write(path: &str) -> (&'static str, Value) {
    ("write_file", json!({ "path": path, "content": "once" }))
}
