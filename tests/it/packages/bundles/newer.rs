//! A newer file of a bundle in the place of the one that a server runs.

use reqwest::Method;
use sepal::domain::Role;
use serde_json::json;

use super::super::{app_at, installation, wait_for_end};
use super::{add_bundle, call, node_bundle, uploaded};
use crate::servers::Api;
use crate::support::TestSocket;

/// Asserts S2.57.
#[tokio::test]
async fn a_newer_bundle_takes_the_place_of_the_old_one_after_a_yes() {
    let app = app_at("http://127.0.0.1:9").await;
    let owner = app.person_with("acme", Role::Owner).await;
    let mut socket = TestSocket::open(app.address, &owner, None).await;
    let api = Api::new(&app, &owner);
    let key = "return process.argv[2] + ' ' + process.env.API_KEY.length";
    let old = node_bundle("1.0.0", &[("look", "Looks")], key);
    let values = json!({"name": "Ada", "api_key": "swordfish"});
    add_bundle(&app, &owner, &mut socket, (old, values)).await;
    let change = json!({"timeout": 9});
    assert_eq!(api.ask(Method::PATCH, "/api/mcp/it", &change).await.0, 200);
    assert_eq!(call(&app, &mut socket, "look").await, "Ada 9");

    let new = node_bundle("2.0.0", &[("look", "Looks"), ("more", "More")], key);
    let told = uploaded(&app, &owner, new).await;
    let used = &told["usedBy"][0];
    assert_eq!(
        (&used["server"], &used["version"]),
        (&json!("it"), &json!("1.0.0"))
    );
    assert_eq!(told["version"], "2.0.0");
    let seen = used["sha256"].clone();
    let path = format!(
        "/api/mcp-bundles/{}/replace",
        told["sha256"].as_str().unwrap()
    );
    // A secret of the old code is not given to the new one.
    let body = json!({"server": "it", "seen": seen, "values": {"name": "Ada"}});
    let (status, said) = api.refused(Method::POST, &path, &body).await;
    assert_eq!(status, 400, "{said}");
    assert!(said.to_string().contains("values.api_key"), "{said}");
    let values = json!({"name": "Bob", "api_key": "sesame"});
    let wrong = json!({"server": "it", "seen": told["sha256"], "values": values});
    let (status, said) = api.refused(Method::POST, &path, &wrong).await;
    assert_eq!(status, 409, "{said}");
    assert_eq!(
        installation(&api, "it").await["installed"]["version"],
        "1.0.0"
    );

    let body = json!({"server": "it", "seen": seen, "values": values});
    let (status, said) = api.ask(Method::POST, &path, &body).await;
    assert_eq!(status, 200, "{said}");
    wait_for_end(&mut socket, "it").await;
    let told = installation(&api, "it").await;
    assert_eq!(told["installed"]["version"], "2.0.0", "{told:#}");
    let config = api.server("it").await["config"].clone();
    assert_eq!(
        (&config["timeout"], &config["bundle"]["values"]["name"]),
        (&json!(9), &json!("Bob"))
    );
    assert_eq!(call(&app, &mut socket, "look").await, "Bob 6");
    // The old file has gone, and a registry has no newer one.
    let old = format!("/api/mcp-bundles/{}", seen.as_str().unwrap());
    assert_eq!(api.refused(Method::GET, &old, &json!(null)).await.0, 404);
    let (status, said) = api
        .refused(Method::POST, "/api/mcp/it/installation/check", &json!({}))
        .await;
    assert_eq!(status, 409, "{said}");
}
