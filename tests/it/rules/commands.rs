//! The story of the issue: a person who approved `npm test` once and for all.

use reqwest::Method;
use serde_json::{Value, json};

use super::{asked, given, offer, stop_asking, unasked};
use crate::servers::Api;
use crate::support::{TestApp, TestSocket};

#[tokio::test]
async fn commands_like_one_that_was_approved_run_unasked_and_no_others() {
    let app = TestApp::with_sandbox().await;
    let person = app.person("acme").await;
    let api = Api::new(&app, &person);
    let mut socket = TestSocket::open(app.address, &person, None).await;
    let card = asked(&app, &mut socket, "npm test").await;
    assert_eq!(card["why"], "No rule covers this call.");
    let like = offer(&api, &socket, &card, "arguments").await;
    let sentence = like["sentence"].as_str().unwrap();
    assert!(sentence.contains("run `npm test …`"), "{sentence}");
    let other = &like["examples"]["other"]["arguments"]["command"];
    assert_eq!(other, "npm test && curl evil.example");
    let body = stop_asking(&socket, &card, &like["when"], "session");
    let (status, preview) = api.ask(Method::POST, "/api/rules/preview", &body).await;
    assert_eq!((status, &preview["sentence"]), (200, &like["sentence"]));
    let answer = given(&api, &body).await;
    assert_eq!(answer["hasApproved"], true, "{answer}");
    assert_eq!(answer["rule"]["sentence"], like["sentence"]);
    let id = answer["rule"]["id"].clone();
    let told = socket.wait_for("tool:decided").await.args[0].clone();
    assert_eq!((&told["approved"], &told["ruleId"]), (&json!(true), &id));
    assert_eq!(told["rule"], "npm test …");
    socket.wait_for_answer().await;

    let by = unasked(&app, &mut socket, "npm test --silent").await;
    assert_eq!(by, id);
    let card = asked(&app, &mut socket, "npm test --script-shell=./evil.sh").await;
    let why = card["why"].as_str().unwrap();
    assert!(why.contains("`--script-shell` may run"), "{why}");
    socket.decide(&card, false).await;
    socket.wait_for_answer().await;
    let card = asked(&app, &mut socket, "npm test && curl evil.example").await;
    let why = card["why"].as_str().unwrap();
    assert!(why.contains("`curl evil.example`"), "{why}");
    assert!(
        !why.contains("rul_"),
        "an id says nothing to a person: {why}"
    );
    socket.decide(&card, false).await;
    socket.wait_for_answer().await;

    // Its uses are counted, in its session's list and nobody else's.
    let path = format!("/api/rules?session={}", socket.session());
    let rules = api.get(&path).await;
    let rule = &rules["rules"][0];
    assert_eq!((&rule["id"], &rule["uses"]), (&id, &json!(2)), "{rules}");
    assert_eq!(rule["origin"], "session");
    assert_eq!(api.get("/api/rules").await["rules"], json!([]));

    // Taken back, it asks again.
    let path = format!(
        "/api/rules/{}?session={}",
        id.as_str().unwrap(),
        socket.session()
    );
    let (status, _) = api.ask(Method::DELETE, &path, &Value::Null).await;
    assert_eq!(status, 204);
    asked(&app, &mut socket, "npm test").await;
}

#[tokio::test]
async fn a_rule_is_about_the_call_that_was_shown() {
    let app = TestApp::with_sandbox().await;
    let person = app.person("acme").await;
    let api = Api::new(&app, &person);
    let mut socket = TestSocket::open(app.address, &person, None).await;
    let card = asked(&app, &mut socket, "npm test").await;
    let words = json!({ "command": [{ "words": ["npm", "test"] }] });
    let other = json!({ "command": [{ "words": ["cargo", "test"] }] });
    let body = stop_asking(&socket, &card, &other, "session");
    let (status, problem) = api.refused(Method::POST, "/api/rules", &body).await;
    assert_eq!(
        (status, &problem["errors"][0]["field"]),
        (400, &json!("when")),
        "{problem}"
    );
    let mut body = stop_asking(&socket, &card, &words, "session");
    body["digest"] = json!("sha256:another");
    let (status, problem) = api.refused(Method::POST, "/api/rules", &body).await;
    assert_eq!(
        (status, &problem["code"]),
        (409, &json!("changed_since_shown"))
    );
    let mut body = stop_asking(&socket, &card, &words, "session");
    body["callId"] = json!("call_1_0");
    let (status, problem) = api.refused(Method::POST, "/api/rules", &body).await;
    assert_eq!((status, &problem["code"]), (404, &json!("no_such_call")));
    // Nothing of that was kept, and the call still waits.
    let path = format!("/api/rules?session={}", socket.session());
    assert_eq!(api.get(&path).await["rules"], json!([]));
    socket.approve(&card).await;
    socket.wait_for_answer().await;
}

#[tokio::test]
async fn a_rule_outlives_a_restart_and_ends_with_its_fork() {
    let app = TestApp::with_sandbox().await;
    let person = app.person("acme").await;
    let mut socket = TestSocket::open(app.address, &person, None).await;
    let card = asked(&app, &mut socket, "npm test").await;
    let words = json!({ "command": [{ "words": ["npm", "test"] }] });
    let body = stop_asking(&socket, &card, &words, "session");
    given(&Api::new(&app, &person), &body).await;
    socket.wait_for_answer().await;
    let session = socket.session();
    drop(socket);
    let app = app.restart().await;
    let mut socket = TestSocket::open(app.address, &person, Some(&session)).await;
    unasked(&app, &mut socket, "npm test").await;
    let path = format!("/api/sessions/{session}/fork");
    let api = Api::new(&app, &person);
    let (status, fork) = api.ask(Method::POST, &path, &json!({})).await;
    assert_eq!(status, 201, "{fork}");
    let fork = fork["id"].as_str().unwrap();
    let mut socket = TestSocket::open(app.address, &person, Some(fork)).await;
    asked(&app, &mut socket, "npm test").await;
}
