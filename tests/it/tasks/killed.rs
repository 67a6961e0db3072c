//! `kill -9`, an orderly stop, and another gateway: the task goes on, is picked up, and is never called
//! again.

use serde_json::{Value, json};
use tempfile::TempDir;

use super::stand::{Stand, text, unknown};
use super::{ended, is_progress};
use crate::model_stub::ModelStub;
use crate::servers::asking;
use crate::support::postgres::new_database;
use crate::support::{Person, Server, TestSocket, person};

/// A program that can be ended, with a session whose call runs as a task.
struct Machine {
    folder: TempDir,
    model: ModelStub,
    stand: Stand,
    database: Option<String>,
    server: Option<Server>,
    person: Person,
    session: String,
}

impl Machine {
    async fn building(stand: Stand, database: Option<String>) -> Self {
        let folder = TempDir::new().unwrap();
        let model = ModelStub::start().await;
        model.will_call("build", json!({})).then_say("Done");
        let mut machine = Self {
            folder,
            model,
            stand,
            database,
            server: None,
            person: Person {
                tenant: sepal::domain::TenantId::from_bits(0),
                key: String::new(),
            },
            session: String::new(),
        };
        let address = machine.start();
        let env = machine.env();
        let env: Vec<_> = env
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        machine.person = person(&machine.folder.path().join("data"), &env);
        asking::is_listed(address, &machine.person).await;
        let mut socket = TestSocket::open(address, &machine.person, None).await;
        socket.say("build").await;
        let card = socket.wait_for_approval().await;
        socket.approve(&card).await;
        machine.stand.saw("tasks/get", 1).await;
        machine.session = socket.session();
        machine
    }

    fn env(&self) -> Vec<(&'static str, String)> {
        let mut env = vec![
            ("SPL_MCPS_0_ID", "post".to_owned()),
            ("SPL_MCPS_0_URL", self.stand.url.clone()),
            ("SPL_SANDBOX", "none".to_owned()),
        ];
        env.extend(self.database.clone().map(|url| ("DATABASE_URL", url)));
        env
    }

    fn start(&mut self) -> std::net::SocketAddr {
        let env = self.env();
        let env: Vec<_> = env
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let data = self.folder.path().join("data");
        let server = Server::start_with(&data, &self.model, &env);
        let address = server.address;
        self.server = Some(server);
        address
    }

    fn kill(&mut self) {
        self.server.take().unwrap().kill();
    }

    async fn again(&mut self) -> TestSocket {
        let address = self.start();
        TestSocket::open(address, &self.person, Some(&self.session)).await
    }

    /// All that was said, read until the turn is over.
    async fn transcript(&self) -> String {
        let address = self.server.as_ref().unwrap().address;
        loop {
            let socket = TestSocket::open(address, &self.person, Some(&self.session)).await;
            let said = socket.ready["state"]["transcript"].to_string();
            if said.contains("agent:response") {
                return said;
            }
        }
    }
}

/// Asserts S1.20.
#[tokio::test]
async fn a_task_outlives_a_kill_and_its_result_arrives() {
    a_task_outlives_kills(None).await;
}

#[tokio::test]
async fn a_task_outlives_a_kill_in_postgres_too() {
    a_task_outlives_kills(Some(new_database().await)).await;
}

async fn a_task_outlives_kills(database: Option<String>) {
    let mut machine = Machine::building(Stand::start().await, database).await;
    machine.kill();
    let asked = machine.stand.seen("tasks/get").len();
    let mut socket = machine.again().await;
    machine.stand.saw("tasks/get", asked + 1).await;
    machine
        .stand
        .says(json!({ "status": "working", "statusMessage": "Roofing" }));
    socket.wait_where(|said| is_progress(said, "Roofing")).await;
    machine.kill();
    let mut socket = machine.again().await;
    machine.stand.gives(text("a house"));
    let output = ended(&mut socket, &machine.stand).await;
    assert_eq!(output.rest()["status"], "completed", "{output:?}");
    assert_eq!(output.text(), "a house");
    assert_eq!(machine.stand.seen("tasks/cancel"), Vec::<Value>::new());
}

#[tokio::test]
async fn a_task_that_ended_while_no_gateway_lived_has_its_result() {
    let mut machine = Machine::building(Stand::start().await, None).await;
    machine.kill();
    machine.stand.gives(text("a house"));
    machine.again().await;
    let said = machine.transcript().await;
    assert!(said.contains("a house"), "{said}");
    assert!(!said.contains("\"status\":\"unknown\""), "{said}");
    assert_eq!(machine.stand.seen("tools/call").len(), 1);
}

#[tokio::test]
async fn a_task_that_the_server_forgot_meanwhile_is_unknown() {
    let mut machine = Machine::building(Stand::start().await, None).await;
    machine.kill();
    machine.stand.says_instead(unknown());
    machine.again().await;
    let said = machine.transcript().await;
    assert!(said.contains("\"status\":\"unknown\""), "{said}");
    assert!(said.contains("does not know the task"), "{said}");
    assert_eq!(machine.stand.seen("tools/call").len(), 1);
}

#[tokio::test]
async fn a_task_is_stopped_after_a_kill() {
    let mut machine = Machine::building(Stand::start().await, None).await;
    machine.kill();
    let mut socket = machine.again().await;
    let answer = socket.ask("agent:cancel", &[json!({})]).await;
    assert_eq!(answer["ok"], true, "{answer}");
    let output = socket.wait_for("tool:output").await;
    assert_eq!(output.rest()["status"], "cancelled", "{output:?}");
    assert_eq!(machine.stand.seen("tasks/cancel").len(), 1);
    assert_eq!(machine.stand.seen("tools/call").len(), 1);
}

#[tokio::test]
async fn a_server_that_is_another_by_now_is_not_asked_for_the_result() {
    let mut machine = Machine::building(Stand::start().await, None).await;
    machine.kill();
    let other = Stand::start().await;
    let first = std::mem::replace(&mut machine.stand, other);
    machine.again().await;
    let said = machine.transcript().await;
    assert!(said.contains("\"status\":\"unknown\""), "{said}");
    assert!(said.contains("removed or changed"), "{said}");
    assert_eq!(machine.stand.seen("tasks/get"), Vec::<Value>::new());
    assert_eq!(machine.stand.seen("tools/call"), Vec::<Value>::new());
    assert_eq!(first.seen("tools/call").len(), 1);
}

#[tokio::test]
async fn a_task_outlives_a_kill_at_a_server_of_2026_07_28() {
    let mut machine = Machine::building(Stand::start_extension().await, None).await;
    machine.kill();
    let mut socket = machine.again().await;
    let done = json!({ "status": "completed", "result": text("a house") });
    machine.stand.says(done);
    let output = ended(&mut socket, &machine.stand).await;
    assert_eq!(output.text(), "a house");
}

#[tokio::test]
async fn an_orderly_stop_leaves_the_task_running() {
    let mut machine = Machine::building(Stand::start().await, None).await;
    machine.server.take().unwrap().stop();
    assert_eq!(machine.stand.seen("tasks/cancel"), Vec::<Value>::new());
    let mut socket = machine.again().await;
    machine.stand.gives(text("a house"));
    let output = ended(&mut socket, &machine.stand).await;
    assert_eq!(output.text(), "a house");
}
