//! Parses client commands: one table of names and forms, and one parser for socket and REST.

mod approval;
mod dry_run;
mod elicitation;
mod fork;
mod message;
mod view;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::agent::{ForkRequest, SessionAction, SessionRequest, require_scope};
use crate::domain::{CallId, Caller, Code, JournalId, KeyScope, StrategyName, TurnId};
use crate::providers::{WantedEffort, WantedModel};
use crate::session::{Command, Refusal};

/// The maximum size of a message or reason, in bytes.
const MAX_TEXT_BYTES: usize = 256 * 1024;
/// The maximum length of an id chosen by a client, in bytes.
const MAX_ID_BYTES: usize = 128;

/// One entry of the command table.
pub struct CommandSpec {
    /// The event's name.
    pub name: &'static str,
    /// The operation of REST that does the same.
    pub operation: &'static str,
    /// The scope that a key needs for it: that of the operation.
    pub scope: KeyScope,
    /// True if the command counts against a socket's limit on unanswered commands. Commands that end or
    /// decide something never count.
    pub is_counted: bool,
    /// Arguments that parse: for the documentation, and for the test that sends every command as another
    /// user.
    pub example: fn() -> Vec<Value>,
    parse: fn(&Caller, &[Value]) -> Result<ParsedCommand, Refusal>,
}

/// A parsed command.
#[derive(Debug)]
pub enum ParsedCommand {
    /// A request to the session.
    Submit(Box<SessionRequest>),
    /// Sends the events after a point again.
    Resume {
        /// The last `seq` that the client has.
        last_seq: u64,
        /// The journal that this `seq` belongs to.
        journal: Option<JournalId>,
    },
    /// Creates a session that shares the past of this one.
    Fork(ForkRequest),
}

/// All commands that clients may send.
pub const COMMANDS: &[CommandSpec] = &[
    CommandSpec {
        name: "message",
        operation: "send_message",
        scope: KeyScope::Message,
        is_counted: true,
        example: || vec![json!("hello"), json!({ "clientMessageId": "m1" })],
        parse: message::message,
    },
    CommandSpec {
        name: "tool:approval",
        operation: "decide_call",
        scope: KeyScope::Decide,
        is_counted: false,
        example: || vec![json!({ "callId": "call_1_0", "approved": true })],
        parse: approval::approval,
    },
    CommandSpec {
        name: "tool:approval_all",
        operation: "decide_call",
        scope: KeyScope::Decide,
        is_counted: false,
        example: || vec![json!({ "callIds": ["call_1_0"], "approved": true })],
        parse: approval::approval_all,
    },
    CommandSpec {
        name: "tool:dry_run",
        operation: "begin_dry_run",
        scope: KeyScope::Decide,
        is_counted: true,
        example: || vec![json!({ "callId": "call_1_0" })],
        parse: dry_run::dry_run,
    },
    CommandSpec {
        name: "tool:dry_run_drop",
        operation: "drop_dry_run",
        scope: KeyScope::Decide,
        is_counted: false,
        example: || vec![json!({ "callId": "call_1_0" })],
        parse: dry_run::drop_dry_run,
    },
    CommandSpec {
        name: "tool:cancel",
        operation: "stop_call",
        scope: KeyScope::Message,
        is_counted: false,
        example: || vec![json!({ "callId": "call_1_0" })],
        parse: |_, args| {
            let body: OneCall = body(args)?;
            Ok(submit(Command::StopCall {
                call: CallId::from_wire(body.call_id),
            }))
        },
    },
    CommandSpec {
        name: "tool:outcome",
        operation: "resolve_call",
        scope: KeyScope::Decide,
        is_counted: false,
        example: || vec![json!({ "callId": "call_1_0", "happened": true })],
        parse: |caller, args| {
            let body: Outcome = body(args)?;
            let call = CallId::from_wire(body.call_id);
            Ok(submit(Command::ResolveUnknown {
                call,
                happened: body.happened,
                by: caller.actor(),
            }))
        },
    },
    CommandSpec {
        name: "view:call",
        operation: "call_for_view",
        scope: KeyScope::Message,
        is_counted: true,
        example: || {
            vec![
                json!({ "callId": "call_1_0", "viewId": "v1", "requestId": "r1",
                "name": "refresh", "arguments": {} }),
            ]
        },
        parse: view::call,
    },
    CommandSpec {
        name: "view:close",
        operation: "close_view",
        scope: KeyScope::Message,
        is_counted: false,
        example: || vec![json!({ "viewId": "v1" })],
        parse: view::close,
    },
    CommandSpec {
        name: "elicitation:answer",
        operation: "answer_elicitation",
        scope: KeyScope::Decide,
        is_counted: false,
        example: || {
            vec![json!({ "elicitationId": format!("elc_{:032x}", 1), "action": "decline" })]
        },
        parse: elicitation::answer,
    },
    CommandSpec {
        name: "agent:cancel",
        operation: "stop_turn",
        scope: KeyScope::Message,
        is_counted: false,
        example: || vec![json!({})],
        parse: |_, args| {
            let body: Cancel = optional_body(args)?;
            Ok(submit(Command::Stop {
                turn: body.turn,
                said_so_far: None,
                thought_so_far: None,
                spent: Vec::new(),
            }))
        },
    },
    CommandSpec {
        name: "turn:retry",
        operation: "retry_turn",
        scope: KeyScope::Message,
        is_counted: true,
        example: || vec![json!({})],
        parse: |_, _| Ok(submit(Command::Retry)),
    },
    CommandSpec {
        name: "message:withdraw",
        operation: "withdraw_message",
        scope: KeyScope::Message,
        is_counted: true,
        example: || vec![json!({ "clientMessageId": "m1" })],
        parse: |_, args| {
            let body: Withdraw = body(args)?;
            Ok(submit(Command::Withdraw {
                client_message_id: body.client_message_id,
            }))
        },
    },
    CommandSpec {
        name: "session:model",
        operation: "choose_model",
        scope: KeyScope::Message,
        is_counted: true,
        example: || vec![json!({ "model": "stub-large" })],
        parse: |_, args| {
            let body: Choose = body(args)?;
            let wanted = WantedModel::new(body.provider, body.model).with_effort(body.effort);
            if wanted.is_empty() {
                let message = "`model`, `provider` or `effort` is missing";
                return Err(Refusal::of_field(Code::InvalidArguments, "model", message));
            }
            Ok(ParsedCommand::Submit(Box::new(
                SessionAction::Choose(wanted).into(),
            )))
        },
    },
    CommandSpec {
        name: "session:assistant",
        operation: "update_session_assistant",
        scope: KeyScope::Message,
        is_counted: true,
        example: || vec![json!({})],
        parse: |caller, _| {
            let by = caller.actor();
            let update = SessionAction::UpdateAssistant { by };
            Ok(ParsedCommand::Submit(Box::new(update.into())))
        },
    },
    CommandSpec {
        name: "session:window",
        operation: "choose_window",
        scope: KeyScope::Message,
        is_counted: true,
        example: || vec![json!({ "whole": true })],
        parse: |_, args| {
            let body: Window = body(args)?;
            Ok(submit(Command::ChooseWindow { whole: body.whole }))
        },
    },
    CommandSpec {
        name: "session:fork",
        operation: "fork_session",
        scope: KeyScope::Message,
        is_counted: true,
        example: || vec![json!({ "fromSeq": 0 })],
        parse: fork::fork,
    },
    CommandSpec {
        name: "session:compaction",
        operation: "choose_compaction",
        scope: KeyScope::Message,
        is_counted: true,
        example: || vec![json!({ "strategies": ["delete-middle"] })],
        parse: |_, args| {
            let body: Compaction = body(args)?;
            let strategies = Some(body.strategies).filter(|chosen| !chosen.is_empty());
            Ok(submit(Command::ChooseCompaction { strategies }))
        },
    },
    CommandSpec {
        name: "history:reset",
        operation: "reset_context",
        scope: KeyScope::Message,
        is_counted: true,
        example: || vec![json!({})],
        parse: |_, _| Ok(submit(Command::ResetContext)),
    },
    CommandSpec {
        name: "session:resume",
        operation: "stream_session",
        scope: KeyScope::Read,
        is_counted: true,
        example: || vec![json!({ "lastSeq": 0 })],
        parse: |_, args| {
            let body: Resume = body(args)?;
            let journal = body.journal_id.as_deref().and_then(JournalId::parse);
            Ok(ParsedCommand::Resume {
                last_seq: body.last_seq,
                journal,
            })
        },
    },
];

/// Parses a command by its name.
pub fn parse(caller: &Caller, name: &str, args: &[Value]) -> Result<ParsedCommand, Refusal> {
    let Some(spec) = COMMANDS.iter().find(|spec| spec.name == name) else {
        let shown: String = name.chars().take(64).collect();
        let message = format!("there is no command `{shown}`");
        return Err(Refusal::new(Code::UnknownCommand, message));
    };
    require_scope(caller, spec.scope)?;
    (spec.parse)(caller, args)
}

fn submit(command: Command) -> ParsedCommand {
    ParsedCommand::Submit(Box::new(command.into()))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OneCall {
    call_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Outcome {
    call_id: String,
    happened: bool,
}

#[derive(Deserialize, Default)]
struct Cancel {
    turn: Option<TurnId>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Withdraw {
    client_message_id: String,
}

#[derive(Deserialize)]
struct Choose {
    model: Option<String>,
    provider: Option<String>,
    /// `null` selects the effort that the settings define for the model.
    #[serde(default)]
    effort: WantedEffort,
}

#[derive(Deserialize)]
struct Compaction {
    /// Empty selects the strategies of the settings.
    strategies: Vec<StrategyName>,
}

#[derive(Deserialize)]
struct Window {
    whole: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Resume {
    last_seq: u64,
    journal_id: Option<String>,
}

fn body<T: DeserializeOwned>(args: &[Value]) -> Result<T, Refusal> {
    match args.first() {
        Some(value @ Value::Object(_)) => read(value),
        Some(_) | None => Err(Refusal::new(
            Code::InvalidArguments,
            "the first argument must be an object",
        )),
    }
}

fn optional_body<T: DeserializeOwned + Default>(args: &[Value]) -> Result<T, Refusal> {
    args.first()
        .filter(|value| !value.is_null())
        .map_or(Ok(T::default()), read)
}

/// Reads a value. serde's error text names the field.
fn read<T: DeserializeOwned>(value: &Value) -> Result<T, Refusal> {
    T::deserialize(value).map_err(|error| Refusal::new(Code::InvalidArguments, error.to_string()))
}

fn bounded(field: &'static str, text: &str, most: usize) -> Result<(), Refusal> {
    if text.len() <= most {
        return Ok(());
    }
    Err(Refusal::of_field(
        Code::TooLarge,
        field,
        format!("`{field}` may have {most} bytes"),
    ))
}

#[cfg(test)]
mod tests;
