//! Reads and checks fields of a provider.

use serde::{Deserialize, Deserializer};

use crate::domain::Code;
use crate::gateway::error::ApiError;
use crate::llm::{CacheTtl, CompactedBy};
use crate::providers::{Fallback, KeyChange, ThresholdChange};

pub(super) fn checked_ttl(text: &str) -> Result<CacheTtl, ApiError> {
    CacheTtl::parse(text).ok_or_else(|| {
        let text = "`cacheTtl` is `5m` or `1h`";
        ApiError::of_field(Code::InvalidArguments, "cacheTtl", text)
    })
}

pub(super) fn checked_compactor(text: &str) -> Result<CompactedBy, ApiError> {
    CompactedBy::parse(text).ok_or_else(|| {
        let text = "`compaction` is `sepal` or `vendor`";
        ApiError::of_field(Code::InvalidArguments, "compaction", text)
    })
}

/// Reads `null` or a number. An absent field does not come here: it keeps the stored value.
pub(super) fn threshold_change<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<ThresholdChange, D::Error> {
    let tokens = Option::deserialize(deserializer)?;
    Ok(tokens.map_or(ThresholdChange::Usual, ThresholdChange::Set))
}

pub(super) fn fallback_of(texts: &[String]) -> Result<Vec<Fallback>, ApiError> {
    let parsed = texts.iter().map(|text| {
        Fallback::parse(text).ok_or_else(|| {
            let text = "`fallback` is a list of `provider/model`";
            ApiError::of_field(Code::InvalidArguments, "fallback", text)
        })
    });
    parsed.collect()
}

/// Reads `null` or a text. The error does not repeat any other value, because it may hold a key.
pub(super) fn key_change<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<KeyChange, D::Error> {
    match serde_json::Value::deserialize(deserializer)? {
        serde_json::Value::Null => Ok(KeyChange::Remove),
        serde_json::Value::String(key) => Ok(KeyChange::Set(key.into())),
        serde_json::Value::Bool(_)
        | serde_json::Value::Number(_)
        | serde_json::Value::Array(_)
        | serde_json::Value::Object(_) => {
            Err(serde::de::Error::custom("a key is a text, or `null`"))
        }
    }
}
