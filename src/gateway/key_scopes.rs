//! Says which scope an API key needs for what, in one table, and checks it where a key's request is authenticated.
//!
//! The scopes of a key say what it may do, the role of its user what can be done at all. A scope includes no other.
//! An operation without a row is refused to every key with limits.

use std::fmt::Write as _;

use axum::extract::MatchedPath;
use axum::http::Method;
use axum::http::request::Parts;

use super::error::ApiError;
use super::wire::COMMANDS;
use crate::agent::require_scope;
use crate::domain::{Caller, Code, KeyScope, SessionId};

/// What a key needs for an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    /// Nothing: every key may do this.
    Nothing,
    Scope(KeyScope),
}

impl Need {
    /// The name in the description of the REST door.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Nothing => "none",
            Self::Scope(scope) => scope.as_str(),
        }
    }
}

/// Who one is: every key may ask that. The others look at no key.
const ANY: Need = Need::Nothing;
/// See. Also what computes something and keeps nothing.
const READ: Need = Need::Scope(KeyScope::Read);
/// Begin sessions, send messages, stop, and change sessions and their files.
const MESSAGE: Need = Need::Scope(KeyScope::Message);
/// Decide calls, answer servers, give rules of one's own, and see what waits for that.
const DECIDE: Need = Need::Scope(KeyScope::Decide);
/// Change everything else. Also what shows sessions to others, or sends test requests that cost money.
const ADMINISTER: Need = Need::Scope(KeyScope::Administer);

/// The operations of REST.
pub(super) const OPERATIONS: &[(&str, &str, Need)] = &[
    ("GET", "/api/approvals", DECIDE),
    ("GET", "/api/approvals/count", DECIDE),
    ("GET", "/api/assistants", READ),
    ("POST", "/api/assistants", ADMINISTER),
    ("GET", "/api/assistants/{id}", READ),
    ("PUT", "/api/assistants/{id}", ADMINISTER),
    ("DELETE", "/api/assistants/{id}", ADMINISTER),
    ("GET", "/api/assistants/{id}/access", READ),
    ("PUT", "/api/assistants/{id}/access", ADMINISTER),
    ("GET", "/api/assistants/{id}/export", READ),
    ("GET", "/api/assistants/{id}/versions", READ),
    ("GET", "/api/assistants/{id}/versions/{version}", READ),
    (
        "POST",
        "/api/assistants/{id}/versions/{version}/restore",
        ADMINISTER,
    ),
    ("GET", "/api/audit", READ),
    ("GET", "/api/audit/export", READ),
    ("GET", "/api/audit/key", READ),
    ("GET", "/api/audit/state", READ),
    ("POST", "/api/audit/verify", READ),
    ("POST", "/api/auth/invitation", ANY),
    ("POST", "/api/auth/invitation/read", ANY),
    ("POST", "/api/auth/logout", ANY),
    ("GET", "/api/auth/me", ANY),
    ("POST", "/api/auth/ticket", READ),
    ("GET", "/api/budgets", READ),
    ("PUT", "/api/budgets", ADMINISTER),
    ("DELETE", "/api/budgets", ADMINISTER),
    ("GET", "/api/directory/groups", READ),
    ("PUT", "/api/directory/groups/{id}", ADMINISTER),
    ("DELETE", "/api/directory/groups/{id}", ADMINISTER),
    ("GET", "/api/directory/people", READ),
    ("PUT", "/api/directory/people/{id}", ADMINISTER),
    ("DELETE", "/api/directory/people/{id}", ADMINISTER),
    ("POST", "/api/gestures", DECIDE),
    ("POST", "/api/gestures/challenge", DECIDE),
    ("POST", "/api/gestures/provider", DECIDE),
    ("POST", "/api/gestures/provider/finish", DECIDE),
    ("GET", "/api/groups", READ),
    ("POST", "/api/groups", ADMINISTER),
    ("GET", "/api/groups/{id}", READ),
    ("PATCH", "/api/groups/{id}", ADMINISTER),
    ("DELETE", "/api/groups/{id}", ADMINISTER),
    ("PUT", "/api/groups/{id}/access", ADMINISTER),
    ("PUT", "/api/groups/{id}/members/{person}", ADMINISTER),
    ("DELETE", "/api/groups/{id}/members/{person}", ADMINISTER),
    ("GET", "/api/invitations", READ),
    ("POST", "/api/invitations", ADMINISTER),
    ("DELETE", "/api/invitations/{id}", ADMINISTER),
    ("GET", "/api/keys", READ),
    ("POST", "/api/keys", ADMINISTER),
    ("DELETE", "/api/keys/{id}", ADMINISTER),
    ("GET", "/api/local-model-servers", ADMINISTER),
    ("GET", "/api/mcp", READ),
    ("POST", "/api/mcp-bundles", ADMINISTER),
    ("GET", "/api/mcp-bundles/{sha256}", READ),
    ("POST", "/api/mcp-bundles/{sha256}/entry", ADMINISTER),
    ("POST", "/api/mcp-bundles/{sha256}/replace", ADMINISTER),
    ("POST", "/api/mcp-registry/entry", ADMINISTER),
    ("GET", "/api/mcp-registry/servers", READ),
    ("POST", "/api/mcp/add", ADMINISTER),
    ("GET", "/api/mcp/health", READ),
    ("POST", "/api/mcp/oauth/callback", ADMINISTER),
    ("GET", "/api/mcp/oauth/connections", READ),
    ("POST", "/api/mcp/package", ADMINISTER),
    ("POST", "/api/mcp/read", ADMINISTER),
    ("POST", "/api/mcp/test", ADMINISTER),
    ("GET", "/api/mcp/{name}", READ),
    ("PATCH", "/api/mcp/{name}", ADMINISTER),
    ("DELETE", "/api/mcp/{name}", ADMINISTER),
    ("POST", "/api/mcp/{name}/connect", ADMINISTER),
    ("DELETE", "/api/mcp/{name}/connect", ADMINISTER),
    ("POST", "/api/mcp/{name}/connect/dismiss", ADMINISTER),
    ("GET", "/api/mcp/{name}/health", READ),
    ("GET", "/api/mcp/{name}/installation", READ),
    ("POST", "/api/mcp/{name}/installation", ADMINISTER),
    ("DELETE", "/api/mcp/{name}/installation", ADMINISTER),
    ("POST", "/api/mcp/{name}/installation/accept", ADMINISTER),
    ("POST", "/api/mcp/{name}/installation/check", ADMINISTER),
    ("GET", "/api/mcp/{name}/logs", READ),
    ("POST", "/api/mcp/{name}/restart", ADMINISTER),
    ("PUT", "/api/mcp/{name}/secrets/{secret}", ADMINISTER),
    ("DELETE", "/api/mcp/{name}/secrets/{secret}", ADMINISTER),
    ("POST", "/api/mcp/{name}/test", ADMINISTER),
    ("GET", "/api/mcp/{name}/tools", READ),
    ("PUT", "/api/mcp/{name}/tools/{tool}", ADMINISTER),
    ("GET", "/api/mcp/{name}/tools/{tool}/history", READ),
    ("GET", "/api/models/available", READ),
    ("GET", "/api/models/check", ADMINISTER),
    ("GET", "/api/models/compaction", READ),
    ("PUT", "/api/models/compaction", ADMINISTER),
    ("DELETE", "/api/models/compaction", ADMINISTER),
    ("GET", "/api/models/default", READ),
    ("PUT", "/api/models/default", ADMINISTER),
    ("DELETE", "/api/models/default", ADMINISTER),
    ("POST", "/api/models/{id}/tokens", READ),
    ("GET", "/api/notifications/mail", READ),
    ("PUT", "/api/notifications/mail", ADMINISTER),
    ("PUT", "/api/passkey-only", ADMINISTER),
    ("GET", "/api/passkeys", READ),
    ("POST", "/api/passkeys", ADMINISTER),
    ("POST", "/api/passkeys/challenge", ADMINISTER),
    ("PATCH", "/api/passkeys/{id}", ADMINISTER),
    ("DELETE", "/api/passkeys/{id}", ADMINISTER),
    ("PUT", "/api/password", ADMINISTER),
    ("GET", "/api/people", READ),
    ("POST", "/api/people", ADMINISTER),
    ("PATCH", "/api/people/{id}", ADMINISTER),
    ("DELETE", "/api/people/{id}", ADMINISTER),
    ("GET", "/api/people/{id}/archive", READ),
    ("POST", "/api/people/{id}/hand-over", ADMINISTER),
    ("GET", "/api/people/{id}/roles", READ),
    ("PUT", "/api/people/{id}/roles", ADMINISTER),
    ("DELETE", "/api/people/{id}/passkey-only", ADMINISTER),
    ("POST", "/api/people/{id}/sign-out", ADMINISTER),
    ("GET", "/api/providers", READ),
    ("GET", "/api/providers/{id}", READ),
    ("PUT", "/api/providers/{id}", ADMINISTER),
    ("DELETE", "/api/providers/{id}", ADMINISTER),
    ("POST", "/api/providers/{id}/test", ADMINISTER),
    ("GET", "/api/readings", READ),
    ("DELETE", "/api/readings/{id}", ADMINISTER),
    ("POST", "/api/readings/{id}/seen", ADMINISTER),
    ("GET", "/api/readings/{id}/session", READ),
    ("GET", "/api/roles", READ),
    ("POST", "/api/roles", ADMINISTER),
    ("PATCH", "/api/roles/{id}", ADMINISTER),
    ("DELETE", "/api/roles/{id}", ADMINISTER),
    ("GET", "/api/rules", READ),
    ("POST", "/api/rules", DECIDE),
    ("POST", "/api/rules/preview", READ),
    ("POST", "/api/rules/simulate", READ),
    ("DELETE", "/api/rules/{id}", DECIDE),
    ("GET", "/api/scim-tokens", READ),
    ("POST", "/api/scim-tokens", ADMINISTER),
    ("DELETE", "/api/scim-tokens/{id}", ADMINISTER),
    ("GET", "/api/search", READ),
    ("GET", "/api/service-accounts", READ),
    ("POST", "/api/service-accounts", ADMINISTER),
    ("POST", "/api/service-accounts/{id}/keys", ADMINISTER),
    ("GET", "/api/sessions", READ),
    ("POST", "/api/sessions", MESSAGE),
    ("POST", "/api/sessions/bulk", MESSAGE),
    ("POST", "/api/sessions/import", MESSAGE),
    ("GET", "/api/sessions/{id}", READ),
    ("PATCH", "/api/sessions/{id}", MESSAGE),
    ("DELETE", "/api/sessions/{id}", MESSAGE),
    ("POST", "/api/sessions/{id}/approvals", DECIDE),
    ("POST", "/api/sessions/{id}/assistant", MESSAGE),
    ("POST", "/api/sessions/{id}/attachments", MESSAGE),
    ("GET", "/api/sessions/{id}/attachments/{blob}", READ),
    ("POST", "/api/sessions/{id}/calls/{call}/outcome", DECIDE),
    ("GET", "/api/sessions/{id}/calls/{call}/rules", DECIDE),
    ("POST", "/api/sessions/{id}/calls/{call}/stop", MESSAGE),
    ("GET", "/api/sessions/{id}/changes", READ),
    ("GET", "/api/sessions/{id}/changes/{number}", READ),
    ("GET", "/api/sessions/{id}/changes/{number}/file", READ),
    ("GET", "/api/sessions/{id}/changes/{number}/undo", READ),
    ("POST", "/api/sessions/{id}/changes/{number}/undo", MESSAGE),
    ("PUT", "/api/sessions/{id}/compaction", MESSAGE),
    ("POST", "/api/sessions/{id}/completions", MESSAGE),
    ("GET", "/api/sessions/{id}/decisions", READ),
    ("POST", "/api/sessions/{id}/dry-runs", DECIDE),
    ("DELETE", "/api/sessions/{id}/dry-runs/{callId}", DECIDE),
    ("POST", "/api/sessions/{id}/elicitations", DECIDE),
    ("GET", "/api/sessions/{id}/events", READ),
    ("GET", "/api/sessions/{id}/export", READ),
    ("GET", "/api/sessions/{id}/files", READ),
    ("GET", "/api/sessions/{id}/files-archive", READ),
    ("GET", "/api/sessions/{id}/files/{path}", READ),
    ("PUT", "/api/sessions/{id}/files/{path}", MESSAGE),
    ("DELETE", "/api/sessions/{id}/files/{path}", MESSAGE),
    ("POST", "/api/sessions/{id}/fork", MESSAGE),
    ("GET", "/api/sessions/{id}/forks", READ),
    ("POST", "/api/sessions/{id}/messages", MESSAGE),
    ("POST", "/api/sessions/{id}/messages/withdraw", MESSAGE),
    ("PUT", "/api/sessions/{id}/model", MESSAGE),
    ("GET", "/api/sessions/{id}/prompts", READ),
    ("POST", "/api/sessions/{id}/prompts/get", MESSAGE),
    ("POST", "/api/sessions/{id}/readings", ADMINISTER),
    ("POST", "/api/sessions/{id}/reset", MESSAGE),
    ("GET", "/api/sessions/{id}/resources", READ),
    ("POST", "/api/sessions/{id}/resources/read", MESSAGE),
    ("POST", "/api/sessions/{id}/retry", MESSAGE),
    ("GET", "/api/sessions/{id}/search", READ),
    ("GET", "/api/sessions/{id}/shares", READ),
    ("POST", "/api/sessions/{id}/shares", ADMINISTER),
    ("DELETE", "/api/sessions/{id}/shares/{share}", MESSAGE),
    ("POST", "/api/sessions/{id}/stop", MESSAGE),
    ("GET", "/api/sessions/{id}/stream", READ),
    ("POST", "/api/sessions/{id}/view-calls", MESSAGE),
    ("POST", "/api/sessions/{id}/view-calls/close", MESSAGE),
    ("POST", "/api/sessions/{id}/views", MESSAGE),
    ("POST", "/api/sessions/{id}/views/resources", MESSAGE),
    ("PUT", "/api/sessions/{id}/window", MESSAGE),
    ("GET", "/api/sharing", READ),
    ("PUT", "/api/sharing", ADMINISTER),
    ("GET", "/api/sign-ins", READ),
    ("DELETE", "/api/sign-ins/{id}", ADMINISTER),
    ("GET", "/api/skills", READ),
    ("POST", "/api/skills", ADMINISTER),
    ("POST", "/api/skills/check", ADMINISTER),
    ("GET", "/api/skills/{id}", READ),
    ("PUT", "/api/skills/{id}", ADMINISTER),
    ("PATCH", "/api/skills/{id}", ADMINISTER),
    ("DELETE", "/api/skills/{id}", ADMINISTER),
    ("GET", "/api/skills/{id}/archive", READ),
    ("GET", "/api/skills/{id}/files/{path}", READ),
    ("GET", "/api/stream", READ),
    ("GET", "/api/system", READ),
    ("GET", "/api/tenants", READ),
    ("POST", "/api/tenants", ADMINISTER),
    ("PATCH", "/api/tenants/{id}", ADMINISTER),
    ("DELETE", "/api/tenants/{id}", ADMINISTER),
    ("GET", "/api/usage", READ),
    ("GET", "/api/view-frame", READ),
    ("GET", "/api/webhooks", READ),
    ("POST", "/api/webhooks", ADMINISTER),
    ("DELETE", "/api/webhooks/{id}", ADMINISTER),
    ("POST", "/api/webhooks/{id}/test", ADMINISTER),
    ("GET", "/metrics", READ),
];

/// The addresses of the agent as an MCP server.
const AGENT: [&str; 3] = ["/mcp", "/message", "/sse"];

/// The addresses at which keys may be shown beside the operations that need a sign-in, whatever the method.
const DOORS: [(&str, Need); 5] = [
    ("/api/shared/{word}", READ),
    ("/mcp", MESSAGE),
    ("/message", MESSAGE),
    ("/shared/{word}", READ),
    ("/sse", MESSAGE),
];

/// The beginning of the addresses of one session.
const ONE_SESSION: &str = "/api/sessions/{id}";

/// What a key that is limited to some sessions may use beside those sessions. The lists show only those. Everything
/// else is about more than some sessions.
pub(super) const FOR_SOME_SESSIONS: [(&str, &str); 12] = [
    ("GET", "/api/approvals"),
    ("GET", "/api/approvals/count"),
    ("POST", "/api/auth/logout"),
    ("GET", "/api/auth/me"),
    ("POST", "/api/auth/ticket"),
    ("POST", "/api/gestures"),
    ("POST", "/api/gestures/challenge"),
    ("GET", "/api/models/available"),
    ("GET", "/api/search"),
    ("GET", "/api/sessions"),
    ("POST", "/api/sessions/bulk"),
    ("GET", "/api/stream"),
];

/// Returns what a key needs for an operation; `None` if it has no row.
pub(super) fn need(method: &str, path: &str) -> Option<Need> {
    let mut rows = OPERATIONS.iter();
    let row = rows.find(|(known, at, _)| *known == method && *at == path);
    row.map(|(.., need)| *need)
}

/// Checks that the caller's key may do what a request asks.
pub(super) fn check(caller: &Caller, parts: &Parts) -> Result<(), ApiError> {
    let Some(grant) = &caller.grant else {
        return Ok(());
    };
    let path = parts.extensions.get::<MatchedPath>();
    let path = path.map_or("", MatchedPath::as_str).replace("{*", "{");
    let method = match parts.method {
        Method::HEAD => "GET",
        ref method => method.as_str(),
    };
    let door = DOORS.iter().find(|(at, _)| *at == path);
    match door.map(|(_, need)| *need).or_else(|| need(method, &path)) {
        Some(Need::Nothing) => {}
        Some(Need::Scope(scope)) => require_scope(caller, scope)?,
        None => {
            let text =
                "no scope of API keys covers this operation: use a key without limits, or sign in";
            return Err(ApiError::new(Code::ScopeMissing, text));
        }
    }
    // The agent is asked in new sessions, and its tasks are sessions: both are checked there.
    if grant.sessions.is_none() || AGENT.contains(&&*path) {
        return Ok(());
    }
    check_session(caller, parts.uri.path(), (method, &path))
}

/// Checks that a key that is limited to some sessions reaches no other one.
fn check_session(
    caller: &Caller,
    address: &str,
    (method, path): (&str, &str),
) -> Result<(), ApiError> {
    if let Some(rest) = path.strip_prefix(ONE_SESSION)
        && (rest.is_empty() || rest.starts_with('/'))
    {
        let id = address.split('/').nth(3).and_then(SessionId::parse);
        if id.is_some_and(|id| caller.reaches(&id)) {
            return Ok(());
        }
        let text = "there is no such session";
        return Err(ApiError::new(Code::SessionNotFound, text));
    }
    if FOR_SOME_SESSIONS.contains(&(method, path)) {
        return Ok(());
    }
    let text = "this API key is limited to some sessions, and this is about more than those";
    Err(ApiError::new(Code::NotAllowed, text))
}

/// Returns true if a key that is limited to some sessions may ask for an operation.
fn is_for_some_sessions(method: &str, path: &str) -> bool {
    let is_of_session = path
        .strip_prefix(ONE_SESSION)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    is_of_session || FOR_SOME_SESSIONS.contains(&(method, path))
}

/// Returns the content of `docs/key-scopes.md`. `operation_id` names an operation by its method and path.
pub(super) fn page(operation_id: impl Fn(&str, &str) -> Option<String>) -> String {
    let mut text = String::from(
        "# Scopes of API keys\n\n\
         <!-- Written by `./run generate` from src/gateway/key_scopes.rs; do not edit. -->\n\n\
         The scopes of a key say what it may do, the role of its person what can be done at all \
         ([roles.md](roles.md)): a key may do what both allow. No scope includes another one. A request \
         beyond the scopes is refused with `scope_missing` (403), and the message names the scope. \
         [people.md](people.md#api-keys) says how keys are made and limited.\n\n\
         | scope | what it allows |\n|---|---|\n\
         | `read` | see; also what computes something and keeps nothing |\n\
         | `message` | begin sessions, send messages, stop, and change own sessions and their files |\n\
         | `decide` | approve, deny and edit calls, answer servers, give rules of one's own, and see the inbox |\n\
         | `administer` | change servers, providers, people, settings and everything else; share sessions |\n\n\
         A rule for the whole tenant needs `administer` beside `decide`. The archive of somebody else needs \
         `administer` beside `read`. Whatever its scopes are, a key makes no keys and no tokens of directories, and \
         changes no password: that needs a sign-in.\n\n\
         ## Operations of REST\n\n\
         `x-key-scope` says the same in [openapi.json](openapi.json). **some sessions**: whether a key that \
         is limited to some sessions may ask for it, about those.\n\n\
         | operation | address | scope | some sessions |\n|---|---|---|---|\n",
    );
    for (method, path, need) in OPERATIONS {
        let id = operation_id(method, path).unwrap_or_default();
        let word = match need {
            Need::Nothing => "every key".to_owned(),
            Need::Scope(scope) => format!("`{}`", scope.as_str()),
        };
        // A key with such a limit cannot have `administer`.
        let some = if *need != ADMINISTER && is_for_some_sessions(method, path) {
            "yes"
        } else {
            "no"
        };
        let _ = writeln!(text, "| `{id}` | `{method} {path}` | {word} | {some} |");
    }
    text.push_str(
        "\n## Commands of the socket\n\nConnecting needs `read`, and a new session `message`.\n\n\
         | command | scope |\n|---|---|\n",
    );
    for spec in COMMANDS {
        let scope = spec.scope.as_str();
        let _ = writeln!(text, "| `{}` | `{scope}` |", spec.name);
    }
    text.push_str(
        "\n## The agent as an MCP server\n\n`/mcp`, `/sse` and `/message` need `message`. Whoever is to \
         decide about calls at the client, or answer a server there, needs `decide` too: without it, the \
         client is asked nothing, and `auto` of `agent.approval` approves nothing.\n",
    );
    text
}
