//! Model servers that are found at their usual addresses.

use serde_json::json;

use super::{KEY, add, admin, compatible};
use crate::model_stub::{Asked, ModelStub};
use crate::rest::Client;
use crate::support::TestApp;

const PATH: &str = "/api/local-model-servers";

/// An installation that looks for `running` and `empty`, and for one that does not answer.
async fn app_beside(running: &ModelStub, empty: &ModelStub, more: &[(&str, &str)]) -> TestApp {
    let servers = format!(
        "ollama={},vllm={},lm-studio=http://127.0.0.1:9/v1",
        running.base_url(),
        empty.base_url()
    );
    let mut settings = vec![
        ("SPL_SANDBOX", "none"),
        ("SPL_LLM_LOCAL_SERVERS", servers.as_str()),
    ];
    settings.extend(more);
    TestApp::start_with(&settings).await
}

#[tokio::test]
async fn servers_that_run_on_the_machine_are_found_without_a_key_or_a_prompt() {
    let (running, empty) = (ModelStub::start().await, ModelStub::start().await);
    running.lists(json!({ "data": [{ "id": "qwen3:8b" }, { "id": "gemma3" }] }));
    empty.lists(json!({ "object": "list", "data": null }));
    let app = app_beside(&running, &empty, &[]).await;
    let root = app.installation_admin("acme").await;
    let root = Client::with_key(&app, &root.key);
    // The key of a provider with the name of a server stays with that provider.
    let mut elsewhere = compatible(&empty, KEY, &[]);
    elsewhere["scope"] = json!("installation");
    add(&root, "ollama", elsewhere).await;

    let found = root.get(PATH).await;
    let expected = json!({ "items": [
        { "name": "ollama", "baseUrl": running.base_url(), "models": ["qwen3:8b", "gemma3"] },
        { "name": "vllm", "baseUrl": empty.base_url(), "models": [] },
    ] });
    assert_eq!((found.status, found.json()), (200, expected));
    let asked = running.list_requests();
    let has_key = |asked: &Asked| asked.headers.contains_key("authorization");
    assert!(!asked.is_empty() && !asked.iter().any(has_key));
    assert_eq!(running.requests().len(), 0);
}

#[tokio::test]
async fn an_admin_of_a_tenant_finds_only_servers_that_the_tenant_may_reach() {
    let (running, empty) = (ModelStub::start().await, ModelStub::start().await);
    running.lists(json!({ "data": [{ "id": "qwen3:8b" }] }));
    let names = async |more: &[(&str, &str)]| {
        let app = app_beside(&running, &empty, more).await;
        let (_, client) = admin(&app, "acme").await;
        let found = client.get(PATH).await.json();
        let items = found["items"].as_array().unwrap();
        let names = items.iter().map(|item| item["name"].clone());
        names.collect::<Vec<_>>()
    };
    assert_eq!(names(&[]).await, Vec::<serde_json::Value>::new());
    assert_eq!(running.list_requests().len(), 0);
    let allowed = [("SPL_OUTGOING_ALLOW", "127.0.0.0/8")];
    assert_eq!(names(&allowed).await, [json!("ollama")]);
}
