//! The commands of one socket, one after the other, and news between them. An acknowledgement means
//! durable.

use serde_json::json;

use super::Doors;
use super::connection::inbound::{Inbound, Reply};
use super::connection::{Errand, Seat};
use super::connection::send::{Client, acknowledge};
use super::watch::signed_out;
use crate::agent::Accepted;
use crate::domain::SessionKey;
use crate::gateway::wire::{self, Parsed, Refused};
use crate::session::Refusal;

/// Runs errands until the person's right ends.
pub(super) async fn run(
    doors: &Doors,
    client: &Client,
    (seat, key): (&Seat, &SessionKey),
) -> Refusal {
    loop {
        match seat.errands.next().await {
            // In boxes, because a socket says nothing for most of its life.
            Errand::Answer(inbound) => {
                if let Some(end) = Box::pin(answer(doors, client, (seat, key), inbound)).await {
                    return end;
                }
            }
            Errand::Refuse(refusal) => {
                seat.refused();
                Box::pin(answer_to(client, None, &Err(*refusal))).await;
            }
            // Whoever is gone is told so elsewhere.
            Errand::Tell(news) => drop(Box::pin(client.emit(&news)).await),
        }
    }
}

/// Answers one command; why the socket has to end.
async fn answer(
    doors: &Doors,
    client: &Client,
    (seat, key): (&Seat, &SessionKey),
    inbound: Box<Inbound>,
) -> Option<Refusal> {
    if !seat.is_still_valid(&doors.state.tenancy).await {
        return Some(signed_out());
    }
    let Inbound {
        name,
        packet,
        reply,
        waiting,
    } = *inbound;
    let caller = &seat.entered.caller;
    let args = packet.read();
    let answer = match args.and_then(|args| wire::parse(caller, &name, &args)) {
        Ok(Parsed::Tell(ask)) => doors.state.sessions.tell(key, caller, *ask).await,
        Ok(Parsed::Resume { last_seq, journal }) => {
            seat.resume_from((last_seq, journal));
            Ok(Accepted { seq: last_seq })
        }
        Err(refusal) => Err(refusal),
    };
    seat.end(&waiting);
    answer_to(client, reply.as_ref(), &answer).await;
    None
}

async fn answer_to(client: &Client, reply: Option<&Reply>, answer: &Result<Accepted, Refusal>) {
    match (reply, answer) {
        (Some(reply), Ok(accepted)) => {
            acknowledge(reply, &json!({ "ok": true, "seq": accepted.seq })).await;
        }
        (Some(reply), Err(refusal)) => {
            let error = wire::refused(refusal);
            acknowledge(reply, &json!({ "ok": false, "error": error })).await;
        }
        (None, Err(refusal)) => {
            let error: Refused = wire::refused(refusal);
            let frame = wire::frame("agent:error", &[&error.message, &error]);
            let _ = client.emit(&frame).await;
        }
        (None, Ok(_)) => {}
    }
}

/// Refuses from within the handler, where nothing can be awaited; a full buffer drops it.
pub(super) fn refuse_now(reply: &Reply, refusal: &Refusal) {
    let error: Refused = wire::refused(refusal);
    let answer = json!({ "ok": false, "error": error });
    if let Some(sender) = reply.sender() {
        let _ = sender.send(&answer);
    }
}
