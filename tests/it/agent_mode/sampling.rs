//! What servers have models asked, where the agent is a tool of another program.

use serde_json::json;

use super::task_client::{Client, asked, yes};
use crate::servers::{Api, asking, operator, sampling};
use crate::support::{TestApp, TestSocket};

/// All that is asked is shown in the page: a form of a client may cut it off.
#[tokio::test]
async fn what_a_server_has_a_model_asked_is_left_to_the_page() {
    let (app, (url, _server)) = (TestApp::start().await, sampling::start().await);
    let person = operator(&app, "house").await;
    let config = json!({ "url": url, "sampling": true });
    Api::new(&app, &person).add("post", config).await;
    asking::is_listed(app.address, &person).await;
    let client = Client::of(app.address, &person);
    app.model.will_call("sample", json!({}));
    app.model.then_say("4").then_say("Done");
    let task = client.begin("Ask").await;
    let (call, _) = asked(&client.until(&task, "input_required").await).remove(0);
    let mut page = TestSocket::open(app.address, &person, Some(&task)).await;
    client.update(&task, json!({ call: yes() })).await;
    let shown = sampling::asked(&mut page).await;
    let now = client.get(&task).await;
    let forms = now["inputRequests"].as_object();
    assert!(forms.is_none_or(|forms| forms.is_empty()), "{now}");
    // Nor can the client answer by the name of what waits.
    let guess = json!({ shown["elicitationId"].as_str().unwrap(): yes() });
    client.update(&task, guess).await;
    assert_eq!(app.model.requests().len(), 1);
    sampling::says(&mut page, sampling::accept(&shown, &shown["digest"])).await;
    let answered = sampling::moved(&mut page, "answered").await;
    sampling::says(&mut page, sampling::accept(&shown, &answered["digest"])).await;
    client.until(&task, "completed").await;
    let read = app.model.requests()[2].body["messages"].to_string();
    assert!(read.contains("4 (endTurn)"), "{read}");
}
