//! Two real gateways on one PostgreSQL and one Redis, one of which is killed in the middle of its work.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use sqlx::{Connection as _, PgConnection};
use tempfile::TempDir;

use super::burst::{CROWD, at_rest, begin};
use super::{PRICED, all_back, counted, set, standing};
use crate::model_stub::ModelStub;
use crate::rest::Client;
use crate::support::postgres::new_database;
use crate::support::{DEADLINE, Person, RedisServer, Server, TestSocket, person, sepal};

/// How long a request holds what it reserved without a sign of life, and a second for the way.
const LEASE: Duration = Duration::from_secs(46);
/// Sessions that begin at each gateway.
const EACH: usize = 12;
/// What all of them may cost: what those of one gateway hold, and not more than 30 whole answers.
const LIMIT_USD: f64 = 0.2;

/// Somebody who may set budgets.
fn owner(data: &Path, env: &[(&str, &str)]) -> String {
    person(data, env);
    let admin = |args: &[&str]| {
        let mut command = sepal(data);
        let output = command.envs(env.iter().copied()).arg("admin").args(args);
        let output = output.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    admin(&["user", "add", "bo", "--tenant", "acme", "--role", "owner"]);
    let key = admin(&["key", "add", "test", "--user", "bo", "--tenant", "acme"]);
    key.lines().last().unwrap().to_owned()
}

/// When the leases of all that is held are over, in milliseconds.
async fn held(database: &str) -> Vec<i64> {
    let mut database = PgConnection::connect(database).await.unwrap();
    let sql = "SELECT until FROM budget_reservations";
    let rows: Vec<(i64,)> = sqlx::query_as(sql).fetch_all(&mut database).await.unwrap();
    rows.into_iter().map(|(until,)| until).collect()
}

/// Asserts S1.12: `kill -9` of one gateway of two. What it held ends with its leases or is taken over, the
/// other goes on within the same budget, and all that is counted is in the ledger.
#[tokio::test]
async fn a_killed_gateway_of_two_holds_nothing_beyond_its_leases_and_the_other_stays_within_the_budget()
 {
    let folder = TempDir::new().unwrap();
    let (redis, database) = (RedisServer::start(), new_database().await);
    let (model, url) = (ModelStub::start().await, redis.url());
    let shared = [
        ("SPL_REDIS_URL", url.as_str()),
        ("DATABASE_URL", database.as_str()),
        ("SPL_SECRET_KEY", "a key of thirty-two characters or more"),
    ];
    let env = [&PRICED[..], &CROWD, &shared].concat();
    let data = |at: usize| folder.path().join(format!("data-{at}"));
    let killed = Server::start_with(&data(0), &model, &env);
    let key = owner(&data(0), &env);
    let left = Server::start_with(&data(1), &model, &env);
    let [there, here] = [&killed, &left].map(|server| Client::at(server.address, &key));
    let budget = json!({"level": "tenant", "period": "month", "limitUsd": LIMIT_USD});
    for client in [&there, &here] {
        // The second time so that this gateway knows of it at once.
        set(client, budget.clone()).await;
    }

    for _ in 0..EACH {
        model.will(counted("never to its end", (60, 600))).stall();
    }
    begin(&there, EACH).await;
    model.asked(EACH).await;
    for _ in 0..4 * EACH {
        // 0.00615 USD.
        model.will(counted(&"word. ".repeat(400), (60, 600)));
    }
    killed.kill();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let most = i64::try_from((now + LEASE).as_millis()).unwrap();
    let leases = held(&database).await;
    assert!(!leases.is_empty());
    assert!(leases.iter().all(|until| *until <= most), "{leases:?}");
    let stands = standing(&here, "", "tenant").await;
    assert!(stands["reservedUsd"].as_f64().unwrap() > 0.1, "{stands}");

    begin(&here, EACH).await;
    let resting = async {
        while at_rest(&here, "failed").await.len() + at_rest(&here, "idle").await.len() < 2 * EACH {
        }
    };
    tokio::time::timeout(6 * DEADLINE, resting).await.unwrap();
    let stands = all_back(&here, "", "tenant").await;
    assert_eq!(held(&database).await, Vec::<i64>::new());
    let used = stands["usedUsd"].as_f64().unwrap();
    assert!(used <= LIMIT_USD, "{stands}");
    let usage: Value = here.get("/api/usage").await.ok(200);
    assert_eq!(usage["totals"]["costUsd"], stands["usedUsd"], "{usage}");
    let answered = at_rest(&here, "idle").await.len();
    assert_eq!(answered, 2 * EACH, "there was enough for all: {usage}");
    // What was asked in vain is counted once for each, as an estimate.
    let totals = &usage["totals"];
    assert_eq!(totals["requests"], 3 * EACH, "{usage}");
    assert_eq!(totals["estimatedRequests"], EACH, "{usage}");
    check_sessions(&here, left.address, &key).await;
    model.forget_rest();
}

/// What a session says of itself is what its rows sum up to, also where it was taken over.
async fn check_sessions(client: &Client, address: SocketAddr, key: &str) {
    let report = client.get("/api/usage?by=session&limit=100").await.ok(200);
    let items = report["items"].as_array().unwrap();
    assert_eq!(items.len(), 2 * EACH, "{report}");
    let person = Person {
        tenant: sepal::domain::TenantId::from_bits(0),
        key: key.to_owned(),
    };
    for item in items {
        let socket = TestSocket::open(address, &person, item["session"].as_str()).await;
        let usage = &socket.ready["state"]["usage"];
        assert_eq!(item["requests"]["totalTokens"], usage["totalTokens"]);
        assert_eq!(item["requests"]["costUsd"], usage["totalCost"], "{item}");
    }
}
