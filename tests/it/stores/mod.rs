//! One contract for every live store, and what only SQLite in a locked folder promises.
//! Redis is a real server per case, PostgreSQL a database of its own.

mod accounts;
mod attachments;
mod audit;
mod contract;
mod doors;
mod durability;
mod postgres;
mod records;
mod redis_server;
mod registry;
mod upgrade;
mod usage;

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use sepal::domain::{CommitId, SessionId, SessionKey, TenantId};
use sepal::store::{Access, LiveStore, NewRecord, Settings, Store};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::support::postgres::new_database;
use crate::support::{RedisServer, tables};

/// A store on a folder, with what keeps it running.
struct Opened {
    store: Store,
    tasks: TaskTracker,
    shutdown: CancellationToken,
}

impl Opened {
    async fn on(dir: &Path) -> Self {
        tables::put_sqlite(dir).await;
        let (tasks, shutdown) = (TaskTracker::new(), CancellationToken::new());
        let store = Store::open_in(dir, &tasks, shutdown.clone()).await.unwrap();
        Self {
            store,
            tasks,
            shutdown,
        }
    }

    /// With the journals in that Redis.
    async fn with_redis(dir: &Path, redis: &RedisServer) -> Self {
        let settings = Settings {
            redis_url: Some(redis.secret_url()),
            ..Settings::in_folder(dir)
        };
        Self::with(&settings).await.unwrap()
    }

    /// With everything in a new database of PostgreSQL.
    async fn on_postgres(dir: &Path) -> Self {
        Self::with(&in_postgres(dir, &new_database().await))
            .await
            .unwrap()
    }

    async fn with(settings: &Settings) -> Result<Self, sepal::store::Error> {
        let (tasks, shutdown) = (TaskTracker::new(), CancellationToken::new());
        let store = Store::open(settings, Access::Serve, &tasks, shutdown.clone()).await?;
        Ok(Self {
            store,
            tasks,
            shutdown,
        })
    }

    fn live(&self) -> Arc<dyn LiveStore> {
        self.store.live()
    }

    /// Stops the writer and waits for its end.
    async fn stop(&self) {
        self.shutdown.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// Everything in that database.
fn in_postgres(dir: &Path, url: &str) -> Settings {
    Settings {
        database_url: Some(url.to_owned()),
        ..Settings::in_folder(dir)
    }
}

fn key(tenant: u128, session: u128) -> SessionKey {
    SessionKey {
        tenant: TenantId::from_bits(tenant),
        session: SessionId::from_bits(session),
    }
}

/// The record of commit `n`, which shows the events `seq`.
fn record(n: u128, seq: std::ops::RangeInclusive<u64>) -> NewRecord {
    NewRecord {
        commit_id: CommitId::from_bits(n),
        first_seq: *seq.start(),
        last_seq: *seq.end(),
        is_active: true,
        body: Bytes::from(format!("body of {n}")),
        wake: None,
    }
}

/// Runs the contract on a store of each kind.
macro_rules! contract {
    ($($case:ident)*) => {
        mod sqlite {
            $(#[tokio::test]
            async fn $case() {
                let dir = tempfile::tempdir().unwrap();
                let opened = super::Opened::on(dir.path()).await;
                super::contract::$case(opened.live()).await;
                opened.stop().await;
            })*
        }

        mod postgres_server {
            $(#[tokio::test]
            async fn $case() {
                let dir = tempfile::tempdir().unwrap();
                let opened = super::Opened::on_postgres(dir.path()).await;
                super::contract::$case(opened.live()).await;
                opened.stop().await;
            })*
        }

        mod redis {
            $(#[tokio::test]
            async fn $case() {
                let dir = tempfile::tempdir().unwrap();
                let redis = crate::support::RedisServer::start();
                let opened = super::Opened::with_redis(dir.path(), &redis).await;
                super::contract::$case(opened.live()).await;
                opened.stop().await;
            })*
        }
    };
}

contract! {
    an_append_needs_the_version_of_the_head
    two_tenants_with_the_same_session_id_never_meet
    of_64_appenders_exactly_one_gets_each_version
    the_active_index_follows_the_last_append
    ranges_by_version_are_dense_and_limited
    ranges_by_seq_keep_records_whole
    a_snapshot_never_goes_back
    a_removed_session_leaves_nothing
    a_body_that_is_too_large_is_never_tried
    bodies_are_opaque
    a_removal_and_an_append_come_one_after_the_other
    a_journal_is_created_whole_or_not_at_all
    of_many_who_create_a_journal_one_does
    one_record_that_does_not_fit_keeps_the_journal_out
}
