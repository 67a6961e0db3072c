//! Stories of a session over the socket: ask, approve, reject, edit, steer, stop, come back.

use serde_json::{Value, json};

use crate::model_stub::Reply;
use crate::support::{Said, TestApp, TestSocket};

/// The scripts below call this tool; without a sandbox the app would not offer it.
async fn app() -> TestApp {
    TestApp::with_sandbox().await
}

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

#[tokio::test]
async fn two_calls_are_asked_one_by_one_and_run_side_by_side_after_the_last_yes() {
    let app = app().await;
    app.model
        .will(Reply::answer(
            "Two files",
            &[
                ("write_file", json!({"path": "a.txt", "content": "A"})),
                ("write_file", json!({"path": "b.txt", "content": "B"})),
            ],
        ))
        .then_say("Done");
    let mut ana = app.socket("acme").await;
    ana.say("make two files").await;
    let first = ana.wait_for_approval().await;
    assert_eq!(
        (&first["queuePosition"], &first["totalInQueue"]),
        (&json!(1), &json!(2))
    );
    ana.approve(&first).await;
    let second = ana.wait_for_approval().await;
    assert_eq!(second["queuePosition"], 2);
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
    }
    assert_eq!(ana.wait_for_answer().await, "Done");
    let requests = app.model.requests();
    assert_eq!(requests.len(), 2, "the results went back in one request");
}

#[tokio::test]
async fn a_rejection_with_a_reason_is_what_the_model_reads() {
    let app = app().await;
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

#[tokio::test]
async fn edited_arguments_are_validated_run_and_told_to_the_model() {
    let app = app().await;
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
    let app = app().await;
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
    let app = app().await;
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
    let app = app().await;
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

#[tokio::test]
async fn a_failed_turn_says_why_and_can_be_tried_again() {
    let app = TestApp::start().await;
    app.model
        .will_fail(500, &[], "no JSON here")
        .then_say("Better");
    let mut ana = app.socket("acme").await;
    ana.say("hello").await;
    let error = ana.wait_for("agent:error").await;
    assert_eq!(error.rest()["code"], "provider_unavailable");
    assert_eq!(error.rest()["retryable"], true);
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
        let list: serde_json::Value = list.send().await.unwrap().json().await.unwrap();
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
