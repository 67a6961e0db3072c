//! What servers have models asked is paid for like everything of the session.

use super::{PRICED, cost, own, set};
use crate::rest::Client;
use crate::servers::sampling::{accept, asked, calling, moved, on, says};
use crate::support::TestApp;

/// Asserts S0.52 and S1.12.
#[tokio::test]
async fn a_budget_that_is_used_up_answers_no_server() {
    let app = TestApp::start_with(&PRICED).await;
    let (mut socket, owner, _server) = calling(&app, "sample", on()).await;
    let asked = asked(&mut socket).await;
    let client = Client::with_key(&app, &owner.key);
    let limit = cost(&client).await;
    let own = own(&socket.session(), limit);
    set(&client, own).await;
    says(&mut socket, accept(&asked, &asked["digest"])).await;
    let failed = moved(&mut socket, "failed").await;
    assert_eq!(failed["problem"]["code"], "budget_exhausted", "{failed}");
    let words = failed["problem"]["text"].as_str().unwrap();
    assert!(words.contains("that you set for this session"), "{words}");
    let output = socket.wait_for("tool:output").await;
    assert!(output.text().contains("budget_exhausted"), "{output:?}");
    assert_eq!(
        app.model.requests().len(),
        1,
        "nothing was asked for the server"
    );
}
