//! Keys that are limited to some sessions or MCP servers.

use std::sync::Arc;

use sepal::domain::{KeyGrant, KeyScope, Role, SessionId};
use serde_json::{Value, json};

use super::{key_with, scoped};
use crate::agent_mode::http::connect;
use crate::agent_mode::{TestClient, ask_with, hear, question, text_of};
use crate::rest::Client;
use crate::support::{Person, TestApp, TestSocket};

/// A session of a person in which they said a word, and whose call waits for them.
async fn session(app: &TestApp, person: &Person, word: &str) -> String {
    app.model.will_call("list_files", json!({}));
    let mut socket = TestSocket::open(app.address, person, None).await;
    socket.say(word).await;
    socket.wait_for_approval().await;
    socket.session()
}

fn of_sessions(ids: &[&str]) -> KeyGrant {
    let ids = ids.iter().map(|id| SessionId::parse(id).unwrap());
    KeyGrant::within(None, Some(ids.collect()), None)
}

fn of_servers(names: &[&str]) -> KeyGrant {
    let names = names.iter().map(|name| (*name).to_owned());
    KeyGrant::within(None, None, Some(Arc::new(names.collect())))
}

fn ids(listed: &Value, name: &str) -> Vec<String> {
    let items = listed["items"].as_array().unwrap().iter();
    items
        .map(|item| item[name].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn to_a_key_of_some_sessions_there_are_no_others() {
    let app = TestApp::with_sandbox().await;
    let ana = app.person_with("acme", Role::Owner).await;
    let mine = session(&app, &ana, "apple one").await;
    let other = session(&app, &ana, "apple two").await;
    let limited = key_with(&app, &ana, of_sessions(&[&mine])).await;
    let client = Client::with_key(&app, &limited.key);

    let listed = client.get("/api/sessions").await.ok(200);
    assert_eq!(ids(&listed, "id"), std::slice::from_ref(&mine));
    let found = client.get("/api/search?q=apple").await.ok(200);
    assert_eq!(ids(&found, "sessionId"), std::slice::from_ref(&mine));
    let inbox = client.get("/api/approvals").await.ok(200);
    assert_eq!(ids(&inbox, "sessionId"), std::slice::from_ref(&mine));
    let waiting = client.get("/api/approvals/count").await.ok(200);
    assert_eq!(waiting["sessions"], 1);
    for rest in [
        "",
        "/events",
        "/export?format=json",
        "/decisions",
        "/forks",
        "/files",
    ] {
        let own = client.get(&format!("/api/sessions/{mine}{rest}")).await;
        assert_eq!(own.status, 200, "{rest}: {}", own.text);
        let others = client.get(&format!("/api/sessions/{other}{rest}")).await;
        others.problem(404, "session_not_found");
    }
    let say = json!({ "text": "more" });
    let path = format!("/api/sessions/{other}/messages");
    let said = client.post(&path, say).await;
    said.problem(404, "session_not_found");
    let both = json!({ "ids": [mine, other], "action": "pin" });
    let pinned = client.post("/api/sessions/bulk", both).await.ok(200);
    assert_eq!(pinned["done"], json!([mine]));
    assert_eq!(pinned["notFound"], json!([other]));

    // It begins none, and does nothing that is about more.
    let begun = client.post("/api/sessions", json!({})).await;
    begun.problem(403, "not_allowed");
    let path = format!("/api/sessions/{mine}/fork");
    let fork = client.post(&path, json!({})).await;
    fork.problem(403, "not_allowed");
    let rule = json!({ "effect": "allow", "scope": "person", "server": "x", "tool": "y" });
    let rule = client.post("/api/rules", rule).await;
    rule.problem(403, "not_allowed");
    for path in [
        "/api/usage",
        "/api/keys",
        "/api/readings",
        "/api/people",
        "/api/skills",
    ] {
        let refused = client.get(path).await;
        assert_eq!(refused.status, 403, "{path}");
    }
    let shared = json!({ "audience": "tenant" });
    let path = format!("/api/sessions/{mine}/shares");
    let shared = client.post(&path, shared).await;
    shared.problem(403, "scope_missing");

    let whole = Client::with_key(&app, &ana.key);
    let path = format!("/api/sessions/{other}/shares");
    let way = json!({ "audience": "tenant" });
    let way = whole.post(&path, way).await.ok(201);
    let path = format!("/api/shared/{}", way["id"].as_str().unwrap());
    assert_eq!(client.get(&path).await.status, 403);
    let reads = key_with(&app, &ana, scoped(&[KeyScope::Read])).await;
    let reads = Client::with_key(&app, &reads.key);
    assert_eq!(reads.get(&path).await.status, 200);

    let auth = json!({ "token": limited.key, "sessionId": other });
    let refused = TestSocket::try_open(app.address, auth).await.err().unwrap();
    assert!(refused.starts_with("session_not_found"), "{refused}");
    let auth = json!({ "token": limited.key });
    let refused = TestSocket::try_open(app.address, auth).await.err().unwrap();
    assert!(refused.starts_with("not_allowed"), "{refused}");
    let auth = json!({ "token": limited.key, "sessionId": "a-name" });
    assert!(TestSocket::try_open(app.address, auth).await.is_err());
    let mut own = TestSocket::open(app.address, &limited, Some(&mine)).await;
    let stopped = own.ask("agent:cancel", &[json!({})]).await;
    assert_eq!(stopped["ok"], true, "{stopped}");

    let input = json!({ "input": "hello" });
    let (text, is_error) = ask_with(&app, &limited.key, input).await;
    assert!(is_error && text.contains("begins no others"), "{text}");
}

/// News of the list are about the same sessions as the list.
#[tokio::test]
async fn a_key_of_some_sessions_hears_of_no_others() {
    let app = TestApp::with_sandbox().await;
    let ana = app.person("acme").await;
    let mine = session(&app, &ana, "one").await;
    let other = session(&app, &ana, "two").await;
    let limited = key_with(&app, &ana, of_sessions(&[&mine])).await;
    let mut list = TestSocket::listen(app.address, &limited).await.unwrap();
    let whole = Client::with_key(&app, &ana.key);
    for id in [&other, &mine] {
        let path = format!("/api/sessions/{id}/stop");
        let stopped = whole.post(&path, json!({})).await;
        assert_eq!(stopped.status, 202);
    }
    let about = |args: &[Value], id: &str| serde_json::to_string(args).unwrap().contains(id);
    list.wait_where(|said| about(&said.args, &mine)).await;
    assert!(!list.log.iter().any(|said| about(&said.args, &other)));
}

#[tokio::test]
async fn sessions_of_a_key_of_some_servers_are_offered_only_these() {
    let app = TestApp::with_sandbox().await;
    let ana = app.person("acme").await;
    let earlier = session(&app, &ana, "before").await;
    let none = key_with(&app, &ana, of_servers(&["files"])).await;
    let offered = |app: &TestApp| {
        let requests = app.model.requests();
        let asked = requests.last().unwrap();
        asked.body["tools"].to_string().contains("list_files")
    };

    app.model.will_say("done");
    let mut socket = TestSocket::open(app.address, &none, None).await;
    socket.say("hello").await;
    socket.wait_for_answer().await;
    assert!(!offered(&app), "the sandbox is none of its servers");
    let begun = socket.session();

    // Also when the person themselves goes on in it.
    app.model.will_say("done");
    let mut whole = TestSocket::open(app.address, &ana, Some(&begun)).await;
    whole.say("more").await;
    whole.wait_for_answer().await;
    assert!(!offered(&app));

    let bundled = key_with(&app, &ana, of_servers(&["files", "sandbox"])).await;
    app.model.will_say("done");
    let mut socket = TestSocket::open(app.address, &bundled, None).await;
    socket.say("hello").await;
    socket.wait_for_answer().await;
    assert!(offered(&app));
    let wider = socket.session();

    // It reads other sessions, and acts only where no other servers are.
    let client = Client::with_key(&app, &none.key);
    for (id, may) in [(&earlier, false), (&wider, false), (&begun, true)] {
        client.get(&format!("/api/sessions/{id}")).await.ok(200);
        app.model.forget_rest();
        app.model.will_say("fine");
        let path = format!("/api/sessions/{id}/retry");
        let retried = client.post(&path, json!({})).await;
        assert_eq!(retried.status == 202, may, "{}", retried.text);
        let path = format!("/api/sessions/{id}/fork");
        let forked = client.post(&path, json!({ "fromSeq": 0 })).await;
        assert_eq!(forked.status == 201, may, "{}", forked.text);
    }
    whole.wait_for_answer().await;
    let mut inbox = TestSocket::open(app.address, &none, Some(&earlier)).await;
    let card = inbox.wait_for_approval().await;
    let decided = inbox.decide(&card, true).await;
    assert_eq!(decided["error"]["code"], "not_allowed", "{decided}");
    let rule = json!({ "effect": "allow", "scope": "person", "server": "x", "tool": "y" });
    let rule = client.post("/api/rules", rule).await;
    rule.problem(403, "not_allowed");
    app.model.forget_rest();
}

#[tokio::test]
async fn who_asks_the_agent_decides_there_only_with_the_scope() {
    let app = TestApp::with_sandbox().await;
    let ana = app.person("acme").await;
    let reads = key_with(&app, &ana, scoped(&[KeyScope::Read])).await;
    let (client, _) = TestClient::new(None);
    assert!(connect(&app, &reads.key, client).await.is_none());

    let says = key_with(&app, &ana, scoped(&[KeyScope::Message])).await;
    let (client, mut hears) = TestClient::new(Some(true));
    let asked = Arc::clone(&client.asked);
    let client = connect(&app, &says.key, client).await.unwrap();
    app.model
        .will_call("list_files", json!({}))
        .then_say("Done");
    let calling = client.call_tool(question("List"));
    let deciding = async {
        hear(&mut hears, "waits for approval").await;
        let whole = Client::with_key(&app, &ana.key);
        let listed = whole.get("/api/sessions").await.ok(200);
        let id = ids(&listed, "id").remove(0);
        let mut page = TestSocket::open(app.address, &ana, Some(&id)).await;
        let card = page.wait_for_approval().await;
        page.approve(&card).await;
    };
    let (result, ()) = tokio::join!(calling, deciding);
    assert_eq!(text_of(&result.unwrap()), ("Done".to_owned(), false));
    assert!(asked.lock().await.is_empty(), "the client was not asked");

    let decides = key_with(&app, &ana, scoped(&[KeyScope::Message, KeyScope::Decide])).await;
    let (client, _) = TestClient::new(Some(true));
    let asked = Arc::clone(&client.asked);
    let client = connect(&app, &decides.key, client).await.unwrap();
    app.model
        .will_call("list_files", json!({}))
        .then_say("Done");
    let result = client.call_tool(question("List")).await.unwrap();
    assert_eq!(text_of(&result), ("Done".to_owned(), false));
    assert_eq!(asked.lock().await.len(), 1);
}
