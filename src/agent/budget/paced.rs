//! Wraps a provider so that its answer streams only as far as it is paid for: however fast it comes, no more
//! is read, or shown, than a budget covers.

use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::StreamExt as _;

use super::gate::Gate;
use crate::llm::{Compactor, Error, ModelListing, ModelStream, Provider, ProviderKind, Request};

/// A provider whose attempts, and every piece of whose answers, pass the gate.
pub(in crate::agent) struct PacedProvider {
    provider: Arc<dyn Provider>,
    gate: Arc<Gate>,
}

impl PacedProvider {
    pub(in crate::agent) fn new(provider: Arc<dyn Provider>, gate: Arc<Gate>) -> Self {
        Self { provider, gate }
    }
}

#[async_trait]
impl Provider for PacedProvider {
    fn id(&self) -> &str {
        self.provider.id()
    }

    fn kind(&self) -> ProviderKind {
        self.provider.kind()
    }

    async fn stream(&self, request: Request) -> Result<ModelStream, Error> {
        self.gate.be_paid().await;
        let stream = self.provider.stream(request).await?;
        let gate = Arc::clone(&self.gate);
        let paced = stream.then(move |event| {
            let gate = Arc::clone(&gate);
            async move {
                if let Ok(event) = &event {
                    gate.hear(event);
                    // Metadata of an answer costs nothing.
                    if event.is_said() {
                        gate.be_paid().await;
                    }
                }
                event
            }
        });
        Ok(paced.boxed())
    }

    async fn models(&self) -> Result<ModelListing, Error> {
        self.provider.models().await
    }

    fn found_address(&self) -> Option<String> {
        self.provider.found_address()
    }

    fn compactor(&self, model: &str) -> Option<Compactor> {
        self.provider.compactor(model)
    }
}
