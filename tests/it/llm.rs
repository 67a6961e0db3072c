//! The model layer against a strict stand-in of Chat Completions on loopback.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use crate::model_stub::{ModelStub, Reply};
use crate::support::Log;
use axum::body::Bytes;
use futures::StreamExt;
use secrecy::SecretString;
use sepal::domain::{CallId, Code, Entry, ModelCall, Native, TokenUsage, Tool, ToolAnnotations};
use sepal::llm::{
    self, Answer, Api, AskedCall, CacheTtl, Collector, CompactionSetting, Error, Finish,
    ModelEvent, Progress, Provider, ProviderKind, Refusal, Request, RetryConfig, Settings,
};
use sepal::net;
use serde_json::{Value, json};
use tokio::time::timeout;

/// Longer than anything here takes; reached only when something hangs.
const DEADLINE: Duration = Duration::from_secs(20);
const KEY: &str = "sk-very-secret";

fn provider(base_url: &str) -> Arc<dyn Provider> {
    net::install_tls();
    let settings = Settings {
        id: "stub".to_owned(),
        kind: ProviderKind::OpenAiCompatible,
        api_key: Some(SecretString::from(KEY)),
        base_url: Some(base_url.to_owned()),
        api: Api::Auto,
        cache_ttl: CacheTtl::default(),
        compaction: CompactionSetting::default(),
        pace: Duration::ZERO,
    };
    llm::connect(settings, net::client(&net::Settings::default()).unwrap()).unwrap()
}

fn user(text: &str) -> Entry {
    Entry::User {
        seq: 1,
        text: text.to_owned(),
        attachments: vec![],
    }
}

fn request(entries: Vec<Entry>) -> Request {
    Request {
        model: "gpt-4o".to_owned(),
        system: Some("Be kind.".into()),
        entries: entries.into(),
        contents: sepal::llm::Contents::default(),
        deferral: None,
        tools: Arc::from([tool(
            "read_file",
            json!({"type": "object", "properties": {}}),
        )]),
        temperature: None,
        effort: None,
        max_tokens: None,
        max_output: None,
        affordable: None,
        compacting: None,
    }
}

fn tool(name: &str, input_schema: Value) -> Tool {
    Tool {
        name: name.to_owned(),
        title: None,
        description: "A tool".to_owned(),
        input_schema,
        output_schema: None,
        annotations: ToolAnnotations::default(),
        needs_tasks: false,
        view: None,
        runs_as_task: false,
    }
}

async fn collect(provider: &Arc<dyn Provider>, request: Request) -> Result<Answer, Error> {
    let mut collector = Collector::default();
    let mut stream = provider.stream(request).await?;
    while let Some(event) = timeout(DEADLINE, stream.next()).await.unwrap() {
        collector.push(&event?);
    }
    Ok(collector.finish())
}

/// Asks once and gives the answer to one question.
async fn tell(stub: &ModelStub) -> Result<Answer, Error> {
    collect(&provider(&stub.base_url()), request(vec![user("hi")])).await
}

/// Asserts S3.2.
#[tokio::test]
async fn text_usage_and_the_reason_come_whole() {
    let stub = ModelStub::start().await;
    stub.will_say("Hello, wörld and 😀");
    let answer = tell(&stub).await.unwrap();
    assert_eq!(answer.text, "Hello, wörld and 😀");
    assert_eq!(answer.finish, Some(Finish::Stop));
    let usage = answer.usage.unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens), (11, 7));
    let asked = stub.requests().remove(0);
    assert_eq!(asked.authorization, Some(format!("Bearer {KEY}")));
    assert_eq!(
        asked.body["messages"][1],
        json!({"role": "user", "content": "hi"})
    );
}

/// Asserts S2.38, S3.21, S3.22, O3.
#[tokio::test]
async fn calls_go_out_and_come_back_paired() {
    let stub = ModelStub::start().await;
    let calls = [
        ("read_file", json!({"path": "a"})),
        ("read_file", json!({"path": "b"})),
    ];
    stub.will(Reply::answer("I read two.", &calls))
        .then_say("Done");
    let provider = provider(&stub.base_url());
    let mut entries = vec![user("read")];
    let answer = collect(&provider, request(entries.clone())).await.unwrap();
    assert_eq!(
        (answer.text.as_str(), answer.finish),
        ("I read two.", Some(Finish::Calls))
    );
    let calls: Vec<ModelCall> = answer
        .calls
        .into_iter()
        .enumerate()
        .map(|(index, asked)| ModelCall {
            id: CallId::new(1, index),
            provider_id: asked.provider_id,
            name: asked.name,
            args: asked.args.unwrap(),
        })
        .collect();
    assert_eq!(calls[1].args, json!({"path": "b"}));
    entries.push(Entry::Assistant {
        text: answer.text,
        calls: calls.clone(),
        native: answer.native,
    });
    for call in calls.iter().rev() {
        entries.push(user("and hurry"));
        entries.push(Entry::ToolResult {
            call_id: call.id.clone(),
            provider_id: call.provider_id.clone(),
            name: call.name.clone(),
            text: format!("content of {}", call.args["path"]),
            is_error: false,
            attachments: vec![],
        });
    }
    let answer = collect(&provider, request(entries)).await.unwrap();
    assert_eq!(answer.text, "Done");
    let messages = stub.requests().remove(1).body["messages"].clone();
    assert_eq!(messages[3]["content"], "content of \"a\"");
    assert_eq!(
        messages[5],
        json!({"role": "user", "content": "and hurry\n\nand hurry"})
    );
}

/// What old or foreign data may hold: orphans of both directions, empty messages, and arguments that
/// are no objects.
fn broken_history() -> Vec<Entry> {
    let call = |index, args| ModelCall {
        id: CallId::new(1, index),
        provider_id: "same".to_owned(),
        name: "files.read file".to_owned(),
        args,
    };
    let calls = vec![
        call(0, json!("{oops")),
        call(1, json!(null)),
        call(2, json!([1])),
        call(3, json!({})),
    ];
    let result = |id| Entry::ToolResult {
        call_id: id,
        provider_id: "gone".to_owned(),
        name: "x".to_owned(),
        text: "r".to_owned(),
        is_error: true,
        attachments: vec![],
    };
    let answered = |index| result(CallId::new(1, index));
    let empty = Entry::Assistant {
        text: String::new(),
        calls: vec![],
        native: None,
    };
    let said = Entry::Assistant {
        text: String::new(),
        calls,
        native: None,
    };
    vec![
        result(CallId::new(9, 9)),
        empty,
        user(""),
        said,
        answered(0),
        answered(1),
        answered(2),
        Entry::Note {
            text: "n".to_owned(),
        },
    ]
}

/// S1.16, S1.21: orphans of both directions are found, left out and logged.
#[tokio::test]
async fn what_history_left_broken_is_still_a_valid_request() {
    let log = Log::start();
    let stub = ModelStub::start().await;
    stub.will_say("ok");
    let mut request = request(broken_history());
    let unfit = [
        "files.read file",
        "ö",
        "",
        &"x".repeat(99),
        "twice",
        "twice",
    ];
    request.tools = unfit.map(|name| tool(name, json!(null))).into();
    request.max_tokens = Some(0);
    collect(&provider(&stub.base_url()), request).await.unwrap();
    let body = &stub.requests()[0].body;
    assert_eq!(body["tools"].as_array().unwrap().len(), 5);
    let calls = body["messages"][1]["tool_calls"].as_array().unwrap();
    assert_eq!(calls.len(), 3, "{calls:?}");
    let results = body["messages"].as_array().unwrap().iter();
    let results = results.filter(|message| message["role"] == "tool");
    assert_eq!(results.count(), 3);
    let lines = log.text();
    for orphan in [
        "Leave out the call `call_1_3`: it has no result",
        "Leave out the result of `call_9_9`: its call is gone",
    ] {
        let line = lines.lines().find(|line| line.contains(orphan));
        assert!(line.is_some_and(|line| line.contains("WARN")), "{lines}");
    }
}

/// S1.18: every field of an answer, once.
#[test]
fn every_field_of_an_answer_is_collected() {
    let usage = TokenUsage {
        input_tokens: 11,
        cached_tokens: 5,
        cache_write_tokens: 1,
        cache_write_long_tokens: 1,
        output_tokens: 7,
        reasoning_tokens: 2,
        is_estimated: false,
    };
    let native = Native {
        family: "f".to_owned(),
        blocks: json!(["b"]),
        compacts: false,
    };
    let mut collector = Collector::default();
    let begun = |index, name: &str| ModelEvent::CallStarted {
        index,
        provider_id: format!("id{index}"),
        name: name.to_owned(),
    };
    let args = |json: &str| ModelEvent::CallArguments {
        index: 0,
        json: json.to_owned(),
    };
    for event in [
        ModelEvent::Reasoning("h".to_owned()),
        ModelEvent::Text("Hel".to_owned()),
        ModelEvent::Reasoning("m".to_owned()),
        ModelEvent::Text("lo".to_owned()),
        begun(0, "read_file"),
        args("{\"path\":"),
        args("\"a\"}"),
        begun(1, ""),
        ModelEvent::Native(native.clone()),
        ModelEvent::Usage(TokenUsage::default()),
        ModelEvent::Usage(usage),
        ModelEvent::Finished(Finish::Calls),
    ] {
        collector.push(&event);
    }
    let call = AskedCall {
        provider_id: "id0".to_owned(),
        name: "read_file".to_owned(),
        args: Ok(json!({"path": "a"})),
    };
    let expected = Answer {
        text: "Hello".to_owned(),
        reasoning: "hm".to_owned(),
        calls: vec![call],
        dropped_calls: 1,
        usage: Some(usage),
        finish: Some(Finish::Calls),
        stop_detail: None,
        compacted: None,
        native: Some(native),
    };
    assert_eq!(collector.finish(), expected);
}

#[tokio::test]
async fn a_stream_may_be_split_at_every_byte_and_written_in_every_style() {
    let plain = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"wör\"}}]}\n\n\
        : a comment\n\nevent: unknown\nid: 3\ndata: {\"type\":\"ping\"}\n\n\
        data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"ld\"},\"finish_reason\":\"stop\"}]}\n\n";
    let crlf = plain.replace('\n', "\r\n");
    let done = format!("{plain}data: [DONE]\n\n");
    let unfinished = plain.trim_end();
    let stub = ModelStub::start().await;
    for text in [plain, &crlf, &done, unfinished] {
        let bytes = text.bytes().map(|byte| Bytes::from(vec![byte])).collect();
        for frames in [vec![Bytes::from(text.to_owned())], bytes] {
            stub.will(Reply::raw("text/event-stream", frames));
            let answer = tell(&stub).await.unwrap();
            assert_eq!(
                (answer.text.as_str(), answer.finish),
                ("wörld", Some(Finish::Stop)),
                "{text}"
            );
        }
    }
}

#[tokio::test]
async fn a_plain_answer_instead_of_a_stream_is_read() {
    let stub = ModelStub::start().await;
    let body = json!({"choices": [{"message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2}});
    for content_type in ["application/json", "text/event-stream", "text/plain"] {
        stub.will(Reply::raw(
            content_type,
            vec![Bytes::from(body.to_string())],
        ));
        let answer = tell(&stub).await.unwrap();
        assert_eq!(
            (answer.text.as_str(), answer.usage.unwrap().output_tokens),
            ("hi", 2)
        );
    }
}

#[tokio::test]
async fn text_comes_before_the_stream_ends_and_dropping_it_ends_the_request() {
    let stub = ModelStub::start().await;
    stub.will_say("one two three four")
        .stall()
        .then_say("five six")
        .stall();
    let provider = provider(&stub.base_url());
    let mut stream = provider.stream(request(vec![user("hi")])).await.unwrap();
    let first = timeout(DEADLINE, stream.next())
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    // Pieces that have come together are one.
    let ModelEvent::Text(first) = first else {
        panic!("no text: {first:?}")
    };
    assert!(!first.is_empty() && first.len() < "one two three four".len());
    assert!("one two three four".starts_with(&first), "{first}");
    timeout(DEADLINE, stub.stalled()).await.unwrap();
    stub.release();
    while let Some(event) = timeout(DEADLINE, stream.next()).await.unwrap() {
        event.unwrap();
    }
    timeout(DEADLINE, stub.idle()).await.unwrap();

    let stream = provider.stream(request(vec![user("hi")])).await.unwrap();
    timeout(DEADLINE, stub.stalled()).await.unwrap();
    drop(stream);
    timeout(DEADLINE, stub.idle()).await.unwrap();
}

#[tokio::test]
async fn a_connection_is_used_again() {
    let stub = ModelStub::start().await;
    stub.will_say("a b c")
        .then_say("d")
        .then_call("read_file", json!({}));
    let provider = provider(&stub.base_url());
    for _ in 0..3 {
        collect(&provider, request(vec![user("hi")])).await.unwrap();
    }
    let peers: Vec<_> = stub.requests().iter().map(|asked| asked.peer).collect();
    assert_eq!(peers, [peers[0]; 3]);
}

#[tokio::test]
async fn a_cut_and_an_error_in_the_middle_are_told() {
    let stub = ModelStub::start().await;
    stub.will_say("one two three").will_cut_after(2);
    assert!(matches!(
        tell(&stub).await,
        Err(Error::Cut {
            source: Some(_),
            ..
        })
    ));
    let text = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
    let middle = |tail: &str| {
        Reply::raw(
            "text/event-stream",
            vec![Bytes::from(format!("{text}{tail}"))],
        )
    };
    stub.will(middle(""));
    assert!(matches!(
        tell(&stub).await,
        Err(Error::Cut { source: None, .. })
    ));
    stub.will(middle("data: {\"cho"));
    assert!(matches!(
        tell(&stub).await,
        Err(Error::Cut { source: None, .. })
    ));
    stub.will(middle(
        "data: {\"error\":{\"message\":\"overloaded\",\"code\":529}}\n\n",
    ));
    let error = tell(&stub).await.unwrap_err();
    assert_eq!(
        (error.code(), error.to_string().contains("overloaded")),
        (Code::ProviderUnavailable, true)
    );
    stub.will(Reply::raw("text/event-stream", vec![]));
    assert!(matches!(tell(&stub).await, Err(Error::Cut { .. })));
    stub.will(Reply::raw(
        "text/html",
        vec![Bytes::from_static(b"\n<html>hello</html>")],
    ));
    assert!(matches!(tell(&stub).await, Err(Error::BadAnswer { .. })));
}

#[tokio::test]
async fn refusals_keep_the_providers_words_and_never_the_key() {
    let stub = ModelStub::start().await;
    stub.will_fail(401, &[], &format!("Wrong key: {KEY}"));
    let error = tell(&stub).await.unwrap_err();
    assert!(matches!(
        error,
        Error::Rejected {
            refusal: Refusal::Key,
            ..
        }
    ));
    assert!(error.to_string().contains("Wrong key: [key]") && !format!("{error:?}").contains(KEY));
    stub.will_fail(502, &[], &"<p>Bad Gateway</p> ".repeat(10_000));
    let error = tell(&stub).await.unwrap_err();
    assert!(error.to_string().chars().count() < 600, "{error}");
    assert_eq!(error.code(), Code::ProviderUnavailable);
    stub.will_fail(429, &[("retry-after", "2")], "");
    let error = tell(&stub).await.unwrap_err();
    assert_eq!(
        (error.code(), error.retry_after()),
        (Code::ProviderRateLimited, Some(Duration::from_secs(2)))
    );
    stub.will_fail(
        400,
        &[],
        r#"{"error":{"message":"long","code":"context_length_exceeded"}}"#,
    );
    assert_eq!(tell(&stub).await.unwrap_err().code(), Code::ContextOverflow);
}

#[tokio::test]
async fn a_provider_that_is_not_there_is_named_by_its_place() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let provider = provider(&format!("http://me:{KEY}@{address}/v1"));
    let error = collect(&provider, request(vec![user("hi")]))
        .await
        .unwrap_err();
    assert_eq!(error.code(), Code::ProviderUnavailable);
    assert!(error.to_string().contains(&address.to_string()), "{error}");
    assert!(!format!("{error:?}").contains(KEY), "{error:?}");
}

#[tokio::test]
async fn stream_options_are_left_out_once_they_were_refused() {
    let stub = ModelStub::start().await;
    stub.refuse_stream_options().will_say("a").then_say("b");
    let provider = provider(&stub.base_url());
    for text in ["a", "b"] {
        assert_eq!(
            collect(&provider, request(vec![user("hi")]))
                .await
                .unwrap()
                .text,
            text
        );
    }
    let had: Vec<_> = stub
        .requests()
        .iter()
        .map(|asked| asked.body.get("stream_options").is_some())
        .collect();
    assert_eq!(had, [true, false, false]);
}

/// Asserts S0.43.
#[tokio::test]
async fn what_breaks_is_asked_again_and_the_client_is_told() {
    let stub = ModelStub::start().await;
    stub.will_fail(503, &[], "")
        .then(Reply::say("half an answer"))
        .will_cut_after(3)
        .then_say("whole");
    let retry = RetryConfig {
        initial_backoff: Duration::from_millis(1),
        ..RetryConfig::default()
    };
    let mut told = String::new();
    let answer = llm::ask(
        provider(&stub.base_url()),
        request(vec![user("hi")]),
        retry,
        |step| match step {
            Progress::Retry { attempt, .. } => write!(told, "|attempt {attempt}|").unwrap(),
            // However the pieces come together.
            Progress::Event(ModelEvent::Text(text)) => told += &text,
            Progress::Event(_) => told += "-",
            Progress::Begins => {}
        },
    );
    assert_eq!(
        timeout(DEADLINE, answer).await.unwrap().unwrap().text,
        "whole"
    );
    assert_eq!(told, "|attempt 2|half an |attempt 3|whole--");
}

#[tokio::test]
async fn models_are_listed_in_both_forms() {
    let stub = ModelStub::start().await;
    let provider = provider(&stub.base_url());
    assert!(matches!(
        provider.models().await,
        Err(Error::Rejected {
            refusal: Refusal::Address,
            ..
        })
    ));
    let form = json!([{"id": "m", "object": "model", "max_model_len": 4096}]);
    for list in [json!({"object": "list", "data": form}), form] {
        stub.lists(list);
        let listed = provider.models().await.unwrap();
        assert_eq!(
            (
                listed.models[0].id.as_str(),
                listed.models[0].context_window
            ),
            ("m", Some(4096))
        );
    }
    stub.lists(json!({"data": 7}));
    assert!(matches!(
        provider.models().await,
        Err(Error::BadAnswer { .. })
    ));
}

/// A request with one field changed.
fn body_with(name: &str, value: Value) -> Value {
    let user = json!({"role": "user", "content": "x"});
    let mut body = json!({"model": "m", "stream": true, "messages": [user]});
    body.as_object_mut().unwrap().insert(name.to_owned(), value);
    body
}

fn asks(id: &str, arguments: &Value) -> Value {
    let function = json!({"name": "t", "arguments": arguments});
    let call = json!({"id": id, "type": "function", "function": function});
    json!({"role": "assistant", "content": null, "tool_calls": [call]})
}

fn result(id: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": "r"})
}

fn refused_bodies() -> Vec<Value> {
    let user = json!({"role": "user", "content": "x"});
    let said = |messages| body_with("messages", messages);
    let tools = |tools| body_with("tools", tools);
    let tool = |name: &str| {
        let parameters = json!({"type": "object", "properties": {}});
        json!({"type": "function", "function": {"name": name, "parameters": parameters}})
    };
    vec![
        body_with("model", json!("")),
        body_with("max_tokens", json!(0)),
        body_with("surprise", json!(1)),
        body_with("tool_choice", json!("auto")),
        said(json!([])),
        said(json!([result("a")])),
        said(json!([user, asks("a", &json!("{}"))])),
        said(json!([asks("a", &json!("{}")), user, result("a")])),
        said(json!([asks("a", &json!("{}")), result("b")])),
        said(json!([asks("a", &json!({})), result("a")])),
        said(json!([asks("a", &json!("7")), result("a")])),
        said(json!([asks("", &json!("{}")), result("")])),
        said(json!([{"role": "assistant", "content": null}])),
        tools(json!([])),
        tools(json!([tool("t"), tool("t")])),
        tools(json!([tool("a.b")])),
        tools(json!([{"type": "function", "function": {"name": "t", "parameters": {}}}])),
    ]
}

/// The stand-in is only worth its name if it refuses what the vendor refuses.
/// Asserts S1.18.
#[tokio::test]
async fn the_stand_in_refuses_what_the_vendor_refuses() {
    let stub = ModelStub::start().await;
    net::install_tls();
    let http = net::client(&net::Settings::default()).unwrap();
    let url = format!("{}/chat/completions", stub.base_url());
    for body in refused_bodies() {
        let answer = http.post(&url).json(&body).send().await.unwrap();
        assert_eq!(
            (answer.status().as_u16(), stub.take_refusals().len()),
            (400, 1),
            "{body}"
        );
    }
    stub.will_say("ok");
    let user = json!({"role": "user", "content": "x"});
    let fine = body_with(
        "messages",
        json!([user, asks("a", &json!("{}")), result("a"), user]),
    );
    assert_eq!(
        http.post(&url)
            .json(&fine)
            .send()
            .await
            .unwrap()
            .status()
            .as_u16(),
        200
    );
}
