//! Budgets: what a turn, a session, a person and a tenant may spend, at the doors of the page and of REST.

mod background;
mod burst;
mod ceiling;
mod doors;
mod groups;
mod sampling;
mod two_gateways;

use bytes::Bytes;
use sepal::domain::Role;
use serde_json::{Value, json};

use crate::model_stub::Reply;
use crate::rest::Client;
use crate::support::{DEADLINE, Person, Said, TestApp, TestSocket};

/// A server whose model has a price: 2.50 USD for a million tokens in, 10 USD out.
const PRICED: [(&str, &str); 5] = [
    ("SPL_SANDBOX", "none"),
    ("LLM_PROVIDER", "openai"),
    ("OPENAI_API_KEY", "sk"),
    ("SPL_LLM_MODEL", "gpt-4o"),
    ("SPL_LLM_RETRY_MAX_RETRIES", "0"),
];

/// An answer of which the provider counts so many tokens.
fn counted(text: &str, usage: (u64, u64)) -> Reply {
    counted_until("stop", text, usage)
}

/// An answer that ends for that reason.
fn counted_until(finish: &str, text: &str, (input, output): (u64, u64)) -> Reply {
    let pieces: Vec<&str> = text.split_inclusive(' ').collect();
    let choice = |delta: Value, reason: Value| {
        json!({"object": "chat.completion.chunk", "usage": null,
            "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})
    };
    let mut chunks: Vec<Value> = pieces
        .iter()
        .map(|piece| choice(json!({"content": piece}), Value::Null))
        .collect();
    chunks.push(choice(json!({}), json!(finish)));
    chunks.push(json!({"choices": [], "usage": {"prompt_tokens": input,
        "completion_tokens": output, "total_tokens": input + output}}));
    let frames = chunks.iter().map(|chunk| format!("data: {chunk}\n\n"));
    let frames = frames.chain(["data: [DONE]\n\n".to_owned()]);
    Reply::raw("text/event-stream", frames.map(Bytes::from).collect())
}

/// A call after which the model is asked again.
fn counted_call(input: u64) -> Reply {
    let call = json!({"index": 0, "id": "call_1", "type": "function",
        "function": {"name": "no_such_tool", "arguments": "{}"}});
    let choice = |delta: Value, reason: Value| {
        json!({"object": "chat.completion.chunk", "usage": null,
            "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})
    };
    let chunks = [
        choice(json!({"tool_calls": [call]}), Value::Null),
        choice(json!({}), json!("tool_calls")),
        json!({"choices": [], "usage": {"prompt_tokens": input, "completion_tokens": 10,
            "total_tokens": input + 10}}),
    ];
    let frames = chunks.iter().map(|chunk| format!("data: {chunk}\n\n"));
    let frames = frames.chain(["data: [DONE]\n\n".to_owned()]);
    Reply::raw("text/event-stream", frames.map(Bytes::from).collect())
}

async fn set(client: &Client, budget: Value) {
    let answer = client.put("/api/budgets", budget).await;
    assert_eq!(answer.status, 204, "{}", answer.text);
}

/// What all of the caller's sessions cost so far.
async fn cost(client: &Client) -> f64 {
    let usage = client.get("/api/usage").await.ok(200);
    usage["totals"]["costUsd"].as_f64().unwrap()
}

/// A budget of a session, as its person sets it.
fn own(session: &str, limit_usd: f64) -> Value {
    json!({"level": "own", "subject": session, "period": "whole", "limitUsd": limit_usd})
}

/// The budget of that level that is in force.
async fn standing(client: &Client, query: &str, level: &str) -> Value {
    let page = client.get(&format!("/api/budgets{query}")).await.ok(200);
    let all = page["inForce"].as_array().unwrap().clone();
    let found = all.into_iter().find(|item| item["level"] == level);
    found.unwrap_or_else(|| panic!("no {level} in {page}"))
}

/// Asserts S1.12 and O14.
#[tokio::test]
async fn a_turn_ends_where_its_budget_does_and_the_next_message_has_one_of_its_own() {
    let env = [&PRICED[..], &[("SPL_CHAT_REQUEST_BUDGET", "0.02")]].concat();
    let app = TestApp::start_with(&env).await;
    let mut ana = app.socket("acme").await;
    // A dear request, and a call after which another one would follow.
    app.model.will(counted_call(6_000));
    app.model.then(counted("never asked", (10, 10)));
    let long = "word ".repeat(5_000);
    ana.say(&long).await;
    let error = ana
        .wait_where(|said| said.name == "agent:error" && said.rest().get("callId").is_none())
        .await;
    assert_eq!(error.rest()["code"], "budget_exhausted", "{error:?}");
    assert_eq!(error.rest()["retryable"], true, "{error:?}");
    assert!(error.text().contains("of this turn"), "{}", error.text());
    assert!(error.text().contains("0.02 USD"), "{}", error.text());
    assert!(error.text().contains("agent.chat.request_budget"));
    app.model.forget_rest();
    let mut ben = app.socket("acme").await;
    for _ in 0..3 {
        app.model.will(counted("Short.", (100, 3)));
        ben.say("hello").await;
        assert_eq!(ben.wait_for_answer().await, "Short.");
    }
}

/// Asserts S1.12: what was said is kept, and the words say which budget, how much, and who raises it.
#[tokio::test]
async fn an_answer_is_cut_where_the_budget_ends_and_goes_on_once_it_is_raised() {
    let app = TestApp::start_with(&PRICED).await;
    let ana = app.person("acme").await;
    let client = Client::with_key(&app, &ana.key);
    let mut socket = TestSocket::open(app.address, &ana, None).await;
    app.model.will(counted("Hello.", (100, 2)));
    socket.say("hello").await;
    socket.wait_for_answer().await;
    let session = socket.session();
    set(&client, own(&session, 0.02)).await;
    // Some 12,000 tokens, which would cost 0.12 USD.
    app.model
        .will(counted(&"word ".repeat(10_000), (100, 10_000)));
    socket.say("tell me everything").await;
    let answer = socket.wait_for("agent:response").await;
    assert_eq!(answer.rest()["finish"], "budget_exhausted", "{answer:?}");
    let detail = answer.rest()["stopDetail"].as_str().unwrap();
    assert!(
        detail.contains("that you set for this session of 0.02 USD"),
        "{detail}"
    );
    assert!(detail.contains("you can raise it"), "{detail}");
    assert!(answer.text().starts_with("word word"), "{answer:?}");
    let cost = answer.rest()["cost"].as_f64().unwrap();
    assert!(cost > 0.01 && cost <= 0.02, "{cost}");
    let stands = standing(&client, &format!("?session={session}"), "own").await;
    assert_eq!(stands["isNear"], true, "{stands}");
    assert_eq!(stands["mayChange"], true, "{stands}");
    let used = stands["usedUsd"].as_f64().unwrap();
    assert!(used <= 0.02 && used >= cost, "{stands}");

    socket.say("go on").await;
    let error = socket.wait_for("agent:error").await;
    assert_eq!(error.rest()["code"], "budget_exhausted", "{error:?}");
    set(&client, own(&session, 0.5)).await;
    app.model.will(counted("and so on", (100, 3)));
    assert_eq!(socket.ask("turn:retry", &[json!({})]).await["ok"], true);
    assert_eq!(socket.wait_for_answer().await, "and so on");
}

#[tokio::test]
async fn people_are_warned_once_before_a_budget_bites_and_a_soft_one_refuses_nothing() {
    let app = TestApp::start_with(&PRICED).await;
    let boss = app.person_with("acme", Role::Admin).await;
    let client = Client::with_key(&app, &boss.key);
    set(
        &client,
        json!({"level": "tenant", "period": "month", "limitUsd": 0.001, "isHard": false,
            "warnPercent": 50}),
    )
    .await;
    let mut socket = TestSocket::open(app.address, &boss, None).await;
    for _ in 0..3 {
        app.model.will(counted("Well.", (100, 100)));
        socket.say("hello").await;
        socket.wait_for_answer().await;
    }
    let told: Vec<&str> = socket
        .log
        .iter()
        .filter(|said| said.name == "system:message" && said.rest()["code"] == "budget_warning")
        .map(Said::text)
        .collect();
    let words = "50 % of the budget of your tenant's month (UTC) of 0.001000 USD are spent; nothing \
                 is refused";
    assert_eq!(told, [words]);
    let stands = standing(&client, "", "tenant").await;
    assert_eq!(stands["isExhausted"], true, "{stands}");
    assert_eq!(stands["isHard"], false, "{stands}");
}

#[tokio::test]
async fn a_model_without_a_price_is_refused_unless_somebody_said_what_it_counts() {
    let env = [("SPL_SANDBOX", "none"), ("SPL_CHAT_SESSION_BUDGET", "0.10")];
    let app = TestApp::start_with(&env).await;
    let ana = app.person("acme").await;
    let mut socket = TestSocket::open(app.address, &ana, None).await;
    socket.say("hello").await;
    let error = socket.wait_for("agent:error").await;
    assert_eq!(error.rest()["code"], "budget_exhausted", "{error:?}");
    let words = error.text();
    assert!(
        words.contains("`stub`") && words.contains("agent.llm.unpriced_request_usd"),
        "{words}"
    );

    let env = [&env[..], &[("SPL_LLM_UNPRICED_REQUEST_USD", "0.04")]].concat();
    let app = app.restart_with(&env).await;
    let client = Client::with_key(&app, &ana.key);
    let mut socket = TestSocket::open(app.address, &ana, None).await;
    for _ in 0..2 {
        app.model.will_say("Hello");
        socket.say("hello").await;
        assert_eq!(socket.wait_for_answer().await, "Hello");
    }
    socket.say("hello").await;
    let error = socket.wait_for("agent:error").await;
    assert!(
        error.text().contains("of this session of 0.10 USD"),
        "{}",
        error.text()
    );
    let stands = standing(
        &client,
        &format!("?session={}", socket.session()),
        "session",
    )
    .await;
    assert_eq!(stands["usedUsd"], 0.08, "{stands}");
    assert_eq!(stands["source"], "settings", "{stands}");
}

/// Waits until nothing is held any more.
async fn all_back(client: &Client, query: &str, level: &str) -> Value {
    let looking = async {
        loop {
            let stands = standing(client, query, level).await;
            if stands["reservedUsd"] == 0.0 {
                return stands;
            }
        }
    };
    tokio::time::timeout(DEADLINE, looking).await.unwrap()
}

#[tokio::test]
async fn what_a_stopped_turn_held_comes_back_and_what_it_used_is_counted() {
    let app = TestApp::start_with(&PRICED).await;
    let boss = app.person_with("acme", Role::Owner).await;
    let client = Client::with_key(&app, &boss.key);
    set(
        &client,
        json!({"level": "person", "period": "day", "limitUsd": 1}),
    )
    .await;
    let mut socket = TestSocket::open(app.address, &boss, None).await;
    app.model.will_say("never to its end").stall();
    socket.say("hello").await;
    socket.wait_for("agent:delta").await;
    let held = standing(&client, "", "person").await;
    assert!(held["reservedUsd"].as_f64().unwrap() > 0.01, "{held}");
    socket.emit("agent:cancel", &[json!({})]).await;
    socket.wait_for("agent:cancelled").await;
    app.model.release();
    let stands = all_back(&client, "", "person").await;
    assert!(stands["usedUsd"].as_f64().unwrap() > 0.0, "{stands}");
}

/// A person with a key.
async fn client(app: &TestApp, tenant: &str, role: Role) -> (Person, Client) {
    let person = app.person_with(tenant, role).await;
    let client = Client::with_key(app, &person.key);
    (person, client)
}
