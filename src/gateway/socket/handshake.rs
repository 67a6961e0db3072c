//! Authenticates connections, and selects their session. Handlers are registered here, before the client
//! learns that it is connected, so that messages that follow immediately are not lost.

use std::fmt;
use std::future::ready;
use std::sync::Arc;

use serde::Deserialize;
use socketioxide::ParserError;
use socketioxide::extract::{Event, SocketRef, TryData};

use super::connection::inbound::{Inbound, RawPacket, Reply, ReplySlot};
use super::connection::{Connection, ConnectionTask, End, Shows};
use super::{SocketContext, commands};
use crate::agent::{AssistantChoice, SessionAction, SessionView, require_scope};
use crate::domain::{AssistantId, Caller, Code, JournalId, KeyScope, SessionId, SessionKey};
use crate::gateway::auth;
use crate::gateway::wire::{COMMANDS, assistant_choice};
use crate::providers::WantedModel;
use crate::session::{Refusal, ToolSelection};

/// The `auth` object of the handshake.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct HandshakeAuth {
    pub(super) token: Option<String>,
    pub(super) session_id: Option<String>,
    pub(super) last_seq: Option<u64>,
    pub(super) journal_id: Option<String>,
    /// The assistant that a new session is started with.
    pub(super) assistant: Option<String>,
    /// The tools that it may use, fewer than the assistant's.
    pub(super) tools: Option<ToolSelection>,
    /// The skills that it may use, fewer than the assistant's.
    pub(super) skills: Option<Vec<String>>,
}

/// A refused handshake: `connect_error` carries only this text, so the code stands first.
pub(super) struct HandshakeRefused(Refusal);

impl fmt::Display for HandshakeRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.code.as_str(), self.0.message)
    }
}

/// Admits a client, or returns the refusal.
pub(super) async fn enter(
    context: &Arc<SocketContext>,
    socket: &SocketRef,
    TryData(sent): TryData<Option<HandshakeAuth>>,
) -> Result<(), HandshakeRefused> {
    let entered = match read(sent) {
        Ok(sent) => take_seat(context, socket, sent).await,
        Err(refusal) => Err(refusal),
    };
    entered.map_err(|refusal| refuse(context, socket, refusal))
}

/// Reads the `auth` object of the handshake.
pub(super) fn read(
    sent: Result<Option<HandshakeAuth>, ParserError>,
) -> Result<HandshakeAuth, Refusal> {
    let sent = sent.map_err(|error| {
        let message = format!("what came with the handshake cannot be read: {error}");
        Refusal::of_field(Code::InvalidArguments, "auth", message)
    })?;
    Ok(sent.unwrap_or_default())
}

/// Returns the refusal of a handshake, and counts guesses of credentials and session ids against their
/// address.
pub(super) fn refuse(
    context: &SocketContext,
    socket: &SocketRef,
    refusal: Refusal,
) -> HandshakeRefused {
    let peer = context.state.access.peer(socket.req_parts());
    let is_guess = matches!(refusal.code, Code::Unauthorized | Code::SessionNotFound);
    if is_guess && context.connections.count_failure(peer.address) {
        let message = "too many failed connections from this address; wait a minute";
        return HandshakeRefused(Refusal::new(Code::TooManyRequests, message));
    }
    HandshakeRefused(refusal)
}

async fn take_seat(
    context: &Arc<SocketContext>,
    socket: &SocketRef,
    sent: HandshakeAuth,
) -> Result<(), Refusal> {
    if context.stop.is_cancelled() {
        return Err(super::stopping());
    }
    let parts = socket.req_parts();
    let entered =
        auth::authenticate_handshake(&context.state, parts, sent.token.as_deref()).await?;
    let wanted = sent.session_id.or_else(|| from_query(socket, "sessionId"));
    let model = WantedModel::new(from_query(socket, "provider"), from_query(socket, "model"));
    let assistant = sent
        .assistant
        .or_else(|| from_query(socket, "assistant"))
        .filter(|id| !id.is_empty());
    let choice = assistant_choice(assistant.as_deref(), sent.tools, sent.skills)?;
    let wishes = Wishes { model, choice };
    let key = session_of(context, &entered.caller, wanted.as_deref(), wishes).await?;
    let place = context.connections.take(entered.caller.holder())?;
    let journal = sent.journal_id.as_deref().and_then(JournalId::parse);
    let has = sent.last_seq.map(|seq| (seq, journal));
    let taken = Arc::new(Connection::new(entered, Shows::Session(key), has, place));
    register(socket, &taken);
    context.connections.add(&taken);
    socket.extensions.insert(taken);
    Ok(())
}

/// Registers the message handler. The library starts a task for each message, so the handler itself only
/// puts the message into the inbox, before any await; this preserves the order of the socket's commands.
fn register(socket: &SocketRef, connection: &Arc<Connection>) {
    let held = Arc::downgrade(connection);
    let on_message = move |Event(name): Event, ReplySlot(reply): ReplySlot, packet: RawPacket| {
        if let Some(connection) = held.upgrade() {
            receive(&connection, name, packet, reply);
        }
        ready(())
    };
    socket.on_fallback(on_message);
    end_with(socket, connection);
}

/// Ends the connection's work when the client disconnects.
pub(super) fn end_with(socket: &SocketRef, connection: &Arc<Connection>) {
    let left = Arc::downgrade(connection);
    socket.on_disconnect(move || {
        if let Some(connection) = left.upgrade() {
            connection.ends.push(End::Gone);
        }
        ready(())
    });
}

fn receive(connection: &Connection, name: String, packet: RawPacket, reply: Option<Reply>) {
    let is_counted = COMMANDS
        .iter()
        .find(|spec| spec.name == name)
        .is_none_or(|spec| spec.is_counted);
    let bytes = packet.len().saturating_add(name.len());
    match connection.begin(is_counted, bytes) {
        Ok(waiting) => connection
            .queued
            .push(ConnectionTask::Answer(Box::new(Inbound {
                name,
                packet,
                reply,
                waiting,
            }))),
        Err(refusal) => match reply {
            Some(reply) => commands::refuse_now(&reply, &refusal),
            None => connection.refuse(refusal),
        },
    }
}

/// What a client asks of the session that it joins.
struct Wishes {
    model: WantedModel,
    choice: Option<AssistantChoice>,
}

/// Returns the session for a requested name: an id of ours must exist, any other name belongs to the caller,
/// and no name creates a session. A requested model (S2.4) answers from the next request on. A requested assistant
/// is for a new session; one that began without it, or with another, is refused.
async fn session_of(
    context: &SocketContext,
    caller: &Caller,
    wanted: Option<&str>,
    Wishes { model, choice }: Wishes,
) -> Result<SessionKey, Refusal> {
    let sessions = &context.state.sessions;
    let assistant = choice.as_ref().map(|choice| choice.id.clone());
    let assistants = sessions.assistants();
    if wanted.is_none_or(str::is_empty) || choice.is_some() || !model.is_empty() {
        require_scope(caller, KeyScope::Message)?;
    }
    let Some(wanted) = wanted.filter(|wanted| !wanted.is_empty()) else {
        let start = assistants.start(caller, &model, choice).await?;
        return sessions.new_session(caller, start);
    };
    let key = if wanted.starts_with(SessionId::PREFIX) {
        SessionKey {
            tenant: caller.tenant.id.clone(),
            session: SessionId::parse(wanted).ok_or_else(not_found)?,
        }
    } else {
        check_session_name(wanted)?;
        let start = assistants.start(caller, &model, choice).await?;
        let chosen = start.model.clone();
        let key = sessions.named_session(caller, wanted, start)?;
        if chosen.is_none() && assistant.is_none() {
            return Ok(key);
        }
        // A session that is not stored yet already has the model.
        let view = sessions.join(&key, caller).await?.view;
        check_assistant(assistant.as_ref(), &view)?;
        if model.is_empty() || chosen == Some(view.model) {
            return Ok(key);
        }
        key
    };
    if assistant.is_some() {
        let view = sessions.join(&key, caller).await?.view;
        check_assistant(assistant.as_ref(), &view)?;
    }
    if !model.is_empty() {
        sessions
            .submit(&key, caller, SessionAction::Choose(model).into())
            .await?;
    }
    Ok(key)
}

/// Refuses a session that was not started with the assistant that the client asks for.
fn check_assistant(wanted: Option<&AssistantId>, view: &SessionView) -> Result<(), Refusal> {
    let has = view.assistant.as_ref().map(|assistant| &assistant.id);
    if wanted.is_none() || wanted == has {
        return Ok(());
    }
    let text = "this session was not started with that assistant; begin a new one";
    Err(Refusal::of_field(Code::InvalidArguments, "assistant", text))
}

pub(super) fn check_session_name(wanted: &str) -> Result<(), Refusal> {
    let is_name = wanted.len() <= 64
        && wanted
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if is_name {
        return Ok(());
    }
    let message = "a session name has 1 to 64 letters, digits, `_` or `-`";
    Err(Refusal::of_field(
        Code::InvalidArguments,
        "sessionId",
        message,
    ))
}

fn not_found() -> Refusal {
    Refusal::new(Code::SessionNotFound, "there is no such session")
}

fn from_query(socket: &SocketRef, name: &str) -> Option<String> {
    let query = socket.req_parts().uri.query()?;
    let mut pairs = url::form_urlencoded::parse(query.as_bytes());
    pairs
        .find(|(key, _)| key == name)
        .map(|(_, value)| value.into_owned())
}
