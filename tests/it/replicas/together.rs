//! Both live and nothing is lost.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{Pair, assert_same_stream, cancel, said};
use crate::model_stub::Reply;
use crate::support::{Said, TestApp, TestSocket};

#[tokio::test]
async fn a_session_open_on_both_shows_the_same_stream_and_the_same_text() {
    let pair = Pair::start().await;
    let (person, mut a, mut b) = pair.sockets("both").await;
    let text = "one 😀 two three four five six";
    pair.a.model.will(Reply::say(text)).stall();
    a.say("count").await;
    pair.a.model.stalled().await;
    // It joins in the middle of the answer and learns what was said before.
    let mut late = TestSocket::open(pair.b.address, &person, Some("both")).await;
    for socket in [&mut a, &mut b] {
        socket.wait_for("agent:delta").await;
    }
    pair.a.model.release();
    for socket in [&mut a, &mut b, &mut late] {
        assert_eq!(socket.wait_for_answer().await, text);
    }
    assert_eq!(said(&a), text);
    assert_eq!(said(&b), text);
    assert_same_stream(&a, &b);
    let running = &late.ready["state"]["running"];
    let before = running["text"].as_str().unwrap_or_default().to_owned();
    let after: String = late
        .log
        .iter()
        .filter(|said| said.name == "agent:delta")
        .map(|said| said.text().to_owned())
        .collect();
    assert_eq!(before + &after, text);

    // The next turn starts at the other gateway.
    pair.a.model.will_say("from there");
    b.say("again").await;
    for socket in [&mut a, &mut b] {
        assert_eq!(socket.wait_for_answer().await, "from there");
    }
    assert_same_stream(&a, &b);
}

#[tokio::test]
async fn a_call_is_approved_at_one_gateway_and_runs_once_at_the_other() {
    let pair = Pair::start_with(&[("SPL_SANDBOX", "bubblewrap")]).await;
    let (_, mut a, mut b) = pair.sockets("approve").await;
    let command = json!({"command": "echo run >> count; cat count"});
    pair.a
        .model
        .will_call("execute_command", command)
        .then_say("Done");
    a.say("run").await;
    let card = b.wait_for_approval().await;
    assert_eq!(a.wait_for_approval().await["callId"], card["callId"]);
    b.approve(&card).await;
    for socket in [&mut a, &mut b] {
        let output = socket.wait_for("tool:output").await;
        assert_eq!(output.text().matches("run").count(), 1, "{output:?}");
        assert_eq!(socket.wait_for_answer().await, "Done");
    }
    assert_same_stream(&a, &b);

    // The files lie where the call was started: what is asked elsewhere runs there too.
    pair.a
        .model
        .will_call("read_file", json!({"path": "count"}))
        .then_say("Read");
    a.say("read").await;
    let card = a.wait_for_approval().await;
    a.approve(&card).await;
    for socket in [&mut a, &mut b] {
        let output = socket.wait_for("tool:output").await;
        assert_eq!(output.rest()["status"], "completed", "{output:?}");
        assert_eq!(output.text().matches("run").count(), 1, "{output:?}");
        assert_eq!(socket.wait_for_answer().await, "Read");
    }
    assert_same_stream(&a, &b);
}

#[tokio::test]
async fn a_stop_at_one_gateway_ends_the_model_request_of_the_other() {
    let pair = Pair::start().await;
    let (_, mut a, mut b) = pair.sockets("stop").await;
    pair.a
        .model
        .will(Reply::say("never to be said whole"))
        .stall();
    a.say("go").await;
    pair.a.model.stalled().await;
    b.wait_for("agent:delta").await;
    cancel(&mut b).await;
    let at_a = a.wait_for("agent:cancelled").await;
    let at_b = b.wait_for("agent:cancelled").await;
    assert_eq!(at_a, at_b);
    let kept = at_b.rest()["text"].as_str().unwrap().to_owned();
    assert!(
        !kept.is_empty() && "never to be said whole".starts_with(&kept),
        "{kept}"
    );
    pair.a.model.release();
    pair.a.model.idle().await;
    assert_same_stream(&a, &b);
}

#[tokio::test]
async fn a_running_call_is_stopped_from_the_other_gateway() {
    let pair = Pair::start_with(&[("SPL_SANDBOX", "bubblewrap")]).await;
    let (_, mut a, mut b) = pair.sockets("stop-call").await;
    let command = json!({"command": "echo started; sleep 25"});
    pair.a
        .model
        .will_call("execute_command", command)
        .then_say("Stopped");
    a.say("run").await;
    let card = a.wait_for_approval().await;
    a.approve(&card).await;
    // Progress of the other gateway's call is shown here.
    b.wait_where(|said| said.name == "tool:progress").await;
    let asked = json!({ "callId": card["callId"] });
    assert_eq!(b.ask("tool:cancel", &[asked]).await["ok"], true);
    for socket in [&mut a, &mut b] {
        let output = socket.wait_for("tool:output").await;
        assert_eq!(output.rest()["status"], "cancelled");
        assert_eq!(socket.wait_for_answer().await, "Stopped");
    }
    assert_same_stream(&a, &b);
}

#[tokio::test]
async fn a_message_at_one_gateway_is_read_by_the_turn_of_the_other() {
    let pair = Pair::start().await;
    let (_, mut a, mut b) = pair.sockets("steer").await;
    pair.a.model.will(Reply::say("first answer")).stall();
    pair.a.model.will_say("second answer");
    a.say("one").await;
    pair.a.model.stalled().await;
    b.say("two").await;
    pair.a.model.release();
    for socket in [&mut a, &mut b] {
        assert_eq!(socket.wait_for_answer().await, "first answer");
        assert_eq!(socket.wait_for_answer().await, "second answer");
    }
    assert_same_stream(&a, &b);
}

#[tokio::test]
async fn both_decide_at_once_and_every_call_is_decided_once() {
    let pair = Pair::start_with(&[("SPL_SANDBOX", "bubblewrap")]).await;
    let (_, mut a, mut b) = pair.sockets("race").await;
    let call = |n: usize| {
        (
            "write_file",
            json!({"path": format!("f{n}"), "content": "x"}),
        )
    };
    let calls: Vec<_> = (0..4).map(call).collect();
    pair.a
        .model
        .will(Reply::answer("", &calls))
        .then_say("Done");
    a.say("write").await;
    for _ in 0..4 {
        let (at_a, at_b) = tokio::join!(a.wait_for_approval(), b.wait_for_approval());
        assert_eq!(at_a["callId"], at_b["callId"]);
        let (one, two) = tokio::join!(a.decide(&at_a, true), b.decide(&at_b, true));
        // All calls begin with the last decision; they may have ended, and the model may have been
        // asked again, when the other one comes.
        assert!(one["ok"] == true && two["ok"] == true, "{one} {two}");
    }
    for socket in [&mut a, &mut b] {
        assert_eq!(socket.wait_for_answer().await, "Done");
    }
    assert_same_stream(&a, &b);
    let outputs = a.log.iter().filter(|said| said.name == "tool:output");
    assert_eq!(outputs.count(), 4);
}

#[tokio::test]
async fn a_session_deleted_at_one_gateway_is_gone_at_the_other() {
    let pair = Pair::start().await;
    let (person, mut a, mut b) = pair.sockets("gone").await;
    pair.a.model.will_say("hello");
    a.say("hello").await;
    a.wait_for_answer().await;
    b.wait_for_answer().await;
    let url = pair.b.url(&format!("/api/sessions/{}", a.session()));
    let http = TestApp::http();
    let deleted = http
        .delete(url)
        .bearer_auth(&person.key)
        .send()
        .await
        .unwrap();
    assert_eq!(deleted.status(), 204);
    let gone = a.wait_for("error").await;
    assert_eq!(gone.rest()["code"], "session_not_found");
}

#[tokio::test]
async fn the_list_of_sessions_is_the_same_at_both() {
    let pair = Pair::start_with(&[("SPL_SANDBOX", "bubblewrap")]).await;
    let (person, mut a, mut b) = pair.sockets("listed").await;
    pair.a.model.will_call("list_files", json!({"path": "."}));
    a.say("look here").await;
    b.wait_for_approval().await;
    let http = TestApp::http();
    for app in [&pair.a, &pair.b] {
        // The row follows its commit in a moment.
        let row = loop {
            let asked = http.get(app.url("/api/sessions")).bearer_auth(&person.key);
            let page: serde_json::Value = asked.send().await.unwrap().json().await.unwrap();
            let row = page["items"][0].clone();
            if row["state"] == "waiting" {
                break row;
            }
            tokio::task::yield_now().await;
        };
        assert_eq!(row["title"], "look here");
        assert_eq!(row["waiting"], 1);
    }
    cancel(&mut b).await;
    a.wait_for("agent:cancelled").await;
}

#[tokio::test]
async fn who_waits_at_one_gateway_in_a_session_that_the_other_stores_goes_on_from_what_was_seen() {
    let pair = Pair::start().await;
    let (person, mut a, mut b) = pair.sockets("first-words").await;
    assert_ne!(
        a.ready["journalId"], b.ready["journalId"],
        "nothing is stored"
    );
    // Somebody else's socket that is away when it is stored has seen nothing.
    let away = TestSocket::open(pair.b.address, &person, Some("first-words")).await;
    let nothing = away.ready["journalId"].clone();
    away.vanish();
    pair.a.model.will_say("hello");
    a.say("hi").await;
    assert_eq!(a.wait_for_answer().await, "hello");
    assert_eq!(b.wait_for_answer().await, "hello");
    assert_same_stream(&a, &b);
    let again = b.log.iter().rfind(|said| said.name == "system:ready");
    let again = again.unwrap().rest().clone();
    assert_eq!(again["journalId"], a.ready["journalId"]);
    assert_eq!(again["resumed"], true);

    pair.a.model.will_say("more");
    b.say("and?").await;
    assert_eq!(a.wait_for_answer().await, "more");
    for (address, last, journal) in [
        (pair.a.address, 2, &again["journalId"]),
        (pair.b.address, 2, &again["journalId"]),
        (pair.a.address, 0, &nothing),
    ] {
        let auth = json!({
            "token": person.key, "sessionId": "first-words", "lastSeq": last, "journalId": journal,
        });
        let mut back = TestSocket::try_open(address, auth).await.unwrap();
        assert_eq!(back.ready["resumed"], true, "{}", back.ready);
        back.wait_where(|said| said.seq() == Some(6)).await;
        let seqs: Vec<u64> = back.shown().iter().map(|(seq, _)| *seq).collect();
        assert_eq!(seqs, (last + 1..=6).collect::<Vec<u64>>());
    }
}

#[tokio::test]
async fn what_waits_at_one_gateway_is_told_to_the_lists_of_the_other() {
    let pair = Pair::start_with(&[("SPL_SANDBOX", "bubblewrap")]).await;
    let person = pair.a.person("acme").await;
    let stranger = pair.a.person("other").await;
    let mut list = TestSocket::listen(pair.b.address, &person).await.unwrap();
    let mut theirs = TestSocket::listen(pair.b.address, &stranger).await.unwrap();
    pair.a
        .model
        .will_call("list_files", json!({}))
        .then_say("Done");
    let mut socket = TestSocket::open(pair.a.address, &person, None).await;
    socket.say("list").await;
    let card = socket.wait_for_approval().await;
    let session = socket.session();
    let is_told = |said: &Said, calls: u64| {
        let item = &said.args[0];
        item["id"] == session && item["waiting"] == calls
    };
    let began = Instant::now();
    list.wait_where(|said| is_told(said, 1)).await;
    assert!(
        began.elapsed() < Duration::from_secs(1),
        "{:?}",
        began.elapsed()
    );
    socket.decide(&card, false).await;
    list.wait_where(|said| is_told(said, 0)).await;

    // What the stranger hears comes after it over the same line.
    pair.a.model.will_say("yours");
    let mut own = TestSocket::open(pair.a.address, &stranger, None).await;
    own.say("hello").await;
    theirs.wait_for("sessions:changed").await;
    for said in &theirs.log {
        assert_eq!(said.args[0]["id"], own.session(), "{said:?}");
    }
}
