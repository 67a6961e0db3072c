//! Real gateways on one Redis: one is killed (`kill -9`) or frozen, the other goes on within 5 s,
//! with nothing lost and nothing twice.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};
use sqlx::{Connection as _, PgConnection};
use tempfile::TempDir;

use super::{SECRET_KEY, assert_same_stream, cancel, said};
use crate::model_stub::{ModelStub, Reply};
use crate::support::postgres::new_database;
use crate::support::{DEADLINE, Person, RedisServer, Said, Server, TestApp, TestSocket, person};

/// How long the remaining gateway may take to go on (docs/replicas.md).
const GOES_ON_WITHIN: Duration = Duration::from_secs(5);

/// `./run test all` asks for more.
fn rounds() -> usize {
    #[expect(
        clippy::disallowed_methods,
        reason = "how long a test runs is told by the environment"
    )]
    let asked = std::env::var_os("SEPAL_TEST_ROUNDS");
    asked.map_or(4, |asked| asked.to_str().unwrap().parse().unwrap())
}

/// Two programs on one Redis and one database.
struct Machines {
    servers: [Option<Server>; 2],
    person: Person,
    model: ModelStub,
    redis: RedisServer,
    database: String,
    folder: TempDir,
    sandbox: &'static str,
}

impl Machines {
    async fn start(sandbox: &'static str) -> Self {
        let folder = TempDir::new().unwrap();
        let (redis, model) = (RedisServer::start(), ModelStub::start().await);
        let mut machines = Self {
            servers: [None, None],
            person: Person {
                tenant: sepal::domain::TenantId::from_bits(0),
                key: String::new(),
            },
            model,
            redis,
            database: new_database().await,
            folder,
            sandbox,
        };
        machines.launch(0);
        let env = machines.env();
        let env: Vec<(&str, &str)> = env
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        machines.person = person(&machines.data(0), &env);
        machines.launch(1);
        machines
    }

    fn data(&self, index: usize) -> PathBuf {
        self.folder.path().join(format!("data-{index}"))
    }

    fn env(&self) -> Vec<(&'static str, String)> {
        vec![
            ("SPL_REDIS_URL", self.redis.url()),
            ("DATABASE_URL", self.database.clone()),
            ("SPL_SECRET_KEY", SECRET_KEY.to_owned()),
            ("SPL_SANDBOX", self.sandbox.to_owned()),
            ("SPL_LLM_RETRY_MAX_RETRIES", "0".to_owned()),
        ]
    }

    fn launch(&mut self, index: usize) {
        let env = self.env();
        let env: Vec<(&str, &str)> = env
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        self.servers[index] = Some(Server::start_with(&self.data(index), &self.model, &env));
    }

    fn server(&self, index: usize) -> &Server {
        self.servers[index].as_ref().unwrap()
    }

    fn kill(&mut self, index: usize) {
        self.servers[index].take().unwrap().kill();
    }

    async fn socket(&self, index: usize, session: &str) -> TestSocket {
        TestSocket::open(self.server(index).address, &self.person, Some(session)).await
    }

    /// Asks the second server about a session, and returns the status.
    async fn ask(&self, method: Method, socket: &TestSocket) -> u16 {
        let address = self.server(1).address;
        let url = format!("http://{address}/api/sessions/{}", socket.session());
        let asked = TestApp::http().request(method, url);
        let answer = asked.bearer_auth(&self.person.key).send().await;
        answer.unwrap().status().as_u16()
    }

    async fn wait_until_listed(&self, socket: &TestSocket) {
        let deadline = Instant::now() + DEADLINE;
        while self.ask(Method::GET, socket).await != 200 {
            assert!(Instant::now() < deadline, "it is not listed");
        }
    }

    /// The whole transcript, as a door reads it from the journal.
    async fn transcript(&self, index: usize, session: &str) -> Vec<(u64, String)> {
        let address = self.server(index).address;
        let url = format!("http://{address}/api/sessions/{session}/events?after=0&limit=500");
        let read = TestApp::http()
            .get(url)
            .bearer_auth(&self.person.key)
            .send();
        let page: Value = read.await.unwrap().json().await.unwrap();
        let items = page["items"].as_array().unwrap();
        items
            .iter()
            .map(|item| {
                let name = item["event"].as_str().unwrap().to_owned();
                (item["seq"].as_u64().unwrap(), name)
            })
            .collect()
    }
}

/// What the killed gateway was doing.
#[derive(Debug, Clone, Copy)]
enum Moment {
    /// The model streamed.
    Answer,
    /// A card waited.
    Card,
    /// A call ran.
    Call,
    /// A message had just been acknowledged.
    Message,
}

#[tokio::test]
#[expect(clippy::print_stdout, reason = "a long run is there for its times too")]
async fn a_gateway_is_killed_and_the_other_goes_on() {
    let mut machines = Machines::start("bubblewrap").await;
    for round in 0..rounds() {
        let moment = [Moment::Answer, Moment::Card, Moment::Call, Moment::Message][round % 4];
        let victim = (round / 4 + round) % 2;
        let took = one_round(&mut machines, victim, moment, &format!("round-{round}")).await;
        println!("round {round}: {moment:?}, went on after {took:?}");
        assert!(took < GOES_ON_WITHIN, "{moment:?} took {took:?}");
        machines.launch(victim);
    }
}

/// Kills `victim` in the middle of its work; how long the other one took to go on.
async fn one_round(machines: &mut Machines, victim: usize, moment: Moment, name: &str) -> Duration {
    let left = 1 - victim;
    let mut there = machines.socket(victim, name).await;
    let mut here = machines.socket(left, name).await;
    begin(&machines.model, moment, &mut there, &mut here).await;
    machines.model.will_say("whole");
    machines.kill(victim);
    let began = Instant::now();
    here.take_in().await;
    if matches!(moment, Moment::Card) {
        // Nobody has to wait for anything: what nobody runs yet, runs here.
        let asked = |said: &&Said| said.name == "tool:approval_required";
        let card = here.log.iter().rfind(asked).unwrap().args[0].clone();
        let decided = here.decide(&card, false).await;
        assert_eq!(decided["ok"], true, "{decided}");
    }
    // A short answer may have been whole before the end.
    let is_answered = here.log.iter().any(|said| said.name == "agent:response");
    let took = if is_answered {
        Duration::ZERO
    } else {
        until_it_goes_on(&mut here, moment, began).await
    };
    let whole = machines.transcript(left, &here.session()).await;
    assert_eq!(here.shown(), whole, "nothing is lost, nothing comes twice");
    let before = there.shown();
    assert_eq!(before[..], whole[..before.len()], "what was shown stays");
    let answer = here.log.iter().rfind(|said| said.name == "agent:response");
    assert_eq!(answer.unwrap().args[0], "whole");
    // One that was whole before this gateway heard of the session's first message came without its
    // pieces, as to everybody who joins then.
    let is_late = matches!(moment, Moment::Message) && is_answered && said(&here).is_empty();
    assert!(is_late || said(&here) == "whole", "{}", said(&here));
    // What the dead one asked for was held by the stand-in, and ended with its connection.
    machines.model.forget_rest();
    took
}

/// Waits for the next event and for the answer; how long the first took.
async fn until_it_goes_on(here: &mut TestSocket, moment: Moment, began: Instant) -> Duration {
    let goes_on = ["tool:output", "agent:delta", "agent:response"];
    let next = here.wait_where(|said| goes_on.contains(&said.name.as_str()));
    let next = next.await;
    let took = began.elapsed();
    if matches!(moment, Moment::Call) {
        assert_eq!(next.rest()["status"], "unknown", "{next:?}");
    }
    if next.name != "agent:response" {
        assert_eq!(here.wait_for_answer().await, "whole");
    }
    took
}

/// Brings the session to that moment at the first of both gateways.
async fn begin(model: &ModelStub, moment: Moment, there: &mut TestSocket, here: &mut TestSocket) {
    match moment {
        Moment::Answer => {
            model
                .will(Reply::say("cut off in the middle of it"))
                .stall();
            there.say("go").await;
        }
        Moment::Message => {
            // Whether the model is asked before it dies, nobody knows.
            model.will_say("whole");
            there.say("go").await;
        }
        Moment::Card | Moment::Call => {
            let command = json!({"command": "echo run >> count; echo started; sleep 25"});
            model.will_call("execute_command", command);
            there.say("run").await;
        }
    }
    match moment {
        Moment::Answer => drop(here.wait_for("agent:delta").await),
        Moment::Message => {}
        Moment::Card => drop(here.wait_for_approval().await),
        Moment::Call => {
            let card = there.wait_for_approval().await;
            there.approve(&card).await;
            here.wait_where(|said| said.name == "tool:progress").await;
        }
    }
}

#[tokio::test]
async fn a_stop_before_the_next_gateway_says_anything_keeps_what_was_shown() {
    let mut machines = Machines::start("none").await;
    let mut there = machines.socket(0, "kept").await;
    let mut here = machines.socket(1, "kept").await;
    begin(&machines.model, Moment::Answer, &mut there, &mut here).await;
    machines.model.stalled().await;
    machines
        .model
        .will(Reply::say("not a word of it"))
        .stall_at_once();
    machines.kill(0);
    machines.model.asked(2).await;
    here.take_in().await;
    cancel(&mut here).await;
    let cancelled = here.wait_for("agent:cancelled").await;
    let shown = said(&here);
    assert!(!shown.is_empty());
    assert_eq!(cancelled.rest()["text"], shown, "what was shown is kept");
    machines.model.release();
    machines.model.release();
}

#[tokio::test]
async fn what_a_killed_gateway_stored_and_had_not_told_is_shown_by_the_other() {
    let mut machines = Machines::start("none").await;
    let mut there = machines.socket(0, "untold").await;
    let mut here = machines.socket(1, "untold").await;
    machines.model.will_say("told");
    there.say("one").await;
    assert_eq!(there.wait_for_answer().await, "told");
    assert_eq!(here.wait_for_answer().await, "told");
    // Nobody hears anything any more, and then the turn is over: nothing is left to be taken over.
    let mut mute = redis::cmd("ACL");
    mute.arg("SETUSER").arg("default").arg("-publish");
    mute.exec(&mut machines.redis.connection()).unwrap();
    machines.model.will_say("not told");
    there.say("two").await;
    assert_eq!(there.wait_for_answer().await, "not told");
    machines.kill(0);
    assert_eq!(here.wait_for_answer().await, "not told");
    assert_same_stream(&there, &here);
}

#[tokio::test]
async fn a_frozen_gateway_that_comes_back_shows_and_stores_nothing_of_what_was_taken_over() {
    let machines = Machines::start("none").await;
    let mut there = machines.socket(0, "frozen").await;
    let mut here = machines.socket(1, "frozen").await;
    machines
        .model
        .will(Reply::say("said by the frozen one"))
        .stall();
    machines.model.will_say("said by the other");
    there.say("go").await;
    machines.model.stalled().await;
    here.wait_for("agent:delta").await;
    machines.server(0).freeze();
    let began = Instant::now();
    assert_eq!(here.wait_for_answer().await, "said by the other");
    let took = began.elapsed();
    // Its model goes on talking, and it wakes up to hear it.
    machines.model.release();
    machines.server(0).thaw();
    assert_eq!(there.wait_for_answer().await, "said by the other");
    assert_same_stream(&there, &here);
    assert_eq!(said(&here), "said by the other");
    let seen = said(&there);
    assert!(
        !seen.contains("frozen"),
        "what it heard after it woke up is not shown: {seen}"
    );

    // And it works as before.
    machines.model.will_say("both again");
    there.say("again").await;
    assert_eq!(here.wait_for_answer().await, "both again");
    assert_eq!(there.wait_for_answer().await, "both again");
    assert_same_stream(&there, &here);
    assert!(took < GOES_ON_WITHIN, "{took:?}");
}

#[tokio::test]
async fn a_gateway_that_stands_still_within_a_transaction_holds_nobody_up() {
    let machines = Machines::start("none").await;
    let mut there = machines.socket(0, "still").await;
    machines.model.will_say("hello").then_say("again");
    there.say("hi").await;
    assert_eq!(there.wait_for_answer().await, "hello");
    machines.wait_until_listed(&there).await;
    // It waits for the session's row in a transaction, and stands still when it gets it.
    let mut row = PgConnection::connect(&machines.database).await.unwrap();
    let mut looks = PgConnection::connect(&machines.database).await.unwrap();
    let hold = "BEGIN; SELECT 1 FROM sessions FOR UPDATE";
    sqlx::raw_sql(hold).execute(&mut row).await.unwrap();
    there.say("once more").await;
    backends(&mut looks, "wait_event_type = 'Lock'").await;
    machines.server(0).freeze();
    sqlx::raw_sql("COMMIT").execute(&mut row).await.unwrap();
    backends(&mut looks, "state = 'idle in transaction'").await;
    assert_eq!(machines.ask(Method::DELETE, &there).await, 204);
    machines.server(0).thaw();
}

/// Waits until a connection of a gateway to the database is in this state.
async fn backends(looks: &mut PgConnection, state: &str) {
    let sql = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
         AND application_name LIKE 'sepal%' AND {state}"
    );
    let deadline = Instant::now() + DEADLINE;
    loop {
        let (count,): (i64,) = sqlx::query_as(sqlx::AssertSqlSafe(sql.clone()))
            .fetch_one(&mut *looks)
            .await
            .unwrap();
        if count > 0 {
            return;
        }
        assert!(
            Instant::now() < deadline,
            "no gateway's connection: {state}"
        );
    }
}

#[tokio::test]
async fn a_row_that_was_written_after_its_session_was_deleted_elsewhere_goes_again() {
    let machines = Machines::start("none").await;
    let mut there = machines.socket(0, "ghost").await;
    let mut here = machines.socket(1, "ghost").await;
    machines.model.will_say("hello");
    there.say("hi").await;
    assert_eq!(there.wait_for_answer().await, "hello");
    assert_eq!(here.wait_for_answer().await, "hello");
    machines.wait_until_listed(&here).await;
    // One of its own rows comes onto the list behind its back, as a late write of the other does.
    let mut records = PgConnection::connect(&machines.database).await.unwrap();
    let keep = "CREATE TABLE late AS SELECT * FROM sessions";
    sqlx::raw_sql(keep).execute(&mut records).await.unwrap();
    machines.server(0).freeze();
    assert_eq!(machines.ask(Method::DELETE, &there).await, 204);
    let late = "INSERT INTO sessions SELECT * FROM late";
    sqlx::raw_sql(late).execute(&mut records).await.unwrap();
    assert_eq!(machines.ask(Method::GET, &there).await, 200);
    machines.server(0).thaw();
    let gone = Instant::now() + DEADLINE;
    while machines.ask(Method::GET, &there).await != 404 {
        assert!(Instant::now() < gone, "it stays on the list");
    }
}

#[tokio::test]
async fn a_frozen_gateway_drops_the_call_that_was_called_unknown() {
    let machines = Machines::start("bubblewrap").await;
    let mut there = machines.socket(0, "frozen-call").await;
    let mut here = machines.socket(1, "frozen-call").await;
    let command = json!({"command": "echo started; sleep 8; echo finished"});
    machines
        .model
        .will_call("execute_command", command)
        .then_say("I see");
    there.say("run").await;
    let card = there.wait_for_approval().await;
    there.approve(&card).await;
    here.wait_where(|said| said.name == "tool:progress").await;
    machines.server(0).freeze();
    let output = here.wait_for("tool:output").await;
    assert_eq!(output.rest()["status"], "unknown", "{output:?}");
    assert_eq!(here.wait_for_answer().await, "I see");
    machines.server(0).thaw();
    assert_eq!(there.wait_for_answer().await, "I see");
    assert_same_stream(&there, &here);
    // The files are at the first one: a call there runs, with the sandbox started afresh.
    machines
        .model
        .will_call(
            "execute_command",
            json!({"command": "pgrep -x sleep || echo nothing runs"}),
        )
        .then_say("Nothing");
    there.say("look").await;
    let card = there.wait_for_approval().await;
    there.approve(&card).await;
    let output = there.wait_for("tool:output").await;
    assert!(output.text().contains("nothing runs"), "{output:?}");
    assert_eq!(there.wait_for_answer().await, "Nothing");
    assert_eq!(here.wait_for_answer().await, "Nothing");
    assert_same_stream(&there, &here);
}
