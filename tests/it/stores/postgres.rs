//! What PostgreSQL survives, and whom it lets in.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use futures::future::join_all;
use sepal::domain::{CommitId, Fault};
use sepal::store::{Access, AppendOutcome, Error, LiveStore, Store};
use sqlx::{Connection as _, PgConnection};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{Opened, in_postgres, key, record};
use crate::support::DEADLINE;
use crate::support::postgres::{
    PostgresServer, empty_database, free_port, new_database, program, run,
};

/// Opens the database as a command beside a server does.
pub(super) async fn beside(dir: &Path, url: &str) -> Store {
    let (tasks, shutdown) = (TaskTracker::new(), CancellationToken::new());
    Store::open(&in_postgres(dir, url), Access::Beside, &tasks, shutdown)
        .await
        .unwrap()
}

/// Runs what takes its time on this thread, while others go on.
#[expect(clippy::disallowed_methods, reason = "a test's own thread")]
fn here<T>(work: impl FnOnce() -> T) -> T {
    tokio::task::block_in_place(work)
}

#[tokio::test]
async fn a_second_server_is_refused_and_a_command_works_beside() {
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let url = new_database().await;
    let opened = Opened::with(&in_postgres(dir.path(), &url)).await.unwrap();
    let refusal = Opened::with(&in_postgres(other.path(), &url)).await;
    let refusal = refusal.map(|_| ()).unwrap_err();
    assert_eq!(refusal.fault(), Fault::Validation);
    let pid = std::process::id();
    assert_eq!(
        refusal.to_string(),
        format!("database `{url}` is in use by the server with process id {pid} at 127.0.0.1")
    );
    let command = beside(other.path(), &url).await;
    for (version, live) in [(0, opened.live()), (1, command.live()), (2, opened.live())] {
        let new = record(u128::from(version), version + 1..=version + 1);
        let appended = live.append(&key(1, 1), version, new).await;
        assert!(matches!(appended, AppendOutcome::Ok), "{appended:?}");
    }
    opened.stop().await;
    let next = Opened::with(&in_postgres(other.path(), &url))
        .await
        .unwrap();
    assert_eq!(next.live().active().await.unwrap(), [key(1, 1)]);
    next.stop().await;
}

#[tokio::test]
async fn programs_that_start_at_once_make_the_tables_once() {
    let dir = tempfile::tempdir().unwrap();
    let url = empty_database().await;
    let stores = join_all((0..6).map(|_| beside(dir.path(), &url))).await;
    for store in stores {
        store.probe().ping().await.unwrap();
    }
}

#[tokio::test]
async fn a_server_that_is_away_is_named_without_its_password() {
    let dir = tempfile::tempdir().unwrap();
    let (port, cause) = (free_port(), "Connection refused");
    let url = format!("postgres://ann:hush@127.0.0.1:{port}/sepal");
    let refusal = Opened::with(&in_postgres(dir.path(), &url)).await;
    let refusal = anyhow::Error::from(refusal.map(|_| ()).unwrap_err());
    let text = format!("{refusal:#}");
    let address = format!("postgres://ann@127.0.0.1:{port}/sepal");
    let expected = format!("cannot use `{address}`: the server cannot be reached");
    assert!(text.starts_with(&expected), "{text}");
    assert!(text.contains(cause) && !text.contains("hush"), "{text}");
    let nobody = format!("{}x", new_database().await);
    let refusal = Opened::with(&in_postgres(dir.path(), &nobody)).await;
    let text = refusal.map(|_| ()).unwrap_err().to_string();
    let expected = format!("cannot use `{nobody}`: the server does not let us in");
    assert_eq!(text, expected);
}

/// Appends to one session until told to stop; gives the commits that were acknowledged.
async fn appender(
    live: Arc<dyn LiveStore>,
    n: u128,
    stop: CancellationToken,
    done: &AtomicU64,
) -> u64 {
    let key = key(1, n);
    let mut version = 0;
    while !stop.is_cancelled() {
        let commit = CommitId::from_bits(u128::from(version) + 1);
        let next = version + 1;
        let new = record(u128::from(next), next..=next);
        match live.append(&key, version, new).await {
            AppendOutcome::Ok => version = next,
            AppendOutcome::Conflict => panic!("nobody else writes"),
            AppendOutcome::Unknown(error) => {
                assert_eq!(error.fault(), Fault::Transient, "{error:?}");
                // Only the head tells, as soon as there is somebody to ask.
                let head = loop {
                    match live.head(&key).await {
                        Ok(head) => break head,
                        Err(error) => assert_eq!(error.fault(), Fault::Transient, "{error:?}"),
                    }
                };
                let head = head.map_or((0, None), |head| (head.version, Some(head.commit_id)));
                if head == (next, Some(commit)) {
                    version = next;
                } else {
                    assert_eq!(head.0, version);
                }
            }
        }
        done.fetch_add(1, Ordering::Relaxed);
    }
    version
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_acknowledged_is_lost_when_the_server_stops_and_starts_under_load() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = PostgresServer::start();
    let opened = Opened::with(&in_postgres(dir.path(), &server.url()))
        .await
        .unwrap();
    let (stop, done) = (CancellationToken::new(), Arc::new(AtomicU64::new(0)));
    let tasks: Vec<_> = (0..8)
        .map(|n| {
            let (live, stop, done) = (opened.live(), stop.clone(), Arc::clone(&done));
            opened
                .tasks
                .spawn(async move { appender(live, n, stop, &done).await })
        })
        .collect();
    let some_more = async || {
        let (start, deadline) = (done.load(Ordering::Relaxed), Instant::now() + 2 * DEADLINE);
        while done.load(Ordering::Relaxed) < start + 100 {
            assert!(Instant::now() < deadline, "it does not go on");
            tokio::task::yield_now().await;
        }
    };
    some_more().await;
    for crash in [true, false] {
        here(|| {
            if crash {
                server.crash();
            } else {
                server.stop();
            }
            server.launch();
        });
        some_more().await;
    }
    stop.cancel();
    for (n, task) in (0..).zip(tasks) {
        let acknowledged = task.await.unwrap();
        let head = opened.live().head(&key(1, n)).await.unwrap().unwrap();
        assert_eq!(head.version, acknowledged);
        let all = opened.live().read_after_version(&key(1, n), 0, 1_000).await;
        let versions: Vec<_> = all.unwrap().iter().map(|record| record.version).collect();
        assert!(versions.iter().copied().eq(1..=acknowledged.min(1_000)));
    }
    opened.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_server_is_away_answers_are_retryable() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = PostgresServer::start();
    let opened = Opened::with(&in_postgres(dir.path(), &server.url()))
        .await
        .unwrap();
    let records = opened.store.records();
    opened.store.probe().ping().await.unwrap();
    here(|| server.stop());
    let probe = opened.store.probe();
    let (ping, list, append) = tokio::join!(
        probe.ping(),
        async { records.tenants().list().await.map(|_| ()) },
        async { opened.live().append(&key(1, 1), 0, record(1, 1..=1)).await },
    );
    let AppendOutcome::Unknown(append) = append else {
        panic!("{append:?}")
    };
    for error in [ping.unwrap_err(), list.unwrap_err(), append] {
        assert_eq!(error.code().as_str(), "store_unavailable", "{error:?}");
    }
    here(|| server.launch());
    opened.store.probe().ping().await.unwrap();
    assert_eq!(records.tenants().list().await.unwrap(), []);
    opened.stop().await;
}

/// Ends the connection that holds the database; the lock of `by` waits for it.
async fn take_over(url: &str, by: &mut PgConnection) {
    let lock = sqlx::query("SELECT pg_advisory_lock(1936027745, hashtext(current_schema()))");
    let mut other = PgConnection::connect(url).await.unwrap();
    let end = async {
        let waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
        let waiting = async |other: &mut PgConnection| -> i64 {
            sqlx::query_scalar(waits).fetch_one(other).await.unwrap()
        };
        while waiting(&mut other).await == 0 {
            tokio::task::yield_now().await;
        }
        let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                   WHERE application_name LIKE 'sepal/%' AND datname = current_database()";
        sqlx::query(sql).execute(&mut other).await.unwrap();
    };
    let (locked, ()) = tokio::join!(lock.execute(by), end);
    locked.unwrap();
}

#[tokio::test]
async fn a_server_that_lost_its_database_writes_nothing_until_it_has_it_again() {
    let dir = tempfile::tempdir().unwrap();
    let url = new_database().await;
    let opened = Opened::with(&in_postgres(dir.path(), &url)).await.unwrap();
    let live = opened.live();
    let mut other = PgConnection::connect(&url).await.unwrap();
    take_over(&url, &mut other).await;
    let deadline = Instant::now() + DEADLINE;
    let mut version = 0;
    let refusal = loop {
        let next = version + 1;
        let new = record(u128::from(next), next..=next);
        match live.append(&key(1, 1), version, new).await {
            AppendOutcome::Ok => version = next,
            AppendOutcome::Unknown(error) => break error,
            AppendOutcome::Conflict => panic!("nobody else writes"),
        }
        assert!(Instant::now() < deadline, "it does not notice");
    };
    assert!(matches!(refusal, Error::Locked { .. }), "{refusal:?}");
    assert!(opened.store.probe().ping().await.is_err());
    assert_eq!(
        live.head(&key(1, 1)).await.unwrap().unwrap().version,
        version
    );
    other.close().await.unwrap();
    let deadline = Instant::now() + DEADLINE;
    while opened.store.probe().ping().await.is_err() {
        assert!(Instant::now() < deadline, "it does not take it again");
        tokio::task::yield_now().await;
    }
    let next = version + 1;
    let appended = live
        .append(&key(1, 1), version, record(1, next..=next))
        .await;
    assert!(matches!(appended, AppendOutcome::Ok), "{appended:?}");
    opened.stop().await;
}

/// A server that talks to nobody in the clear; `server.crt` in its data folder says who it is.
fn with_tls() -> PostgresServer {
    PostgresServer::start_with(|data| {
        let (key, certificate) = (data.join("server.key"), data.join("server.crt"));
        run(program("openssl")
            .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes"])
            .args(["-subj", "/CN=localhost", "-days", "2"])
            .args(["-addext", "subjectAltName=IP:127.0.0.1"])
            .args(["-addext", "basicConstraints=critical,CA:FALSE"])
            .args([OsStr::new("-keyout"), key.as_os_str()])
            .args([OsStr::new("-out"), certificate.as_os_str()]));
        let write = |name: &str, text: &str| {
            let file = data.join(name);
            let old = std::fs::read_to_string(&file).unwrap();
            std::fs::write(&file, format!("{text}\n{old}")).unwrap();
        };
        write("postgresql.conf", "ssl = on");
        write("pg_hba.conf", "hostnossl all all 127.0.0.1/32 reject");
    })
}

#[tokio::test]
async fn the_address_says_how_sure_the_connection_must_be() {
    let server = with_tls();
    let root = server.data().join("server.crt");
    let check = async |query: &str, refusal: Option<&str>| {
        let dir = tempfile::tempdir().unwrap();
        let url = format!("{}?{query}", server.url());
        let opened = Opened::with(&in_postgres(dir.path(), &url)).await;
        match (opened, refusal) {
            (Ok(opened), None) => opened.stop().await,
            (Err(error), Some(reason)) => {
                let text = error.to_string();
                assert!(text.ends_with(reason), "{query}: {text}");
            }
            (Ok(_), Some(reason)) => panic!("{query} is not refused: {reason}"),
            (Err(error), None) => panic!("{query}: {error:?}"),
        }
    };
    check("sslmode=disable", Some("the server does not let us in")).await;
    check("sslmode=prefer", None).await;
    check("sslmode=require", None).await;
    check("sslmode=verify-full", Some("the server cannot be reached")).await;
    let known = format!("sslmode=verify-full&sslrootcert={}", root.display());
    check(&known, None).await;
}
