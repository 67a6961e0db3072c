//! A person's list of sessions, told to every screen that they have open.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Person, TestApp, TestSocket};

/// The next news of that session.
async fn news(list: &mut TestSocket, session: &str) -> Value {
    let of_it = list.wait_where(|said| said.args[0]["id"] == session).await;
    of_it.args[0].clone()
}

/// Waits until the list says that so many calls wait in that session.
async fn waits(list: &mut TestSocket, session: &str, calls: u64) -> Value {
    loop {
        let item = news(list, session).await;
        if item["waiting"] == calls {
            return item;
        }
    }
}

async fn listed(app: &TestApp, person: &Person, query: &str) -> Value {
    let url = app.url(&format!("/api/sessions{query}"));
    let asked = TestApp::http().get(url).bearer_auth(&person.key);
    asked.send().await.unwrap().json().await.unwrap()
}

#[tokio::test]
async fn what_begins_to_wait_and_what_is_decided_is_told_within_a_second() {
    let app = TestApp::with_sandbox().await;
    let ana = app.person("acme").await;
    let mut list = TestSocket::listen(app.address, &ana).await.unwrap();
    app.model
        .will_call("list_files", json!({}))
        .then_say("Done");
    let mut socket = TestSocket::open(app.address, &ana, None).await;
    socket.say("list").await;
    let card = socket.wait_for_approval().await;
    let began = Instant::now();
    let item = waits(&mut list, &socket.session(), 1).await;
    assert!(
        began.elapsed() < Duration::from_secs(1),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(item["state"], "waiting");
    // It is what REST says, so that one reader does for both.
    assert_eq!(listed(&app, &ana, "").await["items"][0], item);
    assert_eq!(listed(&app, &ana, "?state=waiting").await["items"][0], item);
    assert_eq!(listed(&app, &ana, "?state=idle").await["items"], json!([]));

    // Decided on another screen.
    let mut elsewhere = TestSocket::open(app.address, &ana, Some(&socket.session())).await;
    elsewhere.decide(&card, false).await;
    let began = Instant::now();
    let decided = waits(&mut list, &socket.session(), 0).await;
    assert!(
        began.elapsed() < Duration::from_secs(1),
        "{:?}",
        began.elapsed()
    );
    assert!(decided["version"].as_u64() > item["version"].as_u64());
    assert_eq!(
        listed(&app, &ana, "?state=waiting").await["items"],
        json!([])
    );
}

#[tokio::test]
async fn a_deleted_session_leaves_every_list() {
    let app = TestApp::with_sandbox().await;
    let ana = app.person("acme").await;
    let mut list = TestSocket::listen(app.address, &ana).await.unwrap();
    app.model.will_say("hi");
    let mut socket = TestSocket::open(app.address, &ana, None).await;
    socket.say("hello").await;
    socket.wait_for_answer().await;
    let url = app.url(&format!("/api/sessions/{}", socket.session()));
    let deleted = TestApp::http().delete(url).bearer_auth(&ana.key).send();
    assert_eq!(deleted.await.unwrap().status(), 204);
    let gone = list.wait_for("sessions:removed").await;
    assert_eq!(gone.args, [json!({ "id": socket.session() })]);
}

#[tokio::test]
async fn nobody_hears_of_the_sessions_of_others() {
    let app = TestApp::with_sandbox().await;
    let ana = app.person("acme").await;
    let others = [app.person("acme").await, app.person("other").await];
    let mut lists = Vec::new();
    for person in &others {
        lists.push(TestSocket::listen(app.address, person).await.unwrap());
    }
    let mut own = TestSocket::listen(app.address, &ana).await.unwrap();
    app.model.will_call("list_files", json!({}));
    let mut socket = TestSocket::open(app.address, &ana, None).await;
    socket.say("a secret").await;
    waits(&mut own, &socket.session(), 1).await;
    for (person, mut list) in others.iter().zip(lists) {
        // Told in the order in which it happened: what was told of hers would be here before.
        let mut theirs = TestSocket::open(app.address, person, None).await;
        app.model.will_say("yours");
        theirs.say("hello").await;
        theirs.wait_for_answer().await;
        news(&mut list, &theirs.session()).await;
        for said in &list.log {
            assert_eq!(said.args[0]["id"], theirs.session(), "{said:?}");
        }
    }
}

#[tokio::test]
async fn a_list_takes_no_commands_and_ends_with_the_right_to_read_it() {
    let app = TestApp::with_sandbox().await;
    let ana = app.person("acme").await;
    let nobody = Person {
        key: "spl_nothing".into(),
        ..ana.clone()
    };
    let refused = TestSocket::listen(app.address, &nobody)
        .await
        .err()
        .unwrap();
    assert!(refused.contains("unauthorized"), "{refused}");
    let mut list = TestSocket::listen(app.address, &ana).await.unwrap();
    let answer = list.ask("message", &[json!({ "text": "hello" })]).await;
    assert_eq!(answer["error"]["code"], "unknown_command", "{answer}");
    let keys = app
        .tenancy
        .administration()
        .keys(&ana.tenant)
        .await
        .unwrap();
    let revoked = app
        .tenancy
        .administration()
        .revoke_key(&ana.tenant, &keys[0].id);
    revoked.await.unwrap();
    let error = list.wait_for("error").await;
    assert_eq!(error.rest()["code"], "unauthorized");
}
