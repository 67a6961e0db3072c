//! A proxy of each test's own in front of the engine that `tests/servers/servers` starts.

use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sepal_docker_proxy::{Address, Listener, Most, Settings, serve};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Long enough for a busy machine; only failing tests wait for it.
const DEADLINE: Duration = Duration::from_mins(1);

/// Tests share an engine.
static PROXIES: AtomicU32 = AtomicU32::new(0);

pub(crate) struct Proxy {
    pub(crate) label: String,
    /// A sandbox that only this test has.
    pub(crate) sandbox: String,
    pub(crate) folder: TempDir,
    shutdown: CancellationToken,
    tasks: TaskTracker,
}

impl Proxy {
    pub(crate) async fn start() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let number = PROXIES.fetch_add(1, Ordering::Relaxed);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let label = format!("sepal.proxy=it-{}-{number}", std::process::id());
        let mut settings = Settings {
            engine: variable("SEPAL_TEST_DOCKER").parse().unwrap(),
            label: label.parse().unwrap(),
            image: image(),
            other_images: Vec::new(),
            runtime: None,
            network: None,
            most: Most::default(),
            max_containers: 100,
            max_volumes: 100,
            max_connections: 100,
        };
        change(&mut settings);
        settings.check().unwrap();
        let address = Address::Unix(folder.path().join("proxy.sock"));
        let listener = Listener::bind(&address, 0o600, None).await.unwrap();
        let (shutdown, tasks) = (CancellationToken::new(), TaskTracker::new());
        tasks.spawn(serve(settings, listener, shutdown.clone()));
        tasks.close();
        let bits = now.as_nanos() << 16 | u128::from(number);
        Self {
            label,
            sandbox: format!("sbx_{bits:032x}"),
            folder,
            shutdown,
            tasks,
        }
    }

    pub(crate) fn socket(&self) -> std::path::PathBuf {
        self.folder.path().join("proxy.sock")
    }

    /// The name of the sandbox's container.
    pub(crate) fn name(&self) -> String {
        format!("sepal-sb-{}", self.sandbox)
    }

    /// The name of the sandbox's volume.
    pub(crate) fn volume(&self) -> String {
        format!("sepal-ws-{}", self.sandbox)
    }

    /// The body of a request for a plain container.
    pub(crate) fn body(&self, script: &str) -> Value {
        json!({
            "Image": image(),
            "Entrypoint": ["bash"],
            "Cmd": ["-c", script],
            "Labels": { "sepal.sandbox": self.sandbox },
            "HostConfig": {},
        })
    }

    pub(crate) async fn connect(&self) -> UnixStream {
        UnixStream::connect(self.socket()).await.unwrap()
    }

    /// Sends bytes as they are, and reads until the proxy closes.
    pub(crate) async fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect().await;
        stream.write_all(bytes).await.unwrap();
        let mut said = Vec::new();
        // Closed with something unread is a reset, after what was said.
        let _ = in_time(stream.read_to_end(&mut said)).await;
        String::from_utf8_lossy(&said).into_owned()
    }

    /// The same for a connection that stays open: what is said first.
    pub(crate) async fn raw_first(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect().await;
        stream.write_all(bytes).await.unwrap();
        let mut said = vec![0; 64 << 10];
        let length = in_time(stream.read(&mut said)).await.unwrap();
        said.truncate(length);
        String::from_utf8_lossy(&said).into_owned()
    }

    /// Asks in order: code and what was said.
    pub(crate) async fn ask(&self, line: &str, body: Option<&Value>) -> (u16, Value) {
        let body = body.map_or_else(String::new, Value::to_string);
        let length = body.len();
        let said = self
            .raw(
                format!(
                    "{line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\
                     \r\n{body}"
                )
                .as_bytes(),
            )
            .await;
        let (head, body) = said.split_once("\r\n\r\n").unwrap();
        (status(head), serde_json::from_str(body).unwrap_or_default())
    }

    /// Makes a container; its id.
    pub(crate) async fn create(&self, body: &Value) -> String {
        let line = format!("POST /containers/create?name={}", self.name());
        let (status, told) = self.ask(&line, Some(body)).await;
        assert_eq!(status, 201, "{told}");
        told["Id"].as_str().unwrap().to_owned()
    }

    /// The refused bodies, with the reason for each.
    pub(crate) async fn refuses(&self, line: &str, body: Option<&Value>, expected: &str) {
        let (status, told) = self.ask(line, body).await;
        let message = told["message"].as_str().unwrap_or_default();
        assert!(matches!(status, 400 | 403), "{line}: {status} {told}");
        assert!(message.contains(expected), "{line}: {status} {message}");
    }

    /// Everything at the engine that carries our label.
    pub(crate) fn made(&self) -> Vec<String> {
        let filter = format!("label={}", self.label);
        let mut made = lines(&["ps", "-aq", "--filter", &filter]);
        made.extend(lines(&["volume", "ls", "-q", "--filter", &filter]));
        made
    }

    /// Ends it in order.
    pub(crate) async fn stop(&self) {
        self.shutdown.cancel();
        in_time(self.tasks.wait()).await;
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shutdown.cancel();
        let filter = format!("label={}", self.label);
        for id in lines(&["ps", "-aq", "--filter", &filter]) {
            docker(&["rm", "-f", &id]);
        }
        for volume in lines(&["volume", "ls", "-q", "--filter", &filter]) {
            docker(&["volume", "rm", "-f", &volume]);
        }
        docker(&["volume", "rm", "-f", &self.volume()]);
    }
}

pub(crate) fn status(head: &str) -> u16 {
    head.split(' ').nth(1).unwrap().parse().unwrap()
}

pub(crate) fn image() -> String {
    variable("SEPAL_TEST_IMAGE")
}

pub(crate) fn variable(name: &str) -> String {
    #[expect(
        clippy::disallowed_methods,
        reason = "the servers that tests need are told by the environment"
    )]
    let value = std::env::var(name);
    value.unwrap_or_else(|_| {
        panic!(
            "{name} is not set: run `./run test`, or this test below `tests/servers/servers run`. \
             Its private engine needs root, docker.io and debootstrap"
        )
    })
}

/// Asks the engine itself, as its operator would.
pub(crate) fn docker(arguments: &[&str]) -> Output {
    let output = Command::new("docker")
        .env("DOCKER_HOST", variable("SEPAL_TEST_DOCKER"))
        .args(arguments)
        .output();
    output.expect("the docker command is missing: apt-get install docker.io")
}

pub(crate) fn lines(arguments: &[&str]) -> Vec<String> {
    let output = docker(arguments);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(str::to_owned).collect()
}

pub(crate) async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, work)
        .await
        .expect("it takes too long")
}
