//! Asks the providers in their order, and collects their contexts.

mod arranged;
mod request;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;

use super::provider::{ContextError, ContextProvider, ContextSession};
use super::system_prompt::SystemPromptProvider;
use super::value::{Body, Context};
use sepal_core::domain::TurnId;
use sepal_store::clock::now;

pub use self::arranged::{Arranged, SystemText};
pub use self::request::{Assembled, Manner, ask};

/// The time limit of a provider.
const PATIENCE: Duration = Duration::from_secs(10);
/// The most bytes of text that a request takes of one provider, not counting the session's own entries.
const MAX_BYTES: usize = 256 * 1024;

/// Collects the providers of a session's requests (S4.19).
#[derive(Clone, Default)]
pub struct ContextBuilder {
    system_prompt: SystemPromptProvider,
    providers: Vec<Arc<dyn ContextProvider>>,
}

impl ContextBuilder {
    /// Sets the provider of the system prompt; without one there is no prompt.
    #[must_use]
    pub fn with_system_prompt(self, system_prompt: SystemPromptProvider) -> Self {
        Self {
            system_prompt,
            ..self
        }
    }

    /// Adds providers, in the order in which a request shows their contexts. Contexts before the history
    /// should stay the same from turn to turn, for prompt caches; contexts after it are shown right before
    /// the newest question.
    #[must_use]
    pub fn with_context_providers(
        mut self,
        providers: impl IntoIterator<Item = Arc<dyn ContextProvider>>,
    ) -> Self {
        self.providers.extend(providers);
        self
    }

    /// Makes the assembler of one session.
    pub fn build(self) -> Assembler {
        let system_prompt: Arc<dyn ContextProvider> = Arc::new(self.system_prompt);
        let providers = std::iter::once(system_prompt).chain(self.providers);
        Assembler {
            providers: providers.collect(),
            given: Arc::default(),
        }
    }
}

/// Asks the providers of one session. Clones share the results.
#[derive(Clone)]
pub struct Assembler {
    providers: Arc<[Arc<dyn ContextProvider>]>,
    /// Never held across an await.
    given: Arc<Mutex<Given>>,
}

/// The results of providers that are asked once per turn.
#[derive(Default)]
struct Given {
    turn: Option<TurnId>,
    /// By the index of the provider; empty for those that are asked each time.
    contexts: Vec<Vec<Context>>,
}

/// The contexts of all providers.
#[derive(Debug, Default)]
pub struct Gathered {
    /// In the order of the providers, each list newest first.
    lists: Vec<Vec<Context>>,
    /// The providers that gave nothing, or not everything, with the reasons; each is reported in one request
    /// of a turn.
    pub failures: Vec<(String, ContextError)>,
}

impl Assembler {
    /// Gathers the contexts for the session's next request. Each provider is asked once.
    pub async fn gather(&self, session: &ContextSession<'_>) -> Gathered {
        let at_hand = self.ask_at_hand(session);
        let mut failures = Vec::new();
        if self.given().turn != Some(session.turn()) {
            let contexts = self.ask_others(session, &at_hand, &mut failures).await;
            *self.given() = Given {
                turn: Some(session.turn()),
                contexts,
            };
        }
        Gathered {
            lists: self.with_given(at_hand),
            failures,
        }
    }

    /// Gathers without waiting, for estimates: takes the last results of providers that are asked once per
    /// turn.
    pub fn at_hand(&self, session: &ContextSession<'_>) -> Gathered {
        Gathered {
            lists: self.with_given(self.ask_at_hand(session)),
            failures: Vec::new(),
        }
    }

    /// Asks the providers that answer without waiting; `None` for the others.
    fn ask_at_hand(&self, session: &ContextSession<'_>) -> Vec<Option<Vec<Context>>> {
        let providers = self.providers.iter();
        providers
            .map(|provider| provider.at_hand(session))
            .collect()
    }

    /// Asks the providers that had nothing at hand, side by side.
    async fn ask_others(
        &self,
        session: &ContextSession<'_>,
        at_hand: &[Option<Vec<Context>>],
        failures: &mut Vec<(String, ContextError)>,
    ) -> Vec<Vec<Context>> {
        let asked = self.providers.iter().zip(at_hand);
        let asked = asked.map(|(provider, at_hand)| async move {
            match at_hand {
                Some(_) => Ok(Vec::new()),
                None => ask_one(&**provider, session).await,
            }
        });
        let mut contexts = Vec::with_capacity(self.providers.len());
        for (provider, given) in self
            .providers
            .iter()
            .zip(futures::future::join_all(asked).await)
        {
            let name = provider.name();
            let given = given.unwrap_or_else(|error| {
                failures.push((name.to_owned(), error));
                Vec::new()
            });
            let (given, is_cut) = within_limit(given);
            if is_cut {
                let limit = MAX_BYTES / 1024;
                let why = format!("it gave more than {limit} KiB; the oldest was left out");
                failures.push((name.to_owned(), ContextError::new(why)));
            }
            let filled = given.into_iter().zip(1_u32..);
            contexts.push(filled.map(|(it, nth)| filled_in(it, name, nth)).collect());
        }
        contexts
    }

    /// Fills the gaps with the results of the providers that are asked once per turn.
    fn with_given(&self, at_hand: Vec<Option<Vec<Context>>>) -> Vec<Vec<Context>> {
        tracing::trace!("Building the context of a session");
        let given = self.given();
        let lists = at_hand.into_iter().enumerate().map(|(place, at_hand)| {
            at_hand.unwrap_or_else(|| given.contexts.get(place).cloned().unwrap_or_default())
        });
        lists.collect()
    }

    fn given(&self) -> MutexGuard<'_, Given> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Asks a provider that is asked once per turn.
async fn ask_one(
    provider: &dyn ContextProvider,
    session: &ContextSession<'_>,
) -> Result<Vec<Context>, ContextError> {
    let asked = tokio::time::timeout(PATIENCE, provider.provide(session));
    asked.await.unwrap_or_else(|_| {
        let seconds = PATIENCE.as_secs();
        Err(ContextError::new(format!(
            "it took longer than {seconds} s"
        )))
    })
}

/// Returns the newest contexts that fit, and true if some did not.
fn within_limit(mut contexts: Vec<Context>) -> (Vec<Context>, bool) {
    let all = contexts.len();
    let mut left = MAX_BYTES;
    let fits = contexts.iter().take_while(|context| {
        let length = match context.body() {
            Body::Text(text) => text.text.len(),
            Body::Template(_) | Body::Entry(..) => 0,
        };
        let rest = left.checked_sub(length);
        left = rest.unwrap_or_default();
        rest.is_some()
    });
    let fitting = fits.count();
    contexts.truncate(fitting);
    (contexts, fitting < all)
}

/// Adds the standard metadata (S4.12) to a text, unless its provider set them.
fn filled_in(context: Context, provider: &str, nth: u32) -> Context {
    if !matches!(context.body(), Body::Text(_)) {
        return context;
    }
    let usual: [(&str, Value); 3] = [
        ("source", provider.into()),
        ("entry_id", format!("{provider}:{nth}").into()),
        ("timestamp", now().to_rfc3339().into()),
    ];
    let missing = usual.into_iter();
    missing.fold(context, |context, (name, value)| {
        if context.added(name).is_some() {
            return context;
        }
        context.with_metadata(name, value)
    })
}
