//! What may be said of a provider's models, by those who add it.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use crate::domain::Code;
use crate::llm::{Api, ProviderKind, UnknownApi, Windows};
use crate::session::Refusal;

/// Models that one provider may offer.
const MOST_MODELS: usize = 500;
/// Tokens that a window may have.
const WINDOWS: RangeInclusive<u64> = 1_024..=u32::MAX as u64;
/// Tokens that an answer may have.
const MAX_OUTPUTS: RangeInclusive<u64> = 1..=u32::MAX as u64;

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

/// Refuses too many models, and names that no model has.
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

/// Which of OpenAI's interfaces it is; the other vendors have one each.
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
