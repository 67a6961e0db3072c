//! The same stories on every kind of provider, through the whole app.

use sepal::domain::TokenUsage;
use sepal::llm::{ProviderKind, catalogue};
use serde_json::json;

use crate::model_stub::{Reply, STUB_KEY, Vendor};
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

/// Asserts S0.43, S2.13, S3.1, S3.2, S3.32, S3.40.
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
    for vendor in [Vendor::Responses, Vendor::Messages, Vendor::Gemini] {
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

/// Asserts S2.3.
#[tokio::test]
async fn a_wrong_key_fails_the_turn_and_not_the_session() {
    for vendor in [Vendor::Responses, Vendor::Messages, Vendor::Gemini] {
        let app = TestApp::start_as(vendor, &[PLAIN[0], ("SPL_LLM_API_KEY", "sk-wrong")]).await;
        let mut ana = app.socket("acme").await;
        ana.say("hello").await;
        let error = ana.wait_for("agent:error").await;
        assert_eq!(error.rest()["code"], "provider_rejected", "{error:?}");
        assert!(error.text().contains("refused the key"), "{error:?}");
        assert_eq!(app.model.take_refusals().len(), 1);
        let name = ana.ready["provider"].as_str().unwrap();
        let expected = match vendor {
            Vendor::Messages => "claude",
            Vendor::Chat | Vendor::Responses | Vendor::Gemini => vendor.provider(),
        };
        assert_eq!(name, expected);
    }
}

/// Asserts S2.22.
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

/// The model that the last request asked; Gemini's stands in the path.
fn asked_model(app: &TestApp) -> String {
    let asked = app.model.requests().pop().unwrap();
    let path = asked.uri.path().rsplit('/').next().unwrap_or_default();
    let in_path = path.split(':').next().unwrap_or_default();
    let in_body = asked.body["model"].as_str();
    in_body.unwrap_or(in_path).to_owned()
}

/// S2.14, S2.15, S2.16, S2.17.
#[tokio::test]
async fn each_vendor_has_its_default_model_and_takes_another_at_run_time() {
    for (vendor, provider, default, other) in [
        (
            Vendor::Gemini,
            "gemini",
            "gemini-2.0-flash-exp",
            "gemini-1.5-pro",
        ),
        (
            Vendor::Messages,
            "anthropic",
            "claude-sonnet-4-5-20250929",
            "claude-haiku-4-5-20251001",
        ),
        (Vendor::Chat, "openai", "gpt-4o", "gpt-4o-mini"),
        (Vendor::Responses, "openai", "gpt-4o", "gpt-4o-mini"),
    ] {
        let nothing_said = [
            PLAIN[0],
            ("LLM_PROVIDER", provider),
            ("SPL_LLM_MODEL", ""),
            ("OPENAI_API_KEY", STUB_KEY),
        ];
        let app = TestApp::start_as(vendor, &nothing_said).await;
        let person = app.person("acme").await;
        for (query, model) in [("", default), (&*format!("&model={other}"), other)] {
            let auth = json!({ "token": person.key });
            let socket = TestSocket::try_open_at(app.address, auth, query).await;
            let mut socket = socket.unwrap();
            assert_eq!(socket.ready["model"], model);
            app.model.will_say("hi");
            socket.say("hello").await;
            assert_eq!(socket.wait_for_answer().await, "hi");
            assert_eq!(asked_model(&app), model);
        }
    }
}

/// S1.8.
#[tokio::test]
async fn an_answer_of_each_vendor_has_text_calls_tokens_a_cost_and_a_time() {
    for (vendor, provider, model) in [
        (Vendor::Chat, "openai", "gpt-4o"),
        (Vendor::Responses, "openai", "gpt-4o"),
        (Vendor::Messages, "anthropic", "claude-sonnet-4-5-20250929"),
        (Vendor::Gemini, "gemini", "gemini-1.5-pro"),
    ] {
        let settings = [
            PLAIN[0],
            ("LLM_PROVIDER", provider),
            ("OPENAI_API_KEY", "sk"),
            ("SPL_LLM_MODEL", model),
        ];
        let app = TestApp::start_as(vendor, &settings).await;
        let mut ana = app.socket("acme").await;
        let call = ("no_such_tool", json!({"a": 1}));
        app.model
            .will(Reply::answer("I look", &[call]))
            .then_say("Done");
        ana.say("look").await;
        let said = ana.wait_for("agent:message").await;
        assert_eq!(said.text(), "I look", "{vendor:?}");
        let called = &said.rest()["calls"][0];
        assert_eq!(called["name"], "no_such_tool", "{vendor:?}");
        assert_eq!(called["args"], json!({"a": 1}), "{vendor:?}");
        let answer = ana.wait_for("agent:response").await;
        assert_eq!(answer.text(), "Done");
        let answer = answer.rest();
        let usage: TokenUsage = serde_json::from_value(answer["usage"].clone()).unwrap();
        assert_eq!(
            (usage.total(), usage.is_estimated),
            (18, false),
            "{vendor:?}"
        );
        let kind = ProviderKind::parse(provider).unwrap();
        let whose = sepal::llm::Vendor::of(kind, None);
        let price = catalogue::find(whose, model)
            .unwrap()
            .price(&usage)
            .unwrap();
        assert!(price.as_usd() > 0.0, "{vendor:?}");
        assert_eq!(answer["cost"], price.as_usd(), "{vendor:?}");
        assert!(answer["durationMs"].is_u64(), "{vendor:?}");
        let usage = ana.wait_for("session:usage").await;
        assert_eq!(usage.args[0]["totalTokens"], 36, "{vendor:?}");
        let counted = &usage.args[0]["context"]["counted"]["method"];
        let is_published = provider == "openai";
        let expected = if is_published { "exact" } else { "estimated" };
        assert_eq!(counted, expected, "{vendor:?}");
        let total = usage.args[0]["totalCost"].as_f64().unwrap();
        assert!(total >= 2.0 * price.as_usd(), "{vendor:?} {total}");
    }
}

/// Asserts S1.4: Anthropic says at its beginning what a request takes, and only what was said since is
/// estimated.
#[tokio::test]
async fn a_stopped_answer_counts_what_the_vendor_told_at_its_beginning() {
    let app = TestApp::start_as(Vendor::Messages, PLAIN).await;
    let mut ana = app.socket("acme").await;
    app.model.will_say("never to its end").stall();
    ana.say("12345678").await;
    ana.wait_for("agent:delta").await;
    ana.emit("agent:cancel", &[json!({})]).await;
    ana.wait_for("agent:cancelled").await;
    let usage = ana.wait_where(|said| {
        said.name == "session:usage" && said.args[0]["totalTokens"].as_u64() > Some(0)
    });
    let usage = usage.await.args[0].clone();
    let parts = &usage["context"]["parts"];
    assert_eq!(parts["input"], 4 + 2 + 5, "{usage}");
    let output = parts["output"].as_u64().unwrap();
    assert!((2..=4).contains(&output), "{usage}");
    app.model.release();
}
