//! Assistants at the door of REST: versions, who may do what, limits, and files.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sepal::domain::Role;
use serde_json::json;

use super::{add, read, share};
use crate::rest::Client;
use crate::support::TestApp;
use crate::support::postgres::new_database;

#[tokio::test]
async fn every_change_is_a_version_that_stays() {
    versions(TestApp::start().await).await;
}

#[tokio::test]
async fn every_change_is_a_version_that_stays_in_postgres_too() {
    let database = new_database().await;
    let env = [("SPL_SANDBOX", "none"), ("DATABASE_URL", &database)];
    versions(TestApp::start_with(&env).await).await;
}

#[expect(clippy::cognitive_complexity, reason = "one story, told in order")]
async fn versions(app: TestApp) {
    let ana = app.person("acme").await;
    let client = Client::with_key(&app, &ana.key);
    let first = json!({
        "name": "Writer", "description": "Writes", "instructions": "Be brief.",
        "models": [{ "provider": "p", "model": "m" }], "effort": "low",
        "tools": [{ "server": "sandbox", "tools": ["read_file"] }], "skills": ["style"],
        "rules": [{ "effect": "deny", "server": "sandbox", "tool": "execute_command" }],
        "budget": { "limitUsd": 0.5 }, "openings": ["Write a poem"],
        "files": [{ "name": "style.txt", "data": STANDARD.encode("Short words.") }],
    });
    let id = add(&client, "person", first).await;
    let at = format!("/api/assistants/{id}");
    let one = read(&client, &id).await;
    assert_eq!((&one["version"], &one["level"]), (&json!(1), &json!("own")));
    let definition = &one["definition"];
    assert_eq!(definition["instructions"], "Be brief.");
    assert_eq!(definition["effort"], "low");
    assert_eq!(definition["rules"][0]["effect"], "deny");
    assert_eq!(definition["budget"]["isHard"], true);
    assert_eq!(definition["files"][0]["mediaType"], "text/plain");
    let file = definition["files"][0]["id"].clone();

    // The next version keeps the file by its id, and drops the rest.
    let second = json!({ "name": "Author", "files": [{ "id": file }] });
    client.put(&at, second).await.ok(200);
    let two = read(&client, &id).await;
    assert_eq!(
        (&two["version"], &two["name"]),
        (&json!(2), &json!("Author"))
    );
    assert_eq!(two["definition"]["instructions"], "");
    assert_eq!(two["definition"]["files"][0]["id"], file);
    let old = client.get(&format!("{at}/versions/1")).await.ok(200);
    assert_eq!(old["definition"], one["definition"]);
    assert_eq!(old["name"], "Writer");

    let restore = format!("{at}/versions/1/restore");
    client.post(&restore, json!({})).await.ok(200);
    let three = read(&client, &id).await;
    assert_eq!(three["definition"], one["definition"]);
    let versions = client.get(&format!("{at}/versions")).await.ok(200);
    let items = versions["items"].as_array().unwrap();
    let numbers: Vec<_> = items.iter().map(|it| it["version"].clone()).collect();
    assert_eq!(numbers, [3, 2, 1]);
    assert_eq!(items[0]["restoredFrom"], 1);
    assert_eq!(items[1].get("restoredFrom"), None);

    // All of it is there after a restart, and nothing of it after its deletion.
    let app = app.restart().await;
    let client = Client::with_key(&app, &ana.key);
    assert_eq!(read(&client, &id).await["definition"], one["definition"]);
    client
        .get(&format!("{at}/versions/4"))
        .await
        .problem(404, "not_found");
    assert_eq!(client.delete(&at).await.status, 204);
    client.get(&at).await.problem(404, "not_found");
    client
        .get(&format!("{at}/versions/1"))
        .await
        .problem(404, "not_found");
}

#[tokio::test]
async fn people_may_do_what_they_were_given_and_no_more() {
    let app = TestApp::start().await;
    let ana = app.person("acme").await;
    let ben = app.person("acme").await;
    let chief = app.person_with("acme", Role::Admin).await;
    let stranger = app.person_with("other", Role::Owner).await;
    let [ana, ben, chief, stranger] =
        [&ana, &ben, &chief, &stranger].map(|it| Client::with_key(&app, &it.key));
    let id = add(&ana, "person", json!({ "name": "Writer" })).await;
    let at = format!("/api/assistants/{id}");
    let access = format!("{at}/access");
    let name = ben.get("/api/auth/me").await.ok(200)["user"]["name"].clone();
    let change = json!({ "name": "Changed" });

    // What somebody keeps to themselves is nobody else's, not even the admin's.
    for other in [&ben, &chief, &stranger] {
        other.get(&at).await.problem(404, "not_found");
        other
            .put(&at, change.clone())
            .await
            .problem(404, "not_found");
        other.get(&access).await.problem(404, "not_found");
        let listed = other.get("/api/assistants").await.ok(200);
        assert_eq!(listed["items"], json!([]));
    }
    for (level, sees, starts, edits, owns) in [
        ("see", 200, 403, 403, 403),
        ("use", 200, 201, 403, 403),
        ("edit", 200, 201, 200, 403),
        ("own", 200, 201, 200, 200),
    ] {
        share(&ana, &id, json!([{ "name": name, "level": level }])).await;
        let start = json!({ "assistant": id });
        let did = [
            ben.get(&at).await.status,
            ben.post("/api/sessions", start).await.status,
            ben.put(&at, change.clone()).await.status,
            ben.get(&access).await.status,
        ];
        assert_eq!(did, [sees, starts, edits, owns], "{level}");
        chief.get(&at).await.problem(404, "not_found");
    }
    // Whoever made it keeps it, whatever the list says.
    ben.put(&access, json!({ "entries": [] }))
        .await
        .problem(404, "not_found");
    assert_eq!(read(&ana, &id).await["level"], "own");
    ben.get(&at).await.problem(404, "not_found");

    // What everybody sees, the admins administer.
    share(&ana, &id, json!([{ "level": "see" }])).await;
    assert_eq!(read(&ben, &id).await["level"], "see");
    assert_eq!(read(&chief, &id).await["level"], "own");
    stranger.get(&at).await.problem(404, "not_found");

    // Nobody outside of the team is given anything.
    let other = stranger.get("/api/auth/me").await.ok(200)["user"]["id"].clone();
    let entries = json!({ "entries": [{ "person": other, "level": "use" }] });
    ana.put(&access, entries)
        .await
        .problem(400, "invalid_arguments");
    assert_eq!(read(&ben, &id).await["level"], "see");

    // The team's is made by admins, for everybody to use.
    ben.post("/api/assistants?scope=team", change)
        .await
        .problem(403, "not_allowed");
    let teams = add(&chief, "team", json!({ "name": "Team" })).await;
    assert_eq!(read(&ben, &teams).await["level"], "use");
    stranger
        .get(&format!("/api/assistants/{teams}"))
        .await
        .problem(404, "not_found");
}

#[tokio::test]
async fn what_cannot_be_an_assistant_is_refused_with_the_field() {
    let app = TestApp::start().await;
    let ana = app.person("acme").await;
    let client = Client::with_key(&app, &ana.key);
    let text = |bytes: usize| STANDARD.encode("x".repeat(bytes));
    for (body, status, field) in [
        (json!({}), 400, "name"),
        (json!({ "name": " " }), 400, "name"),
        (
            json!({ "name": "a", "instructions": "x".repeat(40_000) }),
            400,
            "instructions",
        ),
        (
            json!({ "name": "a", "openings": vec!["x"; 9] }),
            400,
            "openings",
        ),
        (
            json!({ "name": "a", "rules": [{ "effect": "allow" }] }),
            400,
            "rules[0].effect",
        ),
        (
            json!({ "name": "a", "files": [{ "name": "a.txt" }] }),
            400,
            "files",
        ),
        (
            json!({ "name": "a", "files": [{ "name": "a.txt", "data": "?" }] }),
            400,
            "files",
        ),
        (
            json!({ "name": "a", "files": [{ "id": "0".repeat(64) }] }),
            400,
            "files",
        ),
        (
            json!({ "name": "a", "files": [{ "name": "a.txt", "data": text(4_200_000) }] }),
            413,
            "files",
        ),
    ] {
        let answer = client.post("/api/assistants?scope=person", body).await;
        let problem = answer.ok(status);
        assert_eq!(problem["errors"][0]["field"], field, "{problem}");
    }
    let listed = client.get("/api/assistants").await.ok(200);
    assert_eq!(listed["items"], json!([]));
}

#[tokio::test]
async fn an_export_becomes_an_assistant_of_another_tenant() {
    let app = TestApp::start().await;
    let [ana, other] = [app.person("acme").await, app.person("other").await];
    let [ana, other] = [&ana, &other].map(|it| Client::with_key(&app, &it.key));
    let body = json!({
        "name": "Writer", "instructions": "Be brief.", "openings": ["Hello"],
        "rules": [{ "effect": "ask", "tool": "write_file" }],
        "files": [{ "name": "style.txt", "data": STANDARD.encode("Short words.") }],
    });
    let id = add(&ana, "person", body).await;
    let path = format!("/api/assistants/{id}/export");
    other.get(&path).await.problem(404, "not_found");
    let file = ana.get(&path).await;
    assert!(
        file.header("content-disposition")
            .contains("assistant.json")
    );
    let document = file.ok(200);
    assert_eq!(document["format"], "sepal-assistant/1");
    let copy = add(&other, "person", document).await;
    assert_ne!(copy, id);
    let (before, after) = (read(&ana, &id).await, read(&other, &copy).await);
    assert_eq!(before["definition"], after["definition"]);
}

/// Of two people who change the same version, one is told.
#[tokio::test]
async fn one_of_two_changes_of_the_same_version_is_refused() {
    let app = TestApp::start().await;
    let ana = app.person("acme").await;
    let client = Client::with_key(&app, &ana.key);
    let id = add(&client, "person", json!({ "name": "Writer" })).await;
    let at = format!("/api/assistants/{id}");
    let tag = client.get(&at).await.header("etag").to_owned();
    let change = async |name: &str| {
        let request = client.request(reqwest::Method::PUT, &at);
        let request = request.header("if-match", &tag);
        let sent = request.json(&json!({ "name": name })).send().await;
        sent.unwrap().status().as_u16()
    };
    let (one, two) = tokio::join!(change("A"), change("B"));
    let mut statuses = [one, two];
    statuses.sort_unstable();
    assert!(matches!(statuses, [200, 409 | 412]), "{statuses:?}");
    assert_eq!(read(&client, &id).await["version"], 2);
}
