//! A server is started afresh, what was seen of it in the last day, and whose its secrets are.

use std::time::Duration;

use reqwest::Method;
use sepal::domain::Role;
use serde_json::{Value, json};

use super::{Api, shell, wait_for_health};
use crate::support::{TestApp, TestSocket};

#[tokio::test]
async fn a_restart_ends_what_runs_of_the_tenant_and_the_next_call_starts_it_anew() {
    let app = TestApp::with_sandbox().await;
    let owner = app.person_with("acme", Role::Owner).await;
    let member = app.person_with("acme", Role::Member).await;
    let stranger = app.person_with("other", Role::Owner).await;
    let api = Api::new(&app, &owner);
    let mut socket = TestSocket::open(app.address, &owner, None).await;
    let call = r#"case "$line" in *hang*) echo "hanging" >&2; sleep 600 ;; *) say fine ;; esac"#;
    api.add("aux", shell(call)).await;
    wait_for_health(&mut socket, "aux", "healthy").await;
    app.model
        .will_call("echo", json!({ "how": "hang" }))
        .then_call("echo", json!({ "how": "go on" }))
        .then_say("Done");
    socket.say("go").await;
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    socket.wait_for("tool:started").await;
    let hangs = async {
        while !api
            .get("/api/mcp/aux/logs")
            .await
            .to_string()
            .contains("hanging")
        {}
    };
    tokio::time::timeout(Duration::from_secs(20), hangs)
        .await
        .expect("the call runs");

    let path = "/api/mcp/aux/restart";
    for (person, expected) in [(member, 403), (stranger, 404)] {
        let other = Api::new(&app, &person);
        let (status, _) = other.refused(Method::POST, path, &Value::Null).await;
        assert_eq!(status, expected);
    }
    let (status, restarted) = api.ask(Method::POST, path, &Value::Null).await;
    assert_eq!(status, 200, "{restarted}");
    assert_eq!(restarted["ended"], 1, "{restarted}");
    assert_eq!(restarted["ok"], true, "{restarted}");
    let output = socket.wait_for("tool:output").await;
    assert_eq!(output.rest()["status"], "unknown", "{output:?}");
    assert!(output.text().contains("restarted"), "{output:?}");
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    let output = socket.wait_for("tool:output").await;
    assert_eq!(output.text(), "fine", "{output:?}");
    assert_eq!(socket.wait_for_answer().await, "Done");
    assert_eq!(api.server("aux").await["status"], "healthy");
}

#[tokio::test]
async fn what_a_tenant_saw_of_a_server_in_the_last_day_is_counted_for_it_alone() {
    let app = TestApp::with_sandbox().await;
    let owner = app.person_with("acme", Role::Owner).await;
    let member = app.person_with("acme", Role::Member).await;
    let stranger = app.person_with("other", Role::Owner).await;
    let mut socket = TestSocket::open(app.address, &owner, None).await;
    let api = Api::new(&app, &owner);
    api.add("aux", shell("say ok")).await;
    wait_for_health(&mut socket, "aux", "healthy").await;
    let test = api.ask(Method::POST, "/api/mcp/aux/test", &Value::Null);
    assert_eq!(test.await.1["ok"], true);
    let path = "/api/mcp/aux/health";
    let seen = Api::new(&app, &member).get(path).await;
    assert_eq!(seen["status"], "healthy");
    assert_eq!(seen["stepSeconds"], 1800);
    let steps = seen["steps"].as_array().unwrap();
    let well = |step: &Value| step["well"].as_u64().unwrap();
    assert_eq!(steps.iter().map(well).sum::<u64>(), 2, "{seen}");
    assert!(steps.iter().all(|step| step["badly"] == 0), "{seen}");
    // Another program gets none of the values that were given for the first.
    let none = json!({ "command": "/none", "env": { "TOOLS": null } });
    let broken = api.ask(Method::PATCH, "/api/mcp/aux", &none);
    assert_eq!(broken.await.0, 200);
    wait_for_health(&mut socket, "aux", "unhealthy").await;
    let seen = api.get(path).await;
    let badly = |step: &Value| step["badly"].as_u64().unwrap();
    let steps = seen["steps"].as_array().unwrap();
    assert_eq!(steps.iter().map(badly).sum::<u64>(), 1, "{seen}");
    let stranger = Api::new(&app, &stranger);
    let (status, _) = stranger.refused(Method::GET, path, &Value::Null).await;
    assert_eq!(status, 404);
}

#[tokio::test]
async fn a_secret_is_for_its_own_server_only() {
    let app = TestApp::with_sandbox().await;
    let owner = app.person_with("acme", Role::Owner).await;
    let stranger = app.person_with("other", Role::Owner).await;
    let mut socket = TestSocket::open(app.address, &owner, None).await;
    let api = Api::new(&app, &owner);
    let mut config = shell("say ok");
    config["env"]["KEY"] = json!("${secret:KEY}");
    api.add_with(json!({
        "name": "mine", "config": config, "secrets": { "KEY": "swordfish-3" },
    }))
    .await;
    wait_for_health(&mut socket, "mine", "healthy").await;
    // The same reference in another server, and in a server of that name of another tenant.
    api.add("yours", config.clone()).await;
    wait_for_health(&mut socket, "yours", "unhealthy").await;
    let other = Api::new(&app, &stranger);
    other.add("mine", config).await;
    for (whose, name) in [(&api, "yours"), (&other, "mine")] {
        let path = format!("/api/mcp/{name}/test");
        let (_, tried) = whose.ask(Method::POST, &path, &Value::Null).await;
        assert_eq!(tried["ok"], false, "{tried}");
        let said = tried.to_string();
        assert!(said.contains("KEY"), "it names what is missing: {said}");
        assert!(!said.contains("swordfish"), "{said}");
        assert_eq!(whose.server(name).await["secrets"], json!([]));
    }
    let member = app.person_with("acme", Role::Member).await;
    let path = "/api/mcp/mine/secrets/KEY";
    let member = Api::new(&app, &member);
    for method in [Method::PUT, Method::DELETE] {
        let (status, _) = member.refused(method, path, &json!({ "value": "x" })).await;
        assert_eq!(status, 403);
    }
    assert_eq!(api.server("mine").await["secrets"], json!(["KEY"]));
    let (status, _) = api.ask(Method::DELETE, path, &Value::Null).await;
    assert_eq!(status, 204);
    assert_eq!(api.server("mine").await["secrets"], json!([]));
}
