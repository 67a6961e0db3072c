//! Who gets at the history of a workspace: its owner, and nobody else.

use reqwest::Method;
use sepal::domain::Role;
use serde_json::json;

use super::Ana;
use crate::rest::{Answer, Client};
use crate::support::TestApp;

/// Every door, with a method.
const DOORS: [(Method, &str); 5] = [
    (Method::GET, "changes"),
    (Method::GET, "changes/1"),
    (Method::GET, "changes/1/file?path=a.txt"),
    (Method::GET, "changes/1/undo"),
    (Method::POST, "changes/1/undo"),
];

/// Asserts O5.
#[tokio::test]
async fn nobody_else_sees_or_undoes_changes_by_any_door() {
    let app = TestApp::with_sandbox().await;
    let ana = Ana::open(&app, "acme").await;
    ana.put("a.txt", "ana's").await.ok(201);
    let digest = ana.plan(&json!(1)).await["digest"].clone();
    let others = [
        app.person("other").await,
        app.person("acme").await,
        app.person_with("acme", Role::Admin).await,
        app.person_with("acme", Role::Viewer).await,
    ];
    for other in &others {
        let client = Client::with_key(&app, &other.key);
        for (method, door) in DOORS {
            let request = client.request(method.clone(), &ana.at(door));
            let request = request.json(&json!({ "digest": digest }));
            let answer = Answer::of(request.send().await.unwrap()).await;
            let is_hidden = answer.status == 404 && answer.code() == "session_not_found";
            let is_forbidden = answer.status == 403 && answer.code() == "not_allowed";
            assert!(
                is_hidden || is_forbidden,
                "{method} {door}: {}",
                answer.text
            );
            assert!(!answer.text.contains("a.txt"), "{}", answer.text);
        }
    }
    let nobody = Client::nobody(&app);
    for (method, door) in DOORS {
        let request = nobody.request(method, &ana.at(door));
        let answer = Answer::of(request.send().await.unwrap()).await;
        assert_eq!(answer.status, 401, "{door}: {}", answer.text);
    }
    // Whoever the session is shared with sees none of it either.
    let shared = ana
        .client
        .post(&ana.at("shares"), json!({ "audience": "tenant" }))
        .await;
    let id = shared.ok(201)["id"].as_str().unwrap().to_owned();
    let bo = Client::with_key(&app, &others[1].key);
    for (_, door) in &DOORS[..3] {
        let by_id = bo.get(&format!("/api/sessions/{id}/{door}")).await;
        by_id.problem(404, "session_not_found");
        let refused = bo.get(&ana.at(door)).await;
        refused.problem(404, "session_not_found");
    }
    assert_eq!(ana.history().await.len(), 1);
}

/// A fork begins a history of its own, with its copy of the files as the beginning.
#[tokio::test]
async fn a_fork_has_a_history_of_its_own() {
    let app = TestApp::with_sandbox().await;
    let ana = Ana::open(&app, "acme").await;
    ana.runs(&app, "echo one > a").await;
    let forked = ana.client.post(&ana.at("fork"), json!({})).await.ok(201);
    let fork = Ana {
        person: ana.person.clone(),
        client: Client::with_key(&app, &ana.person.key),
        session: forked["id"].as_str().unwrap().to_owned(),
    };
    assert!(fork.history().await.is_empty());
    fork.runs(&app, "cat a; echo two > a").await;
    let history = fork.history().await;
    assert_eq!(history.len(), 1, "{history:?}");
    let number = &history[0]["number"];
    assert_eq!(fork.texts(number, "a").await, ["one\n", "two\n"]);
    fork.undoes(number).await;
    assert!(fork.runs(&app, "cat a").await.contains("one"));
    assert_eq!(ana.history().await.len(), 1);
}
