//! Who is told outside of the page when calls wait: webhooks and mail, once for each batch.

mod doors;
mod mail;
mod mail_tls;
pub(crate) mod receiver;
mod webhooks;

use serde_json::{Value, json};

use crate::model_stub::{ModelStub, Reply};
use crate::rest::Client;
use crate::support::{Person, TestApp, TestSocket};

/// What no message may ever say: an argument, and what a person said below their first words.
const HUSH: &str = "hush-4711";

/// Tools are asked for, the receivers of this machine may be named, and what failed is soon tried again.
const ENV: &[(&str, &str)] = &[
    ("SPL_SANDBOX", "bubblewrap"),
    ("SPL_OUTGOING_ALLOW", "127.0.0.0/8"),
    ("SPL_NOTIFICATIONS_FIRST_RETRY", "0.05"),
];

/// The model asks for so many calls in its next answer.
fn will_ask(model: &ModelStub, calls: usize) {
    let calls: Vec<_> = (0..calls)
        .map(|at| ("list_files", json!({ "path": format!("{HUSH}/{at}") })))
        .collect();
    model.will(Reply::answer("I look", &calls));
}

/// A session of that person in which so many calls wait, and its cards.
async fn waiting(app: &TestApp, person: &Person, calls: usize) -> (TestSocket, Vec<Value>) {
    will_ask(&app.model, calls);
    let mut socket = TestSocket::open(app.address, person, None).await;
    let words = format!("mend the sail {} {HUSH}", "and look again ".repeat(40));
    socket.say(&words).await;
    socket.wait_for_approval().await;
    let queue = socket.wait_where(|said| said.name == "tool:queue").await;
    let cards = queue.args[0]["calls"].as_array().unwrap().clone();
    (socket, cards)
}

/// Says no to a call over REST.
async fn reject(app: &TestApp, person: &Person, socket: &TestSocket, card: &Value) {
    let decision = json!({
        "callId": card["callId"], "approved": false, "digest": card["digest"],
    });
    let path = format!("/api/sessions/{}/approvals", socket.session());
    let client = Client::with_key(app, &person.key);
    client.post(&path, decision).await.ok(202);
}
