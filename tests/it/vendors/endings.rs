//! Calls of an answer that did not end as it should, on every kind of provider.

use serde_json::{Value, json};

use crate::model_stub::{Reply, Vendor};
use crate::support::{TestApp, TestSocket};

async fn open(vendor: Vendor) -> (TestApp, TestSocket) {
    let app = TestApp::start_as(vendor, &[("SPL_SANDBOX", "bubblewrap")]).await;
    let ana = app.socket("acme").await;
    (app, ana)
}

/// Asserts S2.27.
#[tokio::test]
async fn a_call_that_the_end_cut_off_is_not_run_and_the_model_is_told() {
    for vendor in Vendor::ALL {
        for so_far in ["", r#"{"path": "a"#] {
            let (app, mut ana) = open(vendor).await;
            // Without any argument this tool would run as it is.
            app.model
                .will(vendor.cut_call("list_files", so_far))
                .then_say("I try again");
            ana.say("list").await;
            let output = ana.wait_for("tool:output").await;
            let told = format!("{vendor:?} {so_far:?} {output:?}");
            assert_eq!(output.rest()["status"], "failed", "{told}");
            assert!(output.text().contains("cut off"), "{told}");
            assert_eq!(ana.wait_for_answer().await, "I try again", "{told}");
            let asked = ana.log.iter();
            let mut asked = asked.filter(|said| said.name == "tool:approval_required");
            assert!(asked.next().is_none(), "nobody is asked: {told}");
            let body = app.model.requests().pop().unwrap().body.to_string();
            assert!(body.contains("cut off"), "{vendor:?} {body}");
        }
    }
}

#[tokio::test]
async fn a_whole_call_of_a_cut_answer_runs() {
    for vendor in [Vendor::Chat, Vendor::Responses, Vendor::Messages] {
        let (app, mut ana) = open(vendor).await;
        app.model
            .will(vendor.cut_call("list_files", r#"{"path": "."}"#))
            .then_say("Listed");
        ana.say("list").await;
        let card = ana.wait_for_approval().await;
        ana.approve(&card).await;
        let output = ana.wait_for("tool:output").await;
        assert_eq!(
            output.rest()["status"],
            "completed",
            "{vendor:?} {output:?}"
        );
        assert_eq!(ana.wait_for_answer().await, "Listed");
    }
}

#[tokio::test]
async fn calls_of_a_filtered_answer_are_dropped_and_the_transcript_says_so() {
    for vendor in Vendor::ALL {
        let (app, mut ana) = open(vendor).await;
        app.model
            .will(vendor.filtered_call("list_files", &json!({"path": "."})));
        ana.say("list").await;
        let ended = ana.wait_where(|said| {
            ["agent:response", "tool:approval_required"].contains(&said.name.as_str())
        });
        let ended = ended.await;
        assert_eq!(ended.name, "agent:response", "{vendor:?} {ended:?}");
        assert_eq!(ended.text(), "I begin");
        let (finish, detail) = match vendor {
            Vendor::Chat | Vendor::Responses => ("content_filter", Value::Null),
            Vendor::Messages => ("refusal", json!("cyber")),
            Vendor::Gemini => ("content_filter", json!("SAFETY")),
        };
        assert_eq!(ended.rest()["finish"], finish, "{vendor:?}");
        assert_eq!(ended.rest()["stopDetail"], detail, "{vendor:?}");
        assert_eq!(ended.rest()["droppedCalls"], 1, "{vendor:?}");
        // The next turn is taken by a vendor that knows nothing of the call.
        app.model.will_say("fine");
        ana.say("go on").await;
        assert_eq!(ana.wait_for_answer().await, "fine");
        let body = app.model.requests().pop().unwrap().body.to_string();
        assert!(
            !body.contains("functionCall\"") && !body.contains("toolu_"),
            "{body}"
        );
        // What is whole says nothing of it.
        let whole = ana
            .log
            .iter()
            .rev()
            .find(|said| said.name == "agent:response");
        assert_eq!(whole.unwrap().rest().get("droppedCalls"), None::<&Value>);
    }
}

#[tokio::test]
async fn a_call_that_names_no_tool_is_none() {
    for vendor in Vendor::ALL {
        let (app, mut ana) = open(vendor).await;
        let nameless = ("", json!({"path": "."}));
        app.model
            .will(Reply::answer("I call", std::slice::from_ref(&nameless)));
        ana.say("list").await;
        let ended = ana.wait_for("agent:response").await;
        assert_eq!(ended.rest()["finish"], "stop", "{vendor:?}");
        assert_eq!(ended.rest()["droppedCalls"], 1, "{vendor:?}");
        // Beside it a call with a name goes its way, and the vendor takes it back.
        let named = ("list_files", json!({"path": "."}));
        app.model
            .will(Reply::answer("Both", &[named, nameless]))
            .then_say("Listed");
        ana.say("again").await;
        let card = ana.wait_for_approval().await;
        assert_eq!(card["totalInQueue"], 1, "{vendor:?}");
        ana.approve(&card).await;
        assert_eq!(ana.wait_for_answer().await, "Listed", "{vendor:?}");
    }
}
