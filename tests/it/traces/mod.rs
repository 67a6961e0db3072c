//! Traces as a collector gets them: what spans there are, what they say and what they never say.

mod canaries;
mod collector;
mod full;

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::process::Command;

use crate::model_stub::{ModelStub, Reply};
use crate::support::{DEADLINE, TestApp, TestSocket};
use collector::{Collector, Span};

/// A server with sandboxed tools whose traces go to that collector.
async fn start(collector: &Collector, extra: &[(&str, &str)]) -> TestApp {
    let env = collector.env();
    let mut all: Vec<(&str, &str)> = vec![("SPL_SANDBOX", "bubblewrap")];
    all.extend(
        env.iter()
            .map(|(name, value)| (name.as_str(), value.as_str())),
    );
    all.extend(extra);
    TestApp::start_with(&all).await
}

fn names(trace: &[Span]) -> Vec<&str> {
    trace.iter().map(|span| span.name.as_str()).collect()
}

fn called<'a>(trace: &'a [Span], name: &str) -> &'a Span {
    let mut found = trace.iter().filter(|span| span.name == name);
    let span = found
        .next()
        .unwrap_or_else(|| panic!("no `{name}` in {trace:#?}"));
    assert!(found.next().is_none(), "`{name}` twice in {trace:#?}");
    span
}

/// The facts without those that name whose they are, which are checked.
fn own_facts(span: &Span, socket: &TestSocket) -> Value {
    let mut facts: Map<String, Value> = span.facts.clone();
    let session = facts.remove("gen_ai.conversation.id");
    assert_eq!(session, Some(json!(socket.session())));
    assert!(facts.remove("sepal.tenant.id").is_some());
    facts.remove("sepal.first_token_ms");
    Value::Object(facts)
}

#[tokio::test]
async fn a_turn_with_two_calls_is_one_trace_of_six_spans_below_it() {
    let collector = Collector::start().await;
    let app = start(&collector, &[]).await;
    let write = json!({ "path": "a.txt", "content": "x" });
    let calls = [("write_file", write), ("list_files", json!({}))];
    app.model.will(Reply::answer("", &calls)).then_say("Done");
    let ana = app.person("acme").await;
    let mut socket = TestSocket::open(app.address, &ana, None).await;
    socket.say("make a file").await;
    let first = socket.wait_for_approval().await;
    socket.approve(&first).await;
    let second = socket.wait_for_approval().await;
    socket.approve(&second).await;
    socket.wait_for_answer().await;
    app.stop().await;

    let traces = collector.traces();
    assert_eq!(traces.len(), 1, "{traces:#?}");
    let trace = &traces[0];
    let mut all = names(trace);
    all.sort_unstable();
    let expected = [
        "chat stub",
        "chat stub",
        "execute_tool list_files",
        "execute_tool write_file",
        "invoke_agent sepal",
        "wait_for_approval list_files",
        "wait_for_approval write_file",
    ];
    assert_eq!(all, expected);
    for span in trace {
        assert_eq!(span.facts["sepal.tenant.id"], ana.tenant.as_str());
        assert_eq!(span.kind, if span.name == "chat stub" { 3 } else { 1 });
        assert!(!span.is_error && span.events.is_empty(), "{span:#?}");
    }
    check_turn(&own_facts(&trace[0], &socket));
    let chats = trace.iter().filter(|span| span.name == "chat stub");
    for (chat, asked) in chats.zip([(1, "tool_calls"), (2, "stop")]) {
        check_chat(&own_facts(chat, &socket), asked);
    }
    for (card, tool) in [(&first, "write_file"), (&second, "list_files")] {
        check_call(trace, &socket, card, tool);
    }
}

fn check_turn(turn: &Value) {
    let expected = json!({
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "sepal",
        "gen_ai.provider.name": "openai-compatible",
        "gen_ai.request.model": "stub",
        "gen_ai.response.finish_reasons": ["stop"],
        "sepal.turn": 1,
        "sepal.model_requests": 2,
        "sepal.outcome": "answered",
    });
    assert_eq!(*turn, expected);
}

fn check_chat(chat: &Value, (iteration, finish): (u32, &str)) {
    for (name, value) in [
        ("gen_ai.operation.name", json!("chat")),
        ("gen_ai.provider.name", json!("openai-compatible")),
        ("sepal.provider", json!("openai-compatible")),
        ("gen_ai.request.model", json!("stub")),
        ("gen_ai.response.finish_reasons", json!([finish])),
        ("sepal.iteration", json!(iteration)),
        ("sepal.outcome", json!("answered")),
    ] {
        assert_eq!(chat[name], value, "{name} of {chat}");
    }
    for name in ["gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"] {
        assert!(chat[name].as_i64().unwrap() > 0, "{name} of {chat}");
    }
}

fn check_call(trace: &[Span], socket: &TestSocket, card: &Value, tool: &str) {
    let (waited, ran) = (
        called(trace, &format!("wait_for_approval {tool}")),
        called(trace, &format!("execute_tool {tool}")),
    );
    assert!(waited.end <= ran.start, "{waited:#?} {ran:#?}");
    let expected = json!({
        "gen_ai.tool.name": tool,
        "gen_ai.tool.call.id": card["callId"],
        "sepal.turn": 1,
        "sepal.approval.verdict": "approved",
        "sepal.approval.by": "person",
    });
    assert_eq!(own_facts(waited, socket), expected);
    let expected = json!({
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": tool,
        "gen_ai.tool.call.id": card["callId"],
        "sepal.mcp.server": card["server"],
        "sepal.turn": 1,
        "sepal.approval.by": "person",
        "sepal.outcome": "completed",
    });
    assert_eq!(own_facts(ran, socket), expected);
}

#[tokio::test]
async fn a_failed_attempt_marks_its_request_and_a_failed_request_its_turn() {
    let collector = Collector::start().await;
    let retry = [
        ("SPL_LLM_RETRY_MAX_RETRIES", "1"),
        ("SPL_LLM_RETRY_INITIAL_BACKOFF", "0.01"),
    ];
    let app = start(&collector, &retry).await;
    app.model.will_fail(500, &[], "broken").then_say("Hello");
    let mut socket = app.socket("acme").await;
    socket.say("one").await;
    socket.wait_for_answer().await;
    app.model
        .will_fail(500, &[], "broken")
        .will_fail(500, &[], "broken");
    socket.say("two").await;
    socket.wait_for("agent:error").await;
    app.stop().await;

    let traces = collector.traces();
    assert_eq!(traces.len(), 2, "{traces:#?}");
    for (trace, is_answered) in traces.iter().zip([true, false]) {
        assert_eq!(names(trace), ["invoke_agent sepal", "chat stub"]);
        let (turn, chat) = (&trace[0], &trace[1]);
        let events: Vec<_> = chat.events.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(events, ["sepal.retry"]);
        let again = &chat.events[0].1;
        assert_eq!(again["error.type"], "provider_unavailable");
        assert_eq!(again["sepal.next_attempt"], 2);
        let outcome = if is_answered { "answered" } else { "failed" };
        for span in [turn, chat] {
            assert_eq!(span.is_error, !is_answered);
            assert_eq!(span.facts["sepal.outcome"], outcome);
            let code = (!is_answered).then(|| json!("provider_unavailable"));
            assert_eq!(span.facts.get("error.type"), code.as_ref());
        }
    }
}

#[tokio::test]
async fn a_rejected_call_has_waited_and_never_ran() {
    let collector = Collector::start().await;
    let app = start(&collector, &[]).await;
    app.model
        .will_call("list_files", json!({}))
        .then_say("Then not");
    let mut socket = app.socket("acme").await;
    socket.say("list").await;
    let card = socket.wait_for_approval().await;
    socket.decide(&card, false).await;
    socket.wait_for_answer().await;
    // Names and arguments that cannot be are answered to the model, and nobody is asked.
    app.model
        .will_call("made_up_by_the_model", json!({}))
        .then_say("Sorry");
    socket.say("again").await;
    socket.wait_for_answer().await;
    // A turn that is stopped while it waits.
    app.model
        .will_call("list_files", json!({ "path": "other" }));
    socket.say("and again").await;
    socket.wait_for_approval().await;
    socket.ask("agent:cancel", &[json!({ "turn": 3 })]).await;
    socket.wait_for("agent:cancelled").await;
    app.stop().await;

    let traces = collector.traces();
    assert_eq!(traces.len(), 3, "{traces:#?}");
    let waited = called(&traces[0], "wait_for_approval list_files");
    assert_eq!(waited.facts["sepal.approval.verdict"], "rejected");
    assert_eq!(waited.facts["sepal.approval.by"], "person");
    assert_eq!(traces[0].len(), 4, "{traces:#?}");
    let never = called(&traces[1], "execute_tool");
    assert_eq!(never.facts["error.type"], "invalid_arguments");
    assert_eq!(never.facts.get("gen_ai.tool.name"), None);
    assert_eq!(never.start, never.end);
    assert!(!collector.has_seen("made_up_by_the_model"));
    assert_eq!(traces[1].len(), 4, "{traces:#?}");
    let waited = called(&traces[2], "wait_for_approval list_files");
    assert_eq!(waited.facts["sepal.approval.verdict"], "cancelled");
    assert_eq!(traces[2][0].facts["sepal.outcome"], "cancelled");
    assert!(!traces[2][0].is_error);
}

#[tokio::test]
async fn what_people_models_and_tools_say_and_keys_are_never_told() {
    let collector = Collector::start().await;
    let key = ("OPENAI_API_KEY", "sk-the-key-of-the-provider");
    let app = start(&collector, &[key]).await;
    let args = json!({ "command": "echo in-the-arguments | tr a-z A-Z; echo stderr-words >&2" });
    app.model
        .will(Reply::answer(
            "beside-the-call",
            &[("execute_command", args)],
        ))
        .then_say("in-the-answer");
    let ana = app.person("acme").await;
    let mut socket = TestSocket::open(app.address, &ana, None).await;
    socket.say("in-the-message").await;
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    socket.wait_for_answer().await;
    app.model
        .will_fail(400, &[], r#"{"error":{"message":"in-the-refusal"}}"#);
    socket.say("in-the-message").await;
    socket.wait_for("agent:error").await;
    // A query string of ours, with a key.
    let url = app.url(&format!("/api/sessions?token={}", ana.key));
    TestApp::http().get(url).send().await.unwrap();
    let asked = app.model.requests();
    for asked in &asked {
        assert!(!asked.headers.contains_key("traceparent"), "{asked:?}");
    }
    assert_eq!(
        asked[0].authorization.as_deref(),
        Some("Bearer sk-the-key-of-the-provider")
    );
    app.stop().await;

    assert_eq!(collector.traces().len(), 2);
    assert!(collector.has_seen("execute_command"));
    for secret in [
        "in-the-message",
        "in-the-arguments",
        "IN-THE-ARGUMENTS",
        "stderr-words",
        "beside-the-call",
        "in-the-answer",
        "in-the-refusal",
        "sk-the-key-of-the-provider",
        ana.key.as_str(),
        collector::KEY,
        "token=",
    ] {
        assert!(!collector.has_seen(secret), "{secret}");
    }
}

#[tokio::test]
async fn tenants_are_told_apart_in_every_span() {
    let collector = Collector::start().await;
    let app = start(&collector, &[]).await;
    let mut people = Vec::new();
    for tenant in ["acme", "zeta"] {
        let person = app.person(tenant).await;
        app.model
            .will_call("list_files", json!({}))
            .then_say("Done");
        let mut socket = TestSocket::open(app.address, &person, Some("same-name")).await;
        socket.say("list").await;
        let card = socket.wait_for_approval().await;
        socket.approve(&card).await;
        socket.wait_for_answer().await;
        people.push((person, socket.session()));
    }
    app.stop().await;
    let traces = collector.traces();
    assert_eq!(traces.len(), 2, "{traces:#?}");
    for (trace, (person, session)) in traces.iter().zip(&people) {
        assert_eq!(trace.len(), 5, "{trace:#?}");
        for span in trace {
            assert_eq!(span.facts["sepal.tenant.id"], person.tenant.as_str());
            assert_eq!(span.facts["gen_ai.conversation.id"], session.as_str());
        }
    }
}

#[tokio::test]
async fn a_turn_that_outlives_its_process_stays_one_trace() {
    let collector = Collector::start().await;
    let app = start(&collector, &[]).await;
    app.model.will_call("list_files", json!({}));
    let ana = app.person("acme").await;
    let mut socket = TestSocket::open(app.address, &ana, None).await;
    socket.say("list").await;
    socket.wait_for_approval().await;
    let session = socket.session();
    drop(socket);
    let app = app.restart().await;
    app.model.will_say("Done");
    let mut socket = TestSocket::open(app.address, &ana, Some(&session)).await;
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    socket.wait_for_answer().await;
    app.stop().await;
    let traces = collector.traces();
    assert_eq!(traces.len(), 1, "{traces:#?}");
    assert_eq!(traces[0].len(), 5, "{traces:#?}");
}

#[tokio::test]
async fn a_collector_that_is_busy_is_asked_again() {
    let collector = Collector::start().await;
    let app = start(&collector, &[]).await;
    collector.will_fail(&[503]);
    app.model.will_say("Hello");
    let mut socket = app.socket("acme").await;
    socket.say("hi").await;
    socket.wait_for_answer().await;
    collector.arrived("invoke_agent").await;
    app.stop().await;
    assert_eq!(collector.traces().len(), 1);
}

#[tokio::test]
async fn a_collector_that_is_away_or_silent_holds_nobody_up() {
    // Nobody listens there; and somebody listens who never answers.
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let gone_at = gone.local_addr().unwrap();
    drop(gone);
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent_at = silent.local_addr().unwrap();
    for (at, limit) in [(gone_at, 4), (silent_at, 9)] {
        let endpoint = format!("http://{at}");
        let env = [
            ("SPL_SANDBOX", "none"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()),
        ];
        let app = TestApp::start_with(&env).await;
        app.model.will_say("Hello");
        let mut socket = app.socket("acme").await;
        socket.say("hi").await;
        assert_eq!(socket.wait_for_answer().await, "Hello");
        let begun = Instant::now();
        app.stop().await;
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(limit), "{at}: {took:?}");
    }
}

#[tokio::test]
async fn one_question_on_the_command_line_leaves_its_trace() {
    let (collector, model) = (Collector::start().await, ModelStub::start().await);
    model.will_say("It is noon.");
    let folder = TempDir::new().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_sepal"));
    command
        .env_clear()
        .envs(collector.env())
        .env("LLM_PROVIDER", "openai-compatible")
        .env("OPENAI_BASE_URL", model.base_url())
        .env("SPL_LLM_MODEL", "stub")
        .env("SPL_SANDBOX", "none")
        .current_dir(folder.path())
        .args(["agent", "--call", "What time is it?"])
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let output = tokio::time::timeout(DEADLINE, command.output()).await;
    let output = output.unwrap().unwrap();
    assert!(output.status.success(), "{output:?}");
    let traces = collector.traces();
    assert_eq!(traces.len(), 1, "{traces:#?}");
    assert_eq!(names(&traces[0]), ["invoke_agent sepal", "chat stub"]);
}
