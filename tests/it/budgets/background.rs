//! What a session asks beside its turns, summaries and titles, is paid for like them.

use serde_json::{Value, json};

use super::{PRICED, all_back, cost, counted, own, set, standing};
use crate::model_stub::Reply;
use crate::rest::Client;
use crate::support::{DEADLINE, Log, Said, TestApp, TestSocket};
use crate::usage::report_where;

/// What leaves the context is summarised by a model.
const SUMMARIES: [(&str, &str); 2] = [
    ("SPL_CHAT_MAX_MESSAGES", "6"),
    (
        "SPL_CHAT_COMPACTION_STRATEGY",
        "partial-summary, delete-old",
    ),
];

/// Three turns that fit, the first of them a long one; the next one has to leave it out.
async fn three_turns(app: &TestApp) -> (Client, TestSocket) {
    let ana = app.person("acme").await;
    let client = Client::with_key(app, &ana.key);
    let mut socket = TestSocket::open(app.address, &ana, None).await;
    let long = "word ".repeat(5_000);
    for text in [long.as_str(), "two", "three"] {
        app.model.will(counted("well", (5_050, 5)));
        socket.say(text).await;
        assert_eq!(socket.wait_for_answer().await, "well");
    }
    (client, socket)
}

/// So much is left for the session from now on.
async fn leave(client: &Client, socket: &TestSocket, usd: f64) -> f64 {
    let limit = cost(client).await + usd;
    set(client, own(&socket.session(), limit)).await;
    limit
}

fn of_code<'s>(socket: &'s TestSocket, code: &str) -> Option<&'s Said> {
    let mut said = socket.log.iter();
    said.find(|said| said.name == "system:message" && said.rest()["code"] == code)
}

/// Requests and cost of each purpose, and whether all of it was counted by the provider.
fn by_purpose(report: &Value) -> Vec<(&str, u64, u64)> {
    let items = report["items"].as_array().unwrap().iter();
    let rows = items.map(|item| {
        let sums = &item["requests"];
        let count = |name: &str| sums[name].as_u64().unwrap();
        let purpose = item["purpose"].as_str().unwrap();
        (purpose, count("requests"), count("estimatedRequests"))
    });
    rows.collect()
}

const PURPOSES: &str = "/api/usage?by=purpose&sort=name";

/// Asserts S0.15 and S1.12.
#[tokio::test]
async fn a_summary_that_no_budget_covers_is_left_out_and_the_turn_goes_on() {
    let app = TestApp::start_with(&[&PRICED[..], &SUMMARIES].concat()).await;
    let (client, mut socket) = three_turns(&app).await;
    // A summary takes some 0.015 USD, the turn without what leaves some 0.002.
    leave(&client, &socket, 0.006).await;
    app.model.will(counted("four it is", (100, 5)));
    socket.say("four").await;
    assert_eq!(socket.wait_for_answer().await, "four it is");
    assert_eq!(app.model.requests().len(), 4, "no summary is asked for");
    let told = of_code(&socket, "summary_failed").unwrap();
    assert!(
        told.text().contains("that you set for this session"),
        "{}",
        told.text()
    );
    let left = socket
        .log
        .iter()
        .find(|said| said.name == "context:compacted");
    assert_eq!(left.unwrap().args[0]["strategy"], "delete-old");
    let report = client.get(PURPOSES).await.ok(200);
    assert_eq!(by_purpose(&report), [("turn", 4, 0)], "{report}");
}

/// Asserts S0.15 and S1.12.
#[tokio::test]
async fn a_summary_holds_what_it_may_cost_while_it_is_written_and_counts_what_it_did() {
    let app = TestApp::start_with(&[&PRICED[..], &SUMMARIES].concat()).await;
    let (client, mut socket) = three_turns(&app).await;
    leave(&client, &socket, 1.0).await;
    app.model
        .will(Reply::say("They said a word many times."))
        .stall()
        .then(counted("four it is", (100, 5)));
    socket.say("four").await;
    app.model.stalled().await;
    let of_session = format!("?session={}", socket.session());
    let held = standing(&client, &of_session, "own").await;
    assert!(held["reservedUsd"].as_f64().unwrap() > 0.013, "{held}");
    app.model.release();
    assert_eq!(socket.wait_for_answer().await, "four it is");
    let stands = all_back(&client, &of_session, "own").await;
    assert_eq!(stands["usedUsd"], cost(&client).await, "{stands}");
    let report = client.get(PURPOSES).await.ok(200);
    let purposes: Vec<_> = by_purpose(&report).iter().map(|row| row.0).collect();
    assert_eq!(purposes, ["compaction", "turn"], "{report}");
}

/// Asserts S0.15 and S1.12: one that does not come to an end is cut, and the turn has what is left.
#[tokio::test]
async fn a_summary_without_an_end_is_cut_where_the_budget_ends() {
    let app = TestApp::start_with(&[&PRICED[..], &SUMMARIES].concat()).await;
    let (client, mut socket) = three_turns(&app).await;
    let limit = leave(&client, &socket, 0.03).await;
    let endless = counted(&"word ".repeat(10_000), (5_050, 10_000));
    app.model
        .will(endless)
        .then(counted("four it is", (100, 5)));
    socket.say("four").await;
    assert_eq!(socket.wait_for_answer().await, "four it is");
    assert!(of_code(&socket, "summary_failed").is_some());
    assert_eq!(app.model.requests().len(), 5);
    let of_session = format!("?session={}", socket.session());
    let stands = all_back(&client, &of_session, "own").await;
    let used = stands["usedUsd"].as_f64().unwrap();
    assert!(used > limit - 0.015 && used <= limit, "{used} of {limit}");
    let report = client.get(PURPOSES).await.ok(200);
    let rows = by_purpose(&report);
    assert_eq!(rows, [("compaction", 1, 1), ("turn", 4, 0)], "{report}");
}

/// A model gives the titles; each session may cost two cents.
const TITLES: [(&str, &str); 2] = [
    ("SPL_CHAT_TITLES", "model"),
    ("SPL_CHAT_SESSION_BUDGET", "0.02"),
];

#[tokio::test]
async fn a_title_that_no_budget_covers_is_not_asked_for_and_the_first_words_stay() {
    let log = Log::start();
    let app = TestApp::start_with(&[&PRICED[..], &TITLES].concat()).await;
    let ana = app.person("acme").await;
    let client = Client::with_key(&app, &ana.key);
    let mut socket = TestSocket::open(app.address, &ana, None).await;
    // 0.01905 USD; a title takes some 0.0015.
    app.model.will(counted("With a needle", (100, 1_880)));
    socket.say("how do I mend a sail").await;
    assert_eq!(socket.wait_for_answer().await, "With a needle");
    let path = format!("/api/sessions/{}", socket.session());
    let refused = async {
        loop {
            let row = client.get(&path).await.ok(200);
            if log.text().contains("No budget covers a title") {
                return row;
            }
        }
    };
    let row = tokio::time::timeout(DEADLINE, refused).await.unwrap();
    assert_eq!(row["title"], "how do I mend a sail");
    assert_eq!(app.model.requests().len(), 1);
    socket.take_in().await;
    assert!(!socket.log.iter().any(|said| said.name == "agent:error"));
}

#[tokio::test]
async fn a_title_holds_what_it_may_cost_and_counts_what_it_did() {
    let app = TestApp::start_with(&[&PRICED[..], &TITLES].concat()).await;
    let ana = app.person("acme").await;
    let client = Client::with_key(&app, &ana.key);
    let mut socket = TestSocket::open(app.address, &ana, None).await;
    app.model.will(counted("With a needle", (100, 10)));
    app.model.then(counted("Mending a sail", (150, 5))).stall();
    socket.say("how do I mend a sail").await;
    assert_eq!(socket.wait_for_answer().await, "With a needle");
    app.model.stalled().await;
    let of_session = format!("?session={}", socket.session());
    let held = standing(&client, &of_session, "session").await;
    assert!(held["reservedUsd"].as_f64().unwrap() > 0.001, "{held}");
    app.model.release();
    let report = report_where(&client, PURPOSES, |report| {
        report["items"].as_array().unwrap().len() == 2
    })
    .await;
    let rows = by_purpose(&report);
    assert_eq!(rows, [("title", 1, 0), ("turn", 1, 0)], "{report}");
    let stands = all_back(&client, &of_session, "session").await;
    assert_eq!(stands["usedUsd"], json!(0.000_775), "{stands}");
}
