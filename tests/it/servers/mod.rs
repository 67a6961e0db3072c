//! MCP servers beside the bundled one, one file per story: over stdio in real bubblewrap, over HTTP against
//! rmcp's own server, and the registry that people change.

mod answers;
pub(crate) mod asking;
mod contents;
pub(crate) mod deferred;
mod discovered;
mod drift;
mod egress;
mod fair;
mod hostile;
mod images;
mod masked;
mod moved;
mod odd;
mod offered;
mod offers;
mod old_sse;
mod own;
mod pages;
mod published;
mod registry;
mod remote;
mod removed;
mod restart;
mod retagged;
pub(crate) mod sampling;
mod sandboxed;
mod shown;
mod stand_in;
mod stopping;
mod unknown;
mod vendor_search;
pub(crate) mod view_calls;
mod view_context;
pub(crate) mod views;
pub(crate) mod waiting;

use reqwest::Method;
use secrecy::ExposeSecret as _;
use sepal::domain::Role;
use sepal::tenancy::NewPerson;
use serde_json::{Value, json};

pub(crate) use self::stand_in::StandIn;
use crate::support::{Person, Said, TestApp, TestSocket};

/// Somebody who asks the REST door.
pub(crate) struct Api<'a> {
    app: &'a TestApp,
    key: String,
}

impl<'a> Api<'a> {
    pub(crate) fn new(app: &'a TestApp, person: &Person) -> Self {
        let key = person.key.clone();
        Self { app, key }
    }

    pub(super) async fn ask(&self, method: Method, path: &str, body: &Value) -> (u16, Value) {
        let request = TestApp::http().request(method, self.app.url(path));
        let request = request.bearer_auth(&self.key);
        let request = if body.is_null() {
            request
        } else {
            request.json(body)
        };
        let answer = request.send().await.unwrap();
        let status = answer.status().as_u16();
        let text = answer.text().await.unwrap();
        (status, serde_json::from_str(&text).unwrap_or(Value::Null))
    }

    pub(super) async fn get(&self, path: &str) -> Value {
        let (status, body) = self.ask(Method::GET, path, &Value::Null).await;
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    pub(crate) async fn add(&self, name: &str, config: Value) {
        let body = json!({ "name": name, "config": config });
        self.add_with(body).await;
    }

    pub(super) async fn add_with(&self, body: Value) {
        let (status, answer) = self.ask(Method::POST, "/api/mcp/add", &body).await;
        assert_eq!(status, 201, "{answer}");
        assert_eq!(answer["name"], body["name"]);
    }

    pub(super) async fn refused(&self, method: Method, path: &str, body: &Value) -> (u16, Value) {
        let (status, answer) = self.ask(method, path, body).await;
        assert!(status >= 400, "{path}: {answer}");
        (status, answer)
    }

    pub(super) async fn server(&self, name: &str) -> Value {
        self.get(&format!("/api/mcp/{name}")).await
    }
}

/// An administrator of the installation.
pub(crate) async fn operator(app: &TestApp, tenant: &str) -> Person {
    let person = app.person_with(tenant, Role::Owner).await;
    let new = NewPerson {
        name: "operator".to_owned(),
        role: Role::Owner,
        installation_admin: true,
        password: None,
    };
    let user = app
        .tenancy
        .administration()
        .create_user(&person.tenant, new)
        .await
        .unwrap();
    let key = app
        .tenancy
        .administration()
        .create_key(&person.tenant, &user.id, "test");
    let key = key.await.unwrap().secret.expose_secret().to_owned();
    Person {
        tenant: person.tenant,
        key,
    }
}

/// A server of few lines of shell: `$TOOLS` is what it lists, `call` what it does.
pub(crate) fn shell(call: &str) -> Value {
    let script = r#"
echo "started $KEY" >&2
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
say() { answer "{\"content\":[{\"type\":\"text\",\"text\":\"$1\"}]}"; }
list() { answer "{\"tools\":[$TOOLS]}"; }
while IFS= read -r line; do
  id=${line#*\"id\":}; id=${id%%[,\}]*}
  case "$line" in
    *'"method":"initialize"'*) answer '{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"shell","version":"1"}}' ;;
    *'"method":"tools/list"'*) list ;;
    *'"method":"tools/call"'*) CALL ;;
  esac
done
"#
    .replace("CALL", call);
    json!({
        "command": "/bin/sh", "args": ["-c", script],
        "env": { "TOOLS": tool("echo", "Says it again") },
    })
}

/// The definition of a tool without arguments.
pub(crate) fn tool(name: &str, description: &str) -> String {
    let schema = json!({ "type": "object", "properties": { "how": { "type": "string" } } });
    json!({ "name": name, "description": description, "inputSchema": schema }).to_string()
}

/// Waits until the server was listed, or could not be.
pub(crate) async fn wait_for_health(socket: &mut TestSocket, server: &str, status: &str) -> Said {
    socket
        .wait_where(|said| {
            said.name == "mcp:health"
                && said.args[0]["server"] == server
                && said.args[0]["status"] == status
        })
        .await
}

/// The names of the tools that the last model request was told of.
pub(super) fn offered(app: &TestApp) -> Vec<String> {
    let last = app.model.requests().pop().unwrap();
    let tools = last.body["tools"].as_array().cloned().unwrap_or_default();
    let name = |tool: &Value| tool["function"]["name"].as_str().unwrap().to_owned();
    tools.iter().map(name).collect()
}
