//! An entry that is sent elsewhere takes nothing along that was given for another address.

use futures::future::join_all;
use reqwest::Method;
use sepal::domain::Role;
use serde_json::{Value, json};

use super::{Api, operator};
use crate::support::{DEADLINE, TestApp, TestSocket};

const PATH: &str = "/api/mcp/mine";

fn fields(problem: &Value) -> Vec<&str> {
    let errors = problem["errors"].as_array().unwrap().iter();
    errors
        .map(|error| error["field"].as_str().unwrap())
        .collect()
}

/// Asserts what a second administrator cannot do to a program that has a secret: none of these changes
/// makes it hand the secret over.
#[tokio::test]
async fn a_program_keeps_no_secret_when_what_it_does_sees_or_reaches_changes() {
    let app = TestApp::start_with(&[("SPL_SANDBOX", "none")]).await;
    let owner = app.person_with("acme", Role::Owner).await;
    let admin = app.person_with("acme", Role::Admin).await;
    let (owner, admin) = (Api::new(&app, &owner), Api::new(&app, &admin));
    let config = json!({
        "command": "node", "args": ["server.js"], "env": { "TOKEN": "${secret:T}" }, "enabled": false,
    });
    let new = json!({ "name": "mine", "secrets": { "T": "swordfish-5" }, "config": config });
    owner.add_with(new).await;
    for patch in [
        json!({ "env": { "NODE_OPTIONS": "--import=data:text/javascript,evil" } }),
        json!({ "containerEnv": { "NODE_OPTIONS": "--import=data:text/javascript,evil" } }),
        json!({ "workspace": "rw" }),
        json!({ "network": ["evil.test"] }),
        json!({ "allowScripts": true }),
    ] {
        let (status, problem) = admin.refused(Method::PATCH, PATH, &patch).await;
        assert_eq!(status, 400, "{patch}");
        assert!(fields(&problem).contains(&"secrets.T"), "{problem}");
    }
    assert_eq!(owner.server("mine").await["config"]["workspace"], "none");
}

/// Nothing is asked of it: what is switched off is not looked at.
async fn with_server(api: &Api<'_>, url: &str) {
    let headers = json!({ "Authorization": "Bearer ${secret:T}", "X-Key": "swordfish-4" });
    api.add_with(json!({
        "name": "mine", "secrets": { "T": "swordfish-5" },
        "config": { "url": url, "headers": headers, "enabled": false },
    }))
    .await;
}

#[tokio::test]
async fn another_address_gets_no_secret_that_was_given_for_the_first() {
    let app = TestApp::start_with(&[("SPL_SANDBOX", "none")]).await;
    let owner = app.person_with("acme", Role::Owner).await;
    let admin = app.person_with("acme", Role::Admin).await;
    let stranger = app.person_with("other", Role::Owner).await;
    let (owner, admin) = (Api::new(&app, &owner), Api::new(&app, &admin));
    let stranger = Api::new(&app, &stranger);
    with_server(&owner, "https://9.9.9.9/mcp").await;
    // Another tenant's entry of that name, with a secret of that name, is none of it.
    with_server(&stranger, "https://8.8.8.8/mcp").await;
    let before = owner.server("mine").await["config"].clone();

    let evil = "https://1.1.1.1/";
    for patch in [
        json!({ "url": evil }),
        json!({ "url": evil, "headers": before["headers"] }),
        json!({ "url": "https://9.9.9.9:444/mcp" }),
        json!({ "url": "http://9.9.9.9/mcp" }),
        json!({ "url": "https://9.9.9.9/other" }),
        json!({ "headers": { "Host": "evil.test" } }),
        json!({ "url": null, "headers": { "X-Key": null }, "command": "x" }),
        json!({ "url": evil, "headers": { "X-Key": "••••" } }),
    ] {
        let (status, problem) = admin.refused(Method::PATCH, PATH, &patch).await;
        assert_eq!(
            (status, &problem["code"]),
            (400, &json!("invalid_arguments"))
        );
        assert!(fields(&problem).contains(&"secrets.T"), "{problem}");
        let is_dropped = patch["command"] == "x";
        let is_named = fields(&problem).contains(&"headers.X-Key");
        assert_eq!(is_named, !is_dropped, "{problem}");
        assert!(!problem.to_string().contains("swordfish"), "{problem}");
    }
    // A reference that is dropped now could come back later.
    let drop_both = json!({ "url": evil, "headers": { "Authorization": null, "X-Key": null } });
    let (_, problem) = admin.refused(Method::PATCH, PATH, &drop_both).await;
    assert_eq!(fields(&problem), ["secrets.T"]);
    assert_eq!(owner.server("mine").await["config"], before);

    // What does not send anything elsewhere keeps everything.
    let harmless = json!({
        "url": "https://9.9.9.9/mcp", "description": "d", "timeout": 9, "headers": before["headers"],
    });
    let (status, changed) = admin.ask(Method::PATCH, PATH, &harmless).await;
    assert_eq!(status, 200, "{changed}");
    assert_eq!(changed["config"]["headers"], before["headers"]);
    assert_eq!(changed["secrets"], json!(["T"]));

    // The remedy that the refusal names.
    let secret = format!("{PATH}/secrets/T");
    let (status, _) = admin.ask(Method::DELETE, &secret, &Value::Null).await;
    assert_eq!(status, 204);
    let again = json!({ "url": evil, "headers": { "X-Key": "another" } });
    let (status, changed) = admin.ask(Method::PATCH, PATH, &again).await;
    assert_eq!(status, 200, "{changed}");
    assert_eq!(changed["config"]["url"], evil);
    let value = json!({ "value": "swordfish-6" });
    assert_eq!(admin.ask(Method::PUT, &secret, &value).await.0, 204);
    let other = stranger.server("mine").await;
    assert_eq!(other["config"]["url"], "https://8.8.8.8/mcp");
    assert_eq!(other["secrets"], json!(["T"]));
}

#[tokio::test]
async fn a_reference_that_an_operator_wrote_by_hand_stays_at_its_address() {
    let app = TestApp::start_with(&[("SPL_SANDBOX", "none")]).await;
    let person = operator(&app, "house").await;
    let stranger = app.person_with("acme", Role::Owner).await;
    let (api, stranger) = (Api::new(&app, &person), Api::new(&app, &stranger));
    let mut socket = TestSocket::open(app.address, &person, None).await;
    with_server(&api, "http://127.0.0.1:1/mcp").await;
    let path = app.folder.path().join("data/mcp-config.json");
    let text = std::fs::read_to_string(&path).unwrap();
    let mut edited: Value = serde_json::from_str(&text).unwrap();
    edited["mcpServers"]["by-hand"] = json!({
        "url": "http://127.0.0.1:1/mcp", "enabled": false,
        "headers": { "Authorization": "Bearer ${PATH}" },
    });
    std::fs::write(&path, edited.to_string()).unwrap();
    socket
        .wait_where(|said| said.name == "mcpAdded" && said.args[0]["name"] == "by-hand")
        .await;

    let path = "/api/mcp/by-hand";
    let evil = json!({ "url": "http://127.0.0.1:2/mcp" });
    let (status, _) = stranger.refused(Method::PATCH, path, &evil).await;
    assert_eq!(status, 403);
    let given = json!({ "url": "http://127.0.0.1:2/mcp", "headers": { "Authorization": "Bearer ${PATH}" } });
    for patch in [&evil, &given] {
        let (status, problem) = api.refused(Method::PATCH, path, patch).await;
        assert_eq!(status, 400);
        assert_eq!(fields(&problem), ["headers.Authorization"], "{problem}");
    }
    let harmless = json!({ "url": "http://127.0.0.1:1/mcp", "description": "d" });
    let (status, changed) = api.ask(Method::PATCH, path, &harmless).await;
    assert_eq!(status, 200, "{changed}");
    assert_eq!(
        changed["config"]["headers"]["Authorization"],
        "Bearer ${PATH}"
    );
    let own = json!({
        "url": "http://127.0.0.1:2/mcp", "headers": { "Authorization": "Bearer ${secret:T}" },
    });
    let (status, changed) = api.ask(Method::PATCH, path, &own).await;
    assert_eq!(status, 200, "{changed}");

    // A trial under the name of a stored server does not read what was given for that.
    let trial = json!({ "name": "mine", "config": {
        "url": "http://127.0.0.1:2/mcp", "headers": { "Authorization": "Bearer ${secret:T}" },
    } });
    let (status, tried) = api.ask(Method::POST, "/api/mcp/test", &trial).await;
    assert_eq!((status, &tried["ok"]), (200, &json!(false)));
    let why = tried["error"].to_string();
    assert!(why.contains("`T` is not set"), "{tried}");
}

#[tokio::test]
async fn changes_that_come_at_once_are_all_kept() {
    let app = TestApp::start_with(&[("SPL_SANDBOX", "none")]).await;
    let owner = app.person_with("acme", Role::Owner).await;
    let api = Api::new(&app, &owner);
    with_server(&api, "https://9.9.9.9/mcp").await;
    // Each is a member of its own: a header would want those of the others again.
    let members = ["timeout", "containerMemory", "containerCpu"];
    let members = members.map(|member| (member, json!(16)));
    let lists = ["includeTools", "excludeTools"].map(|member| (member, json!(["one"])));
    let texts = ["description", "toolPrefix"].map(|member| (member, json!("one")));
    let members: Vec<_> = members.into_iter().chain(lists).chain(texts).collect();
    let patches = members.iter().map(|(member, value)| {
        let patch = json!({ *member: value });
        let api = &api;
        async move { api.ask(Method::PATCH, PATH, &patch).await }
    });
    for (status, answer) in join_all(patches).await {
        assert_eq!(status, 200, "{answer}");
    }
    let config = api.server("mine").await["config"].clone();
    let kept = members
        .iter()
        .filter(|(member, _)| !config[*member].is_null());
    assert_eq!(kept.count(), members.len(), "{config}");
}

#[tokio::test]
async fn what_is_removed_while_it_is_changed_is_gone() {
    let app = TestApp::start_with(&[("SPL_SANDBOX", "none")]).await;
    let person = operator(&app, "house").await;
    let api = Api::new(&app, &person);
    for round in 0..10 {
        let name = format!("fleeting-{round}");
        api.add(
            &name,
            json!({ "url": "https://9.9.9.9/mcp", "enabled": false }),
        )
        .await;
        let path = format!("/api/mcp/{name}");
        let change = |number: usize| {
            let body = json!({ "description": format!("d-{number}") });
            let (api, path) = (&api, &path);
            async move { api.ask(Method::PATCH, path, &body).await.0 }
        };
        let (before, after) = (join_all((0..4).map(change)), join_all((4..8).map(change)));
        let removal = async { api.ask(Method::DELETE, &path, &Value::Null).await.0 };
        let (before, removed, after) = futures::join!(before, removal, after);
        assert_eq!(removed, 200);
        for status in before.into_iter().chain(after) {
            assert!(status == 200 || status == 404, "{status}");
        }
        let file = app.folder.path().join("data/mcp-config.json");
        let text = std::fs::read_to_string(file).unwrap();
        assert!(!text.contains(&name), "it was written back: {text}");
        let (status, _) = api.refused(Method::GET, &path, &Value::Null).await;
        assert_eq!(status, 404);
    }
}

#[tokio::test]
async fn what_is_added_while_its_namesake_is_removed_keeps_its_secrets() {
    let app = TestApp::start_with(&[("SPL_SANDBOX", "none")]).await;
    let person = operator(&app, "house").await;
    let api = Api::new(&app, &person);
    with_server(&api, "https://9.9.9.9/mcp").await;
    let new = json!({
        "name": "mine", "secrets": { "T": "swordfish-6" },
        "config": { "url": "https://9.9.9.9/mcp", "enabled": false },
    });
    for _ in 0..20 {
        // Its name is free in the middle of the removal.
        let again = async { while api.ask(Method::POST, "/api/mcp/add", &new).await.0 != 201 {} };
        let removal = async { api.ask(Method::DELETE, PATH, &Value::Null).await.0 };
        let again = tokio::time::timeout(DEADLINE, again);
        let (removed, added) = futures::join!(removal, again);
        assert_eq!(removed, 200);
        added.unwrap();
        assert_eq!(api.server("mine").await["secrets"], json!(["T"]));
    }
}

/// One of its secrets is its address. A secret that is only in a header leads nowhere.
#[tokio::test]
async fn a_secret_that_is_part_of_the_address_moves_it_no_more_than_a_patch_does() {
    let app = TestApp::start_with(&[("SPL_SANDBOX", "none")]).await;
    let owner = app.person_with("acme", Role::Owner).await;
    let admin = app.person_with("acme", Role::Admin).await;
    let (owner, admin) = (Api::new(&app, &owner), Api::new(&app, &admin));
    let headers = json!({ "Authorization": "Bearer ${secret:T}", "X-Key": "swordfish-4" });
    let url = "https://${secret:HOST}:${secret:PORT}/mcp/${secret:PATH}";
    let secrets = json!({ "HOST": "9.9.9.9", "PORT": "443", "PATH": "p", "T": "swordfish-5" });
    owner
        .add_with(json!({
            "name": "mine", "secrets": secrets,
            "config": { "url": url, "headers": headers, "enabled": false },
        }))
        .await;
    let set = async |name: &str, value: &str| {
        let path = format!("{PATH}/secrets/{name}");
        let value = json!({ "value": value });
        admin.ask(Method::PUT, &path, &value).await
    };
    let remove = async |name: &str| {
        let path = format!("{PATH}/secrets/{name}");
        admin.ask(Method::DELETE, &path, &Value::Null).await.0
    };
    // The same somebody gets it: the same address spelled otherwise, another token.
    for (name, value) in [
        ("HOST", "9.9.9.9"),
        ("PATH", "p"),
        ("PORT", "0443"),
        ("T", "swordfish-6"),
    ] {
        let (status, answer) = set(name, value).await;
        assert_eq!(status, 204, "{name}: {answer}");
    }
    let everything = ["headers.X-Key", "secrets.PATH", "secrets.T"];
    for (name, value) in [
        ("HOST", "1.1.1.1"),
        ("PORT", "444"),
        ("HOST", "evil.test/"),
        ("HOST", "u@evil.test"),
    ] {
        let (status, problem) = set(name, value).await;
        assert_eq!(status, 400, "{name} {value}: {problem}");
        assert_eq!(fields(&problem), everything, "{name} {value}");
        assert!(!problem.to_string().contains("swordfish"), "{problem}");
    }
    // Another path of that host may be somebody else's.
    let (status, problem) = set("PATH", "q").await;
    assert_eq!(status, 400, "{problem}");
    assert_eq!(fields(&problem), ["headers.X-Key", "secrets.T"]);
    // Removed first, it leads nowhere; what is set then leads somewhere else all the same.
    assert_eq!(remove("HOST").await, 204);
    assert_eq!(set("HOST", "1.1.1.1").await.0, 400);
    // The remedy that the refusal names.
    assert_eq!(remove("PATH").await, 204);
    assert_eq!(remove("T").await, 204);
    assert_eq!(remove("PORT").await, 204);
    let patch = json!({ "headers": { "X-Key": null } });
    assert_eq!(admin.ask(Method::PATCH, PATH, &patch).await.0, 200);
    let again = [
        ("HOST", "1.1.1.1"),
        ("PORT", "443"),
        ("PATH", "p"),
        ("T", "new-one"),
    ];
    for (name, value) in again {
        let (status, answer) = set(name, value).await;
        assert_eq!(status, 204, "{name}: {answer}");
    }
}
