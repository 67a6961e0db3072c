//! A real `redis-server` of one test: free port, folder of its own, gone with the test.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use redis::{Client, Commands as _};
use rustix::process::{Pid, Signal, kill_process};
use secrecy::SecretString;
use tempfile::TempDir;

use super::DEADLINE;

/// A server that can be stopped, frozen, filled and started again on the same data.
pub(crate) struct RedisServer {
    folder: TempDir,
    port: u16,
    /// 0 without TLS.
    tls_port: u16,
    extra: Vec<String>,
    process: Option<Child>,
}

impl RedisServer {
    /// Durable as the product asks for, and nothing evicted.
    pub(crate) fn start() -> Self {
        Self::start_with(&["--appendonly", "yes", "--appendfsync", "everysec"])
    }

    /// With these arguments after our own.
    pub(crate) fn start_with(extra: &[&str]) -> Self {
        let mut server = Self {
            folder: TempDir::new().unwrap(),
            port: free_port(),
            tls_port: 0,
            extra: extra.iter().map(|arg| (*arg).to_owned()).collect(),
            process: None,
        };
        // Somebody may take the port between asking for it and using it.
        while !server.launch() {
            server.port = free_port();
        }
        server
    }

    /// With TLS on a second port.
    pub(crate) fn start_with_tls(certificate: &str, key: &str) -> Self {
        let tls_port = free_port();
        let port = tls_port.to_string();
        let mut server = Self::start_with(&[
            "--appendonly",
            "yes",
            "--tls-port",
            &port,
            "--tls-cert-file",
            certificate,
            "--tls-key-file",
            key,
            "--tls-auth-clients",
            "no",
            "--tls-ca-cert-file",
            certificate,
        ]);
        server.tls_port = tls_port;
        server
    }

    /// The address of the port with TLS.
    pub(crate) fn tls_url(&self) -> String {
        format!("rediss://127.0.0.1:{}/0", self.tls_port)
    }

    /// Its address as a setting.
    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port)
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    pub(crate) fn secret_url(&self) -> SecretString {
        self.url().into()
    }

    /// A connection of the test's own; a frozen or stopped server ends the test.
    pub(crate) fn connection(&self) -> redis::Connection {
        let client = Client::open(self.url()).unwrap();
        let connection = client.get_connection_with_timeout(DEADLINE).unwrap();
        connection.set_read_timeout(Some(DEADLINE)).unwrap();
        connection
    }

    /// Follows the changes of a key, its end by time included.
    pub(crate) async fn watch(&self, key: &str) -> KeyWatch {
        self.set("notify-keyspace-events", "KA");
        let client = Client::open(self.url()).unwrap();
        let mut changes = client.get_async_pubsub().await.unwrap();
        let channel = format!("__keyspace@0__:{key}");
        changes.subscribe(channel).await.unwrap();
        let key = key.to_owned();
        KeyWatch { changes, key }
    }

    /// `CONFIG SET`.
    pub(crate) fn set(&self, name: &str, value: &str) {
        let mut command = redis::cmd("CONFIG");
        command.arg("SET").arg(name).arg(value);
        command.exec(&mut self.connection()).unwrap();
    }

    /// Leaves no room for anything that grows.
    pub(crate) fn fill(&self) {
        self.set("maxmemory", "1");
    }

    /// Leaves room again.
    pub(crate) fn empty(&self) {
        self.set("maxmemory", "0");
    }

    /// Makes it a replica of a server that is not there.
    pub(crate) fn follow_nobody(&self) {
        self.replicate("127.0.0.1", "1");
    }

    /// Makes it a primary again.
    pub(crate) fn promote(&self) {
        self.replicate("NO", "ONE");
    }

    fn replicate(&self, host: &str, port: &str) {
        let mut command = redis::cmd("REPLICAOF");
        command.arg(host).arg(port);
        command.exec(&mut self.connection()).unwrap();
    }

    /// An orderly end.
    pub(crate) fn stop(&mut self) {
        self.end(Signal::TERM);
    }

    /// An end without a farewell.
    pub(crate) fn kill(&mut self) {
        self.end(Signal::KILL);
    }

    /// Starts a stopped server on the same port and data.
    pub(crate) fn restart(&mut self) {
        if self.process.is_some() {
            self.stop();
        }
        assert!(self.launch(), "port {} was taken meanwhile", self.port);
    }

    /// Stops the clock of the server: connections stand, nothing is answered.
    pub(crate) fn freeze(&self) {
        kill_process(self.pid(), Signal::STOP).unwrap();
    }

    /// Lets it go on.
    pub(crate) fn thaw(&self) {
        kill_process(self.pid(), Signal::CONT).unwrap();
    }

    fn pid(&self) -> Pid {
        Pid::from_child(self.process.as_ref().expect("the server runs"))
    }

    fn end(&mut self, signal: Signal) {
        if self.process.is_none() {
            return;
        }
        kill_process(self.pid(), signal).unwrap();
        // A frozen one hears nothing but KILL.
        self.thaw();
        self.process.take().unwrap().wait().unwrap();
    }

    /// Whether it listens; `false` if the port was taken by somebody else.
    fn launch(&mut self) -> bool {
        let child = command(self.folder.path(), self.port, &self.extra).spawn();
        let mut child = child.expect("`redis-server` is needed in PATH: use `./run test`");
        let deadline = Instant::now() + DEADLINE;
        let client = Client::open(self.url()).unwrap();
        loop {
            if child.try_wait().unwrap().is_some() {
                return false;
            }
            let ready = client
                .get_connection_with_timeout(Duration::from_secs(1))
                .and_then(|mut connection| connection.ping::<String>());
            if ready.is_ok() {
                self.process = Some(child);
                return true;
            }
            assert!(Instant::now() < deadline, "redis-server did not start");
            // Nothing tells when it listens: ask again soon.
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }
}

/// Tells of every change of one key.
pub(crate) struct KeyWatch {
    changes: redis::aio::PubSub,
    key: String,
}

impl KeyWatch {
    /// Looks, and looks again whenever the key changes, until it is so.
    pub(crate) async fn until(&mut self, what: &str, mut is_so: impl AsyncFnMut() -> bool) {
        let waiting = async {
            let mut changes = self.changes.on_message();
            while !is_so().await {
                assert!(changes.next().await.is_some(), "Redis went away");
            }
        };
        let waited = tokio::time::timeout(DEADLINE, waiting).await;
        assert!(waited.is_ok(), "`{}`: {what} did not come", self.key);
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            // Already dead or not: nothing of it may stay.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

fn command(folder: &Path, port: u16, extra: &[String]) -> Command {
    let mut command = Command::new("redis-server");
    command.args(["--bind", "127.0.0.1", "--port", &port.to_string()]);
    command.arg("--dir").arg(folder);
    command.args(["--save", "", "--daemonize", "no", "--databases", "2"]);
    command.args(["--enable-debug-command", "yes"]);
    command.args(extra);
    command.stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}
