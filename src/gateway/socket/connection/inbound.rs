//! What a client sent: every argument of any event, and a way to answer.

use std::convert::Infallible;
use std::sync::{Arc, Weak};

use serde_json::Value;
use socketioxide::adapter::Adapter;
use socketioxide::extract::AckSender;
use socketioxide::handler::FromMessageParts;
use socketioxide::socket::Socket;
use socketioxide_core::Value as Packet;

use super::waiting::Waiting;
use crate::domain::Code;
use crate::session::Refusal;

/// One command as it came. It is read when its turn comes: values take many times the memory of their
/// text.
pub(in crate::gateway::socket) struct Inbound {
    pub(in crate::gateway::socket) name: String,
    pub(in crate::gateway::socket) packet: RawPacket,
    /// Where the answer goes; `None` if the client asked for none.
    pub(in crate::gateway::socket) reply: Option<Reply>,
    /// What is counted until it is answered.
    pub(in crate::gateway::socket) waiting: Waiting,
}

/// An event with its arguments as they came, or why they are not taken: a copy of its own, because
/// what the library hands over may be part of a larger buffer.
pub(in crate::gateway::socket) struct RawPacket(
    pub(in crate::gateway::socket) Result<Box<str>, Refusal>,
);

impl RawPacket {
    /// Bytes that it takes while it waits.
    pub(in crate::gateway::socket) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |text| text.len())
    }

    /// The arguments.
    pub(in crate::gateway::socket) fn read(self) -> Result<Vec<Value>, Refusal> {
        read(&self.0?)
    }
}

impl<A: Adapter> FromMessageParts<A> for RawPacket {
    type Error = Infallible;

    fn from_message_parts(
        _: &Arc<Socket<A>>,
        packet: &mut Packet,
        _: &Option<i64>,
    ) -> Result<Self, Infallible> {
        Ok(Self(match packet {
            Packet::Str(_, Some(attachments)) if !attachments.is_empty() => Err(binary()),
            Packet::Str(text, _) => Ok(text.as_str().into()),
            Packet::Bytes(_) => Err(binary()),
        }))
    }
}

/// The arguments after the event's name. Deep nesting ends here, in the parser's own limit.
pub(in crate::gateway::socket) fn read(text: &str) -> Result<Vec<Value>, Refusal> {
    let mut args: Vec<Value> = serde_json::from_str(text).map_err(|error| {
        let message = format!("the arguments cannot be read: {error}");
        Refusal::new(Code::InvalidArguments, message)
    })?;
    if !args.is_empty() {
        args.remove(0);
    }
    Ok(args)
}

fn binary() -> Refusal {
    Refusal::new(Code::InvalidArguments, "binary arguments are not accepted")
}

/// An acknowledgement that can be tried again while the client's buffer is full. It lies in the connection
/// until its command's turn, and the socket keeps the connection: held by it in turn, neither would ever go
/// once the client has left.
pub(in crate::gateway::socket) struct Reply {
    socket: Weak<Socket>,
    id: i64,
}

impl FromMessageParts<socketioxide::adapter::LocalAdapter> for ReplySlot {
    type Error = Infallible;

    fn from_message_parts(
        socket: &Arc<Socket>,
        _: &mut Packet,
        id: &Option<i64>,
    ) -> Result<Self, Infallible> {
        Ok(Self(id.map(|id| Reply {
            socket: Arc::downgrade(socket),
            id,
        })))
    }
}

/// The reply that a message asks for, if it does.
pub(in crate::gateway::socket) struct ReplySlot(pub(in crate::gateway::socket) Option<Reply>);

impl Reply {
    /// A sender for one try; `None` if the client is gone.
    pub(in crate::gateway::socket) fn sender(&self) -> Option<AckSender> {
        let socket = self.socket.upgrade()?;
        let mut nothing = Packet::Bytes(bytes::Bytes::new());
        let sender = AckSender::from_message_parts(&socket, &mut nothing, &Some(self.id));
        match sender {
            Ok(sender) => Some(sender),
        }
    }
}
