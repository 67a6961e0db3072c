//! Tools that the vendor's own search finds: shown, decided about and run as every other tool.

use reqwest::Method;
use serde_json::{Value, json};

use super::Api;
use super::deferred::with_many_tools_as;
use crate::model_stub::{Reply, Vendor};
use crate::support::TestApp;

/// The vendors that have a search, each with a model of it.
const SEARCHING: [(Vendor, &str); 2] = [
    (Vendor::Messages, "claude-sonnet-4-5-20250929"),
    (Vendor::Responses, "gpt-5.4"),
];

fn painting() -> Reply {
    Reply::answer("", &[("paint_fence", json!({"how": "green"}))]).searching(
        "painting fences",
        "garden",
        &["paint_fence"],
    )
}

fn settings(model: &str) -> [(&str, &str); 2] {
    [("SPL_LLM_TOOL_SEARCH", "vendor"), ("SPL_LLM_MODEL", model)]
}

#[tokio::test]
async fn a_tool_that_the_vendor_found_is_shown_approved_and_run_as_itself() {
    for (vendor, model) in SEARCHING {
        let (app, _, mut socket) = with_many_tools_as(vendor, &settings(model)).await;
        app.model.will(painting()).then_say("Done");
        socket.say("paint it").await;
        let card = socket.wait_for_approval().await;
        assert_eq!(
            (&card["name"], &card["server"], &card["args"]),
            (
                &json!("paint_fence"),
                &json!("garden"),
                &json!({"how": "green"})
            ),
        );
        assert!(card["digest"].is_string(), "{card}");
        let thoughts = socket.log.iter().filter(|said| said.name == "agent:delta");
        let thoughts: String = thoughts.map(|said| said.text().to_owned()).collect();
        let line = "Searched the tools for \"painting fences\" and found paint_fence.";
        assert!(thoughts.contains(line), "{thoughts}");
        socket.approve(&card).await;
        let output = socket.wait_for("tool:output").await;
        assert_eq!(
            (output.text(), &output.rest()["server"]),
            ("painted", &json!("garden"))
        );
        assert_eq!(socket.wait_for_answer().await, "Done");
        app.model.will_say("Again");
        socket.say("and now").await;
        socket.wait_for_answer().await;
        check_prefix(&app);
    }
}

/// What is cached stays right: definitions are the same, and what was sent begins what is sent.
fn check_prefix(app: &TestApp) {
    let unmarked = |mut body: Value| {
        let messages = body.get_mut("messages").and_then(Value::as_array_mut);
        for message in messages.into_iter().flatten() {
            for block in message["content"].as_array_mut().into_iter().flatten() {
                block.as_object_mut().unwrap().remove("cache_control");
            }
        }
        body
    };
    let requests = app.model.requests().into_iter();
    let bodies: Vec<Value> = requests.map(|asked| unmarked(asked.body)).collect();
    assert_eq!(bodies.len(), 3);
    for pair in bodies.windows(2) {
        assert_eq!(pair[0]["tools"].to_string(), pair[1]["tools"].to_string());
        let said = |body: &Value| {
            let said = body.get("messages").or(body.get("input"));
            said.and_then(Value::as_array).unwrap().clone()
        };
        assert!(said(&pair[1]).starts_with(&said(&pair[0])), "{pair:?}");
    }
    let text = bodies[0].to_string();
    assert!(text.contains("\"defer_loading\":true"), "{text}");
    assert!(!text.contains("find_tools"), "{text}");
}

#[tokio::test]
async fn rules_of_the_tool_hold_whoever_found_it() {
    for (vendor, model) in SEARCHING {
        let (app, owner, mut socket) = with_many_tools_as(vendor, &settings(model)).await;
        let api = Api::new(&app, &owner);
        let path = "/api/mcp/garden/tools/paint_fence";
        for (effect, expected) in [("deny", "rejected"), ("allow", "completed")] {
            let rule = json!({ "effect": effect });
            let (status, said) = api.ask(Method::PUT, path, &rule).await;
            assert_eq!(status, 200, "{said}");
            app.model.will(painting()).then_say("Over");
            socket.say("paint it").await;
            let output = socket.wait_for("tool:output").await;
            assert_eq!(output.rest()["status"], expected, "{output:?}");
            assert_eq!(socket.wait_for_answer().await, "Over");
        }
    }
}

/// The vendor refuses a search that found a tool that it does not know.
#[tokio::test]
async fn a_tool_that_is_switched_off_leaves_no_search_behind() {
    for (vendor, model) in SEARCHING {
        let (app, owner, mut socket) = with_many_tools_as(vendor, &settings(model)).await;
        app.model.will(painting()).then_say("Done");
        socket.say("paint it").await;
        let card = socket.wait_for_approval().await;
        socket.approve(&card).await;
        assert_eq!(socket.wait_for_answer().await, "Done");
        let api = Api::new(&app, &owner);
        let path = "/api/mcp/garden/tools/paint_fence";
        let (status, said) = api.ask(Method::PUT, path, &json!({"enabled": false})).await;
        assert_eq!(status, 200, "{said}");
        app.model.will_say("Fine");
        socket.say("and now").await;
        assert_eq!(socket.wait_for_answer().await, "Fine");
        let body = app.model.requests().pop().unwrap().body.to_string();
        for left in ["tool_search_tool_result", "tool_search_output"] {
            assert!(!body.contains(left), "{body}");
        }
    }
}
