//! What a release makes of the tables of an older one.

use sepal::domain::{SandboxId, SessionKey};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection as _, PgConnection, SqlitePool};

use super::{Opened, in_postgres, key};
use crate::support::postgres::new_database;

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
async fn sessions_from_before_are_listed_and_their_sandboxes_are_looked_for() {
    // Before anybody kept sandboxes, as a column, and as a table.
    for tables in [2, 3, 4, 5] {
        let dir = tempfile::tempdir().unwrap();
        let pool = tables_of(&dir.path().join("sepal.db"), tables).await;
        let sandbox = SandboxId::from_bits(7);
        let created = serde_json::json!({"events": [{"type": "created", "sandbox": sandbox}]});
        old_session(&pool, &key(1, 1), &created.to_string()).await;
        old_session(&pool, &key(1, 2), "no JSON").await;
        pool.close().await;
        let opened = Opened::on(dir.path()).await;
        let records = opened.store.records();
        let row = records.sessions().find(&key(1, 1)).await.unwrap().unwrap();
        assert_eq!(row.version, 1);
        // The janitor reads in their journals what they began with.
        let mut without = records.sandboxes().sessions_without().await.unwrap();
        without.sort();
        assert_eq!(without, [key(1, 1), key(1, 2)]);
        let first = opened.live().read_after_version(&key(1, 1), 0, 1).await;
        assert_eq!(first.unwrap()[0].body, created.to_string());
        opened.stop().await;
    }
}

#[tokio::test]
async fn every_kind_of_database_has_the_same_tables() {
    let dir = tempfile::tempdir().unwrap();
    Opened::on(dir.path()).await.stop().await;
    let lite = SqliteConnectOptions::new().filename(dir.path().join("sepal.db"));
    let lite = SqlitePool::connect_with(lite).await.unwrap();
    let sql = "SELECT t.name, c.name FROM sqlite_schema t, pragma_table_info(t.name) c \
               WHERE t.type = 'table' AND t.name NOT LIKE '\\_%' ESCAPE '\\' \
               AND t.name NOT LIKE 'sqlite%' ORDER BY 1, 2";
    let mut lite: Vec<(String, String)> = sqlx::query_as(sql).fetch_all(&lite).await.unwrap();
    // The one thing that each does in its own way: an index of words, beside the texts or in them.
    lite.retain(|(table, _)| !table.starts_with("texts_index"));
    lite.push(("texts".into(), "words".into()));
    lite.sort();

    let url = new_database().await;
    let settings = in_postgres(dir.path(), &url);
    Opened::with(&settings).await.unwrap().stop().await;
    let mut server = PgConnection::connect(&url).await.unwrap();
    let sql = "SELECT table_name::text COLLATE \"C\", column_name::text COLLATE \"C\" \
               FROM information_schema.columns WHERE table_schema = current_schema() \
               AND table_name NOT LIKE '\\_%' ORDER BY 1, 2";
    let rows = sqlx::query_as(sql).fetch_all(&mut server);
    let server: Vec<(String, String)> = rows.await.unwrap();
    assert!(lite.len() > 50, "{lite:?}");
    assert_eq!(lite, server, "each migration belongs into both folders");
}
