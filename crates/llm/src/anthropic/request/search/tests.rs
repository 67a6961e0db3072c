//! Complete bodies of requests whose vendor searches tools.

use serde_json::{Value, json};

use crate::Request;
use crate::anthropic::request::thinking::Plan;
use crate::anthropic::request::{Terms, body};
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

/// The blocks of one search by the vendor.
fn searched(id: &str, found: &[&str]) -> Vec<Value> {
    let references = found
        .iter()
        .map(|name| json!({"type": "tool_reference", "tool_name": name}));
    let references: Vec<Value> = references.collect();
    vec![
        json!({"type": "server_tool_use", "id": id, "name": "tool_search_tool_bm25", "input": {"query": "paint"}}),
        json!({"type": "tool_search_tool_result", "tool_use_id": id,
            "content": {"type": "tool_search_tool_search_result", "tool_references": references}}),
    ]
}

/// An answer that searched and then called a tool, with the result of the call.
fn painted(found: &[&str], tool: &str) -> Vec<Entry> {
    let blocks = searched("srvtoolu_1", found).into_iter();
    let blocks: Vec<Value> = blocks
        .map(|block| json!({"place": {"text": 0, "calls": 0}, "block": block}))
        .collect();
    let id = CallId::new(1, 0);
    let call = ModelCall {
        id: id.clone(),
        provider_id: "toolu_1".to_owned(),
        name: tool.to_owned(),
        args: json!({"how": "green"}),
    };
    vec![
        Entry::Assistant {
            text: String::new(),
            calls: vec![call],
            native: Some(Native {
                family: "anthropic".to_owned(),
                blocks: Value::Array(blocks),
                compacts: false,
            }),
        },
        Entry::ToolResult {
            call_id: id,
            provider_id: "toolu_1".to_owned(),
            name: tool.to_owned(),
            text: "painted".to_owned(),
            is_error: false,
            attachments: vec![],
        },
    ]
}

fn request(entries: Vec<Entry>) -> Request {
    let request = Request {
        model: "claude-sonnet-4-5".to_owned(),
        entries: entries.into(),
        ..Request::default()
    };
    deferring(request, ToolSearch::Auto)
}

fn written(request: &Request, is_searching: bool) -> String {
    let plan = Plan {
        max_tokens: 9,
        ..Plan::default()
    };
    let terms = Terms {
        plan: &plan,
        family: "anthropic",
        cache_ttl: None,
        is_searching,
        compact_from: None,
    };
    serde_json::to_string(&body(request, terms)).unwrap()
}

fn sent(request: &Request, is_searching: bool) -> Value {
    serde_json::from_str(&written(request, is_searching)).unwrap()
}

#[test]
fn a_whole_request_is_this() {
    let mut entries = vec![user("paint")];
    entries.extend(painted(&["paint_fence"], "paint_fence"));
    let schema = json!({"type": "object", "properties": {"how": {"type": "string"}}});
    let tool = |name: &str| json!({"name": fit(name), "description": format!("Does {name}"), "input_schema": schema});
    let deferred = |name: &str| {
        let mut tool = tool(name);
        tool["defer_loading"] = json!(true);
        tool
    };
    let here = json!({"type": "ephemeral"});
    let [call, result] = <[Value; 2]>::try_from(searched("srvtoolu_1", &["paint_fence"])).unwrap();
    assert_eq!(
        sent(&request(entries), true),
        json!({
            "model": "claude-sonnet-4-5",
            "max_tokens": 9,
            "tools": [
                tool("read_file"),
                {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25", "cache_control": here},
                deferred("paint_fence"), deferred("garden.dig"), deferred("send"),
            ],
            "tool_choice": {"type": "auto"},
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "paint", "cache_control": here}]},
                {"role": "assistant", "content": [
                    call, result,
                    {"type": "tool_use", "id": "toolu_1", "name": "paint_fence", "input": {"how": "green"}},
                ]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_1", "content": "painted", "cache_control": here},
                ]},
            ],
            "stream": true,
        })
    );
}

/// Checks the kinds of the blocks in the answer that searched.
fn check(found: &[&str], is_searching: bool, expected: &[&str]) {
    let mut entries = vec![user("paint")];
    entries.extend(painted(found, "paint_fence"));
    let sent = sent(&request(entries), is_searching);
    let blocks = sent["messages"][1]["content"].as_array().unwrap();
    let kinds = blocks.iter().map(|block| block["type"].as_str().unwrap());
    let kinds: Vec<&str> = kinds.collect();
    assert_eq!(kinds, expected, "{found:?} {is_searching}");
}

#[test]
fn a_search_goes_back_while_all_that_it_found_is_there() {
    let whole: &[&str] = &["server_tool_use", "tool_search_tool_result", "tool_use"];
    check(&["paint_fence"], true, whole);
    check(&["send", "read_file"], true, whole);
    check(&[&fit("garden.dig")], true, whole);
    check(&[], true, whole);
    check(&["paint_fence", "gone"], true, &["tool_use"]);
    // Sepal searches now, so the vendor knows neither the tools nor the search.
    check(&["paint_fence"], false, &["tool_use"]);
    check(&[], false, &["tool_use"]);
}

#[test]
fn without_the_vendors_search_the_request_is_as_ever() {
    let sent = sent(&request(vec![user("paint")]), false);
    let tools = sent["tools"].as_array().unwrap().iter();
    let names: Vec<&Value> = tools.map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["read_file", "find_tools", "use_tool"]);
    assert!(!sent.to_string().contains("defer_loading"), "{sent}");
}

/// The cache matches a prefix by everything except the marks.
#[test]
fn what_was_sent_stays_the_same_to_the_byte_while_tools_are_found() {
    let prefix = |entries: &[Entry]| {
        let text = written(&request(entries.to_vec()), true);
        let text = text.replace(r#","cache_control":{"type":"ephemeral"}"#, "");
        let end = text.find(r#"],"stream":true"#).unwrap();
        text[..end].to_owned()
    };
    let mut all = vec![user("paint")];
    all.extend(painted(&["paint_fence"], "paint_fence"));
    let once = prefix(&all[..1]);
    let found = prefix(&all);
    assert!(found.starts_with(&once), "{once}\n{found}");
    all.push(Entry::Assistant {
        text: "Done".to_owned(),
        calls: vec![],
        native: None,
    });
    all.push(user("and now?"));
    let again = prefix(&all);
    assert!(again.starts_with(&found), "{found}\n{again}");
}
