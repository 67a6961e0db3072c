//! Serves the namespace of a user's session list: tells each of the user's open pages when a session begins
//! to wait, runs or ends.

use std::future::ready;
use std::sync::Arc;

use serde_json::json;
use socketioxide::SocketIo;
use socketioxide::extract::{Event, Extension, SocketRef, TryData};
use socketioxide::handler::ConnectHandler as _;

use super::connection::inbound::ReplySlot;
use super::connection::send::Client;
use super::connection::{Connection, ConnectionTask, End, Shows};
use super::handshake::{self, HandshakeAuth, HandshakeRefused};
use super::recipient::Recipient as _;
use super::{SocketContext, commands, stopping};
use crate::domain::Code;
use crate::gateway::auth;
use crate::gateway::wire::{self, PERSON, RefusalPayload};
use crate::session::Refusal;

/// Opens the namespace of session lists.
pub(super) fn open(io: &SocketIo, context: &Arc<SocketContext>) {
    let (entry, connected) = (Arc::clone(context), Arc::clone(context));
    let enter = async move |socket: SocketRef, TryData(sent): TryData<Option<HandshakeAuth>>| {
        let entered = match handshake::read(sent) {
            Ok(sent) => take_seat(&entry, &socket, sent).await,
            Err(refusal) => Err(refusal),
        };
        entered
            .map_err(|refusal| -> HandshakeRefused { handshake::refuse(&entry, &socket, refusal) })
    };
    let on_connect =
        async move |socket: SocketRef, Extension(connection): Extension<Arc<Connection>>| {
            let Some(client) = Client::of(socket) else {
                return tracing::error!("A socket without a companion is not served");
            };
            // A separate task, because the websocket's task serves the session that the client may show
            // beside the list.
            connected.tasks.spawn(serve(client, connection));
        };
    io.ns(PERSON, on_connect.with(enter));
}

async fn take_seat(
    context: &SocketContext,
    socket: &SocketRef,
    given: HandshakeAuth,
) -> Result<(), Refusal> {
    if context.stop.is_cancelled() {
        return Err(stopping());
    }
    let parts = socket.req_parts();
    let entered =
        auth::authenticate_handshake(&context.state, parts, given.token.as_deref()).await?;
    let place = context.connections.take(entered.caller.holder())?;
    let shows = Shows::List {
        _watch: context.state.sessions.watch_lists(),
    };
    let connection = Arc::new(Connection::new(entered, shows, None, place));
    socket.on_fallback(|Event(_): Event, ReplySlot(reply): ReplySlot| {
        if let Some(reply) = reply {
            let message = "this namespace tells and takes no commands";
            commands::refuse_now(&reply, &Refusal::new(Code::UnknownCommand, message));
        }
        ready(())
    });
    handshake::end_with(socket, &connection);
    context.connections.add(&connection);
    socket.extensions.insert(connection);
    Ok(())
}

/// Sends news to one socket until it disconnects or its user's access ends.
async fn serve(client: Client, connection: Arc<Connection>) {
    loop {
        tokio::select! {
            biased;
            end = connection.ends.next() => match end {
                End::Gone => return,
                End::Told(refusal) => return dismiss(&client, &refusal).await,
            },
            task = connection.queued.next() => match task {
                ConnectionTask::Send(news) => if client.emit(&news, None).await.is_err() { return },
                // Commands are refused before they become tasks.
                ConnectionTask::Answer(_) | ConnectionTask::Refuse(_) => {}
            },
        }
    }
}

/// Sends the reason, then disconnects.
async fn dismiss(client: &Client, refusal: &Refusal) {
    let refused: RefusalPayload = wire::refused(refusal);
    let why = json!({ "code": refused.code });
    let frame = wire::frame_in(PERSON, "error", &[&refused.message, &why]);
    if client.emit(&frame, None).await.is_ok() {
        client.disconnect();
    }
}
