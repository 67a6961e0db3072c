//! The same stories on every kind of provider, through the whole app.

use serde_json::json;

use crate::model_stub::{Reply, Vendor};
use crate::support::{TestApp, TestSocket};

const PLAIN: &[(&str, &str)] = &[("SPL_SANDBOX", "none")];

async fn two_files(app: &TestApp, ana: &mut TestSocket) {
    let write = |path: &str| ("write_file", json!({"path": path, "content": "x"}));
    app.model
        .will(Reply::answer(
            "Two files",
            &[write("a.txt"), write("b.txt")],
        ))
        .then_call("read_file", json!({"path": "a.txt"}))
        .then_say("Done");
    ana.say("make two files").await;
    for _ in 0..2 {
        let card = ana.wait_for_approval().await;
        ana.approve(&card).await;
    }
    for _ in 0..2 {
        let output = ana.wait_for("tool:output").await;
        assert_eq!(output.rest()["status"], "completed", "{output:?}");
    }
    let card = ana.wait_for_approval().await;
    ana.approve(&card).await;
    assert_eq!(ana.wait_for_answer().await, "Done");
}

#[tokio::test]
async fn two_calls_are_approved_run_and_answered_in_one_batch() {
    for vendor in Vendor::ALL {
        let app = TestApp::start_as(vendor, &[("SPL_SANDBOX", "bubblewrap")]).await;
        let mut ana = app.socket("acme").await;
        two_files(&app, &mut ana).await;
        assert_eq!(app.model.requests().len(), 3, "{vendor:?}");
        let usage = ana.wait_where(|said| {
            said.name == "session:usage" && said.args[0]["totalTokens"].as_u64() >= Some(54)
        });
        // 11 and 7 for each of three requests, however the vendor splits them.
        assert_eq!(usage.await.args[0]["totalTokens"], 54, "{vendor:?}");
        // The next turn sends all of it again, signed as it came.
        app.model.will_say("Yes");
        ana.say("sure?").await;
        assert_eq!(ana.wait_for_answer().await, "Yes");
    }
}

#[tokio::test]
async fn what_the_vendor_signed_survives_a_restart() {
    for vendor in [Vendor::Messages, Vendor::Gemini] {
        let app = TestApp::start_as(vendor, &[("SPL_SANDBOX", "bubblewrap")]).await;
        let person = app.person("acme").await;
        let mut ana = TestSocket::open(app.address, &person, Some("mine")).await;
        app.model.will_call("list_files", json!({}));
        ana.say("list").await;
        let card = ana.wait_for_approval().await;
        drop(ana);
        let app = app.restart().await;
        let mut ana = TestSocket::open(app.address, &person, Some("mine")).await;
        let again = ana.wait_for_approval().await;
        assert_eq!(again["callId"], card["callId"]);
        app.model.will_say("Listed");
        ana.approve(&again).await;
        assert_eq!(ana.wait_for_answer().await, "Listed", "{vendor:?}");
        let body = app.model.requests().pop().unwrap().body.to_string();
        assert!(body.contains("stub-signature"), "{vendor:?} {body}");
    }
}

#[tokio::test]
async fn a_window_that_is_full_begins_afresh() {
    for vendor in Vendor::ALL {
        let app = TestApp::start_as(vendor, PLAIN).await;
        let mut ana = app.socket("acme").await;
        app.model.will_say("one");
        ana.say("first").await;
        ana.wait_for_answer().await;
        app.model.will(vendor.overflow()).then_say("fits");
        ana.say("second").await;
        let cut = ana.wait_for("context:compacted").await;
        assert_eq!(cut.args[0]["strategy"], "fresh-context", "{vendor:?}");
        assert_eq!(ana.wait_for_answer().await, "fits");
    }
}

#[tokio::test]
async fn a_busy_vendor_is_asked_again_and_the_client_is_told() {
    for vendor in Vendor::ALL {
        let extra = [
            ("SPL_SANDBOX", "none"),
            ("SPL_LLM_RETRY_MAX_RETRIES", "2"),
            ("SPL_LLM_RETRY_INITIAL_BACKOFF", "0.01"),
        ];
        let app = TestApp::start_as(vendor, &extra).await;
        app.model
            .will(vendor.overloaded())
            .then(Reply::say("half an answer"))
            .will_cut_after(3)
            .then_say("whole");
        let mut ana = app.socket("acme").await;
        ana.say("hello").await;
        assert_eq!(ana.wait_for_answer().await, "whole", "{vendor:?}");
        assert_eq!(app.model.requests().len(), 3);
        let retries = ana
            .log
            .iter()
            .filter(|said| said.args.iter().any(|arg| arg["code"] == "model_retry"));
        assert_eq!(retries.count(), 2, "{vendor:?}: {:#?}", ana.log);
    }
}

#[tokio::test]
async fn a_wrong_key_fails_the_turn_and_not_the_session() {
    for vendor in [Vendor::Messages, Vendor::Gemini] {
        let app = TestApp::start_as(vendor, &[PLAIN[0], ("SPL_LLM_API_KEY", "sk-wrong")]).await;
        let mut ana = app.socket("acme").await;
        ana.say("hello").await;
        let error = ana.wait_for("agent:error").await;
        assert_eq!(error.rest()["code"], "provider_rejected", "{error:?}");
        assert!(error.text().contains("refused the key"), "{error:?}");
        assert_eq!(app.model.take_refusals().len(), 1);
        let name = ana.ready["provider"].as_str().unwrap();
        let expected = if vendor == Vendor::Messages {
            "claude"
        } else {
            "gemini"
        };
        assert_eq!(name, expected);
    }
}

#[tokio::test]
async fn without_a_key_every_client_is_told_so_whoever_the_vendor_is() {
    for name in ["anthropic", "claude", "gemini", "google"] {
        let extra = [
            ("SPL_SANDBOX", "none"),
            ("LLM_PROVIDER", name),
            ("OPENAI_BASE_URL", ""),
        ];
        let app = TestApp::start_with(&extra).await;
        let ana = app.person("acme").await;
        let auth = json!({ "token": ana.key });
        let refused = TestSocket::try_open(app.address, auth).await.err().unwrap();
        assert_eq!(refused, "missing_api_key", "{name}");
    }
}
