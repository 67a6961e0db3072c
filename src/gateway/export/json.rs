//! The document as JSON: the events of the transcript, and what is attached.

use std::fmt::Write as _;

use serde_json::json;

use super::{Document, Piece};
use crate::gateway::wire;

/// The form of the document; a reader refuses one that it does not know.
const VERSION: u32 = 1;

/// `{ sepal: { export, version }, id, title, exportedAt, events, attachments: { <id>: <base64> } }`.
pub(super) fn write(document: &Document) -> Vec<Piece> {
    let head = json!({
        "sepal": { "export": "session", "version": VERSION },
        "id": document.session,
        "title": document.title(),
        "exportedAt": document.at.to_rfc3339(),
    });
    let head = head.to_string();
    let mut text = head.strip_suffix('}').unwrap_or(&head).to_owned();
    text.push_str(",\"events\":[");
    let items = document.events.iter().flat_map(wire::transcript_items);
    for (at, item) in items.enumerate() {
        text.push_str(if at == 0 { "\n" } else { ",\n" });
        text.push_str(&item.to_string());
    }
    text.push_str("\n],\"attachments\":{");
    let mut pieces = Vec::new();
    for (at, attachment) in document.attachments().into_iter().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        // Writing into a text never fails.
        let _ = write!(text, "{comma}\n\"{}\":\"", attachment.id);
        pieces.push(Piece::Text(std::mem::take(&mut text)));
        pieces.push(Piece::Content(attachment.id.clone()));
        text.push('"');
    }
    text.push_str("\n}}\n");
    pieces.push(Piece::Text(text));
    pieces
}
