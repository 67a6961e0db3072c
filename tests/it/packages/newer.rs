//! A newer version is installed beside the one that is used, and taken by whoever saw what it changes.

use sepal::domain::Role;
use serde_json::json;

use super::registry::{Registry, node_server};
use super::{add, app_at, command, installation, post, wait_for_end};
use crate::servers::Api;
use crate::support::TestSocket;

/// Asserts S2.57.
#[tokio::test]
async fn a_newer_version_shows_what_it_changes_before_it_is_taken() {
    let registry = Registry::start().await;
    let first = node_server(
        &[("keep", "Same"), ("edit", "Old"), ("drop", "Goes")],
        "return 'one'",
    );
    registry.publish("grows", "1.0.0", &first, json!({}));
    let app = app_at(&registry.address).await;
    let owner = app.person_with("acme", Role::Owner).await;
    let mut socket = TestSocket::open(app.address, &owner, None).await;
    let api = Api::new(&app, &owner);
    let told = add(&api, &mut socket, "it", command("npx -y grows")).await;
    assert_eq!(told["installed"]["version"], "1.0.0", "{told:#}");
    let (status, _) = post(&api, "/api/mcp/it/installation/check").await;
    assert_eq!(status, 200);
    assert_eq!(wait_for_end(&mut socket, "it").await, "ready");
    let told = installation(&api, "it").await;
    assert!(told.get("newer").is_none(), "nothing is newer: {told:#}");

    let second = node_server(
        &[("keep", "Same"), ("edit", "New"), ("add", "Comes")],
        "return 'two'",
    );
    registry.publish("grows", "1.1.0", &second, json!({}));
    post(&api, "/api/mcp/it/installation/check").await;
    assert_eq!(wait_for_end(&mut socket, "it").await, "ready");
    let told = installation(&api, "it").await;
    let newer = &told["newer"];
    assert_eq!(newer["version"], "1.1.0", "{told:#}");
    assert_eq!(newer["added"][0]["name"], "add");
    assert_eq!(newer["removed"][0]["name"], "drop");
    assert_eq!(newer["changed"][0]["before"]["description"], "Old");
    assert_eq!(newer["changed"][0]["after"]["description"], "New");
    assert_eq!(
        told["installed"]["version"], "1.0.0",
        "sessions use what they used"
    );

    let path = "/api/mcp/it/installation/accept";
    let wrong = json!({ "content": told["installed"]["content"] });
    let (status, refused) = api.refused(reqwest::Method::POST, path, &wrong).await;
    assert_eq!(
        (status, &refused["code"]),
        (409, &json!("changed_since_shown")),
        "{refused}"
    );
    let shown = json!({ "content": newer["content"] });
    let (status, taken) = api.ask(reqwest::Method::POST, path, &shown).await;
    assert_eq!(status, 200, "{taken}");
    assert_eq!(taken["installed"]["version"], "1.1.0", "{taken:#}");
    let server = api.server("it").await;
    assert_eq!(server["drift"], false, "{server:#}");
    app.model.will_call("add", json!({})).then_say("Done");
    socket.say("go").await;
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    assert_eq!(socket.wait_for("tool:output").await.text(), "two");
}
