//! A model that goes in circles, through the whole program; how long a turn may go on stands in
//! `turn_limit`, how often it may ask in `story`, what cannot be read in `approvals`.

use serde_json::json;

use crate::support::TestApp;

/// Asserts S3.14: the same call with the same result is not run for ever, whoever allows it; the model is
/// told so, nobody is asked, and the turn goes on.
#[tokio::test]
async fn a_model_that_makes_the_same_call_again_and_again_is_told_and_nobody_is_asked() {
    let app = TestApp::start_with(&[
        ("SPL_SANDBOX", "bubblewrap"),
        ("SPL_CHAT_MAX_SAME_CALLS", "2"),
    ])
    .await;
    let call = json!({"path": "."});
    for _ in 0..3 {
        app.model.will_call("list_files", call.clone());
    }
    app.model.then_say("There is nothing");
    let mut ana = app.socket("acme").await;
    ana.say("look").await;
    for _ in 0..2 {
        let card = ana.wait_for_approval().await;
        ana.approve(&card).await;
        let output = ana.wait_for("tool:output").await;
        assert_eq!(output.rest()["status"], "completed", "{output:?}");
    }
    let output = ana.wait_for("tool:output").await;
    assert_eq!(output.rest()["status"], "failed", "{output:?}");
    assert_eq!(ana.wait_for_answer().await, "There is nothing");
    let of = |name: &str| ana.log.iter().filter(|said| said.name == name).count();
    assert_eq!(of("tool:approval_required"), 2);
    assert_eq!(of("tool:started"), 2);
    let read = app.model.requests().pop().unwrap().body["messages"].clone();
    let last = read.as_array().unwrap().last().unwrap();
    assert_eq!(last["role"], "tool");
    let text = last["content"].as_str().unwrap();
    assert!(text.contains("made 2 times in a row"), "{text}");
    assert_eq!(text, output.text());
}
