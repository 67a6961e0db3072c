//! Compaction that the vendor makes itself: asked for by setting, sent back as it came, shown and counted.

use serde_json::{Value, json};

use crate::model_stub::{Reply, Vendor};
use crate::support::{TestApp, TestSocket};

const SUMMARY: &str = "They counted to two, and both were glad of it.";
const TOLD: &[(&str, &str)] = &[
    ("SPL_SANDBOX", "none"),
    ("SPL_LLM_COMPACTION", "vendor"),
    ("SPL_LLM_COMPACTION_THRESHOLD", "60000"),
];
const BOTH: [Vendor; 2] = [Vendor::Messages, Vendor::Responses];

fn last_body(app: &TestApp) -> Value {
    app.model.requests().pop().unwrap().body
}

/// The conversation of a request, and the block of the vendor in it, if there is one.
fn conversation(body: &Value) -> (String, Option<Value>) {
    let messages = if body["input"].is_array() {
        &body["input"]
    } else {
        &body["messages"]
    };
    let items = messages.as_array().unwrap().iter();
    let items = items.flat_map(|item| match item["content"].as_array() {
        Some(content) if item["role"].is_string() => content.clone(),
        _ => vec![item.clone()],
    });
    let block = items.clone().rfind(|item| item["type"] == "compaction");
    (messages.to_string(), block)
}

async fn answered(app: &TestApp, ana: &mut TestSocket, question: &str, reply: Reply) {
    app.model.will(reply);
    ana.say(question).await;
    ana.wait_for_answer().await;
}

/// What is told of a compaction, and what the session used then.
async fn compacted(app: &TestApp, ana: &mut TestSocket) -> (Value, Value) {
    answered(app, ana, "question one", Reply::say("answer one")).await;
    let reply = Reply::say("answer two").compacting(SUMMARY, 61_000);
    app.model.will(reply);
    ana.say("question two").await;
    let told = ana.wait_for("context:compacted").await.args[0].clone();
    ana.wait_for_answer().await;
    let most = |said: &crate::support::Said| {
        said.name == "session:usage" && said.args[0]["totalTokens"].as_u64() >= Some(36)
    };
    let usage = ana.wait_where(most).await.args[0].clone();
    (told, usage)
}

/// Asserts S0.11: the first request asks for it; the one after goes on from the block, which is what it was, and
/// everything before is left out; Sepal itself counts from the journal again.
#[tokio::test]
async fn a_vendor_compacts_by_setting_and_sepal_counts_again_without_it() {
    for vendor in BOTH {
        let app = TestApp::start_as(vendor, TOLD).await;
        let person = app.person("acme").await;
        let mut ana = TestSocket::open(app.address, &person, Some("mine")).await;
        let (told, usage) = compacted(&app, &mut ana).await;
        let is_readable = vendor == Vendor::Messages;
        assert_eq!(told["strategy"], "vendor", "{told}");
        assert_eq!(told["summary"].as_str(), is_readable.then_some(SUMMARY));
        let sizes = [&told["before"]["tokens"], &told["after"]["tokens"]].map(Value::as_u64);
        let expected = if is_readable {
            [Some(61_000), Some(11)]
        } else {
            [None, None]
        };
        assert_eq!(sizes, expected, "{told}");
        // To the token: two answers of 18, and what Anthropic counts apart.
        let apart = if is_readable { 61_300 } else { 0 };
        assert_eq!(usage["totalTokens"], 36 + apart, "{vendor:?} {usage}");
        assert_eq!(
            usage["context"]["tokens"].as_u64().unwrap_or(18),
            18,
            "{usage}"
        );

        answered(&app, &mut ana, "question three", Reply::say("answer three")).await;
        let (said, block) = conversation(&last_body(&app));
        assert_eq!(block, Some(vendor.compaction(SUMMARY)), "{said}");
        assert!(
            !said.contains("one") && !said.contains("question two"),
            "{said}"
        );
        assert!(
            said.contains("answer two") && said.contains("question three"),
            "{said}"
        );
        drop(ana);

        let app = app.restart_with(&[TOLD[0]]).await;
        let mut ana = TestSocket::open(app.address, &person, Some("mine")).await;
        answered(&app, &mut ana, "question four", Reply::say("answer four")).await;
        let body = last_body(&app);
        assert_eq!(body.get("context_management"), None);
        let (said, block) = conversation(&body);
        assert_eq!(block, None, "{said}");
        for word in ["one", "question two", "answer three", "question four"] {
            assert!(said.contains(word), "{word}: {said}");
        }
    }
}

/// A vendor that does not take its own block back is asked once more with the conversation itself.
#[tokio::test]
async fn a_block_that_is_refused_costs_no_turn() {
    for vendor in BOTH {
        let app = TestApp::start_as(vendor, TOLD).await;
        let mut ana = app.socket("acme").await;
        compacted(&app, &mut ana).await;
        let words = "messages.3: this block cannot be read";
        let body =
            json!({"type": "error", "error": {"type": "invalid_request_error", "message": words}});
        app.model.will_fail(400, &[], &body.to_string());
        answered(&app, &mut ana, "question three", Reply::say("answer three")).await;
        let (said, block) = conversation(&last_body(&app));
        assert_eq!(block, None, "{vendor:?} {said}");
        assert!(said.contains("question one"), "{vendor:?} {said}");
        let is_told = |said: &crate::support::Said| {
            said.args
                .iter()
                .any(|it| it["code"] == "compaction_refused")
        };
        assert!(ana.log.iter().any(is_told), "{:?}", ana.log);
    }
}

/// A model that takes no compaction is asked without it, and people are told once.
#[tokio::test]
async fn a_model_that_does_not_compact_is_asked_without_it() {
    for vendor in BOTH {
        let app = TestApp::start_as(vendor, TOLD).await;
        let mut ana = app.socket("acme").await;
        let words = "context_management: Extra inputs are not permitted";
        let body =
            json!({"type": "error", "error": {"type": "invalid_request_error", "message": words}});
        app.model.will_fail(400, &[], &body.to_string());
        answered(&app, &mut ana, "question one", Reply::say("answer one")).await;
        answered(&app, &mut ana, "question two", Reply::say("answer two")).await;
        let requests = app.model.requests();
        let asked = requests
            .iter()
            .map(|it| it.body.get("context_management").is_some());
        assert_eq!(
            asked.collect::<Vec<_>>(),
            [true, false, false],
            "{vendor:?}"
        );
        let is_told = |said: &&crate::support::Said| {
            said.args
                .iter()
                .any(|it| it["code"] == "parameter_left_out")
        };
        assert_eq!(ana.log.iter().filter(is_told).count(), 1, "{vendor:?}");
    }
}

/// Where the vendor did not compact in time, Sepal makes room, and what the vendor compacted before is void.
#[tokio::test]
async fn sepal_is_the_net_where_a_request_would_not_fit() {
    for vendor in BOTH {
        let app = TestApp::start_as(vendor, TOLD).await;
        let mut ana = app.socket("acme").await;
        compacted(&app, &mut ana).await;
        app.model.will(vendor.overflow()).then_say("fits");
        ana.say("question three").await;
        assert_eq!(ana.wait_for_answer().await, "fits");
        let cuts = ana
            .log
            .iter()
            .filter(|said| said.name == "context:compacted");
        assert!(cuts.count() >= 2, "{:?}", ana.log);
        let (said, _) = conversation(&last_body(&app));
        assert!(said.contains("question three"), "{said}");
    }
}
