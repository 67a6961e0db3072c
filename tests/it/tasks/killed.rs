//! `kill -9`, an orderly stop, and another gateway: the task goes on, is picked up, and is never called
//! again.

use std::net::SocketAddr;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::stand::{Stand, text, unknown};
use super::{ended, is_progress};
use crate::model_stub::ModelStub;
use crate::servers::{asking, shell, tool};
use crate::support::postgres::new_database;
use crate::support::{DEADLINE, Person, RedisServer, Server, TestSocket, person};

/// All gateways of an installation have the same.
const SECRET_KEY: &str = "a key of thirty-two characters or more";

/// A program that can be ended, with a session whose call runs as a task.
struct Machine {
    folder: TempDir,
    model: ModelStub,
    stand: Stand,
    /// What the environment says beside the server.
    more: Vec<(&'static str, String)>,
    server: Option<Server>,
    person: Person,
    session: String,
}

impl Machine {
    async fn building(stand: Stand, database: Option<String>) -> Self {
        let more = database.map(|url| ("DATABASE_URL", url));
        Self::building_with(stand, more.into_iter().collect()).await
    }

    async fn building_with(stand: Stand, more: Vec<(&'static str, String)>) -> Self {
        let folder = TempDir::new().unwrap();
        let model = ModelStub::start().await;
        model.will_call("build", json!({})).then_say("Done");
        let mut machine = Self {
            folder,
            model,
            stand,
            more,
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
        env.extend(self.more.clone());
        env
    }

    fn start(&mut self) -> SocketAddr {
        let server = self.launch("data");
        let address = server.address;
        self.server = Some(server);
        address
    }

    /// A program with that folder for its data.
    fn launch(&self, data: &str) -> Server {
        let env = self.env();
        let env: Vec<_> = env
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        Server::start_with(&self.folder.path().join(data), &self.model, &env)
    }

    fn kill(&mut self) {
        self.server.take().unwrap().kill();
    }

    async fn again(&mut self) -> TestSocket {
        let address = self.start();
        TestSocket::open(address, &self.person, Some(&self.session)).await
    }

    async fn transcript(&self) -> String {
        let address = self.server.as_ref().unwrap().address;
        transcript(address, &self.person, &self.session).await
    }
}

/// All that was said, read once the turn is over.
async fn transcript(address: SocketAddr, person: &Person, session: &str) -> String {
    let read = async {
        loop {
            let socket = TestSocket::open(address, person, Some(session)).await;
            let said = socket.ready["state"]["transcript"].to_string();
            if said.contains("agent:response") {
                return said;
            }
        }
    };
    let said = tokio::time::timeout(DEADLINE, read).await;
    said.expect("the turn is not over")
}

/// Asserts S1.9.
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

/// Asserts S1.9.
#[tokio::test]
async fn another_gateway_picks_the_task_up_when_its_runner_is_killed() {
    let redis = RedisServer::start();
    let shared = vec![
        ("DATABASE_URL", new_database().await),
        ("SPL_REDIS_URL", redis.url()),
        ("SPL_SECRET_KEY", SECRET_KEY.to_owned()),
    ];
    let mut machine = Machine::building_with(Stand::start().await, shared).await;
    let other = machine.launch("other");
    let mut socket = TestSocket::open(other.address, &machine.person, Some(&machine.session)).await;
    machine.kill();
    let asked = machine.stand.seen("tasks/get").len();
    machine.stand.saw("tasks/get", asked + 1).await;
    machine.stand.gives(text("a house"));
    let output = ended(&mut socket, &machine.stand).await;
    assert_eq!(output.text(), "a house");
    assert_eq!(machine.stand.seen("tasks/cancel"), Vec::<Value>::new());
}

/// A server in a sandbox, which the gateway starts, forgets its tasks when it ends.
#[tokio::test]
async fn a_task_in_a_sandbox_ends_with_it_and_that_is_said() {
    let works = r#"answer "{\"task\":$TASK}" ;;
    *'"method":"tasks/get"'*) answer "$TASK""#;
    let mut config = shell(works);
    let script = config["args"][1].as_str().unwrap();
    let declared = r#""tasks":{"requests":{"tools":{"call":{}}}},"tools""#;
    config["args"][1] = json!(script.replace(r#""tools":{"list"#, &format!("{declared}:{{\"list")));
    let mut build: Value = serde_json::from_str(&tool("build", "Builds")).unwrap();
    build["execution"] = json!({ "taskSupport": "required" });
    let task = json!({ "taskId": "7", "status": "working", "statusMessage": "on it" });
    config["env"] = json!({ "TOOLS": build.to_string(), "TASK": task.to_string() });
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let servers = json!({ "mcpServers": { "post": config } });
    std::fs::write(data.join("mcp-config.json"), servers.to_string()).unwrap();
    let model = ModelStub::start().await;
    model.will_call("build", json!({})).then_say("Done");
    let server = Server::start(&data, &model);
    let ana = person(&data, &[]);
    asking::is_listed(server.address, &ana).await;
    let mut socket = TestSocket::open(server.address, &ana, None).await;
    socket.say("build").await;
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    socket.wait_where(|said| is_progress(said, "on it")).await;
    let session = socket.session();
    server.kill();
    let server = Server::start(&data, &model);
    let said = transcript(server.address, &ana, &session).await;
    assert!(said.contains("\"status\":\"unknown\""), "{said}");
    assert!(said.contains("ended with it"), "{said}");
}
