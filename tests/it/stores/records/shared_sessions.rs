//! Shares of sessions: how many of them there may be at the same time, and that they go with their session.

use sepal::domain::{SharedSessionId, Timestamp};
use sepal::store::records::{Audience, SharedSession};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection as _, SqliteConnection};

use super::{row, with_records};
use crate::stores::{Opened, key};

fn share(id: u128, created_at: i64, expires_at: Option<i64>) -> SharedSession {
    SharedSession {
        key: key(1, 1),
        id: SharedSessionId::from_bits(id),
        audience: Audience::Tenant,
        seq: 1,
        created_at: Timestamp(created_at),
        expires_at: expires_at.map(Timestamp),
    }
}

#[tokio::test]
async fn a_share_that_has_expired_leaves_room_for_another_one() {
    with_records(async |records| {
        let rows = [row(1, 1).into()];
        records.sessions().project(&rows).await.unwrap();
        let shares = records.shared_sessions();
        for id in 0..50 {
            let expires_at = (id == 0).then_some(20);
            let added = shares.add(&share(id, 10, expires_at), None).await;
            assert!(added.unwrap(), "{id}");
        }
        assert!(!shares.add(&share(50, 19, None), None).await.unwrap());
        assert!(shares.add(&share(50, 20, None), None).await.unwrap());
        assert!(!shares.add(&share(51, 20, None), None).await.unwrap());
        let first = SharedSessionId::from_bits(0);
        let is_stored = shares.remove(&key(1, 1), &first).await.unwrap();
        assert!(!is_stored, "the expired one was deleted");
        let listed = shares.of_session(&key(1, 1), Timestamp(20)).await;
        assert_eq!(listed.unwrap().len(), 50);
    })
    .await;
}

/// On SQLite, where a trigger stops the deletion halfway.
#[tokio::test]
async fn a_deletion_that_is_cut_off_leaves_the_session_with_its_shares() {
    let dir = tempfile::tempdir().unwrap();
    let opened = Opened::on(dir.path()).await;
    let records = opened.store.records();
    let (sessions, shares, one) = (records.sessions(), records.shared_sessions(), key(1, 1));
    sessions.project(&[row(1, 1).into()]).await.unwrap();
    assert!(shares.add(&share(1, 10, None), None).await.unwrap());
    let file = SqliteConnectOptions::new().filename(dir.path().join("sepal.db"));
    let mut other = SqliteConnection::connect_with(&file).await.unwrap();
    let stop = "CREATE TRIGGER stop BEFORE DELETE ON shared_sessions \
                BEGIN SELECT RAISE(ABORT, 'stopped'); END";
    sqlx::query(stop).execute(&mut other).await.unwrap();
    sessions.delete(&one).await.unwrap_err();
    assert!(sessions.find(&one).await.unwrap().is_some());

    let go_on = sqlx::query("DROP TRIGGER stop").execute(&mut other);
    go_on.await.unwrap();
    assert!(sessions.delete(&one).await.unwrap());
    assert_eq!(sessions.find(&one).await.unwrap(), None);
    let left = shares.of_session(&one, Timestamp(10)).await.unwrap();
    assert_eq!(left, []);
    other.close().await.unwrap();
    opened.stop().await;
}
