//! Sending to one client: waits for room in its buffer, because the library drops instead.

use std::time::Duration;

use engineioxide::Companion;
use serde_json::Value;
use socketioxide::extract::SocketRef;
use socketioxide::{SendError, SocketError};
use tokio::sync::mpsc::error::TrySendError;

use super::inbound::Reply;
use crate::agent::Frame;

/// The first wait for room in a client's buffer.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
/// The longest one.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);
/// The client is gone.
pub(in crate::gateway::socket) struct Gone;

/// One connected client.
pub(in crate::gateway::socket) struct Client {
    socket: SocketRef,
    companion: Companion,
}

impl Client {
    /// `None` if the library is not the one that knows of companions.
    pub(in crate::gateway::socket) fn of(socket: SocketRef) -> Option<Self> {
        let companion = socket.req_parts().extensions.get::<Companion>().cloned()?;
        Some(Self { socket, companion })
    }

    /// Where work for it is done.
    pub(in crate::gateway::socket) fn companion(&self) -> &Companion {
        &self.companion
    }

    /// Puts a frame into its buffer, waiting for room.
    pub(in crate::gateway::socket) async fn emit(&self, frame: &Frame) -> Result<(), Gone> {
        let mut pause = FIRST_PAUSE;
        let mut packet = frame.packet.clone();
        loop {
            // A client may leave the namespace and keep its connection, which still takes packets.
            if !self.socket.connected() {
                return Err(Gone);
            }
            match self.companion.emit(packet) {
                Ok(()) => return Ok(()),
                Err(TrySendError::Closed(_)) => return Err(Gone),
                Err(TrySendError::Full(back)) => packet = back,
            }
            // In a box: few sockets ever wait, and every socket's task has room for this.
            Box::pin(tokio::time::sleep(pause)).await;
            pause = longer(pause);
        }
    }

    /// Ends it.
    pub(in crate::gateway::socket) fn disconnect(&self) {
        // It may be gone.
        let _ = self.socket.clone().disconnect();
    }
}

fn is_full(error: &SendError) -> bool {
    matches!(error, SendError::Socket(SocketError::InternalChannelFull))
}

fn longer(pause: Duration) -> Duration {
    (pause * 2).min(LONGEST_PAUSE)
}

/// Waits for room in the client's buffer: an acknowledgement is never dropped.
pub(in crate::gateway::socket) async fn acknowledge(reply: &Reply, answer: &Value) {
    let mut pause = FIRST_PAUSE;
    while let Some(Err(error)) = reply.sender().map(|sender| sender.send(answer)) {
        if !is_full(&error) {
            return;
        }
        tokio::time::sleep(pause).await;
        pause = longer(pause);
    }
}
