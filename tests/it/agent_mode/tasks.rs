//! Questions as tasks (extension `io.modelcontextprotocol/tasks`): they outlive their client and the
//! gateway, and the person at the client answers when they look.

use rmcp::ServiceExt as _;
use rmcp::model::{
    CallToolResponse, ClientCapabilities, ClientConfig, ClientRequest, GetTaskParams,
    Implementation, Request, ServerResult,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use sepal::config::ApprovalWay;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::question;
use crate::model_stub::{ModelStub, Reply};
use crate::replicas::Pair;
use crate::support::{DEADLINE, Person, Server, TestApp, TestSocket, person};

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
    fn mute(mut self) -> Self {
        self.capabilities = json!({ "extensions": { TASKS: {} } });
        self
    }

    /// The whole JSON-RPC answer.
    pub(super) async fn ask(&self, method: &str, (name, mut params): (&str, Value)) -> Value {
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
        let text = request.send().await.unwrap().text().await.unwrap();
        let mut data = text.lines().filter_map(|line| line.strip_prefix("data:"));
        let last = data.rfind(|data| !data.trim().is_empty());
        serde_json::from_str(last.unwrap_or(&text)).unwrap_or_else(|_| panic!("{method}: {text}"))
    }

    /// The task that a question becomes.
    async fn begin(&self, text: &str) -> String {
        let call = json!({ "name": "process", "arguments": { "input": text } });
        let answer = self.ask("tools/call", ("process", call)).await;
        let task = &answer["result"];
        assert_eq!(task["resultType"], "task", "{answer}");
        assert_eq!(task["status"], "working", "{answer}");
        assert_eq!(task["ttlMs"], Value::Null, "{answer}");
        assert!(task["pollIntervalMs"].as_u64().unwrap() > 0, "{answer}");
        task["taskId"].as_str().unwrap().to_owned()
    }

    async fn get(&self, task: &str) -> Value {
        let answer = self
            .ask("tasks/get", (task, json!({ "taskId": task })))
            .await;
        assert_eq!(answer["result"]["taskId"], task, "{answer}");
        answer["result"].clone()
    }

    /// The task once it has come to that status.
    async fn until(&self, task: &str, status: &str) -> Value {
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

    async fn update(&self, task: &str, answers: Value) -> Value {
        let params = json!({ "taskId": task, "inputResponses": answers });
        self.ask("tasks/update", (task, params)).await
    }

    async fn cancel(&self, task: &str) -> Value {
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

/// Asserts S0.48.
#[tokio::test]
async fn a_task_asks_the_person_at_the_client_and_has_the_result() {
    let app = TestApp::with_sandbox().await;
    let ana = app.person("acme").await;
    let client = Client::of(app.address, &ana);
    let (name, args) = write("a.txt");
    app.model.will_call(name, args).then_say("Written.");
    let task = client.begin("Write a file").await;
    let waiting = client.until(&task, "input_required").await;
    let asked = asked(&waiting);
    let [(key, message)] = asked.as_slice() else {
        panic!("{waiting}")
    };
    assert!(message.contains("`write_file`") && message.contains("a.txt"));
    // An answer that is none is refused, and nothing is decided by it.
    let wrong = client.update(&task, json!({ key: { "action": 7 } })).await;
    assert_eq!(wrong["error"]["code"], -32_602, "{wrong}");
    // What nobody asked is passed over.
    let other = client.update(&task, json!({ "call_1_9/0": yes() })).await;
    assert_eq!(other["result"]["resultType"], "complete", "{other}");
    assert_eq!(client.get(&task).await["status"], "input_required");
    let told = client.update(&task, json!({ key: yes() })).await;
    assert_eq!(told["result"]["resultType"], "complete", "{told}");
    let done = client.until(&task, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "Written.", "{done}");
    assert_eq!(done["result"]["isError"], false, "{done}");
    assert!(done["lastUpdatedAt"].as_str() > done["createdAt"].as_str());
    // It stays for as long as its session does; a late stop changes nothing.
    let late = client.cancel(&task).await;
    assert_eq!(late["result"]["resultType"], "complete", "{late}");
    assert_eq!(client.get(&task).await, done);
    let twice = client.update(&task, json!({ key: yes() })).await;
    assert_eq!(twice["result"]["resultType"], "complete", "{twice}");
}

#[tokio::test]
async fn a_failed_turn_is_a_result_and_a_stopped_one_is_cancelled() {
    let app = TestApp::start().await;
    let ana = app.person("acme").await;
    let client = Client::of(app.address, &ana);
    app.model.will(Reply::fail(401, &[], "{}"));
    let failed = client.begin("Fail").await;
    let failed = client.until(&failed, "completed").await;
    assert_eq!(failed["result"]["isError"], true, "{failed}");
    let code = &failed["result"]["structuredContent"]["code"];
    assert!(code.is_string(), "{failed}");

    app.model.will_say("never heard").stall();
    let task = client.begin("Take long").await;
    app.model.stalled().await;
    assert_eq!(client.get(&task).await["status"], "working");
    client.cancel(&task).await;
    let ended = client.until(&task, "cancelled").await;
    assert!(ended.get("result").is_none(), "{ended}");
}

/// The person at the client puts the form away, or has none: the next way counts.
#[tokio::test]
async fn a_form_that_is_put_away_and_a_client_without_forms_leave_it_to_the_next_way() {
    let app = TestApp::start_tuned(&[("SPL_SANDBOX", "bubblewrap")], |settings| {
        settings.approval = vec![ApprovalWay::Elicit, ApprovalWay::Deny];
    })
    .await;
    let ana = app.person("acme").await;
    for is_mute in [false, true] {
        let (name, args) = write("a.txt");
        app.model.will_call(name, args).then_say("I see.");
        let client = if is_mute {
            Client::of(app.address, &ana).mute()
        } else {
            Client::of(app.address, &ana)
        };
        let task = client.begin("Write a file").await;
        if !is_mute {
            let waiting = client.until(&task, "input_required").await;
            let (key, _) = asked(&waiting).remove(0);
            let away = json!({ key: { "action": "cancel" } });
            client.update(&task, away).await;
        }
        client.until(&task, "completed").await;
        let requests = app.model.requests();
        let read = requests.last().unwrap().body["messages"].to_string();
        assert!(read.contains("nobody can be asked here"), "{read}");
    }
}

/// Nobody but its person reaches a task, and without the extension there are none.
#[tokio::test]
async fn a_task_is_its_persons_alone_and_needs_the_extension() {
    let app = TestApp::with_sandbox().await;
    let ana = app.person("acme").await;
    let client = Client::of(app.address, &ana);
    let (name, args) = write("a.txt");
    app.model.will_call(name, args).then_say("Done");
    let task = client.begin("Write a file").await;
    let waiting = client.until(&task, "input_required").await;
    let (key, _) = asked(&waiting).remove(0);
    let (colleague, stranger) = (app.person("acme").await, app.person("other").await);
    for other in [&colleague, &stranger] {
        let other = Client::of(app.address, other);
        for answer in [
            other
                .ask("tasks/get", (&task, json!({ "taskId": task })))
                .await,
            other.update(&task, json!({ &key: yes() })).await,
            other.cancel(&task).await,
        ] {
            assert_eq!(answer["error"]["code"], -32_602, "{answer}");
        }
    }
    for unknown in ["ses_00000000000000000000000000000000", "nonsense", ""] {
        let answer = client
            .ask("tasks/get", (unknown, json!({ "taskId": unknown })))
            .await;
        assert_eq!(answer["error"]["code"], -32_602, "{unknown}: {answer}");
    }
    let mut plain = Client::of(app.address, &ana);
    plain.capabilities = json!({});
    let answer = plain
        .ask("tasks/get", (&task, json!({ "taskId": task })))
        .await;
    assert_eq!(answer["error"]["code"], -32_021, "{answer}");
    // None of them decided or stopped anything.
    assert_eq!(client.get(&task).await, waiting);
    client.update(&task, json!({ key: yes() })).await;
    client.until(&task, "completed").await;
    // And a plain call is answered as ever.
    app.model.will_say("Plain.");
    let call = json!({ "name": "process", "arguments": { "input": "Hello" } });
    let answer = plain.ask("tools/call", ("process", call)).await;
    assert_eq!(answer["result"]["content"][0]["text"], "Plain.", "{answer}");
}

/// One call of a batch is decided at the client and one in the page, at two gateways.
#[tokio::test]
async fn a_batch_is_decided_half_at_the_client_and_half_in_the_page_of_another_gateway() {
    let pair = Pair::start_tuned(&[("SPL_SANDBOX", "bubblewrap")], |_| {}).await;
    let ana = pair.a.person("acme").await;
    let (here, there) = (
        Client::of(pair.a.address, &ana),
        Client::of(pair.b.address, &ana),
    );
    let calls = [write("a.txt"), write("b.txt")];
    pair.a
        .model
        .then(Reply::answer("", &calls))
        .then_say("Both");
    let task = here.begin("Write two files").await;
    let waiting = here.until(&task, "input_required").await;
    assert_eq!(asked(&waiting).len(), 2, "{waiting}");
    let mut page = TestSocket::open(pair.b.address, &ana, Some(&task)).await;
    let card = page.wait_for_approval().await;
    page.approve(&card).await;
    let left = async {
        loop {
            let asked = asked(&there.until(&task, "input_required").await);
            if let [(key, _)] = asked.as_slice() {
                return key.clone();
            }
        }
    };
    let key = tokio::time::timeout(DEADLINE, left).await.unwrap();
    assert!(!key.starts_with(card["callId"].as_str().unwrap()), "{key}");
    there.update(&task, json!({ key: yes() })).await;
    for client in [&here, &there] {
        let done = client.until(&task, "completed").await;
        assert_eq!(done["result"]["content"][0]["text"], "Both", "{done}");
    }
}

/// Whoever was there first in the page stays right.
#[tokio::test]
async fn a_yes_that_was_given_in_the_page_is_not_undone_by_a_form_that_nobody_answers() {
    let app = TestApp::start_tuned(&[("SPL_SANDBOX", "bubblewrap")], |settings| {
        settings.approval = vec![ApprovalWay::Elicit, ApprovalWay::Deny];
    })
    .await;
    let ana = app.person("acme").await;
    let client = Client::of(app.address, &ana);
    let calls = [write("a.txt"), write("b.txt")];
    app.model.then(Reply::answer("", &calls)).then_say("Done");
    let task = client.begin("Write two files").await;
    let waiting = client.until(&task, "input_required").await;
    let keys: Vec<String> = asked(&waiting).into_iter().map(|(key, _)| key).collect();
    let mut page = TestSocket::open(app.address, &ana, Some(&task)).await;
    let first = page.wait_for_approval().await;
    page.approve(&first).await;
    // The form of both is put away: the call that nobody decided is denied, the other one stays.
    let away = json!({ "action": "cancel" });
    let away = json!({ &keys[0]: away, &keys[1]: away });
    client.update(&task, away).await;
    client.until(&task, "completed").await;
    let requests = app.model.requests();
    let read = requests.last().unwrap().body["messages"].to_string();
    assert_eq!(
        read.matches("nobody can be asked here").count(),
        1,
        "{read}"
    );
}

/// Asserts O1: `kill -9` while a task waits; the next process goes on with it.
#[tokio::test]
async fn a_task_survives_a_kill_and_its_call_runs_once() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let model = ModelStub::start().await;
    let command = json!({ "command": "echo ran >> ran.txt; cat ran.txt" });
    model.will_call("execute_command", command).then_say("Ran.");
    let server = Server::start_with(&data, &model, &[]);
    let ana = person(&data, &[]);
    let client = Client::of(server.address, &ana);
    let task = client.begin("Run it").await;
    let before = client.until(&task, "input_required").await;
    server.kill();

    let server = Server::start_with(&data, &model, &[]);
    let client = Client::of(server.address, &ana);
    let after = client.until(&task, "input_required").await;
    assert_eq!(asked(&after), asked(&before));
    assert_eq!(after["createdAt"], before["createdAt"]);
    let (key, _) = asked(&after).remove(0);
    client.update(&task, json!({ key: yes() })).await;
    let done = client.until(&task, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "Ran.", "{done}");
    server.kill();

    // The result is there for whoever asks late, too.
    let server = Server::start_with(&data, &model, &[]);
    let client = Client::of(server.address, &ana);
    assert_eq!(client.get(&task).await, done);
    let read = model.requests()[1].body["messages"].to_string();
    // The file has a line for each run.
    assert!(
        read.contains("ran") && !read.contains("ran\\\\nran"),
        "{read}"
    );
}

/// Who decides by itself does so too where the process before had been asked.
#[tokio::test]
async fn what_decides_without_a_person_goes_on_after_a_kill() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let model = ModelStub::start().await;
    model.will(Reply::say("never heard")).stall();
    let env = [("SPL_AGENT_APPROVAL", "auto")];
    let server = Server::start_with(&data, &model, &env);
    let ana = person(&data, &env);
    let client = Client::of(server.address, &ana).mute();
    let task = client.begin("Run it").await;
    model.stalled().await;
    server.kill();
    model.release();
    model
        .will_call("execute_command", json!({ "command": "date" }))
        .then_say("Ran.");
    let server = Server::start_with(&data, &model, &env);
    let client = Client::of(server.address, &ana).mute();
    let done = client.until(&task, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "Ran.", "{done}");
}

/// A client that begins with `initialize` says there that it knows tasks.
#[tokio::test]
async fn a_client_of_before_that_knows_the_extension_is_given_a_task() {
    let app = TestApp::start().await;
    let ana = app.person("acme").await;
    let url = app.url("/mcp");
    let config = StreamableHttpClientTransportConfig::with_uri(url).auth_header(&ana.key);
    let transport = StreamableHttpClientTransport::with_client(TestApp::http(), config);
    let capabilities = ClientCapabilities::builder().enable_tasks().build();
    let client = ClientConfig::new(capabilities, Implementation::new("test", "1"));
    let client = client.serve(transport).await.unwrap();
    app.model.will_say("It is noon.");
    let begun = client.call_tool_once(question("What time is it?")).await;
    let CallToolResponse::Task(task) = begun.unwrap() else {
        panic!("no task")
    };
    let got = async {
        loop {
            let params = GetTaskParams::new(&task.task.task_id);
            let request = ClientRequest::GetTaskRequest(Request::new(params));
            let ServerResult::GetTaskResult(got) = client.send_request(request).await.unwrap()
            else {
                panic!("no task")
            };
            let got = serde_json::to_value(got).unwrap();
            if got["status"] == "completed" {
                return got;
            }
        }
    };
    let got = tokio::time::timeout(DEADLINE, got).await.unwrap();
    assert_eq!(got["result"]["content"][0]["text"], "It is noon.", "{got}");
}
