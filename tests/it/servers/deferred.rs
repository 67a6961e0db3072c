//! Tools that are too many to be sent: the model finds them, and what it then calls is decided about as
//! the tool itself.

use sepal::domain::Role;
use serde_json::{Value, json};

use super::{Api, offered, shell, tool, wait_for_health};
use crate::support::{Person, TestApp, TestSocket};

/// Enough that their definitions take more than a hundredth of the model's window.
const TOOLS: usize = 60;

/// A gateway that sends definitions of a hundredth of the window at most, with a server of many tools.
async fn with_many_tools() -> (TestApp, Person, TestSocket) {
    let settings = [
        ("SPL_SANDBOX", "bubblewrap"),
        ("SPL_LLM_DEFER_TOOLS_PERCENT", "1"),
    ];
    let app = TestApp::start_with(&settings).await;
    let owner = app.person_with("acme", Role::Owner).await;
    let mut socket = TestSocket::open(app.address, &owner, None).await;
    let mut config = shell("say painted");
    let loops = format!(
        r#"list() {{ n=0; all=$TOOLS; while [ $n -lt {TOOLS} ]; do all="$all,{{\"name\":\"other_$n\",\"description\":\"$WORDS\",\"inputSchema\":{{\"type\":\"object\",\"properties\":{{\"how\":{{\"type\":\"string\"}}}}}}}}"; n=$((n+1)); done; answer "{{\"tools\":[$all]}}"; }}"#
    );
    let script = config["args"][1].as_str().unwrap();
    let script = script.replace(r#"list() { answer "{\"tools\":[$TOOLS]}"; }"#, &loops);
    config["args"][1] = json!(script);
    config["env"]["TOOLS"] = json!(tool("paint_fence", "Paints a fence in a colour"));
    config["env"]["WORDS"] = json!("Does something that is of no interest to anybody. ".repeat(3));
    Api::new(&app, &owner).add("garden", config).await;
    wait_for_health(&mut socket, "garden", "healthy").await;
    (app, owner, socket)
}

/// The definitions of a request, as they were sent.
fn sent_tools(app: &TestApp) -> Vec<String> {
    let requests = app.model.requests();
    let tools = requests.iter().map(|asked| asked.body["tools"].to_string());
    tools.collect()
}

#[tokio::test]
async fn a_tool_that_was_not_sent_is_found_shown_approved_and_run_as_itself() {
    let (app, _, mut socket) = with_many_tools().await;
    app.model
        .will_call("find_tools", json!({"query": "painting fences"}))
        .then_call(
            "use_tool",
            json!({"tool": "paint_fence", "arguments": {"how": "green"}}),
        )
        .then_say("Done");
    socket.say("paint it").await;
    // Nobody is asked whether the model may look.
    let card = socket.wait_for_approval().await;
    assert_eq!(
        (&card["name"], &card["server"], &card["args"]),
        (
            &json!("paint_fence"),
            &json!("garden"),
            &json!({"how": "green"})
        )
    );
    let mut said = socket.log.iter();
    let found = said.find(|said| said.name == "tool:output").unwrap();
    assert_eq!(found.rest()["name"], "find_tools");
    assert_eq!(found.rest()["status"], "completed");
    let first = found.text().lines().nth(1).unwrap().to_owned();
    let first: Value = serde_json::from_str(&first).unwrap();
    assert_eq!(first["name"], "paint_fence", "{first}");
    assert!(first["input_schema"]["properties"]["how"].is_object());
    let names = offered(&app);
    assert!(names.contains(&"read_file".to_owned()), "{names:?}");
    assert!(names.ends_with(&["find_tools".to_owned(), "use_tool".to_owned()]));
    assert!(!names.contains(&"paint_fence".to_owned()));
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
    check_requests(&app);
}

/// What is cached stays right: definitions are the same, and what was sent begins what is sent.
fn check_requests(app: &TestApp) {
    let sent = sent_tools(app);
    assert_eq!(sent.len(), 4);
    assert!(sent.iter().all(|tools| *tools == sent[0]), "{sent:?}");
    let requests = app.model.requests();
    let messages: Vec<&Vec<Value>> = requests
        .iter()
        .map(|asked| asked.body["messages"].as_array().unwrap())
        .collect();
    for pair in messages.windows(2) {
        assert!(pair[1].starts_with(pair[0]), "{pair:?}");
    }
    // The model reads its own call as it wrote it.
    let last = messages[3];
    let calls = last
        .iter()
        .filter_map(|message| message["tool_calls"].as_array());
    let calls: Vec<&Value> = calls.map(|calls| &calls[0]["function"]).collect();
    assert_eq!(calls[1]["name"], "use_tool");
    let args: Value = serde_json::from_str(calls[1]["arguments"].as_str().unwrap()).unwrap();
    assert_eq!(
        args,
        json!({"tool": "paint_fence", "arguments": {"how": "green"}})
    );
}

#[tokio::test]
async fn what_is_denied_or_wrong_does_not_run_through_use_tool_either() {
    let (app, owner, mut socket) = with_many_tools().await;
    let path = "/api/mcp/garden/tools/paint_fence";
    let denied = json!({"effect": "deny"});
    let api = Api::new(&app, &owner);
    let (status, said) = api.ask(reqwest::Method::PUT, path, &denied).await;
    assert_eq!(status, 200, "{said}");
    let call = |tool: &str, arguments: Value| json!({"tool": tool, "arguments": arguments});
    app.model
        .will_call("use_tool", call("paint_fence", json!({"how": "green"})))
        .then_call("use_tool", call("no_such_tool", json!({})))
        .then_call("use_tool", call("other_1", json!({"how": 3})))
        .then_call("use_tool", json!({"arguments": {}}))
        .then_say("Nothing");
    socket.say("paint it").await;
    assert_eq!(socket.wait_for_answer().await, "Nothing");
    let outputs = socket.log.iter().filter(|said| said.name == "tool:output");
    let outputs: Vec<(Value, String)> = outputs
        .map(|said| (said.rest()["status"].clone(), said.text().to_owned()))
        .collect();
    assert_eq!(outputs[0].0, "rejected", "{outputs:?}");
    for (output, words) in outputs[1..]
        .iter()
        .zip(["there is no tool", "not valid", "`tool`"])
    {
        assert_eq!(output.0, "failed", "{outputs:?}");
        assert!(output.1.contains(words), "{outputs:?}");
    }
    assert_eq!(outputs.len(), 4);
}
