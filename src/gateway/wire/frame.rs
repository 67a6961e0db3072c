//! Encodes events as packets.

use engineioxide::Str;
use serde::Serialize;
use serde_json::Value;
use smallvec::SmallVec;

use crate::domain::{Code, Fault, RequestId};
use crate::session::Refusal;

/// One message on the wire.
#[derive(Debug, Clone)]
pub struct Frame {
    /// The event's name.
    pub name: &'static str,
    /// The whole packet, encoded once for all clients.
    pub packet: Str,
}

impl Frame {
    /// Returns the arguments as a JSON array, without the event's name.
    pub(in crate::gateway) fn arguments(&self) -> String {
        // The name is the first element, and needs no escaping.
        let packet = self.packet.as_str();
        let head = packet.find("[\"").map_or(0, |at| at + 3 + self.name.len());
        let rest = packet.get(head..).unwrap_or_default();
        format!("[{}", rest.strip_prefix(',').unwrap_or(rest))
    }
}

/// The frames of one signal; nearly always one.
pub(in crate::gateway) type Frames = SmallVec<[Frame; 1]>;

/// The capacity for the event of a single token.
pub(super) const SMALL: usize = 160;
/// The prefix of an event in the main namespace: a message packet of Engine.IO (protocol 4), and an event
/// packet of Socket.IO (protocol 5).
const EVENT: &str = "42";

/// Builds a frame from serializable arguments.
pub(in crate::gateway) fn frame(name: &'static str, args: &[&dyn Json]) -> Frame {
    frame_with(name, |packet| write_all(packet, args))
}

/// Builds a frame for another namespace than the main one.
pub(in crate::gateway) fn frame_in(
    namespace: &'static str,
    name: &'static str,
    args: &[&dyn Json],
) -> Frame {
    begin([EVENT, namespace, ","], name, |packet| {
        write_all(packet, args);
    })
}

fn write_all(packet: &mut Vec<u8>, args: &[&dyn Json]) {
    for (index, arg) in args.iter().enumerate() {
        if index > 0 {
            packet.push(b',');
        }
        arg.write(packet);
    }
}

/// Builds a frame whose arguments are written by `args`, with commas between.
pub(super) fn frame_with(name: &'static str, args: impl FnOnce(&mut Vec<u8>)) -> Frame {
    begin([EVENT, "", ""], name, args)
}

fn begin(
    [event, namespace, comma]: [&str; 3],
    name: &'static str,
    args: impl FnOnce(&mut Vec<u8>),
) -> Frame {
    let mut packet = Vec::with_capacity(SMALL);
    // Our event names contain nothing that has to be escaped.
    for part in [event, namespace, comma, "[\"", name, "\""] {
        packet.extend_from_slice(part.as_bytes());
    }
    packet.push(b',');
    let before = packet.len();
    args(&mut packet);
    if packet.len() == before {
        packet.pop();
    }
    packet.push(b']');
    // The packet is valid UTF-8, because all of it was written as JSON.
    let packet = String::from_utf8(packet).unwrap_or_default();
    Frame {
        name,
        packet: Str::from(packet),
    }
}

/// Writes values with raw field names; a name includes its quotes, its colon, and the characters before it.
pub(super) fn write_fields(to: &mut Vec<u8>, fields: &[(&str, &dyn Json)]) {
    for (name, value) in fields {
        to.extend_from_slice(name.as_bytes());
        value.write(to);
    }
}

/// Returns the arguments of a frame in the main namespace.
pub(super) fn args(frame: &Frame) -> Vec<Value> {
    let array = frame.packet.strip_prefix(EVENT).unwrap_or_default();
    let mut array: Vec<Value> = serde_json::from_str(array).unwrap_or_default();
    if !array.is_empty() {
        array.remove(0);
    }
    array
}

/// A serializable value; object safe.
pub(in crate::gateway) trait Json {
    fn write(&self, to: &mut Vec<u8>);
}

impl<T: Serialize> Json for T {
    fn write(&self, to: &mut Vec<u8>) {
        let before = to.len();
        // Serialization fails only for maps with non-string keys, which our payloads do not have.
        if let Err(error) = serde_json::to_writer(&mut *to, self) {
            tracing::error!(%error, "A payload does not serialize");
            to.truncate(before);
            to.extend_from_slice(b"null");
        }
    }
}

/// A refused command, as acknowledgements and `agent:error` carry it.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RefusalPayload {
    /// The stable code.
    pub code: Code,
    /// The category of the fault, which tells who has to act.
    pub category: Fault,
    /// The reason as text.
    pub message: String,
    /// The wrong field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<&'static str>,
    /// True if the same command may work later.
    pub retryable: bool,
    /// The request's id in the log.
    pub request_id: RequestId,
}

/// Converts a refusal to its wire form.
pub fn refused(refusal: &Refusal) -> RefusalPayload {
    RefusalPayload {
        code: refusal.code,
        category: refusal.code.fault(),
        message: refusal.message.clone(),
        field: refusal.field,
        retryable: refusal.code.fault() == Fault::Transient,
        request_id: RequestId::from_bits(rand::random()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use socketioxide_core::packet::{Packet, PacketData};
    use socketioxide_core::parser::{Parse as _, ParseConfig, ParserState};
    use socketioxide_parser_common::CommonParser;

    use super::{args, frame};

    #[test]
    fn a_frame_is_what_the_library_makes_of_the_same_event() {
        let parser = CommonParser;
        assert_eq!(super::frame_in("/person", "x", &[]).arguments(), "[]");
        assert_eq!(
            super::frame_in("/person", "x", &[&"[\"x"]).arguments(),
            r#"["[\"x"]"#
        );
        for given in [
            vec![json!("a\"\u{1F600}\n")],
            vec![json!([1]), json!({"a": null})],
        ] {
            let list: Vec<&dyn super::Json> = given.iter().map(|arg| arg as _).collect();
            let ours = frame("tool:output", &list);
            let data = match &given[..] {
                [one, two] => parser.encode_value(&(one, two), Some("tool:output")),
                one => parser.encode_value(&one[0], Some("tool:output")),
            };
            let theirs = parser.encode(Packet::event("/", data.unwrap()));
            let ours_inside = ours.packet.slice(1..);
            assert!(ours.packet.starts_with('4'));
            assert_eq!(theirs.as_str().unwrap().as_str(), ours_inside.as_str());
            assert_eq!(args(&ours), given);
            let arguments: Vec<Value> = serde_json::from_str(&ours.arguments()).unwrap();
            assert_eq!(arguments, given);
            let (config, state) = (ParseConfig::default(), ParserState::default());
            let read = parser.decode_str(&config, &state, ours_inside);
            assert!(matches!(read.unwrap().inner, PacketData::Event(..)));
        }
    }
}
