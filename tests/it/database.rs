//! The whole app with everything in PostgreSQL: `DATABASE_URL` alone is a complete set-up.

use serde_json::json;

use crate::support::postgres::new_database;
use crate::support::{TestApp, TestSocket};

#[tokio::test]
async fn a_session_in_postgres_is_told_asked_approved_and_there_after_a_restart() {
    let database = new_database().await;
    let app =
        TestApp::start_with(&[("DATABASE_URL", &database), ("SPL_SANDBOX", "bubblewrap")]).await;
    app.model
        .will_say("Hello Ana")
        .then_call("write_file", json!({"path": "a.txt", "content": "A"}))
        .then_say("Done");
    let ana = app.person("acme").await;
    let mut socket = TestSocket::open(app.address, &ana, None).await;
    socket.say("hello").await;
    assert_eq!(socket.wait_for_answer().await, "Hello Ana");
    socket.say("make a file").await;
    let card = socket.wait_for_approval().await;
    let session = socket.session();

    let app = app.restart().await;
    let mut again = TestSocket::open(app.address, &ana, Some(&session)).await;
    let asked = again.wait_for_approval().await;
    assert_eq!(
        (&asked["callId"], &asked["seq"]),
        (&card["callId"], &card["seq"])
    );
    again.approve(&asked).await;
    let output = again.wait_for("tool:output").await;
    assert_eq!(output.rest()["status"], "completed", "{output:?}");
    assert_eq!(again.wait_for_answer().await, "Done");

    let listed = TestApp::http()
        .get(app.url("/api/sessions"))
        .bearer_auth(&ana.key)
        .send()
        .await
        .unwrap();
    let listed: serde_json::Value = listed.json().await.unwrap();
    assert_eq!(listed["items"][0]["id"], json!(session), "{listed}");
    let file = app.folder.path().join("data/sepal.db");
    assert!(!file.exists(), "nothing lies in SQLite");
}
