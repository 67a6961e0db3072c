//! A session that changes its vendor in the middle of a turn, with everything that may stand in its history.

use sepal::domain::{Effort, Entry, ModelCall};
use sepal::llm::{Answer, Request};
use serde_json::json;

use super::{call, collect, provider, request, result, said, user};
use crate::model_stub::{ModelStub, Reply, STUB_KEY, Vendor};

/// The calls of an answer as the session keeps them, from that place on.
fn kept(answer: &Answer, from: usize) -> Vec<ModelCall> {
    let calls = answer.calls.iter().enumerate();
    let calls = calls.map(|(at, asked)| {
        let args = asked.args.clone().unwrap();
        call(from + at, &asked.provider_id, &asked.name, args)
    });
    calls.collect()
}

fn thinking(vendor: Vendor, entries: &[Entry]) -> Request {
    Request {
        effort: Some(Effort::High),
        ..request(vendor, entries.to_vec())
    }
}

/// One step of a turn: the vendor asks for two calls side by side, and gets both results.
async fn step(stub: &ModelStub, entries: &mut Vec<Entry>, from: usize) {
    let read = |path: &str| ("read_file", json!({"path": path}));
    stub.will(Reply::answer("I read.", &[read("a"), read("b")]));
    let asked = thinking(stub.vendor, entries);
    let answer = collect(&provider(stub, STUB_KEY), asked).await.unwrap();
    let calls = kept(&answer, from);
    assert_eq!(calls.len(), 2, "{:?}", stub.vendor);
    entries.push(said(&answer.text, calls.clone(), answer.native));
    entries.extend(calls.iter().rev().map(|call| result(call, "content")));
}

#[tokio::test]
async fn a_session_may_change_its_vendor_in_every_direction_in_the_middle_of_a_turn() {
    for first in Vendor::ALL {
        for second in Vendor::ALL {
            let (one, two) = (
                ModelStub::start_as(first).await,
                ModelStub::start_as(second).await,
            );
            // A call without its result, and a result without its call, as broken data has them.
            let lost = call(90, "lost", "read_file", json!({}));
            let gone = call(91, "gone", "read_file", json!({}));
            let mut entries = vec![
                user("earlier"),
                said("I look", vec![lost], None),
                result(&gone, "of nothing"),
                user("read"),
            ];
            step(&one, &mut entries, 0).await;
            // The turn runs on at the other vendor, and comes back.
            step(&two, &mut entries, 10).await;
            step(&one, &mut entries, 20).await;
            entries.push(user("and hurry"));
            step(&two, &mut entries, 30).await;
            two.will_say("Done");
            let asked = thinking(second, &entries);
            let answer = collect(&provider(&two, STUB_KEY), asked).await.unwrap();
            assert_eq!(answer.text, "Done", "{first:?} {second:?}");
            entries.push(said(&answer.text, vec![], answer.native));
            entries.push(user("thanks"));
            one.will_say("Good");
            let asked = thinking(first, &entries);
            let answer = collect(&provider(&one, STUB_KEY), asked).await.unwrap();
            assert_eq!(answer.text, "Good", "{first:?} {second:?}");
        }
    }
}
