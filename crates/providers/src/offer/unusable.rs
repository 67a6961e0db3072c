//! Stands in for a provider that cannot work.

use async_trait::async_trait;

use sepal_llm::{
    self as llm, KeyFault, ModelListing, ModelStream, Provider, ProviderKind, Request,
};

/// A provider that cannot work and returns the reason for every request.
pub(super) struct Unusable {
    pub(super) id: String,
    pub(super) kind: ProviderKind,
    pub(super) key: Option<KeyFault>,
    pub(super) text: String,
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

    async fn models(&self) -> Result<ModelListing, llm::Error> {
        Err(self.error())
    }
}
