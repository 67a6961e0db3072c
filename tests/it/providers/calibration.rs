//! What a provider's reports taught about counting tokens outlives a restart, and stays in its tenant.

use std::path::Path;

use bytes::Bytes;
use serde_json::{Value, json};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};

use super::{KEY, add, admin, compatible, open_app};
use crate::model_stub::{ModelStub, Reply};
use crate::rest::Client;
use crate::support::{TestApp, TestSocket};

/// An answer whose provider says that it read 300 tokens.
fn reports() -> Reply {
    let chunks = [
        json!({"choices": [{"index": 0, "delta": {"role": "assistant", "content": "fine"}}]}),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}),
        json!({"choices": [], "usage": {"prompt_tokens": 300, "completion_tokens": 1}}),
    ];
    let frames = chunks.iter().map(|chunk| format!("data: {chunk}\n\n"));
    let frames = frames.chain(["data: [DONE]\n\n".to_owned()]);
    Reply::raw("text/event-stream", frames.map(Bytes::from).collect())
}

/// How texts are counted for a model of the tenant's own provider.
async fn method(client: &Client) -> Value {
    let asked = json!({ "text": "some words", "provider": "own" });
    let counted = client.post("/api/models/m/tokens", asked).await;
    counted.ok(200)["method"].clone()
}

async fn ask_three_times(app: &TestApp, person: &crate::support::Person, own: &ModelStub) {
    let mut socket = TestSocket::open(app.address, person, None).await;
    let choice = [json!({ "model": "m", "provider": "own" })];
    assert_eq!(socket.ask("session:model", &choice).await["ok"], true);
    for _ in 0..3 {
        own.will(reports());
        socket.say(&"word ".repeat(200)).await;
        assert_eq!(socket.wait_for_answer().await, "fine");
    }
}

async fn damage(data: &Path) {
    let file = SqliteConnectOptions::new().filename(data.join("sepal.db"));
    let pool = SqlitePool::connect_with(file).await.unwrap();
    let sql = "UPDATE calibrations SET learned = '{\"m\":'";
    let done = sqlx::query(sql).execute(&pool).await.unwrap();
    assert_eq!(done.rows_affected(), 1, "one address of one tenant");
    pool.close().await;
}

/// Asserts S3.10.
#[tokio::test]
async fn what_reports_taught_outlives_a_restart_and_stays_in_its_tenant() {
    let app = open_app().await;
    let own = ModelStub::start().await;
    let (ana, of_ana) = admin(&app, "acme").await;
    let (eve, of_eve) = admin(&app, "other").await;
    for client in [&of_ana, &of_eve] {
        add(client, "own", compatible(&own, KEY, &["m"])).await;
    }
    assert_eq!(method(&of_ana).await, "estimated");
    ask_three_times(&app, &ana, &own).await;
    assert_eq!(method(&of_ana).await, "calibrated");

    let app = app.restart().await;
    assert_eq!(
        method(&Client::with_key(&app, &ana.key)).await,
        "calibrated"
    );
    // The same address and model, of another tenant.
    assert_eq!(method(&Client::with_key(&app, &eve.key)).await, "estimated");

    // A record that cannot be read teaches nothing, and holds nothing up.
    let app = app.restart_after(damage).await;
    assert_eq!(method(&Client::with_key(&app, &ana.key)).await, "estimated");
    ask_three_times(&app, &ana, &own).await;
    let app = app.restart().await;
    assert_eq!(
        method(&Client::with_key(&app, &ana.key)).await,
        "calibrated"
    );
}
