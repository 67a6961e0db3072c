//! What happens when a provider fails: who is told, who answers instead, and what is paid.

use serde_json::{Value, json};

use super::{KEY, add, admin, compatible};
use crate::model_stub::{ModelStub, Reply};
use crate::rest::Client;
use crate::support::{Log, Person, TestApp, TestSocket};

/// A server that asks nobody twice, and gives a provider up after two faults.
async fn impatient_app() -> TestApp {
    TestApp::start_with(&[
        ("SPL_SANDBOX", "none"),
        ("SPL_OUTGOING_ALLOW", "127.0.0.0/8"),
        ("SPL_LLM_RETRY_MAX_RETRIES", "0"),
        ("SPL_LLM_BREAKER_FAULTS", "2"),
        ("SPL_LLM_BREAKER_PAUSE", "3600"),
    ])
    .await
}

async fn ask(app: &TestApp, person: &Person, choice: Option<(&str, &str)>) -> TestSocket {
    let mut socket = TestSocket::open(app.address, person, None).await;
    if let Some((provider, model)) = choice {
        let choice = [json!({ "model": model, "provider": provider })];
        assert_eq!(socket.ask("session:model", &choice).await["ok"], true);
    }
    socket.say("hello").await;
    socket
}

fn problem_of(listed: &Value, id: &str) -> String {
    let items = listed["items"].as_array().unwrap();
    let item = items.iter().find(|item| item["id"] == id).unwrap();
    item["problem"].as_str().unwrap_or_default().to_owned()
}

/// An outage costs as many requests as it takes to believe it, and nobody else's key suffers.
#[tokio::test]
async fn an_outage_is_told_at_once_shown_everywhere_and_over_when_the_provider_answers() {
    let log = Log::start();
    let app = impatient_app().await;
    let (ana, client) = admin(&app, "acme").await;
    let (ben, bens) = admin(&app, "globex").await;
    add(&bens, "own", compatible(&app.model, KEY, &["m"])).await;
    for _ in 0..2 {
        app.model
            .will_fail(503, &[], r#"{"error":{"message":"We are on fire"}}"#);
        let mut socket = ask(&app, &ana, None).await;
        let failed = socket.wait_for("agent:error").await;
        assert!(failed.text().contains("We are on fire"), "{failed:?}");
    }
    let mut socket = ask(&app, &ana, None).await;
    let failed = socket.wait_for("agent:error").await;
    assert_eq!(failed.rest()["code"], "provider_unavailable");
    for piece in [
        "has been out since 20",
        "is asked again at 20",
        "We are on fire",
    ] {
        assert!(failed.text().contains(piece), "{piece}: {failed:?}");
    }
    assert_eq!(app.model.requests().len(), 2, "the third was not sent");

    let id = "openai-compatible";
    let problem = problem_of(&client.get("/api/providers").await.json(), id);
    assert!(problem.contains("has been out since"), "{problem}");
    let models = client.get("/api/models/available").await.json();
    assert!(
        models["problems"]
            .to_string()
            .contains("has been out since"),
        "{models}"
    );
    assert!(log.text().contains("has been out since"), "{}", log.text());

    // Another tenant's own key at the same place is asked.
    app.model.will_say("Mine works");
    let mut socket = ask(&app, &ben, Some(("own", "m"))).await;
    assert_eq!(socket.wait_for_answer().await, "Mine works");
    assert_eq!(
        problem_of(&bens.get("/api/providers").await.json(), "own"),
        ""
    );

    // Whoever tests it tries whether it is back.
    app.model.will_say("OK");
    let test = json!({ "model": "m" });
    let tested = client
        .post(&format!("/api/providers/{id}/test"), test)
        .await;
    assert_eq!(tested.json()["ok"], true, "{}", tested.text);
    assert_eq!(
        problem_of(&client.get("/api/providers").await.json(), id),
        ""
    );
    assert!(log.text().contains("answers again"), "{}", log.text());
    app.model.will_say("Back");
    let mut socket = ask(&app, &ana, None).await;
    assert_eq!(socket.wait_for_answer().await, "Back");
}

/// Two providers of a tenant, the first of which names the second, and one that is not there for it.
async fn pair(client: &Client, first: &ModelStub, second: &ModelStub) {
    let mut body = compatible(second, KEY, &["m2"]);
    body["prices"] = json!({ "m2": { "input": 1_000.0, "output": 0.0 } });
    add(client, "second", body).await;
    let mut body = compatible(first, KEY, &["m1"]);
    body["prices"] = json!({ "m1": { "input": 0.0, "output": 0.0 } });
    body["fallback"] = json!(["hidden/x", "second/m2"]);
    let item = add(client, "first", body).await;
    assert_eq!(item["fallback"], json!(["hidden/x", "second/m2"]));
}

#[tokio::test]
async fn another_provider_answers_and_the_transcript_says_so_and_why() {
    let app = impatient_app().await;
    let (first, second, hidden) = (
        ModelStub::start().await,
        ModelStub::start().await,
        ModelStub::start().await,
    );
    let (ana, client) = admin(&app, "acme").await;
    let (_, others) = admin(&app, "globex").await;
    // Of another tenant: it is not there for this one.
    add(&others, "hidden", compatible(&hidden, KEY, &["x"])).await;
    pair(&client, &first, &second).await;

    first.will_fail(503, &[], r#"{"error":{"message":"We are on fire"}}"#);
    second.will_say("I can");
    let mut socket = ask(&app, &ana, Some(("first", "m1"))).await;
    let told = socket
        .wait_where(|said| said.args.iter().any(|arg| arg["code"] == "model_fallback"))
        .await;
    assert!(
        told.text().starts_with("Answered by `second/m2` because"),
        "{told:?}"
    );
    let answer = socket.wait_for("agent:response").await;
    assert_eq!(answer.text(), "I can");
    let by = &answer.rest()["answeredBy"];
    assert_eq!(
        (&by["provider"], &by["model"]),
        (&json!("second"), &json!("m2"))
    );
    assert!(
        by["reason"].as_str().unwrap().contains("We are on fire"),
        "{by}"
    );
    assert_eq!(answer.rest()["model"], "m2");
    let input = answer.rest()["usage"]["inputTokens"].as_f64().unwrap();
    assert_eq!(
        answer.rest()["cost"],
        input / 1_000.0,
        "at the second's price"
    );
    assert_eq!(hidden.requests().len(), 0);

    // It is part of the transcript.
    let session = socket.session();
    let events = client.get(&format!("/api/sessions/{session}/events")).await;
    assert!(events.text.contains(r#""answeredBy":{"#), "{}", events.text);
    // The first is asked again, and answers for itself.
    first.will_say("Here I am");
    socket.say("again").await;
    let answer = socket.wait_for("agent:response").await;
    assert_eq!(answer.text(), "Here I am");
    assert!(answer.rest().get("answeredBy").is_none(), "{answer:?}");
}

#[tokio::test]
async fn nobody_answers_instead_once_a_call_came_whole_or_a_key_is_wrong() {
    let app = impatient_app().await;
    let (first, second) = (ModelStub::start().await, ModelStub::start().await);
    let (ana, client) = admin(&app, "acme").await;
    pair(&client, &first, &second).await;
    let calls = [("write_file", json!({})), ("write_file", json!({}))];
    first.will(Reply::answer("", &calls)).will_cut_after(4);
    let mut socket = ask(&app, &ana, Some(("first", "m1"))).await;
    let failed = socket.wait_for("agent:error").await;
    assert!(failed.text().contains("cut the answer"), "{failed:?}");
    first.will_fail(401, &[], r#"{"error":{"message":"Who are you"}}"#);
    socket.say("again").await;
    let failed = socket.wait_for("agent:error").await;
    assert!(failed.text().contains("Who are you"), "{failed:?}");
    assert_eq!(second.requests().len(), 0);
}

#[tokio::test]
async fn a_second_key_answers_when_the_first_has_no_credit_and_is_shown_to_nobody() {
    let app = impatient_app().await;
    let other = ModelStub::start().await;
    let (ana, client) = admin(&app, "acme").await;
    let mut body = compatible(&other, KEY, &["m"]);
    body["apiKeys"] = json!(["sk-second-0815"]);
    let item = add(&client, "other", body).await;
    assert_eq!(item["moreKeys"], 1, "{item}");

    let app = app.restart().await;
    let client = Client::with_key(&app, &ana.key);
    other.will_fail(402, &[], r#"{"error":{"message":"Pay first"}}"#);
    other.then_say("Paid");
    let mut socket = ask(&app, &ana, Some(("other", "m"))).await;
    let answer = socket.wait_for("agent:response").await;
    assert_eq!(answer.text(), "Paid");
    let by = &answer.rest()["answeredBy"];
    assert_eq!(
        (&by["provider"], &by["model"]),
        (&json!("other"), &json!("m"))
    );
    let sent: Vec<_> = other
        .requests()
        .into_iter()
        .map(|asked| asked.authorization)
        .collect();
    let bearer = |key: &str| Some(format!("Bearer {key}"));
    assert_eq!(sent, [bearer(KEY), bearer("sk-second-0815")]);
    let told = client.get("/api/providers").await.text;
    assert!(!told.contains("sk-second") && !told.contains(KEY), "{told}");
    // Elsewhere it would be somebody else's.
    let moved = json!({
        "kind": "openai-compatible", "baseUrl": "http://127.0.0.1:9/v1", "apiKey": "sk-new",
    });
    let refused = client.put("/api/providers/other", moved).await;
    assert_eq!(
        (refused.status, &refused.json()["errors"][0]["field"]),
        (400, &json!("apiKeys")),
        "{}",
        refused.text
    );
}

async fn totals(socket: &mut TestSocket, at_least: u64) -> Value {
    let said = socket.wait_where(|said| {
        said.name == "session:usage" && said.args[0]["totalTokens"].as_u64() >= Some(at_least)
    });
    said.await.args[0].clone()
}

/// Asserts S1.4: what became no answer is paid for as well.
#[tokio::test]
async fn failed_attempts_and_stopped_answers_are_counted_once() {
    let app = TestApp::start_with(&[
        ("SPL_SANDBOX", "none"),
        ("SPL_LLM_MODEL", "gpt-4o"),
        ("SPL_LLM_PROMPT_TEMPLATE", "Be kind."),
        ("SPL_LLM_RETRY_MAX_RETRIES", "1"),
        ("SPL_LLM_RETRY_INITIAL_BACKOFF", "0.01"),
    ])
    .await;
    let mut ana = app.socket("acme").await;
    // 8 estimated tokens of system prompt and question, 2 of what was said until the cut.
    app.model
        .will(Reply::say("half an answer"))
        .will_cut_after(3)
        .then_say("whole");
    ana.say("12345678").await;
    let answer = ana.wait_for("agent:response").await;
    let own = &answer.rest()["usage"];
    let own = own["inputTokens"].as_u64().unwrap() + own["outputTokens"].as_u64().unwrap();
    let usage = totals(&mut ana, own + 1).await;
    let total = usage["totalTokens"].as_u64().unwrap();
    assert_eq!(total, own + 8 + 2, "{usage}");
    assert!(
        usage["totalCost"].as_f64() > answer.rest()["cost"].as_f64(),
        "{usage}"
    );

    app.model.will_say("never to its end").stall();
    ana.say("12345678").await;
    ana.wait_for("agent:delta").await;
    ana.emit("agent:cancel", &[json!({})]).await;
    ana.wait_for("agent:cancelled").await;
    let usage = totals(&mut ana, total + 8).await;
    let stopped = usage["totalTokens"].as_u64().unwrap();
    assert!(stopped < total + 80, "{usage}");
    app.model.release();
    // Once: a stop that is sent again counts nothing.
    ana.emit("agent:cancel", &[json!({})]).await;
    app.model.will_say("fine");
    ana.say("and now?").await;
    let answer = ana.wait_for("agent:response").await;
    let own = &answer.rest()["usage"];
    let own = own["inputTokens"].as_u64().unwrap() + own["outputTokens"].as_u64().unwrap();
    assert_eq!(
        totals(&mut ana, stopped + 1).await["totalTokens"],
        stopped + own
    );
}

/// Asserts S1.4: a gateway that ended in the middle of an answer has asked for it all the same.
#[tokio::test]
async fn what_a_gateway_asked_before_it_ended_is_counted_by_the_next() {
    let app = TestApp::start_with(&[
        ("SPL_SANDBOX", "none"),
        ("SPL_LLM_PROMPT_TEMPLATE", "Be kind."),
    ])
    .await;
    let person = app.person("acme").await;
    let mut ana = TestSocket::open(app.address, &person, Some("mine")).await;
    app.model.will_say("never to its end").stall();
    app.model.will_say("whole").then_say("more");
    ana.say("12345678").await;
    ana.wait_for("agent:delta").await;
    let app = app.restart().await;
    let mut ana = TestSocket::open(app.address, &person, Some("mine")).await;
    ana.say("and more?").await;
    // Two answers, and the estimate of the request that the gateway before had sent.
    let usage = totals(&mut ana, 2 * 18 + 1).await;
    assert_eq!(usage["totalTokens"], 2 * 18 + 8, "{usage}");
    app.model.release();
}
