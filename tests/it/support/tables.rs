//! The tables of a new installation, made once in a test run and copied: each test that made its own would
//! spend half of its time on migrations. Those have tests of their own (`stores::upgrade`, `stores::postgres`).

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{Connection as _, PgConnection, SqliteConnection};
use tempfile::TempDir;
use tokio::sync::OnceCell;

/// Puts a database with empty tables into the data folder of a new installation, unless it has one.
pub(crate) async fn put_sqlite(data_dir: &Path) {
    static FILE: OnceCell<Vec<u8>> = OnceCell::const_new();
    let place = data_dir.join("sepal.db");
    if place.exists() {
        return;
    }
    let file = FILE.get_or_init(make_sqlite).await;
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(data_dir)
        .unwrap();
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    options.open(place).unwrap().write_all(file).unwrap();
}

async fn make_sqlite() -> Vec<u8> {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("sepal.db");
    let options = SqliteConnectOptions::new()
        .filename(&file)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Off);
    let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
    let migrations = sqlx_macros::migrate!("migrations/sqlite");
    migrations.run(&mut connection).await.unwrap();
    // The last connection moves the log into the file.
    connection.close().await.unwrap();
    fs::read(&file).unwrap()
}

/// Makes the tables in a database of PostgreSQL.
pub(super) async fn make_postgres(url: &str) {
    let mut connection = PgConnection::connect(url).await.unwrap();
    let migrations = sqlx_macros::migrate!("migrations/postgres");
    migrations.run(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}
