//! The take-over of databases from before `0035_schema.sql`, and what both kinds of database share.

use std::path::Path;

use futures::future::join_all;
use sepal::domain::Fault;
use sepal::store::Settings;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection as _, PgConnection, SqliteConnection, SqlitePool};

use super::postgres::beside;
use super::{Opened, in_postgres};
use crate::landings::{FIRST, SECOND};
use crate::support::postgres::empty_database;

/// What sqlx recorded about a migration: version, description, success and checksum.
type Migration = (i64, String, bool, Vec<u8>);

const MIGRATIONS: &str =
    "SELECT version, description, success, checksum FROM _sqlx_migrations ORDER BY version";

/// Everything that `0035_schema.sql` says about tables, indexes, keys and triggers.
const SCHEMA: &str = "\
    SELECT 'column ' || t.name || ' ' || c.cid || ' ' || c.name || ' ' || c.type || ' ' \
        || c.\"notnull\" || ' ' || COALESCE(c.dflt_value, '') || ' ' || c.pk \
        FROM pragma_table_list t, pragma_table_xinfo(t.name) c WHERE t.schema = 'main' \
    UNION ALL SELECT 'index ' || t.name || ' ' || i.name || ' ' || i.\"unique\" || ' ' \
        || x.seqno || ' ' || COALESCE(x.name, '') || ' ' || x.\"desc\" \
        FROM pragma_table_list t, pragma_index_list(t.name) i, pragma_index_xinfo(i.name) x \
        WHERE t.schema = 'main' \
    UNION ALL SELECT 'key ' || t.name || ' ' || k.seq || ' ' || k.\"from\" || ' ' || k.\"table\" \
        || ' ' || k.\"to\" \
        FROM pragma_table_list t, pragma_foreign_key_list(t.name) k WHERE t.schema = 'main' \
    UNION ALL SELECT sql FROM sqlite_schema WHERE type IN ('index', 'trigger') AND sql IS NOT NULL \
    ORDER BY 1";

async fn file_in(folder: &Path) -> SqliteConnection {
    let options = SqliteConnectOptions::new().filename(folder.join("sepal.db"));
    SqliteConnection::connect_with(&options).await.unwrap()
}

async fn migrations(file: &mut SqliteConnection) -> Vec<Migration> {
    sqlx::query_as(MIGRATIONS).fetch_all(file).await.unwrap()
}

async fn schema(file: &mut SqliteConnection) -> Vec<(String,)> {
    sqlx::query_as(SCHEMA).fetch_all(file).await.unwrap()
}

async fn journal(file: &mut SqliteConnection) -> Vec<(String, i64, Vec<u8>)> {
    let sql = "SELECT session, version, body FROM journal ORDER BY session, version";
    sqlx::query_as(sql).fetch_all(file).await.unwrap()
}

/// Records that the migrations 1 to `newest` ran, and no other.
async fn record_old(server: &mut PgConnection, newest: i64) {
    let deleted = sqlx::query("DELETE FROM _sqlx_migrations").execute(&mut *server);
    deleted.await.unwrap();
    let sql = "INSERT INTO _sqlx_migrations \
               (version, description, success, checksum, execution_time) \
               SELECT n, 'old', TRUE, decode('00', 'hex'), 0 FROM generate_series(1::bigint, $1) n";
    let added = sqlx::query(sql).bind(newest).execute(&mut *server);
    added.await.unwrap();
}

#[tokio::test]
async fn a_database_of_the_replaced_migrations_is_taken_over_with_its_rows() {
    let new = tempfile::tempdir().unwrap();
    Opened::on(new.path()).await.stop().await;
    let mut new = file_in(new.path()).await;
    for landing in [&FIRST, &SECOND] {
        let dir = tempfile::tempdir().unwrap();
        landing.lay_out(dir.path());
        let mut file = file_in(dir.path()).await;
        let before = migrations(&mut file).await;
        assert_eq!(
            before.iter().map(|it| it.0).collect::<Vec<_>>(),
            (1..=34).collect::<Vec<_>>()
        );
        let commits = journal(&mut file).await;
        assert!(!commits.is_empty());
        file.close().await.unwrap();

        // The second start finds nothing to take over.
        for _ in 0..2 {
            let opened = Opened::on(dir.path()).await;
            let records = opened.store.records();
            // The janitor reads in the journal which sandbox such a session began with.
            let without = records.sandboxes().sessions_without().await.unwrap();
            let ids: Vec<&str> = without.iter().map(|it| it.session.as_str()).collect();
            assert_eq!(ids, [landing.session]);
            opened.stop().await;
            let mut file = file_in(dir.path()).await;
            assert_eq!(migrations(&mut file).await, migrations(&mut new).await);
            assert_eq!(schema(&mut file).await, schema(&mut new).await);
            assert_eq!(journal(&mut file).await, commits);
            file.close().await.unwrap();
        }
    }
}

#[tokio::test]
async fn an_older_database_is_refused_with_what_to_do_and_is_left_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    FIRST.lay_out(dir.path());
    let mut file = file_in(dir.path()).await;
    let sql = "DELETE FROM _sqlx_migrations WHERE version = 34";
    sqlx::query(sql).execute(&mut file).await.unwrap();
    let before = migrations(&mut file).await;
    let refusal = Opened::with(&Settings::in_folder(dir.path())).await;
    let refusal = refusal.map(|_| ()).unwrap_err();
    assert_eq!(refusal.fault(), Fault::Validation);
    let expected = format!(
        "cannot use `{}`: its tables are older than this version can take over; start the previous \
         version of Sepal, whose newest migration is 34, on it once, or restore a newer backup into an \
         empty folder",
        dir.path().join("sepal.db").display()
    );
    assert_eq!(refusal.to_string(), expected);
    assert_eq!(migrations(&mut file).await, before);
}

#[tokio::test]
async fn of_programs_that_start_at_once_one_takes_the_server_over() {
    let dir = tempfile::tempdir().unwrap();
    let url = empty_database().await;
    let mut server = PgConnection::connect(&url).await.unwrap();
    // As the replaced migrations left it; later ones have not run yet.
    let tables = sqlx_macros::migrate!("migrations/postgres");
    tables.run_to(35, &mut server).await.unwrap();
    record_old(&mut server, 34).await;
    let stores = join_all((0..6).map(|_| beside(dir.path(), &url))).await;
    for store in stores {
        store.probe().ping().await.unwrap();
    }
    let recorded: Vec<Migration> = sqlx::query_as(MIGRATIONS)
        .fetch_all(&mut server)
        .await
        .unwrap();
    let expected: Vec<Migration> = tables
        .iter()
        .map(|it| {
            (
                it.version,
                it.description.to_string(),
                true,
                it.checksum.to_vec(),
            )
        })
        .collect();
    assert_eq!(recorded, expected);

    record_old(&mut server, 33).await;
    let refusal = Opened::with(&in_postgres(dir.path(), &url)).await;
    let text = refusal.map(|_| ()).unwrap_err().to_string();
    let expected =
        format!("cannot use `{url}`: its tables are older than this version can take over");
    assert!(text.starts_with(&expected), "{text}");
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

    let url = empty_database().await;
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
