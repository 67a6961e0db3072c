//! What every live store promises. Each case gets an empty store.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::join_all;
use sepal::domain::{CommitId, Fault, SessionKey};
use sepal::store::live::{MAX_BODY_BYTES, MAX_RECORDS_PER_READ};
use sepal::store::{AppendOutcome, Head, LiveStore, NewRecord, Record, Snapshot};

use super::{key, record};

type Live = Arc<dyn LiveStore>;

async fn append(live: &Live, key: &SessionKey, expected: u64, record: NewRecord) {
    let answer = live.append(key, expected, record).await;
    assert!(matches!(answer, AppendOutcome::Ok), "{answer:?}");
}

async fn conflicts(live: &Live, key: &SessionKey, expected: u64) {
    let answer = live.append(key, expected, record(99, 1..=1)).await;
    assert!(matches!(answer, AppendOutcome::Conflict), "{answer:?}");
}

fn versions(records: &[Record]) -> Vec<u64> {
    records.iter().map(|record| record.version).collect()
}

pub(super) async fn an_append_needs_the_version_of_the_head(live: Live) {
    let key = key(1, 1);
    assert_eq!(live.head(&key).await.unwrap(), None);
    conflicts(&live, &key, 1).await;
    append(&live, &key, 0, record(1, 1..=2)).await;
    conflicts(&live, &key, 0).await;
    append(&live, &key, 1, record(2, 3..=3)).await;
    for stale_or_gap in [0, 1, 3, u64::MAX] {
        conflicts(&live, &key, stale_or_gap).await;
    }
    let head = Head {
        version: 2,
        last_seq: 3,
        commit_id: CommitId::from_bits(2),
    };
    assert_eq!(live.head(&key).await.unwrap(), Some(head));
}

pub(super) async fn two_tenants_with_the_same_session_id_never_meet(live: Live) {
    let (one, other) = (key(1, 7), key(2, 7));
    append(&live, &one, 0, record(1, 1..=1)).await;
    append(&live, &one, 1, record(2, 2..=2)).await;
    assert_eq!(live.head(&other).await.unwrap(), None);
    assert_eq!(live.read_after_version(&other, 0, 10).await.unwrap(), []);
    assert_eq!(live.read_after_seq(&other, 0, 10).await.unwrap(), []);
    assert_eq!(live.read_before_seq(&other, 10, 10).await.unwrap(), []);
    let snapshot = Snapshot {
        version: 2,
        schema: 1,
        body: Bytes::from_static(b"one"),
    };
    live.save_snapshot(&one, snapshot).await.unwrap();
    assert_eq!(live.snapshot(&other).await.unwrap(), None);
    append(&live, &other, 0, record(3, 1..=1)).await;
    live.remove(&one).await.unwrap();
    let left = live.read_after_version(&other, 0, 10).await.unwrap();
    assert_eq!(left.first().unwrap().commit_id, CommitId::from_bits(3));
    assert_eq!(live.active().await.unwrap(), [other]);
}

pub(super) async fn of_64_appenders_exactly_one_gets_each_version(live: Live) {
    const APPENDERS: u128 = 64;
    const ROUNDS: u64 = 20;
    let key = key(1, 1);
    // Each appender goes on until the journal is long enough, deciding again after a conflict.
    let appender = |n: u128| {
        let (live, key) = (Arc::clone(&live), key.clone());
        async move {
            let mut won = Vec::new();
            loop {
                let version = live
                    .head(&key)
                    .await
                    .unwrap()
                    .map_or(0, |head| head.version);
                if version >= ROUNDS {
                    return won;
                }
                let seq = version + 1;
                let answer = live.append(&key, version, record(n, seq..=seq)).await;
                assert!(!matches!(answer, AppendOutcome::Unknown(_)), "{answer:?}");
                if matches!(answer, AppendOutcome::Ok) {
                    won.push((version + 1, CommitId::from_bits(n)));
                }
            }
        }
    };
    let mut won: Vec<_> = join_all((0..APPENDERS).map(appender)).await.concat();
    won.sort();
    let stored = live.read_after_version(&key, 0, 100).await.unwrap();
    let stored: Vec<_> = stored
        .into_iter()
        .map(|r| (r.version, r.commit_id))
        .collect();
    assert_eq!(won, stored);
    assert!(stored.iter().map(|(version, _)| *version).eq(1..=ROUNDS));
}

pub(super) async fn the_active_index_follows_the_last_append(live: Live) {
    let (one, two) = (key(1, 1), key(1, 2));
    let done = |n| NewRecord {
        is_active: false,
        ..record(n, 1..=1)
    };
    append(&live, &one, 0, done(1)).await;
    assert_eq!(live.active().await.unwrap(), []);
    append(&live, &one, 1, record(2, 1..=1)).await;
    append(&live, &two, 0, record(3, 1..=1)).await;
    append(&live, &two, 1, record(4, 1..=1)).await;
    assert_eq!(live.active().await.unwrap(), [one.clone(), two.clone()]);
    append(&live, &one, 2, done(5)).await;
    assert_eq!(live.active().await.unwrap(), std::slice::from_ref(&two));
    let refused = live.append(&two, 1, done(6)).await;
    assert!(matches!(refused, AppendOutcome::Conflict));
    assert_eq!(live.active().await.unwrap(), [two]);
}

pub(super) async fn ranges_by_version_are_dense_and_limited(live: Live) {
    let key = key(1, 1);
    let count = MAX_RECORDS_PER_READ as u64 + 5;
    for n in 1..=count {
        append(&live, &key, n - 1, record(u128::from(n), n..=n)).await;
    }
    let check = async |after, limit, expected: std::ops::RangeInclusive<u64>| {
        let records = live.read_after_version(&key, after, limit).await.unwrap();
        assert_eq!(versions(&records), expected.collect::<Vec<_>>());
    };
    check(0, 3, 1..=3).await;
    check(3, 4, 4..=7).await;
    check(count - 1, 10, count..=count).await;
    check(0, usize::MAX, 1..=MAX_RECORDS_PER_READ as u64).await;
    assert_eq!(live.read_after_version(&key, count, 10).await.unwrap(), []);
    assert_eq!(
        live.read_after_version(&key, u64::MAX, 10).await.unwrap(),
        []
    );
    assert_eq!(live.read_after_version(&key, 0, 0).await.unwrap(), []);
    let newest = live.read_before_seq(&key, count + 1, 2).await.unwrap();
    assert_eq!(versions(&newest), [count - 1, count]);
}

#[expect(
    clippy::reversed_empty_ranges,
    reason = "a hidden record shows nothing"
)]
pub(super) async fn ranges_by_seq_keep_records_whole(live: Live) {
    let key = key(1, 1);
    // Version 1 shows 1..=3, 2 is hidden, 3 shows 4, 4 shows 5..=6, 5 is hidden.
    for (version, seq) in [1..=3, 4..=3, 4..=4, 5..=6, 7..=6].into_iter().enumerate() {
        append(&live, &key, version as u64, record(version as u128, seq)).await;
    }
    for (seq, expected) in [
        (0, &[1, 2, 3, 4, 5][..]),
        (2, &[1, 2, 3, 4, 5]),
        (3, &[3, 4, 5]),
        (5, &[4, 5]),
        (6, &[]),
        (u64::MAX, &[]),
    ] {
        let records = live.read_after_seq(&key, seq, 10).await.unwrap();
        assert_eq!(versions(&records), expected, "after {seq}");
    }
    for (seq, limit, expected) in [
        (7, 10, &[1, 2, 3, 4][..]),
        (6, 10, &[1, 2, 3, 4]),
        (5, 10, &[1, 2, 3]),
        (2, 10, &[1]),
        (1, 10, &[]),
        (u64::MAX, 2, &[4, 5]),
        (6, 1, &[4]),
    ] {
        let records = live.read_before_seq(&key, seq, limit).await.unwrap();
        assert_eq!(versions(&records), expected, "before {seq}");
    }
    let first = live.read_after_seq(&key, 0, 1).await.unwrap();
    assert_eq!(versions(&first), [1]);
}

pub(super) async fn a_snapshot_never_goes_back(live: Live) {
    let key = key(1, 1);
    let snapshot = |version, text: &'static str| Snapshot {
        version,
        schema: 3,
        body: Bytes::from_static(text.as_bytes()),
    };
    for n in 1..=3 {
        append(&live, &key, n - 1, record(u128::from(n), n..=n)).await;
    }
    assert_eq!(live.snapshot(&key).await.unwrap(), None);
    for (saved, expected) in [
        (snapshot(2, "two"), "two"),
        (snapshot(1, "one"), "two"),
        (snapshot(3, "three"), "three"),
        (snapshot(4, "the journal does not reach this"), "three"),
        (
            snapshot(3, "three in another schema"),
            "three in another schema",
        ),
    ] {
        live.save_snapshot(&key, saved).await.unwrap();
        let kept = live.snapshot(&key).await.unwrap().unwrap();
        assert_eq!((kept.schema, &kept.body[..]), (3, expected.as_bytes()));
    }
}

pub(super) async fn a_removed_session_leaves_nothing(live: Live) {
    let key = key(1, 1);
    let snapshot = Snapshot {
        version: 1,
        schema: 1,
        body: Bytes::from_static(b"state"),
    };
    append(&live, &key, 0, record(1, 1..=1)).await;
    live.save_snapshot(&key, snapshot.clone()).await.unwrap();
    live.remove(&key).await.unwrap();
    live.remove(&key).await.unwrap();
    conflicts(&live, &key, 1).await;
    live.save_snapshot(&key, snapshot).await.unwrap();
    assert_eq!(live.head(&key).await.unwrap(), None);
    assert_eq!(live.snapshot(&key).await.unwrap(), None);
    assert_eq!(live.active().await.unwrap(), []);
    append(&live, &key, 0, record(2, 1..=1)).await;
    assert_eq!(live.active().await.unwrap(), [key]);
}

pub(super) async fn a_body_that_is_too_large_is_never_tried(live: Live) {
    let key = key(1, 1);
    let large = NewRecord {
        body: Bytes::from(vec![0; MAX_BODY_BYTES + 1]),
        ..record(1, 1..=1)
    };
    let answer = live.append(&key, 0, large).await;
    assert!(
        matches!(&answer, AppendOutcome::Unknown(error) if error.fault() == Fault::Validation),
        "{answer:?}"
    );
    assert_eq!(live.head(&key).await.unwrap(), None);
}

pub(super) async fn bodies_are_opaque(live: Live) {
    let key = key(1, 1);
    let bodies = [&b""[..], b"\0", &[0x1f, 0x8b, 8], &[0xff; 300]];
    for (n, body) in (0_u64..).zip(bodies) {
        let new = NewRecord {
            body: Bytes::from_static(body),
            ..record(u128::from(n), n + 1..=n + 1)
        };
        append(&live, &key, n, new).await;
        let snapshot = Snapshot {
            version: n + 1,
            schema: 1,
            body: Bytes::from_static(body),
        };
        live.save_snapshot(&key, snapshot.clone()).await.unwrap();
        assert_eq!(live.snapshot(&key).await.unwrap(), Some(snapshot));
    }
    let stored = live.read_after_version(&key, 0, 10).await.unwrap();
    assert!(stored.iter().map(|r| &r.body[..]).eq(bodies));
}

pub(super) async fn a_removal_and_an_append_come_one_after_the_other(live: Live) {
    let key = key(1, 1);
    // Whatever meets, no record stands without those before it.
    for round in 0..30 {
        for n in 1..=2 {
            append(&live, &key, n - 1, record(u128::from(n), n..=n)).await;
        }
        let appending = async {
            for version in 2..6 {
                let seq = version + 1;
                let _ = live.append(&key, version, record(9, seq..=seq)).await;
            }
        };
        let (removed, ()) = tokio::join!(live.remove(&key), appending);
        removed.unwrap();
        let left = live.read_after_version(&key, 0, 10).await.unwrap();
        assert_eq!(versions(&left), [0; 0], "round {round}");
        assert_eq!(live.active().await.unwrap(), []);
    }
}

/// The first records of a journal, in which nothing runs.
fn first_records(from: u128) -> Vec<NewRecord> {
    let numbers = (0..1_200).map(|n| (from + n, u64::try_from(n).unwrap() + 1));
    let records = numbers.map(|(n, seq)| NewRecord {
        is_active: false,
        ..record(n, seq..=seq)
    });
    records.collect()
}

pub(super) async fn a_journal_is_created_whole_or_not_at_all(live: Live) {
    let key = key(1, 1);
    let created = live.create(&key, first_records(1)).await;
    assert!(matches!(created, AppendOutcome::Ok), "{created:?}");
    let head = live.head(&key).await.unwrap().unwrap();
    assert_eq!((head.version, head.last_seq), (1_200, 1_200));
    let first = live.read_after_version(&key, 0, 2).await.unwrap();
    assert_eq!(versions(&first), [1, 2]);
    assert_eq!(first[1].body, Bytes::from_static(b"body of 2"));
    assert_eq!(live.active().await.unwrap(), [], "nothing runs in it");
    append(&live, &key, 1_200, record(5_000, 1_201..=1_201)).await;
    // Where there is a journal, nothing is written.
    let again = live.create(&key, first_records(10_000)).await;
    assert!(matches!(again, AppendOutcome::Conflict), "{again:?}");
    assert_eq!(live.version(&key).await.unwrap(), 1_201);
}

pub(super) async fn of_many_who_create_a_journal_one_does(live: Live) {
    let key = key(1, 2);
    let created = (0..8_u128).map(|n| live.create(&key, first_records(n * 10_000)));
    let created = join_all(created).await;
    let is_done = |answer: &&AppendOutcome| matches!(answer, AppendOutcome::Ok);
    assert_eq!(created.iter().filter(is_done).count(), 1, "{created:?}");
    let is_refused = |answer: &&AppendOutcome| matches!(answer, AppendOutcome::Conflict);
    assert_eq!(created.iter().filter(is_refused).count(), 7, "{created:?}");
    let winner = created.iter().position(|answer| is_done(&answer)).unwrap();
    let stored = live.read_after_version(&key, 0, 1_000).await.unwrap();
    let last = Bytes::from(format!("body of {}", winner * 10_000 + 999));
    assert_eq!(stored[999].body, last, "all of them are of one");
}

pub(super) async fn one_record_that_does_not_fit_keeps_the_journal_out(live: Live) {
    let mut large = first_records(1);
    large[1].body = Bytes::from(vec![b'x'; MAX_BODY_BYTES + 1]);
    let refused = live.create(&key(1, 3), large).await;
    assert!(
        matches!(&refused, AppendOutcome::Unknown(error) if error.fault() == Fault::Validation)
    );
    assert_eq!(live.version(&key(1, 3)).await.unwrap(), 0);
}
