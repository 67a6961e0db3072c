//! What of a session the model is shown: limits, what falls out, and a request that does not fit.

use serde_json::{Value, json};

use crate::model_stub::Reply;
use crate::support::{TestApp, TestSocket};

const OVERFLOW: &str = r#"{"error":{"message":"too long","type":"invalid_request_error","code":"context_length_exceeded"}}"#;

/// The texts of the newest request, without the system prompt.
fn shown(app: &TestApp) -> Vec<String> {
    let asked = app.model.requests();
    let messages = asked.last().unwrap().body["messages"].as_array().unwrap();
    let told = messages.iter().filter(|said| said["role"] != "system");
    told.map(|said| said["content"].as_str().unwrap_or_default().to_owned())
        .collect()
}

async fn turn(app: &TestApp, socket: &mut TestSocket, text: &str) -> Value {
    app.model.will_say(&format!("re {text}"));
    socket.say(text).await;
    socket.wait_for_answer().await;
    socket.wait_for("session:usage").await.args[0]["context"].clone()
}

#[tokio::test]
async fn older_messages_fall_out_and_the_client_is_told() {
    let app = TestApp::start_with(&[("SPL_SANDBOX", "none"), ("SPL_CHAT_MAX_MESSAGES", "4")]).await;
    let mut ana = app.socket("acme").await;
    for text in ["one", "two"] {
        let context = turn(&app, &mut ana, text).await;
        assert_eq!(context["leftOut"], Value::Null);
    }
    let context = turn(&app, &mut ana, "three").await;
    assert_eq!(shown(&app), ["re one", "two", "re two", "three"]);
    assert_eq!(context["leftOut"]["messages"], 2);
    let second = ana.log.iter().find(|said| said.text() == "two").unwrap();
    assert_eq!(
        context["leftOut"]["fromSeq"].as_u64(),
        second.seq(),
        "the oldest message that is still read"
    );
}

#[tokio::test]
async fn what_is_stored_is_enough_and_wider_limits_bring_the_rest_back() {
    let narrow = [
        ("SPL_SANDBOX", "none"),
        ("SPL_CHAT_MAX_MESSAGES", "3"),
        ("ENABLE_CONVERSATION_COMPRESSION", "true"),
    ];
    let app = TestApp::start_with(&narrow).await;
    let person = app.person("acme").await;
    let mut ana = TestSocket::open(app.address, &person, Some("mine")).await;
    for text in ["one", "two", "three"] {
        turn(&app, &mut ana, text).await;
    }
    drop(ana);

    // The snapshot is compressed and cut; now it is read by a server that would not compress.
    let plain = [
        ("SPL_SANDBOX", "none"),
        ("SPL_CHAT_MAX_MESSAGES", "3"),
        ("ENABLE_CONVERSATION_COMPRESSION", "false"),
    ];
    let app = app.restart_with(&plain).await;
    let mut ana = TestSocket::open(app.address, &person, Some("mine")).await;
    assert_eq!(
        ana.ready["state"]["usage"]["context"]["leftOut"]["messages"],
        3
    );
    turn(&app, &mut ana, "four").await;
    assert_eq!(shown(&app), ["three", "re three", "four"]);
    drop(ana);

    let app = app
        .restart_with(&[("SPL_SANDBOX", "none"), ("SPL_CHAT_MAX_MESSAGES", "0")])
        .await;
    let mut ana = TestSocket::open(app.address, &person, Some("mine")).await;
    let context = turn(&app, &mut ana, "five").await;
    assert_eq!(
        shown(&app).first().map(String::as_str),
        Some("one"),
        "the journal has it all"
    );
    assert_eq!(context["leftOut"], Value::Null);
}

/// The choice of the window, acknowledged, and the context after it.
async fn choose(socket: &mut TestSocket, whole: bool) -> Value {
    let answer = socket
        .ask("session:window", &[json!({ "whole": whole })])
        .await;
    assert_eq!(answer["ok"], true, "{answer}");
    let changed = socket.wait_for("session:changed").await;
    assert_eq!(changed.args[0]["wholeWindow"], whole);
    socket.wait_for("session:usage").await.args[0]["context"].clone()
}

#[tokio::test]
async fn a_session_reads_the_whole_window_until_that_is_taken_back() {
    let settings = [("SPL_SANDBOX", "none"), ("SPL_CHAT_MAX_MESSAGES", "3")];
    let app = TestApp::start_with(&settings).await;
    let person = app.person("acme").await;
    let mut ana = TestSocket::open(app.address, &person, Some("mine")).await;
    for text in ["one", "two", "three"] {
        turn(&app, &mut ana, text).await;
    }
    drop(ana);
    // What fell out is not even in memory now.
    let app = app.restart_with(&settings).await;
    let mut ana = TestSocket::open(app.address, &person, Some("mine")).await;
    let mut tab = TestSocket::open(app.address, &person, Some("mine")).await;
    let before = &ana.ready["state"]["usage"]["context"];
    assert_eq!(before["leftOut"]["messages"], 3);
    assert_eq!(before["leftOut"]["wholeReadsMore"], true);
    assert_eq!(before["whole"], false);

    let context = choose(&mut ana, true).await;
    assert_eq!(context["leftOut"], Value::Null);
    assert_eq!(context["whole"], true);
    let heard = tab.wait_for("session:changed").await;
    assert_eq!(heard.args[0]["wholeWindow"], true, "all who watch are told");
    turn(&app, &mut ana, "four").await;
    assert_eq!(shown(&app).len(), 7);
    assert_eq!(shown(&app).first().map(String::as_str), Some("one"));
    drop((ana, tab));

    let app = app.restart_with(&settings).await;
    let mut ana = TestSocket::open(app.address, &person, Some("mine")).await;
    assert_eq!(ana.ready["state"]["usage"]["context"]["whole"], true);
    turn(&app, &mut ana, "five").await;
    assert_eq!(shown(&app).len(), 9, "it is durable");
    let context = choose(&mut ana, false).await;
    assert_eq!(context["leftOut"]["messages"], 7);
    turn(&app, &mut ana, "six").await;
    assert_eq!(shown(&app), ["five", "re five", "six"]);
    let refused = ana.ask("session:window", &[json!({ "whole": 1 })]).await;
    assert_eq!(refused["error"]["code"], "invalid_arguments");
}

#[tokio::test]
async fn a_request_that_does_not_fit_is_asked_again_with_fresh_context() {
    let app = TestApp::start().await;
    let mut ana = app.socket("acme").await;
    turn(&app, &mut ana, "one").await;
    app.model
        .will(Reply::fail(400, &[], OVERFLOW))
        .then_say("fits");
    ana.say("two").await;
    let cut = ana.wait_for("context:compacted").await;
    assert_eq!(cut.args[0]["strategy"], "fresh-context");
    assert_eq!(cut.args[0]["before"]["messages"], 3);
    assert_eq!(cut.args[0]["after"]["messages"], 1);
    assert_eq!(ana.wait_for_answer().await, "fits");
    assert_eq!(shown(&app), ["two"]);

    // It is an event like any other: replayed in its place, and it holds for the next turn.
    turn(&app, &mut ana, "three").await;
    assert_eq!(shown(&app), ["two", "fits", "three"]);
    let shown = ana.shown();
    let place = shown.iter().find(|(_, name)| name == "context:compacted");
    assert_eq!(place.map(|(seq, _)| *seq), cut.seq());
}

#[tokio::test]
async fn a_message_that_never_fits_fails_with_its_own_code() {
    let app = TestApp::start().await;
    app.model.will(Reply::fail(400, &[], OVERFLOW));
    let mut ana = app.socket("acme").await;
    ana.say("too long").await;
    let error = ana.wait_for("agent:error").await;
    assert_eq!(error.rest()["code"], "context_overflow");
    turn(&app, &mut ana, "short").await;
}

#[tokio::test]
async fn after_a_reset_the_model_reads_nothing_from_before_and_people_read_everything() {
    let app = TestApp::start().await;
    let person = app.person("acme").await;
    let mut ana = TestSocket::open(app.address, &person, Some("mine")).await;
    turn(&app, &mut ana, "one").await;
    let answer = ana.ask("history:reset", &[json!({})]).await;
    assert_eq!(answer["ok"], true, "{answer}");
    turn(&app, &mut ana, "two").await;
    assert_eq!(shown(&app), ["two"]);
    drop(ana);

    let app = app.restart().await;
    let mut ana = TestSocket::open(app.address, &person, Some("mine")).await;
    let transcript = ana.ready["state"]["transcript"].to_string();
    assert!(transcript.contains("re one"), "{transcript}");
    turn(&app, &mut ana, "three").await;
    assert_eq!(shown(&app), ["two", "re two", "three"]);
}

#[tokio::test]
async fn what_is_too_large_for_the_model_is_counted_before_it_is_asked() {
    let small = [("SPL_LLM_MODEL", "gpt-3.5-turbo"), ("SPL_SANDBOX", "none")];
    let app = TestApp::start_with(&small).await;
    let mut ana = app.socket("acme").await;
    ana.say(&"word ".repeat(20_000)).await;
    let error = ana.wait_for("agent:error").await;
    assert_eq!(error.rest()["code"], "context_overflow");
    assert!(error.text().contains("reads 16385"), "{}", error.text());
    assert_eq!(app.model.requests().len(), 0, "the vendor was asked");
    turn(&app, &mut ana, "short").await;
    assert_eq!(shown(&app), ["short"]);
}
