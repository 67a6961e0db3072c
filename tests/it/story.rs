//! Stories of a session over the socket: ask, steer, stop, come back.

use serde_json::{Value, json};

use crate::model_stub::Reply;
use crate::support::{Log, Said, TestApp, TestSocket};

/// The scripts below call this tool; without a sandbox the app would not offer it.
async fn app() -> TestApp {
    TestApp::with_sandbox().await
}

/// Asserts S3.23, S3.39, S3.43.
#[tokio::test]
async fn a_message_is_answered_and_the_tokens_show() {
    let app = TestApp::start().await;
    app.model.will_say("Hello Ana");
    let mut ana = app.socket("acme").await;
    ana.say("hello").await;
    let answer = ana.wait_for("agent:response").await;
    assert_eq!(answer.text(), "Hello Ana");
    let usage = ana.wait_for("session:usage").await;
    assert!(
        usage.args[0]["totalTokens"].as_u64().unwrap() > 0,
        "{usage:?}"
    );
    let deltas: String = ana
        .log
        .iter()
        .filter(|said| said.name == "agent:delta")
        .map(Said::text)
        .collect();
    assert_eq!(deltas, "Hello Ana", "what was streamed is what was said");
}

/// An answer of a server that says nothing of what it used.
fn uncounted(text: &str) -> Reply {
    let chunks = [
        json!({"choices": [{"index": 0, "delta": {"content": text}}]}),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}),
    ];
    let frames = chunks.iter().map(|chunk| format!("data: {chunk}\n\n"));
    let frames = frames.chain(["data: [DONE]\n\n".to_owned()]);
    Reply::raw("text/event-stream", frames.map(Into::into).collect())
}

/// S1.3, S1.4, S1.8, S1.20: `gpt-4o` costs 2.50 USD a million tokens in, and 10 out.
#[tokio::test]
async fn a_turn_is_priced_by_what_the_provider_counted_and_else_by_an_estimate() {
    let app = TestApp::start_with(&[
        ("SPL_SANDBOX", "none"),
        ("LLM_PROVIDER", "openai"),
        ("OPENAI_API_KEY", "sk"),
        ("SPL_LLM_MODEL", "gpt-4o"),
        ("SPL_LLM_PROMPT_TEMPLATE", "Be kind."),
    ])
    .await;
    let mut ana = app.socket("acme").await;
    // Estimated are 6 tokens of system prompt, 6 of the question, and 1 of the answer.
    app.model.will(uncounted("abcd")).then_say("Hello");
    for (counts, cost, (tokens, total)) in [
        ((12, 1, true), 0.000_040, (13, 0.000_040)),
        ((11, 7, false), 0.000_098, (31, 0.000_138)),
    ] {
        ana.say("12345678").await;
        let answer = ana.wait_for("agent:response").await;
        let (input, output, is_estimated) = counts;
        let usage = &answer.rest()["usage"];
        assert_eq!(usage["inputTokens"], input, "{answer:?}");
        assert_eq!(usage["outputTokens"], output, "{answer:?}");
        assert_eq!(usage["isEstimated"], is_estimated, "{answer:?}");
        assert_eq!(answer.rest()["cost"], cost, "{answer:?}");
        assert!(answer.rest()["durationMs"].is_u64(), "{answer:?}");
        let usage = ana.wait_for("session:usage").await;
        assert_eq!(usage.args[0]["totalTokens"], tokens, "{usage:?}");
        assert_eq!(usage.args[0]["totalCost"], total, "{usage:?}");
        assert_eq!(usage.args[0]["unpricedRequests"], 0, "{usage:?}");
    }
}

/// S3.29: the operator hears of it, and the model reads its last words in the next turn.
#[tokio::test]
async fn a_turn_that_asks_too_often_ends_with_words_and_a_warning() {
    let log = Log::start();
    let limit = [("SPL_SANDBOX", "none"), ("SPL_CHAT_MAX_ITERATIONS", "2")];
    let app = TestApp::start_with(&limit).await;
    let mut ana = app.socket("acme").await;
    app.model
        .will_call("list_files", json!({}))
        .then_call("list_files", json!({"path": "."}))
        .then_say("Fine");
    ana.say("list").await;
    let answer = ana.wait_for("agent:response").await;
    let words = "Reached maximum tool call iterations without a final answer.";
    assert_eq!(answer.text(), words);
    assert_eq!(answer.rest()["finish"], "max_iterations");
    assert_eq!(app.model.requests().len(), 2);
    let lines = log.text();
    let is_told =
        |line: &str| line.contains("WARN") && line.contains("Reached maximum iterations (2).");
    assert!(lines.lines().any(is_told), "{lines}");
    ana.say("and now?").await;
    assert_eq!(ana.wait_for_answer().await, "Fine");
    let messages = app.model.requests().pop().unwrap().body["messages"].clone();
    let remembered = json!({"role": "assistant", "content": words});
    let messages = messages.as_array().unwrap();
    assert!(messages.contains(&remembered), "{messages:#?}");
}

/// What the model said so far, as the last request tells it.
fn said_by_the_model(app: &TestApp) -> Vec<Value> {
    let last = app.model.requests().pop().unwrap();
    let messages = last.body["messages"].as_array().unwrap().iter();
    let own = messages.filter(|message| message["role"] == "assistant");
    own.map(|message| message["content"].clone()).collect()
}

/// S3.45: and an error adds nothing to the history.
/// Asserts S3.22.
#[tokio::test]
async fn what_is_said_beside_calls_is_remembered_and_is_not_the_answer() {
    let app = TestApp::start().await;
    let call = ("no_such_tool", json!({}));
    app.model
        .will(Reply::answer("I look", &[call]))
        .then_say("Done")
        .then(Reply::fail(500, &[], "no JSON here"))
        .then_say("Better");
    let mut ana = app.socket("acme").await;
    ana.say("look").await;
    assert_eq!(ana.wait_for("agent:message").await.text(), "I look");
    assert_eq!(ana.wait_for_answer().await, "Done");
    let answers = ana.log.iter().filter(|said| said.name == "agent:response");
    assert_eq!(answers.count(), 1, "only the end is an answer");
    assert_eq!(said_by_the_model(&app), ["I look"]);
    ana.say("again").await;
    ana.wait_for("agent:error").await;
    ana.say("and again").await;
    assert_eq!(ana.wait_for_answer().await, "Better");
    assert_eq!(said_by_the_model(&app), ["I look", "Done"]);
}

#[tokio::test]
async fn a_running_command_is_stopped_with_its_processes() {
    let app = app().await;
    app.model
        .will_call(
            "execute_command",
            json!({"command": "echo started; sleep 25"}),
        )
        .then_say("Stopped it");
    let mut ana = app.socket("acme").await;
    ana.say("run").await;
    let card = ana.wait_for_approval().await;
    ana.approve(&card).await;
    ana.wait_where(|said| {
        said.name == "tool:progress"
            && said.args[0]["message"]
                .as_str()
                .is_some_and(|text| text.contains("started"))
    })
    .await;
    let stopped = std::time::Instant::now();
    assert_eq!(
        ana.ask("tool:cancel", &[json!({"callId": card["callId"]})])
            .await["ok"],
        true
    );
    let output = ana.wait_for("tool:output").await;
    assert_eq!(output.rest()["status"], "cancelled");
    assert!(stopped.elapsed().as_secs() < 10);
    assert_eq!(ana.wait_for_answer().await, "Stopped it");
}

#[tokio::test]
async fn stopping_a_streaming_turn_keeps_what_was_said() {
    let app = TestApp::start().await;
    app.model.will_say("one two three four five six").stall();
    let mut ana = app.socket("acme").await;
    ana.say("talk").await;
    ana.wait_for("agent:delta").await;
    app.model.stalled().await;
    assert_eq!(
        ana.ask("agent:cancel", &[json!({"turn": 99})]).await["ok"],
        true
    );
    assert_eq!(
        ana.ask("agent:cancel", &[json!({"turn": 1})]).await["ok"],
        true
    );
    let cancelled = ana.wait_for("agent:cancelled").await;
    let streamed: String = ana
        .log
        .iter()
        .filter(|said| said.name == "agent:delta")
        .map(Said::text)
        .collect();
    assert_eq!(cancelled.rest()["text"].as_str().unwrap(), streamed);
    app.model.idle().await;
    app.model.release();
    app.model.will_say("again");
    ana.say("and now").await;
    assert_eq!(ana.wait_for_answer().await, "again");
}

#[tokio::test]
async fn a_message_sent_while_a_turn_runs_is_read_by_the_next_request() {
    let app = TestApp::start().await;
    app.model.will_say("first").stall();
    let mut ana = app.socket("acme").await;
    ana.say("one").await;
    app.model.stalled().await;
    ana.say("two").await;
    app.model.will_say("second");
    app.model.release();
    assert_eq!(ana.wait_for_answer().await, "first");
    let thinking = ana.wait_for("agent:thinking").await;
    assert_eq!(thinking.args[0]["turn"], 2);
    assert_eq!(ana.wait_for_answer().await, "second");
}

/// Asserts S3.6, S3.30.
#[tokio::test]
async fn a_failed_turn_says_why_and_can_be_tried_again() {
    let log = Log::start();
    let app = TestApp::start().await;
    app.model
        .will_fail(500, &[], "no JSON here")
        .then_say("Better");
    let mut ana = app.socket("acme").await;
    ana.say("hello").await;
    let error = ana.wait_for("agent:error").await;
    assert_eq!(error.rest()["code"], "provider_unavailable");
    assert_eq!(error.rest()["retryable"], true);
    // S3.30: logged with its detail.
    let text = log.text();
    let logged = text
        .lines()
        .find(|line| line.contains("The model request ended for good"));
    assert!(
        logged.is_some_and(|line| line.contains("WARN") && line.contains("no JSON here")),
        "{text}"
    );
    assert_eq!(ana.ask("turn:retry", &[json!({})]).await["ok"], true);
    assert_eq!(ana.wait_for_answer().await, "Better");
}

#[tokio::test]
async fn a_reload_gives_the_same_state_and_a_resume_the_same_events() {
    let app = app().await;
    app.model
        .will_call("list_files", json!({}))
        .then_call("list_files", json!({"path": "."}))
        .then_say("End");
    let person = app.person("acme").await;
    let mut ana = TestSocket::open(app.address, &person, None).await;
    ana.say("list").await;
    let card = ana.wait_for_approval().await;
    let session = ana.session();
    let last_seq = ana.shown().last().unwrap().0;
    let journal = ana.ready["journalId"].clone();
    ana.vanish();

    let mut again = TestSocket::open(app.address, &person, Some(&session)).await;
    let state = &again.ready["state"];
    assert_eq!(state["running"]["phase"], "waiting");
    assert_eq!(state["queue"]["calls"][0]["callId"], card["callId"]);
    let asked = again.wait_for_approval().await;
    assert_eq!(asked, card, "the same card with its own `seq`");
    again.approve(&asked).await;
    let second = again.wait_for_approval().await;
    again.approve(&second).await;
    assert_eq!(again.wait_for_answer().await, "End");

    let auth = json!({
        "token": person.key, "sessionId": session, "lastSeq": last_seq, "journalId": journal,
    });
    let mut resumed = TestSocket::try_open(app.address, auth).await.unwrap();
    assert_eq!(resumed.ready["resumed"], true);
    assert_eq!(resumed.wait_for_answer().await, "End");
    let since: Vec<_> = again
        .shown()
        .into_iter()
        .filter(|(seq, _)| *seq > last_seq)
        .collect();
    let missed: Vec<_> = resumed
        .shown()
        .into_iter()
        .filter(|(seq, _)| *seq > last_seq)
        .collect();
    assert_eq!(missed, since);
    let seqs: Vec<u64> = missed.iter().map(|(seq, _)| *seq).collect();
    assert!(
        seqs.windows(2).all(|pair| pair[1] - pair[0] <= 1),
        "{seqs:?}"
    );
}

#[tokio::test]
async fn a_cursor_ahead_of_the_head_or_of_another_journal_gets_a_snapshot() {
    let app = TestApp::start().await;
    app.model.will_say("hi");
    let person = app.person("acme").await;
    let mut ana = TestSocket::open(app.address, &person, None).await;
    ana.say("hello").await;
    ana.wait_for_answer().await;
    for (last_seq, journal) in [
        (json!(999), ana.ready["journalId"].clone()),
        (json!(1), json!("jrn_00000000000000000000000000000000")),
    ] {
        let auth = json!({
            "token": person.key, "sessionId": ana.session(), "lastSeq": last_seq,
            "journalId": journal,
        });
        let again = TestSocket::try_open(app.address, auth).await.unwrap();
        assert_eq!(again.ready["resumed"], false);
        let events = again.ready["state"]["transcript"]["events"]
            .as_array()
            .unwrap()
            .len();
        assert!(events >= 3, "{}", again.ready);
    }
}

#[tokio::test]
async fn a_second_tab_follows_live_in_mid_stream() {
    let app = TestApp::start().await;
    app.model.will_say("alpha beta gamma delta").stall();
    let person = app.person("acme").await;
    let mut first = TestSocket::open(app.address, &person, None).await;
    first.say("talk").await;
    first.wait_for("agent:delta").await;
    app.model.stalled().await;
    let mut second = TestSocket::open(app.address, &person, Some(&first.session())).await;
    let so_far = second.ready["state"]["running"]["text"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(!so_far.is_empty());
    app.model.release();
    assert_eq!(second.wait_for_answer().await, "alpha beta gamma delta");
    let rest: String = second
        .log
        .iter()
        .filter(|said| said.name == "agent:delta")
        .map(Said::text)
        .collect();
    assert_eq!(format!("{so_far}{rest}"), "alpha beta gamma delta");
    assert_eq!(first.wait_for_answer().await, "alpha beta gamma delta");
}

#[tokio::test]
async fn a_stop_in_order_keeps_the_card_and_the_session_goes_on_afterwards() {
    let app = app().await;
    app.model
        .will_call("list_files", json!({}))
        .then_say("Listed");
    let person = app.person("acme").await;
    let mut ana = TestSocket::open(app.address, &person, None).await;
    ana.say("list").await;
    let card = ana.wait_for_approval().await;
    let session = ana.session();
    let app = app.restart().await;
    ana.wait_where(|said| said.name == "error" && said.rest()["code"] == "server_stopping")
        .await;
    let mut again = TestSocket::open(app.address, &person, Some(&session)).await;
    let asked = again.wait_for_approval().await;
    assert_eq!(asked["callId"], card["callId"]);
    again.approve(&asked).await;
    assert_eq!(again.wait_for_answer().await, "Listed");
}

#[tokio::test]
async fn a_named_session_belongs_to_its_caller_and_is_found_again() {
    let app = TestApp::start().await;
    app.model.will_say("hi");
    let (ana, bo) = (app.person("acme").await, app.person("acme").await);
    let mut socket = TestSocket::open(app.address, &ana, Some("my-notes")).await;
    socket.say("hello").await;
    socket.wait_for_answer().await;
    let again = TestSocket::open(app.address, &ana, Some("my-notes")).await;
    assert_eq!(again.session(), socket.session());
    let other = TestSocket::open(app.address, &bo, Some("my-notes")).await;
    assert_ne!(other.session(), socket.session());
}

/// Asserts S2.22.
#[tokio::test]
async fn without_a_key_every_client_is_told_so_and_let_go() {
    let env = [
        ("SPL_SANDBOX", "none"),
        ("LLM_PROVIDER", "openai"),
        ("OPENAI_BASE_URL", ""),
    ];
    let app = TestApp::start_with(&env).await;
    let ana = app.person("acme").await;
    let auth = json!({ "token": ana.key });
    let refused = TestSocket::try_open(app.address, auth).await.err().unwrap();
    assert_eq!(refused, "missing_api_key");
}

#[tokio::test]
async fn without_a_sandbox_the_model_is_offered_no_tools_and_a_call_is_answered_unasked() {
    let app = TestApp::start().await;
    app.model
        .will_call("list_files", json!({}))
        .then_say("There are no tools");
    let mut ana = app.socket("acme").await;
    assert_eq!(ana.ready["sandbox"]["kind"], "none");
    ana.say("list").await;
    let output = ana.wait_for("tool:output").await;
    assert_eq!(output.rest()["status"], "failed");
    assert_eq!(ana.wait_for_answer().await, "There are no tools");
    assert!(
        !ana.log
            .iter()
            .any(|said| said.name == "tool:approval_required")
    );
}

#[tokio::test]
async fn what_was_acknowledged_is_listed_at_once() {
    let app = TestApp::start().await;
    let person = app.person("acme").await;
    for round in 0..8 {
        app.model.will_say("hi");
        let mut ana = TestSocket::open(app.address, &person, None).await;
        ana.say("hello").await;
        let list = TestApp::http()
            .get(app.url("/api/sessions"))
            .bearer_auth(&person.key);
        let list: Value = list.send().await.unwrap().json().await.unwrap();
        let items = list["items"].as_array().unwrap();
        assert_eq!(items.len(), round + 1);
        assert!(
            items
                .iter()
                .any(|item| item["id"] == ana.session().as_str()),
            "{list}"
        );
        ana.wait_for_answer().await;
    }
}

/// S3.18.
#[tokio::test]
async fn who_joins_is_told_provider_model_and_both_limits() {
    let env = [
        ("SPL_SANDBOX", "none"),
        ("SPL_LLM_MODEL", "gpt-4o"),
        ("SPL_CHAT_MAX_TOKENS", "20000"),
    ];
    let app = TestApp::start_with(&env).await;
    let ana = app.socket("acme").await;
    let told = |ready: &Value| {
        let names = ["provider", "model", "configuredMaxTokens", "modelMaxTokens"];
        json!(names.map(|name| ready[name].clone()))
    };
    let expected = json!(["openai-compatible", "gpt-4o", 20_000, 128_000]);
    assert_eq!(told(&ana.ready), expected);
    drop(ana);
    let unlimited = [env[0], env[1], ("SPL_CHAT_MAX_TOKENS", "0")];
    let app = app.restart_with(&unlimited).await;
    let ana = app.socket("acme").await;
    let expected = json!(["openai-compatible", "gpt-4o", null, 128_000]);
    assert_eq!(told(&ana.ready), expected);
}

/// S3.43: what each event of a turn carries. A call with wrong arguments has a result, but was never begun.
#[tokio::test]
async fn the_events_of_a_turn_carry_what_the_requirements_say() {
    let app = app().await;
    let right = ("list_files", json!({"path": "."}));
    let wrong = ("read_file", json!({"path": 7}));
    app.model
        .will(Reply::answer("Two calls", &[right, wrong]))
        .then_say("The answer");
    let mut ana = app.socket("acme").await;
    ana.say("hello").await;
    let card = ana.wait_for_approval().await;
    ana.approve(&card).await;
    assert_eq!(ana.wait_for_answer().await, "The answer");
    app.model
        .will_fail(400, &[], r#"{"error": {"message": "a wrong request"}}"#);
    ana.say("again").await;
    ana.wait_for("agent:error").await;
    assert_eq!(ana.ask("history:reset", &[json!({})]).await["ok"], true);
    ana.wait_for("history:reset").await;
    let of = |name: &str| {
        ana.log
            .iter()
            .filter(|said| said.name == name)
            .collect::<Vec<_>>()
    };

    let thinking = of("agent:thinking");
    assert_eq!(thinking.len(), 3, "one for each request");
    assert_eq!(thinking[0].args.len(), 1, "no text, only its place");
    let asked = of("agent:message");
    let calls = asked[0].rest()["calls"].as_array().unwrap();
    let told: Vec<(&Value, &Value)> = calls.iter().map(|it| (&it["name"], &it["args"])).collect();
    let expected = (json!("list_files"), json!({"path": "."}));
    assert_eq!(told[0], (&expected.0, &expected.1));
    assert_eq!(told[1].0, "read_file");
    let started: Vec<&Value> = of("tool:started")
        .iter()
        .map(|it| &it.rest()["name"])
        .collect();
    assert_eq!(started, ["list_files"], "what is wrong is not begun");
    let results = of("tool:output");
    assert_eq!(results.len(), 2, "{results:?}");
    for result in results {
        let is_wrong = result.rest()["name"] == "read_file";
        let status = if is_wrong { "failed" } else { "completed" };
        assert_eq!(result.rest()["status"], status, "{result:?}");
        assert!(!is_wrong || result.text().contains("path"), "{result:?}");
    }
    let answers = of("agent:response");
    assert_eq!((answers.len(), answers[0].text()), (1, "The answer"));
    let error = of("agent:error").pop().unwrap();
    assert!(error.text().contains("a wrong request"), "{error:?}");
    assert_eq!(error.rest()["code"], "provider_rejected");
    let reset = of("history:reset");
    let fields: Vec<&String> = reset[0].rest().as_object().unwrap().keys().collect();
    assert_eq!((reset[0].args.len(), fields.len()), (1, 2), "{fields:?}");
}
