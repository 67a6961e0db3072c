//! Wraps a provider in its circuit breaker.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use async_trait::async_trait;
use futures::stream::{Stream, StreamExt as _};

use super::{Breaker, BreakerConfig, Change, Leave, Outage, Sign};
use crate::stream::idle_timeout::is_silence;
use crate::{
    Compactor, Error, ModelEvent, ModelListing, ModelStream, Provider, ProviderKind, Request,
};

/// A provider that receives no model requests during an outage. Model lists are always requested.
pub struct Guarded {
    inner: Arc<dyn Provider>,
    gate: Arc<Gate>,
}

/// The breaker and the provider that it guards.
struct Gate {
    breaker: Breaker,
    id: String,
    /// The scope of the provider, for the log.
    scope: String,
}

impl Guarded {
    /// Wraps the provider of the given scope; the breaker starts closed.
    pub fn new(inner: Arc<dyn Provider>, scope: String, config: BreakerConfig) -> Self {
        let gate = Gate {
            breaker: Breaker::new(config, inner.kind()),
            id: inner.id().to_owned(),
            scope,
        };
        Self {
            inner,
            gate: Arc::new(gate),
        }
    }

    /// The current outage; `None` if the provider accepts requests.
    pub fn outage(&self) -> Option<Outage> {
        self.gate.breaker.outage()
    }

    /// Ends the current pause, so that the next request tests at once whether the provider is back.
    pub fn hasten(&self) {
        self.gate.breaker.hasten();
    }
}

#[async_trait]
impl Provider for Guarded {
    fn id(&self) -> &str {
        self.inner.id()
    }

    fn kind(&self) -> ProviderKind {
        self.inner.kind()
    }

    async fn stream(&self, request: Request) -> Result<ModelStream, Error> {
        let leave = self.gate.breaker.admit().map_err(|outage| Error::Out {
            provider: self.gate.id.clone(),
            outage: Box::new(outage),
        })?;
        let mut watch = Watch {
            gate: Arc::clone(&self.gate),
            leave: Some(leave),
            has_output: false,
        };
        match self.inner.stream(request).await {
            Ok(events) => Ok(Box::pin(Watched { events, watch })),
            Err(error) => {
                watch.saw(Sign::of(&error));
                Err(error)
            }
        }
    }

    async fn models(&self) -> Result<ModelListing, Error> {
        self.inner.models().await
    }

    fn found_address(&self) -> Option<String> {
        self.inner.found_address()
    }

    fn compactor(&self, model: &str) -> Option<Compactor> {
        self.inner.compactor(model)
    }
}

/// Reports the result of a request to the breaker, once. An abandoned request reports nothing.
struct Watch {
    gate: Arc<Gate>,
    leave: Option<Leave>,
    has_output: bool,
}

impl Watch {
    fn saw(&mut self, sign: Sign<'_>) {
        let Some(leave) = self.leave.take() else {
            return;
        };
        let Gate { breaker, id, scope } = &*self.gate;
        match breaker.saw(leave, sign) {
            Some(Change::Out(outage)) => tracing::warn!(
                llm.provider = %id,
                %scope,
                next_try = %outage.next_try,
                said = outage.said,
                "Provider `{id}` {outage}"
            ),
            Some(Change::Back(since)) => {
                tracing::info!(llm.provider = %id, %scope, %since, "Provider `{id}` answers again");
            }
            None => {}
        }
    }

    /// Notes the first output. It closes the breaker after a trial request; other requests count as answered
    /// only when complete.
    fn hears(&mut self) {
        self.has_output = true;
        if self.leave.is_some_and(|leave| leave.is_try) {
            self.saw(Sign::Answers);
        }
    }

    fn breaks(&mut self, error: &Error) {
        let is_silent = if let Error::Cut { source, .. } = error {
            let source = source.as_deref();
            !self.has_output && source.is_some_and(|source| is_silence(source))
        } else {
            false
        };
        self.saw(if is_silent {
            Sign::Silent("it does not answer in time")
        } else {
            Sign::of(error)
        });
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.saw(Sign::Nothing);
    }
}

/// The events of an answer. Each event after the first costs two comparisons.
struct Watched {
    events: ModelStream,
    watch: Watch,
}

impl Stream for Watched {
    type Item = Result<ModelEvent, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let event = ready!(self.events.poll_next_unpin(cx));
        match &event {
            Some(Ok(ModelEvent::Finished(_))) => self.watch.saw(Sign::Answers),
            Some(Ok(_)) if self.watch.has_output => {}
            Some(Ok(_)) => self.watch.hears(),
            Some(Err(error)) => self.watch.breaks(error),
            None => self.watch.saw(Sign::Fails("it cut the answer")),
        }
        Poll::Ready(event)
    }
}
