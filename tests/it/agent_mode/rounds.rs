//! Calls in rounds, for clients of revision 2026-07-28: what the person there is asked comes as a result,
//! and the client calls again with the answers.

use serde_json::{Value, json};
use tempfile::TempDir;

use super::task_client::{Client, asked, write, yes};
use crate::model_stub::{ModelStub, Reply};
use crate::servers::{Api, asking, operator, sampling};
use crate::support::{DEADLINE, Person, Server, TestApp, TestSocket, person};

fn client(address: std::net::SocketAddr, person: &Person) -> Client {
    let mut client = Client::of(address, person);
    client.capabilities = json!({ "elicitation": {} });
    client
}

/// One round; none of the rounds before = a new question.
async fn call(client: &Client, before: Option<(&Value, Value)>) -> Value {
    let mut call = json!({ "name": "process", "arguments": { "input": "Do it" } });
    if let Some((before, answers)) = before {
        call["requestState"] = before["requestState"].clone();
        call["inputResponses"] = answers;
    }
    let answering = client.ask("tools/call", ("process", call));
    tokio::time::timeout(DEADLINE, answering).await.unwrap()
}

fn result(answer: &Value, kind: &str) -> Value {
    assert_eq!(answer["result"]["resultType"], kind, "{answer}");
    answer["result"].clone()
}

/// Asserts S0.48.
#[tokio::test]
async fn a_call_ends_with_what_is_asked_and_goes_on_with_the_answers() {
    let app = TestApp::with_sandbox().await;
    let ana = app.person("acme").await;
    let client = client(app.address, &ana);
    let calls = [write("a.txt"), write("b.txt")];
    app.model.then(Reply::answer("", &calls)).then_say("Done.");
    let first = result(&call(&client, None).await, "input_required");
    let keys: Vec<String> = asked(&first).into_iter().map(|(key, _)| key).collect();
    assert_eq!(keys.len(), 2, "{first}");
    // One answer at a time: the other question stays.
    let answers = json!({ &keys[0]: yes() });
    let second = result(
        &call(&client, Some((&first, answers))).await,
        "input_required",
    );
    let left: Vec<String> = asked(&second).into_iter().map(|(key, _)| key).collect();
    assert_eq!(left, keys[1..]);
    // An answer that is none is refused, and the question stays, too.
    let wrong = json!({ &keys[1]: { "action": "perhaps" } });
    let wrong = call(&client, Some((&second, wrong))).await;
    assert_eq!(wrong["error"]["code"], -32_602, "{wrong}");
    let answers = json!({ &keys[1]: { "action": "decline" } });
    let done = result(&call(&client, Some((&second, answers))).await, "complete");
    assert_eq!(done["content"][0]["text"], "Done.", "{done}");
    let read = app.model.requests()[1].body["messages"].to_string();
    assert_eq!(read.matches("declined").count(), 1, "{read}");
}

/// Nobody but its person goes on with it, and nobody with what is none.
#[tokio::test]
async fn the_state_of_a_round_is_its_persons_alone() {
    let app = TestApp::with_sandbox().await;
    let ana = app.person("acme").await;
    let mine = client(app.address, &ana);
    let (name, args) = write("a.txt");
    app.model.will_call(name, args);
    let first = result(&call(&mine, None).await, "input_required");
    let (key, _) = asked(&first).remove(0);
    for other in [app.person("acme").await, app.person("other").await] {
        let other = client(app.address, &other);
        let answer = call(&other, Some((&first, json!({ &key: yes() })))).await;
        assert_eq!(answer["error"]["code"], -32_602, "{answer}");
    }
    for state in ["", "ses_00000000000000000000000000000000", "../../etc"] {
        let forged = json!({ "requestState": state });
        let answer = call(&mine, Some((&forged, json!({})))).await;
        assert_eq!(answer["error"]["code"], -32_602, "{state}: {answer}");
    }
    let mut page = TestSocket::open(app.address, &ana, None).await;
    app.model.will_say("Hello.");
    page.say("hello").await;
    assert_eq!(page.wait_for_answer().await, "Hello.");
    let foreign = json!({ "requestState": page.session() });
    let answer = call(&mine, Some((&foreign, json!({})))).await;
    assert_eq!(answer["error"]["code"], -32_602, "{answer}");
    // Somebody in the page was faster, and the answer of the client says nothing any more.
    let session = first["requestState"].as_str().unwrap();
    let mut page = TestSocket::open(app.address, &ana, Some(session)).await;
    let card = page.wait_for_approval().await;
    app.model.will_say("Done.");
    page.approve(&card).await;
    let late = json!({ key: { "action": "decline" } });
    let done = result(&call(&mine, Some((&first, late))).await, "complete");
    assert_eq!(done["content"][0]["text"], "Done.", "{done}");
}

/// Asserts O1: `kill -9` between two rounds.
#[tokio::test]
async fn a_round_goes_on_after_a_kill() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let model = ModelStub::start().await;
    let (name, args) = write("a.txt");
    model.will_call(name, args).then_say("Done.");
    let server = Server::start_with(&data, &model, &[]);
    let ana = person(&data, &[]);
    let first = result(
        &call(&client(server.address, &ana), None).await,
        "input_required",
    );
    let (key, _) = asked(&first).remove(0);
    server.kill();
    let server = Server::start_with(&data, &model, &[]);
    let again = client(server.address, &ana);
    let answers = json!({ key: yes() });
    let done = result(&call(&again, Some((&first, answers))).await, "complete");
    assert_eq!(done["content"][0]["text"], "Done.", "{done}");
}

/// A gateway that ends in order in the middle of a round stops no turn: the client calls again.
#[tokio::test]
async fn a_round_goes_on_after_an_orderly_stop() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let model = ModelStub::start().await;
    let (name, args) = write("a.txt");
    model.will_call(name, args);
    let server = Server::start_with(&data, &model, &[]);
    let ana = person(&data, &[]);
    let before = client(server.address, &ana);
    let first = result(&call(&before, None).await, "input_required");
    let (key, _) = asked(&first).remove(0);
    model.will(Reply::say("never heard")).stall();
    let answered = json!({
        "name": "process", "arguments": { "input": "Do it" },
        "requestState": first["requestState"], "inputResponses": { key: yes() },
    });
    let stop = async {
        model.stalled().await;
        crate::support::beside(|| server.stop()).await;
    };
    // What this client hears is that its call has ended.
    tokio::join!(before.send("tools/call", "process", answered), stop);
    model.release();
    model.will_say("Here.");
    let server = Server::start_with(&data, &model, &[]);
    let again = client(server.address, &ana);
    let done = result(&call(&again, Some((&first, json!({})))).await, "complete");
    assert_eq!(done["content"][0]["text"], "Here.", "{done}");
}

/// A client that leaves in the middle of a round stops the turn.
#[tokio::test]
async fn a_client_that_leaves_in_a_round_stops_the_turn() {
    let app = TestApp::start().await;
    let ana = app.person("acme").await;
    let client = client(app.address, &ana);
    app.model.will_say("never heard").stall();
    tokio::select! {
        answer = call(&client, None) => panic!("{answer}"),
        () = app.model.stalled() => {}
    }
    // The request at the model ends with the turn.
    let idle = tokio::time::timeout(DEADLINE, app.model.idle());
    idle.await.unwrap();
}

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
    assert!(forms.is_none_or(serde_json::Map::is_empty), "{now}");
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
