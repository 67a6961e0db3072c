//! One provider of the registry: what it is made of, and what is wrong with it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use jiff::civil::Date;
use reqwest::Client;
use secrecy::{ExposeSecret as _, SecretString};

use crate::domain::{Code, Scope};
use crate::llm::catalogue::Model;
use crate::llm::tokens::{Calibration, Counter};
use crate::llm::{
    self, Api, Catalogue, KeyFault, ListedModel, ModelStream, Overrides, Provider, ProviderKind,
    Request, Vendor,
};
use crate::session::Refusal;

/// Models of one provider whose counts are remembered.
const CALIBRATED: usize = 64;

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
}

/// A provider that sessions may use.
pub struct Offer {
    /// What it is made of.
    pub(crate) settings: ProviderSettings,
    /// Where it comes from.
    pub source: Source,
    /// The provider; one that cannot work says why at every request.
    pub provider: Arc<dyn Provider>,
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
    pub fn connect(settings: ProviderSettings, source: Source, http: Client) -> Self {
        let id = settings.reach.id.clone();
        let vendor = Vendor::of(settings.reach.kind, settings.reach.base_url.as_deref());
        if source != Source::Settings && has_placeholder(settings.reach.api_key.as_ref()) {
            tracing::warn!(
                llm.provider = %id,
                "Provider `{id}` has only the placeholder key of the example files: its answers will be errors"
            );
        }
        let (provider, problem) =
            match llm::connect_with_cache(settings.reach.clone(), settings.said.cache_ttl, http) {
                Ok(provider) => (provider, None),
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
                    (Arc::new(unusable) as Arc<dyn Provider>, Some(problem))
                }
            };
        Self {
            settings,
            source,
            provider,
            problem,
            vendor,
            listed: Mutex::default(),
            learned: Mutex::default(),
            stand_in: Mutex::default(),
        }
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

    /// The models to offer; empty = those that it lists.
    pub fn models(&self) -> &[String] {
        &self.settings.models
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
        let listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        let mut listed = listed.iter().filter(|listed| listed.id == model);
        listed.any(|listed| listed.abilities.is_some())
            || catalogue.find(self.vendor, model).is_some()
    }

    /// The counter of one of its models.
    pub fn counter(&self, model: &str) -> Counter {
        let learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        Counter::new(self.vendor, model, learned.get(model))
    }

    /// Learns from what it reports: so many tokens were counted, and so many it says.
    pub fn calibrate(&self, model: &str, counted: u64, reported: u64) {
        let mut learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        if learned.len() >= CALIBRATED && !learned.contains_key(model) {
            learned.clear();
        }
        let known = learned.entry(model.to_owned()).or_default();
        known.learn(counted, reported);
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

/// A provider that cannot work: every request says so.
struct Unusable {
    id: String,
    kind: ProviderKind,
    key: Option<KeyFault>,
    text: String,
}

impl Unusable {
    fn error(&self) -> llm::Error {
        let provider = self.id.clone();
        match self.key {
            Some(key) => llm::Error::Key { provider, key },
            None => llm::Error::Misconfigured {
                provider,
                problem: self.text.clone(),
            },
        }
    }
}

#[async_trait]
impl Provider for Unusable {
    fn id(&self) -> &str {
        &self.id
    }

    fn kind(&self) -> ProviderKind {
        self.kind
    }

    async fn stream(&self, _: Request) -> Result<ModelStream, llm::Error> {
        Err(self.error())
    }

    async fn models(&self) -> Result<Vec<ListedModel>, llm::Error> {
        Err(self.error())
    }
}

/// A provider that was removed, for the sessions that still name it.
pub(crate) fn removed(id: &str) -> Refusal {
    let text = format!("provider `{id}` is not configured any more; choose another model");
    Refusal::new(Code::NotFound, text)
}
