//! Redis stopped, killed, frozen, full and demoted, alone and under load.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::join_all;
use tokio::sync::watch;

use super::*;

fn trouble_of(answer: &AppendOutcome) -> RedisTrouble {
    let AppendOutcome::Unknown(error) = answer else {
        panic!("{answer:?}")
    };
    assert_eq!(error.fault(), Fault::Transient, "{error:?}");
    let Error::Redis { trouble, .. } = error else {
        panic!("{error:?}")
    };
    *trouble
}

#[tokio::test]
async fn an_append_whose_answer_was_lost_is_found_by_its_commit() {
    let place = Place::new().await;
    let (live, key) = (place.live(), key(1, 1));
    append(&*live, &key, 0, record(1, 1..=1)).await;
    place.redis.freeze();
    let answer = live.append(&key, 1, record(2, 2..=2)).await;
    assert_eq!(trouble_of(&answer), RedisTrouble::Silent);
    assert!(live.ping().await.is_err());
    let refusal = place.opened.store.probe().ping().await.unwrap_err();
    assert_eq!(refusal.to_string(), "Redis is away");
    place.redis.thaw();
    let head = live.head(&key).await.unwrap().unwrap();
    assert_eq!((head.version, head.commit_id), (2, CommitId::from_bits(2)));
    // The same record again is a conflict, not a second one.
    let again = live.append(&key, 1, record(2, 2..=2)).await;
    assert!(matches!(again, AppendOutcome::Conflict), "{again:?}");
    append(&*live, &key, 2, record(3, 3..=3)).await;
}

#[tokio::test]
async fn a_full_redis_refuses_what_grows_and_goes_on_once_there_is_room() {
    let place = Place::new().await;
    let (live, key) = (place.live(), key(1, 1));
    let other = super::key(1, 2);
    append(&*live, &key, 0, record(1, 1..=1)).await;
    append(&*live, &other, 0, record(1, 1..=1)).await;
    place.redis.fill();
    for (key, expected, new) in [
        (&key, 1, record(2, 2..=2)),
        (&key, 1, last_of(record(2, 2..=2))),
        (&super::key(1, 3), 0, record(3, 1..=1)),
    ] {
        let answer = live.append(key, expected, new).await;
        assert_eq!(trouble_of(&answer), RedisTrouble::Full);
        let AppendOutcome::Unknown(error) = answer else {
            unreachable!()
        };
        assert!(error.to_string().contains("maxmemory"), "{error}");
    }
    // Reading and making room go on.
    assert_eq!(live.read_after_seq(&key, 0, 10).await.unwrap().len(), 1);
    assert_eq!(live.active().await.unwrap(), [key.clone(), other.clone()]);
    live.remove(&other).await.unwrap();
    place.redis.empty();
    append(&*live, &key, 1, record(2, 2..=2)).await;
    assert_eq!(live.active().await.unwrap(), [key]);
}

#[tokio::test]
async fn a_redis_that_became_a_replica_refuses_writes_until_it_is_promoted() {
    let place = Place::new().await;
    let (live, key) = (place.live(), key(1, 1));
    append(&*live, &key, 0, record(1, 1..=1)).await;
    place.redis.follow_nobody();
    let answer = live.append(&key, 1, record(2, 2..=2)).await;
    let trouble = trouble_of(&answer);
    assert!(
        matches!(trouble, RedisTrouble::ReadOnly | RedisTrouble::NotReady),
        "{trouble:?}"
    );
    place.redis.promote();
    append(&*live, &key, 1, record(2, 2..=2)).await;
}

#[tokio::test]
async fn a_stopped_redis_is_refused_quickly_and_found_again() {
    let mut place = Place::new().await;
    let (live, key) = (place.live(), key(1, 1));
    append(&*live, &key, 0, record(1, 1..=1)).await;
    place.redis.stop();
    let begin = Instant::now();
    let answer = live.append(&key, 1, record(2, 2..=2)).await;
    assert_eq!(trouble_of(&answer), RedisTrouble::Away);
    assert!(
        begin.elapsed() < Duration::from_secs(2),
        "{:?}",
        begin.elapsed()
    );
    let refusal = place.opened.store.probe().ping().await.unwrap_err();
    assert_eq!(refusal.to_string(), "Redis is away");
    place.redis.restart();
    until_it(true, &*live).await;
    append(&*live, &key, 1, record(2, 2..=2)).await;
    assert_eq!(live.active().await.unwrap(), [key]);
    drop(place.dir);
}

/// Sessions that append for as long as it is wanted, as an agent does: what is unknown is looked
/// up, and tried again while nobody wrote that version.
struct Load {
    acknowledged: Mutex<HashMap<(u128, u64), CommitId>>,
    commits: watch::Sender<u64>,
    goes_on: AtomicBool,
}

impl Load {
    fn new() -> Self {
        Self {
            acknowledged: Mutex::default(),
            commits: watch::Sender::new(0),
            goes_on: AtomicBool::new(true),
        }
    }

    async fn session(&self, live: &dyn LiveStore, session: u128) {
        let key = key(1, session);
        for version in 0.. {
            if !self.goes_on.load(Ordering::Relaxed) {
                return;
            }
            let commit = (session << 64) | u128::from(version);
            let mut new = record(commit, version + 1..=version + 1);
            new.is_active = version % 2 == 0;
            self.settle(live, &key, version, &new).await;
            let mut acknowledged = self.acknowledged.lock().unwrap();
            acknowledged.insert((session, version + 1), new.commit_id);
            self.commits.send_modify(|commits| *commits += 1);
        }
    }

    async fn settle(&self, live: &dyn LiveStore, key: &SessionKey, version: u64, new: &NewRecord) {
        loop {
            match live.append(key, version, new.clone()).await {
                AppendOutcome::Ok => return,
                AppendOutcome::Conflict => {}
                AppendOutcome::Unknown(error) => {
                    assert_eq!(error.fault(), Fault::Transient, "{error:?}");
                }
            }
            match live.head(key).await {
                Ok(Some(head)) if head.commit_id == new.commit_id => return,
                Ok(head) => {
                    let version_there = head.map_or(0, |head| head.version);
                    assert_eq!(version_there, version, "an acknowledged commit is lost");
                }
                Err(error) => assert_eq!(error.fault(), Fault::Transient, "{error:?}"),
            }
        }
    }

    /// Waits until the load has gone on by so many commits.
    async fn runs(&self, commits: u64) {
        let mut reached = self.commits.subscribe();
        let wanted = *reached.borrow() + commits;
        let reached = tokio::time::timeout(DEADLINE, reached.wait_for(|now| *now >= wanted));
        reached.await.expect("the load does not go on").unwrap();
    }

    /// Whether everything that was acknowledged stands, once, and nothing has holes.
    async fn check(&self, live: &dyn LiveStore, sessions: u128) {
        let acknowledged = self.acknowledged.lock().unwrap().clone();
        let mut seen = HashSet::new();
        let mut stored = 0;
        for session in 0..sessions {
            let mut version = 0;
            loop {
                let page = live
                    .read_after_version(&key(1, session), version, 1_000)
                    .await;
                let page = page.unwrap();
                let Some(last) = page.last() else { break };
                version = last.version;
                for record in &page {
                    assert!(
                        seen.insert(record.commit_id.clone()),
                        "a commit stands twice"
                    );
                    let told = acknowledged.get(&(session, record.version));
                    if let Some(told) = told {
                        assert_eq!(told, &record.commit_id);
                        stored += 1;
                    }
                }
            }
        }
        assert_eq!(stored, acknowledged.len(), "something acknowledged is lost");
    }
}

#[tokio::test]
async fn nothing_is_lost_or_doubled_while_redis_is_stopped_frozen_killed_and_full_under_load() {
    const SESSIONS: u128 = 20;
    // With `always` even a killed server has what it acknowledged.
    let redis = RedisServer::start_with(&["--appendonly", "yes", "--appendfsync", "always"]);
    let mut place = Place::on(redis).await;
    let (live, load) = (place.live(), Load::new());
    let sessions = join_all((0..SESSIONS).map(|n| load.session(&*live, n)));
    let breaking = async {
        load.runs(200).await;
        place.redis.restart();
        load.runs(200).await;
        place.redis.freeze();
        until_it(false, &*live).await;
        place.redis.thaw();
        load.runs(200).await;
        place.redis.kill();
        until_it(false, &*live).await;
        place.redis.restart();
        load.runs(200).await;
        place.redis.fill();
        let refused = live.append(&key(2, 1), 0, record(1, 1..=1)).await;
        assert_eq!(trouble_of(&refused), RedisTrouble::Full);
        place.redis.empty();
        load.runs(200).await;
        load.goes_on.store(false, Ordering::Relaxed);
    };
    tokio::join!(sessions, breaking);
    load.check(&*live, SESSIONS).await;
}
