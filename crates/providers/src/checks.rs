//! Checks the settings that people give for a provider's models.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use sepal_core::domain::Code;
use sepal_core::session::Refusal;
use sepal_llm::{
    Api, CompactedBy, CompactionSetting, ProviderKind, UnknownApi, Windows, least_threshold,
};

/// The most models that one provider may offer.
const MOST_MODELS: usize = 500;
/// The allowed window sizes in tokens.
const WINDOWS: RangeInclusive<u64> = 1_024..=u32::MAX as u64;
/// The allowed answer limits in tokens.
const MAX_OUTPUTS: RangeInclusive<u64> = 1..=u32::MAX as u64;

/// Refuses an invalid provider id.
pub(crate) fn check_name(id: &str) -> Result<(), Refusal> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let fits = id.len() <= 64
        && id.bytes().next().is_some_and(is_plain)
        && id
            .bytes()
            .all(|byte| is_plain(byte) || matches!(byte, b'-' | b'_'));
    if fits {
        return Ok(());
    }
    let text = "a provider's id has 1 to 64 lower-case letters, digits, `-` or `_`";
    Err(Refusal::of_field(Code::InvalidArguments, "id", text))
}

pub(crate) fn checked_models(models: &[String]) -> Result<Vec<String>, Refusal> {
    let mut checked: Vec<String> = Vec::new();
    for model in models {
        let model = model.trim();
        let fits = !model.is_empty() && model.len() <= 256 && !model.chars().any(char::is_control);
        if !fits || checked.len() == MOST_MODELS {
            let text =
                format!("`models` are at most {MOST_MODELS} names of at most 256 characters");
            return Err(Refusal::of_field(Code::InvalidArguments, "models", text));
        }
        if checked.iter().all(|known| known != model) {
            checked.push(model.to_owned());
        }
    }
    Ok(checked)
}

pub(crate) fn checked_windows(windows: Windows) -> Result<Windows, Refusal> {
    let said = windows.usual.iter().chain(windows.of_models.values());
    let fits = said.into_iter().all(|tokens| WINDOWS.contains(tokens));
    if !fits || windows.of_models.len() > MOST_MODELS {
        let text = format!(
            "a context window has {} to {} tokens, and at most {MOST_MODELS} models have their own",
            WINDOWS.start(),
            WINDOWS.end()
        );
        let field = "contextWindow";
        return Err(Refusal::of_field(Code::InvalidArguments, field, text));
    }
    let names: Vec<String> = windows.of_models.keys().cloned().collect();
    checked_models(&names)?;
    Ok(windows)
}

pub(crate) fn checked_max_outputs(
    given: BTreeMap<String, u64>,
) -> Result<BTreeMap<String, u64>, Refusal> {
    if !given.values().all(|tokens| MAX_OUTPUTS.contains(tokens)) {
        let text = format!(
            "the longest answer of a model has {} to {} tokens",
            MAX_OUTPUTS.start(),
            MAX_OUTPUTS.end()
        );
        let field = "maxOutputs";
        return Err(Refusal::of_field(Code::InvalidArguments, field, text));
    }
    named("maxOutputs", given)
}

/// Refuses too many models, and invalid model names.
pub(crate) fn named<T>(
    field: &'static str,
    given: BTreeMap<String, T>,
) -> Result<BTreeMap<String, T>, Refusal> {
    let names: Vec<String> = given.keys().cloned().collect();
    match checked_models(&names) {
        Ok(_) => Ok(given),
        Err(refused) => Err(Refusal::of_field(
            Code::InvalidArguments,
            field,
            refused.message,
        )),
    }
}

/// Parses OpenAI's interface; other vendors have only one.
pub(crate) fn checked_api(api: &str, kind: ProviderKind) -> Result<Api, Refusal> {
    let refused = |text: String| Refusal::of_field(Code::InvalidArguments, "api", text);
    let api = api.parse::<Api>();
    let api = api.map_err(|unknown: UnknownApi| refused(unknown.to_string()))?;
    let has_choice = matches!(kind, ProviderKind::OpenAi | ProviderKind::OpenAiCompatible);
    if api != Api::Auto && !has_choice {
        let text = format!(
            "`api` chooses between OpenAI's interfaces; of a provider of the kind `{}` it can only \
             be `auto`",
            kind.as_str()
        );
        return Err(refused(text));
    }
    Ok(api)
}

/// A change of the vendor's compaction threshold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ThresholdChange {
    /// Keep the stored value.
    #[default]
    Keep,
    /// Follow Sepal's own limits.
    Usual,
    /// Set this number of tokens.
    Set(u64),
}

/// Checks who compacts the contexts of a provider's models, as given or stored. A stored setting is dropped
/// if the provider's new interface cannot compact.
pub(crate) fn checked_compaction(
    (by, threshold): (Option<CompactedBy>, ThresholdChange),
    kept: Option<CompactionSetting>,
    (kind, api, base_url): (ProviderKind, Api, Option<&str>),
) -> Result<CompactionSetting, Refusal> {
    let refused = |field, text: String| Refusal::of_field(Code::InvalidArguments, field, text);
    let kept = kept.unwrap_or_default();
    let Some(least) = least_threshold(kind, api, base_url) else {
        return match by {
            Some(CompactedBy::Vendor) => Err(refused(
                "compaction",
                "`compaction` can be `vendor` only at Anthropic and in OpenAI's Responses: this \
                 provider cannot compact by itself as it is spoken to"
                    .to_owned(),
            )),
            Some(CompactedBy::Sepal) | None => Ok(CompactionSetting::default()),
        };
    };
    let threshold = match threshold {
        ThresholdChange::Keep => kept.threshold,
        ThresholdChange::Usual => None,
        ThresholdChange::Set(tokens) => Some(tokens),
    };
    let range = least..=u64::from(u32::MAX);
    if threshold.is_some_and(|tokens| !range.contains(&tokens)) {
        let text = format!(
            "this provider compacts from {least} to {} tokens of input on",
            range.end()
        );
        return Err(refused("compactionThreshold", text));
    }
    Ok(CompactionSetting {
        by: by.unwrap_or(kept.by),
        threshold,
    })
}

#[cfg(test)]
mod tests {
    use super::{ThresholdChange, checked_compaction};
    use sepal_llm::{Api, CompactedBy, CompactionSetting, ProviderKind};

    const SET: CompactionSetting = CompactionSetting {
        by: CompactedBy::Vendor,
        threshold: Some(60_000),
    };

    /// Checks the given and stored settings at an interface against the expected `by threshold`, or the wrong
    /// field.
    fn check(
        told: (Option<CompactedBy>, ThresholdChange),
        kept: Option<CompactionSetting>,
        (kind, api): (ProviderKind, Api),
        expected: &str,
    ) {
        let checked = checked_compaction(told, kept, (kind, api, Some("http://h/v1")));
        let got = match checked {
            Ok(it) => format!("{} {:?}", it.by.as_str(), it.threshold.unwrap_or_default()),
            Err(refused) => refused.field.unwrap_or_default().to_owned(),
        };
        assert_eq!(got, expected, "{told:?} {kept:?} {kind:?} {api}");
    }

    #[test]
    fn only_what_a_vendor_can_do_is_taken_and_what_is_absent_stays() {
        use CompactedBy::{Sepal, Vendor};
        use ThresholdChange::{Keep, Set, Usual};
        let anthropic = (ProviderKind::Anthropic, Api::Auto);
        let responses = (ProviderKind::OpenAi, Api::Responses);
        let chat = (ProviderKind::OpenAiCompatible, Api::Auto);
        let gemini = (ProviderKind::Gemini, Api::Auto);
        check((None, Keep), None, anthropic, "sepal 0");
        check((Some(Vendor), Set(50_000)), None, anthropic, "vendor 50000");
        check(
            (Some(Vendor), Set(49_999)),
            None,
            anthropic,
            "compactionThreshold",
        );
        check((Some(Vendor), Set(1_000)), None, responses, "vendor 1000");
        check((Some(Vendor), Keep), None, chat, "compaction");
        check((Some(Vendor), Keep), None, gemini, "compaction");
        check((Some(Sepal), Keep), None, gemini, "sepal 0");
        check((None, Keep), Some(SET), anthropic, "vendor 60000");
        check((None, Usual), Some(SET), anthropic, "vendor 0");
        check((Some(Sepal), Keep), Some(SET), anthropic, "sepal 60000");
        check((None, Keep), Some(SET), chat, "sepal 0");
    }
}
