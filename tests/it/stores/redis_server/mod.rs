//! What only Redis can do to us: be away, silent, full, demoted, set up wrongly, written by others.

mod faults;
mod index;
mod start;

use std::time::Duration;

use bytes::Bytes;
use redis::Commands as _;
use sepal::domain::{CommitId, Fault, SessionKey};
use sepal::store::{
    AppendOutcome, Error, LiveStore, NewRecord, RedisTrouble, Settings, Snapshot, Store,
};
use tempfile::TempDir;
use tokio::time::Instant;

use super::{Opened, key, record};
use crate::support::{DEADLINE, RedisServer};

/// A Redis with one store on it.
struct Place {
    redis: RedisServer,
    opened: Opened,
    dir: TempDir,
}

impl Place {
    async fn new() -> Self {
        Self::on(RedisServer::start()).await
    }

    async fn on(redis: RedisServer) -> Self {
        let dir = TempDir::new().unwrap();
        let opened = Opened::with_redis(dir.path(), &redis).await;
        Self { redis, opened, dir }
    }

    fn live(&self) -> std::sync::Arc<dyn LiveStore> {
        self.opened.live()
    }

    /// A second gateway on the same journals.
    async fn second(&self) -> (Opened, TempDir) {
        let dir = TempDir::new().unwrap();
        (Opened::with_redis(dir.path(), &self.redis).await, dir)
    }
}

fn last_of(record: NewRecord) -> NewRecord {
    NewRecord {
        is_active: false,
        ..record
    }
}

async fn append(live: &dyn LiveStore, key: &SessionKey, expected: u64, record: NewRecord) {
    let answer = live.append(key, expected, record).await;
    assert!(matches!(answer, AppendOutcome::Ok), "{answer:?}");
}

fn journal_of(key: &SessionKey) -> String {
    format!("mcp:journal:{{{key}}}")
}

/// Asks Redis for a sign of life until it gives one, or gives none. Every question takes the time
/// of a trip.
async fn until_it(answers: bool, live: &dyn LiveStore) {
    let asking = async { while live.ping().await.is_ok() != answers {} };
    let asked = tokio::time::timeout(DEADLINE, asking).await;
    assert!(asked.is_ok(), "Redis answers: {}", !answers);
}

#[tokio::test]
async fn a_server_that_forgot_our_scripts_is_told_again() {
    let place = Place::new().await;
    let (live, key) = (place.live(), key(1, 1));
    append(&*live, &key, 0, record(1, 1..=1)).await;
    redis::cmd("SCRIPT")
        .arg("FLUSH")
        .exec(&mut place.redis.connection())
        .unwrap();
    append(&*live, &key, 1, record(2, 2..=2)).await;
    assert_eq!(live.read_after_seq(&key, 1, 10).await.unwrap().len(), 1);
}

#[tokio::test]
async fn what_we_cannot_have_written_is_corrupt_and_never_appended_to() {
    let place = Place::new().await;
    let live = place.live();
    let mut other = place.redis.connection();
    let is_corrupt = async |key: &SessionKey| {
        let answer = live.append(key, 2, record(9, 9..=9)).await;
        let AppendOutcome::Unknown(error) = answer else {
            panic!("{answer:?}")
        };
        assert!(matches!(error, Error::Corrupt { .. }), "{error:?}");
        let read = live.read_after_version(key, 0, 10).await;
        assert!(matches!(read, Err(Error::Corrupt { .. })), "{read:?}");
    };

    let typed = key(1, 1);
    let () = other.set(journal_of(&typed), "text").unwrap();
    is_corrupt(&typed).await;

    // Somebody cut the journal: its length is not its version any more.
    let cut = key(1, 2);
    for n in 1..=3 {
        append(&*live, &cut, n - 1, record(u128::from(n), n..=n)).await;
    }
    let removed: u64 = other.xdel(journal_of(&cut), &["2-0"]).unwrap();
    assert_eq!(removed, 1);
    is_corrupt(&cut).await;
    let found = live.read_after_seq(&cut, 0, 10).await;
    assert!(matches!(found, Err(Error::Corrupt { .. })), "{found:?}");

    let foreign = key(1, 3);
    let entry = [("field", "value")];
    let _: String = other.xadd(journal_of(&foreign), "1-0", &entry).unwrap();
    let head = live.head(&foreign).await;
    assert!(matches!(head, Err(Error::Corrupt { .. })), "{head:?}");

    let _: u64 = other.zadd("mcp:active", "nobody", 1).unwrap();
    let active = live.active().await;
    assert!(matches!(active, Err(Error::Corrupt { .. })), "{active:?}");
}

/// Asserts S2.8.
#[tokio::test]
async fn a_snapshot_is_kept_as_bytes_and_both_forms_are_read() {
    let place = Place::new().await;
    let (live, key) = (place.live(), key(1, 1));
    append(&*live, &key, 0, record(1, 1..=1)).await;
    // Every byte there is: a client that takes gzip for text spoils it (O9).
    let body: Vec<u8> = (0..=u8::MAX).cycle().take(4_096).collect();
    let snapshot = Snapshot {
        version: 1,
        schema: 7,
        body: Bytes::from(body.clone()),
    };
    live.save_snapshot(&key, snapshot.clone()).await.unwrap();
    let stored = |field: &str| -> Vec<u8> {
        let name = format!("mcp:conversation:{{{key}}}");
        place.redis.connection().hget(name, field).unwrap()
    };
    assert_eq!(stored("encoding"), b"gzip");
    assert_eq!(stored("body")[..2], [0x1f, 0x8b]);

    let plain = Settings {
        redis_url: Some(place.redis.secret_url()),
        compression: false,
        ..Settings::in_folder(TempDir::new().unwrap().keep())
    };
    let plain_folder = plain.data_dir.clone();
    let other = Opened::with(&plain).await.unwrap();
    assert_eq!(
        other.live().snapshot(&key).await.unwrap().unwrap(),
        snapshot
    );
    other
        .live()
        .save_snapshot(&key, snapshot.clone())
        .await
        .unwrap();
    assert_eq!(
        (stored("encoding"), stored("body")),
        (b"plain".to_vec(), body)
    );
    assert_eq!(live.snapshot(&key).await.unwrap().unwrap(), snapshot);
    drop(other);
    std::fs::remove_dir_all(plain_folder).unwrap();
}

#[tokio::test]
async fn a_finished_session_goes_after_its_time_and_an_unfinished_one_never() {
    let redis = RedisServer::start();
    let dir = TempDir::new().unwrap();
    let settings = Settings {
        redis_url: Some(redis.secret_url()),
        history_ttl: Some(Duration::from_mins(1)),
        ..Settings::in_folder(dir.path())
    };
    let opened = Opened::with(&settings).await.unwrap();
    let (live, key) = (opened.live(), key(1, 1));
    let snapshot = Snapshot {
        version: 1,
        schema: 1,
        body: Bytes::from_static(b"state"),
    };
    let mut other = redis.connection();
    let mut left = |kind: &str| -> i64 { other.pttl(format!("mcp:{kind}:{{{key}}}")).unwrap() };
    append(&*live, &key, 0, record(1, 1..=1)).await;
    live.save_snapshot(&key, snapshot.clone()).await.unwrap();
    assert_eq!((left("journal"), left("conversation")), (-1, -1));
    append(&*live, &key, 1, last_of(record(2, 2..=2))).await;
    assert!(left("journal") > 50_000 && left("conversation") > 50_000);
    // A snapshot that is written later goes with its journal.
    live.save_snapshot(&key, snapshot).await.unwrap();
    assert!(left("conversation") > 50_000);
    append(&*live, &key, 2, record(3, 3..=3)).await;
    assert_eq!((left("journal"), left("conversation")), (-1, -1));
    opened.stop().await;
    drop((live, opened));

    let short = Settings {
        history_ttl: Some(Duration::from_millis(30)),
        ..settings
    };
    let opened = Opened::with(&short).await.unwrap();
    let live = opened.live();
    let mut gone = redis.watch(&journal_of(&key)).await;
    append(&*live, &key, 3, last_of(record(4, 4..=4))).await;
    let is_gone = async || live.head(&key).await.unwrap().is_none();
    gone.until("its end", is_gone).await;
    assert_eq!(live.snapshot(&key).await.unwrap(), None);
    assert_eq!(live.active().await.unwrap(), []);
    append(&*live, &key, 0, record(5, 1..=1)).await;
}

#[tokio::test]
async fn an_append_tells_whoever_follows_the_session_in_the_same_step() {
    let place = Place::new().await;
    let (live, key) = (place.live(), key(1, 1));
    let mut connection = place.redis.connection();
    let mut followed = connection.as_pubsub();
    followed.subscribe(format!("mcp:wake:{{{key}}}")).unwrap();
    let telling = |n: u128, wake: &'static str| NewRecord {
        wake: Some(Bytes::from_static(wake.as_bytes())),
        ..record(n, 1..=1)
    };
    append(&*live, &key, 0, telling(1, "one")).await;
    // What is not appended is not told, and neither is what has nothing to tell.
    let answer = live.append(&key, 0, telling(2, "conflict")).await;
    assert!(matches!(answer, AppendOutcome::Conflict), "{answer:?}");
    append(&*live, &key, 1, record(3, 1..=1)).await;
    append(&*live, &key, 2, telling(4, "three")).await;
    for expected in ["one", "three"] {
        let told = followed.get_message().unwrap();
        assert_eq!(told.get_payload::<String>().unwrap(), expected);
    }
}
