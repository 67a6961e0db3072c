//! Many events to one slow socket: all arrive, in order.

use serde_json::json;

use crate::support::{TestApp, TestSocket};

#[tokio::test]
async fn six_hundred_events_reach_a_socket_that_does_not_read_for_a_while() {
    let app = TestApp::start().await;
    let person = app.person("acme").await;
    let mut slow = TestSocket::open(app.address, &person, Some("burst")).await;
    let mut fast = TestSocket::open(app.address, &person, Some("burst")).await;
    // Two events a turn and one for the title; every turn is answered before the next.
    for turn in 0..200 {
        app.model
            .will_say(&format!("answer {turn} {}", "x".repeat(2_000)));
        fast.say(&format!("message {turn}")).await;
        fast.wait_for_answer().await;
    }
    let wanted = fast.shown();
    assert!(wanted.len() >= 600, "{}", wanted.len());
    while slow.shown().len() < wanted.len() {
        assert!(slow.step().await);
    }
    assert_eq!(slow.shown(), wanted);
    let answer = slow.ask("message", &[json!("still here")]).await;
    assert_eq!(answer["ok"], true);
}
