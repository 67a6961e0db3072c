//! Data that earlier landings left behind opens in this one, and its sessions go on.
//!
//! Each `.db.gz` is the database of a data folder, made by the program of the commit that names it: a person
//! with a key and a session, and in the first one a provider with a sealed key. Its rows are of that program;
//! its tables were then brought to migration 34 by the migrations that `0035_schema.sql` replaced.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use flate2::read::GzDecoder;
use serde_json::{Value, json};

use crate::model_stub::ModelStub;
use crate::rest::Client;
use crate::support::{Person, Server, TestSocket};
use crate::usage::report_where;

/// What the program of commit `b0b924a` made, when there were five migrations: a session of one turn.
pub(crate) const FIRST: Landing = Landing {
    commit: "b0b924a",
    key: "spl_d3b5ec13_c734437fd113ee9a58a3fe16d5b51f4091e5a48f652ec448bc5bdb31be77ea6b",
    session: "ses_f970d8c962e350afb0a41f0e92d32866",
};

/// What the program of commit `761d65a` made, before gateways, epochs and runners were called so: its
/// session was answered once, and two calls of its second turn wait for a person.
pub(crate) const SECOND: Landing = Landing {
    commit: "761d65a",
    key: "spl_c746c4a2_b982af85fe909089c618414d7a0945509b49a103a498c722c5fae79da32cc053",
    session: "ses_9e0eb69829f9df4a28a1640858e3a09b",
};

pub(crate) struct Landing {
    commit: &'static str,
    /// Ana's, who owns the tenant `acme`.
    key: &'static str,
    /// Called `Before`, and `Waits`.
    pub(crate) session: &'static str,
}

impl Landing {
    /// Lays out a data folder with that database and the key that opens its secrets.
    pub(crate) fn lay_out(&self, data: &Path) {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/landings");
        fs::create_dir_all(data).unwrap();
        let packed = File::open(from.join(format!("{}.db.gz", self.commit))).unwrap();
        let mut database = File::create(data.join("sepal.db")).unwrap();
        io::copy(&mut GzDecoder::new(packed), &mut database).unwrap();
        let key = from.join(format!("{}.key", self.commit));
        fs::copy(key, data.join("secret.key")).unwrap();
    }
}

/// Name and text of what a session shows.
fn lines(socket: &TestSocket) -> Vec<(String, String)> {
    let events = socket.ready["state"]["transcript"]["events"].as_array();
    let line = |event: &Value| {
        let text = event["args"][0].as_str().unwrap_or_default();
        (event["event"].as_str().unwrap().to_owned(), text.to_owned())
    };
    events.unwrap().iter().map(line).collect()
}

#[tokio::test]
async fn the_data_of_the_first_landing_opens_and_its_session_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    FIRST.lay_out(&data);
    let model = ModelStub::start().await;
    let env = [
        ("LLM_PROVIDER", "scripted"),
        ("SPL_LLM_MODEL", "scripted"),
        ("SPL_LLM_SCRIPTED_PACE_MS", "0"),
        ("SPL_SANDBOX", "none"),
    ];
    let server = Server::start_with(&data, &model, &env);
    let ana = Person {
        tenant: sepal::domain::TenantId::from_bits(0),
        key: FIRST.key.to_owned(),
    };
    let mut socket = TestSocket::open(server.address, &ana, Some(FIRST.session)).await;
    assert_eq!(socket.ready["title"], "Before");
    let before = lines(&socket);
    assert_eq!(
        before
            .iter()
            .map(|(name, _)| name.as_str())
            .collect::<Vec<_>>(),
        [
            "session:changed",
            "user:message",
            "agent:thinking",
            "agent:response"
        ]
    );
    assert_eq!(before[1].1, "Hello from the last landing");

    socket.say("and now").await;
    let answer = socket.wait_for_answer().await;
    assert!(!answer.is_empty());
    let again = TestSocket::open(server.address, &ana, Some(FIRST.session)).await;
    let after = lines(&again);
    assert_eq!(after[..before.len()], before[..]);
    assert_eq!(after.last().unwrap().1, answer);

    let client = Client::at(server.address, &ana.key);
    // What it used then is summed with what it uses now, and nobody knows what for.
    let report = report_where(&client, "/api/usage", |report| {
        report["totals"]["requests"] == 2
    });
    let totals = report.await["totals"].clone();
    let usage = &again.ready["state"]["usage"];
    assert_eq!(totals["totalTokens"], usage["totalTokens"], "{totals}");
    let unknown = totals["parts"]["unknown"].as_u64().unwrap();
    assert!(
        unknown > 0 && unknown < totals["inputTokens"].as_u64().unwrap(),
        "{totals}"
    );

    // What was sealed then opens now.
    let provider = client.get("/api/providers/mine").await.ok(200);
    assert_eq!(
        (&provider["hasKey"], &provider["problem"]),
        (&Value::Bool(true), &Value::Null),
        "{provider}"
    );
}

/// The runner that the journal names is gone, and the snapshot is of the old form: both are read, the
/// calls are asked again, and the turn goes on in a new epoch.
#[tokio::test]
async fn calls_that_waited_in_the_second_landing_are_decided_in_this_one() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    SECOND.lay_out(&data);
    let model = ModelStub::start().await;
    let env = [
        ("LLM_PROVIDER", "scripted"),
        ("SPL_LLM_MODEL", "scripted"),
        ("SPL_LLM_SCRIPTED_PACE_MS", "0"),
        ("SPL_SANDBOX", "bubblewrap"),
    ];
    let server = Server::start_with(&data, &model, &env);
    let ana = Person {
        tenant: sepal::domain::TenantId::from_bits(0),
        key: SECOND.key.to_owned(),
    };
    let mut socket = TestSocket::open(server.address, &ana, Some(SECOND.session)).await;
    assert_eq!(socket.ready["title"], "Waits");
    let before = lines(&socket);
    assert_eq!(before[1].1, "Hello from the second landing");

    for _ in 0..2 {
        let card = socket.wait_for_approval().await;
        let reject = json!({"callId": card["callId"], "approved": false});
        assert_eq!(socket.ask("tool:approval", &[reject]).await["ok"], true);
    }
    let answer = socket.wait_for_answer().await;
    assert!(!answer.is_empty());
    let again = TestSocket::open(server.address, &ana, Some(SECOND.session)).await;
    let after = lines(&again);
    assert_eq!(after[..before.len()], before[..]);
    assert_eq!(after.last().unwrap().1, answer);
}
