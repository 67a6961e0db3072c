//! The vendor's compaction: its block, what it tells of it, and what it refuses.

use serde_json::{Value, json};

use crate::model_stub::{Asked, Compaction};

/// The header without which the vendor knows nothing of it.
const BETA: &str = "compact-2026-01-12";
/// The vendor compacts nothing that is smaller.
const LEAST: u64 = 50_000;

/// A block as it goes back: a text that people can read, and what holds it together.
pub(crate) fn whole(summary: &str) -> Value {
    json!({"type": "compaction", "content": summary, "encrypted_content": seal(summary)})
}

fn seal(summary: &str) -> String {
    format!("stub-seal-{}", summary.len())
}

/// A block as it begins, and its pieces.
pub(super) fn block(compaction: &Compaction) -> (Value, Vec<Value>) {
    let summary = &compaction.summary;
    let (head, tail) = summary.split_at(summary.len() / 2);
    let piece = |text: &str| json!({"type": "compaction_delta", "content": text});
    let sealed =
        json!({"type": "compaction_delta", "content": null, "encrypted_content": seal(summary)});
    (
        json!({"type": "compaction", "content": null}),
        vec![piece(head), piece(tail), sealed],
    )
}

/// The totals leave out what was compacted.
pub(super) fn usage(compaction: &Compaction) -> Value {
    json!({
        "input_tokens": 4, "cache_creation_input_tokens": 2, "cache_read_input_tokens": 5, "output_tokens": 7,
        "iterations": [
            {"type": "compaction", "input_tokens": compaction.before, "output_tokens": 300},
            {"type": "message", "input_tokens": 4, "cache_creation_input_tokens": 2,
             "cache_read_input_tokens": 5, "output_tokens": 7},
        ],
    })
}

/// Whether a block is one that the vendor gave, where it gave it: before everything else.
pub(super) fn is_own(block: &Value, content: &[Value]) -> bool {
    let summary = block["content"].as_str().filter(|text| !text.is_empty());
    let is_unchanged = summary.is_some_and(|summary| *block == whole(summary));
    is_unchanged && content.first() == Some(block)
}

/// The header goes with what needs it, and only with that.
pub(super) fn check(asked: &Asked) -> Result<(), String> {
    let betas = asked.headers.get_all("anthropic-beta").iter();
    let has_beta = betas
        .map(|beta| beta.to_str().unwrap())
        .any(|beta| beta == BETA);
    let management = asked.body.get("context_management");
    let messages = asked.body["messages"].as_array().into_iter().flatten();
    let mut blocks =
        messages.flat_map(|message| message["content"].as_array().into_iter().flatten());
    let has_block = blocks.any(|block| block["type"] == "compaction");
    match (has_beta, management, has_block) {
        (false, Some(_), _) => {
            return Err("context_management: Extra inputs are not permitted".to_owned());
        }
        (false, None, true) => return Err("messages: Input tag 'compaction' found".to_owned()),
        (true, None, false) => return Err(format!("the header `{BETA}` has no use")),
        _ => {}
    }
    let Some(management) = management else {
        return Ok(());
    };
    let value = management.pointer("/edits/0/trigger/value");
    let value = value.and_then(Value::as_u64).unwrap_or_default();
    if value < LEAST {
        return Err("context_management.edits.0.trigger.value: at least 50000".to_owned());
    }
    let trigger = json!({"type": "input_tokens", "value": value});
    let expected = json!({"edits": [{"type": "compact_20260112", "trigger": trigger}]});
    if *management == expected {
        return Ok(());
    }
    Err(format!("context_management: {management}"))
}
