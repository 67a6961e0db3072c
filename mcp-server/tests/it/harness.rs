//! A running server with a workspace of its own and a client that keeps the progress it hears of.

use std::{future::Future, path::Path, process::Stdio, time::Duration};

use rmcp::{
    ClientHandler, RoleClient, ServiceExt,
    model::{
        CallToolRequestParams, CallToolResult, ClientRequest, ContentBlock,
        ProgressNotificationParam, Request,
    },
    service::{NotificationContext, PeerRequestOptions, RequestHandle, RunningService},
};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{Pid, PidfdFlags, pidfd_open},
};
use serde_json::Value;
use tempfile::TempDir;
use tokio::{
    process::{Child, Command},
    sync::mpsc,
};

/// Long enough for a busy machine; only failing tests wait for it.
const DEADLINE: Duration = Duration::from_secs(30);

/// A namespace with the server as its process 1 stands for a container.
pub(crate) const ALONE: [&str; 10] = [
    "bwrap",
    "--unshare-user",
    "--unshare-pid",
    "--as-pid-1",
    "--die-with-parent",
    "--dev-bind",
    "/",
    "/",
    "--proc",
    "/proc",
];

pub(crate) struct Harness {
    /// Holds `workspace` and, beside it, what must stay out of reach.
    pub(crate) home: TempDir,
    pub(crate) client: RunningService<RoleClient, Listener>,
    pub(crate) server: Child,
    progress: mpsc::UnboundedReceiver<String>,
}

impl Harness {
    pub(crate) async fn start() -> Self {
        Self::start_with(&[]).await
    }

    pub(crate) async fn start_with(options: &[&str]) -> Self {
        Self::spawn(&[], options).await
    }

    /// Starts the server by a command line that takes its own as arguments.
    pub(crate) async fn start_inside(wrapper: &[&str]) -> Self {
        Self::spawn(wrapper, &[]).await
    }

    async fn spawn(wrapper: &[&str], options: &[&str]) -> Self {
        let home = tempfile::tempdir().unwrap();
        let workspace = home.path().join("workspace");
        std::fs::create_dir(&workspace).unwrap();
        let binary = env!("CARGO_BIN_EXE_sepal-mcp-server");
        let mut words = wrapper.iter().copied().chain([binary]);
        let mut server = Command::new(words.next().unwrap())
            .args(words)
            .arg("--workspace")
            .arg(&workspace)
            .args(options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let streams = (server.stdout.take().unwrap(), server.stdin.take().unwrap());
        let (heard, progress) = mpsc::unbounded_channel();
        let client = in_time(Listener(heard).serve(streams)).await.unwrap();
        Self {
            home,
            client,
            server,
            progress,
        }
    }

    pub(crate) fn workspace(&self) -> std::path::PathBuf {
        self.home.path().join("workspace")
    }

    pub(crate) fn put(&self, path: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.workspace().join(path), content).unwrap();
    }

    pub(crate) fn content(&self, path: &str) -> String {
        std::fs::read_to_string(self.workspace().join(path)).unwrap()
    }

    pub(crate) async fn call(&self, tool: &'static str, arguments: Value) -> CallToolResult {
        in_time(self.client.call_tool(request(tool, arguments)))
            .await
            .unwrap()
    }

    /// The text of a call that must work.
    pub(crate) async fn does(&self, tool: &'static str, arguments: Value) -> String {
        let result = self.call(tool, arguments).await;
        assert_ne!(result.is_error, Some(true), "{}", text(&result));
        text(&result)
    }

    /// The text of a call that must not work.
    pub(crate) async fn refuses(&self, tool: &'static str, arguments: Value) -> String {
        let result = self.call(tool, arguments).await;
        assert_eq!(result.is_error, Some(true), "{}", text(&result));
        text(&result)
    }

    /// A command that goes on while the test does something else.
    pub(crate) async fn begin(&self, line: &str) -> RequestHandle<RoleClient> {
        let arguments = serde_json::json!({ "command": line });
        let request = Request::new(request("execute_command", arguments));
        self.client
            .send_cancellable_request(
                ClientRequest::CallToolRequest(request),
                PeerRequestOptions::no_options(),
            )
            .await
            .unwrap()
    }

    /// The next progress message.
    pub(crate) async fn hears(&mut self) -> String {
        in_time(self.progress.recv()).await.unwrap()
    }
}

pub(crate) struct Listener(mpsc::UnboundedSender<String>);

impl ClientHandler for Listener {
    async fn on_progress(
        &self,
        note: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let _ = self.0.send(note.message.unwrap_or_default());
    }
}

fn request(tool: &'static str, arguments: Value) -> CallToolRequestParams {
    let Value::Object(arguments) = arguments else {
        panic!("arguments are an object");
    };
    CallToolRequestParams::new(tool).with_arguments(arguments)
}

pub(crate) fn text(result: &CallToolResult) -> String {
    let texts = result.content.iter().map(|block| {
        let ContentBlock::Text(text) = block else {
            panic!("only text is expected");
        };
        text.text.as_str()
    });
    texts.collect::<Vec<_>>().join("\n")
}

pub(crate) async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, work)
        .await
        .expect("it takes too long")
}

/// Waits for the end of a process that is not our child.
pub(crate) async fn gone(pid: i32) {
    let wait = move || {
        let end = match pidfd_open(Pid::from_raw(pid).unwrap(), PidfdFlags::empty()) {
            Ok(end) => end,
            Err(error) => return assert_eq!(error, Errno::SRCH),
        };
        let deadline = Timespec::try_from(DEADLINE).unwrap();
        let ended = poll(&mut [PollFd::new(&end, PollFlags::IN)], Some(&deadline));
        assert_eq!(ended, Ok(1), "process {pid} lives on");
    };
    #[expect(clippy::disallowed_methods, reason = "a test's own thread")]
    let waiting = tokio::task::spawn_blocking(wait);
    waiting.await.unwrap();
}

/// A named pipe that a command can be made to wait at.
pub(crate) fn fifo(path: &Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status();
    assert!(made.unwrap().success());
}
