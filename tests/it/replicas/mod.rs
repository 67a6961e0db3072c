//! Two gateways on one Redis: one stream, any of them takes commands, one runs what has to run.

mod cut_off;
mod faults;
mod inbox;
mod joining;
mod killed;
mod notifications;
mod presence;
mod servers;
mod together;

use sepal::config::Settings;
use serde_json::json;

use crate::support::postgres::new_database;
use crate::support::{Person, RedisServer, TestApp, TestSocket};

/// All gateways of an installation have the same.
const SECRET_KEY: &str = "a key of thirty-two characters or more";

/// Two gateways in this process on one Redis, with records that both read.
pub(crate) struct Pair {
    pub(crate) a: TestApp,
    pub(crate) b: TestApp,
    redis: RedisServer,
    database: String,
}

impl Pair {
    async fn start() -> Self {
        Self::start_with(&[("SPL_SANDBOX", "none")]).await
    }

    pub(crate) async fn start_with(extra: &[(&str, &str)]) -> Self {
        Self::start_tuned(extra, |_| {}).await
    }

    /// The same with settings that no environment could give.
    pub(crate) async fn start_tuned(extra: &[(&str, &str)], tune: fn(&mut Settings)) -> Self {
        let redis = RedisServer::start();
        let (url, database) = (redis.url(), new_database().await);
        let mut env = vec![
            ("SPL_REDIS_URL", url.as_str()),
            ("DATABASE_URL", database.as_str()),
            ("SPL_SECRET_KEY", SECRET_KEY),
        ];
        env.extend_from_slice(extra);
        let a = TestApp::start_tuned(&env, tune).await;
        // What a session asks is answered from one script, whoever runs it.
        let model = a.model.base_url();
        env.push(("OPENAI_BASE_URL", &model));
        let b = TestApp::start_tuned(&env, tune).await;
        Self {
            a,
            b,
            redis,
            database,
        }
    }

    /// What another gateway beside them needs.
    fn env(&self) -> [(&'static str, String); 4] {
        [
            ("SPL_REDIS_URL", self.redis.url()),
            ("DATABASE_URL", self.database.clone()),
            ("SPL_SECRET_KEY", SECRET_KEY.to_owned()),
            ("SPL_SANDBOX", "none".to_owned()),
        ]
    }

    /// One person with a socket at each gateway, on the same session.
    pub(crate) async fn sockets(&self, name: &str) -> (Person, TestSocket, TestSocket) {
        let person = self.a.person("acme").await;
        let at_a = TestSocket::open(self.a.address, &person, Some(name)).await;
        let at_b = TestSocket::open(self.b.address, &person, Some(name)).await;
        (person, at_a, at_b)
    }
}

/// The text of the newest attempt, as a client puts it together from deltas.
fn said(socket: &TestSocket) -> String {
    let mut text = String::new();
    let mut attempt = 0;
    for delta in socket.log.iter().filter(|said| said.name == "agent:delta") {
        let rest = delta.rest();
        let (this, offset) = (
            rest["attempt"].as_u64().unwrap(),
            usize::try_from(rest["offset"].as_u64().unwrap()).unwrap(),
        );
        if this != attempt {
            assert!(this > attempt, "an older attempt came late");
            (attempt, text) = (this, String::new());
        }
        assert_eq!(
            offset,
            text.encode_utf16().count(),
            "a gap: {:#?}",
            socket.log
        );
        text.push_str(delta.text());
    }
    text
}

/// Both have seen the same events with the same numbers, from the first to the last.
fn assert_same_stream(a: &TestSocket, b: &TestSocket) {
    assert_eq!(a.shown(), b.shown());
    let seqs: Vec<u64> = a.shown().iter().map(|(seq, _)| *seq).collect();
    let mut dense = seqs.clone();
    dense.dedup();
    let first = dense.first().copied().unwrap_or(1);
    let expected: Vec<u64> = (first..).take(dense.len()).collect();
    assert_eq!(dense, expected, "`seq` has no gap");
}

/// Stops the turn.
async fn cancel(socket: &mut TestSocket) {
    let answer = socket.ask("agent:cancel", &[json!({})]).await;
    assert_eq!(answer["ok"], true, "{answer}");
}
