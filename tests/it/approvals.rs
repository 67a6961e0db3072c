//! Stories of decisions over the socket: approve, reject, edit, take back, say it twice.

use serde_json::{Value, json};

use crate::model_stub::Reply;
use crate::support::{Log, TestApp, TestSocket};

/// A command that ends only if the other one runs at the same time.
fn meet(own: &str, other: &str) -> Value {
    let wait = format!("until [ -e {other} ]; do sleep 0.01; done");
    json!({ "command": format!("touch {own}; {wait}; echo {own} met {other}") })
}

/// S0.1, S0.59, S0.61, S2.2, S2.36, S2.39, S2.41, S2.45, S3.6, S3.20, S3.26, S3.28: the whole of a turn,
/// in its order.
/// Asserts S2.38, S2.40, S3.39.
#[tokio::test]
async fn two_calls_are_asked_one_by_one_and_run_side_by_side_after_the_last_yes() {
    let app = TestApp::with_sandbox().await;
    let (one, two) = (meet("one", "two"), meet("two", "one"));
    let calls = [
        ("execute_command", one.clone()),
        ("execute_command", two.clone()),
    ];
    app.model
        .will(Reply::answer("Two meet", &calls))
        .then_say("Done");
    let mut ana = app.socket("acme").await;
    ana.say("let two meet").await;
    let first = ana.wait_for_approval().await;
    assert_eq!(
        (&first["queuePosition"], &first["totalInQueue"]),
        (&json!(1), &json!(2))
    );
    assert_eq!(first["name"], "execute_command");
    assert_eq!(first["args"], one);
    ana.approve(&first).await;
    let second = ana.wait_for_approval().await;
    assert_eq!(second["queuePosition"], 2);
    assert_eq!(second["args"], two);
    assert_ne!(second["callId"], first["callId"]);
    assert!(
        !ana.log.iter().any(|said| said.name == "tool:started"),
        "nothing runs before"
    );
    ana.approve(&second).await;
    ana.wait_for("tool:started").await;
    ana.wait_for("tool:started").await;
    for _ in 0..2 {
        let output = ana.wait_for("tool:output").await;
        assert_eq!(output.rest()["status"], "completed", "{output:?}");
        assert_eq!(output.rest()["name"], "execute_command", "{output:?}");
        assert!(output.text().contains(" met "), "{output:?}");
    }
    assert_eq!(ana.wait_for_answer().await, "Done");

    let asked = ana.log.iter().find(|said| said.name == "agent:message");
    let asked = asked.unwrap().rest()["calls"].clone();
    assert_eq!(
        (&asked[0]["args"], &asked[1]["args"]),
        (&one, &two),
        "{asked}"
    );
    check_order(&ana);
    check_requests(&app);
}

/// What was shown of the turn above.
fn check_order(ana: &TestSocket) {
    let names = ana.shown().into_iter().map(|(_, name)| name);
    let names: Vec<String> = names.filter(|name| name != "session:changed").collect();
    let expected = [
        "user:message",
        "agent:thinking",
        "agent:message",
        "tool:approval_required",
        "tool:decided",
        "tool:approval_required",
        "tool:decided",
        "tool:started",
        "tool:started",
        "tool:output",
        "tool:output",
        "agent:thinking",
        "agent:response",
    ];
    assert_eq!(names, expected);
}

/// What the model was told in the turn above.
fn check_requests(app: &TestApp) {
    let requests = app.model.requests();
    assert_eq!(requests.len(), 2, "the results went back in one request");
    let tools = requests[0].body["tools"].to_string();
    assert!(tools.contains("execute_command"), "{tools}");
    let messages = |at: usize| requests[at].body["messages"].as_array().unwrap().clone();
    let question = messages(0).last().unwrap().clone();
    assert_eq!(question["content"], "let two meet");
    let results = messages(1);
    let results = results.iter().filter(|said| said["role"] == "tool");
    let results: Vec<&str> = results
        .map(|said| said["content"].as_str().unwrap())
        .collect();
    assert_eq!(results.len(), 2, "{results:?}");
    assert!(results[0].contains("one met two"), "{results:?}");
    assert!(results[1].contains("two met one"), "{results:?}");
}

/// S3.24, S3.25: such a call is answered and not asked about.
#[tokio::test]
async fn arguments_that_cannot_be_read_are_logged_and_answered_and_the_turn_goes_on() {
    let log = Log::start();
    let app = TestApp::with_sandbox().await;
    app.model
        .will(Reply::answer(
            "I list",
            &[("list_files", json!(["no", "object"]))],
        ))
        .then_say("I see");
    let mut ana = app.socket("acme").await;
    ana.say("list").await;
    let output = ana.wait_for("tool:output").await;
    assert_eq!(output.rest()["status"], "failed", "{output:?}");
    let told = "Invalid arguments format: expected a JSON object";
    assert_eq!(output.text(), told);
    assert_eq!(ana.wait_for_answer().await, "I see");
    let ran = ["tool:approval_required", "tool:started"];
    assert!(
        ana.log
            .iter()
            .all(|said| !ran.contains(&said.name.as_str()))
    );
    let messages = app.model.requests()[1].body["messages"].clone();
    let last = messages.as_array().unwrap().last().unwrap();
    assert_eq!(
        (&last["role"], &last["content"]),
        (&json!("tool"), &json!(told))
    );
    let lines = log.text();
    let line = lines.lines().find(|line| line.contains(told));
    let line = line.unwrap_or_else(|| panic!("nothing is logged: {lines}"));
    assert!(
        line.contains("WARN") && line.contains("list_files"),
        "{line}"
    );
}

/// Asserts O2.
#[tokio::test]
async fn a_rejection_with_a_reason_is_what_the_model_reads() {
    let app = TestApp::with_sandbox().await;
    app.model
        .will_call("write_file", json!({"path": "a.txt", "content": "x"}))
        .then_say("Understood");
    let mut ana = app.socket("acme").await;
    ana.say("make a file").await;
    let card = ana.wait_for_approval().await;
    let reject = json!({"callId": card["callId"], "approved": false, "reason": "not on main"});
    assert_eq!(ana.ask("tool:approval", &[reject]).await["ok"], true);
    let output = ana.wait_for("tool:output").await;
    assert_eq!(output.rest()["status"], "rejected");
    assert_eq!(ana.wait_for_answer().await, "Understood");
    let last = app.model.requests().pop().unwrap();
    assert!(format!("{last:?}").contains("not on main"), "{last:?}");
}

/// Asserts S2.28.
#[tokio::test]
async fn edited_arguments_are_validated_run_and_told_to_the_model() {
    let app = TestApp::with_sandbox().await;
    app.model
        .will_call("write_file", json!({"path": "a.txt", "content": "x"}))
        .then_call("read_file", json!({"path": "b.txt"}))
        .then_say("Read it");
    let mut ana = app.socket("acme").await;
    ana.say("make a file").await;
    let card = ana.wait_for_approval().await;
    let edit = |args| json!({"callId": card["callId"], "approved": true, "args": args});
    let refused = ana
        .ask("tool:approval", &[edit(json!({"path": 7, "content": "y"}))])
        .await;
    assert_eq!(refused["error"]["code"], "invalid_arguments", "{refused}");
    assert_eq!(refused["error"]["field"], "args");
    let taken = ana
        .ask(
            "tool:approval",
            &[edit(json!({"path": "b.txt", "content": "y"}))],
        )
        .await;
    assert_eq!(taken["ok"], true, "{taken}");
    let running = ana.wait_where(|said| {
        said.name == "tool:queue" && said.args[0]["calls"][0]["status"] == "executing"
    });
    let running = running.await.args[0]["calls"][0].clone();
    assert_eq!(running["args"]["path"], "b.txt", "{running}");
    assert_eq!(running["originalArgs"]["path"], "a.txt", "{running}");
    assert_ne!(running["digest"], card["digest"], "{running}");
    assert_eq!(running["schema"], card["schema"], "{running}");
    let card = ana.wait_for_approval().await;
    ana.approve(&card).await;
    let output =
        ana.wait_where(|said| said.name == "tool:output" && said.rest()["name"] == "read_file");
    assert!(output.await.text().contains('y'));
    assert_eq!(ana.wait_for_answer().await, "Read it");
    let told = format!("{:?}", app.model.requests());
    assert!(told.contains("changed the arguments"), "{told}");
}

#[tokio::test]
async fn an_edited_approval_may_be_repeated_and_another_tabs_old_card_is_not_one() {
    let app = TestApp::with_sandbox().await;
    let write = json!({"path": "a.txt", "content": "x"});
    let calls = [("write_file", write), ("list_files", json!({"path": "."}))];
    app.model.will(Reply::answer("", &calls)).then_say("Done");
    let mut ana = app.socket("acme").await;
    ana.say("make a file").await;
    let card = ana.wait_for_approval().await;
    let said = |more: Value| {
        let mut said = json!({"callId": card["callId"], "approved": true});
        said.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        [said]
    };
    let edit = said(json!({
        "digest": card["digest"], "args": {"path": "b.txt", "content": "y"},
    }));
    let old = said(json!({"digest": card["digest"]}));
    let take_back = said(json!({"approved": false, "takeBack": true}));
    for _ in 0..2 {
        let taken = ana.ask("tool:approval", &edit).await;
        assert_eq!(taken["ok"], true, "{taken}");
    }
    let refused = ana.ask("tool:approval", &old).await;
    assert_eq!(refused["error"]["code"], "changed_since_shown", "{refused}");
    for _ in 0..2 {
        let taken = ana.ask("tool:approval", &take_back).await;
        assert_eq!(taken["ok"], true, "{taken}");
    }
    // It waits again, with what was changed; whoever saw the first card saw something else.
    for unseen in [&old, &edit] {
        let refused = ana.ask("tool:approval", unseen).await;
        assert_eq!(refused["error"]["code"], "changed_since_shown", "{refused}");
    }
}

#[tokio::test]
async fn an_approval_whose_answer_was_lost_may_be_repeated_after_its_turn() {
    let app = TestApp::with_sandbox().await;
    let write = json!({"path": "a.txt", "content": "x"});
    app.model.will_call("write_file", write).then_say("Done");
    let mut ana = app.socket("acme").await;
    ana.say("make a file").await;
    let card = ana.wait_for_approval().await;
    let edit = |content: &str| {
        let args = json!({"path": "b.txt", "content": content});
        [
            json!({"callId": card["callId"], "approved": true, "digest": card["digest"], "args": args}),
        ]
    };
    ana.ask("tool:approval", &edit("y")).await;
    assert_eq!(ana.wait_for_answer().await, "Done");
    let again = ana.ask("tool:approval", &edit("y")).await;
    assert_eq!(again["ok"], true, "{again}");
    let other = ana.ask("tool:approval", &edit("z")).await;
    assert_eq!(other["error"]["code"], "already_decided", "{other}");
    let unedited = json!({"callId": card["callId"], "approved": true, "digest": card["digest"]});
    let refused = ana.ask("tool:approval", &[unedited]).await;
    assert_eq!(refused["error"]["code"], "changed_since_shown", "{refused}");
    app.model.will_say("Still here");
    ana.say("and now?").await;
    assert_eq!(ana.wait_for_answer().await, "Still here");
}

#[tokio::test]
async fn a_call_that_arrives_meanwhile_is_not_approved_with_the_others() {
    let app = TestApp::with_sandbox().await;
    let list = |path: &str| ("list_files", json!({"path": path}));
    app.model
        .will(Reply::answer("", &[list("."), list("./"), list("././")]))
        .then_say("Listed");
    let mut ana = app.socket("acme").await;
    ana.say("list").await;
    let first = ana.wait_for_approval().await;
    let queue = ana.wait_for("tool:queue").await;
    let calls = queue.args[0]["calls"].as_array().unwrap().clone();
    let seen = json!([calls[0]["callId"], calls[1]["callId"]]);
    let without = ana
        .ask("tool:approval_all", &[json!({"approved": true})])
        .await;
    assert_eq!(without["error"]["field"], "callIds", "{without}");
    let all = json!({"callIds": seen, "approved": true});
    assert_eq!(ana.ask("tool:approval_all", &[all]).await["ok"], true);
    assert_eq!(first["callId"], calls[0]["callId"]);
    let third = ana.wait_for_approval().await;
    assert_eq!(third["callId"], calls[2]["callId"], "it stays pending");
    ana.approve(&third).await;
    assert_eq!(ana.wait_for_answer().await, "Listed");
}

/// S2.28: `result` and `error` of what has ended, in short, while another call still runs.
#[tokio::test]
async fn a_queue_tells_the_beginning_of_what_ended_calls_gave() {
    let app = TestApp::with_sandbox().await;
    let long = json!({"command": "printf 'x%.0s' $(seq 2000)"});
    let endless = json!({"command": "sleep 600"});
    let calls = [
        ("execute_command", long),
        ("read_file", json!({"path": "missing.txt"})),
        ("execute_command", endless),
    ];
    app.model.will(Reply::answer("", &calls)).then_say("Done");
    let person = app.person("acme").await;
    let mut ana = TestSocket::open(app.address, &person, None).await;
    ana.say("do three things").await;
    for _ in 0..3 {
        let card = ana.wait_for_approval().await;
        assert_eq!(card.get("result").or(card.get("error")), None, "{card}");
        ana.approve(&card).await;
    }
    let is_ended = |call: &Value| call["status"] == "completed" || call["status"] == "failed";
    let told = ana.wait_where(|said| {
        said.name == "tool:queue" && {
            let calls = said.args[0]["calls"].as_array().unwrap();
            calls.iter().filter(|call| is_ended(call)).count() == 2
        }
    });
    let told = told.await.args[0]["calls"].clone();
    let check = |calls: &Value| {
        let result = calls[0]["result"].as_str().unwrap();
        assert!(result.contains("xxx") && result.ends_with('…'), "{result}");
        assert_eq!(result.chars().count(), 501, "{result}");
        assert_eq!(calls[0].get("error"), None, "{calls}");
        assert_eq!(calls[1]["status"], "failed", "{calls}");
        let error = calls[1]["error"].as_str().unwrap();
        assert!(error.contains("missing.txt"), "{error}");
        assert_eq!(calls[1].get("result"), None, "{calls}");
        let running = calls[2].get("result").or(calls[2].get("error"));
        assert_eq!(running, None, "{calls}");
    };
    check(&told);
    // Whoever comes later sees the same.
    let session = ana.session();
    let mut later = TestSocket::open(app.address, &person, Some(&session)).await;
    check(&later.ready["state"]["queue"]["calls"]);
    let stop = json!({"callId": told[2]["callId"]});
    assert_eq!(later.ask("tool:cancel", &[stop]).await["ok"], true);
    assert_eq!(ana.wait_for_answer().await, "Done");
}
