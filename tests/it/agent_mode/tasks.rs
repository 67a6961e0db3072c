//! Questions as tasks (extension `io.modelcontextprotocol/tasks`): they outlive their client and the
//! gateway, and the person at the client answers when they look.

use rmcp::ServiceExt as _;
use rmcp::model::{
    CallToolResponse, ClientCapabilities, ClientConfig, ClientRequest, GetTaskParams,
    Implementation, Request, ServerResult,
};
use rmcp::service::{RoleClient, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use sepal::config::ApprovalWay;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::task_client::{Client, asked, write, yes};
use super::{question, sepal, with_model};
use crate::gestures::sign_everything;
use crate::model_stub::{ModelStub, Reply};
use crate::replicas::Pair;
use crate::servers::{Api, asking, operator};
use crate::support::{DEADLINE, Server, TestApp, TestSocket, person};

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
    // A yes for something else than what was shown is passed over.
    let (call, _) = key.split_once('/').unwrap();
    let stale = json!({ format!("{call}/sha256-of-another"): yes() });
    let other = client.update(&task, stale).await;
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
    let deleted = TestApp::http().delete(app.url(&format!("/api/sessions/{task}")));
    let deleted = deleted.bearer_auth(&ana.key).send().await.unwrap();
    assert!(deleted.status().is_success(), "{deleted:?}");
    let answer = client
        .ask("tasks/get", (&task, json!({ "taskId": task })))
        .await;
    assert_eq!(answer["error"]["code"], -32_602, "{answer}");
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

/// What people began in the page is no task, and `agent.approval` decides nothing there.
#[tokio::test]
async fn a_session_of_the_page_is_no_task() {
    let app = TestApp::start_tuned(&[("SPL_SANDBOX", "bubblewrap")], |settings| {
        settings.approval = vec![ApprovalWay::Auto];
    })
    .await;
    let ana = app.person("acme").await;
    let client = Client::of(app.address, &ana);
    let mut page = TestSocket::open(app.address, &ana, None).await;
    let (name, args) = write("a.txt");
    app.model.will_call(name, args).then_say("Done");
    page.say("Write a file").await;
    let card = page.wait_for_approval().await;
    let session = page.session();
    for answer in [
        client
            .ask("tasks/get", (&session, json!({ "taskId": session })))
            .await,
        client.update(&session, json!({})).await,
        client.cancel(&session).await,
    ] {
        assert_eq!(answer["error"]["code"], -32_602, "{answer}");
    }
    page.approve(&card).await;
    assert_eq!(page.wait_for_answer().await, "Done");
}

/// What is asked in the session once the question is answered is no part of its task.
#[tokio::test]
async fn a_later_turn_of_the_session_is_decided_in_the_page() {
    let app = TestApp::with_sandbox().await;
    let ana = app.person("acme").await;
    let client = Client::of(app.address, &ana);
    app.model.will_say("Ready.");
    let task = client.begin("Hello").await;
    let done = client.until(&task, "completed").await;
    let mut page = TestSocket::open(app.address, &ana, Some(&task)).await;
    let (name, args) = write("a.txt");
    app.model.will_call(name, args).then_say("Done");
    page.say("Write a file").await;
    let card = page.wait_for_approval().await;
    assert_eq!(client.get(&task).await, done);
    let key = format!(
        "{}/{}",
        card["callId"].as_str().unwrap(),
        card["digest"].as_str().unwrap()
    );
    let no = json!({ key: { "action": "decline" } });
    let told = client.update(&task, no).await;
    assert_eq!(told["result"]["resultType"], "complete", "{told}");
    client.cancel(&task).await;
    page.approve(&card).await;
    assert_eq!(page.wait_for_answer().await, "Done");
    let read = app.model.requests().pop().unwrap().body["messages"].to_string();
    assert!(!read.contains("declined"), "{read}");
}

/// The form of a server that a call runs at is filled in at the client, too.
#[tokio::test]
async fn the_form_of_a_server_is_filled_in_at_the_client() {
    let (app, (url, _server)) = (TestApp::start().await, asking::start().await);
    let person = operator(&app, "house").await;
    Api::new(&app, &person)
        .add("post", json!({ "url": url }))
        .await;
    asking::is_listed(app.address, &person).await;
    let client = Client::of(app.address, &person);
    app.model.will_call("ask", json!({})).then_say("Done");
    let task = client.begin("Ask").await;
    let (call, _) = asked(&client.until(&task, "input_required").await).remove(0);
    client.update(&task, json!({ &call: yes() })).await;
    let form = async {
        loop {
            let asked = asked(&client.until(&task, "input_required").await);
            if let Some((key, message)) = asked.into_iter().find(|(key, _)| *key != call) {
                return (key, message);
            }
        }
    };
    let (key, message) = tokio::time::timeout(DEADLINE, form).await.unwrap();
    assert!(message.contains("post") && message.contains("Where do you live?"));
    let wrong = json!({ &key: { "action": "accept", "content": { "zip": 12345 } } });
    let wrong = client.update(&task, wrong).await;
    assert_eq!(wrong["error"]["code"], -32_602, "{wrong}");
    let right = json!({ key: { "action": "accept", "content": { "zip": "12345" } } });
    client.update(&task, right).await;
    client.until(&task, "completed").await;
    let read = app.model.requests()[1].body["messages"].to_string();
    assert!(read.contains("Accept 1"), "{read}");
}

/// What the person at the client cannot give is left to the page, and the client is told so.
#[tokio::test]
async fn a_call_that_needs_a_passkey_is_left_to_the_page() {
    let app = TestApp::start_tuned(&[("SPL_SANDBOX", "bubblewrap")], sign_everything).await;
    let ana = app.person("acme").await;
    let client = Client::of(app.address, &ana);
    let (name, args) = write("a.txt");
    app.model.will_call(name, args);
    let task = client.begin("Write a file").await;
    let told = async {
        loop {
            let now = client.get(&task).await;
            assert_eq!(now["status"], "working", "{now}");
            if now["statusMessage"].to_string().contains("in the page") {
                return;
            }
        }
    };
    tokio::time::timeout(DEADLINE, told).await.unwrap();
    client.cancel(&task).await;
    client.until(&task, "cancelled").await;
}

/// Asserts O1: a client at the pipes of a process has its task after a kill, too.
#[tokio::test]
async fn a_task_over_stdio_survives_the_kill_of_its_process() {
    let (folder, model) = (TempDir::new().unwrap(), ModelStub::start().await);
    let start = async || {
        let mut command = sepal(&folder);
        let mut process = with_model(&mut command, &model)
            .arg("agent")
            .spawn()
            .unwrap();
        let pipes = (
            process.stdout.take().unwrap(),
            process.stdin.take().unwrap(),
        );
        let capabilities = ClientCapabilities::builder().enable_tasks().build();
        let client = ClientConfig::new(capabilities, Implementation::new("test", "1"));
        (process, client.serve(pipes).await.unwrap())
    };
    model.will(Reply::say("never heard")).stall();
    let (mut process, client) = start().await;
    let begun = client.call_tool_once(question("What time is it?")).await;
    let CallToolResponse::Task(task) = begun.unwrap() else {
        panic!("no task")
    };
    model.stalled().await;
    process.kill().await.unwrap();
    model.release();
    model.will_say("It is noon.");
    let (_process, client) = start().await;
    let got = completed(&client, &task.task.task_id).await;
    assert_eq!(got["result"]["content"][0]["text"], "It is noon.", "{got}");
}

/// The task, once it is completed.
async fn completed(client: &RunningService<RoleClient, ClientConfig>, task: &str) -> Value {
    let got = async {
        loop {
            let request = ClientRequest::GetTaskRequest(Request::new(GetTaskParams::new(task)));
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
    tokio::time::timeout(DEADLINE, got).await.unwrap()
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
    let got = completed(&client, &task.task.task_id).await;
    assert_eq!(got["result"]["content"][0]["text"], "It is noon.", "{got}");
}
