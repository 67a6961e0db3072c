//! Sends packets to one client, and waits for room in its buffer, where the library would drop them.

use std::time::Duration;

use axum::http::request::Parts;
use engineioxide::Companion;
use serde_json::Value;
use socketioxide::extract::SocketRef;
use socketioxide::{SendError, SocketError};
use tokio::sync::mpsc::error::TrySendError;

use super::inbound::Reply;
use crate::gateway::socket::recipient::{ClientGone, Cursor, Recipient};
use crate::gateway::wire::Frame;

/// The first pause while a client's buffer is full.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);
/// One connected client.
pub(in crate::gateway::socket) struct Client {
    socket: SocketRef,
    companion: Companion,
}

impl Client {
    /// Wraps a socket; `None` if its library does not provide companions.
    pub(in crate::gateway::socket) fn of(socket: SocketRef) -> Option<Self> {
        let companion = socket.req_parts().extensions.get::<Companion>().cloned()?;
        Some(Self { socket, companion })
    }

    /// The head of the request that opened the connection.
    pub(in crate::gateway::socket) fn parts(&self) -> &Parts {
        self.socket.req_parts()
    }

    /// The client's companion task.
    pub(in crate::gateway::socket) fn companion(&self) -> &Companion {
        &self.companion
    }

    /// Disconnects the client.
    pub(in crate::gateway::socket) fn disconnect(&self) {
        // The client may already be gone.
        let _ = self.socket.clone().disconnect();
    }
}

impl Recipient for Client {
    /// A Socket.IO client keeps its cursor by the `seq` of the events themselves.
    async fn emit(&self, frame: &Frame, _: Option<Cursor<'_>>) -> Result<(), ClientGone> {
        let mut pause = FIRST_PAUSE;
        let mut packet = frame.packet.clone();
        loop {
            // A client may leave the namespace and keep its connection, which still accepts packets.
            if !self.socket.connected() {
                return Err(ClientGone);
            }
            match self.companion.emit(packet) {
                Ok(()) => return Ok(()),
                Err(TrySendError::Closed(_)) => return Err(ClientGone),
                Err(TrySendError::Full(back)) => packet = back,
            }
            // Boxed, because few sockets ever wait, but every socket's task would reserve room for this
            // future.
            Box::pin(tokio::time::sleep(pause)).await;
            pause = longer(pause);
        }
    }
}

fn is_full(error: &SendError) -> bool {
    matches!(error, SendError::Socket(SocketError::InternalChannelFull))
}

fn longer(pause: Duration) -> Duration {
    (pause * 2).min(LONGEST_PAUSE)
}

/// Sends an acknowledgement, and waits for room in the client's buffer: acknowledgements are never dropped.
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
