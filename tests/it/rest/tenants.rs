//! Tenants, as administrators of the installation manage them.

use reqwest::Method;
use sepal::domain::Role;
use serde_json::{Value, json};

use super::{Answer, Client};
use crate::support::{DEADLINE, TestApp, TestSocket};

async fn change(client: &Client, id: &str, body: Value) -> Answer {
    let path = format!("/api/tenants/{id}");
    client.send(Method::PATCH, &path, Some(body)).await
}

async fn remove(client: &Client, id: &str, name: &str) -> Answer {
    let path = format!("/api/tenants/{id}");
    let body = json!({ "name": name });
    client.send(Method::DELETE, &path, Some(body)).await
}

async fn listed(client: &Client, name: &str) -> Value {
    let list = client.get("/api/tenants").await.ok(200);
    let mut items = list["items"].as_array().unwrap().iter();
    let found = items.find(|tenant| tenant["name"] == name);
    found.cloned().unwrap_or_default()
}

#[tokio::test]
async fn a_tenant_is_made_suspended_and_deleted_by_who_administers_the_installation() {
    let app = TestApp::start().await;
    let admin = Client::with_key(&app, &app.installation_admin("house").await.key);
    let ana = app.person_with("acme", Role::Owner).await;
    let owner = Client::with_key(&app, &ana.key);
    owner.get("/api/tenants").await.problem(403, "not_allowed");
    let refused = owner.post("/api/tenants", json!({ "name": "mine" })).await;
    refused.problem(403, "not_allowed");

    let made = admin
        .post("/api/tenants", json!({ "name": "globex" }))
        .await;
    let made = made.ok(201);
    assert_eq!(made["tenant"]["state"], "active");
    assert_eq!(made["tenant"]["people"], 0);
    let again = admin
        .post("/api/tenants", json!({ "name": "globex" }))
        .await;
    again.problem(409, "invalid_arguments");
    let link = made["ownerLink"].as_str().unwrap();
    let secret = link.split_once("/join#").unwrap().1;
    let body = json!({ "secret": secret, "name": "Gus", "password": "correct horse battery" });
    let entered = Client::nobody(&app)
        .post("/api/auth/invitation", body)
        .await
        .ok(200);
    assert_eq!(
        (&entered["user"]["role"], &entered["tenant"]["name"]),
        (&json!("owner"), &json!("globex"))
    );

    // Suspended, its people are out; their things stay.
    let id = listed(&admin, "acme").await["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let mut socket = TestSocket::open(app.address, &ana, None).await;
    let suspended = change(&admin, &id, json!({ "suspended": true })).await;
    assert_eq!(suspended.ok(200)["state"], "suspended");
    socket.wait_for_end().await;
    owner
        .get("/api/sessions")
        .await
        .problem(401, "unauthorized");
    let resumed = change(&admin, &id, json!({ "suspended": false })).await;
    assert_eq!(resumed.ok(200)["state"], "active");
    owner.get("/api/sessions").await.ok(200);

    // An owner has no say about other tenants, nor about the existence of their own.
    let house = listed(&admin, "house").await["id"]
        .as_str()
        .unwrap()
        .to_owned();
    for tenant in [&house, &id] {
        let refused = change(&owner, tenant, json!({ "suspended": true })).await;
        refused.problem(404, "not_found");
        remove(&owner, tenant, "house")
            .await
            .problem(404, "not_found");
    }
    // Nobody locks themselves out, and a deletion says what it deletes.
    let own = change(&admin, &house, json!({ "suspended": true })).await;
    own.problem(403, "not_allowed");
    remove(&admin, &house, "house")
        .await
        .problem(403, "not_allowed");
    remove(&admin, &id, "acne")
        .await
        .problem(400, "invalid_arguments");
    assert_eq!(remove(&admin, &id, "acme").await.status, 202);
    let gone = async { while listed(&admin, "acme").await != Value::Null {} };
    tokio::time::timeout(DEADLINE, gone).await.unwrap();
}

#[tokio::test]
async fn tenants_are_found_and_sorted_by_the_server() {
    let app = TestApp::start().await;
    let admin = Client::with_key(&app, &app.installation_admin("house").await.key);
    for name in ["acme", "globex", "globex-2"] {
        let made = admin.post("/api/tenants", json!({ "name": name })).await;
        made.ok(201);
    }
    for _ in 0..2 {
        app.person_with("globex", Role::Member).await;
    }
    let id = listed(&admin, "acme").await["id"].clone();
    change(&admin, id.as_str().unwrap(), json!({ "suspended": true })).await;
    let names = async |query: &str| -> Vec<String> {
        let list = admin.get(&format!("/api/tenants?{query}")).await.ok(200);
        let items = list["items"].as_array().unwrap().iter();
        items
            .map(|tenant| tenant["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names("search=GLOBEX").await, ["globex", "globex-2"]);
    assert_eq!(names("search=globex&sort=created").await.len(), 2);
    assert_eq!(names("state=suspended").await, ["acme"]);
    assert_eq!(names("sort=people&limit=1").await, ["globex"]);
    let wrong = admin.get("/api/tenants?sort=size").await;
    wrong.problem(400, "invalid_arguments");
}
