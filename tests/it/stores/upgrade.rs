//! What a release makes of the tables of an older one.

use sepal::domain::{SandboxId, SessionKey};
use sqlx::SqlitePool;
use sqlx::sqlite::SqliteConnectOptions;

use super::{Opened, key};

/// The tables as they were after `count` migrations.
async fn tables_of(file: &std::path::Path, count: usize) -> SqlitePool {
    let options = SqliteConnectOptions::new()
        .filename(file)
        .create_if_missing(true);
    let pool = SqlitePool::connect_with(options).await.unwrap();
    let mut migrator = sqlx::migrate!("migrations/sqlite");
    migrator.migrations = migrator.migrations[..count].to_vec().into();
    migrator.run(&pool).await.unwrap();
    pool
}

async fn old_session(pool: &SqlitePool, key: &SessionKey, first_commit: &str) {
    for sql in [
        "INSERT INTO sessions (tenant, id, owner, title, state, waiting, created_at, updated_at, \
         version) VALUES ($1, $2, 'usr_00000000000000000000000000000001', '', 'idle', 0, 0, 0, 1)",
        "INSERT INTO journal (tenant, session, version, commit_id, first_seq, last_seq, body) \
         VALUES ($1, $2, 1, 'com_00000000000000000000000000000001', 1, 0, CAST($3 AS BLOB))",
    ] {
        sqlx::query(sql)
            .bind(key.tenant.as_str())
            .bind(key.session.as_str())
            .bind(first_commit)
            .execute(pool)
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn sessions_from_before_keep_their_sandbox() {
    let dir = tempfile::tempdir().unwrap();
    let pool = tables_of(&dir.path().join("sepal.db"), 2).await;
    let sandbox = SandboxId::from_bits(7);
    let created = serde_json::json!({"events": [{"type": "created", "sandbox": sandbox}]});
    old_session(&pool, &key(1, 1), &created.to_string()).await;
    old_session(&pool, &key(1, 2), "no JSON").await;
    pool.close().await;
    let opened = Opened::on(dir.path()).await;
    let records = opened.store.records();
    assert_eq!(records.sessions().sandboxes().await.unwrap(), [sandbox]);
    opened.stop().await;
}
