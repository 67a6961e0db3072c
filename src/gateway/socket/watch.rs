//! Distributes, in one task, the news that concern sockets regardless of their session: news of their
//! tenant, a changed sandbox, the end of a user's access, and the shutdown of the server. If each of
//! thousands of socket tasks waited for these sources, each would poll all of them with every event that it
//! sends.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast::error::RecvError;
use tokio::time::MissedTickBehavior;

use super::connection::{Connection, End, Shows};
use super::{SocketContext, stopping};
use crate::agent::ListUpdate;
use crate::domain::{Code, SessionKey};
use crate::gateway::wire::{self, Frame};
use crate::servers::News;
use crate::session::Refusal;
use crate::store::records::AskedRoles;
use crate::tenancy::Revocation;

/// The interval at which each socket's access is checked without a command.
const RECHECK: Duration = Duration::from_secs(30);
/// The number of parts into which each round of checks is split, so that not all sockets are checked at
/// once.
const PARTS: u32 = 30;

/// Distributes news until the server stops.
pub(super) async fn run(context: Arc<SocketContext>) {
    let mut news = context.state.servers.news();
    let mut rows = context.state.sessions.rows();
    let mut systems = context.state.system.changes();
    let mut revocations = context.state.tenancy.revocations();
    let mut asking = Asking::default();
    let mut part = 0;
    let mut rechecks = tokio::time::interval(RECHECK / PARTS);
    rechecks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = context.stop.cancelled() => return context.connections.dismiss(&stopping()),
            item = news.recv() => match item {
                Ok(item) => pass_on(&context, &item),
                // A client that missed news reads the list again.
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return context.connections.dismiss(&stopping()),
            },
            row = rows.recv() => match row {
                Ok(row) => {
                    // A list that opened meanwhile was read with this row.
                    if !matches!(row, ListUpdate::Unlisted(_)) {
                        let mut lists = context.connections.lists_of(&row.holder());
                        lists.retain(|connection| connection.reaches(row.key()));
                        send_to_lists(&lists, || wire::row_frame(&row));
                    }
                    asking.update(&context, &row);
                }
                Err(RecvError::Lagged(_)) => {
                    send_to_lists(&context.connections.all_lists(), wire::missed_frame);
                }
                Err(RecvError::Closed) => return context.connections.dismiss(&stopping()),
            },
            // The sender belongs to the state, so it outlives this task.
            Ok(()) = systems.changed() => {
                let frame = wire::sandbox_frame(&systems.borrow_and_update().sandbox);
                send_to_sessions(&context, frame, |_| true);
            }
            revoked = revocations.recv() => match revoked {
                Ok(revoked) => check(&context, concerned(&context, &revoked)),
                Err(RecvError::Lagged(_)) => check(&context, context.connections.all(|_| true)),
                Err(RecvError::Closed) => return context.connections.dismiss(&stopping()),
            },
            _ = rechecks.tick() => {
                part = (part + 1) % PARTS as usize;
                check(&context, context.connections.all(|number| number % PARTS as usize == part));
            }
        }
    }
}

/// The sessions in which calls wait for people other than the owner, and the number of calls for each role
/// when the clients were last told.
#[derive(Default)]
struct Asking(HashMap<SessionKey, AskedRoles>);

impl Asking {
    /// Tells the users whose approval inbox changed. The frame only names the session.
    fn update(&mut self, context: &SocketContext, update: &ListUpdate) {
        let (key, holder) = (update.key(), update.holder());
        let now = match update {
            ListUpdate::Changed(row) | ListUpdate::Unlisted(row) => row.asks,
            ListUpdate::GivenUp { .. } | ListUpdate::Removed { .. } => AskedRoles::default(),
        };
        let before = self.0.remove(key).unwrap_or_default();
        if now != AskedRoles::default() {
            self.0.insert(key.clone(), now);
        }
        if now == before && now == AskedRoles::default() {
            return;
        }
        let mut others = context.connections.all_lists();
        others.retain(|connection| {
            let caller = &connection.entered.caller;
            let role = caller.user.role;
            caller.tenant.id == holder.tenant
                && caller.user.id != holder.user
                && connection.reaches(key)
                && (now.of(role) > 0 || before.of(role) > 0)
        });
        send_to_lists(&others, || wire::asking_frame(key));
    }
}

fn pass_on(context: &SocketContext, news: &News) {
    let concerned = |connection: &Connection| {
        let caller = &connection.entered.caller;
        news.concerns(&caller.tenant.id, &caller.user.id)
    };
    send_to_sessions(context, wire::news_frame(news), concerned);
}

/// Builds the frame only if there is a connection: rows change all the time, and mostly nobody watches them.
fn send_to_lists(connections: &[Arc<Connection>], frame: impl FnOnce() -> Frame) {
    if connections.is_empty() {
        return;
    }
    let frame = Arc::new(frame());
    for connection in connections {
        connection.send(Arc::clone(&frame));
    }
}

fn send_to_sessions(
    context: &SocketContext,
    frame: Frame,
    concerned: impl Fn(&Connection) -> bool,
) {
    let frame = Arc::new(frame);
    for connection in context.connections.all(|_| true) {
        if matches!(connection.shows, Shows::Session(_)) && concerned(&connection) {
            connection.send(Arc::clone(&frame));
        }
    }
}

fn concerned(context: &SocketContext, revoked: &Revocation) -> Vec<Arc<Connection>> {
    let mut connections = context.connections.all(|_| true);
    connections.retain(|connection| revoked.concerns(&connection.entered));
    connections
}

/// Ends the connections of users whose access ended. It runs in a separate task, so that a slow store does
/// not delay news.
fn check(context: &Arc<SocketContext>, connections: Vec<Arc<Connection>>) {
    if connections.is_empty() {
        return;
    }
    let context = Arc::clone(context);
    context.tasks.clone().spawn(async move {
        for connection in connections {
            let is_valid = tokio::select! {
                is_valid = connection.is_still_valid(&context.state.tenancy) => is_valid,
                () = context.stop.cancelled() => return,
            };
            if !is_valid {
                connection.ends.push(End::Told(signed_out()));
            }
        }
    });
}

pub(super) fn signed_out() -> Refusal {
    Refusal::new(Code::Unauthorized, "the sign-in has ended; sign in again")
}
