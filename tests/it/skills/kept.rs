//! Keeping skills: what is refused and how it is said, versions, switches, reading and taking away.

use reqwest::Method;
use sepal::domain::Role;
use serde_json::{Value, json};

use super::{document, keep, send, system, tools, turn, zipped};
use crate::rest::Client;
use crate::support::{TestApp, TestSocket};

#[tokio::test]
async fn everything_that_is_wrong_with_an_upload_is_said_with_what_helps() {
    let app =
        TestApp::start_with(&[("SPL_SKILLS_MAX_KB", "16"), ("SPL_SKILLS_MAX_KEPT", "2")]).await;
    let ana = Client::with_key(&app, &app.person("acme").await.key);
    let wrong = zipped(&[(
        "PDF/SKILL.md",
        "---\nname: PDF\nallowed-tools: '*'\n---\nbody",
    )]);
    for door in ["/api/skills", "/api/skills/check"] {
        let path = format!("{door}?scope=person");
        let refused = send(&ana, Method::POST, &path, wrong.clone()).await;
        refused.problem(400, "invalid_arguments");
        let told = refused.json();
        let at: Vec<&str> = told["problems"]
            .as_array()
            .unwrap()
            .iter()
            .map(|problem| problem["at"].as_str().unwrap())
            .collect();
        assert_eq!(at, ["name", "description", "allowed-tools"], "{told}");
        assert!(
            told["problems"][1]["remedy"]
                .as_str()
                .unwrap()
                .contains("description: …")
        );
        assert_eq!(told["errors"].as_array().unwrap().len(), 2, "{told}");
    }
    let evil = zipped(&[("SKILL.md", &document("a", "b", "c")), ("../x", "y")]);
    let refused = send(&ana, Method::POST, "/api/skills?scope=person", evil).await;
    assert!(refused.text.contains("leads out"), "{}", refused.text);
    let large = vec![b'x'; 17 * 1024];
    let refused = send(&ana, Method::POST, "/api/skills?scope=person", large).await;
    refused.problem(413, "too_large");
    for path in ["/api/skills", "/api/skills?scope=all"] {
        let file = document("a", "b", "c").into_bytes();
        let refused = send(&ana, Method::POST, path, file).await;
        refused.problem(400, "invalid_arguments");
    }
    let good = document("a", "b", "c").into_bytes();
    let checked = send(
        &ana,
        Method::POST,
        "/api/skills/check?scope=person",
        good.clone(),
    )
    .await;
    assert_eq!(checked.ok(200)["name"], "a");
    assert_eq!(ana.get("/api/skills").await.ok(200)["skills"], json!([]));
    keep(&ana, "person", good.clone()).await;
    let again = send(&ana, Method::POST, "/api/skills?scope=person", good).await;
    assert!(again.text.contains("already"), "{}", again.text);
    keep(&ana, "person", document("b", "b", "c")).await;
    let third = document("c", "b", "c").into_bytes();
    let third = send(&ana, Method::POST, "/api/skills?scope=person", third).await;
    third.problem(413, "too_large");
}

#[tokio::test]
async fn a_skill_is_written_replaced_read_and_taken_away() {
    let app = TestApp::start().await;
    let ana = Client::with_key(&app, &app.person("acme").await.key);
    let written =
        json!({ "name": "notes", "description": "Takes: \"notes\"", "body": "# Notes\n" });
    let first = ana.post("/api/skills?scope=person", written).await.ok(201);
    assert_eq!(first["description"], "Takes: \"notes\"");
    assert_eq!(
        (&first["version"], &first["enabled"]),
        (&json!(1), &json!(true))
    );
    let path = format!("/api/skills/{}", first["id"].as_str().unwrap());
    let read = ana.get(&path).await.ok(200);
    assert_eq!(read["body"], "# Notes\n");
    let packed = zipped(&[
        (
            "notes/SKILL.md",
            &document("notes", "Takes notes.", "See references/a b.md"),
        ),
        ("notes/references/a b.md", "<script>alert(1)</script>"),
    ]);
    let second = send(&ana, Method::PUT, &path, packed).await.ok(200);
    assert_eq!(
        (&second["version"], &second["id"]),
        (&json!(2), &first["id"])
    );
    assert_ne!(second["hash"], first["hash"]);
    let file = ana
        .get(&format!("{path}/files/references%2Fa%20b.md"))
        .await;
    assert_eq!(file.text, "<script>alert(1)</script>");
    assert_eq!(file.headers["content-type"], "text/plain; charset=utf-8");
    assert_eq!(file.headers["x-content-type-options"], "nosniff");
    let policy = file.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.contains("sandbox"), "{policy}");
    let missing = ana.get(&format!("{path}/files/..%2Fx")).await;
    missing.problem(404, "not_found");
    let request = ana.request(Method::GET, &format!("{path}/archive"));
    let archive = request.send().await.unwrap().bytes().await.unwrap();
    let again = send(&ana, Method::PUT, &path, archive.to_vec())
        .await
        .ok(200);
    assert_eq!(
        again["hash"], second["hash"],
        "what is handed out is what was kept"
    );
    assert_eq!(ana.delete(&path).await.status, 204);
    ana.get(&path).await.problem(404, "not_found");
    assert_eq!(ana.delete(&path).await.status, 404);
}

#[tokio::test]
async fn switches_are_told_with_the_next_request() {
    let app = TestApp::start().await;
    let person = app.person("acme").await;
    let ana = Client::with_key(&app, &person.key);
    let admin = Client::with_key(&app, &app.person_with("acme", Role::Admin).await.key);
    let mut socket = TestSocket::open(app.address, &person, None).await;
    turn(&app, &mut socket).await;
    let before = tools(&app);
    assert!(!before.contains(&"use_skill".to_owned()), "{before:?}");
    let team = keep(&admin, "tenant", document("pdf", "Team's.", "T")).await;
    let path = format!("/api/skills/{}", team["id"].as_str().unwrap());
    turn(&app, &mut socket).await;
    assert!(
        system(&app).ends_with("- `pdf` (the tenant's): Team's.\n"),
        "{}",
        system(&app)
    );
    let own = ["use_skill".to_owned(), "read_skill_file".to_owned()];
    assert_eq!(
        tools(&app),
        [before.as_slice(), &own].concat(),
        "behind all others"
    );
    let switch = async |client: &Client, body: Value| {
        let switched = client.send(Method::PATCH, &path, Some(body)).await;
        switched.ok(200)
    };
    let off = switch(&ana, json!({ "enabled": false })).await;
    assert_eq!(
        (&off["enabled"], &off["enabledForTenant"]),
        (&json!(false), &json!(true))
    );
    turn(&app, &mut socket).await;
    assert_eq!(tools(&app), before);
    switch(&ana, json!({ "enabled": true })).await;
    let off = switch(&admin, json!({ "enabledForTenant": false })).await;
    assert_eq!(off["enabled"], false);
    turn(&app, &mut socket).await;
    assert_eq!(tools(&app), before);
    switch(&admin, json!({ "enabledForTenant": true })).await;
    // A person's own has the name, and both are told.
    keep(&ana, "person", document("pdf", "Mine.", "M")).await;
    turn(&app, &mut socket).await;
    let said = system(&app);
    let line = "- `pdf` (the person's; it hides the tenant's of this name): Mine.\n";
    assert!(said.ends_with(line), "{said}");
    let listed = ana.get("/api/skills").await.ok(200);
    let hidden: Vec<&Value> = listed["skills"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|skill| skill["hidden"] == true)
        .map(|skill| &skill["scope"])
        .collect();
    assert_eq!(hidden, [&json!("tenant")]);
}

#[tokio::test]
async fn skills_can_be_switched_off_for_an_installation() {
    let app = TestApp::start_with(&[("SPL_SKILLS", "false")]).await;
    let person = app.person("acme").await;
    let ana = Client::with_key(&app, &person.key);
    keep(&ana, "person", document("pdf", "Mine.", "M")).await;
    assert_eq!(ana.get("/api/skills").await.ok(200)["enabled"], false);
    let mut socket = TestSocket::open(app.address, &person, None).await;
    turn(&app, &mut socket).await;
    assert!(!tools(&app).contains(&"use_skill".to_owned()));
}
