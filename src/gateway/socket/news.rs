//! What a socket hears of its tenant, whatever session it shows.

use socketioxide::extract::SocketRef;
use tokio::sync::broadcast::error::RecvError;

use super::Doors;
use super::seat::Seat;
use super::send::emit;
use crate::gateway::wire;

/// Sends news until the client is gone.
pub(super) async fn run(doors: &Doors, socket: &SocketRef, seat: &Seat) {
    let mut news = doors.state.servers.news();
    loop {
        match news.recv().await {
            Ok(news) if news.concerns(&seat.entered.caller.tenant.id) => {
                if emit(socket, &wire::news_frame(&news)).await.is_err() {
                    return;
                }
            }
            // Whoever missed some reads the list again.
            Ok(_) | Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return,
        }
    }
}
