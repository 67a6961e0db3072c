//! Who may upload bundles and see them, and what the doors say of what is wrong.

use reqwest::Method;
use sepal::domain::Role;
use serde_json::{Value, json};

use super::super::app_at;
use super::{filled, node_bundle, pack, upload, uploaded};
use crate::servers::{Api, operator};
use crate::support::TestApp;

const NOWHERE: &str = "http://127.0.0.1:9";

fn plain() -> Vec<u8> {
    node_bundle("1.0.0", &[("look", "Looks")], "return 'here'")
}

/// Asserts S2.57.
#[tokio::test]
async fn only_admins_upload_bundles_and_no_tenant_gets_at_those_of_another() {
    let app = app_at(NOWHERE).await;
    let owner = app.person_with("acme", Role::Owner).await;
    let member = app.person_with("acme", Role::Member).await;
    let viewer = app.person_with("acme", Role::Viewer).await;
    let stranger = app.person_with("other", Role::Owner).await;
    let told = uploaded(&app, &owner, plain()).await;
    let sha256 = told["sha256"].as_str().unwrap();
    let values = json!({"name": "Ada", "api_key": "swordfish"});
    let entry = filled(&Api::new(&app, &owner), &told, values.clone()).await;
    let owner_api = Api::new(&app, &owner);
    let body = json!({"name": "it", "config": entry["config"], "secrets": entry["secrets"]});
    owner_api.add_with(body.clone()).await;

    for person in [&member, &viewer] {
        let (status, refused) = upload(&app, person, plain()).await;
        assert_eq!(status, 403, "{refused}");
    }
    let replace = json!({"server": "it", "seen": sha256, "values": values});
    let doors = [
        (Method::GET, String::new(), Value::Null),
        (Method::POST, "/entry".to_owned(), json!({"values": values})),
        (Method::POST, "/replace".to_owned(), replace),
    ];
    for (method, door, body) in doors {
        let path = format!("/api/mcp-bundles/{sha256}{door}");
        for (person, expected) in [(&member, 403), (&viewer, 403), (&stranger, 404)] {
            let api = Api::new(&app, person);
            let (status, said) = api.refused(method.clone(), &path, &body).await;
            assert_eq!(status, expected, "{method} {path}: {said}");
        }
    }
    // Nor by an entry that names it.
    let api = Api::new(&app, &stranger);
    let (status, said) = api.refused(Method::POST, "/api/mcp/add", &body).await;
    assert_eq!(status, 400);
    assert!(said.to_string().contains("upload its file"), "{said}");
    let own = json!({"name": "own", "config": {"command": "node"}});
    api.add_with(own).await;
    let change = json!({"bundle": entry["config"]["bundle"]});
    let (status, _) = api.refused(Method::PATCH, "/api/mcp/own", &change).await;
    assert_eq!(status, 400);
    // What they upload themselves leads to no server of another tenant.
    let theirs = uploaded(&app, &stranger, plain()).await;
    assert_eq!(theirs["usedBy"], json!([]));
    let replace = json!({"server": "it", "seen": sha256, "values": values});
    let path = format!("/api/mcp-bundles/{sha256}/replace");
    let (status, _) = api.refused(Method::POST, &path, &replace).await;
    assert_eq!(status, 404);
    let nobody = TestApp::http()
        .post(app.url("/api/mcp-bundles"))
        .body(plain());
    assert_eq!(nobody.send().await.unwrap().status().as_u16(), 401);
}

/// Asserts S2.57.
#[tokio::test]
async fn a_secret_value_never_comes_back() {
    let app = app_at(NOWHERE).await;
    let owner = app.person_with("acme", Role::Owner).await;
    let api = Api::new(&app, &owner);
    let told = uploaded(&app, &owner, plain()).await;
    let values = json!({"name": "Ada", "api_key": "swordfish"});
    let entry = filled(&api, &told, values).await;
    let body = json!({"name": "it", "config": entry["config"], "secrets": entry["secrets"]});
    assert!(
        !entry["config"].to_string().contains("swordfish"),
        "{entry:#}"
    );
    api.add_with(body).await;
    let again = uploaded(&app, &owner, plain()).await;
    assert_eq!(again["usedBy"][0]["values"], json!({"name": "Ada"}));
    for path in [
        "/api/mcp".to_owned(),
        "/api/mcp/it".to_owned(),
        "/api/mcp/it/installation".to_owned(),
        "/api/mcp/it/logs".to_owned(),
        format!("/api/mcp-bundles/{}", told["sha256"].as_str().unwrap()),
    ] {
        let said = api.get(&path).await.to_string();
        assert!(!said.contains("swordfish"), "{path}: {said}");
    }
    assert!(!again.to_string().contains("swordfish"));
}

#[tokio::test]
async fn what_is_wrong_with_a_file_is_said_with_what_helps() {
    let app = TestApp::start_with(&[
        ("SPL_SANDBOX", "bubblewrap"),
        ("SPL_PACKAGES_BUNDLE_MB", "1"),
    ])
    .await;
    let owner = app.person_with("acme", Role::Owner).await;
    let check = async |file: Vec<u8>, expected: u16, words: &str| {
        let (status, said) = upload(&app, &owner, file).await;
        assert_eq!(status, expected, "{said}");
        assert!(said.to_string().contains(words), "{said}");
    };
    check(b"hello".to_vec(), 400, "no bundle").await;
    check(vec![0; (1 << 20) + 1], 413, "sandbox.packages.bundle_mb").await;
    check(pack(&[("a", "b")]), 400, "manifest.json").await;
    let link = pack(&[("manifest.json", "{}"), ("..", "b")]);
    check(link, 400, "leads out").await;
}

#[tokio::test]
async fn a_large_bundle_arrives_whole() {
    let app = app_at(NOWHERE).await;
    let owner = app.person_with("acme", Role::Owner).await;
    // Letters that do not pack well.
    let noise: String = (0..3_000_000_u64)
        .map(|n| {
            char::from(33 + u8::try_from(n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58).unwrap())
        })
        .collect();
    let manifest = json!({
        "manifest_version": "0.3", "name": "large", "version": "1.0.0", "description": "Large.",
        "author": {"name": "Ada"},
        "server": {"type": "node", "entry_point": "a.js", "mcp_config": {"command": "node", "args": ["a.js"]}},
    });
    let file = pack(&[("manifest.json", &manifest.to_string()), ("a.js", &noise)]);
    let told = uploaded(&app, &owner, file.clone()).await;
    assert_eq!(told["bytes"], file.len());
    assert_eq!(told["command"], json!(["node", "/packages/bundle/a.js"]));
}

#[tokio::test]
async fn a_bundle_is_its_tenants_also_where_an_installation_admin_adds_it() {
    let app = app_at(NOWHERE).await;
    let admin = operator(&app, "acme").await;
    let api = Api::new(&app, &admin);
    let told = uploaded(&app, &admin, plain()).await;
    let values = json!({"name": "Ada", "api_key": "swordfish"});
    let entry = filled(&api, &told, values).await;
    let mut body = json!({
        "name": "it", "config": entry["config"], "secrets": entry["secrets"], "scope": "installation",
    });
    let (status, said) = api.refused(Method::POST, "/api/mcp/add", &body).await;
    assert_eq!(status, 400, "{said}");
    assert!(
        said.to_string().contains("tenant that uploaded it"),
        "{said}"
    );
    body.as_object_mut().unwrap().remove("scope");
    api.add_with(body).await;
    assert_eq!(api.server("it").await["source"], "tenant");
}

#[tokio::test]
async fn where_nothing_is_installed_no_bundle_is_taken() {
    let app =
        TestApp::start_with(&[("SPL_SANDBOX", "bubblewrap"), ("SPL_PACKAGES", "false")]).await;
    let owner = app.person_with("acme", Role::Owner).await;
    let (status, said) = upload(&app, &owner, plain()).await;
    assert_eq!(status, 409, "{said}");
    assert!(
        said.to_string().contains("sandbox.packages.enabled"),
        "{said}"
    );
}
