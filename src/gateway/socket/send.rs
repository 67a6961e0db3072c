//! Sending to one client: waits for room in its buffer, because the library drops instead.

use std::time::Duration;

use serde_json::Value;
use socketioxide::extract::SocketRef;
use socketioxide::{SendError, SocketError};

use super::inbound::Reply;
use crate::agent::Frame;

/// The first wait for room in a client's buffer.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
/// The longest one.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);
/// The client is gone.
pub(super) struct Gone;

/// Puts a frame into the client's buffer, waiting for room.
pub(super) async fn emit(socket: &SocketRef, frame: &Frame) -> Result<(), Gone> {
    let mut pause = FIRST_PAUSE;
    loop {
        let sent = match frame.args.as_slice() {
            [] => socket.emit(frame.name, &()),
            [one] => socket.emit(frame.name, one),
            [one, two, ..] => socket.emit(frame.name, &(one, two)),
        };
        match sent {
            Ok(()) => return Ok(()),
            // In a box: few sockets ever wait, and every socket's task has room for this.
            Err(error) if is_full(&error) => Box::pin(tokio::time::sleep(pause)).await,
            Err(SendError::Socket(_)) => return Err(Gone),
            Err(error) => {
                tracing::error!(%error, event = frame.name, "A frame cannot be sent");
                return Ok(());
            }
        }
        pause = longer(pause);
    }
}

fn is_full(error: &SendError) -> bool {
    matches!(error, SendError::Socket(SocketError::InternalChannelFull))
}

fn longer(pause: Duration) -> Duration {
    (pause * 2).min(LONGEST_PAUSE)
}

/// Waits for room in the client's buffer: an acknowledgement is never dropped.
pub(super) async fn acknowledge(reply: &Reply, answer: &Value) {
    let mut pause = FIRST_PAUSE;
    while let Err(error) = reply.sender().send(answer) {
        if !is_full(&error) {
            return;
        }
        tokio::time::sleep(pause).await;
        pause = longer(pause);
    }
}
