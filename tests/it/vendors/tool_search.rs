//! Tools that the vendor's own search finds: refused by models without one, and in the middle of a
//! conversation that goes on elsewhere.

use std::sync::Arc;

use sepal::domain::Entry;
use sepal::llm::tool_search::{Searchable, ServerTools, ToolSearch};
use sepal::llm::{Answer, Deferral, Request};
use serde_json::{Value, json};

use super::{call, collect, provider, request, result, said, tool, user};
use crate::model_stub::{ModelStub, Reply, STUB_KEY, Vendor};

/// The vendors that have a search.
const SEARCHING: [Vendor; 2] = [Vendor::Responses, Vendor::Messages];

fn model(vendor: Vendor) -> &'static str {
    match vendor {
        Vendor::Responses => "gpt-5.4",
        // Newer models want every call of the running turn signed; this one does not.
        Vendor::Gemini => "gemini-2.0-flash",
        Vendor::Chat | Vendor::Messages => vendor.model(),
    }
}

/// A request that defers the tools of a server, whoever searches them.
fn deferring(vendor: Vendor, entries: &[Entry], garden: &[&str]) -> Request {
    let named = |name: &str| tool(name, Value::Null);
    let searchable = Searchable {
        told: Arc::from([named("read_file")]),
        servers: vec![ServerTools {
            server: "garden".to_owned(),
            tools: garden.iter().map(|name| named(name)).collect(),
        }],
    };
    Request {
        model: model(vendor).to_owned(),
        tools: ["read_file", "find_tools", "use_tool"].map(named).into(),
        deferral: Some(Deferral {
            searchable: Arc::new(searchable),
            by: ToolSearch::Vendor,
        }),
        ..request(vendor, entries.to_vec())
    }
}

async fn ask(stub: &ModelStub, entries: &[Entry], garden: &[&str]) -> Answer {
    let asked = deferring(stub.vendor, entries, garden);
    collect(&provider(stub, STUB_KEY), asked).await.unwrap()
}

fn painting() -> Reply {
    let paint = ("paint_fence", json!({"how": "green"}));
    Reply::answer("I look.", &[paint]).searching("fences", "garden", &["paint_fence"])
}

/// An answer as it stands in the journal, with the results of its calls.
fn journaled(answer: Answer, first: usize) -> Vec<Entry> {
    let calls = answer.calls.into_iter().enumerate();
    let calls: Vec<_> = calls
        .map(|(at, asked)| {
            let args = asked.args.unwrap();
            call(first + at, &asked.provider_id, &asked.name, args)
        })
        .collect();
    let results: Vec<Entry> = calls.iter().map(|call| result(call, "painted")).collect();
    let mut entries = vec![said(&answer.text, calls, answer.native)];
    entries.extend(results);
    entries
}

fn tool_names(body: &Value) -> Vec<&str> {
    let tools = body["tools"].as_array().unwrap().iter();
    tools.filter_map(|tool| tool["name"].as_str()).collect()
}

fn last_body(stub: &ModelStub) -> Value {
    stub.requests().pop().unwrap().body
}

#[tokio::test]
async fn a_search_goes_back_as_it_came_and_the_call_is_one_of_the_tool() {
    for vendor in SEARCHING {
        let stub = ModelStub::start_as(vendor).await;
        stub.will(painting()).then_say("Done");
        let mut entries = vec![user("paint")];
        let answer = ask(&stub, &entries, &["paint_fence", "dig"]).await;
        assert_eq!(answer.calls[0].name, "paint_fence");
        assert!(
            answer
                .reasoning
                .contains("Searched the tools for \"fences\" and found paint_fence."),
            "{vendor:?} {}",
            answer.reasoning
        );
        entries.extend(journaled(answer, 0));
        let answer = ask(&stub, &entries, &["paint_fence", "dig"]).await;
        assert_eq!(answer.text, "Done");
        let body = last_body(&stub).to_string();
        let kinds = match vendor {
            Vendor::Messages => ["server_tool_use", "tool_search_tool_result"],
            Vendor::Chat | Vendor::Responses | Vendor::Gemini => {
                ["tool_search_call", "tool_search_output"]
            }
        };
        assert!(kinds.iter().all(|kind| body.contains(kind)), "{body}");
        assert!(!body.contains("find_tools"), "{body}");
    }
}

/// The stand-ins refuse what a vendor does not know; nothing of it may go out.
#[tokio::test]
async fn a_conversation_goes_on_with_a_model_of_another_vendor_and_back() {
    let pairs = SEARCHING
        .into_iter()
        .flat_map(|from| Vendor::ALL.map(|to| (from, to)));
    for (from, to) in pairs {
        let (first, second) = (
            ModelStub::start_as(from).await,
            ModelStub::start_as(to).await,
        );
        let garden = ["paint_fence", "dig"];
        first.will(painting()).then_say("Back");
        let mut entries = vec![user("paint")];
        entries.extend(journaled(ask(&first, &entries, &garden).await, 0));
        if SEARCHING.contains(&to) {
            second.will(painting());
        } else {
            second.will_call("use_tool", json!({"tool": "dig", "arguments": {}}));
        }
        entries.extend(journaled(ask(&second, &entries, &garden).await, 10));
        let names = last_body(&second)["tools"].to_string();
        let is_searching = to != Vendor::Chat && to != Vendor::Gemini;
        assert_eq!(
            names.contains("find_tools"),
            !is_searching,
            "{to:?} {names}"
        );
        entries.push(user("go on"));
        assert_eq!(ask(&first, &entries, &garden).await.text, "Back");
    }
}

#[tokio::test]
async fn a_search_that_found_a_tool_that_is_gone_is_left_out() {
    for vendor in SEARCHING {
        let stub = ModelStub::start_as(vendor).await;
        stub.will(painting()).then_say("Gone").then_say("Plain");
        let mut entries = vec![user("paint")];
        entries.extend(journaled(ask(&stub, &entries, &["paint_fence"]).await, 0));
        entries.push(user("go on"));
        assert_eq!(ask(&stub, &entries, &["dig"]).await.text, "Gone");
        // Nor is it sent where few tools are left, so that none is deferred.
        let plain = Request {
            deferral: None,
            ..deferring(vendor, &entries, &["dig"])
        };
        let answer = collect(&provider(&stub, STUB_KEY), plain).await.unwrap();
        assert_eq!(answer.text, "Plain");
        for asked in &stub.requests()[1..] {
            let text = asked.body.to_string();
            let left = ["server_tool_use", "tool_search_call"];
            assert!(!left.iter().any(|kind| text.contains(kind)), "{text}");
        }
    }
}

#[tokio::test]
async fn a_model_without_a_search_is_sent_ours_and_asked_once() {
    for (vendor, model) in [
        (Vendor::Responses, "gpt-5.1"),
        (Vendor::Messages, "claude-3-haiku-20240307"),
    ] {
        let stub = ModelStub::start_as(vendor).await;
        stub.will_say("ok").then_say("again");
        let provider = provider(&stub, STUB_KEY);
        for expected in ["ok", "again"] {
            let mut asked = deferring(vendor, &[user("hi")], &["paint_fence"]);
            model.clone_into(&mut asked.model);
            let answer = collect(&provider, asked).await.unwrap();
            assert_eq!(answer.text, expected);
            let body = last_body(&stub);
            assert_eq!(tool_names(&body), ["read_file", "find_tools", "use_tool"]);
        }
        let refusals = stub.take_refusals();
        assert_eq!(refusals.len(), 1, "{refusals:?}");
    }
}

/// At somebody else's address nobody searches unless the settings say so.
#[tokio::test]
async fn another_address_is_not_asked_to_search_by_itself() {
    for vendor in SEARCHING {
        let stub = ModelStub::start_as(vendor).await;
        stub.will_say("auto").then_say("sepal");
        for (by, expected) in [(ToolSearch::Auto, "auto"), (ToolSearch::Sepal, "sepal")] {
            let mut asked = deferring(vendor, &[user("hi")], &["paint_fence"]);
            asked.deferral.as_mut().unwrap().by = by;
            let answer = collect(&provider(&stub, STUB_KEY), asked).await.unwrap();
            assert_eq!(answer.text, expected);
            let body = last_body(&stub);
            assert_eq!(tool_names(&body), ["read_file", "find_tools", "use_tool"]);
        }
    }
}
