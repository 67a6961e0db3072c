//! Hosts that speak Chat Completions in their own way, through the whole app.

use sepal::domain::Effort;
use serde_json::{Value, json};

use super::{call, collect, provider_called, request, result, said, user};
use crate::model_stub::{ChatHost, ModelStub, Reply, Vendor};
use crate::support::TestApp;

/// Asserts S3.40.
#[tokio::test]
async fn two_calls_are_approved_run_and_answered_and_a_second_turn_follows() {
    for host in ChatHost::ALL {
        let app = TestApp::start_at(host, &[("SPL_SANDBOX", "bubblewrap")]).await;
        let mut ana = app.socket("acme").await;
        let write = |path: &str| ("write_file", json!({"path": path, "content": "x"}));
        app.model
            .will(Reply::answer(
                "Two files",
                &[write("a.txt"), write("b.txt")],
            ))
            .then_say("Done");
        ana.say("make two files").await;
        for _ in 0..2 {
            let card = ana.wait_for_approval().await;
            ana.approve(&card).await;
        }
        for _ in 0..2 {
            let output = ana.wait_for("tool:output").await;
            assert_eq!(output.rest()["status"], "completed", "{host:?} {output:?}");
        }
        assert_eq!(ana.wait_for_answer().await, "Done", "{host:?}");
        app.model.will_say("Gladly");
        ana.say("and thanks").await;
        assert_eq!(ana.wait_for_answer().await, "Gladly", "{host:?}");
        let asked = app.model.requests();
        assert_eq!(asked.len(), 3, "{host:?}: nothing was refused");
    }
}

/// Asserts S3.40.
#[tokio::test]
async fn foreign_ids_empty_results_and_an_interrupted_turn_are_taken() {
    for host in ChatHost::ALL {
        let stub = ModelStub::start_at(host).await;
        let provider = provider_called(host.provider(), &stub);
        let calls = [0, 1].map(|at| call(at, &format!("toolu_01{at}"), "read_file", json!({})));
        let mut entries = vec![user("read"), said("", calls.to_vec(), None)];
        entries.extend(calls.iter().map(|call| result(call, "")));
        entries.push(user("stop"));
        entries.push(said("I stopped", vec![], None));
        let mut request = request(Vendor::Chat, entries);
        request.effort = Some(Effort::Low);
        request.max_tokens = Some(100);
        stub.will_say("Fine");
        let answer = collect(&provider, request).await.unwrap();
        assert_eq!(answer.text, "Fine", "{host:?}");
        let body = &stub.requests()[0].body;
        assert_eq!(body["reasoning_effort"], "high", "{host:?}");
        assert_eq!(body["max_tokens"], 100, "{host:?}");
    }
}

/// Asserts S3.40: the stand-ins are as strict as the hosts.
#[tokio::test]
async fn the_hosts_refuse_what_others_take() {
    for (host, words) in [
        (ChatHost::Mistral, "with a length of 9"),
        (ChatHost::Cohere, "tool_choice"),
    ] {
        let stub = ModelStub::start_at(host).await;
        // Under a name that says nothing it is spoken to like anybody; it refuses by name what it can
        // do without, and the rest fails.
        let provider = provider_called("other", &stub);
        let call = call(0, "call_abc", "read_file", Value::Null);
        let entries = vec![
            user("read"),
            said("", vec![call.clone()], None),
            result(&call, ""),
        ];
        stub.will_say("never");
        let error = collect(&provider, request(Vendor::Chat, entries)).await;
        let refused = stub.take_refusals();
        assert!(
            refused.iter().any(|said| said.contains(words)),
            "{refused:?}"
        );
        assert!(error.is_err(), "{host:?}");
    }
}
