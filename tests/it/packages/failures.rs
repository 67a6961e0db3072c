//! What goes wrong has its reason, its remedy and the last lines of the installer.

use reqwest::Method;
use sepal::domain::Role;
use serde_json::{Value, json};

use super::registry::{Answer, Registry, node_server};
use super::{add, app_at, command, installation, post, wait_for_end};
use crate::servers::{Api, wait_for_health};
use crate::support::{TestApp, TestSocket};

/// Adds it, and gives what is told of its installation.
async fn told(app: &TestApp, line: &str) -> Value {
    let owner = app.person_with("acme", Role::Owner).await;
    let mut socket = TestSocket::open(app.address, &owner, None).await;
    let api = Api::new(app, &owner);
    add(&api, &mut socket, "it", command(line)).await
}

#[track_caller]
fn check(told: &Value, reason: &str, words: &str) {
    assert_eq!(told["state"], "failed", "{told:#}");
    let failure = &told["failure"];
    assert_eq!(failure["reason"], reason, "{told:#}");
    assert!(
        failure["text"].as_str().unwrap().contains(words),
        "{told:#}"
    );
    assert!(!failure["remedy"].as_str().unwrap().is_empty());
    let last = told["phases"].as_array().unwrap().last().unwrap();
    assert!(last["error"].is_string(), "{told:#}");
}

/// Asserts S2.57.
#[tokio::test]
async fn a_package_or_version_that_is_not_there_is_named() {
    let registry = Registry::start().await;
    registry.publish("there", "1.2.3", "", json!({}));
    let app = app_at(&registry.address).await;
    check(
        &told(&app, "npx -y absent").await,
        "no_such_package",
        "absent",
    );
    let app = app_at(&registry.address).await;
    let version = told(&app, "npx -y there@9.9.9").await;
    check(&version, "no_such_version", "its newest is 1.2.3");
    let app = app_at(&registry.address).await;
    check(&told(&app, "uvx absent").await, "no_such_package", "absent");
}

#[tokio::test]
async fn a_version_that_its_author_took_back_is_not_installed() {
    let registry = Registry::start().await;
    let about = json!({
        "info": { "version": "1.0", "yanked": true, "yanked_reason": "broken" }, "urls": [],
    });
    registry.serve("/pypi/gone/1.0/json", Answer::Json(about));
    let app = app_at(&registry.address).await;
    check(&told(&app, "uvx gone==1.0").await, "yanked", "broken");
}

#[tokio::test]
async fn what_is_only_there_as_source_says_who_may_allow_it() {
    let registry = Registry::start().await;
    let about = json!({
        "info": { "version": "1.0" }, "urls": [{ "packagetype": "sdist" }],
    });
    registry.serve("/pypi/source/json", Answer::Json(about));
    let app = app_at(&registry.address).await;
    let told = told(&app, "uvx source").await;
    check(&told, "no_wheel", "only there as source");
    assert!(
        told["failure"]["remedy"]
            .as_str()
            .unwrap()
            .contains("allowScripts")
    );
}

#[tokio::test]
async fn an_archive_with_another_hash_is_not_used() {
    let registry = Registry::start().await;
    registry.publish("forged", "1.0.0", &node_server(&[], ""), json!({}));
    let other = Registry::start().await;
    other.publish("forged", "1.0.0", "process.exit(1)", json!({}));
    registry.serve(
        "/forged/-/forged-1.0.0.tgz",
        Answer::Bytes(b"not that".to_vec()),
    );
    let app = app_at(&registry.address).await;
    check(&told(&app, "npx -y forged").await, "wrong_hash", "npm ci");
}

#[tokio::test]
async fn a_registry_that_breaks_is_told_from_a_package_that_does() {
    let registry = Registry::start().await;
    registry.serve("/ill/latest", Answer::Status(503));
    let app = app_at(&registry.address).await;
    check(&told(&app, "npx -y ill").await, "unreachable", "503");
    let app = app_at("http://localhost:1").await;
    check(
        &told(&app, "npx -y any").await,
        "unreachable",
        "no connection",
    );
}

#[tokio::test]
async fn a_package_without_a_program_says_which_it_has() {
    let registry = Registry::start().await;
    registry.publish("library", "1.0.0", "", json!({ "bin": {} }));
    let app = app_at(&registry.address).await;
    check(
        &told(&app, "npx -y library").await,
        "no_program",
        "no program",
    );
    registry.publish(
        "tools",
        "1.0.0",
        "",
        json!({ "bin": { "a": "index.js", "b": "index.js" } }),
    );
    let app = app_at(&registry.address).await;
    check(&told(&app, "npx -y tools").await, "no_program", "a, b");
}

#[tokio::test]
async fn an_archive_without_end_is_stopped_at_its_limit() {
    let registry = Registry::start().await;
    registry.publish("endless", "1.0.0", "", json!({}));
    registry.serve("/endless/-/endless-1.0.0.tgz", Answer::Flood);
    let app = TestApp::start_with(&[
        ("SPL_SANDBOX", "bubblewrap"),
        ("SPL_NPM_REGISTRY", &registry.address),
        ("SPL_PACKAGES_SIZE_MB", "64"),
        ("SPL_PACKAGES_MEMORY_MB", "256"),
        ("SPL_PACKAGES_TIMEOUT", "30"),
    ])
    .await;
    let told = told(&app, "npx -y endless").await;
    assert_eq!(told["state"], "failed", "{told:#}");
    let reason = told["failure"]["reason"].as_str().unwrap();
    assert!(["too_large", "timed_out"].contains(&reason), "{told:#}");
}

#[tokio::test]
async fn what_takes_long_can_be_stopped_and_is_tried_again() {
    let registry = Registry::start().await;
    registry.publish(
        "slow",
        "1.0.0",
        &node_server(&[("look", "Looks")], ""),
        json!({}),
    );
    let file = "/slow/-/slow-1.0.0.tgz";
    let archive = {
        let whole = Registry::start().await;
        whole.publish(
            "slow",
            "1.0.0",
            &node_server(&[("look", "Looks")], ""),
            json!({}),
        );
        let http = TestApp::http().get(format!("{}{file}", whole.address));
        http.send().await.unwrap().bytes().await.unwrap().to_vec()
    };
    registry.serve(file, Answer::Silence);
    let app = app_at(&registry.address).await;
    let owner = app.person_with("acme", Role::Owner).await;
    let mut socket = TestSocket::open(app.address, &owner, None).await;
    let api = Api::new(&app, &owner);
    api.add("it", command("npx -y slow")).await;
    socket
        .wait_where(|said| {
            said.name == "mcp:installation" && said.args[0]["state"] == "downloading"
        })
        .await;
    // Whoever needs it meanwhile hears that.
    let path = "/api/mcp/it/installation";
    let (status, stopped) = api.ask(Method::DELETE, path, &Value::Null).await;
    assert_eq!(status, 200, "{stopped}");
    assert_eq!(stopped["state"], "failed", "{stopped:#}");
    assert_eq!(stopped["failure"]["reason"], "cancelled", "{stopped:#}");
    wait_for_end(&mut socket, "it").await;
    let (status, tested) = post(&api, "/api/mcp/it/test").await;
    assert_eq!(status, 200);
    assert_eq!(tested["ok"], false);
    let words = tested["error"].as_str().unwrap();
    assert!(words.contains("could not be installed"), "{words}");
    registry.serve(file, Answer::Bytes(archive));
    let (status, again) = post(&api, path).await;
    assert_eq!(status, 200, "{again}");
    assert_eq!(wait_for_end(&mut socket, "it").await, "ready");
    let told = installation(&api, "it").await;
    assert_eq!(told["installed"]["version"], "1.0.0", "{told:#}");
}

#[tokio::test]
async fn a_server_that_does_not_start_says_what_it_said_last() {
    let registry = Registry::start().await;
    let server = node_server(&[("look", "Looks")], "return process.env.MODE");
    let script = format!(
        "if (!process.env.MODE) {{ console.error('MODE is missing'); process.exit(1) }}\n{server}"
    );
    registry.publish("picky", "1.0.0", &script, json!({}));
    let app = app_at(&registry.address).await;
    let owner = app.person_with("acme", Role::Owner).await;
    let mut socket = TestSocket::open(app.address, &owner, None).await;
    let api = Api::new(&app, &owner);
    let told = add(&api, &mut socket, "it", command("npx -y picky")).await;
    assert_eq!(told["state"], "ready", "{told:#}");
    assert_eq!(told["failure"]["reason"], "does_not_start", "{told:#}");
    let log = told["log"].as_array().unwrap();
    assert!(log.contains(&json!("MODE is missing")), "{told:#}");

    let patch = json!({ "env": { "MODE": "plain" } });
    let (status, changed) = api.ask(Method::PATCH, "/api/mcp/it", &patch).await;
    assert_eq!(status, 200, "{changed}");
    wait_for_health(&mut socket, "it", "healthy").await;
    let told = installation(&api, "it").await;
    assert!(told.get("failure").is_none(), "{told:#}");
}
