//! The vendor's compaction: its item, and what it refuses.

use serde_json::{Value, json};

/// An item as it goes back: nobody but the vendor can read it.
pub(crate) fn whole(summary: &str) -> Value {
    let sealed = format!("stub-seal-{}", summary.len());
    json!({"type": "compaction", "id": format!("cmp_{}", summary.len()), "encrypted_content": sealed})
}

pub(super) fn check_item(item: &Value) -> Result<(), String> {
    let id = item["id"].as_str().unwrap_or_default();
    let length = id.strip_prefix("cmp_").unwrap_or_default();
    let expected =
        json!({"type": "compaction", "id": id, "encrypted_content": format!("stub-seal-{length}")});
    if !length.is_empty() && *item == expected {
        return Ok(());
    }
    Err(format!(
        "The encrypted content for item '{id}' could not be verified."
    ))
}

pub(super) fn check(body: &Value) -> Result<(), String> {
    let Some(given) = body.get("context_management") else {
        return Ok(());
    };
    let threshold = given
        .pointer("/0/compact_threshold")
        .and_then(Value::as_u64);
    let threshold = threshold.filter(|tokens| *tokens >= 1_000);
    let threshold = threshold.ok_or("Invalid 'context_management[0].compact_threshold'")?;
    if *given == json!([{"type": "compaction", "compact_threshold": threshold}]) {
        return Ok(());
    }
    Err("Invalid 'context_management'".to_owned())
}
