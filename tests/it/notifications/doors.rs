//! Who sees and changes webhooks, and that a secret is told once.

use std::fs;
use std::path::Path;

use sepal::domain::Role;
use serde_json::json;

use super::receiver::Receiver;
use super::{ENV, waiting};
use crate::rest::Client;
use crate::support::TestApp;

#[tokio::test]
async fn only_admins_of_the_tenant_see_and_change_its_webhooks() {
    let (app, receiver) = (TestApp::start_with(ENV).await, Receiver::start().await);
    let boss = app.person_with("acme", Role::Admin).await;
    let boss = Client::with_key(&app, &boss.key);
    let url = receiver.url("/hook");
    let added = boss
        .post("/api/webhooks", json!({ "url": url }))
        .await
        .ok(201);
    let id = added["webhook"]["id"].as_str().unwrap();
    let (one, test) = (
        format!("/api/webhooks/{id}"),
        format!("/api/webhooks/{id}/test"),
    );

    for person in [
        app.person("acme").await,
        app.person_with("acme", Role::Viewer).await,
        // They administer the installation, not this tenant.
        app.installation_admin("acme").await,
        app.installation_admin("other").await,
    ] {
        let client = Client::with_key(&app, &person.key);
        client
            .get("/api/webhooks")
            .await
            .problem(403, "not_allowed");
        let add = client.post("/api/webhooks", json!({ "url": url })).await;
        add.problem(403, "not_allowed");
        client.delete(&one).await.problem(403, "not_allowed");
        let tried = client.post(&test, json!({})).await;
        tried.problem(403, "not_allowed");
    }
    let nobody = Client::nobody(&app);
    nobody
        .get("/api/webhooks")
        .await
        .problem(401, "unauthorized");
    nobody.delete(&one).await.problem(401, "unauthorized");
    let tried = nobody.post(&test, json!({})).await;
    tried.problem(401, "unauthorized");

    // Admins of another tenant have their own, and what waits here is not told there.
    let theirs = Receiver::start().await;
    let other = app.person_with("other", Role::Owner).await;
    let client = Client::with_key(&app, &other.key);
    let page = client.get("/api/webhooks").await.ok(200);
    assert_eq!(page, json!({ "items": [], "nextCursor": null }));
    client.delete(&one).await.problem(404, "not_found");
    let tried = client.post(&test, json!({})).await;
    tried.problem(404, "not_found");
    let own = json!({ "url": theirs.url("/hook") });
    client.post("/api/webhooks", own).await.ok(201);
    let ana = app.person("acme").await;
    let (here, _) = waiting(&app, &ana, 1).await;
    let (there, _) = waiting(&app, &other, 1).await;
    let told = theirs.wait_for(1).await;
    assert_eq!(told[0].json()["data"]["sessionId"], there.session());
    let told = receiver.wait_for(1).await;
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].json()["data"]["sessionId"], here.session());
    assert_eq!(theirs.messages().len(), 1);

    assert_eq!(boss.delete(&one).await.status, 204);
    boss.delete(&one).await.problem(404, "not_found");
}

#[tokio::test]
async fn a_secret_is_told_once_and_kept_sealed() {
    let app = TestApp::start_with(ENV).await;
    let boss = app.person_with("acme", Role::Admin).await;
    let boss = Client::with_key(&app, &boss.key);
    let body = json!({ "url": "https://hooks.example/1" });
    let answer = boss.post("/api/webhooks", body).await;
    let secret = answer.ok(201)["secret"].as_str().unwrap().to_owned();
    assert!(secret.starts_with("whsec_") && secret.len() > 40);
    let page = boss.get("/api/webhooks").await;
    assert!(!page.text.contains("whsec_") && !page.text.contains("secret"));
    let bytes = all_bytes(&app.folder.path().join("data"));
    let has = |word: &str| {
        bytes
            .windows(word.len())
            .any(|piece| piece == word.as_bytes())
    };
    // Whoever knows the address can post there.
    assert!(!has("hooks.example"));
    assert!(!has(&secret) && !has(secret.strip_prefix("whsec_").unwrap()));
}

fn all_bytes(folder: &Path) -> Vec<u8> {
    let files = fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path());
    let files = files.filter(|path| path.is_file());
    files.flat_map(|path| fs::read(path).unwrap()).collect()
}

#[tokio::test]
async fn wrong_addresses_and_an_eleventh_are_refused() {
    let app = TestApp::start().await;
    let boss = app.person_with("acme", Role::Admin).await;
    let boss = Client::with_key(&app, &boss.key);
    let long = format!("https://hooks.example/{}", "a".repeat(2_048));
    for wrong in [
        "",
        "hooks",
        "ftp://hooks.example/",
        "https://ana:hush@hooks.example/",
        "http://10.0.0.1/",
        "http://169.254.169.254/latest/",
        "http://[::1]/",
        &long,
    ] {
        let refused = boss.post("/api/webhooks", json!({ "url": wrong })).await;
        let refused = refused.problem(400, "invalid_arguments");
        assert_eq!(refused["errors"][0]["field"], "url", "{wrong}");
    }
    boss.post("/api/webhooks", json!({}))
        .await
        .problem(400, "invalid_arguments");
    for at in 0..10 {
        let body = json!({ "url": format!("https://hooks.example/{at}") });
        boss.post("/api/webhooks", body).await.ok(201);
    }
    let body = json!({ "url": "https://hooks.example/11" });
    let refused = boss.post("/api/webhooks", body.clone()).await;
    refused.problem(413, "too_large");
    // Each tenant has its own ten.
    let other = app.person_with("other", Role::Admin).await;
    let other = Client::with_key(&app, &other.key);
    other.post("/api/webhooks", body).await.ok(201);
}
