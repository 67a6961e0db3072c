//! A session as server-sent events: the same as at the socket, and resumed without a gap or a double.

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpSocket;

use super::{Answer, Client};
use crate::model_stub::{ModelStub, Reply};
use crate::replicas::Pair;
use crate::support::postgres::new_database;
use crate::support::{Server, TestApp, TestSocket, TestStream, person};

#[tokio::test]
async fn a_stream_shows_what_a_socket_shows() {
    let app = TestApp::with_sandbox().await;
    let ana = app.person("acme").await;
    let client = Client::with_key(&app, &ana.key);
    let session = client.post("/api/sessions", json!({})).await.ok(201);
    let session = session["id"].as_str().unwrap();
    let mut socket = TestSocket::open(app.address, &ana, Some(session)).await;
    let mut stream = TestStream::open(app.address, &ana, session, None).await;
    let ready = stream.wait_for("system:ready").await;
    assert_eq!(ready.args[0]["sessionId"], session);
    assert_eq!(ready.args[0]["state"], socket.ready["state"]);
    app.model
        .will_call("list_files", json!({}))
        .then_say("one 😀 two");
    let at = |rest: &str| format!("/api/sessions/{session}/{rest}");
    let said = json!({ "text": "list", "clientMessageId": "m1" });
    client.post(&at("messages"), said).await.ok(202);
    let card = stream.wait_for("tool:approval_required").await.args[0].clone();
    let yes = json!({ "callId": card["callId"], "approved": true, "digest": card["digest"] });
    client.post(&at("approvals"), yes).await.ok(202);
    let answer = stream.wait_for("agent:response").await;
    assert_eq!(answer.text(), "one 😀 two");
    socket.wait_for_answer().await;
    assert_eq!(stream.shown(), socket.shown());
    let deltas = |log: &[crate::support::Said]| -> String {
        let deltas = log.iter().filter(|said| said.name == "agent:delta");
        deltas.map(|said| said.text().to_owned()).collect()
    };
    assert_eq!(deltas(&stream.log), "one 😀 two");
    assert_eq!(deltas(&socket.log), "one 😀 two");

    // From every id on, exactly what came behind it follows.
    let shown = stream.shown();
    let head = shown.last().unwrap().0;
    let mut ids = stream.ids.clone();
    ids.dedup();
    assert!(ids.len() > 6, "{ids:?}");
    for id in ids.iter().filter(|id| !id.is_empty()) {
        let seq: u64 = id.split('.').next().unwrap().parse().unwrap();
        let mut again = TestStream::open(app.address, &ana, session, Some(id)).await;
        let ready = again.wait_for("system:ready").await;
        assert_eq!(ready.args[0]["resumed"], true);
        while again.shown().last().map_or(seq, |(seq, _)| *seq) < head {
            assert!(again.step().await);
        }
        let rest: Vec<_> = shown.iter().filter(|(at, _)| *at > seq).cloned().collect();
        assert_eq!(again.shown(), rest, "from {id}");
    }
    let id = "1.jrn_00000000000000000000000000000000";
    let mut other = TestStream::open(app.address, &ana, session, Some(id)).await;
    let ready = other.wait_for("system:ready").await;
    assert_eq!(ready.args[0]["resumed"], false, "of another journal");
    let refused = TestStream::try_open(app.address, &ana, session, Some("x")).await;
    let refused = refused.err().unwrap();
    assert_eq!(refused["errors"][0]["field"], "Last-Event-ID", "{refused}");
}

#[tokio::test]
async fn a_stream_that_begins_in_the_middle_of_an_answer_shows_all_of_it() {
    let app = TestApp::start().await;
    let ana = app.person("acme").await;
    let mut socket = TestSocket::open(app.address, &ana, None).await;
    app.model.will(Reply::say("one two three four")).stall();
    socket.say("count").await;
    app.model.stalled().await;
    let mut late = TestStream::open(app.address, &ana, &socket.session(), None).await;
    let ready = late.wait_for("system:ready").await;
    let before = ready.args[0]["state"]["running"]["text"].clone();
    app.model.release();
    assert_eq!(
        late.wait_for("agent:response").await.text(),
        "one two three four"
    );
    let deltas = late.log.iter().filter(|said| said.name == "agent:delta");
    let after: String = deltas.map(|said| said.text().to_owned()).collect();
    let before = before.as_str().unwrap().to_owned();
    assert_eq!(before + &after, "one two three four");
}

/// Asserts O5.
#[tokio::test]
async fn a_stream_ends_with_the_right_of_its_person_and_counts_as_a_socket() {
    let app = TestApp::start_with(&[("SPL_LIMIT_SOCKETS_PER_USER", "2")]).await;
    let ana = app.person("acme").await;
    let ben = app.person("acme").await;
    let session = app.socket("acme").await.session();
    let hidden = TestStream::try_open(app.address, &ben, &session, None).await;
    assert_eq!(hidden.err().unwrap()["code"], "session_not_found");
    let mut socket = TestSocket::open(app.address, &ana, None).await;
    app.model.will_say("fine");
    socket.say("hello").await;
    socket.wait_for_answer().await;
    let session = socket.session();
    let mut stream = TestStream::open(app.address, &ana, &session, None).await;
    let third = TestStream::try_open(app.address, &ana, &session, None).await;
    assert_eq!(third.err().unwrap()["code"], "too_many_requests");
    let list = TestStream::try_open_at(app.address, &ana, "/api/stream", None).await;
    assert_eq!(list.err().unwrap()["code"], "too_many_requests");
    stream.wait_for("system:ready").await;
    let administration = app.tenancy.administration();
    let keys = administration.keys(&ana.tenant).await.unwrap();
    for key in keys {
        administration
            .revoke_key(&ana.tenant, &key.id)
            .await
            .unwrap();
    }
    let error = stream.wait_for("error").await;
    assert_eq!(error.rest()["code"], "unauthorized");
    stream.wait_for_end().await;
    let refused = TestStream::try_open(app.address, &ana, &session, None).await;
    assert_eq!(refused.err().unwrap()["code"], "unauthorized");
}

#[tokio::test]
async fn the_list_tells_what_changes_in_it() {
    let app = TestApp::start().await;
    let ana = app.person("acme").await;
    let opened = TestStream::try_open_at(app.address, &ana, "/api/stream", None).await;
    let mut list = opened.unwrap();
    let client = Client::with_key(&app, &ana.key);
    let made = client.post("/api/sessions", json!({ "title": "Mine" }));
    let made = made.await.ok(201);
    let changed = list.wait_for("sessions:changed").await;
    assert_eq!(changed.args[0]["id"], made["id"]);
    let at = format!("/api/sessions/{}", made["id"].as_str().unwrap());
    assert_eq!(client.delete(&at).await.status, 204);
    let removed = list.wait_for("sessions:removed").await;
    assert_eq!(removed.args[0]["id"], made["id"]);
}

#[tokio::test]
async fn a_reader_that_takes_nothing_is_cut_off_and_resumes() {
    let app = TestApp::start_with(&[
        ("SPL_SOCKET_PING_INTERVAL_MS", "100"),
        ("SPL_SOCKET_PING_TIMEOUT_MS", "100"),
        ("SPL_LIMIT_SOCKETS_PER_USER", "1"),
    ])
    .await;
    let ana = app.person("acme").await;
    let client = Client::with_key(&app, &ana.key);
    let made = client.post("/api/sessions", json!({})).await.ok(201);
    let session = made["id"].as_str().unwrap();
    let slow = TcpSocket::new_v4().unwrap();
    slow.set_recv_buffer_size(4_096).unwrap();
    let mut slow = slow.connect(app.address).await.unwrap();
    let asked = format!(
        "GET /api/sessions/{session}/stream HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\
         connection: close\r\n\r\n",
        app.address, ana.key
    );
    slow.write_all(asked.as_bytes()).await.unwrap();
    let mut head = [0; 12];
    slow.read_exact(&mut head).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 200");
    // More than the buffers of both ends hold; the model reads none of it.
    app.model.will(Reply::say("one two")).stall();
    let at = |rest: &str| format!("/api/sessions/{session}/{rest}");
    client
        .post(&at("messages"), json!({ "text": "count" }))
        .await
        .ok(202);
    app.model.stalled().await;
    for number in 0..40 {
        let text = format!("{number} {}", "x".repeat(200_000));
        let id = format!("m{number}");
        let body = json!({ "text": text, "clientMessageId": id });
        client.post(&at("messages"), body).await.ok(202);
        let body = json!({ "clientMessageId": id });
        client.post(&at("messages/withdraw"), body).await.ok(202);
    }
    client.post(&at("stop"), json!({})).await.ok(202);
    app.model.release();
    // Its place is free once it is cut off.
    let mut resumed = loop {
        let opened = TestStream::try_open(app.address, &ana, session, None).await;
        match opened {
            Ok(stream) => break stream,
            Err(refused) => assert_eq!(refused["code"], "too_many_requests", "{refused}"),
        }
    };
    resumed.wait_for("system:ready").await;
    drop(resumed);
    let mut rest = Vec::new();
    slow.read_to_end(&mut rest).await.unwrap();
    let rest = String::from_utf8_lossy(&rest);
    let last_id = rest
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("id: "));
    let last_id = last_id.unwrap();
    let seq: u64 = last_id.split('.').next().unwrap().parse().unwrap();
    let events = format!("/api/sessions/{session}/events?after={seq}&limit=1");
    let next = client.get(&events).await.ok(200)["items"][0].clone();
    assert_eq!(next["seq"], seq + 1, "it was cut off before the end");
    let mut resumed = loop {
        match TestStream::try_open(app.address, &ana, session, Some(last_id)).await {
            Ok(stream) => break stream,
            Err(refused) => assert_eq!(refused["code"], "too_many_requests", "{refused}"),
        }
    };
    let ready = resumed.wait_for("system:ready").await.args[0].clone();
    // More than a mebibyte behind, it gets the state in place of the events.
    if ready["resumed"] == true {
        resumed.step().await;
        assert_eq!(resumed.shown()[0].0, seq + 1);
    }
}

#[tokio::test]
async fn a_stream_is_resumed_at_the_other_gateway() {
    let pair = Pair::start_with(&[("SPL_SANDBOX", "none")]).await;
    let (ana, mut at_a, _) = pair.sockets("both").await;
    pair.a.model.will_say("one");
    at_a.say("first").await;
    at_a.wait_for_answer().await;
    let session = at_a.session();
    let mut stream = TestStream::open(pair.a.address, &ana, &session, None).await;
    stream.wait_for("system:ready").await;
    let id = stream.last_id().to_owned();
    drop(stream);
    pair.a.model.will_say("two");
    at_a.say("second").await;
    at_a.wait_for_answer().await;
    let mut resumed = TestStream::open(pair.b.address, &ana, &session, Some(&id)).await;
    assert_eq!(resumed.wait_for("agent:response").await.text(), "two");
    pair.a.model.will_say("three");
    at_a.say("third").await;
    assert_eq!(resumed.wait_for("agent:response").await.text(), "three");
    at_a.wait_for_answer().await;
    let seq: u64 = id.split('.').next().unwrap().parse().unwrap();
    let behind: Vec<_> = at_a
        .shown()
        .into_iter()
        .filter(|(at, _)| *at > seq)
        .collect();
    while resumed.shown().len() < behind.len() {
        assert!(resumed.step().await);
    }
    assert_eq!(resumed.shown(), behind);
}

/// Asserts O1.
#[tokio::test]
async fn a_stream_is_resumed_after_a_kill() {
    a_stream_survives_a_kill(None).await;
}

#[tokio::test]
async fn a_stream_is_resumed_after_a_kill_in_postgres_too() {
    let database = new_database().await;
    a_stream_survives_a_kill(Some(&database)).await;
}

async fn a_stream_survives_a_kill(database: Option<&str>) {
    let mut env = vec![("SPL_SANDBOX", "none")];
    env.extend(database.map(|url| ("DATABASE_URL", url)));
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let model = ModelStub::start().await;
    let server = Server::start_with(&data, &model, &env);
    let ana = person(&data, &env);
    let post = async |address, path: &str, body: Value| -> Answer {
        Client::at(address, &ana.key).post(path, body).await
    };
    let made = post(server.address, "/api/sessions", json!({}))
        .await
        .ok(201);
    let session = made["id"].as_str().unwrap();
    let messages = format!("/api/sessions/{session}/messages");
    let mut stream = TestStream::open(server.address, &ana, session, None).await;
    model.will_say("one");
    post(server.address, &messages, json!({ "text": "first" }))
        .await
        .ok(202);
    stream.wait_for("agent:response").await;
    server.kill();
    stream.wait_for_end().await;
    let (id, before) = (stream.last_id().to_owned(), stream.shown());

    let server = Server::start_with(&data, &model, &env);
    let mut again = TestStream::open(server.address, &ana, session, Some(&id)).await;
    let ready = again.wait_for("system:ready").await;
    assert_eq!(ready.args[0]["resumed"], true);
    model.will_say("two");
    post(server.address, &messages, json!({ "text": "second" }))
        .await
        .ok(202);
    assert_eq!(again.wait_for("agent:response").await.text(), "two");
    let seqs: Vec<u64> = before
        .iter()
        .chain(&again.shown())
        .map(|(seq, _)| *seq)
        .collect();
    let dense: Vec<u64> = (1..).take(seqs.len()).collect();
    assert_eq!(seqs, dense);
}
