//! Chooses provider and model from what was asked for and the available providers. Pure.

use std::sync::Arc;

use serde::Deserialize;

use super::offer::Offer;
use sepal_core::domain::{Code, Effort};
use sepal_core::session::{ModelChoice, Refusal};
use sepal_llm::ProviderKind;

/// The longest name of a model, in bytes.
const MAX_MODEL_BYTES: usize = 256;

/// A requested provider and model; names as they were given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WantedModel {
    /// The provider's name; aliases are accepted.
    pub provider: Option<String>,
    /// The model's name at the provider.
    pub model: Option<String>,
    /// The effort of the model.
    pub effort: WantedEffort,
}

/// A requested effort.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "Option<Effort>")]
pub enum WantedEffort {
    /// Keep the current choice.
    #[default]
    Same,
    /// Use the setting for the model.
    Usual,
    /// Use this effort.
    This(Effort),
}

impl From<Option<Effort>> for WantedEffort {
    fn from(effort: Option<Effort>) -> Self {
        effort.map_or(Self::Usual, Self::This)
    }
}

impl WantedModel {
    /// Makes a request; empty texts count as absent.
    pub fn new(provider: Option<String>, model: Option<String>) -> Self {
        let said = |text: Option<String>| {
            let text = text.map(|text| text.trim().to_owned());
            text.filter(|text| !text.is_empty())
        };
        Self {
            provider: said(provider),
            model: said(model),
            effort: WantedEffort::Same,
        }
    }

    /// Sets the effort.
    #[must_use]
    pub fn with_effort(self, effort: WantedEffort) -> Self {
        Self { effort, ..self }
    }

    /// Returns true if nothing was requested.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Returns the model of new sessions: the operator's choice, unless that cannot answer (or only follows a
/// script) or is not open, and another model can and is.
pub(crate) fn default_of(
    offers: &[Arc<Offer>],
    settings: &ModelChoice,
    is_open: impl Fn(&ModelChoice) -> bool,
) -> ModelChoice {
    let configured = offers.iter().find(|offer| offer.id() == settings.provider);
    let is_real = |offer: &&Arc<Offer>| offer.is_usable() && offer.kind() != ProviderKind::Scripted;
    if configured.is_some_and(|offer| is_real(&offer)) && is_open(settings) {
        return settings.clone();
    }
    let first_open = |offer: &Arc<Offer>| {
        let default = offer.default_model().map(ToOwned::to_owned);
        let mut models = default.into_iter().chain(offer.offered_models());
        models.find_map(|model| of_offer(offer, Some(&model)).filter(&is_open))
    };
    let better = offers.iter().filter(is_real).find_map(first_open);
    // A script answers where nothing else does.
    let any = || {
        offers
            .iter()
            .filter(|offer| offer.is_usable())
            .find_map(first_open)
    };
    match better {
        Some(better) => better,
        None if is_open(settings) => settings.clone(),
        None => any().unwrap_or_else(|| settings.clone()),
    }
}

/// Returns the choice for a request. `current` is the session's own, or that of new sessions; a model on no
/// list is accepted, because lists may be incomplete.
pub(crate) fn choose(
    offers: &[Arc<Offer>],
    wanted: &WantedModel,
    current: &ModelChoice,
) -> Result<ModelChoice, Refusal> {
    let choice = choose_model(offers, wanted, current)?;
    let effort = match wanted.effort {
        WantedEffort::Same => current.effort,
        WantedEffort::Usual => None,
        WantedEffort::This(effort) => Some(effort),
    };
    Ok(ModelChoice { effort, ..choice })
}

fn choose_model(
    offers: &[Arc<Offer>],
    wanted: &WantedModel,
    current: &ModelChoice,
) -> Result<ModelChoice, Refusal> {
    if let Some(model) = &wanted.model
        && (model.len() > MAX_MODEL_BYTES || model.chars().any(char::is_control))
    {
        let text = format!("a model's name has at most {MAX_MODEL_BYTES} printable characters");
        return Err(Refusal::of_field(Code::InvalidArguments, "model", text));
    }
    let offer = match (&wanted.provider, &wanted.model) {
        (Some(provider), _) => named(offers, provider)?,
        (None, Some(model)) => match serving(offers, model, &current.provider) {
            Some(offer) => offer,
            None => named(offers, &current.provider)?,
        },
        (None, None) => return Ok(current.clone()),
    };
    if wanted.model.is_none() && offer.id() == current.provider {
        return Ok(current.clone());
    }
    of_offer(offer, wanted.model.as_deref()).ok_or_else(|| {
        let text = format!("provider `{}` has no default: name a `model`", offer.id());
        Refusal::of_field(Code::InvalidArguments, "model", text)
    })
}

fn of_offer(offer: &Offer, model: Option<&str>) -> Option<ModelChoice> {
    Some(ModelChoice::new(
        offer.id(),
        model.or(offer.default_model())?,
    ))
}

/// Finds the provider of that id or alias.
fn named<'a>(offers: &'a [Arc<Offer>], name: &str) -> Result<&'a Arc<Offer>, Refusal> {
    let exact = offers.iter().find(|offer| offer.id() == name);
    let by_alias = || {
        let kind = ProviderKind::parse(name)?;
        offers.iter().find(|offer| offer.id() == kind.as_str())
    };
    exact.or_else(by_alias).ok_or_else(|| {
        let known: Vec<&str> = offers.iter().map(|offer| offer.id()).collect();
        let name: String = name.chars().take(64).collect();
        let known = known.join("`, `");
        let text = format!("there is no provider `{name}`; there are `{known}`");
        Refusal::of_field(Code::InvalidArguments, "provider", text)
    })
}

/// Finds the provider for a model: the session's own if it lists the model, else a usable one that lists it,
/// else the session's own if it may serve it, else one of the vendor whose models have such names (S3.36),
/// usable ones first.
fn serving<'a>(offers: &'a [Arc<Offer>], model: &str, current: &str) -> Option<&'a Arc<Offer>> {
    let vendor = vendor_of(model);
    let lists = |offer: &Arc<Offer>| offer.models().iter().any(|listed| listed == model);
    let may_serve = |offer: &Arc<Offer>| match (offer.kind(), vendor) {
        // A compatible server may run any model.
        (ProviderKind::OpenAiCompatible, _) | (_, None) => true,
        (kind, Some(vendor)) => kind == vendor,
    };
    let usable_first = |fits: &dyn Fn(&Arc<Offer>) -> bool| {
        let of = |is_usable| {
            let mut fitting = offers.iter().filter(|offer| fits(offer));
            fitting.find(|offer| offer.is_usable() == is_usable)
        };
        of(true).or_else(|| of(false))
    };
    let own = offers.iter().find(|offer| offer.id() == current);
    own.filter(|offer| lists(offer))
        .or_else(|| usable_first(&lists).filter(|offer| offer.is_usable()))
        .or_else(|| own.filter(|offer| may_serve(offer)))
        .or_else(|| usable_first(&|offer| Some(offer.kind()) == vendor))
}

/// Guesses the vendor from a model's name.
fn vendor_of(model: &str) -> Option<ProviderKind> {
    let name = model.to_ascii_lowercase();
    let name = name.strip_prefix("models/").unwrap_or(&name);
    let is_numbered_o = || {
        let rest = name.strip_prefix('o')?;
        rest.starts_with(|c: char| c.is_ascii_digit()).then_some(())
    };
    if name.starts_with("claude-") {
        Some(ProviderKind::Anthropic)
    } else if name.starts_with("gemini-") {
        Some(ProviderKind::Gemini)
    } else if name == "scripted" {
        Some(ProviderKind::Scripted)
    } else if name.starts_with("gpt-oss") {
        // Open weights: anybody may run them.
        None
    } else if name.starts_with("gpt-") || name.starts_with("chatgpt-") || is_numbered_o().is_some()
    {
        Some(ProviderKind::OpenAi)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::{WantedEffort, WantedModel, choose, default_of, vendor_of};
    use crate::{Offer, ProviderSettings, Source};
    use sepal_core::domain::Effort;
    use sepal_core::session::ModelChoice;
    use sepal_llm::{self as llm, ProviderKind};

    /// `id kind key? models,…`
    fn offers(lines: &[&str]) -> Vec<Arc<Offer>> {
        sepal_net::install_tls();
        let client = sepal_net::client(&sepal_net::Settings::default()).unwrap();
        let offer = |line: &&str| {
            let mut words = line.split(' ');
            let id = words.next().unwrap().to_owned();
            let kind = ProviderKind::parse(words.next().unwrap()).unwrap();
            let api_key = words.next().filter(|key| *key == "key").map(Into::into);
            let models = words.next().unwrap_or_default().split(',');
            let models = models.filter(|model| !model.is_empty()).map(Into::into);
            let compatible = kind == ProviderKind::OpenAiCompatible;
            let settings = ProviderSettings {
                reach: llm::Settings {
                    id,
                    kind,
                    api_key,
                    base_url: compatible.then(|| "http://models.example/v1".into()),
                    api: llm::Api::Auto,
                    cache_ttl: llm::CacheTtl::default(),
                    compaction: llm::CompactionSetting::default(),
                    pace: Duration::ZERO,
                },
                models: models.collect(),
                said: llm::Overrides::default(),
                more_keys: Vec::new(),
                fallback: Vec::new(),
            };
            let breaker = llm::BreakerConfig::default();
            Arc::new(Offer::connect(settings, Source::Settings, &client, breaker))
        };
        lines.iter().map(offer).collect()
    }

    fn choice(text: &str) -> ModelChoice {
        let (provider, model) = text.split_once('/').unwrap();
        ModelChoice::new(provider, model)
    }

    fn shown(choice: &ModelChoice) -> String {
        format!("{}/{}", choice.provider, choice.model)
    }

    #[test]
    fn thinking_stays_as_it_was_chosen_until_somebody_says_otherwise() {
        let offers = offers(&["openai openai key", "anthropic anthropic key"]);
        let mut current = choice("openai/gpt-4o");
        for (model, effort, expected) in [
            (None, WantedEffort::Same, None),
            (None, WantedEffort::This(Effort::High), Some(Effort::High)),
            (Some("gpt-9"), WantedEffort::Same, Some(Effort::High)),
            (
                Some("claude-9"),
                WantedEffort::This(Effort::Budget(9)),
                Some(Effort::Budget(9)),
            ),
            (None, WantedEffort::Usual, None),
        ] {
            let wanted = WantedModel::new(None, model.map(str::to_owned)).with_effort(effort);
            current = choose(&offers, &wanted, &current).unwrap();
            assert_eq!(current.effort, expected, "{wanted:?}");
        }
        assert_eq!(shown(&current), "anthropic/claude-9");
    }

    /// Asserts S3.36.
    #[test]
    fn names_lead_to_vendors() {
        fn check(model: &str, vendor: Option<ProviderKind>) {
            assert_eq!(vendor_of(model), vendor, "{model}");
        }
        check("claude-sonnet-4-5", Some(ProviderKind::Anthropic));
        check("gpt-4o", Some(ProviderKind::OpenAi));
        check("chatgpt-4o-latest", Some(ProviderKind::OpenAi));
        check("o3-mini", Some(ProviderKind::OpenAi));
        check("models/gemini-2.0-flash", Some(ProviderKind::Gemini));
        check("scripted", Some(ProviderKind::Scripted));
        check("gpt-oss:20b", None);
        check("olmo-2", None);
        check("openai/gpt-4o", None);
        check("llama3.2:3b", None);
    }

    #[test]
    fn a_model_goes_to_whom_it_was_asked_of_or_to_the_one_that_serves_it() {
        fn check(wanted: (&str, &str), current: &str, expected: &str) {
            let offers = offers(&[
                "openai openai key",
                "anthropic anthropic key",
                "gemini gemini",
                "local openai-compatible - llama3.2:3b,gpt-oss:20b",
                "router openai-compatible key",
                "scripted scripted",
            ]);
            let said = |text: &str| (!text.is_empty()).then(|| text.to_owned());
            let wanted = WantedModel::new(said(wanted.0), said(wanted.1));
            let found = match choose(&offers, &wanted, &choice(current)) {
                Ok(choice) => shown(&choice),
                Err(refusal) => format!("! {}", refusal.field.unwrap_or_default()),
            };
            assert_eq!(found, expected, "{wanted:?} in {current}");
        }
        let openai = "openai/gpt-4o";
        check(("", ""), openai, openai);
        check(("anthropic", "x"), openai, "anthropic/x");
        check(
            ("claude", ""),
            openai,
            "anthropic/claude-sonnet-4-5-20250929",
        );
        check(("chatgpt", ""), "openai/gpt-9", "openai/gpt-9");
        check(("local", ""), openai, "local/llama3.2:3b");
        check(("router", ""), openai, "! model");
        check(("router", "a/b"), openai, "router/a/b");
        check(("nobody", "x"), openai, "! provider");
        check(("", "gpt-9"), openai, "openai/gpt-9");
        check(("", "claude-9"), openai, "anthropic/claude-9");
        check(("", "gemini-9"), openai, "gemini/gemini-9");
        check(("", "llama3.2:3b"), openai, "local/llama3.2:3b");
        check(("", "gpt-oss:20b"), openai, "local/gpt-oss:20b");
        check(("", "who-knows"), openai, "openai/who-knows");
        check(("", "claude-9"), "router/a", "router/claude-9");
        check(("", "scripted"), openai, "scripted/scripted");
        check(("", "x"), "removed/y", "! provider");
        check(("", "gpt-4o"), "removed/y", "openai/gpt-4o");
        check(("", &"x".repeat(257)), openai, "! model");
        check(("", "a\nb"), openai, "! model");
    }

    #[test]
    fn new_sessions_get_what_can_answer() {
        fn check(lines: &[&str], settings: &str, expected: &str) {
            let found = default_of(&offers(lines), &choice(settings), |_| true);
            assert_eq!(shown(&found), expected, "{lines:?}");
        }
        check(&["openai openai key"], "openai/gpt-9", "openai/gpt-9");
        check(&["openai openai"], "openai/gpt-9", "openai/gpt-9");
        check(
            &["local openai-compatible key m", "openai openai"],
            "openai/gpt-9",
            "local/m",
        );
        check(
            &["local openai-compatible - a,b", "scripted scripted"],
            "scripted/scripted",
            "local/a",
        );
        check(
            &["local openai-compatible", "scripted scripted"],
            "scripted/scripted",
            "scripted/scripted",
        );
    }

    #[test]
    fn new_sessions_get_a_model_that_is_open_to_their_person() {
        let check = |closed: &[&str], expected: &str| {
            let lines = [
                "local openai-compatible - a,b",
                "openai openai key gpt-1,gpt-2",
            ];
            let is_open = |choice: &ModelChoice| !closed.contains(&shown(choice).as_str());
            let found = default_of(&offers(&lines), &choice("openai/gpt-1"), is_open);
            assert_eq!(shown(&found), expected, "{closed:?}");
        };
        check(&[], "openai/gpt-1");
        check(&["openai/gpt-1"], "local/a");
        check(&["openai/gpt-1", "local/a"], "local/b");
    }
}
