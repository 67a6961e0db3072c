//! Writes a document as JSON: the events of the transcript, and the attachments.

use std::io;

use serde_json::json;

use super::{Document, Sink};
use crate::gateway::wire;

/// The version of the document's form; a reader refuses an unknown version.
const VERSION: u32 = 1;

/// Writes the document for its owner: `{ sepal: { export, version }, id, title, exportedAt, events,
/// attachments: { <id>: <base64> } }`.
pub(super) fn write(document: &Document, to: &mut dyn Sink) -> io::Result<()> {
    let head = json!({
        "sepal": { "export": "session", "version": VERSION },
        "id": document.session,
        "title": document.title(),
        "exportedAt": document.at.to_rfc3339(),
    });
    let head = head.to_string();
    to.text(head.strip_suffix('}').unwrap_or(&head))?;
    to.text(",\"events\":[")?;
    let items = document.events.iter().flat_map(wire::transcript_items);
    for (at, item) in items.enumerate() {
        to.text(if at == 0 { "\n" } else { ",\n" })?;
        to.text(&item.to_string())?;
    }
    to.text("\n],\"attachments\":{")?;
    for (at, attachment) in document.attachments().into_iter().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        to.text(&format!("{comma}\n\"{}\":\"", attachment.id))?;
        to.content(&attachment.id)?;
        to.text("\"")?;
    }
    to.text("\n}}\n")
}
