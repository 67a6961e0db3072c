//! What concerns sockets whatever session they show, told to all of them by one task: news of their
//! tenant, another sandbox, the end of a person's right to be here, the end of the server. Thousands of tasks that
//! wait for the same four things would each look at them with every event they send.

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
use crate::tenancy::Revoked;

/// How often a socket's right to be here is checked without a command.
const RECHECK: Duration = Duration::from_secs(30);
/// In how many parts, so that not all are checked at once.
const PARTS: u32 = 30;

/// Watches until the server stops.
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
                // Whoever missed some reads the list again.
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return context.connections.dismiss(&stopping()),
            },
            row = rows.recv() => match row {
                Ok(row) => {
                    tell_lists(&context.connections.lists_of(&row.holder()), || wire::row_frame(&row));
                    asking.tell(&context, &row);
                }
                Err(RecvError::Lagged(_)) => {
                    tell_lists(&context.connections.all_lists(), wire::missed_frame);
                }
                Err(RecvError::Closed) => return context.connections.dismiss(&stopping()),
            },
            // Its sender is the state's own, so it does not end before us.
            Ok(()) = systems.changed() => {
                let frame = wire::sandbox_frame(&systems.borrow_and_update().sandbox);
                tell(&context, frame, |_| true);
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

/// Sessions in which calls wait for others than the owner, and how many for whom when that was told.
#[derive(Default)]
struct Asking(HashMap<SessionKey, AskedRoles>);

impl Asking {
    /// Tells everybody whose inbox is another by it: only that it is, and of which session.
    fn tell(&mut self, context: &SocketContext, update: &ListUpdate) {
        let (key, holder) = (update.key(), update.holder());
        let now = match update {
            ListUpdate::Changed(row) => row.asks,
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
                && (now.of(role) > 0 || before.of(role) > 0)
        });
        tell_lists(&others, || wire::asking_frame(key));
    }
}

fn pass_on(context: &SocketContext, news: &News) {
    let concerned = |connection: &Connection| {
        let caller = &connection.entered.caller;
        news.concerns(&caller.tenant.id, &caller.user.id)
    };
    tell(context, wire::news_frame(news), concerned);
}

/// Rows change all the time, and mostly nobody looks: a frame is built for somebody only.
fn tell_lists(connections: &[Arc<Connection>], frame: impl FnOnce() -> Frame) {
    if connections.is_empty() {
        return;
    }
    let frame = Arc::new(frame());
    for connection in connections {
        connection.tell(Arc::clone(&frame));
    }
}

fn tell(context: &SocketContext, frame: Frame, concerned: impl Fn(&Connection) -> bool) {
    let frame = Arc::new(frame);
    for connection in context.connections.all(|_| true) {
        if matches!(connection.shows, Shows::Session(_)) && concerned(&connection) {
            connection.tell(Arc::clone(&frame));
        }
    }
}

fn concerned(context: &SocketContext, revoked: &Revoked) -> Vec<Arc<Connection>> {
    let mut connections = context.connections.all(|_| true);
    connections.retain(|connection| revoked.concerns(&connection.entered));
    connections
}

/// Ends those whose person may no longer be here. In a task of its own, because a store that takes
/// its time must keep nobody from hearing news.
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
