//! What concerns sockets whatever session they show, told to all of them by one task: news of their
//! tenant, another sandbox, the end of a person's right to be here, the end of the server. Thousands of tasks that
//! wait for the same four things would each look at them with every event they send.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast::error::RecvError;
use tokio::time::MissedTickBehavior;

use super::connection::{End, Seat, Shows};
use super::{Doors, stopping};
use crate::agent::Frame;
use crate::servers::News;
use crate::domain::Code;
use crate::gateway::wire;
use crate::session::Refusal;
use crate::tenancy::Revoked;

/// How often a socket's right to be here is checked without a command.
const RECHECK: Duration = Duration::from_secs(30);
/// In how many parts, so that not all are checked at once.
const PARTS: u32 = 30;

/// Watches until the server stops.
pub(super) async fn run(doors: Arc<Doors>) {
    let mut news = doors.state.servers.news();
    let mut rows = doors.state.sessions.rows();
    let mut systems = doors.state.system.changes();
    let mut revocations = doors.state.tenancy.revocations();
    let mut part = 0;
    let mut rechecks = tokio::time::interval(RECHECK / PARTS);
    rechecks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = doors.stop.cancelled() => return doors.seats.dismiss(&stopping()),
            item = news.recv() => match item {
                Ok(item) => pass_on(&doors, &item),
                // Whoever missed some reads the list again.
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return doors.seats.dismiss(&stopping()),
            },
            row = rows.recv() => match row {
                Ok(row) => tell_lists(&doors.seats.lists_of(&row.holder()), || wire::row_frame(&row)),
                Err(RecvError::Lagged(_)) => {
                    tell_lists(&doors.seats.all_lists(), wire::missed_frame);
                }
                Err(RecvError::Closed) => return doors.seats.dismiss(&stopping()),
            },
            // Its sender is the state's own, so it does not end before us.
            Ok(()) = systems.changed() => {
                let frame = wire::sandbox_frame(&systems.borrow_and_update().sandbox);
                tell(&doors, frame, |_| true);
            }
            revoked = revocations.recv() => match revoked {
                Ok(revoked) => check(&doors, concerned(&doors, &revoked)),
                Err(RecvError::Lagged(_)) => check(&doors, doors.seats.all(|_| true)),
                Err(RecvError::Closed) => return doors.seats.dismiss(&stopping()),
            },
            _ = rechecks.tick() => {
                part = (part + 1) % PARTS as usize;
                check(&doors, doors.seats.all(|number| number % PARTS as usize == part));
            }
        }
    }
}

fn pass_on(doors: &Doors, news: &News) {
    let concerned = |seat: &Seat| news.concerns(&seat.entered.caller.tenant.id);
    tell(doors, wire::news_frame(news), concerned);
}

/// Rows change all the time, and mostly nobody looks: a frame is built for somebody only.
fn tell_lists(seats: &[Arc<Seat>], frame: impl FnOnce() -> Frame) {
    if seats.is_empty() {
        return;
    }
    let frame = Arc::new(frame());
    for seat in seats {
        seat.tell(Arc::clone(&frame));
    }
}

fn tell(doors: &Doors, frame: Frame, concerned: impl Fn(&Seat) -> bool) {
    let frame = Arc::new(frame);
    for seat in doors.seats.all(|_| true) {
        if matches!(seat.shows, Shows::Session(_)) && concerned(&seat) {
            seat.tell(Arc::clone(&frame));
        }
    }
}

fn concerned(doors: &Doors, revoked: &Revoked) -> Vec<Arc<Seat>> {
    let mut seats = doors.seats.all(|_| true);
    seats.retain(|seat| revoked.concerns(&seat.entered));
    seats
}

/// Ends those whose person may no longer be here. In a task of its own, because a store that takes
/// its time must keep nobody from hearing news.
fn check(doors: &Arc<Doors>, seats: Vec<Arc<Seat>>) {
    if seats.is_empty() {
        return;
    }
    let doors = Arc::clone(doors);
    doors.tasks.clone().spawn(async move {
        for seat in seats {
            let is_valid = tokio::select! {
                is_valid = seat.is_still_valid(&doors.state.tenancy) => is_valid,
                () = doors.stop.cancelled() => return,
            };
            if !is_valid {
                seat.ends.push(End::Told(signed_out()));
            }
        }
    });
}

pub(super) fn signed_out() -> Refusal {
    Refusal::new(Code::Unauthorized, "the sign-in has ended; sign in again")
}
