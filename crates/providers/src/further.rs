//! Manages a provider's further keys and its fallbacks.

use reqwest::Url;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};

use super::offer::{Fallback, Offer, ProviderSettings};
use sepal_core::domain::{Code, Scope};
use sepal_core::session::Refusal;
use sepal_llm::{self as llm, CacheTtl, CompactionSetting, Overrides, ProviderKind};
use sepal_store::records::ProviderRow;
use sepal_store::{self as store, Sealer};

/// The most further keys of one provider, and the most fallbacks.
const MOST: usize = 8;
/// The longest name of a provider and a model together, in bytes.
const MAX_NAME: usize = 512;
/// The longest key, in bytes.
const MAX_BYTES: usize = 2_048;

/// The part of a record that is stored as one text: the overrides for the provider's models, its cache and
/// compaction settings, fallbacks and further keys.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Kept {
    #[serde(flatten)]
    pub(super) said: Overrides,
    /// The lifetime of the provider's cache, if it can be chosen.
    #[serde(default, skip_serializing_if = "CacheTtl::is_usual")]
    pub(super) cache_ttl: CacheTtl,
    /// The party that compacts the contexts of the provider's models.
    #[serde(default, skip_serializing_if = "CompactionSetting::is_usual")]
    pub(super) compaction: CompactionSetting,
    /// `provider/model`; the first available one answers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) fallback: Vec<String>,
    /// Further keys, each sealed for its place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) sealed_keys: Vec<String>,
}

/// Seals the further keys of an offer, each for its place.
pub(super) fn sealed_keys(
    sealer: &Sealer,
    scope: &Scope,
    offer: &Offer,
) -> Result<Vec<String>, store::Error> {
    let keys = offer.settings.more_keys.iter().enumerate();
    let kept = keys.map(|(place, key)| {
        let context = context_of(scope, offer.id(), place);
        sealer.seal(&context, key.expose_secret().as_bytes())
    });
    kept.collect()
}

/// Opens the further keys of a row; one that cannot be opened is logged and left out.
pub(super) fn opened_keys(
    sealer: &Sealer,
    row: &ProviderRow,
    kept: &[String],
) -> Vec<SecretString> {
    let keys = kept.iter().enumerate().filter_map(|(place, sealed)| {
        let context = context_of(&row.scope, &row.id, place);
        match sealer.open(&context, sealed) {
            Ok(key) => Some(String::from_utf8_lossy(&key).into_owned().into()),
            Err(error) => {
                tracing::error!(llm.provider = %row.id, scope = %row.scope, %error, "A further key of provider `{}` cannot be opened", row.id);
                None
            }
        }
    });
    keys.collect()
}

/// The sealing context of a further key.
fn context_of(scope: &Scope, id: &str, place: usize) -> String {
    format!("{}/{place}", context(scope, id))
}

pub(super) fn checked_keys(keys: &[SecretString]) -> Result<Vec<SecretString>, Refusal> {
    if keys.len() > MOST {
        let text = format!("there are at most {MOST} further keys");
        return Err(Refusal::of_field(Code::InvalidArguments, "apiKeys", text));
    }
    let keys = keys.iter().filter_map(|key| checked_key(key).transpose());
    keys.collect()
}

/// Returns the stored key, unless it would now be sent to another destination.
pub(super) fn kept_key(
    stored: Option<&Offer>,
    kind: ProviderKind,
    base_url: Option<&Url>,
) -> Result<Option<SecretString>, Refusal> {
    let Some(stored) = stored.filter(|stored| stored.has_key()) else {
        return Ok(None);
    };
    if goes_where_it_went(stored, kind, base_url) {
        return Ok(stored.settings.reach.api_key.clone());
    }
    let text = "the key was given for another address: give it again, or `null` for none";
    Err(Refusal::of_field(Code::InvalidArguments, "apiKey", text))
}

/// Parses the stored text; one that this release cannot read counts as empty.
pub(super) fn kept_of(row: &ProviderRow) -> Kept {
    let kept = row.windows.as_deref().map(serde_json::from_str);
    kept.and_then(Result::ok).unwrap_or_default()
}

/// Returns the stored further keys, unless they would now be sent to another destination.
pub(super) fn kept_more_keys(
    stored: Option<&Offer>,
    kind: ProviderKind,
    base_url: Option<&Url>,
) -> Result<Vec<SecretString>, Refusal> {
    let Some(stored) = stored.filter(|stored| stored.more_keys() > 0) else {
        return Ok(Vec::new());
    };
    if goes_where_it_went(stored, kind, base_url) {
        return Ok(stored.settings.more_keys.clone());
    }
    let text = "the further keys were given for another address: give them again, or an empty list";
    Err(Refusal::of_field(Code::InvalidArguments, "apiKeys", text))
}

pub(super) fn checked_fallback(fallback: Vec<Fallback>) -> Result<Vec<Fallback>, Refusal> {
    let is_long = |entry: &Fallback| entry.to_string().len() > MAX_NAME;
    if fallback.len() > MOST || fallback.iter().any(is_long) {
        let text = format!("`fallback` has at most {MOST} entries of {MAX_NAME} bytes each");
        return Err(Refusal::of_field(Code::InvalidArguments, "fallback", text));
    }
    Ok(fallback)
}

/// The sealing context, which binds a sealed key to its place.
pub(super) fn context(scope: &Scope, id: &str) -> String {
    format!("provider/{scope}/{id}")
}

/// Returns the destination of a provider's keys: its kind, and the whole address. Another path of the same
/// host may belong to somebody else. A new setting does not compile until it is classified here.
fn destination(settings: &ProviderSettings) -> (ProviderKind, Option<String>) {
    let ProviderSettings {
        reach:
            llm::Settings {
                kind,
                base_url,
                id: _,
                api_key: _,
                // Only selects among the vendor's own paths below the address.
                api: _,
                cache_ttl: _,
                compaction: _,
                pace: _,
            },
        // Settings that do not affect the destination; fallbacks have their own keys.
        models: _,
        said: _,
        fallback: _,
        more_keys: _,
    } = settings;
    (*kind, base_url.as_deref().map(address))
}

/// Returns the address in the form in which destinations are compared: `/v1` at its end may be left out.
fn address(url: &str) -> String {
    let parsed = Url::parse(url).map_or_else(|_| url.to_owned(), String::from);
    let base = parsed.trim_end_matches('/');
    base.strip_suffix("/v1").unwrap_or(base).to_owned()
}

/// Returns true if a stored key would be sent to the same place as before.
pub(super) fn goes_where_it_went(
    stored: &Offer,
    kind: ProviderKind,
    base_url: Option<&Url>,
) -> bool {
    destination(&stored.settings) == (kind, base_url.map(|url| address(url.as_str())))
}

/// Checks that a key can be sent; a blank one counts as none.
pub(super) fn checked_key(key: &SecretString) -> Result<Option<SecretString>, Refusal> {
    let bare = llm::bare_key(key.expose_secret());
    if bare.is_empty() {
        return Ok(None);
    }
    if bare.len() > MAX_BYTES || !bare.bytes().all(|byte| byte.is_ascii_graphic()) {
        let text = format!("a key has at most {MAX_BYTES} printable characters and no spaces");
        return Err(Refusal::of_field(Code::InvalidArguments, "apiKey", text));
    }
    Ok(Some(bare.into()))
}

#[cfg(test)]
mod tests {
    use super::Kept;
    use sepal_llm::CacheTtl;

    /// Records of earlier releases stay readable, and those of this one are readable by them.
    #[test]
    fn the_time_of_the_cache_stands_where_it_always_stood() {
        let text = r#"{"usual":null,"of_models":{},"cache_ttl":"1h","fallback":["a/b"]}"#;
        let kept: Kept = serde_json::from_str(text).unwrap();
        assert_eq!(kept.cache_ttl, CacheTtl::Hour);
        assert_eq!(serde_json::to_string(&kept).unwrap(), text);
        let usual = serde_json::to_string(&Kept::default()).unwrap();
        assert_eq!(usual, r#"{"usual":null,"of_models":{}}"#);
    }
}
