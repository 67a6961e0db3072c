//! Who gets at the files of a session: its owner, and nobody else.

use reqwest::Method;
use sepal::domain::Role;

use super::Ana;
use crate::rest::{Answer, Client};
use crate::support::TestApp;

/// Every door to files, with a method.
const DOORS: [(Method, &str); 6] = [
    (Method::GET, "files"),
    (Method::GET, "files?path=data"),
    (Method::GET, "files/a.txt"),
    (Method::GET, "files-archive"),
    (Method::PUT, "files/a.txt?overwrite=true"),
    (Method::DELETE, "files/a.txt"),
];

/// Asserts O5.
#[tokio::test]
async fn nobody_else_gets_at_files_by_any_door() {
    let app = TestApp::with_sandbox().await;
    let ana = Ana::open(&app, "acme").await;
    ana.put("a.txt", "ana's").await.ok(201);
    let others = [
        app.person("other").await,
        app.person("acme").await,
        app.person_with("acme", Role::Admin).await,
        app.person_with("acme", Role::Viewer).await,
    ];
    for other in &others {
        let client = Client::with_key(&app, &other.key);
        for (method, door) in DOORS {
            let request = client.request(method.clone(), &ana.at(door)).body("eve's");
            let answer = Answer::of(request.send().await.unwrap()).await;
            let is_hidden = answer.status == 404 && answer.code() == "session_not_found";
            let is_forbidden = answer.status == 403 && answer.code() == "not_allowed";
            assert!(
                is_hidden || is_forbidden,
                "{method} {door}: {}",
                answer.text
            );
            assert!(!answer.text.contains("ana"), "{}", answer.text);
        }
    }
    let nobody = Client::nobody(&app);
    for (method, door) in DOORS {
        let request = nobody.request(method, &ana.at(door));
        let answer = Answer::of(request.send().await.unwrap()).await;
        assert_eq!(answer.status, 401, "{door}: {}", answer.text);
    }
    assert_eq!(ana.get("files/a.txt", &[]).await.bytes, b"ana's");
}

#[tokio::test]
async fn whoever_a_session_is_shared_with_sees_no_files() {
    let app = TestApp::with_sandbox().await;
    let ana = Ana::open(&app, "acme").await;
    ana.put("a.txt", "ana's").await.ok(201);
    let body = serde_json::json!({ "audience": "tenant" });
    let shared = ana.client.post(&ana.at("shares"), body).await;
    assert_eq!(shared.status, 201, "{}", shared.text);
    let bo = app.person("acme").await;
    let bo = Client::with_key(&app, &bo.key);
    bo.get(&ana.at("files"))
        .await
        .problem(404, "session_not_found");
    let id = shared.json()["id"].as_str().unwrap().to_owned();
    let by_id = bo.get(&format!("/api/sessions/{id}/files")).await;
    by_id.problem(404, "session_not_found");
    let page = bo.get(&format!("/api/shared/{id}")).await;
    assert!(!page.text.contains("a.txt"), "{}", page.text);
}

/// A person whose role no longer lets them act still reads what is theirs.
#[tokio::test]
async fn a_viewer_reads_and_changes_nothing() {
    let app = TestApp::with_sandbox().await;
    let viewer = app.person_with("acme", Role::Viewer).await;
    let client = Client::with_key(&app, &viewer.key);
    let id = Ana::open(&app, "acme").await.session;
    for (method, door) in [(Method::PUT, "files/a"), (Method::DELETE, "files/a")] {
        let path = format!("/api/sessions/{id}/{door}");
        let answer = client
            .request(method, &path)
            .body("x")
            .send()
            .await
            .unwrap();
        Answer::of(answer).await.problem(403, "not_allowed");
    }
    let unknown = client.get(&format!("/api/sessions/{id}/files")).await;
    unknown.problem(404, "session_not_found");
}
