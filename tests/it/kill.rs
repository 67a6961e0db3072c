//! `kill -9` of the real program: nothing acknowledged is lost, nothing runs twice.

use std::path::Path;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, SqliteConnection};
use tempfile::TempDir;

use crate::model_stub::{ModelStub, Reply};
use crate::servers::{asking, sampling, view_calls, views};
use crate::support::postgres::new_database;
use crate::support::{DEADLINE, Server, TestApp, TestSocket, docker, person, sepal};

/// Asserts O1.
#[tokio::test]
async fn a_waiting_card_survives_a_kill_and_runs_once() {
    a_card_survives_a_kill(None).await;
}

#[tokio::test]
async fn a_waiting_card_survives_a_kill_in_postgres_too() {
    let database = new_database().await;
    a_card_survives_a_kill(Some(&database)).await;
}

/// With everything in that database; without one, in the data folder.
async fn a_card_survives_a_kill(database: Option<&str>) {
    let env: Vec<_> = database
        .map(|url| ("DATABASE_URL", url))
        .into_iter()
        .collect();
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let model = ModelStub::start().await;
    model
        .will_call("write_file", json!({"path": "a.txt", "content": "once"}))
        .then_say("Done");
    let server = Server::start_with(&data, &model, &env);
    let ana = person(&data, &env);
    let mut socket = TestSocket::open(server.address, &ana, None).await;
    socket.say("write").await;
    let card = socket.wait_for_approval().await;
    let session = socket.session();
    server.kill();

    let server = Server::start_with(&data, &model, &env);
    let mut again = TestSocket::open(server.address, &ana, Some(&session)).await;
    let asked = again.wait_for_approval().await;
    assert_eq!(asked["callId"], card["callId"]);
    assert_eq!(asked["seq"], card["seq"]);
    again.approve(&asked).await;
    assert_eq!(
        again.wait_for("tool:output").await.rest()["status"],
        "completed"
    );
    assert_eq!(again.wait_for_answer().await, "Done");
}

/// Asserts S0.52.
#[tokio::test]
async fn a_question_of_a_server_ends_with_its_call_when_the_gateway_is_killed() {
    a_question_ends_with_a_kill(None).await;
}

#[tokio::test]
async fn a_question_of_a_server_ends_with_a_kill_in_postgres_too() {
    let database = new_database().await;
    a_question_ends_with_a_kill(Some(&database)).await;
}

/// Asserts S0.52 and O1.
#[tokio::test]
async fn what_a_server_has_a_model_asked_is_paid_for_once_when_the_gateway_is_killed() {
    a_completion_ends_with_a_kill(None).await;
}

#[tokio::test]
async fn what_a_server_has_a_model_asked_is_paid_for_once_in_postgres_too() {
    let database = new_database().await;
    a_completion_ends_with_a_kill(Some(&database)).await;
}

/// Asserts S0.52 and O1.
#[tokio::test]
async fn what_a_view_asks_for_survives_a_kill_and_runs_once() {
    a_views_card_survives_a_kill(None).await;
}

#[tokio::test]
async fn what_a_view_asks_for_survives_a_kill_in_postgres_too() {
    let database = new_database().await;
    a_views_card_survives_a_kill(Some(&database)).await;
}

async fn a_views_card_survives_a_kill(database: Option<&str>) {
    let (url, charts) = views::start().await;
    let mut env = vec![
        ("SPL_MCPS_0_ID", "post"),
        ("SPL_MCPS_0_URL", url.as_str()),
        ("SPL_SANDBOX", "none"),
    ];
    env.extend(database.map(|url| ("DATABASE_URL", url)));
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let model = ModelStub::start().await;
    model.will_call("chart", json!({})).then_say("Here");
    let server = Server::start_with(&data, &model, &env);
    let ana = person(&data, &env);
    asking::is_listed(server.address, &ana).await;
    let mut socket = TestSocket::open(server.address, &ana, None).await;
    socket.say("draw").await;
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    socket.wait_for_answer().await;
    let request = view_calls::asks(&card["callId"], "r1", "refresh", &json!({}));
    let asked = socket
        .ask("view:call", std::slice::from_ref(&request))
        .await;
    assert_eq!(asked["ok"], true, "{asked}");
    let card = socket.wait_for_approval().await;
    let session = socket.session();
    server.kill();

    let server = Server::start_with(&data, &model, &env);
    let mut again = TestSocket::open(server.address, &ana, Some(&session)).await;
    let asked = again.wait_for_approval().await;
    assert_eq!(asked, card);
    // The page did not hear that it was taken.
    assert_eq!(again.ask("view:call", &[request]).await["ok"], true);
    again.approve(&asked).await;
    let output = again.wait_for("tool:output").await;
    assert_eq!(output.rest()["status"], "completed", "{output:?}");
    model.will_say("Fine");
    again.say("go on").await;
    assert_eq!(again.wait_for_answer().await, "Fine");
    assert_eq!(charts.asked("tools/call").len(), 2);
}

async fn a_question_ends_with_a_kill(database: Option<&str>) {
    let (url, _asking) = asking::start().await;
    let mut env = vec![
        ("SPL_MCPS_0_ID", "post"),
        ("SPL_MCPS_0_URL", url.as_str()),
        ("SPL_SANDBOX", "none"),
    ];
    env.extend(database.map(|url| ("DATABASE_URL", url)));
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let model = ModelStub::start().await;
    model.will_call("ask", json!({})).then_say("I see");
    let server = Server::start_with(&data, &model, &env);
    let ana = person(&data, &env);
    asking::is_listed(server.address, &ana).await;
    let mut socket = TestSocket::open(server.address, &ana, None).await;
    socket.say("ask").await;
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    socket.wait_for("elicitation:required").await;
    let session = socket.session();
    server.kill();

    let server = Server::start_with(&data, &model, &env);
    let mut again = TestSocket::open(server.address, &ana, Some(&session)).await;
    if !again.ready.to_string().contains("agent:response") {
        again.wait_for_answer().await;
        again = TestSocket::open(server.address, &ana, Some(&session)).await;
    }
    let state = &again.ready["state"];
    assert!(state["queue"].get("elicitations").is_none(), "{state}");
    let replayed = state["transcript"].to_string();
    assert!(replayed.contains("\"status\":\"unknown\""), "{replayed}");
    assert!(replayed.contains("\"reason\":\"call_ended\""), "{replayed}");
}

async fn a_completion_ends_with_a_kill(database: Option<&str>) {
    let (url, _sampling) = sampling::start().await;
    let mut env = vec![
        ("SPL_MCPS_0_ID", "post"),
        ("SPL_MCPS_0_URL", url.as_str()),
        ("SPL_MCPS_0_SAMPLING", "true"),
        ("SPL_SANDBOX", "none"),
    ];
    env.extend(database.map(|url| ("DATABASE_URL", url)));
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let model = ModelStub::start().await;
    model.will_call("sample", json!({}));
    model.then(Reply::say("It is four.")).stall_at_once();
    let server = Server::start_with(&data, &model, &env);
    let ana = person(&data, &env);
    asking::is_listed(server.address, &ana).await;
    let mut socket = TestSocket::open(server.address, &ana, None).await;
    socket.say("ask").await;
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    let asked = sampling::asked(&mut socket).await;
    sampling::says(&mut socket, sampling::accept(&asked, &asked["digest"])).await;
    model.stalled().await;
    let session = socket.session();
    server.kill();
    model.forget_rest();
    model.will_say("I see");

    let server = Server::start_with(&data, &model, &env);
    let mut again = TestSocket::open(server.address, &ana, Some(&session)).await;
    if !again.ready.to_string().contains("agent:response") {
        again.wait_for_answer().await;
        again = TestSocket::open(server.address, &ana, Some(&session)).await;
    }
    let state = &again.ready["state"];
    assert!(state["queue"].get("elicitations").is_none(), "{state}");
    let replayed = state["transcript"].to_string();
    assert!(replayed.contains("\"status\":\"unknown\""), "{replayed}");
    assert!(replayed.contains("\"reason\":\"call_ended\""), "{replayed}");
    assert_eq!(model.requests().len(), 3, "nothing was asked twice");
    let url = format!("http://{}/api/usage?by=purpose&sort=name", server.address);
    let counted = async {
        loop {
            let request = TestApp::http().get(&url).bearer_auth(&ana.key);
            let used: Value = request.send().await.unwrap().json().await.unwrap();
            let first = &used["items"][0];
            if first["purpose"] == "sampling" {
                assert_eq!(first["requests"]["requests"], 1, "{used}");
                break;
            }
        }
    };
    let in_time = tokio::time::timeout(DEADLINE, counted).await;
    assert!(in_time.is_ok(), "what was asked is not counted");
}

#[tokio::test]
async fn a_call_that_ran_when_the_server_was_killed_is_unknown_and_the_session_goes_on() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let model = ModelStub::start().await;
    let command = "echo run >> count; echo started; sleep 28; echo finished >> count";
    model
        .will_call("execute_command", json!({ "command": command }))
        .then_say("I see");
    let server = Server::start(&data, &model);
    let ana = person(&data, &[]);
    let mut socket = TestSocket::open(server.address, &ana, None).await;
    socket.say("run").await;
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    socket
        .wait_where(|said| {
            said.name == "tool:progress" && said.args[0].to_string().contains("started")
        })
        .await;
    let session = socket.session();
    server.kill();

    let server = Server::start(&data, &model);
    let mut again = TestSocket::open(server.address, &ana, Some(&session)).await;
    let events = |socket: &TestSocket| {
        let replayed = socket.ready["state"]["transcript"]["events"]
            .as_array()
            .unwrap()
            .clone();
        replayed
            .into_iter()
            .map(|event| event.to_string())
            .collect::<Vec<_>>()
            .join("\n")
    };
    if !events(&again).contains("agent:response") {
        again.wait_for_answer().await;
        again = TestSocket::open(server.address, &ana, Some(&session)).await;
    }
    let replayed = events(&again);
    assert!(replayed.contains("\"status\":\"unknown\""), "{replayed}");
    assert!(replayed.contains("I see"), "the turn went on: {replayed}");
    let settled = json!({ "callId": card["callId"], "happened": true });
    assert_eq!(again.ask("tool:outcome", &[settled]).await["ok"], true);

    // The command ran once, and did not go on after the server was gone.
    model
        .will_call("read_file", json!({"path": "count"}))
        .then_say("Once");
    again.say("how often?").await;
    let card = again.wait_for_approval().await;
    again.approve(&card).await;
    let output = again.wait_for("tool:output").await;
    assert_eq!(output.text().matches("run").count(), 1, "{output:?}");
    assert!(!output.text().contains("finished"), "{output:?}");
    let told = format!("{:?}", model.requests().last().unwrap());
    assert!(
        told.contains("did happen"),
        "the model reads how it was settled: {told}"
    );
}

#[tokio::test]
async fn a_write_that_ran_is_not_repeated_over_what_a_later_command_did() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let model = ModelStub::start().await;
    let edit =
        "until grep -q one a.txt; do :; done; sed -i s/one/two/ a.txt; echo changed; sleep 28";
    let calls = [
        ("write_file", json!({"path": "a.txt", "content": "one\n"})),
        ("execute_command", json!({ "command": edit })),
    ];
    model.will(Reply::answer("Both", &calls)).then_say("I see");
    let server = Server::start(&data, &model);
    let ana = person(&data, &[]);
    let mut socket = TestSocket::open(server.address, &ana, None).await;
    socket.say("both").await;
    let write = socket.wait_for_approval().await;
    socket.approve(&write).await;
    let edit = socket.wait_for_approval().await;
    // The calls start, and nothing that happens after that is kept.
    let mut records = records(&data).await;
    let hold = "CREATE TABLE held AS SELECT max(version) + 1 AS after FROM journal;
        CREATE TRIGGER hold BEFORE INSERT ON journal WHEN NEW.version > (SELECT after FROM held)
        BEGIN SELECT RAISE(ABORT, 'held'); END";
    sqlx::raw_sql(hold).execute(&mut records).await.unwrap();
    socket.approve(&edit).await;
    socket
        .wait_where(|said| {
            said.name == "tool:progress" && said.args[0].to_string().contains("changed")
        })
        .await;
    let session = socket.session();
    server.kill();
    let release = "DROP TRIGGER hold; DROP TABLE held";
    sqlx::raw_sql(release).execute(&mut records).await.unwrap();
    records.close().await.unwrap();

    model
        .will_call("read_file", json!({"path": "a.txt"}))
        .then_say("Two");
    let server = Server::start(&data, &model);
    let mut again = TestSocket::open(server.address, &ana, Some(&session)).await;
    while !again.ready["state"]["transcript"]
        .to_string()
        .contains("I see")
    {
        again = TestSocket::open(server.address, &ana, Some(&session)).await;
    }
    let events = again.ready["state"]["transcript"]["events"].to_string();
    let unknown = events.matches("\"status\":\"unknown\"").count();
    again.say("which?").await;
    let card = again.wait_for_approval().await;
    again.approve(&card).await;
    let output = again.wait_for("tool:output").await;
    assert!(output.text().contains("two"), "{output:?}");
    assert_eq!(unknown, 2, "{events}");
}

/// Asserts S2.1.
#[tokio::test]
async fn a_second_server_on_the_same_data_is_refused_by_name_and_a_taken_port_too() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let model = ModelStub::start().await;
    let server = Server::start(&data, &model);
    let second = sepal(&data).env("SPL_HTTP_PORT", "0").output().unwrap();
    let text = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(
        !second.status.success() && text.contains("in use by"),
        "{text}"
    );
    let port = server.address.port().to_string();
    let other = folder.path().join("other");
    let taken = sepal(&other).env("SPL_HTTP_PORT", &port).output().unwrap();
    let text = String::from_utf8_lossy(&taken.stderr).into_owned();
    assert!(!taken.status.success(), "{text}");
    assert!(
        text.contains(&format!("port {port} is taken by `sepal`")),
        "{text}"
    );
    assert!(text.contains("is free"), "{text}");
}

/// Asserts S0.23.
#[tokio::test]
async fn all_wrong_settings_are_named_at_once_and_the_exit_code_says_so() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let output = sepal(&data)
        .env("SPL_HTTP_PORT", "a lot")
        .env("LLM_PROVIDER", "nobody")
        .env("SPL_AUTH", "maybe")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{text}");
    for name in ["SPL_HTTP_PORT", "LLM_PROVIDER", "SPL_AUTH"] {
        assert!(text.contains(name), "{text}");
    }
}

/// Twenty violent ends, each with a session that has a live sandbox and a pool beside it.
#[tokio::test]
async fn twenty_killed_servers_leave_nothing_that_no_session_has() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let model = ModelStub::start().await;
    let (address, image) = (docker::address(), docker::image());
    let env = [
        ("SPL_SANDBOX", "docker"),
        ("SPL_SANDBOX_DOCKER_HOST", address.as_str()),
        ("SPL_SANDBOX_IMAGE", image.as_str()),
    ];
    let mut ana = None;
    for _ in 0..20 {
        let server = Server::start_with(&data, &model, &env);
        let ana = ana.get_or_insert_with(|| person(&data, &[]));
        model
            .will_call("write_file", json!({"path": "a.txt", "content": "x"}))
            .then_say("Done");
        let mut socket = TestSocket::open(server.address, ana, None).await;
        socket.say("write").await;
        let card = socket.wait_for_approval().await;
        socket.approve(&card).await;
        assert_eq!(
            socket.wait_for("tool:output").await.rest()["status"],
            "completed"
        );
        // The script is the model's: the next life must not take over in the middle of it.
        socket.wait_for_answer().await;
        server.kill();
    }
    let installation = installation(&data).await;
    let label = format!("sepal.installation={installation}");
    let _server = Server::start_with(&data, &model, &env);
    let named = label.clone();
    let is_settled = move || {
        let containers = docker::named("container", &named);
        containers.is_empty() && docker::named("volume", &named).len() == 20
    };
    let settled = async {
        // Asking takes its time, on another thread.
        while !crate::support::beside(is_settled.clone()).await {}
    };
    let in_time = tokio::time::timeout(DEADLINE, settled).await;
    assert!(
        in_time.is_ok(),
        "left: {:?} {:?}",
        docker::named("container", &label),
        docker::named("volume", &label)
    );
    for volume in docker::named("volume", &label) {
        docker::docker(&address, &["volume", "rm", &volume]);
    }
}

/// The database of that server, beside it.
async fn records(data: &Path) -> SqliteConnection {
    let options = SqliteConnectOptions::new().filename(data.join("sepal.db"));
    options.connect().await.unwrap()
}

/// As the server names itself at the engine: by the name of its records and the folder of its data.
async fn installation(data: &Path) -> String {
    let mut records = records(data).await;
    let name: String = sqlx::query_scalar("SELECT value FROM installation WHERE name = 'id'")
        .fetch_one(&mut records)
        .await
        .unwrap();
    records.close().await.unwrap();
    let path = std::fs::canonicalize(data).unwrap();
    let parts = [name.as_bytes(), path.as_os_str().as_encoded_bytes()];
    hex::encode(&Sha256::digest(parts.join(&0))[..6])
}
