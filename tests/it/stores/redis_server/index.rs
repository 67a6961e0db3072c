//! The index of unfinished sessions may name too many, never too few, whoever appends.

use futures::future::join_all;
use rand::{RngExt as _, SeedableRng as _};

use super::*;

/// Which of the sessions are unfinished by their newest entry and not named, in one atomic look.
const UNNAMED: &str = r"
local unnamed = {}
for _, member in ipairs(ARGV) do
  local last = redis.call('XREVRANGE', 'mcp:journal:{' .. member .. '}', '+', '-', 'COUNT', 1)[1]
  if last and last[2][8] == '1' and not redis.call('ZSCORE', 'mcp:active', member) then
    unnamed[#unnamed + 1] = member
  end
end
return unnamed";

fn named(redis: &RedisServer) -> u64 {
    redis.connection().zcard("mcp:active").unwrap()
}

#[tokio::test]
async fn a_session_that_ended_leaves_the_index() {
    let place = Place::new().await;
    let live = place.live();
    for n in 0..300 {
        append(&*live, &key(1, n), 0, record(1, 1..=1)).await;
    }
    assert_eq!(named(&place.redis), 300);
    for n in 0..300 {
        append(&*live, &key(1, n), 1, last_of(record(2, 2..=2))).await;
    }
    let mut index = place.redis.watch("mcp:active").await;
    let is_empty = async || named(&place.redis) == 0;
    index.until("its end", is_empty).await;
}

#[tokio::test]
async fn two_gateways_keep_a_session_named_that_the_other_one_ended_in_between() {
    let place = Place::new().await;
    let (second, _dir) = place.second().await;
    let (one, two, key) = (place.live(), second.live(), key(1, 1));
    append(&*one, &key, 0, record(1, 1..=1)).await;
    append(&*two, &key, 1, last_of(record(2, 2..=2))).await;
    let mut index = place.redis.watch("mcp:active").await;
    let is_empty = async || named(&place.redis) == 0;
    index.until("its end", is_empty).await;
    append(&*one, &key, 2, record(3, 3..=3)).await;
    assert_eq!(named(&place.redis), 1);
    assert_eq!(two.active().await.unwrap(), [key]);
}

#[tokio::test]
async fn what_a_crash_left_in_the_index_is_passed_over_and_taken_out() {
    let place = Place::new().await;
    let (live, mut other) = (place.live(), place.redis.connection());
    let ended = key(1, 1);
    append(&*live, &ended, 0, last_of(record(1, 1..=1))).await;
    // Somebody named the session and died before the append; somebody else ended it before that.
    let never = key(1, 2).to_string();
    let _: u64 = other.zadd("mcp:active", ended.to_string(), 1).unwrap();
    let _: u64 = other.zadd("mcp:active", &never, 1).unwrap();
    assert_eq!(live.active().await.unwrap(), []);
    let mut index = place.redis.watch("mcp:active").await;
    let is_one = async || named(&place.redis) == 1;
    index.until("the removal of the ended one", is_one).await;
    let left: Vec<String> = other.zrange("mcp:active", 0, -1).unwrap();
    // The append may still come.
    assert_eq!(left, [never]);
}

#[tokio::test]
async fn a_session_without_a_journal_leaves_the_index_after_a_day_unless_it_begins() {
    let place = Place::new().await;
    let (live, mut other) = (place.live(), place.redis.connection());
    let (begins, never) = (key(1, 1), key(1, 2));
    let members = [&begins, &never].map(ToString::to_string);
    for member in &members {
        let _: u64 = other.zadd("mcp:active", member, 1).unwrap();
    }
    // Their appends may still come, whoever looks and however often.
    for _ in 0..2 {
        assert_eq!(live.active().await.unwrap(), []);
        assert_eq!(named(&place.redis), 2);
    }
    for member in &members {
        let marked: f64 = other.zscore("mcp:active", member).unwrap();
        assert!(marked < 0.0, "{marked}");
        // As if a day had passed.
        let _: f64 = other.zincr("mcp:active", member, 86_400_000).unwrap();
    }
    append(&*live, &begins, 0, record(1, 1..=1)).await;
    assert_eq!(live.active().await.unwrap(), [begins]);
    let left: Vec<(String, f64)> = other.zrange_withscores("mcp:active", 0, -1).unwrap();
    assert_eq!(left, [(members[0].clone(), 1.0)]);
}

#[tokio::test]
async fn a_gateway_forgets_its_append_to_a_session_that_another_one_ended() {
    let place = Place::new().await;
    let (second, _dir) = place.second().await;
    let (one, two, key) = (place.live(), second.live(), key(1, 1));
    append(&*one, &key, 0, record(1, 1..=1)).await;
    // The other one ends it, and it comes to the same version anew.
    two.remove(&key).await.unwrap();
    append(&*two, &key, 0, last_of(record(2, 1..=1))).await;
    assert_eq!(one.active().await.unwrap(), []);
    append(&*one, &key, 1, record(3, 2..=2)).await;
    assert_eq!(named(&place.redis), 1);
    assert_eq!(two.active().await.unwrap(), [key]);
}

#[tokio::test]
async fn at_no_moment_an_unfinished_session_is_unnamed() {
    const SESSIONS: u128 = 3;
    let place = Place::new().await;
    let (second, _dir) = place.second().await;
    let gateways = [place.live(), second.live()];
    let members: Vec<String> = (0..SESSIONS).map(|n| key(1, n).to_string()).collect();
    let appending = (0..12_u64).map(|seed| {
        let live = &gateways[usize::from(seed % 2 == 0)];
        async move {
            let mut random = rand::rngs::StdRng::seed_from_u64(seed);
            for _ in 0..60 {
                let key = key(1, random.random_range(0..SESSIONS));
                let version = live
                    .head(&key)
                    .await
                    .unwrap()
                    .map_or(0, |head| head.version);
                let new = NewRecord {
                    is_active: random.random(),
                    ..record(random.random(), version + 1..=version + 1)
                };
                let answer = live.append(&key, version, new).await;
                assert!(!matches!(answer, AppendOutcome::Unknown(_)), "{answer:?}");
            }
        }
    });
    let mut looks = 0;
    let mut watcher = place.redis.connection();
    let looking = async {
        let script = redis::Script::new(UNNAMED);
        loop {
            let unnamed: Vec<String> = script.arg(&members).invoke(&mut watcher).unwrap();
            assert_eq!(unnamed, Vec::<String>::new());
            looks += 1;
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        _ = join_all(appending) => {}
        () = looking => {}
    }
    assert!(looks > 50, "{looks} looks");
}
