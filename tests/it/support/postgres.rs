//! PostgreSQL: a database per test on the server that `tests/servers/servers` started, and servers
//! of a test's own, because some are stopped and killed.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use tempfile::TempDir;
use tokio::sync::OnceCell;

use super::{DEADLINE, tables};

/// Makes a database with the tables of a new installation on the server of the test run. It goes with the
/// server.
pub(crate) async fn new_database() -> String {
    static TEMPLATE: OnceCell<String> = OnceCell::const_new();
    let template = TEMPLATE
        .get_or_init(async || {
            let url = empty_database().await;
            tables::make_postgres(&url).await;
            url.rsplit_once('/').unwrap().1.to_owned()
        })
        .await;
    copy_of(template).await
}

/// Makes a database without tables on the server of the test run.
pub(crate) async fn empty_database() -> String {
    copy_of("template0").await
}

/// Makes a copy of a database at which nobody is signed in.
async fn copy_of(template: &str) -> String {
    let server = variable("SEPAL_TEST_POSTGRES");
    let name = format!("t{:032x}", rand::random::<u128>());
    let mut connection = PgConnection::connect(&server).await.unwrap();
    let sql = format!("CREATE DATABASE {name} TEMPLATE {template}");
    let made = sqlx::query(AssertSqlSafe(sql)).execute(&mut connection);
    made.await.unwrap();
    let (server, _) = server.rsplit_once('/').unwrap();
    format!("{server}/{name}")
}

fn variable(name: &str) -> String {
    #[expect(
        clippy::disallowed_methods,
        reason = "the servers that tests need are told by the environment"
    )]
    let value = std::env::var(name);
    value.unwrap_or_else(|_| {
        panic!(
            "{name} is not set: run `./run test`, or this test below `tests/servers/servers run`"
        )
    })
}

/// A server of one test: free port, folder of its own, gone with the test.
pub(crate) struct PostgresServer {
    folder: TempDir,
    port: u16,
    process: Option<Child>,
}

impl PostgresServer {
    pub(crate) fn start() -> Self {
        Self::start_with(|_| {})
    }

    /// After `prepare` changed its data folder.
    pub(crate) fn start_with(prepare: impl FnOnce(&Path)) -> Self {
        let folder = TempDir::new().unwrap();
        run(Command::new("chmod").arg("777").arg(folder.path()));
        let data = folder.path().join("data");
        let arguments = [
            "--username=sepal",
            "--auth=trust",
            "--no-sync",
            "--no-locale",
        ];
        let data_flag = format!("--pgdata={}", data.display());
        run(program("initdb")
            .args(arguments)
            .args(["--encoding=UTF8", &data_flag]));
        prepare(&data);
        let mut server = Self {
            folder,
            port: free_port(),
            process: None,
        };
        server.launch();
        server
    }

    /// The address of its only database.
    pub(crate) fn url(&self) -> String {
        format!("postgres://sepal@127.0.0.1:{}/postgres", self.port)
    }

    /// Its data folder.
    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// An end that breaks every connection, as a crash does: the next start recovers.
    pub(crate) fn crash(&mut self) {
        self.end(Signal::QUIT);
    }

    /// An orderly end that waits for nobody.
    pub(crate) fn stop(&mut self) {
        self.end(Signal::INT);
    }

    /// Starts a stopped server on the same port and data.
    pub(crate) fn launch(&mut self) {
        let mut command = program("postgres");
        command.arg("-D").arg(self.data());
        command.args(["-p", &self.port.to_string()]);
        command.args(["-c", "listen_addresses=127.0.0.1"]);
        command.args(["-c", "unix_socket_directories=", "-c", "fsync=off"]);
        self.process = Some(command.spawn().unwrap());
        let deadline = Instant::now() + DEADLINE;
        let port = self.port.to_string();
        while !program("pg_isready")
            .args(["-h", "127.0.0.1", "-p", &port])
            .status()
            .unwrap()
            .success()
        {
            let ended = self.process.as_mut().unwrap().try_wait().unwrap();
            assert!(ended.is_none() && Instant::now() < deadline, "{ended:?}");
            // Nothing tells when it listens: ask again soon.
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }

    fn end(&mut self, signal: Signal) {
        if let Some(mut process) = self.process.take() {
            kill_process(Pid::from_child(&process), signal).unwrap();
            process.wait().unwrap();
        }
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.end(Signal::QUIT);
    }
}

/// A program of the newest installed version or of PATH, as a user that it accepts: never root.
pub(crate) fn program(name: &str) -> Command {
    let installed = programs().join(name);
    let path = if installed.exists() {
        installed
    } else {
        name.into()
    };
    let mut command = if rustix::process::geteuid().is_root() {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "postgres", "--regid", "postgres"]);
        command.arg("--clear-groups").arg(path);
        command
    } else {
        Command::new(path)
    };
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// Debian keeps them off the path.
fn programs() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten();
    let newest = versions
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .max();
    newest.map_or_else(PathBuf::new, |version| {
        format!("/usr/lib/postgresql/{version}/bin").into()
    })
}

pub(crate) fn run(command: &mut Command) {
    let output = command.output();
    let output = output.expect("PostgreSQL's programs are needed: use `./run test`");
    assert!(output.status.success(), "{command:?}: {output:?}");
}

/// A port that nobody listens at now.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}
