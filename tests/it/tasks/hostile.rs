//! Servers that say odd things of their tasks: each ends that call alone.

use serde_json::{Value, json};

use super::stand::{Stand, text};
use super::{building, ended};
use crate::servers::asking::calling_at;
use crate::support::TestApp;

#[tokio::test]
async fn an_absurd_id_is_not_kept() {
    for (id, words) in [
        ("x".repeat(100_000), "100000 bytes"),
        (String::new(), "empty"),
        ("a\nb".to_owned(), "control characters"),
    ] {
        let (app, stand) = (TestApp::start().await, Stand::start().await);
        stand.names_tasks(&id);
        let (mut socket, _) = calling_at(&app, &stand.url, "build").await;
        let output = ended(&mut socket, &stand).await;
        assert_eq!(output.rest()["status"], "unknown", "{output:?}");
        assert!(output.text().contains(words), "{output:?}");
        assert_eq!(stand.seen("tasks/get"), Vec::<Value>::new());
    }
}

#[tokio::test]
async fn what_is_told_of_another_task_ends_the_call() {
    let other = json!({ "taskId": "other", "status": "completed" });
    let odd = json!({ "taskId": "task-1", "status": "asleep" });
    let nothing = json!({ "hello": "there" });
    for said in [other, odd, nothing] {
        let (app, stand) = (TestApp::start().await, Stand::start().await);
        let (mut socket, _) = building(&app, &stand).await;
        stand.says_instead(said);
        let output = ended(&mut socket, &stand).await;
        assert_eq!(output.rest()["status"], "unknown", "{output:?}");
        assert!(output.text().contains("cannot be followed"), "{output:?}");
    }
}

#[tokio::test]
async fn the_result_of_another_task_is_not_taken() {
    let (app, stand) = (TestApp::start().await, Stand::start().await);
    let (mut socket, _) = building(&app, &stand).await;
    let mut result = text("somebody else's house");
    result["_meta"] = json!({ "io.modelcontextprotocol/related-task": { "taskId": "other" } });
    stand.gives(result);
    let output = ended(&mut socket, &stand).await;
    assert_eq!(output.rest()["status"], "unknown", "{output:?}");
    assert!(!output.text().contains("house"), "{output:?}");
}

#[tokio::test]
async fn an_interval_of_nothing_does_not_make_us_ask_all_the_time() {
    let (app, stand) = (TestApp::start().await, Stand::start().await);
    let begun = std::time::Instant::now();
    let (mut socket, _) = building(&app, &stand).await;
    stand.saw("tasks/get", 4).await;
    // Twice a second at most, whatever the server says.
    assert!(begun.elapsed() >= std::time::Duration::from_millis(1_500));
    stand.gives(text("a house"));
    assert_eq!(ended(&mut socket, &stand).await.text(), "a house");
}

#[tokio::test]
async fn a_result_that_is_none_fails_the_call_that_ran() {
    let (app, stand) = (TestApp::start().await, Stand::start().await);
    let (mut socket, _) = building(&app, &stand).await;
    stand.gives(json!({ "error": { "code": -32_602, "message": "expired" } }));
    let output = ended(&mut socket, &stand).await;
    assert_eq!(output.rest()["status"], "failed", "{output:?}");
    assert!(output.text().contains("does not keep it"), "{output:?}");
}
