//! Opens the model provider of the settings.

use std::sync::Arc;

use anyhow::Context as _;
use async_trait::async_trait;

use crate::config;
use crate::domain::Code;
use crate::gateway::ModelList;
use crate::llm::{
    self, Catalogue, KeyFault, ListedModel, ModelStream, Provider, ProviderKind, Request,
};
use crate::net;

/// The provider, and why nobody can use it if so.
pub(super) struct Model {
    pub(super) provider: Arc<dyn Provider>,
    pub(super) name: String,
    /// Told to every client that connects (S2.22).
    pub(super) problem: Option<(Code, String)>,
}

impl Model {
    /// What the page may choose from.
    pub(super) fn list(&self) -> ModelList {
        let catalogue = Arc::new(Catalogue::built_in());
        ModelList::new(Arc::clone(&self.provider), catalogue, self.name.clone())
    }
}

pub(super) fn open(settings: &config::Llm) -> anyhow::Result<Model> {
    net::install_tls();
    let client = net::client(&net::Settings::default())?;
    let entry = settings.default_entry();
    let entry = entry.context("the default provider has no entry")?;
    let kind = match entry.kind {
        config::ProviderKind::OpenAi => ProviderKind::OpenAi,
        config::ProviderKind::Anthropic => ProviderKind::Anthropic,
        config::ProviderKind::Gemini => ProviderKind::Gemini,
        config::ProviderKind::OpenAiCompatible => ProviderKind::OpenAiCompatible,
        config::ProviderKind::Scripted => ProviderKind::Scripted,
    };
    let connected = llm::connect(
        llm::Settings {
            id: settings.provider.clone(),
            kind,
            api_key: entry.api_key.clone(),
            base_url: entry.base_url.as_ref().map(ToString::to_string),
            pace: settings.scripted_pace,
        },
        client,
    );
    let name = settings.model.clone();
    match connected {
        Ok(provider) => Ok(Model {
            provider,
            name,
            problem: None,
        }),
        Err(llm::Error::Key { provider, key }) => {
            let text = format!(
                "no API key for provider `{provider}`: set OPENAI_API_KEY, or LLM_PROVIDER to \
                 another one, and start again"
            );
            tracing::warn!("{text}");
            let provider = Arc::new(Keyless {
                id: provider,
                kind,
                key,
            });
            Ok(Model {
                provider,
                name,
                problem: Some((Code::MissingApiKey, text)),
            })
        }
        Err(error) => Err(error.into()),
    }
}

/// A provider without a key: every request says so.
struct Keyless {
    id: String,
    kind: ProviderKind,
    key: KeyFault,
}

impl Keyless {
    fn error(&self) -> llm::Error {
        llm::Error::Key {
            provider: self.id.clone(),
            key: self.key,
        }
    }
}

#[async_trait]
impl Provider for Keyless {
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
