//! Nobody can starve the others: what one member takes leaves room for the next person, of the same
//! tenant and of another one.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::model_stub::ModelStub;
use crate::rest::Client;
use crate::support::{Person, Server, TestApp, TestSocket};

/// Far less than a start waits for room.
const AT_ONCE: Duration = Duration::from_secs(10);

/// A session whose approved command runs until its sandbox ends.
async fn busy(app: &TestApp, person: &Person) -> TestSocket {
    let mut socket = TestSocket::open(app.address, person, None).await;
    app.model
        .will_call("execute_command", json!({ "command": "sleep 25" }));
    socket.say("sleep").await;
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    socket
}

/// What a command of the person says, and how it ended.
async fn run(app: &TestApp, person: &Person) -> (String, Value) {
    let mut socket = TestSocket::open(app.address, person, None).await;
    app.model
        .will_call("execute_command", json!({ "command": "echo mine" }))
        .then_say("Done");
    socket.say("echo").await;
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    let output = socket.wait_for("tool:output").await;
    (output.text().to_owned(), output.rest()["status"].clone())
}

#[tokio::test]
async fn one_members_busy_sandboxes_leave_room_for_the_next_person_at_once() {
    let app = TestApp::start_with(&[("SPL_SANDBOX", "bubblewrap"), ("SPL_SANDBOX_MAX", "4")]).await;
    let ana = app.person("acme").await;
    let mut hers = Vec::new();
    for _ in 0..4 {
        hers.push(busy(&app, &ana).await);
    }
    for tenant in ["acme", "other"] {
        let person = app.person(tenant).await;
        let ran = tokio::time::timeout(AT_ONCE, run(&app, &person)).await;
        let (said, status) = ran.unwrap_or_else(|_| panic!("{tenant} waits for ana's sandboxes"));
        assert!(said.contains("mine") && status == "completed", "{said}");
    }
}

/// A member of `acme`, another one, and somebody of another tenant.
async fn three(app: &TestApp) -> [Person; 3] {
    [
        app.person("acme").await,
        app.person("acme").await,
        app.person("other").await,
    ]
}

async fn limited(limits: &[(&str, &str)]) -> TestApp {
    let mut env = vec![("SPL_SANDBOX", "none")];
    env.extend_from_slice(limits);
    TestApp::start_with(&env).await
}

#[tokio::test]
async fn a_tenant_has_so_many_sockets_and_another_one_has_its_own() {
    let app = limited(&[("SPL_LIMIT_SOCKETS", "4")]).await;
    let [ana, ben, cy] = three(&app).await;
    let mut open = Vec::new();
    for person in [&ana, &ana, &ben] {
        open.push(TestSocket::open(app.address, person, None).await);
    }
    for person in [&ana, &ben] {
        let refused = TestSocket::try_open(app.address, json!({ "token": person.key })).await;
        let refused = refused.err().unwrap();
        assert!(refused.starts_with("too_many_requests"), "{refused}");
        assert!(refused.contains("sockets_per_tenant"), "{refused}");
    }
    open.push(TestSocket::open(app.address, &cy, None).await);
    let refused = TestSocket::try_open(app.address, json!({ "token": cy.key })).await;
    let refused = refused.err().unwrap();
    assert!(refused.contains("`runtime.limits.sockets`"), "{refused}");
}

/// Sends many commands of which none counts, and says what was refused.
async fn flood(socket: &mut TestSocket) -> Vec<String> {
    let reason = "r".repeat(500);
    for id in 0..200 {
        let decision =
            json!(["tool:approval", { "callId": "call_1_0", "approved": false, "reason": reason }]);
        socket
            .send_raw(&format!("42{}{decision}", 1_000 + id))
            .await;
    }
    while socket.answers_from(1_000).len() < 200 {
        assert!(socket.step().await, "the connection ended");
    }
    let answers = socket.answers_from(1_000).into_iter();
    let refused = answers.map(|answer| &answer["error"]);
    let refused = refused.filter(|error| error["code"] == "too_many_requests");
    refused
        .map(|error| error["message"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn commands_that_wait_for_a_socket_have_a_budget_in_bytes() {
    let app = limited(&[("SPL_LIMIT_WAITING_BYTES_PER_SOCKET", "1500")]).await;
    let mut ana = app.socket("acme").await;
    let refused = flood(&mut ana).await;
    assert!(!refused.is_empty(), "all of them waited");
    for message in refused {
        assert!(message.contains("bytes"), "{message}");
    }
    // One that is alone is taken, however large.
    let large = json!({ "callId": "call_1_0", "approved": false, "reason": "r".repeat(1_900) });
    let answer = ana.ask("tool:approval", &[large]).await;
    assert_eq!(answer["error"]["code"], "no_such_call", "{answer}");
}

#[tokio::test]
async fn commands_that_wait_for_all_sockets_of_a_person_have_a_budget_too() {
    let app = limited(&[("SPL_LIMIT_WAITING_BYTES", "8000")]).await;
    let mut ana = app.socket("acme").await;
    let refused = flood(&mut ana).await;
    assert!(!refused.is_empty(), "all of them waited");
    for message in refused {
        assert!(message.contains("waiting_bytes_per_user"), "{message}");
    }
    app.model.will_say("still here");
    ana.say("hello").await;
    assert_eq!(ana.wait_for_answer().await, "still here");
}

#[tokio::test]
async fn one_members_busy_sessions_leave_memory_to_the_others_and_idle_ones_leave_it() {
    let app = limited(&[("SPL_LIMIT_SESSIONS", "4")]).await;
    let [ana, ben, cy] = three(&app).await;
    app.model.will_say("never").stall();
    let mut busy = TestSocket::open(app.address, &ana, None).await;
    busy.say("work").await;
    let refused = TestSocket::try_open(app.address, json!({ "token": ana.key })).await;
    assert_eq!(refused.err().unwrap(), "too_many_requests");
    for person in [&ben, &cy] {
        let mut socket = TestSocket::open(app.address, person, None).await;
        app.model.will_say("at once");
        socket.say("hello").await;
        assert_eq!(socket.wait_for_answer().await, "at once");
    }
    // A session that rests leaves memory for the next one, long before its minute is over, and is
    // whole when it is needed again.
    let stopped = busy.ask("agent:cancel", &[json!({})]).await;
    assert_eq!(stopped["ok"], true, "{stopped}");
    app.model.release();
    let mut next = TestSocket::open(app.address, &ana, None).await;
    app.model.will_say("next");
    next.say("another").await;
    assert_eq!(next.wait_for_answer().await, "next");
    app.model.will_say("again");
    busy.say("go on").await;
    assert_eq!(busy.wait_for_answer().await, "again");
}

#[tokio::test]
async fn one_member_creates_so_many_sessions_in_a_minute_and_the_others_theirs() {
    let app = limited(&[
        ("SPL_LIMIT_NEW_SESSIONS_PER_USER", "2"),
        ("SPL_LIMIT_NEW_SESSIONS_PER_TENANT", "3"),
    ])
    .await;
    let [ana, ben, cy] = three(&app).await;
    let create = async |person: &Person| {
        let client = Client::with_key(&app, &person.key);
        client.post("/api/sessions", json!({ "title": "t" })).await
    };
    for person in [&ana, &ana, &ben] {
        create(person).await.ok(201);
    }
    let check = async |person, setting: &str| {
        let refused = create(person).await;
        refused.problem(429, "too_many_requests");
        assert!(refused.text.contains(setting), "{}", refused.text);
    };
    check(&ana, "new_sessions_per_user").await;
    check(&ben, "new_sessions_per_tenant").await;
    create(&cy).await.ok(201);
    // A message of a new session creates one too; the sessions that there are go on.
    let mut socket = TestSocket::open(app.address, &ana, None).await;
    let refused = socket.ask("message", &[json!("hello")]).await;
    assert_eq!(refused["error"]["code"], "too_many_requests", "{refused}");
}

/// A single question; the code of its error, or none.
async fn question(app: &TestApp, person: &Person) -> Value {
    let call = json!({ "method": "tools/call",
        "params": { "name": "process", "arguments": { "input": "what?" } } });
    let asked = TestApp::http()
        .post(app.url("/message"))
        .bearer_auth(&person.key)
        .json(&call);
    let answer: Value = asked.send().await.unwrap().json().await.unwrap();
    answer["result"]["structuredContent"]["code"].clone()
}

#[tokio::test]
async fn one_members_questions_leave_room_for_those_of_others() {
    let app = limited(&[("SPL_LIMIT_QUESTIONS", "4")]).await;
    let [ana, ben, cy] = three(&app).await;
    app.model.will_say("late").stall();
    let others = async {
        app.model.stalled().await;
        assert_eq!(question(&app, &ana).await, "too_many_requests");
        for person in [&ben, &cy] {
            app.model.will_say("at once");
            assert_eq!(question(&app, person).await, Value::Null);
        }
        app.model.release();
    };
    let (first, ()) = tokio::join!(question(&app, &ana), others);
    assert_eq!(first, Value::Null);
    app.model.will_say("again");
    assert_eq!(question(&app, &ana).await, Value::Null);
}

/// Opens a stream of the old kind.
async fn stream(app: &TestApp, person: &Person) -> reqwest::Response {
    let asked = TestApp::http()
        .get(app.url("/sse"))
        .bearer_auth(&person.key);
    asked.send().await.unwrap()
}

/// Opens a connection of today.
async fn connect(app: &TestApp, person: &Person) -> reqwest::Response {
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": { "name": "t", "version": "1" } } });
    let asked = TestApp::http()
        .post(app.url("/mcp"))
        .header("accept", "application/json, text/event-stream")
        .bearer_auth(&person.key)
        .json(&hello);
    asked.send().await.unwrap()
}

#[tokio::test]
async fn one_members_streams_leave_room_for_those_of_others() {
    let app = limited(&[("SPL_LIMIT_STREAMS", "4")]).await;
    let [ana, ben, cy] = three(&app).await;
    let held = stream(&app, &ana).await;
    assert_eq!(held.status(), 200);
    for refused in [stream(&app, &ana).await, connect(&app, &ana).await] {
        assert_eq!(refused.status(), 429);
        let text = refused.text().await.unwrap();
        assert!(text.contains("`runtime.limits.streams_per_user`"), "{text}");
    }
    let theirs = [stream(&app, &ben).await, connect(&app, &cy).await];
    assert!(theirs.iter().all(|answer| answer.status() == 200));
    assert_eq!(connect(&app, &cy).await.status(), 429);

    // What ends makes room: a stream that its client leaves, and a connection that it takes back.
    drop(held);
    let again = async { while stream(&app, &ana).await.status() != 200 {} };
    tokio::time::timeout(AT_ONCE, again).await.unwrap();
    let session = theirs[1].headers()["mcp-session-id"].clone();
    let ended = TestApp::http()
        .delete(app.url("/mcp"))
        .header("mcp-session-id", session)
        .bearer_auth(&cy.key);
    assert!(ended.send().await.unwrap().status().is_success());
    let again = async { while connect(&app, &cy).await.status() != 200 {} };
    tokio::time::timeout(AT_ONCE, again).await.unwrap();
}

/// Begins a request whose body never comes to its end.
async fn begin(app: &TestApp, client: &str, pieces: &str) -> TcpStream {
    let mut stream = TcpStream::connect(app.address).await.unwrap();
    let head = format!(
        "POST /api/auth/login HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: {client}\r\n\
         Content-Type: application/json\r\nContent-Length: 4000\r\n\r\n{pieces}"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

async fn answer(mut stream: TcpStream) -> String {
    let mut rest = Vec::new();
    let read = tokio::time::timeout(AT_ONCE, stream.read_to_end(&mut rest)).await;
    read.expect("the connection ends").unwrap();
    String::from_utf8(rest).unwrap()
}

#[tokio::test]
async fn a_body_that_does_not_come_ends_its_request_and_its_connection() {
    let app = limited(&[("SPL_LIMIT_BODY_SECONDS", "1")]).await;
    for pieces in ["", "{\"tenant\":"] {
        let refused = answer(begin(&app, "192.0.2.1", pieces).await).await;
        assert!(refused.starts_with("HTTP/1.1 408"), "{refused}");
        assert!(
            refused.contains("\"code\":\"request_timeout\""),
            "{refused}"
        );
    }
}

#[tokio::test]
async fn a_client_behind_a_trusted_proxy_has_so_many_requests_and_the_next_one_its_own() {
    let app = limited(&[
        ("SPL_TRUSTED_PROXIES", "127.0.0.0/8"),
        ("SPL_LIMIT_CONNECTIONS_PER_ADDRESS", "2"),
    ])
    .await;
    let ask = async |client: &str| {
        let asked = TestApp::http()
            .get(app.url("/healthz"))
            .header("x-forwarded-for", client);
        asked.send().await.unwrap().status().as_u16()
    };
    let _slow = [
        begin(&app, "192.0.2.1", "").await,
        begin(&app, "192.0.2.1", "").await,
    ];
    let full = async { while ask("192.0.2.1").await != 429 {} };
    tokio::time::timeout(AT_ONCE, full).await.unwrap();
    // The proxy's connections are as many as its clients need.
    for client in ["192.0.2.2", "2001:db8::1"] {
        assert_eq!(ask(client).await, 200);
    }
}

/// A shell lets its programs open 1,024 files, which is less than the clients of one gateway.
#[tokio::test]
async fn a_gateway_may_open_as_many_files_as_the_system_allows() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let model = ModelStub::start().await;
    let server = Server::start_with_files(&data, &model, (256, 4096));
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", server.id())).unwrap();
    let files = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"));
    let files: Vec<&str> = files.unwrap().split_whitespace().collect();
    assert_eq!(files, ["4096", "4096", "files"]);
    server.stop();
}
