//! Who may have something installed, and who sees it.

use reqwest::Method;
use sepal::domain::Role;
use serde_json::{Value, json};

use super::registry::{Registry, node_server};
use super::{add, app_at, command, installation, until};
use crate::servers::Api;
use crate::support::TestSocket;

/// Every door, as somebody else than an admin of the tenant tries it.
const DOORS: [(&str, &str); 5] = [
    ("POST", "/api/mcp/it/installation"),
    ("DELETE", "/api/mcp/it/installation"),
    ("POST", "/api/mcp/it/installation/check"),
    ("POST", "/api/mcp/it/installation/accept"),
    ("GET", "/api/mcp/it/installation"),
];

/// Asserts S2.57.
#[tokio::test]
async fn only_admins_of_the_tenant_install_and_others_see_no_log() {
    let registry = Registry::start().await;
    registry.publish(
        "plain",
        "1.0.0",
        &node_server(&[("look", "Looks")], ""),
        json!({}),
    );
    let app = app_at(&registry.address).await;
    let owner = app.person_with("acme", Role::Owner).await;
    let member = app.person_with("acme", Role::Member).await;
    let viewer = app.person_with("acme", Role::Viewer).await;
    let stranger = app.person_with("other", Role::Owner).await;
    let mut socket = TestSocket::open(app.address, &owner, None).await;
    let api = Api::new(&app, &owner);
    let told = add(&api, &mut socket, "it", command("npx -y plain")).await;
    assert_eq!(told["state"], "ready", "{told:#}");
    assert!(!told["log"].as_array().unwrap().is_empty(), "{told:#}");

    let accept = json!({ "content": told["installed"]["content"] });
    for (method, path) in DOORS {
        let method: Method = method.parse().unwrap();
        for (person, expected) in [(&member, 403), (&viewer, 403), (&stranger, 404)] {
            let (status, body) = Api::new(&app, person)
                .ask(method.clone(), path, &accept)
                .await;
            let reads = method == Method::GET && expected == 403;
            let expected = if reads { 200 } else { expected };
            assert_eq!(status, expected, "{method} {path}: {body}");
            if reads {
                assert_eq!(body["log"], json!([]), "{body:#}");
            }
        }
    }
    let body = json!({ "name": "more", "config": command("npx -y plain") });
    for path in ["/api/mcp/add", "/api/mcp/package"] {
        let asked = Api::new(&app, &viewer).ask(Method::POST, path, &body).await;
        assert_eq!(asked.0, 403, "{path}");
    }
    assert_eq!(installation(&api, "it").await["state"], "ready");
}

/// What a member adds for themselves is installed for them alone.
#[tokio::test]
async fn a_package_of_a_persons_own_server_is_theirs_to_install() {
    let registry = Registry::start().await;
    registry.publish(
        "plain",
        "1.0.0",
        &node_server(&[("look", "Looks")], ""),
        json!({}),
    );
    let app = app_at(&registry.address).await;
    let ana = app.person_with("acme", Role::Member).await;
    let admin = app.person_with("acme", Role::Owner).await;
    let mut hers = TestSocket::open(app.address, &ana, None).await;
    let mut theirs = TestSocket::open(app.address, &admin, None).await;
    let api = Api::new(&app, &ana);
    let body = json!({ "config": command("npx -y plain") });
    let (status, preview) = api.ask(Method::POST, "/api/mcp/package", &body).await;
    assert_eq!((status, &preview["version"]), (200, &json!("1.0.0")));
    let told = add(&api, &mut hers, "it", command("npx -y plain")).await;
    assert_eq!(told["state"], "ready", "{told:#}");
    assert!(!told["log"].as_array().unwrap().is_empty(), "{told:#}");
    let accept = json!({ "content": told["installed"]["content"] });
    for (method, path) in DOORS {
        let method: Method = method.parse().unwrap();
        let (status, body) = Api::new(&app, &admin)
            .ask(method.clone(), path, &accept)
            .await;
        assert_eq!(status, 404, "{method} {path}: {body}");
    }
    app.model.will_call("look", json!({})).then_say("Looked");
    hers.say("look").await;
    let card = hers.wait_for_approval().await;
    hers.approve(&card).await;
    assert_eq!(hers.wait_for_answer().await, "Looked");
    theirs.take_in().await;
    assert_eq!(theirs.about("it"), Vec::<String>::new());
}

#[tokio::test]
async fn a_tenant_uses_no_installation_of_another() {
    let registry = Registry::start().await;
    registry.publish(
        "plain",
        "1.0.0",
        &node_server(&[("look", "Looks")], ""),
        json!({}),
    );
    let app = app_at(&registry.address).await;
    let archive = "/plain/-/plain-1.0.0.tgz";
    let fetched = || {
        registry
            .asked()
            .iter()
            .filter(|path| *path == archive)
            .count()
    };
    for (count, tenant) in [(1, "acme"), (2, "other")] {
        let owner = app.person_with(tenant, Role::Owner).await;
        let mut socket = TestSocket::open(app.address, &owner, None).await;
        let api = Api::new(&app, &owner);
        let told = add(&api, &mut socket, "it", command("npx -y plain")).await;
        assert_eq!(told["state"], "ready", "{told:#}");
        assert_eq!(fetched(), count, "each tenant has its own");
    }
}

#[tokio::test]
async fn what_an_entry_would_install_is_told_before() {
    let registry = Registry::start().await;
    let about = json!({ "description": "Looks around" });
    registry.publish("plain", "1.2.3", "", about);
    let app = app_at(&registry.address).await;
    let owner = app.person_with("acme", Role::Owner).await;
    let api = Api::new(&app, &owner);
    let ask = async |line: &str| {
        let body = json!({ "config": command(line) });
        let (status, told) = api.ask(Method::POST, "/api/mcp/package", &body).await;
        assert_eq!(status, 200, "{told}");
        told
    };
    let told = ask("npx -y plain").await;
    assert_eq!(told["package"]["registry"], "npm");
    assert_eq!(
        (&told["version"], &told["summary"]),
        (&json!("1.2.3"), &json!("Looks around"))
    );
    let told = ask("npx -y absent").await;
    assert_eq!(told["failure"]["reason"], "no_such_package", "{told}");
    assert_eq!(ask("node server.js").await["package"], Value::Null);
    let body = json!({ "config": command("npx ./local") });
    let (status, refused) = api.refused(Method::POST, "/api/mcp/package", &body).await;
    assert_eq!(status, 400, "{refused}");
}

#[tokio::test]
async fn a_server_that_is_removed_leaves_nothing_behind() {
    let registry = Registry::start().await;
    registry.publish(
        "plain",
        "1.0.0",
        &node_server(&[("look", "Looks")], ""),
        json!({}),
    );
    let app = app_at(&registry.address).await;
    let owner = app.person_with("acme", Role::Owner).await;
    let mut socket = TestSocket::open(app.address, &owner, None).await;
    let api = Api::new(&app, &owner);
    add(&api, &mut socket, "it", command("npx -y plain")).await;
    let folders = || {
        let folder = app.folder.path().join("data/workspaces");
        let found = std::fs::read_dir(folder).unwrap();
        found
            .filter(|it| it.as_ref().unwrap().path().join("node_modules").exists())
            .count()
    };
    assert_eq!(folders(), 1);
    let (status, _) = api.ask(Method::DELETE, "/api/mcp/it", &Value::Null).await;
    assert_eq!(status, 200);
    until(|| folders() == 0).await;
}
