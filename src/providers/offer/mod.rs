//! One provider of the registry: what it is made of, and what is wrong with it.

pub(super) mod calibrations;
mod unusable;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::civil::Date;
use reqwest::Client;
use secrecy::{ExposeSecret as _, SecretString};

use self::unusable::Unusable;
use crate::domain::{Code, Scope};
use crate::llm::catalogue::{Abilities, Model};
use crate::llm::tokens::Calibration;
use crate::llm::{
    self, Api, BreakerConfig, CacheTtl, Catalogue, CompactionSetting, Guarded, ListedModel, Outage,
    Overrides, Provider, ProviderKind, Vendor,
};
use crate::session::Refusal;

/// Where a provider comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The operator's settings; read-only while the server runs.
    Settings,
    /// A record, for everybody or for one tenant.
    Added(Scope),
}

/// What a provider is made of.
#[derive(Debug, Clone)]
pub struct ProviderSettings {
    pub reach: llm::Settings,
    /// The models to offer, the first as its default; empty = those that it lists.
    pub models: Vec<String>,
    /// What was said of its models.
    pub said: Overrides,
    /// Further keys, which answer in their order when those before them cannot.
    pub more_keys: Vec<SecretString>,
    /// What answers instead while it cannot, the first that is there.
    pub fallback: Vec<Fallback>,
}

/// A provider and a model that answer in the place of another provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fallback {
    pub provider: String,
    pub model: String,
}

impl Fallback {
    /// Reads `provider/model`; a model's name may hold a `/` itself.
    pub fn parse(text: &str) -> Option<Self> {
        let (provider, model) = text.trim().split_once('/')?;
        let (provider, model) = (provider.trim(), model.trim());
        (!provider.is_empty() && !model.is_empty()).then(|| Self {
            provider: provider.to_owned(),
            model: model.to_owned(),
        })
    }
}

impl fmt::Display for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.provider, self.model)
    }
}

/// A provider that sessions may use.
pub struct Offer {
    /// What it is made of.
    pub(crate) settings: ProviderSettings,
    /// Where it comes from.
    pub source: Source,
    /// The provider; one that cannot work says why at every request.
    pub provider: Arc<dyn Provider>,
    /// The same with each of its keys, the first being `provider`.
    keys: Vec<Arc<Guarded>>,
    /// Why it cannot work.
    pub problem: Option<Refusal>,
    /// Whose models and prices it offers.
    vendor: Vendor,
    /// What it listed last.
    listed: Mutex<Arc<[ListedModel]>>,
    /// How far our counts of its models are from its own.
    learned: Mutex<BTreeMap<String, Calibration>>,
    /// The model that it does not list, and the listed one that takes its place.
    stand_in: Mutex<Option<(String, String)>>,
}

impl Offer {
    /// Connects it; what cannot work becomes an offer with a problem.
    pub fn connect(
        settings: ProviderSettings,
        source: Source,
        http: &Client,
        breaker: BreakerConfig,
    ) -> Self {
        let id = settings.reach.id.clone();
        let vendor = Vendor::of(settings.reach.kind, settings.reach.base_url.as_deref());
        if source != Source::Settings && has_placeholder(settings.reach.api_key.as_ref()) {
            tracing::warn!(
                llm.provider = %id,
                "Provider `{id}` has only the placeholder key of the example files: its answers will be errors"
            );
        }
        let keys = connect_keys(&settings, &source, http, breaker);
        let (keys, provider, problem) = match keys {
            Ok((first, others)) => {
                let provider: Arc<dyn Provider> = Arc::clone(&first) as Arc<dyn Provider>;
                let keys = std::iter::once(first).chain(others).collect();
                (keys, provider, None)
            }
            Err(error) => {
                let problem = problem(&error, &settings);
                let unusable = Unusable {
                    kind: settings.reach.kind,
                    id,
                    key: if let llm::Error::Key { key, .. } = error {
                        Some(key)
                    } else {
                        None
                    },
                    text: problem.message.clone(),
                };
                let unusable: Arc<dyn Provider> = Arc::new(unusable);
                (Vec::new(), unusable, Some(problem))
            }
        };
        Self {
            settings,
            source,
            provider,
            keys,
            problem,
            vendor,
            listed: Mutex::default(),
            learned: Mutex::default(),
            stand_in: Mutex::default(),
        }
    }

    /// Says that it is there, with the model that answers unless a session names one (S3.15).
    pub fn announce(&self, model: Option<&str>) {
        let name = match self.kind() {
            ProviderKind::OpenAi => "OpenAI",
            ProviderKind::Anthropic => "Anthropic",
            ProviderKind::Gemini => "Gemini",
            ProviderKind::OpenAiCompatible => "OpenAICompatible",
            ProviderKind::Scripted => "Scripted",
        };
        let Some(model) = model.or(self.default_model()).filter(|_| self.is_usable()) else {
            return;
        };
        tracing::info!(
            llm.provider = %self.id(),
            llm.model = model,
            "Initialized {name}Service with model {model}"
        );
    }

    /// The provider with each of its keys, in the order in which they are used.
    pub fn keys(&self) -> &[Arc<Guarded>] {
        &self.keys
    }

    /// What answers instead while it cannot.
    pub fn fallback(&self) -> &[Fallback] {
        &self.settings.fallback
    }

    /// How many keys it has beside the first. The keys themselves are never given out.
    pub fn more_keys(&self) -> usize {
        self.settings.more_keys.len()
    }

    /// Why nobody is answered now: each of its keys is out; that of the first.
    pub fn outage(&self) -> Option<Outage> {
        let outages: Option<Vec<Outage>> = self.keys.iter().map(|key| key.outage()).collect();
        outages?.into_iter().next()
    }

    /// Why it cannot answer, for people: it cannot work, or it is out for a while.
    pub fn told_problem(&self) -> Option<String> {
        let problem = self.problem.as_ref().map(ToString::to_string);
        problem.or_else(|| {
            let outage = self.outage()?;
            Some(format!("provider `{}` {outage}", self.id()))
        })
    }

    /// Its configured name.
    pub fn id(&self) -> &str {
        &self.settings.reach.id
    }

    /// What it speaks.
    pub fn kind(&self) -> ProviderKind {
        self.settings.reach.kind
    }

    /// Its address; `None` = the vendor's own.
    pub fn base_url(&self) -> Option<&str> {
        self.settings.reach.base_url.as_deref()
    }

    /// Which of OpenAI's interfaces it is spoken to in.
    pub fn api(&self) -> Api {
        self.settings.reach.api
    }

    /// How long its cache keeps what it is given, where that can be chosen.
    pub fn cache_ttl(&self) -> CacheTtl {
        self.settings.reach.cache_ttl
    }

    /// Who makes room in the context of its models.
    pub fn compaction(&self) -> CompactionSetting {
        self.settings.reach.compaction
    }

    /// The models to offer; empty = those that it lists.
    pub fn models(&self) -> &[String] {
        &self.settings.models
    }

    /// The same, those that it lists itself included as far as they are known.
    pub(super) fn offered_models(&self) -> Vec<String> {
        if !self.models().is_empty() {
            return self.models().to_vec();
        }
        let listed = Arc::clone(&self.listed.lock().unwrap_or_else(PoisonError::into_inner));
        listed.iter().map(|listed| listed.id.clone()).collect()
    }

    /// What was said of its models.
    pub fn said(&self) -> &Overrides {
        &self.settings.said
    }

    /// Whose models and prices it offers.
    pub fn vendor(&self) -> Vendor {
        self.vendor
    }

    /// Keeps what it lists now.
    pub fn learn(&self, listed: &[ListedModel]) {
        *self.listed.lock().unwrap_or_else(PoisonError::into_inner) = listed.into();
    }

    /// What is known or assumed of one of its models: what was said, what it lists, what the
    /// catalogue knows.
    pub fn describe(&self, catalogue: Catalogue, model: &str) -> Model {
        let listed = Arc::clone(&self.listed.lock().unwrap_or_else(PoisonError::into_inner));
        let listed = listed.iter().find(|listed| listed.id == model);
        catalogue.describe_listed(self.vendor, (model, listed), self.said())
    }

    /// Whether anybody has said what one of its models can do: the catalogue, or its own list.
    pub fn knows(&self, catalogue: Catalogue, model: &str) -> bool {
        self.describe(catalogue, model).abilities_are == Abilities::Known
    }

    /// Warns of a default model that its vendor switches off soon.
    pub fn warn_of_end(&self, model: &str, today: Date) {
        let known = self.describe(Catalogue::built_in(), model);
        if let Some(end) = known.retirement(today) {
            tracing::warn!(
                llm.provider = self.id(),
                llm.model = model,
                "New sessions begin with the model `{model}`: {end}"
            );
        }
    }

    /// Whether it has a key. The key itself is never given out.
    pub fn has_key(&self) -> bool {
        let key = self.settings.reach.api_key.as_ref();
        key.is_some_and(|key| !key.expose_secret().trim().is_empty())
    }

    /// The model of sessions that name none: the first of the offered ones, else the kind's own.
    pub fn default_model(&self) -> Option<&str> {
        let offered = self.models().first().map(String::as_str);
        offered.or(self.kind().default_model())
    }

    /// Says which listed model takes the place of a default that it does not list; none = it does.
    pub fn replace_default(&self, default: &str, other: Option<&str>) {
        let pair = other.map(|other| (default.to_owned(), other.to_owned()));
        *self.stand_in.lock().unwrap_or_else(PoisonError::into_inner) = pair;
    }

    /// What takes the place of that default, as far as its list has been seen.
    pub fn stand_in(&self, default: &str) -> Option<String> {
        let pair = self.stand_in.lock();
        let pair = pair.unwrap_or_else(PoisonError::into_inner).clone();
        pair.filter(|(missing, _)| missing == default)
            .map(|(_, other)| other)
    }

    /// Whether it could answer.
    pub fn is_usable(&self) -> bool {
        self.problem.is_none()
    }
}

/// The provider with its first key, and with each further one.
type Keys = (Arc<Guarded>, Vec<Arc<Guarded>>);

/// Each key has a breaker of its own: one may be out of credit while another is not.
fn connect_keys(
    settings: &ProviderSettings,
    source: &Source,
    http: &Client,
    breaker: BreakerConfig,
) -> Result<Keys, llm::Error> {
    // What follows a script may be told to fail, and nobody else is to hear of it.
    let never = BreakerConfig {
        faults: 0,
        ..breaker
    };
    let breaker = match settings.reach.kind {
        ProviderKind::Scripted => never,
        ProviderKind::OpenAi
        | ProviderKind::Anthropic
        | ProviderKind::Gemini
        | ProviderKind::OpenAiCompatible => breaker,
    };
    let scope = match source {
        Source::Settings => "settings".to_owned(),
        Source::Added(scope) => scope.to_string(),
    };
    let connect = |reach: llm::Settings| {
        let provider = llm::connect(reach, http.clone())?;
        Ok(Arc::new(Guarded::new(provider, scope.clone(), breaker)))
    };
    let more = settings.more_keys.iter().map(|key| {
        connect(llm::Settings {
            api_key: Some(key.clone()),
            ..settings.reach.clone()
        })
    });
    Ok((
        connect(settings.reach.clone())?,
        more.collect::<Result<_, _>>()?,
    ))
}

fn has_placeholder(key: Option<&SecretString>) -> bool {
    key.is_some_and(|key| key.expose_secret().trim() == llm::PLACEHOLDER_KEY)
}

/// In the words of somebody who can do something about it (S2.22).
fn problem(error: &llm::Error, settings: &ProviderSettings) -> Refusal {
    let id = &settings.reach.id;
    let text = match (error, variable(settings.reach.kind)) {
        (llm::Error::Key { .. }, Some(variable)) => format!(
            "no API key for provider `{id}`: add one at /admin/providers, or set {variable} (or \
             LLM_PROVIDER to another provider) and start again"
        ),
        (llm::Error::Key { .. }, None) => {
            format!("no API key for provider `{id}`: add one at /admin/providers")
        }
        (error, _) => error.to_string(),
    };
    Refusal::new(error.code(), text)
}

fn variable(kind: ProviderKind) -> Option<&'static str> {
    match kind {
        ProviderKind::OpenAi => Some("OPENAI_API_KEY"),
        ProviderKind::Anthropic => Some("ANTHROPIC_API_KEY"),
        ProviderKind::Gemini => Some("GEMINI_API_KEY"),
        ProviderKind::OpenAiCompatible => Some("SPL_LLM_API_KEY"),
        ProviderKind::Scripted => None,
    }
}

/// A provider that was removed, for the sessions that still name it.
pub(crate) fn removed(id: &str) -> Refusal {
    let text = format!("provider `{id}` is not configured any more; choose another model");
    Refusal::new(Code::NotFound, text)
}
