//! Holds one provider of the registry, with its settings and problems.

pub(super) mod calibrations;
mod unusable;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::civil::Date;
use reqwest::Client;
use secrecy::{ExposeSecret as _, SecretString};

use self::unusable::Unusable;
use sepal_core::domain::{Code, Scope};
use sepal_core::session::Refusal;
use sepal_llm::catalogue::{self, Model};
use sepal_llm::tokens::Calibration;
use sepal_llm::{
    self as llm, Api, BreakerConfig, CacheTtl, CompactionSetting, Guarded, ListedModel, Outage,
    Overrides, Provider, ProviderKind, Vendor,
};

/// The most model descriptions kept for one provider: people may name any model.
const MAX_DESCRIBED: usize = 256;

/// The origin of a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The operator's settings; read-only while the server runs.
    Settings,
    /// A record, for everybody or for one tenant.
    Added(Scope),
}

/// The settings of a provider.
#[derive(Debug, Clone)]
pub struct ProviderSettings {
    pub reach: llm::Settings,
    /// The models to offer, the first as the default; empty = those that it lists.
    pub models: Vec<String>,
    /// The overrides for its models.
    pub said: Overrides,
    /// Further keys, used in order when those before them fail.
    pub more_keys: Vec<SecretString>,
    /// The fallbacks while it cannot answer; the first available one is used.
    pub fallback: Vec<Fallback>,
}

/// A provider and a model that answer in the place of another provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fallback {
    pub provider: String,
    pub model: String,
}

impl Fallback {
    /// Parses `provider/model`; a model's name may contain a `/`.
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
    /// The settings.
    pub settings: ProviderSettings,
    /// The origin.
    pub source: Source,
    /// The provider; an unusable one returns its problem for every request.
    pub provider: Arc<dyn Provider>,
    /// The provider with each of its keys; the first is `provider`.
    keys: Vec<Arc<Guarded>>,
    /// The reason it is unusable.
    pub problem: Option<Refusal>,
    /// The vendor of its models and prices.
    vendor: Vendor,
    /// The last model list.
    listed: Mutex<Arc<[ListedModel]>>,
    /// The descriptions of its models, made at their first use; cleared by a new list.
    described: Mutex<HashMap<String, Arc<Model>>>,
    /// The calibrations of our token counts with its own.
    learned: Mutex<BTreeMap<String, Calibration>>,
    /// The default model that it does not list, and the listed one that replaces it.
    stand_in: Mutex<Option<(String, String)>>,
}

impl Offer {
    /// Connects a provider; one that cannot work becomes an offer with a problem.
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
            described: Mutex::default(),
            learned: Mutex::default(),
            stand_in: Mutex::default(),
        }
    }

    /// Logs that the provider is available, with the default model of sessions that name none (S3.15).
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

    /// The provider with each of its keys, in the order of use.
    pub fn keys(&self) -> &[Arc<Guarded>] {
        &self.keys
    }

    /// The fallbacks while it cannot answer.
    pub fn fallback(&self) -> &[Fallback] {
        &self.settings.fallback
    }

    /// The number of keys besides the first. The keys themselves are never exposed.
    pub fn more_keys(&self) -> usize {
        self.settings.more_keys.len()
    }

    /// Returns the outage of the first key, if all keys are out.
    pub fn outage(&self) -> Option<Outage> {
        let outages: Option<Vec<Outage>> = self.keys.iter().map(|key| key.outage()).collect();
        outages?.into_iter().next()
    }

    /// Returns the reason it cannot answer, for people: it is unusable, or it is out for a while.
    pub fn told_problem(&self) -> Option<String> {
        let problem = self.problem.as_ref().map(ToString::to_string);
        problem.or_else(|| {
            let outage = self.outage()?;
            Some(format!("provider `{}` {outage}", self.id()))
        })
    }

    /// The configured id.
    pub fn id(&self) -> &str {
        &self.settings.reach.id
    }

    /// The kind of its interface.
    pub fn kind(&self) -> ProviderKind {
        self.settings.reach.kind
    }

    /// The address; `None` = the vendor's own.
    pub fn base_url(&self) -> Option<&str> {
        self.settings.reach.base_url.as_deref()
    }

    /// OpenAI's interface that it uses.
    pub fn api(&self) -> Api {
        self.settings.reach.api
    }

    /// The lifetime of its cache, if it can be chosen.
    pub fn cache_ttl(&self) -> CacheTtl {
        self.settings.reach.cache_ttl
    }

    /// The party that compacts the contexts of its models.
    pub fn compaction(&self) -> CompactionSetting {
        self.settings.reach.compaction
    }

    /// The models to offer; empty = those that it lists.
    pub fn models(&self) -> &[String] {
        &self.settings.models
    }

    /// Returns the offered models, or the listed ones as far as they are known.
    pub(super) fn offered_models(&self) -> Vec<String> {
        if !self.models().is_empty() {
            return self.models().to_vec();
        }
        let listed = Arc::clone(&self.listed.lock().unwrap_or_else(PoisonError::into_inner));
        listed.iter().map(|listed| listed.id.clone()).collect()
    }

    /// The overrides for its models.
    pub fn said(&self) -> &Overrides {
        &self.settings.said
    }

    /// The vendor of its models and prices.
    pub fn vendor(&self) -> Vendor {
        self.vendor
    }

    /// Stores its current model list.
    pub fn learn(&self, listed: &[ListedModel]) {
        *self.listed.lock().unwrap_or_else(PoisonError::into_inner) = listed.into();
        self.described().clear();
    }

    /// Returns the known or assumed description of a model: from the overrides, its list, and the catalogue.
    pub fn describe(&self, model: &str) -> Arc<Model> {
        let mut described = self.described();
        if let Some(known) = described.get(model) {
            return Arc::clone(known);
        }
        if described.len() >= MAX_DESCRIBED {
            described.clear();
        }
        let listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        let listed = listed.iter().find(|listed| listed.id == model);
        let known = catalogue::describe_listed(self.vendor, (model, listed), self.said());
        let known = Arc::new(known);
        described.insert(model.to_owned(), Arc::clone(&known));
        known
    }

    fn described(&self) -> MutexGuard<'_, HashMap<String, Arc<Model>>> {
        self.described
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Warns about a default model that its vendor retires soon.
    pub fn warn_of_end(&self, model: &str, today: Date) {
        let known = self.describe(model);
        if let Some(end) = known.retirement(today) {
            tracing::warn!(
                llm.provider = self.id(),
                llm.model = model,
                "New sessions begin with the model `{model}`: {end}"
            );
        }
    }

    /// Returns true if it has a key. The key itself is never exposed.
    pub fn has_key(&self) -> bool {
        let key = self.settings.reach.api_key.as_ref();
        key.is_some_and(|key| !key.expose_secret().trim().is_empty())
    }

    /// The model of sessions that name none: the first offered one, otherwise the kind's default.
    pub fn default_model(&self) -> Option<&str> {
        let offered = self.models().first().map(String::as_str);
        offered.or(self.kind().default_model())
    }

    /// Sets the listed model that replaces a default that it does not list; `None` = it does list it.
    pub fn replace_default(&self, default: &str, other: Option<&str>) {
        let pair = other.map(|other| (default.to_owned(), other.to_owned()));
        *self.stand_in.lock().unwrap_or_else(PoisonError::into_inner) = pair;
    }

    /// Returns the replacement of that default, as far as the list has been seen.
    pub fn stand_in(&self, default: &str) -> Option<String> {
        let pair = self.stand_in.lock();
        let pair = pair.unwrap_or_else(PoisonError::into_inner).clone();
        pair.filter(|(missing, _)| missing == default)
            .map(|(_, other)| other)
    }

    /// Returns true if it could answer.
    pub fn is_usable(&self) -> bool {
        self.problem.is_none()
    }
}

/// The provider with its first key, and with each further key.
type Keys = (Arc<Guarded>, Vec<Arc<Guarded>>);

/// Connects each key with its own breaker: one may be out of credit while another is not.
fn connect_keys(
    settings: &ProviderSettings,
    source: &Source,
    http: &Client,
    breaker: BreakerConfig,
) -> Result<Keys, llm::Error> {
    // A scripted provider may be told to fail, which must not affect other requests.
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

/// Describes a problem for a person who can fix it (S2.22).
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

/// The refusal for sessions that name a removed provider.
pub(crate) fn removed(id: &str) -> Refusal {
    let text = format!("provider `{id}` is not configured any more; choose another model");
    Refusal::new(Code::NotFound, text)
}
