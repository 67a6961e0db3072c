//! Complete bodies of requests whose vendor searches tools.

use serde_json::{Value, json};

use crate::Request;
use crate::openai::omitted::{Lesson, Omitted, Part};
use crate::openai::responses::request::{body, search, tools};
use crate::openai::tools::Strictness;
use crate::request::names::fit;
use crate::tool_search::ToolSearch;
use crate::tool_search::tests::deferring;
use sepal_core::domain::{CallId, Entry, ModelCall, Native};

fn user(text: &str) -> Entry {
    Entry::User {
        seq: 1,
        text: text.to_owned(),
        attachments: vec![],
    }
}

fn thought(id: &str) -> Value {
    json!({"type": "reasoning", "id": id, "summary": [], "encrypted_content": "e"})
}

fn searching() -> Value {
    json!({"type": "tool_search_call", "id": "tsc_1", "execution": "server", "status": "completed",
        "arguments": {"paths": ["mcp__garden"]}})
}

/// The result of a search that loaded functions from that namespace.
fn output(namespace: &str, functions: &[&str]) -> Value {
    let functions = functions
        .iter()
        .map(|name| json!({"type": "function", "name": name, "defer_loading": true}));
    let functions: Vec<Value> = functions.collect();
    json!({"type": "tool_search_output", "id": "tso_1", "execution": "server", "status": "completed",
        "tools": [{"type": "namespace", "name": namespace, "description": "d", "tools": functions}]})
}

/// An answer with these blocks and a call, and the result of the call.
fn painted(blocks: Vec<Value>) -> Vec<Entry> {
    let blocks = blocks.into_iter();
    let blocks = blocks.map(|block| json!({"place": {"text": 0, "calls": 0}, "block": block}));
    let id = CallId::new(1, 0);
    let call = ModelCall {
        id: id.clone(),
        provider_id: "call_1".to_owned(),
        name: "paint_fence".to_owned(),
        args: json!({"how": "green"}),
    };
    vec![
        user("paint"),
        Entry::Assistant {
            text: String::new(),
            calls: vec![call],
            native: Some(Native {
                family: "openai".to_owned(),
                blocks: blocks.collect(),
                compacts: false,
            }),
        },
        Entry::ToolResult {
            call_id: id,
            provider_id: "call_1".to_owned(),
            name: "paint_fence".to_owned(),
            text: "painted".to_owned(),
            is_error: false,
            attachments: vec![],
        },
    ]
}

fn whole() -> Vec<Value> {
    let output = output("mcp__garden", &["paint_fence"]);
    vec![thought("r1"), searching(), output, thought("r2")]
}

fn written(entries: Vec<Entry>, is_searching: bool) -> String {
    let request = Request {
        model: "gpt-5.4".to_owned(),
        entries: entries.into(),
        ..Request::default()
    };
    let request = deferring(request, ToolSearch::Auto);
    let mut omitted = Omitted::default();
    let tools = if is_searching {
        let searchable = &request.deferral.as_ref().unwrap().searchable;
        search::tools(searchable, Strictness::Off)
    } else {
        omitted.learn(Lesson::Part(Part::ToolSearch));
        tools(&request.tools, Strictness::Off)
    };
    let tools = tools.unwrap();
    let body = body(&request, tools.as_deref(), ("openai", &omitted));
    serde_json::to_string(&body).unwrap()
}

fn sent(entries: Vec<Entry>, is_searching: bool) -> Value {
    serde_json::from_str(&written(entries, is_searching)).unwrap()
}

#[test]
fn tools_that_are_found_stand_in_a_namespace_for_each_server() {
    let schema = json!({"type": "object", "properties": {"how": {"type": "string"}}});
    let function = |name: &str| {
        json!({"type": "function", "name": fit(name), "description": format!("Does {name}"),
            "parameters": schema, "strict": false})
    };
    let deferred = |name: &str| {
        let mut function = function(name);
        function["defer_loading"] = json!(true);
        function
    };
    assert_eq!(
        sent(vec![user("paint")], true)["tools"],
        json!([
            function("read_file"),
            {"type": "tool_search"},
            {"type": "namespace", "name": "mcp__garden",
                "description": "The 2 tools of the MCP server `garden`: paint_fence, garden.dig",
                "tools": [deferred("paint_fence"), deferred("garden.dig")]},
            {"type": "namespace", "name": "mcp__mail",
                "description": "The 1 tools of the MCP server `mail`: send",
                "tools": [deferred("send")]},
        ])
    );
    let plain = sent(vec![user("paint")], false);
    let tools = plain["tools"].as_array().unwrap().iter();
    let names: Vec<&Value> = tools.map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["read_file", "find_tools", "use_tool"]);
    assert!(!plain.to_string().contains("defer_loading"), "{plain}");
}

/// Checks the items of the answer and the call after them.
fn check(blocks: &[Value], is_searching: bool, expected: &[Value]) {
    let sent = sent(painted(blocks.to_vec()), is_searching);
    let input = sent["input"].as_array().unwrap();
    let mut call = json!({"type": "function_call", "call_id": "call_1", "name": "paint_fence",
        "arguments": "{\"how\":\"green\"}"});
    if is_searching {
        call["namespace"] = json!("mcp__garden");
    }
    let mut expected = expected.to_vec();
    expected.push(call);
    assert_eq!(input[1..=expected.len()], expected, "{blocks:?}");
    assert_eq!(input.last().unwrap()["type"], "function_call_output");
}

#[test]
fn a_search_goes_back_while_all_that_it_loaded_is_there() {
    check(&whole(), true, &whole());
    // A call from before its function was deferred gets a namespace too.
    check(&[], true, &[]);
    let rest = [thought("r2")];
    for stale in [
        output("mcp__garden", &["paint_fence", "gone"]),
        output("mcp__mail", &["paint_fence"]),
        json!({"type": "tool_search_output", "tools": [{"type": "function", "name": "paint_fence"}]}),
    ] {
        let blocks = vec![thought("r1"), searching(), stale, thought("r2")];
        check(&blocks, true, &rest);
    }
    // Sepal searches now, or the answer was cut off after the search.
    check(&whole(), false, &rest);
    check(&[thought("r1"), searching()], true, &[]);
}

/// The vendor caches the common beginning of requests, byte by byte.
#[test]
fn the_prefix_stays_the_same_while_tools_are_found() {
    let prefix = |entries: &[Entry]| {
        let body = written(entries.to_vec(), true);
        let end = body.find(r#"],"reasoning""#).unwrap();
        body[..end].to_owned()
    };
    let mut all = painted(whole());
    let (once, found) = (prefix(&all[..1]), prefix(&all));
    assert!(found.starts_with(&once), "{once}\n{found}");
    all.push(user("and now?"));
    let again = prefix(&all);
    assert!(again.starts_with(&found), "{found}\n{again}");
}
