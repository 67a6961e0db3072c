//! `partial-summary`: a model writes what stands for earlier turns that leave the context.

use serde_json::{Value, json};

use crate::model_stub::Reply;
use crate::rest::Client;
use crate::support::{TestApp, TestSocket};

const ENV: [(&str, &str); 3] = [
    ("SPL_SANDBOX", "none"),
    ("SPL_CHAT_MAX_MESSAGES", "6"),
    (
        "SPL_CHAT_COMPACTION_STRATEGY",
        "partial-summary, delete-old",
    ),
];

/// A server with a cheap model beside the session's own.
async fn app_with_a_cheap_model() -> TestApp {
    TestApp::start_tuned(&ENV, |settings| {
        let model = settings.llm.model.clone();
        let price = |input| sepal::config::ModelPrice {
            input,
            output: 2.0 * input,
            cached: None,
            cache_write: None,
            cache_write_long: None,
        };
        for entry in settings.llm.providers.values_mut() {
            entry.models = vec![model.clone(), "stub-small".into()];
            entry.prices = [
                (model.clone(), price(10.0)),
                ("stub-small".to_owned(), price(1.0)),
            ]
            .into();
        }
    })
    .await
}

async fn answered(app: &TestApp, ana: &mut TestSocket, text: &str) {
    app.model.will_say(&format!("re {text}"));
    ana.say(text).await;
    assert_eq!(ana.wait_for_answer().await, format!("re {text}"));
}

/// Three turns that fit; the next one has to leave the first out.
async fn three_turns(app: &TestApp, ana: &mut TestSocket) {
    for text in ["put 48 bees into hives/a.txt", "two", "three"] {
        answered(app, ana, text).await;
    }
}

/// The texts of a request.
fn texts(body: &Value) -> Vec<&str> {
    let messages = body["messages"].as_array().unwrap();
    let texts = messages.iter().map(|said| said["content"].as_str());
    texts.map(Option::unwrap_or_default).collect()
}

/// The session counts what its answers took, and what the summary took; so do the rows of what was used,
/// where both requests for it are told apart.
async fn check_totals(client: &Client, ana: &mut TestSocket, of_summary: u64) {
    let usage = ana.wait_for("session:usage").await;
    let total = usage.args[0]["totalTokens"].as_u64().unwrap();
    let answers = ana.log.iter().filter(|said| said.name == "agent:response");
    let of_answers = answers.map(|said| {
        let used = &said.rest()["usage"];
        used["inputTokens"].as_u64().unwrap() + used["outputTokens"].as_u64().unwrap()
    });
    assert_eq!(total, of_answers.sum::<u64>() + of_summary, "it is counted");
    let report = client.get("/api/usage?by=purpose&sort=name").await.ok(200);
    assert_eq!(report["totals"]["totalTokens"], total, "{report}");
    let items = report["items"].as_array().unwrap();
    let rows = items.iter().map(|item| {
        let sums = &item["requests"];
        let count = |name: &str| sums[name].as_u64().unwrap();
        let name = item["purpose"].as_str().unwrap();
        (name, count("requests"), count("totalTokens"))
    });
    let wanted = [
        ("compaction", 2, of_summary),
        ("turn", 4, total - of_summary),
    ];
    assert_eq!(rows.collect::<Vec<_>>(), wanted, "{report}");
    for item in items {
        assert_eq!(item["requests"]["parts"]["unknown"], 0, "{report}");
    }
}

/// S0.15, S4.24.
#[tokio::test]
async fn what_leaves_is_summarised_by_the_cheapest_model_and_the_summary_is_an_event() {
    let app = app_with_a_cheap_model().await;
    let person = app.person("acme").await;
    let mut ana = TestSocket::open(app.address, &person, Some("mine")).await;
    three_turns(&app, &mut ana).await;
    let whole = "They put 48 bees into hives/a.txt.";
    app.model.will_say("They spoke of bees.").then_say(whole);
    answered(&app, &mut ana, "four").await;

    let asked = app.model.requests();
    let [first, second, last] = &asked[3..] else {
        panic!("{} requests", asked.len());
    };
    for summary in [first, second] {
        assert_eq!(summary.body["model"], "stub-small");
        assert_eq!(summary.body["tools"], Value::Null);
        let texts = texts(&summary.body);
        assert!(texts[0].starts_with("You summarise"), "{texts:?}");
        assert!(
            texts[1].contains("put 48 bees into hives/a.txt"),
            "{texts:?}"
        );
        assert!(!texts[1].contains("three"), "only what leaves: {texts:?}");
    }
    let again = texts(&second.body);
    assert!(again[1].contains("It lacks: 48, hives/a.txt."), "{again:?}");
    assert_eq!(last.body["model"], "stub");
    let read = texts(&last.body);
    assert!(read[1].contains(whole), "{read:?}");
    assert!(!read.contains(&"put 48 bees into hives/a.txt"), "{read:?}");
    assert_eq!(*read.last().unwrap(), "four");

    let told = ana.log.iter().find(|said| said.name == "context:compacted");
    let told = &told.unwrap().args[0];
    assert_eq!(told["strategy"], "partial-summary", "{told}");
    assert_eq!(told["summary"], whole, "{told}");
    assert_eq!(told["left"]["messages"], 2, "{told}");
    assert_eq!(told["summarisedBy"]["model"], "stub-small", "{told}");
    assert!(
        told["summarisedBy"]["cost"].as_f64().unwrap() > 0.0,
        "{told}"
    );
    let of_summary = told["summarisedBy"]["tokens"].as_u64().unwrap();
    let client = Client::with_key(&app, &person.key);
    check_totals(&client, &mut ana, of_summary).await;

    // It stays, and another start reads it from the journal; the next summary takes it in.
    drop(ana);
    let app = app.restart().await;
    let mut ana = TestSocket::open(app.address, &person, Some("mine")).await;
    app.model.will_say("48 bees are in hives/a.txt.");
    answered(&app, &mut ana, "five").await;
    let asked = app.model.requests();
    let summary = texts(&asked[asked.len() - 2].body);
    assert!(summary[1].contains(whole), "{summary:?}");
    let read = texts(&asked.last().unwrap().body);
    assert!(read[1].contains("48 bees are in hives/a.txt."), "{read:?}");
}

/// S0.15.
#[tokio::test]
async fn a_summary_that_cannot_be_had_fails_no_turn() {
    let invented = "They put 48 bees into hives/a.txt and 99 into hives/b.txt.";
    let failing: [Vec<Reply>; 2] = [
        vec![Reply::fail(400, &[], "no")],
        vec![Reply::say(invented), Reply::say(invented)],
    ];
    for replies in failing {
        let app = TestApp::start_with(&ENV).await;
        let mut ana = app.socket("acme").await;
        three_turns(&app, &mut ana).await;
        for reply in replies {
            app.model.will(reply);
        }
        answered(&app, &mut ana, "four").await;
        let asked = app.model.requests();
        let read = texts(&asked.last().unwrap().body);
        assert_eq!(read[1..], ["two", "re two", "three", "re three", "four"]);
        let told = ana.log.iter().find(|said| said.name == "context:compacted");
        assert_eq!(told.unwrap().args[0]["strategy"], "delete-old");
        let is_said = |said: &&crate::support::Said| {
            said.name == "system:message" && said.rest()["code"] == "summary_failed"
        };
        assert_eq!(ana.log.iter().filter(is_said).count(), 1);
    }

    // One that is not allowed is not asked for.
    let none = [
        ENV[0],
        ENV[1],
        ENV[2],
        ("SPL_CHAT_SUMMARY_BUDGET_TOKENS", "0"),
    ];
    let app = TestApp::start_with(&none).await;
    let mut ana = app.socket("acme").await;
    three_turns(&app, &mut ana).await;
    answered(&app, &mut ana, "four").await;
    assert_eq!(app.model.requests().len(), 4);
    let chosen = json!({ "strategies": ["partial-summary"] });
    assert_eq!(ana.ask("session:compaction", &[chosen]).await["ok"], true);
}
