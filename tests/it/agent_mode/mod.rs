//! The agent as an MCP server: on standard input and output, over HTTP, and for old clients.

mod command_line;
mod examples;
pub(crate) mod http;
mod legacy;
mod older_clients;
mod rounds;
mod rules;
mod stdio;
mod task_client;
mod tasks;

use std::process::Stdio;
use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, ElicitRequestParams,
    ElicitResult, ElicitationAction, ErrorData, Implementation, ProgressNotificationParam,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient, RunningService};
use rmcp::{ClientHandler, ServiceExt as _};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::sync::mpsc;

use crate::model_stub::ModelStub;
use crate::support::{DEADLINE, TestApp};

/// A client that remembers what it was told.
#[derive(Clone)]
pub(crate) struct TestClient {
    /// What it says to forms; `None` = it has none.
    approves: Option<bool>,
    told: mpsc::UnboundedSender<String>,
    pub(crate) asked: Arc<tokio::sync::Mutex<Vec<String>>>,
}

pub(crate) type Running = RunningService<RoleClient, TestClient>;

impl TestClient {
    pub(crate) fn new(approves: Option<bool>) -> (Self, mpsc::UnboundedReceiver<String>) {
        let (told, hears) = mpsc::unbounded_channel();
        let asked = Arc::default();
        let client = Self {
            approves,
            told,
            asked,
        };
        (client, hears)
    }
}

impl ClientHandler for TestClient {
    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let request = serde_json::to_value(request).unwrap();
        let message = request["message"].as_str().unwrap().to_owned();
        self.asked.lock().await.push(message);
        let content = json!({"approve": self.approves, "reason": "not on a Sunday"});
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(content))
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let text = params.message.unwrap_or_default();
        let _ = self.told.send(format!("{} {text}", params.progress));
    }

    #[expect(deprecated, reason = "the server still logs to clients (S0.54)")]
    async fn on_logging_message(
        &self,
        params: rmcp::model::LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let params = serde_json::to_value(params).unwrap();
        let (level, message) = (&params["level"], &params["data"]["message"]);
        let _ = self.told.send(format!("{level} {message}"));
    }

    fn get_info(&self) -> ClientConfig {
        let capabilities = if self.approves.is_some() {
            ClientCapabilities::builder().enable_elicitation().build()
        } else {
            ClientCapabilities::default()
        };
        ClientConfig::new(capabilities, Implementation::new("test", "1"))
    }
}

/// Waits for something that the client is told.
pub(crate) async fn hear(hears: &mut mpsc::UnboundedReceiver<String>, piece: &str) -> String {
    let waiting = async {
        loop {
            let told = hears.recv().await.expect("the client is gone");
            if told.contains(piece) {
                return told;
            }
        }
    };
    let found = tokio::time::timeout(DEADLINE, waiting).await;
    found.unwrap_or_else(|_| panic!("nobody said `{piece}`"))
}

pub(crate) fn question(text: &str) -> CallToolRequestParams {
    let Value::Object(arguments) = json!({ "input": text }) else {
        unreachable!()
    };
    CallToolRequestParams::new("process").with_arguments(arguments)
}

/// The text of a result, and whether it is an error.
pub(crate) fn text_of(result: &CallToolResult) -> (String, bool) {
    let result = serde_json::to_value(result).unwrap();
    let text = result["content"][0]["text"].as_str().unwrap().to_owned();
    (text, result["isError"] == true)
}

/// The program, with nothing of this machine's environment.
pub(crate) fn sepal(folder: &TempDir) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sepal"));
    command
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("SPL_DATA_DIR", folder.path().join("data"))
        .env("SPL_SANDBOX", "none")
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    command
}

pub(crate) fn with_model<'a>(command: &'a mut Command, model: &ModelStub) -> &'a mut Command {
    command
        .env("LLM_PROVIDER", "openai-compatible")
        .env("OPENAI_BASE_URL", model.base_url())
        .env("SPL_LLM_MODEL", "stub")
        .env("SPL_LLM_RETRY_MAX_RETRIES", "0")
}

/// An MCP client of a process.
async fn connect(process: &mut Child, client: TestClient) -> Running {
    let pipes = (
        process.stdout.take().unwrap(),
        process.stdin.take().unwrap(),
    );
    let connecting = client.serve(pipes);
    let connected = tokio::time::timeout(DEADLINE, connecting).await;
    connected.unwrap().unwrap()
}

/// Asks over `/mcp` with these arguments; the text of the result, and whether it is an error.
pub(crate) async fn ask_with(app: &TestApp, key: &str, arguments: Value) -> (String, bool) {
    ask_at(&app.url("/mcp"), key, arguments).await
}

/// The same at an address.
pub(crate) async fn ask_at(url: &str, key: &str, arguments: Value) -> (String, bool) {
    let (client, _hears) = TestClient::new(None);
    let client = http::connect_at(url, key, client).await.unwrap();
    let Value::Object(arguments) = arguments else {
        unreachable!()
    };
    let call = CallToolRequestParams::new("process").with_arguments(arguments);
    text_of(&client.call_tool(call).await.unwrap())
}

/// The schema of the arguments of the tool at `/mcp`.
pub(crate) async fn tool_schema(app: &TestApp, key: &str) -> Value {
    let (client, _hears) = TestClient::new(None);
    let client = http::connect(app, key, client).await.unwrap();
    let listed = client.list_all_tools().await.unwrap().remove(0);
    Value::Object((*listed.input_schema).clone())
}
