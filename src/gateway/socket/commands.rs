//! Executes the commands of one socket in order, and sends news between them. An acknowledgement means that
//! the commit is durable.

use serde_json::{Value, json};

use super::SocketContext;
use super::connection::inbound::{Inbound, Reply};
use super::connection::send::{Client, acknowledge};
use super::connection::{Connection, ConnectionTask};
use super::recipient::Recipient as _;
use super::watch::signed_out;
use crate::agent::{self, Acknowledgement};
use crate::domain::SessionKey;
use crate::gateway::wire::{self, ParsedCommand, RefusalPayload};
use crate::session::Refusal;
use crate::store::audit::acting::{self, Door};

/// Runs the tasks of a connection until the user's access ends, and returns the reason.
pub(super) async fn run(
    context: &SocketContext,
    client: &Client,
    connection: &Connection,
    key: &SessionKey,
) -> Refusal {
    loop {
        match connection.queued.next().await {
            // Boxed, because a socket is idle for most of its life.
            ConnectionTask::Answer(inbound) => {
                let caller = &connection.entered.caller;
                // And before it is passed on, because it is large.
                let answer = Box::pin(answer(context, client, connection, key, inbound));
                let address = context.state.access.peer(client.parts()).address;
                let answer = acting::of_caller(Door::Socket, caller, Some(address), answer);
                if let Some(end) = answer.await {
                    return end;
                }
            }
            ConnectionTask::Refuse(refusal) => {
                connection.refused();
                Box::pin(answer_to(client, None, &Err(*refusal))).await;
            }
            // If the client is gone, the socket ends elsewhere.
            ConnectionTask::Send(news) => drop(Box::pin(client.emit(&news, None)).await),
        }
    }
}

/// Executes and answers one command; returns the reason if the socket has to end.
async fn answer(
    context: &SocketContext,
    client: &Client,
    connection: &Connection,
    key: &SessionKey,
    inbound: Box<Inbound>,
) -> Option<Refusal> {
    if !connection.is_still_valid(&context.state.tenancy).await {
        return Some(signed_out());
    }
    let Inbound {
        name,
        packet,
        reply,
        waiting,
    } = *inbound;
    let caller = &connection.entered.caller;
    let args = packet.read();
    let sessions = &context.state.sessions;
    let answer = match args.and_then(|args| wire::parse(caller, &name, &args)) {
        Ok(ParsedCommand::Submit(ask)) => sessions.submit(key, caller, *ask).await.map(accepted),
        Ok(ParsedCommand::Resume { last_seq, journal }) => {
            connection.resume_from((last_seq, journal));
            Ok(json!({ "ok": true, "seq": last_seq }))
        }
        Ok(ParsedCommand::Fork(request)) => {
            let forked = Box::pin(agent::fork(sessions, key, caller, request)).await;
            forked.map(|new| json!({ "ok": true, "sessionId": new.session }))
        }
        Err(refusal) => Err(refusal),
    };
    connection.end(&waiting);
    answer_to(client, reply.as_ref(), &answer).await;
    None
}

fn accepted(accepted: Acknowledgement) -> Value {
    json!({ "ok": true, "seq": accepted.seq })
}

async fn answer_to(client: &Client, reply: Option<&Reply>, answer: &Result<Value, Refusal>) {
    match (reply, answer) {
        (Some(reply), Ok(answer)) => acknowledge(reply, answer).await,
        (Some(reply), Err(refusal)) => {
            let error = wire::refused(refusal);
            acknowledge(reply, &json!({ "ok": false, "error": error })).await;
        }
        (None, Err(refusal)) => {
            let error: RefusalPayload = wire::refused(refusal);
            let frame = wire::frame("agent:error", &[&error.message, &error]);
            let _ = client.emit(&frame, None).await;
        }
        (None, Ok(_)) => {}
    }
}

/// Refuses a command from within the handler, which cannot await; if the client's buffer is full, the
/// refusal is dropped.
pub(super) fn refuse_now(reply: &Reply, refusal: &Refusal) {
    let error: RefusalPayload = wire::refused(refusal);
    let answer = json!({ "ok": false, "error": error });
    if let Some(sender) = reply.sender() {
        let _ = sender.send(&answer);
    }
}
