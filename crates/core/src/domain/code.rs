//! Defines the stable error codes (docs/errors.md), each with its fault. The four faults (S0.46) determine
//! status code, retry, log level and client text.

use serde::{Deserialize, Serialize};

/// The party that has to act on a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// The caller sent or configured something invalid; repeating it does not help.
    Validation,
    /// Network, rate limit or an unavailable store: the same request may succeed later.
    Transient,
    /// A foreign server or tool refused or failed.
    External,
    /// Our own code failed; details go to the log only.
    Internal,
}

impl Fault {
    /// The `category` of an error on the wire (docs/errors.md).
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Validation => "validation",
            Self::Transient => "transient",
            Self::External => "external",
            Self::Internal => "internal",
        }
    }
}

/// Declares each code once: name on the wire, fault, and the texts of `docs/errors.md`.
macro_rules! codes {
    ($($name:ident = $wire:literal, $fault:ident, $cause:literal, $remedy:literal;)*) => {
        /// A stable error code that clients may match on.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum Code {
            $(#[doc = $cause] #[serde(rename = $wire)] $name,)*
        }

        impl Code {
            /// Every code, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The name on the wire.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $wire,)* }
            }

            /// The party that has to act.
            pub fn fault(self) -> Fault {
                match self { $(Self::$name => Fault::$fault,)* }
            }

            /// The usual cause.
            pub fn cause(self) -> &'static str {
                match self { $(Self::$name => $cause,)* }
            }

            /// The remedy.
            pub fn remedy(self) -> &'static str {
                match self { $(Self::$name => $remedy,)* }
            }
        }
    };
}

codes! {
    InvalidArguments = "invalid_arguments", Validation,
        "A field is missing, has the wrong type or an impossible value.",
        "Send what `field` and the message ask for.";
    UnknownCommand = "unknown_command", Validation,
        "The event is not one that this server knows.",
        "Use an event of docs/protocol.md; the server may be older than the client.";
    GestureRequired = "gesture_required", Validation,
        "A rule wants a fresh gesture (a passkey, the password, or a new sign-in at the OpenID provider) with the yes to this call, and there is none, or it is used up, too old, or for another call.",
        "Approve in the page; a program asks `POST /api/gestures/challenge`, and sends what `POST /api/gestures` gives as `gesture` with the decision. Without a password, add a passkey in the settings first.";
    Unauthorized = "unauthorized", Validation,
        "There is no valid sign-in, or it has ended.",
        "Sign in again, or send a valid API key.";
    NotAllowed = "not_allowed", Validation,
        "The role or a rule forbids it.",
        "Ask an owner or admin of the tenant.";
    ScopeMissing = "scope_missing", Validation,
        "The API key lacks the scope that this needs; the message names it.",
        "Use a key with that scope (docs/key-scopes.md), or sign in.";
    HostRefused = "host_refused", Validation,
        "The request names a host or origin that this installation does not answer to.",
        "Set `runtime.http.public_url` (SPL_PUBLIC_URL) or `runtime.http.allowed_origins` (SPL_ALLOWED_ORIGINS).";
    NotFound = "not_found", Validation,
        "There is no such thing, or it belongs to somebody else.",
        "Check the address.";
    FileExists = "file_exists", Validation,
        "Something of that name is there, and nothing said that it may be replaced or emptied.",
        "Send `If-Match` with the version that you saw, or `overwrite=true`; for a folder with files in it, `recursive=true`.";
    MethodNotAllowed = "method_not_allowed", Validation,
        "The address exists, but not for this HTTP method.",
        "Use a method that the `Allow` header names.";
    SessionNotFound = "session_not_found", Validation,
        "There is no such session for this user.",
        "Start a new session.";
    SessionUnreadable = "session_unreadable", External,
        "What is stored of this session is damaged; other sessions are not affected.",
        "Start a new session or delete this one; the log says what is damaged, and an operator can restore it from a backup.";
    NoSuchCall = "no_such_call", Validation,
        "No pending tool call has that id.",
        "Refresh the queue; somebody else may have decided, or the turn ended.";
    NoSuchElicitation = "no_such_elicitation", Validation,
        "No server waits for an answer to that question.",
        "Nothing; the call that asked has ended, or the server asks no more.";
    AlreadyDecided = "already_decided", Validation,
        "The call was decided otherwise, or has started.",
        "Nothing; the queue shows the decision.";
    CallExpired = "call_expired", Validation,
        "Nobody decided the call in time, so it was rejected; the model has read that.",
        "Ask the model to try again; an operator can raise `agent.chat.approval_expiry_s` (SPL_CHAT_APPROVAL_EXPIRY).";
    ChangedSinceShown = "changed_since_shown", Validation,
        "What would run, or the definition that was decided about, is no longer what was shown.",
        "Read it as it is now (the new card, or the `tool` of the answer) and decide again.";
    ReadOnly = "read_only", Validation,
        "It comes from the operator's settings and cannot be changed while the server runs.",
        "Change it in the settings and start again, or add one of your own under another name.";
    NothingToDo = "nothing_to_do", Validation,
        "The command does not fit what the session is doing, for example a retry without an answer.",
        "Wait for the session's next event, or send another command.";
    MissingApiKey = "missing_api_key", Validation,
        "The chosen model provider has no key.",
        "Set the provider's key (for example OPENAI_API_KEY) or choose another provider.";
    KeyInUse = "key_in_use", Validation,
        "The `Idempotency-Key` belongs to another request, or its request is still being carried out, or was interrupted after it had changed something.",
        "Take a new key for a new request; wait a moment and send the same request again if it is still running; if it was interrupted, read the state first.";
    TooManyRequests = "too_many_requests", Transient,
        "A limit was reached: of commands, connections, sessions, questions or sign-in attempts; the message says whose, and how much it is.",
        "Do what the message says, for example wait for the earlier commands to be answered; an operator can raise `runtime.limits`.";
    RequestTimeout = "request_timeout", Transient,
        "The body of the request came too slowly.",
        "Send it again over a faster line, or send less; `runtime.limits.body_seconds` says how long a body may take.";
    TooLarge = "too_large", Validation,
        "The message or a field of it is larger than the limit.",
        "Send less, or put it into a file of the workspace.";
    MaxIterations = "max_iterations", Validation,
        "The turn asked the model as often as it may.",
        "Raise `agent.chat.max_llm_iterations`, or send a narrower message.";
    RepeatedCall = "repeated_call", Validation,
        "The model made the very same call again and again in one turn, and it gave the same each time, so it was not run once more; the model has read that.",
        "Send a narrower message, or raise `agent.chat.max_same_calls`.";
    BudgetExhausted = "budget_exhausted", Validation,
        "A budget is spent.",
        "Wait until it renews, or ask an admin to raise it.";
    ContextOverflow = "context_overflow", Validation,
        "The request does not fit the model's window.",
        "Start a new context, or choose a model with a larger window.";
    ProviderRateLimited = "provider_rate_limited", Transient,
        "The model provider limits the rate, and retries did not help.",
        "Try again later.";
    ProviderUnavailable = "provider_unavailable", Transient,
        "The model provider does not answer, answers with a server fault, or cut the stream.",
        "Try again; check the base URL and the provider's status.";
    ProviderRejected = "provider_rejected", External,
        "The model provider refused the request; its own words are quoted.",
        "Check key, model name and settings.";
    SignInUnavailable = "sign_in_unavailable", Transient,
        "The OpenID provider does not answer, or cannot be read.",
        "Try again; check `auth.oidc` and the provider's status, and read the gateway's log.";
    SignInRejected = "sign_in_rejected", External,
        "The OpenID provider refuses this installation, or its answer is not valid.",
        "The gateway's log has the reason; check the client's id, secret and callback address at the provider.";
    RegistryUnavailable = "registry_unavailable", Transient,
        "The registry of published MCP servers does not answer, or not as a registry does.",
        "Try again; check `agent.mcp_registry.url`, or name a file with `agent.mcp_registry.file`.";
    ToolFailed = "tool_failed", External,
        "The tool ended with an error; the model has read it.",
        "Open the call's row to see the output.";
    AuthorizationRequired = "authorization_required", Validation,
        "A remote MCP server wants its person to connect to it, or to allow more than they did.",
        "Connect to the server: by the card in the session or on the server's page; then let the call run again.";
    ToolTimeout = "tool_timeout", External,
        "The tool did not answer in time and was stopped.",
        "Ask for a smaller step, or raise the time limit.";
    TurnTimeout = "turn_timeout", External,
        "The turn went on for longer than it may without a person, and was stopped.",
        "Ask again, for a smaller step; an operator can raise `agent.chat.turn_timeout_s` (SPL_CHAT_TURN_TIMEOUT).";
    ToolUnknownOutcome = "tool_unknown_outcome", External,
        "Nobody knows what became of a call that was sent; it may have happened.",
        "Look at the workspace and settle the call.";
    SandboxUnavailable = "sandbox_unavailable", External,
        "The sandbox of this session cannot be started or reached.",
        "See `sepal doctor`.";
    StoreUnavailable = "store_unavailable", Transient,
        "The database does not answer.",
        "Try again; it goes on by itself when the database is back.";
    ServerStopping = "server_stopping", Transient,
        "The server is shutting down.",
        "Connect again in a moment.";
    Internal = "internal", Internal,
        "Something of ours broke; the log has it under the request id.",
        "Report the request id to the operator.";
}

#[cfg(test)]
mod tests {
    use super::{Code, Fault};

    /// Asserts S0.46, S1.15.
    #[test]
    fn every_code_is_the_fault_of_whoever_has_to_act() {
        let of = |fault| -> String {
            let codes = Code::ALL.iter().filter(|code| code.fault() == fault);
            codes
                .map(|code| code.as_str())
                .collect::<Vec<_>>()
                .join(" ")
        };
        // Configuration, input, and what a person has to do first.
        assert_eq!(
            of(Fault::Validation),
            "invalid_arguments unknown_command gesture_required unauthorized not_allowed scope_missing \
             host_refused not_found file_exists method_not_allowed session_not_found no_such_call no_such_elicitation \
             already_decided call_expired changed_since_shown read_only nothing_to_do missing_api_key key_in_use \
             too_large max_iterations repeated_call budget_exhausted context_overflow authorization_required"
        );
        // Network, limits and outages: the same request may succeed later.
        assert_eq!(
            of(Fault::Transient),
            "too_many_requests request_timeout provider_rate_limited provider_unavailable \
             sign_in_unavailable registry_unavailable store_unavailable server_stopping"
        );
        // Tools, and services of others.
        assert_eq!(
            of(Fault::External),
            "session_unreadable provider_rejected sign_in_rejected tool_failed tool_timeout turn_timeout \
             tool_unknown_outcome sandbox_unavailable"
        );
        assert_eq!(of(Fault::Internal), "internal");
    }

    #[test]
    fn the_wire_name_is_what_serde_writes() {
        for code in Code::ALL {
            assert_eq!(serde_json::json!(code), serde_json::json!(code.as_str()));
        }
    }
}
