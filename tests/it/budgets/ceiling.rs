//! Near a limit an answer is asked to be as short as what is left covers, rather than refused.

use serde_json::{Value, json};

use super::{PRICED, cost, counted, counted_until, own, set, standing};
use crate::rest::Client;
use crate::support::{Said, TestApp, TestSocket};

/// A session that has said hello, and has that much left of its own budget.
async fn with_left(app: &TestApp, left_usd: f64) -> (Client, TestSocket) {
    let ana = app.person("acme").await;
    let client = Client::with_key(app, &ana.key);
    let mut socket = TestSocket::open(app.address, &ana, None).await;
    app.model.will(counted("Hello.", (100, 2)));
    socket.say("hello").await;
    socket.wait_for_answer().await;
    let limit = cost(&client).await + left_usd;
    set(&client, own(&socket.session(), limit)).await;
    (client, socket)
}

/// The longest answer that the newest request asks for.
fn longest(app: &TestApp) -> Value {
    let asked = app.model.requests().pop().unwrap().body;
    asked["max_tokens"].clone()
}

fn is_told(said: &Said) -> bool {
    said.name == "system:message" && said.rest()["code"] == "answer_limited"
}

/// Asserts S1.12: what is left is used, the provider is told where it ends, and people read why.
#[tokio::test]
async fn near_a_limit_the_answer_is_as_short_as_what_is_left_covers() {
    let app = TestApp::start_with(&PRICED).await;
    let (client, mut socket) = with_left(&app, 0.004).await;
    assert_eq!(longest(&app), Value::Null, "nobody wanted a limit before");
    let session = socket.session();
    let text = "word ".repeat(100);
    app.model.will(counted_until("length", &text, (100, 350)));
    socket.say("tell me everything").await;
    let answer = socket.wait_for("agent:response").await;
    let tokens = longest(&app).as_u64().unwrap();
    assert!((300..400).contains(&tokens), "{tokens}");
    let told = socket.log.iter().find(|said| is_told(said)).unwrap();
    let most = format!("this answer may take {tokens} tokens at most");
    assert!(told.text().starts_with(&most), "{}", told.text());
    assert_eq!(answer.text(), text);
    assert_eq!(answer.rest()["finish"], "budget_exhausted", "{answer:?}");
    let detail = answer.rest()["stopDetail"].as_str().unwrap();
    let words = format!("covered {tokens} tokens of this answer and no more; you can raise it");
    assert!(detail.ends_with(&words), "{detail}");
    let stands = standing(&client, &format!("?session={session}"), "own").await;
    assert!(stands["leftUsd"].as_f64().unwrap() >= 0.0, "{stands}");
    assert_eq!(stands["usedUsd"], cost(&client).await, "{stands}");

    set(&client, own(&session, 5.0)).await;
    app.model.will(counted("And so on.", (200, 10)));
    socket.say("go on").await;
    assert_eq!(socket.wait_for_answer().await, "And so on.");
    assert_eq!(longest(&app), Value::Null);
}

/// Asserts S1.12: an answer that is short by itself is none that a budget ended, and one of which nothing
/// but thoughts was left says so.
#[tokio::test]
async fn a_short_answer_is_whole_and_one_of_thoughts_alone_has_failed() {
    let app = TestApp::start_with(&PRICED).await;
    let (client, mut socket) = with_left(&app, 0.004).await;
    app.model.will(counted("Well.", (100, 2)));
    socket.say("and you?").await;
    let answer = socket.wait_for("agent:response").await;
    assert_eq!(answer.rest()["finish"], "stop", "{answer:?}");
    assert!(longest(&app).is_u64());

    app.model.will(counted_until("length", "", (100, 200)));
    socket.say("think hard").await;
    let error = socket.wait_for("agent:error").await;
    assert_eq!(error.rest()["code"], "budget_exhausted", "{error:?}");
    assert_eq!(error.rest()["retryable"], true, "{error:?}");
    assert!(error.text().contains("tokens of this answer"), "{error:?}");
    // What was thought is counted: 0.00052 USD, 0.00027 before, 0.00225 now.
    let sum = cost(&client).await;
    assert!((sum - 0.002_79).abs() < 1e-9, "{sum}");
    let of_session = format!("?session={}", socket.session());
    let stands = standing(&client, &of_session, "own").await;
    assert_eq!(stands["usedUsd"], sum, "{stands}");
}

/// A setting that is shorter than what is left stays.
#[tokio::test]
async fn a_shorter_limit_of_the_settings_holds() {
    let env = [&PRICED[..], &[("SPL_LLM_MAX_TOKENS", "200")]].concat();
    let app = TestApp::start_with(&env).await;
    let (_, mut socket) = with_left(&app, 0.004).await;
    app.model
        .will(counted_until("length", "Well, ", (100, 200)));
    socket.say("tell me everything").await;
    let answer = socket.wait_for("agent:response").await;
    assert_eq!(longest(&app), json!(200));
    assert_eq!(answer.rest()["finish"], "length", "{answer:?}");
    assert!(!socket.log.iter().any(is_told));
}
