//! Several providers at once: who may have which, and which one answers.

mod calibration;
mod compaction;
mod defaults;
mod faults;
mod interfaces;
mod keys;
mod local;
mod registry;
mod switching;
mod vendor_compaction;

use sepal::domain::Role;
use serde_json::{Value, json};

use crate::model_stub::ModelStub;
use crate::rest::Client;
use crate::support::{Person, TestApp};

/// A key as people paste it.
const KEY: &str = "sk-very-secret-4711";

/// A server whose tenants may name this machine: the stand-ins run here.
async fn open_app() -> TestApp {
    TestApp::start_with(&[
        ("SPL_SANDBOX", "none"),
        ("SPL_OUTGOING_ALLOW", "127.0.0.0/8"),
    ])
    .await
}

/// An admin of a tenant, with a client.
async fn admin(app: &TestApp, tenant: &str) -> (Person, Client) {
    let person = app.person_with(tenant, Role::Admin).await;
    let client = Client::with_key(app, &person.key);
    (person, client)
}

/// What a stand-in is as a provider.
fn compatible(model: &ModelStub, key: &str, models: &[&str]) -> Value {
    json!({
        "kind": "openai-compatible", "baseUrl": model.base_url(), "apiKey": key, "models": models,
    })
}

/// Adds one and sees that it is new.
async fn add(client: &Client, id: &str, body: Value) -> Value {
    let answer = client.put(&format!("/api/providers/{id}"), body).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    answer.json()
}

/// The ids of the providers that somebody sees.
async fn seen(client: &Client) -> Vec<String> {
    let list = client.get("/api/providers").await.json();
    let items = list["items"].as_array().unwrap();
    let ids = items.iter().map(|item| item["id"].as_str().unwrap());
    ids.map(ToOwned::to_owned).collect()
}
