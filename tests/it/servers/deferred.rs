//! Tools that are too many to be sent: the model finds them, and what it then calls is decided about as
//! the tool itself.

use sepal::domain::Role;
use serde_json::{Value, json};

use super::odd::{Answer, Odd};
use super::{Api, offered, operator, shell, tool, wait_for_health};
use crate::model_stub::{Reply, Vendor};
use crate::rest::Client;
use crate::support::{Person, Said, TestApp, TestSocket};

/// Enough that their definitions take more than a hundredth of the model's window.
const TOOLS: usize = 60;

/// A gateway that sends definitions of a hundredth of the window at most, with a server of many tools.
pub(crate) async fn with_many_tools() -> (TestApp, Person, TestSocket) {
    with_many_tools_as(Vendor::Chat, &[]).await
}

/// The same with the model of that vendor.
pub(super) async fn with_many_tools_as(
    vendor: Vendor,
    extra: &[(&str, &str)],
) -> (TestApp, Person, TestSocket) {
    let settings = [
        ("SPL_SANDBOX", "bubblewrap"),
        ("SPL_LLM_DEFER_TOOLS_PERCENT", "1"),
    ];
    let settings = [&settings, extra].concat();
    let app = TestApp::start_as(vendor, &settings).await;
    let owner = app.person_with("acme", Role::Owner).await;
    let mut socket = TestSocket::open(app.address, &owner, None).await;
    let mut config = shell("say painted");
    let words = "Does something that is of no interest to anybody. ".repeat(20);
    let loops = format!(
        r#"list() {{ n=0; all=$TOOLS; while [ $n -lt {TOOLS} ]; do all="$all,{{\"name\":\"other_$n\",\"description\":\"{words}\",\"inputSchema\":{{\"type\":\"object\",\"properties\":{{\"how\":{{\"type\":\"string\"}}}}}}}}"; n=$((n+1)); done; answer "{{\"tools\":[$all]}}"; }}"#
    );
    let script = config["args"][1].as_str().unwrap();
    let script = script.replace(r#"list() { answer "{\"tools\":[$TOOLS]}"; }"#, &loops);
    config["args"][1] = json!(script);
    config["env"]["TOOLS"] = json!(tool("paint_fence", "Paints a fence in a colour"));
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

fn paint(how: &str) -> Value {
    json!({"tool": "paint_fence", "arguments": {"how": how}})
}

#[tokio::test]
async fn what_a_person_edits_are_the_arguments_of_the_tool_itself() {
    let (app, _, mut socket) = with_many_tools().await;
    app.model
        .will_call("use_tool", paint("green"))
        .then_say("Done");
    socket.say("paint it").await;
    let card = socket.wait_for_approval().await;
    assert_eq!(card["schema"]["properties"]["how"]["type"], "string");
    let edit = |args: Value| json!({"callId": card["callId"], "approved": true, "digest": card["digest"], "args": args});
    // The schema that holds is the tool's, not that of `use_tool`.
    let wrong = [edit(json!({"how": 7}))];
    let refused = socket.ask("tool:approval", &wrong).await;
    assert_eq!(refused["error"]["code"], "invalid_arguments", "{refused}");
    let right = [edit(json!({"how": "blue"}))];
    let taken = socket.ask("tool:approval", &right).await;
    assert_eq!(taken["ok"], true, "{taken}");
    let running = socket
        .wait_where(|said| {
            said.name == "tool:queue" && said.args[0]["calls"][0]["status"] == "executing"
        })
        .await;
    let running = &running.args[0]["calls"][0];
    assert_eq!(running["name"], "paint_fence");
    assert_eq!(running["args"], json!({"how": "blue"}));
    assert_eq!(running["originalArgs"], json!({"how": "green"}));
    assert_ne!(running["digest"], card["digest"], "{running}");
    assert_eq!(socket.wait_for("tool:output").await.text(), "painted");
    assert_eq!(socket.wait_for_answer().await, "Done");
    // The model reads its own call as it wrote it.
    let body = app.model.requests()[1].body.to_string();
    assert!(body.contains("green"), "{body}");
}

#[tokio::test]
async fn found_tools_and_ordinary_ones_stand_in_one_batch() {
    let (app, _, mut socket) = with_many_tools().await;
    let calls = [
        ("list_files", json!({})),
        ("use_tool", paint("green")),
        ("find_tools", json!({"query": "fence"})),
        ("use_tool", json!({"tool": "other_1", "arguments": {}})),
    ];
    app.model.will(Reply::answer("", &calls)).then_say("Done");
    socket.say("go").await;
    let mut asked = Vec::new();
    for approved in [true, true, false] {
        let card = socket.wait_for_approval().await;
        asked.push(card["name"].as_str().unwrap().to_owned());
        socket.decide(&card, approved).await;
    }
    assert_eq!(asked, ["list_files", "paint_fence", "other_1"]);
    assert_eq!(socket.wait_for_answer().await, "Done");
    let outputs = socket.log.iter().filter(|said| said.name == "tool:output");
    let mut outputs: Vec<(&str, &str)> = outputs
        .map(|said| {
            let rest = said.rest();
            (
                rest["name"].as_str().unwrap(),
                rest["status"].as_str().unwrap(),
            )
        })
        .collect();
    outputs.sort_unstable();
    assert_eq!(
        outputs,
        [
            ("find_tools", "completed"),
            ("list_files", "completed"),
            ("other_1", "rejected"),
            ("paint_fence", "completed"),
        ]
    );
    // Each call has its result, under the name that the model used.
    let body = &app.model.requests()[1].body;
    let messages = body["messages"].as_array().unwrap();
    let results = messages.iter().filter(|message| message["role"] == "tool");
    assert_eq!(results.count(), 4, "{body}");
}

#[tokio::test]
async fn a_found_tool_is_decided_over_rest_by_its_own_people_only() {
    let (app, owner, mut socket) = with_many_tools().await;
    app.model
        .will_call("use_tool", paint("green"))
        .then_say("Done");
    socket.say("paint it").await;
    let card = socket.wait_for_approval().await;
    let path = format!("/api/sessions/{}/approvals", socket.session());
    let decision = json!({
        "callId": card["callId"], "approved": true, "digest": card["digest"], "args": {"how": "red"},
    });
    let stranger = app.person_with("other", Role::Owner).await;
    let stranger = Client::with_key(&app, &stranger.key);
    let refused = stranger.post(&path, decision.clone()).await;
    refused.problem(404, "session_not_found");
    let owner = Client::with_key(&app, &owner.key);
    let taken = owner.post(&path, decision).await;
    assert_eq!(taken.ok(202)["ok"], true);
    let output = socket.wait_for("tool:output").await;
    assert_eq!(
        (output.text(), &output.rest()["name"]),
        ("painted", &json!("paint_fence"))
    );
    assert_eq!(socket.wait_for_answer().await, "Done");
}

#[tokio::test]
async fn a_found_tool_that_waits_for_approval_survives_a_restart() {
    let (app, owner, first) = with_many_tools().await;
    drop(first);
    let mut socket = TestSocket::open(app.address, &owner, Some("mine")).await;
    app.model.will_call("use_tool", paint("green"));
    socket.say("paint it").await;
    let card = socket.wait_for_approval().await;
    drop(socket);
    let app = app.restart().await;
    let mut socket = TestSocket::open(app.address, &owner, Some("mine")).await;
    let again = socket.wait_for_approval().await;
    for field in ["callId", "name", "server", "args", "digest"] {
        assert_eq!(again[field], card[field], "{field}");
    }
    app.model.will_say("Done");
    socket.approve(&again).await;
    assert_eq!(socket.wait_for("tool:output").await.text(), "painted");
    assert_eq!(socket.wait_for_answer().await, "Done");
    let body = app.model.requests().pop().unwrap().body.to_string();
    assert!(body.contains("use_tool"), "{body}");
}

/// One schema that the provider does not take would end every turn of the session.
#[tokio::test]
async fn a_tool_that_the_provider_refuses_is_left_out_and_can_still_be_called() {
    for (vendor, said) in [
        (
            Vendor::Chat,
            r#"{"error":{"message":"Invalid schema for function 'echo': no","type":"invalid_request_error"}}"#,
        ),
        (
            Vendor::Messages,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"tools.0.custom.input_schema: no"}}"#,
        ),
        (
            Vendor::Gemini,
            r#"{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"GenerateContentRequest.tools[0].function_declarations[0].parameters: no"}}"#,
        ),
    ] {
        let app = TestApp::start_as(vendor, &[("SPL_SANDBOX", "none")]).await;
        let person = operator(&app, "house").await;
        let odd = Odd::start(Answer::Forgets).await;
        let mut socket = TestSocket::open(app.address, &person, None).await;
        let config = json!({ "url": odd.url, "trusted": true });
        Api::new(&app, &person).add("odd", config).await;
        wait_for_health(&mut socket, "odd", "healthy").await;
        app.model
            .will_fail(400, &[], said)
            .then_call("use_tool", json!({ "tool": "echo", "arguments": {} }))
            .then_say("Done");
        socket.say("go").await;
        let card = socket.wait_for_approval().await;
        assert_eq!(card["name"], "echo", "{vendor:?}");
        socket.approve(&card).await;
        assert_eq!(socket.wait_for_answer().await, "Done");
        app.model.will_say("Again");
        socket.say("and again").await;
        assert_eq!(socket.wait_for_answer().await, "Again");
        let told = socket.log.iter();
        let told = told.filter(|said| said.rest()["code"] == "tool_left_out");
        let told: Vec<&str> = told.map(Said::text).collect();
        assert_eq!(told.len(), 1, "{vendor:?} {told:?}");
        assert!(
            told[0].contains("`echo` of the server `odd`") && told[0].contains("no"),
            "{told:?}"
        );
        let sent = sent_tools(&app);
        let has = |name: &str| -> Vec<bool> {
            let quoted = format!("\"name\":\"{name}\"");
            sent.iter().map(|tools| tools.contains(&quoted)).collect()
        };
        assert_eq!(has("echo"), [true, false, false, false], "{vendor:?}");
        assert_eq!(has("use_tool"), [false, true, true, true], "{vendor:?}");
    }
}
