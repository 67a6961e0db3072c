//! Reads incoming messages: any event with its arguments, and the way to acknowledge it.

use std::convert::Infallible;
use std::sync::{Arc, Weak};

use serde_json::Value;
use socketioxide::adapter::Adapter;
use socketioxide::extract::AckSender;
use socketioxide::handler::FromMessageParts;
use socketioxide::socket::Socket;
use socketioxide_core::Value as Packet;

use super::waiting::Waiting;
use crate::domain::{Code, mend_surrogates};
use crate::session::Refusal;

/// One command as it was received. It is parsed only when its turn comes, because parsed values take many
/// times the memory of their text.
pub(in crate::gateway::socket) struct Inbound {
    pub(in crate::gateway::socket) name: String,
    pub(in crate::gateway::socket) packet: RawPacket,
    /// The acknowledgement; `None` if the client requested none.
    pub(in crate::gateway::socket) reply: Option<Reply>,
    /// The shares of limits that are held until the command is answered.
    pub(in crate::gateway::socket) waiting: Waiting,
}

/// An event with its unparsed arguments, or the reason they are refused. The text is copied, because the
/// library's string may be part of a larger buffer.
pub(in crate::gateway::socket) struct RawPacket(
    pub(in crate::gateway::socket) Result<Box<str>, Refusal>,
);

impl RawPacket {
    /// The number of bytes that the packet takes while it waits.
    pub(in crate::gateway::socket) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |text| text.len())
    }

    /// Parses the arguments.
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

/// Parses the arguments after the event's name. The parser's own limit refuses deep nesting. Half characters,
/// which JavaScript writes for a text that was cut inside of an emoji, are replaced.
pub(in crate::gateway::socket) fn read(text: &str) -> Result<Vec<Value>, Refusal> {
    let mended = mend_surrogates(text);
    let text = mended.as_deref().unwrap_or(text);
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

/// An acknowledgement that can be retried while the client's buffer is full. It holds only a weak reference:
/// the connection holds it until its command's turn, and the socket holds the connection, so a strong
/// reference would be a cycle that leaks both after the client has disconnected.
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

/// The acknowledgement that a message requests, if any.
pub(in crate::gateway::socket) struct ReplySlot(pub(in crate::gateway::socket) Option<Reply>);

impl Reply {
    /// Returns a sender for one try; `None` if the client is gone.
    pub(in crate::gateway::socket) fn sender(&self) -> Option<AckSender> {
        let socket = self.socket.upgrade()?;
        let mut nothing = Packet::Bytes(bytes::Bytes::new());
        let sender = AckSender::from_message_parts(&socket, &mut nothing, &Some(self.id));
        match sender {
            Ok(sender) => Some(sender),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::read;

    #[test]
    fn half_an_emoji_loses_nothing_else() {
        let args = read(r#"["message:send",{"text":"cut \ud83d","id":"\ud83d\ude00"}]"#);
        let args = args.map_err(|refusal| refusal.message);
        assert_eq!(args, Ok(vec![json!({"text": "cut \u{fffd}", "id": "😀"})]));
    }
}
