//! The model of a session: at its beginning, in its middle, and after a restart.

use serde_json::{Value, json};

use super::{KEY, add, admin, compatible, open_app};
use crate::model_stub::{ModelStub, Reply};
use crate::rest::Client;
use crate::support::{TestApp, TestSocket};

/// `session:model`, acknowledged.
pub(super) async fn choose(socket: &mut TestSocket, choice: Value) {
    let answer = socket.ask("session:model", &[choice]).await;
    assert_eq!(answer["ok"], true, "{answer}");
}

/// The models of the requests that a stand-in saw.
fn asked(model: &ModelStub) -> Vec<String> {
    let requests = model.requests();
    let models = requests.iter().map(|asked| asked.body["model"].as_str());
    models.map(|model| model.unwrap().to_owned()).collect()
}

/// An answer with a call, thought about first: the blocks of that go back to the same server only.
pub(super) fn thoughtful_call() -> Reply {
    let chunks = [
        json!({"choices": [{"index": 0, "delta": {"reasoning_content": "hidden thought"}}]}),
        json!({"choices": [{"index": 0, "delta": {"tool_calls": [{
            "index": 0, "id": "c1", "type": "function",
            "function": {"name": "no_such_tool", "arguments": "{}"},
        }]}}]}),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}],
            "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}}),
    ];
    let frames = chunks.iter().map(|chunk| format!("data: {chunk}\n\n"));
    let frames = frames.chain(["data: [DONE]\n\n".to_owned()]);
    Reply::raw("text/event-stream", frames.map(Into::into).collect())
}

#[tokio::test]
async fn a_session_goes_on_with_another_provider_and_back_and_its_counters_carry_on() {
    let app = open_app().await;
    let other = ModelStub::start().await;
    let (person, client) = admin(&app, "acme").await;
    add(&client, "other", compatible(&other, KEY, &["big"])).await;
    let mut socket = TestSocket::open(app.address, &person, None).await;
    assert_eq!(socket.ready["model"], "stub");
    app.model.will(thoughtful_call()).then_say("first");
    socket.say("one").await;
    assert_eq!(socket.wait_for_answer().await, "first");

    choose(&mut socket, json!({ "model": "big" })).await;
    let changed = socket.wait_for("session:changed").await;
    let (model, provider) = (&changed.rest()["model"], &changed.rest()["provider"]);
    assert_eq!((model, provider), (&json!("big"), &json!("other")));
    other.will_say("second");
    socket.say("two").await;
    let thinking = socket.wait_for("agent:thinking").await;
    assert_eq!(thinking.rest()["model"], "big");
    let answered = socket.wait_for("agent:response").await;
    assert_eq!(answered.rest()["model"], "big");

    let seen = other.requests()[0].clone();
    assert_eq!(seen.authorization, Some(format!("Bearer {KEY}")));
    let text = seen.body.to_string();
    assert!(
        text.contains("first") && text.contains("no_such_tool"),
        "{text}"
    );
    assert!(!text.contains("hidden thought"), "a foreign block: {text}");

    choose(
        &mut socket,
        json!({ "provider": "openai-compatible", "model": "stub" }),
    )
    .await;
    app.model.will_say("third");
    socket.say("three").await;
    assert_eq!(socket.wait_for_answer().await, "third");
    let back = app.model.requests().last().unwrap().body.to_string();
    assert!(
        back.contains("hidden thought") && back.contains("second"),
        "{back}"
    );
    let usage = socket.wait_for("session:usage").await;
    assert_eq!(usage.rest()["totalTokens"], 4 * 18);
    assert_eq!(asked(&app.model), ["stub"; 3]);
    assert_eq!(asked(&other), ["big"]);
}

#[tokio::test]
async fn what_is_in_flight_is_answered_by_whom_it_was_asked_and_a_change_counts_next() {
    let app = open_app().await;
    let (person, client) = admin(&app, "acme").await;
    let (before, after) = (ModelStub::start().await, ModelStub::start().await);
    add(&client, "own", compatible(&before, KEY, &["m"])).await;
    let auth = json!({ "token": person.key });
    let socket = TestSocket::try_open_at(app.address, auth, "&provider=own");
    let mut socket = socket.await.unwrap();
    assert_eq!(
        (&socket.ready["provider"], &socket.ready["model"]),
        (&json!("own"), &json!("m"))
    );
    before.will_say("old").stall();
    socket.say("one").await;
    before.stalled().await;
    // The provider moves, and the session chooses another model, while it answers.
    let moved = client
        .put("/api/providers/own", compatible(&after, "k2", &["m"]))
        .await;
    assert_eq!(moved.status, 200, "{}", moved.text);
    choose(&mut socket, json!({ "model": "m2" })).await;
    before.release();
    let answered = socket.wait_for("agent:response").await;
    assert_eq!(
        (answered.text(), &answered.rest()["model"]),
        ("old", &json!("m"))
    );
    after.will_say("new");
    socket.say("two").await;
    assert_eq!(socket.wait_for_answer().await, "new");
    assert_eq!(
        (asked(&before), asked(&after)),
        (vec!["m".into()], vec!["m2".into()])
    );
    assert_eq!(
        after.requests()[0].authorization.as_deref(),
        Some("Bearer k2")
    );
}

/// Asserts S2.2, S2.3, S2.4, S2.5, S2.17.
#[tokio::test]
async fn the_query_of_the_handshake_names_the_model() {
    let app = open_app().await;
    let (person, client) = admin(&app, "acme").await;
    let other = ModelStub::start().await;
    add(&client, "other", compatible(&other, KEY, &["big"])).await;
    let open = async |session: Value, query: &str| {
        let auth = json!({ "token": person.key, "sessionId": session });
        TestSocket::try_open_at(app.address, auth, query).await
    };
    let named = |socket: &TestSocket| {
        let text = |name: &str| socket.ready[name].as_str().unwrap().to_owned();
        format!("{}/{}", text("providerId"), text("model"))
    };
    let mut new = open(Value::Null, "&model=big").await.unwrap();
    assert_eq!(named(&new), "other/big");
    other.will_say("hi");
    new.say("hello").await;
    new.wait_for_answer().await;
    // An existing session: the same command, shown to everybody in it.
    let again = open(json!(new.session()), "&model=unlisted").await.unwrap();
    assert_eq!(named(&again), "other/unlisted");
    assert_eq!(
        new.wait_for("session:changed").await.rest()["model"],
        "unlisted"
    );
    let same = open(json!(new.session()), "&model=unlisted").await.unwrap();
    assert_eq!(same.ready["seq"], again.ready["seq"], "nothing changed");
    // A name of one's own, new and then stored.
    let mut mine = open(json!("notes"), "&provider=other&model=big")
        .await
        .unwrap();
    assert_eq!(named(&mine), "other/big");
    other.will_say("hi");
    mine.say("hello").await;
    mine.wait_for_answer().await;
    let mine = open(json!("notes"), "&model=stub&provider=openai-compatible").await;
    assert_eq!(named(&mine.unwrap()), "openai-compatible/stub");
    assert_eq!(
        named(&open(json!("notes"), "").await.unwrap()),
        "openai-compatible/stub"
    );

    let unknown = open(Value::Null, "&provider=nobody").await.err().unwrap();
    assert!(unknown.starts_with("invalid_arguments"), "{unknown}");
    assert!(
        unknown.contains("`nobody`") && unknown.contains("`other`"),
        "{unknown}"
    );
    let unknown = open(json!(new.session()), "&provider=nobody")
        .await
        .err()
        .unwrap();
    assert!(unknown.starts_with("invalid_arguments"), "{unknown}");
}

#[tokio::test]
async fn a_wrong_choice_is_refused_with_its_field_and_an_unlisted_model_is_taken() {
    let app = open_app().await;
    let mut socket = app.socket("acme").await;
    let check = async |socket: &mut TestSocket, sent: Value, field: &str| {
        let answer = socket
            .ask("session:model", std::slice::from_ref(&sent))
            .await;
        let error = &answer["error"];
        assert_eq!(error["code"], "invalid_arguments", "{sent} {answer}");
        assert_eq!(error["field"], field, "{sent} {answer}");
    };
    check(&mut socket, json!({}), "model").await;
    check(&mut socket, json!({ "model": " " }), "model").await;
    check(&mut socket, json!({ "model": "x".repeat(300) }), "model").await;
    check(
        &mut socket,
        json!({ "model": "m", "provider": "nobody" }),
        "provider",
    )
    .await;
    choose(&mut socket, json!({ "model": "brand-new" })).await;
    app.model.will_say("hi");
    socket.say("hello").await;
    socket.wait_for_answer().await;
    assert_eq!(asked(&app.model), ["brand-new"]);
    let usage = socket.wait_for("session:usage").await;
    assert_eq!(
        usage.rest()["totalCost"],
        0.0,
        "an unknown price is not guessed"
    );
}

#[tokio::test]
async fn a_session_and_its_provider_outlive_a_restart() {
    let app = open_app().await;
    let other = ModelStub::start().await;
    let (person, client) = admin(&app, "acme").await;
    add(&client, "other", compatible(&other, KEY, &["big"])).await;
    let created = client
        .post("/api/sessions", json!({ "title": "t", "model": "big" }))
        .await;
    assert_eq!(created.status, 201, "{}", created.text);
    let session = created.json()["id"].as_str().unwrap().to_owned();
    let app: TestApp = app.restart().await;
    let mut socket = TestSocket::open(app.address, &person, Some(&session)).await;
    assert_eq!(socket.ready["model"], "big");
    other.will_say("still here");
    socket.say("hello").await;
    assert_eq!(socket.wait_for_answer().await, "still here");
    let key = other.requests()[0].authorization.clone();
    assert_eq!(key, Some(format!("Bearer {KEY}")));

    let client = Client::with_key(&app, &person.key);
    let wrong = json!({ "provider": "nobody" });
    let refused = client.post("/api/sessions", wrong).await;
    assert_eq!(
        (refused.status, refused.json()["errors"][0]["field"].clone()),
        (400, json!("provider"))
    );
}
