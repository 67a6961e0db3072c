//! Titles that a model gives, through the whole house.

use reqwest::Method;
use serde_json::{Value, json};

use crate::model_stub::Reply;
use crate::rest::Client;
use crate::support::postgres::new_database;
use crate::support::{Person, RedisServer, Said, TestApp, TestSocket};
use crate::usage::report_where;

/// A provider whose models have prices; a model gives the titles.
const BY_MODEL: [(&str, &str); 6] = [
    ("SPL_SANDBOX", "none"),
    ("SPL_CHAT_TITLES", "model"),
    ("LLM_PROVIDER", "openai"),
    ("OPENAI_API_KEY", "sk"),
    ("SPL_LLM_MODEL", "gpt-4o"),
    ("SPL_LLM_RETRY_MAX_RETRIES", "0"),
];

/// A question that was answered; the title is answered next.
async fn answered(app: &TestApp) -> (Person, TestSocket) {
    let ana = app.person("acme").await;
    let mut socket = TestSocket::open(app.address, &ana, None).await;
    socket.say("how do I mend a sail").await;
    socket.wait_for_answer().await;
    (ana, socket)
}

fn is_title(said: &Said) -> bool {
    said.name == "session:changed" && said.rest()["title"].is_string()
}

async fn next_title(socket: &mut TestSocket) -> Value {
    let said = socket.wait_where(is_title).await;
    said.rest()["title"].clone()
}

/// The provider lists these; whoever opens the page's list of models makes that known.
async fn list(app: &TestApp, ana: &Person, ids: &[&str]) {
    let models: Vec<Value> = ids.iter().map(|id| json!({ "id": id })).collect();
    app.model.lists(json!({ "data": models }));
    let client = Client::with_key(app, &ana.key);
    client.get("/api/models/available?refresh").await.ok(200);
}

async fn row(client: &Client, session: &str) -> Value {
    client
        .get(&format!("/api/sessions/{session}"))
        .await
        .ok(200)
}

#[tokio::test]
async fn the_cheapest_model_gives_the_title_after_the_first_answer_and_its_cost_counts() {
    let app = TestApp::start_with(&BY_MODEL).await;
    let ana = app.person("acme").await;
    list(&app, &ana, &["gpt-4o", "gpt-4o-mini", "no-such-price"]).await;
    app.model
        .will_say("With a needle")
        .then_say("\"**Mending a sail**\"\n");
    let (ana, mut socket) = answered(&app).await;
    // The first words stand until then.
    let first = socket.log.iter().find(|said| is_title(said));
    assert_eq!(first.unwrap().rest()["title"], "how do I mend a sail");
    assert_eq!(next_title(&mut socket).await, "Mending a sail");
    let asked = app.model.requests().pop().unwrap().body;
    assert_eq!(asked["model"], "gpt-4o-mini");
    assert_eq!(asked["tools"], Value::Null);
    let text = asked["messages"].to_string();
    assert!(
        text.contains("mend a sail") && text.contains("With a needle"),
        "{text}"
    );

    let (client, session) = (Client::with_key(&app, &ana.key), socket.session());
    app.sessions.listed().await;
    assert_eq!(row(&client, &session).await["title"], "Mending a sail");
    // What the session counts is what the rows sum up to, and the title is one of them.
    let usage = TestSocket::open(app.address, &ana, Some(&session)).await;
    let usage = usage.ready["state"]["usage"].clone();
    let report = client.get("/api/usage?by=purpose&sort=name").await.ok(200);
    assert_eq!(report["totals"]["totalTokens"], usage["totalTokens"]);
    assert_eq!(report["totals"]["costUsd"], usage["totalCost"]);
    let items = report["items"].as_array().unwrap().iter();
    let items: Vec<_> = items
        .map(|item| {
            (
                item["purpose"].as_str().unwrap(),
                &item["requests"]["requests"],
            )
        })
        .collect();
    assert_eq!(
        items,
        [("title", &json!(1)), ("turn", &json!(1))],
        "{report}"
    );

    // Once is enough.
    app.model.will_say("Like this");
    socket.say("show me").await;
    socket.wait_for_answer().await;
    assert_eq!(app.model.requests().len(), 3);
    assert_eq!(row(&client, &session).await["title"], "Mending a sail");
}

#[tokio::test]
async fn first_words_are_the_title_unless_somebody_sets_another_way() {
    let app = TestApp::start_with(&BY_MODEL[2..]).await;
    app.model.will_say("With a needle");
    let (ana, socket) = answered(&app).await;
    let client = Client::with_key(&app, &ana.key);
    let row = row(&client, &socket.session()).await;
    assert_eq!(row["title"], "how do I mend a sail");
    assert_eq!(app.model.requests().len(), 1);
}

#[tokio::test]
async fn what_a_person_calls_a_session_while_the_model_is_asked_stays() {
    let app = TestApp::start_with(&BY_MODEL).await;
    app.model
        .will_say("With a needle")
        .then(Reply::say("A title that comes too late"))
        .stall();
    let (ana, mut socket) = answered(&app).await;
    app.model.stalled().await;
    let client = Client::with_key(&app, &ana.key);
    let path = format!("/api/sessions/{}", socket.session());
    let renamed = json!({ "title": "Mine" });
    client
        .send(Method::PATCH, &path, Some(renamed))
        .await
        .ok(200);
    app.model.release();
    // What it used is counted all the same.
    report_where(&client, "/api/usage?by=purpose&sort=name", |report| {
        report["items"][0]["purpose"] == "title"
    })
    .await;
    socket.take_in().await;
    assert_eq!(row(&client, &socket.session()).await["title"], "Mine");
}

#[tokio::test]
async fn a_model_that_gives_none_disturbs_nobody() {
    let app = TestApp::start_with(&BY_MODEL).await;
    app.model
        .will_say("With a needle")
        .will_fail(500, &[], "no")
        .then_say("Like this");
    let (ana, mut socket) = answered(&app).await;
    // The request for the title has come before the next message goes.
    app.model.asked(2).await;
    socket.say("show me").await;
    assert_eq!(socket.wait_for_answer().await, "Like this");
    let client = Client::with_key(&app, &ana.key);
    app.sessions.listed().await;
    let row = row(&client, &socket.session()).await;
    assert_eq!(
        (&row["title"], &row["state"]),
        (&json!("how do I mend a sail"), &json!("idle"))
    );
    assert!(socket.log.iter().all(|said| said.name != "agent:error"));
    assert_eq!(app.model.requests().len(), 3);
}

#[tokio::test]
async fn two_gateways_ask_for_one_title_and_both_show_it() {
    let redis = RedisServer::start();
    let (url, database) = (redis.url(), new_database().await);
    let shared = [
        ("SPL_REDIS_URL", url.as_str()),
        ("DATABASE_URL", database.as_str()),
        ("SPL_SECRET_KEY", "a key of thirty-two characters or more"),
    ];
    let mut env = [&BY_MODEL[..], &shared].concat();
    let a = TestApp::start_with(&env).await;
    let model = a.model.base_url();
    env.push(("OPENAI_BASE_URL", &model));
    let b = TestApp::start_with(&env).await;
    let ana = a.person("acme").await;
    let mut at_a = TestSocket::open(a.address, &ana, Some("both")).await;
    let mut at_b = TestSocket::open(b.address, &ana, Some("both")).await;
    a.model.will_say("With a needle").then_say("Mending a sail");
    at_a.say("how do I mend a sail").await;
    for socket in [&mut at_a, &mut at_b] {
        socket.wait_for_answer().await;
        assert_eq!(next_title(socket).await, "Mending a sail");
    }
    assert_eq!(a.model.requests().len(), 2);
    assert!(b.model.requests().is_empty());
}
