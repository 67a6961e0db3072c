//! What of a session the model is shown: limits, what falls out, and a request that does not fit.

use serde_json::{Value, json};

use crate::model_stub::{Asked, Reply};
use crate::rest::Client;
use crate::support::{DEADLINE, Log, Said, TestApp, TestSocket};

const OVERFLOW: &str = r#"{"error":{"message":"too long","type":"invalid_request_error","code":"context_length_exceeded"}}"#;

/// The texts of the newest request, without the system prompt.
fn shown(app: &TestApp) -> Vec<String> {
    let asked = app.model.requests();
    let messages = asked.last().unwrap().body["messages"].as_array().unwrap();
    let told = messages.iter().filter(|said| said["role"] != "system");
    told.map(|said| said["content"].as_str().unwrap_or_default().to_owned())
        .collect()
}

async fn turn(app: &TestApp, socket: &mut TestSocket, text: &str) -> Value {
    app.model.will_say(&format!("re {text}"));
    socket.say(text).await;
    socket.wait_for_answer().await;
    socket.wait_for("session:usage").await.args[0]["context"].clone()
}

/// Asserts S0.3, S0.6, S0.17, S2.9, S3.39.
#[tokio::test]
async fn older_messages_fall_out_and_the_client_is_told() {
    let app = TestApp::start_with(&[("SPL_SANDBOX", "none"), ("SPL_CHAT_MAX_MESSAGES", "4")]).await;
    let mut ana = app.socket("acme").await;
    for text in ["one", "two"] {
        let context = turn(&app, &mut ana, text).await;
        assert_eq!(context["leftOut"], Value::Null);
    }
    let context = turn(&app, &mut ana, "three").await;
    assert_eq!(shown(&app), ["two", "re two", "three"]);
    assert_eq!(context["leftOut"]["messages"], 2);
    let second = ana.log.iter().find(|said| said.text() == "two").unwrap();
    assert_eq!(
        context["leftOut"]["fromSeq"].as_u64(),
        second.seq(),
        "the oldest message that is still read"
    );
}

/// S0.12.
#[tokio::test]
async fn every_cut_is_logged_and_told_with_messages_and_tokens_before_and_after() {
    let log = Log::start();
    let app = TestApp::start_with(&[("SPL_SANDBOX", "none"), ("SPL_CHAT_MAX_MESSAGES", "4")]).await;
    let mut ana = app.socket("acme").await;
    for text in ["one", "two"] {
        turn(&app, &mut ana, text).await;
    }
    assert!(
        !log.text().contains("take less of the context"),
        "everything fits"
    );
    turn(&app, &mut ana, "three").await;
    let is_cut = |said: &&Said| said.name == "context:compacted";
    let told = ana.log.iter().filter(is_cut).cloned().collect::<Vec<_>>();
    assert_eq!(told.len(), 1, "{told:?}");
    let told = &told[0].args[0];
    assert_eq!(told["strategy"], "delete-old", "{told}");
    assert_eq!(told["before"]["messages"], 5, "{told}");
    assert_eq!(told["after"]["messages"], 3, "{told}");
    let seq_of = |text: &str| {
        ana.log
            .iter()
            .find(|said| said.text() == text)
            .and_then(Said::seq)
    };
    let left = json!({"messages": 2, "fromSeq": seq_of("one"), "toSeq": seq_of("two")});
    assert_eq!(told["left"], left, "{told}");
    let tokens = |of: &Value, side: &str| of[side]["tokens"].as_u64().unwrap();
    assert!(tokens(told, "after") < tokens(told, "before"), "{told}");
    let logged = |cut: &Value| {
        let text = log.text();
        let fields = ["before", "after"].map(|side| {
            let (messages, tokens) = (&cut[side]["messages"], &cut[side]["tokens"]);
            format!("{side}.messages={messages} {side}.tokens={tokens}")
        });
        let is_there = text
            .lines()
            .any(|line| fields.iter().all(|it| line.contains(it)));
        assert!(is_there, "no line with {fields:?} in {text}");
    };
    logged(told);

    // The same of a cut that the provider forces.
    app.model
        .will(Reply::fail(400, &[], OVERFLOW))
        .then_say("fits");
    ana.say("four").await;
    let cut = ana.wait_for("context:compacted").await;
    let cut = &cut.args[0];
    assert!(tokens(cut, "after") < tokens(cut, "before"), "{cut}");
    assert_eq!(ana.wait_for_answer().await, "fits");
    logged(cut);
}

/// Asserts S0.14: the first bytes of a request are those of the one before, until something leaves.
#[tokio::test]
async fn what_left_stays_out_so_that_requests_begin_alike_until_the_next_compaction() {
    let app =
        TestApp::start_with(&[("SPL_SANDBOX", "none"), ("SPL_CHAT_MAX_MESSAGES", "16")]).await;
    let person = app.person("acme").await;
    let mut ana = TestSocket::open(app.address, &person, Some("mine")).await;
    let mut before: Vec<String> = Vec::new();
    let mut cuts = 0;
    for index in 0..24 {
        turn(&app, &mut ana, &format!("m{index}")).await;
        let now = shown(&app);
        let first = now.first().map(String::as_str);
        assert_eq!(first, Some("m0"), "the first question stays");
        if !now.starts_with(&before) {
            cuts += 1;
            assert!(
                now.iter().any(|text| text.contains("are left out here")),
                "{now:?}"
            );
        }
        before = now;
    }
    let told = ana
        .log
        .iter()
        .filter(|said| said.name == "context:compacted");
    let told: Vec<&Value> = told.map(|said| &said.args[0]["strategy"]).collect();
    assert_eq!(told.len(), cuts, "each is told once");
    assert!(
        told.iter().all(|strategy| *strategy == "delete-middle"),
        "{told:?}"
    );
    assert!((2..=12).contains(&cuts), "{cuts} compactions in 24 turns");

    // Another gateway goes on with the same beginning.
    drop(ana);
    let app = app.restart().await;
    let mut ana = TestSocket::open(app.address, &person, Some("mine")).await;
    turn(&app, &mut ana, "m24").await;
    let now = shown(&app);
    let is_cut = ana.log.iter().any(|said| said.name == "context:compacted");
    assert!(
        is_cut || now.starts_with(&before),
        "{before:?}, then {now:?}"
    );
    assert_eq!(now.first().map(String::as_str), Some("m0"));
}

/// Asserts S0.16.
#[tokio::test]
async fn nothing_leaves_a_session_that_chose_so_and_the_choice_is_durable() {
    let settings = [("SPL_SANDBOX", "none"), ("SPL_CHAT_MAX_MESSAGES", "3")];
    let app = TestApp::start_with(&settings).await;
    let person = app.person("acme").await;
    let mut ana = TestSocket::open(app.address, &person, Some("mine")).await;
    let mut tab = TestSocket::open(app.address, &person, Some("mine")).await;
    for text in ["one", "two", "three"] {
        turn(&app, &mut ana, text).await;
    }
    assert_eq!(shown(&app), ["two", "re two", "three"]);
    let none = json!({ "strategies": ["none"] });
    let answer = ana.ask("session:compaction", &[none]).await;
    assert_eq!(answer["ok"], true, "{answer}");
    while tab.wait_for("session:changed").await.args[0]["compaction"] != json!(["none"]) {}
    turn(&app, &mut ana, "four").await;
    assert_eq!(shown(&app).len(), 7);
    drop((ana, tab));
    let app = app.restart_with(&settings).await;
    let mut ana = TestSocket::open(app.address, &person, Some("mine")).await;
    assert_eq!(ana.ready["compaction"], json!(["none"]));
    turn(&app, &mut ana, "five").await;
    assert_eq!(shown(&app).len(), 9, "it is durable");

    let answer = ana
        .ask("session:compaction", &[json!({ "strategies": [] })])
        .await;
    assert_eq!(answer["ok"], true, "{answer}");
    turn(&app, &mut ana, "six").await;
    assert_eq!(shown(&app), ["five", "re five", "six"]);
    for wrong in [
        json!(["delete-all"]),
        json!(["none", "delete-old"]),
        json!("none"),
    ] {
        let refused = ana
            .ask("session:compaction", &[json!({ "strategies": wrong })])
            .await;
        assert_eq!(refused["error"]["code"], "invalid_arguments", "{wrong}");
    }
}

/// Asserts S1.5, S2.9, S2.10, S2.20.
#[tokio::test]
async fn what_is_stored_is_enough_and_wider_limits_bring_the_rest_back() {
    let narrow = [
        ("SPL_SANDBOX", "none"),
        ("SPL_CHAT_MAX_MESSAGES", "3"),
        ("ENABLE_CONVERSATION_COMPRESSION", "true"),
    ];
    let app = TestApp::start_with(&narrow).await;
    let person = app.person("acme").await;
    let mut ana = TestSocket::open(app.address, &person, Some("mine")).await;
    for text in ["one", "two", "three"] {
        turn(&app, &mut ana, text).await;
    }
    drop(ana);

    // The snapshot is compressed and cut; now it is read by a server that would not compress.
    let plain = [
        ("SPL_SANDBOX", "none"),
        ("SPL_CHAT_MAX_MESSAGES", "3"),
        ("ENABLE_CONVERSATION_COMPRESSION", "false"),
    ];
    let app = app.restart_with(&plain).await;
    let mut ana = TestSocket::open(app.address, &person, Some("mine")).await;
    assert_eq!(
        ana.ready["state"]["usage"]["context"]["leftOut"]["messages"],
        3
    );
    turn(&app, &mut ana, "four").await;
    assert_eq!(shown(&app), ["three", "re three", "four"]);
    drop(ana);

    let app = app
        .restart_with(&[("SPL_SANDBOX", "none"), ("SPL_CHAT_MAX_MESSAGES", "0")])
        .await;
    let mut ana = TestSocket::open(app.address, &person, Some("mine")).await;
    let context = turn(&app, &mut ana, "five").await;
    assert_eq!(
        shown(&app).first().map(String::as_str),
        Some("one"),
        "the journal has it all"
    );
    assert_eq!(context["leftOut"], Value::Null);
}

/// The choice of the window, acknowledged, and the context after it.
async fn choose(socket: &mut TestSocket, whole: bool) -> Value {
    let answer = socket
        .ask("session:window", &[json!({ "whole": whole })])
        .await;
    assert_eq!(answer["ok"], true, "{answer}");
    let changed = socket.wait_for("session:changed").await;
    assert_eq!(changed.args[0]["wholeWindow"], whole);
    socket.wait_for("session:usage").await.args[0]["context"].clone()
}

/// Asserts S2.9.
#[tokio::test]
async fn a_session_reads_the_whole_window_until_that_is_taken_back() {
    let settings = [("SPL_SANDBOX", "none"), ("SPL_CHAT_MAX_MESSAGES", "3")];
    let app = TestApp::start_with(&settings).await;
    let person = app.person("acme").await;
    let mut ana = TestSocket::open(app.address, &person, Some("mine")).await;
    for text in ["one", "two", "three"] {
        turn(&app, &mut ana, text).await;
    }
    drop(ana);
    // What fell out is not even in memory now.
    let app = app.restart_with(&settings).await;
    let mut ana = TestSocket::open(app.address, &person, Some("mine")).await;
    let mut tab = TestSocket::open(app.address, &person, Some("mine")).await;
    let before = &ana.ready["state"]["usage"]["context"];
    assert_eq!(before["leftOut"]["messages"], 3);
    assert_eq!(before["leftOut"]["wholeReadsMore"], true);
    assert_eq!(before["whole"], false);

    let context = choose(&mut ana, true).await;
    assert_eq!(context["leftOut"], Value::Null);
    assert_eq!(context["whole"], true);
    let heard = tab.wait_for("session:changed").await;
    assert_eq!(heard.args[0]["wholeWindow"], true, "all who watch are told");
    turn(&app, &mut ana, "four").await;
    assert_eq!(shown(&app).len(), 7);
    assert_eq!(shown(&app).first().map(String::as_str), Some("one"));
    drop((ana, tab));

    let app = app.restart_with(&settings).await;
    let mut ana = TestSocket::open(app.address, &person, Some("mine")).await;
    assert_eq!(ana.ready["state"]["usage"]["context"]["whole"], true);
    turn(&app, &mut ana, "five").await;
    assert_eq!(shown(&app).len(), 9, "it is durable");
    let context = choose(&mut ana, false).await;
    assert_eq!(context["leftOut"]["messages"], 7);
    turn(&app, &mut ana, "six").await;
    assert_eq!(shown(&app), ["five", "re five", "six"]);
    let refused = ana.ask("session:window", &[json!({ "whole": 1 })]).await;
    assert_eq!(refused["error"]["code"], "invalid_arguments");
}

/// Asserts S0.12, S2.26.
#[tokio::test]
async fn a_request_that_does_not_fit_is_asked_again_with_fresh_context() {
    let app = TestApp::start().await;
    let mut ana = app.socket("acme").await;
    turn(&app, &mut ana, "one").await;
    app.model
        .will(Reply::fail(400, &[], OVERFLOW))
        .then_say("fits");
    ana.say("two").await;
    let cut = ana.wait_for("context:compacted").await;
    assert_eq!(cut.args[0]["strategy"], "fresh-context");
    assert_eq!(cut.args[0]["before"]["messages"], 3);
    assert_eq!(cut.args[0]["after"]["messages"], 1);
    assert_eq!(ana.wait_for_answer().await, "fits");
    assert_eq!(shown(&app), ["two"]);

    // It is an event like any other: replayed in its place, and it holds for the next turn.
    turn(&app, &mut ana, "three").await;
    assert_eq!(shown(&app), ["two", "fits", "three"]);
    let shown = ana.shown();
    let place = shown.iter().find(|(_, name)| name == "context:compacted");
    assert_eq!(place.map(|(seq, _)| *seq), cut.seq());
}

/// Asserts S2.26: what only the provider tells makes room step by step.
#[tokio::test]
async fn what_only_the_provider_finds_too_long_loses_old_turns_then_all_but_the_newest_then_fails()
{
    let steps = ["lower-limit", "fresh-context"];
    for failures in 1..=3 {
        let app = TestApp::start_with(&[("SPL_SANDBOX", "none")]).await;
        let mut ana = app.socket("acme").await;
        turn(&app, &mut ana, "first").await;
        for text in ["second", "third", "fourth", "fifth"] {
            turn(&app, &mut ana, &format!("{text} {}", "word ".repeat(60))).await;
        }
        for _ in 0..failures {
            app.model.will(Reply::fail(400, &[], OVERFLOW));
        }
        if failures <= steps.len() {
            app.model.will_say("fits");
        }
        ana.say("newest").await;
        for step in steps.iter().take(failures) {
            let cut = ana.wait_for("context:compacted").await;
            assert_eq!(cut.args[0]["strategy"], *step, "{failures} failures");
            let tokens = |size: &str| cut.args[0][size]["tokens"].as_u64().unwrap();
            assert!(tokens("after") <= tokens("before") / 2, "{:?}", cut.args);
        }
        if failures > steps.len() {
            let error = ana.wait_for("agent:error").await;
            assert_eq!(error.rest()["code"], "context_overflow");
            continue;
        }
        assert_eq!(ana.wait_for_answer().await, "fits");
        let read = shown(&app);
        assert_eq!(read.last().unwrap(), "newest");
        if failures == 2 {
            assert_eq!(read, ["newest"]);
            continue;
        }
        assert_eq!(read[0], "first");
        assert!(
            !read.iter().any(|text| text.starts_with("second")),
            "{read:?}"
        );
        let is_middle = |said: &&crate::support::Said| {
            said.name == "context:compacted" && said.args[0]["strategy"] == "delete-middle"
        };
        assert_eq!(ana.log.iter().filter(is_middle).count(), 1);
        // The next turn reads no more than what the provider took, and begins alike.
        turn(&app, &mut ana, "later").await;
        let next = shown(&app);
        assert_eq!(next[..read.len()], read);
        assert_eq!(next[read.len()..], ["fits", "later"]);
    }
}

/// Asserts S0.17, S2.26.
#[tokio::test]
async fn a_message_that_never_fits_fails_with_its_own_code() {
    let app = TestApp::start().await;
    app.model.will(Reply::fail(400, &[], OVERFLOW));
    let mut ana = app.socket("acme").await;
    ana.say("too long").await;
    let error = ana.wait_for("agent:error").await;
    assert_eq!(error.rest()["code"], "context_overflow");
    turn(&app, &mut ana, "short").await;
}

/// S3.17.
#[tokio::test]
async fn a_reset_keeps_the_system_prompt_and_is_told_whichever_door_asks_for_it() {
    let prompt = ("SPL_LLM_PROMPT_TEMPLATE", "You keep bees.");
    let app = TestApp::start_with(&[("SPL_SANDBOX", "none"), prompt]).await;
    let person = app.person("acme").await;
    let mut ana = TestSocket::open(app.address, &person, None).await;
    let mut tab = TestSocket::open(app.address, &person, Some(&ana.session())).await;
    turn(&app, &mut ana, "one").await;
    let path = format!("/api/sessions/{}/reset", ana.session());
    for over_rest in [false, true] {
        if over_rest {
            let client = Client::with_key(&app, &person.key);
            assert_eq!(client.post(&path, json!({})).await.ok(202)["ok"], true);
        } else {
            let answer = ana.ask("history:reset", &[json!({})]).await;
            assert_eq!(answer["ok"], true, "{answer}");
        }
        for socket in [&mut ana, &mut tab] {
            let told = socket.wait_for("history:reset").await;
            assert!(told.seq().is_some(), "{told:?}");
        }
        turn(&app, &mut ana, "two").await;
        assert_eq!(shown(&app), ["two"]);
        let asked = app.model.requests().pop().unwrap();
        assert_eq!(asked.body["messages"][0]["role"], "system");
        assert_eq!(asked.body["messages"][0]["content"], "You keep bees.");
    }
    // While a turn runs there is nothing to reset; for others there is no such session.
    app.model.will_say("never heard").stall();
    ana.say("three").await;
    tokio::time::timeout(DEADLINE, app.model.stalled())
        .await
        .unwrap();
    let client = Client::with_key(&app, &person.key);
    client
        .post(&path, json!({}))
        .await
        .problem(409, "nothing_to_do");
    for tenant in ["acme", "other"] {
        let stranger = app.person(tenant).await;
        let client = Client::with_key(&app, &stranger.key);
        let refused = client.post(&path, json!({})).await;
        refused.problem(404, "session_not_found");
    }
}

/// S1.5, S3.17: the system prompt stays, and all who watch are told.
#[tokio::test]
async fn after_a_reset_the_model_reads_nothing_from_before_and_people_read_everything() {
    let prompt = [
        ("SPL_SANDBOX", "none"),
        ("SPL_LLM_PROMPT_TEMPLATE", "Be kind."),
    ];
    let app = TestApp::start_with(&prompt).await;
    let person = app.person("acme").await;
    let mut ana = TestSocket::open(app.address, &person, Some("mine")).await;
    let mut tab = TestSocket::open(app.address, &person, Some("mine")).await;
    turn(&app, &mut ana, "one").await;
    let answer = ana.ask("history:reset", &[json!({})]).await;
    assert_eq!(answer["ok"], true, "{answer}");
    for socket in [&mut ana, &mut tab] {
        socket.wait_for("history:reset").await;
    }
    turn(&app, &mut ana, "two").await;
    assert_eq!(shown(&app), ["two"]);
    let asked = app.model.requests().pop().unwrap().body;
    let system = json!({"role": "system", "content": "Be kind."});
    assert_eq!(asked["messages"][0], system);
    drop((ana, tab));

    let app = app.restart().await;
    let mut ana = TestSocket::open(app.address, &person, Some("mine")).await;
    let transcript = ana.ready["state"]["transcript"].to_string();
    assert!(transcript.contains("re one"), "{transcript}");
    turn(&app, &mut ana, "three").await;
    assert_eq!(shown(&app), ["two", "re two", "three"]);
}

/// Asserts S2.63.
#[tokio::test]
async fn what_is_too_large_for_the_model_is_counted_before_it_is_asked() {
    let small = [("SPL_LLM_MODEL", "gpt-3.5-turbo"), ("SPL_SANDBOX", "none")];
    let app = TestApp::start_with(&small).await;
    let mut ana = app.socket("acme").await;
    ana.say(&"word ".repeat(20_000)).await;
    let error = ana.wait_for("agent:error").await;
    assert_eq!(error.rest()["code"], "context_overflow");
    assert!(error.text().contains("reads 16385"), "{}", error.text());
    assert_eq!(app.model.requests().len(), 0, "the vendor was asked");
    turn(&app, &mut ana, "short").await;
    assert_eq!(shown(&app), ["short"]);
}

/// Text that a command prints, more than three of which do not fit the usual limit.
const PRINT: &str = "yes 0123456789abcde | head -c 32000";

/// What a request says, in the order in which it says it: role and text.
fn told(asked: &Value) -> Vec<(String, String)> {
    let messages = asked["messages"].as_array().unwrap();
    let text = |field: &Value| field.as_str().unwrap_or_default().to_owned();
    let told = messages
        .iter()
        .map(|said| (text(&said["role"]), text(&said["content"])));
    told.collect()
}

/// A turn of so many calls with a large result each, and its answer.
async fn turn_of_calls(app: &TestApp, ana: &mut TestSocket, text: &str, calls: usize) {
    for _ in 0..calls {
        app.model
            .will_call("execute_command", json!({"command": PRINT}));
    }
    app.model.will_say(&format!("re {text}"));
    ana.say(text).await;
    for _ in 0..calls {
        let card = ana.wait_for_approval().await;
        ana.approve(&card).await;
    }
    assert_eq!(ana.wait_for_answer().await, format!("re {text}"));
}

/// Asserts S0.12.
#[tokio::test]
async fn large_results_never_push_the_question_out_of_the_context() {
    let app = TestApp::with_sandbox().await;
    let mut ana = app.socket("acme").await;
    turn(&app, &mut ana, "answer in verse").await;
    turn_of_calls(&app, &mut ana, "what do they print?", 5).await;

    let asked = app.model.requests();
    for request in asked.iter().skip(1) {
        let told = told(&request.body);
        for question in ["answer in verse", "what do they print?"] {
            let is_there = told.iter().any(|(_, text)| text == question);
            assert!(is_there, "`{question}` is gone from {told:#?}");
        }
    }
    // The results that the model has read are short, the newest is whole.
    let last = told(&asked.last().unwrap().body);
    let results: Vec<&String> = last
        .iter()
        .filter(|(role, _)| role == "tool")
        .map(|(_, text)| text)
        .collect();
    assert_eq!(results.len(), 5);
    assert!(results[0].len() < 4_000, "{} bytes", results[0].len());
    assert!(results[0].contains("0123456789abcde"));
    assert!(results[0].contains("shortened"), "{}", results[0]);
    assert!(results[4].len() > 32_000, "{} bytes", results[4].len());

    // It is said once for the turn, with figures, and the transcript keeps every byte.
    let said = ana
        .log
        .iter()
        .filter(|said| said.name == "context:compacted");
    let said: Vec<&Value> = said.map(|said| &said.args[0]).collect();
    assert_eq!(said.len(), 1, "{said:?}");
    assert_eq!(said[0]["strategy"], "shorten-results");
    let tokens = |side: &str| said[0][side]["tokens"].as_u64().unwrap();
    assert!(tokens("after") < tokens("before"), "{said:?}");
    assert!(tokens("after") <= 30_000, "{said:?}");
    let outputs = ana.log.iter().filter(|said| said.name == "tool:output");
    for output in outputs {
        assert!(
            output.text().len() > 32_000,
            "{} bytes",
            output.text().len()
        );
    }

    // The next turn still reads what was asked and answered before.
    turn(&app, &mut ana, "and now?").await;
    let last = told(&app.model.requests().last().unwrap().body);
    let there = ["answer in verse", "what do they print?", "and now?"];
    assert!(
        there
            .iter()
            .all(|text| last.iter().any(|(_, said)| said == text)),
        "{last:#?}"
    );
}

#[tokio::test]
async fn what_is_stored_of_a_running_turn_holds_its_question() {
    let app = TestApp::with_sandbox().await;
    let person = app.person("acme").await;
    let mut ana = TestSocket::open(app.address, &person, Some("mine")).await;
    for _ in 0..5 {
        app.model
            .will_call("execute_command", json!({"command": PRINT}));
    }
    ana.say("what do they print?").await;
    for _ in 0..4 {
        let card = ana.wait_for_approval().await;
        ana.approve(&card).await;
    }
    ana.wait_for_approval().await;
    drop(ana);
    let app = app.restart().await;
    let mut ana = TestSocket::open(app.address, &person, Some("mine")).await;
    let card = ana.wait_for_approval().await;
    app.model.will_say("verse");
    ana.approve(&card).await;
    assert_eq!(ana.wait_for_answer().await, "verse");
    let last = told(&app.model.requests().last().unwrap().body);
    let is_there = last.iter().any(|(_, text)| text == "what do they print?");
    assert!(is_there, "{last:#?}");
}

/// Asserts S2.26.
#[tokio::test]
async fn a_turn_that_the_provider_finds_too_long_goes_on_with_shorter_results() {
    let app = TestApp::with_sandbox().await;
    let mut ana = app.socket("acme").await;
    for _ in 0..2 {
        app.model
            .will_call("execute_command", json!({"command": PRINT}));
    }
    app.model
        .then(Reply::fail(400, &[], OVERFLOW))
        .then_say("fits");
    ana.say("what do they print?").await;
    for _ in 0..2 {
        let card = ana.wait_for_approval().await;
        ana.approve(&card).await;
    }
    let cut = ana.wait_for("context:compacted").await;
    assert_eq!(cut.args[0]["strategy"], "shorten-results");
    assert_eq!(
        cut.args[0]["before"]["messages"],
        cut.args[0]["after"]["messages"]
    );
    assert_eq!(ana.wait_for_answer().await, "fits");
    let asked = app.model.requests();
    let told = told(&asked.last().unwrap().body);
    assert!(
        told.iter().any(|(_, text)| text == "what do they print?"),
        "{told:#?}"
    );
    let before = asked[asked.len() - 2].body.to_string().len();
    let after = asked.last().unwrap().body.to_string().len();
    assert!(after < before / 2 + 8_000, "{before} bytes, then {after}");
}

/// Asserts S3.35.
#[tokio::test]
async fn a_model_that_nobody_described_has_an_assumed_window() {
    let wide = [
        ("SPL_SANDBOX", "none"),
        ("SPL_CHAT_MAX_TOKENS", "0"),
        ("SPL_CHAT_MAX_MESSAGES", "0"),
    ];
    let app = TestApp::start_with(&wide).await;
    let mut ana = app.socket("acme").await;
    let long = "word ".repeat(12_000);
    for _ in 0..3 {
        let context = turn(&app, &mut ana, &long).await;
        assert_eq!(context["window"], 32_768);
        assert_eq!(context["windowAssumed"], true);
        assert!(context["nextInput"].as_u64().unwrap() > 12_000, "{context}");
    }
    // Three questions of 15,000 tokens and their answers do not fit nine tenths of it.
    let told = shown(&app);
    assert!(told.len() < 5, "{} messages", told.len());
    assert_eq!(told.last(), Some(&long));

    let set = [
        wide[0],
        wide[1],
        wide[2],
        ("SPL_LLM_CONTEXT_WINDOW", "1000000"),
    ];
    let app = app.restart_with(&set).await;
    let mut ana = app.socket("acme").await;
    for _ in 0..3 {
        let context = turn(&app, &mut ana, &long).await;
        assert_eq!(context["window"], 1_000_000);
        assert_eq!(context["windowAssumed"], false);
    }
    assert_eq!(shown(&app).len(), 5, "everything fits");
}

/// The names of the tools of a request, in their order.
fn tools(asked: &Value) -> Vec<String> {
    let tools = asked["tools"].as_array().unwrap();
    let names = tools.iter().map(|tool| tool["function"]["name"].as_str());
    names.map(|name| name.unwrap().to_owned()).collect()
}

/// The text of the first result in a request that is such a one.
fn result(asked: &Value, of: fn(&str) -> bool) -> Option<String> {
    let told = told(asked).into_iter();
    let mut results = told.filter(|(role, text)| role == "tool" && of(text));
    results.next().map(|(_, text)| text)
}

/// Requests that show something short offer the same tools, which begin with those before; gives these.
fn check_tools(asked: &[Asked]) -> Vec<String> {
    let first = tools(&asked[0].body);
    assert!(!first.contains(&"read_more".to_owned()), "{first:?}");
    let is_short = |body: &Value| result(body, |text| text.contains("read_more")).is_some();
    let since = asked.iter().position(|request| is_short(&request.body));
    for (at, request) in asked.iter().enumerate() {
        let names = tools(&request.body);
        assert_eq!(names[..first.len()], first);
        let more: &[&str] = if at < since.unwrap() {
            &[]
        } else {
            &["read_more"]
        };
        assert_eq!(
            names[first.len()..],
            *more,
            "request {at}, short since {since:?}"
        );
    }
    first
}

/// Asserts S2.9: what was shortened is read on out of the journal, nobody is asked, and the tools that the
/// vendor's cache begins with change once.
#[tokio::test]
async fn what_was_shortened_is_read_on_without_asking_anybody() {
    let app = TestApp::with_sandbox().await;
    let mut ana = app.socket("acme").await;
    turn_of_calls(&app, &mut ana, "what do they print?", 5).await;
    let asked = app.model.requests();
    let whole = result(&asked[1].body, |_| true).unwrap();
    let short = result(&asked[5].body, |text| text.contains("read_more")).unwrap();
    let (_, way) = short.split_once("with call `").unwrap();
    let (call, way) = way.split_once("` and offset ").unwrap();
    let (offset, _) = way.split_once(',').unwrap();
    let offset: usize = offset.parse().unwrap();
    assert_eq!(
        short[..offset],
        whole[..offset],
        "it says where the rest begins"
    );

    let first = check_tools(&asked);
    let args = json!({ "call": call, "offset": offset, "length": 100 });
    app.model
        .will_call("read_more", args.clone())
        .then_say("read");
    ana.say("read on").await;
    assert_eq!(ana.wait_for_answer().await, "read");
    let last = app.model.requests().last().unwrap().body.clone();
    let (_, part) = told(&last)
        .into_iter()
        .rfind(|(role, _)| role == "tool")
        .unwrap();
    let (part, rest) = part.split_once("\n[bytes ").unwrap();
    assert_eq!(part, &whole[offset..offset + 100]);
    assert!(rest.contains(&format!("next part begins at offset {}", offset + 100)));
    let cards = ana
        .log
        .iter()
        .filter(|said| said.name == "tool:approval_required");
    assert!(cards.count() <= 5, "a person was asked");
    assert_eq!(tools(&last).last().unwrap(), "read_more", "it stays");

    // What the context does not hold any more is not shown.
    assert_eq!(ana.ask("history:reset", &[json!({})]).await["ok"], true);
    app.model.will_call("read_more", args).then_say("gone");
    ana.say("and now?").await;
    assert_eq!(ana.wait_for_answer().await, "gone");
    let last = app.model.requests().last().unwrap().body.clone();
    let (_, answer) = told(&last)
        .into_iter()
        .rfind(|(role, _)| role == "tool")
        .unwrap();
    assert!(answer.contains("there is no result"), "{answer}");
    assert_eq!(tools(&last), first);
}
