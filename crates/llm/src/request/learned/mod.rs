//! What a provider's models refused, learned from their refusals, and what was said of it.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::{Mutex, PoisonError};

use tracing::info;

use crate::Error;

/// Models of which something is kept; their names come from people.
const MODELS: usize = 256;
/// How many parts of one request a model may refuse one after the other.
const MOST_REFUSALS: usize = 6;

/// A part of a request that a model may refuse.
pub(crate) trait Part: Debug + Copy + Ord + Send + Sync {
    /// Whether the model refuses it in other requests too.
    fn is_lasting(self) -> bool {
        true
    }
}

/// What the models of one provider take none of. `P` names the parts of a request.
#[derive(Debug)]
pub(crate) struct Learned<P>(
    /// The newest last. Never held across an await.
    Mutex<Vec<Known<P>>>,
);

#[derive(Debug)]
struct Known<P> {
    model: String,
    refused: BTreeSet<P>,
    /// What people were told that it is left out.
    said: BTreeSet<P>,
}

/// Why an attempt came to nothing, and which part of it was refused; none = it was something else.
pub(crate) type Failed<P> = (Error, Option<P>);

impl<P> Default for Learned<P> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<P: Part> Learned<P> {
    /// Asks, and asks again without each part that the model turns out to take none of. An attempt is
    /// given what it has to leave out. What was refused is kept once a request went well without it.
    pub(crate) async fn ask<T, F>(
        &self,
        model: &str,
        attempt: impl Fn(BTreeSet<P>) -> F + Send + Sync,
    ) -> Result<T, Error>
    where
        T: Send,
        F: Future<Output = Result<T, Failed<P>>> + Send,
    {
        let mut refused = self.refused(model);
        let mut news = Vec::new();
        loop {
            let (error, part) = match attempt(refused.clone()).await {
                Ok(answer) => {
                    self.keep(model, &news);
                    return Ok(answer);
                }
                Err(failed) => failed,
            };
            // News is what this request was sent with: others may have learned it in the meantime.
            let part = part.filter(|part| news.len() < MOST_REFUSALS && refused.insert(*part));
            let Some(part) = part else {
                return Err(error);
            };
            info!(llm.model = %model, ?part, "Model `{model}` refuses a part of the request, which is left out");
            news.push(part);
        }
    }

    /// What people are told for the first time: each part once for a model.
    pub(crate) fn tell(&self, model: &str, left_out: Vec<(P, String)>) -> Vec<String> {
        if left_out.is_empty() {
            return Vec::new();
        }
        self.with(model, |known| {
            let news = left_out.into_iter();
            let news = news.filter(|(part, _)| known.said.insert(*part));
            news.map(|(_, text)| text).collect()
        })
    }

    /// Whether a model is known to refuse the part.
    pub(crate) fn refuses(&self, model: &str, part: P) -> bool {
        self.refused(model).contains(&part)
    }

    fn refused(&self, model: &str) -> BTreeSet<P> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.iter().find(|known| known.model == model);
        known.map(|known| known.refused.clone()).unwrap_or_default()
    }

    fn keep(&self, model: &str, news: &[P]) {
        let mut lasting = news.iter().filter(|part| part.is_lasting()).peekable();
        if lasting.peek().is_some() {
            self.with(model, |known| known.refused.extend(lasting));
        }
    }

    fn with<T>(&self, model: &str, look: impl FnOnce(&mut Known<P>) -> T) -> T {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.iter_mut().find(|known| known.model == model) {
            return look(known);
        }
        if all.len() >= MODELS {
            all.remove(0);
        }
        let mut known = Known {
            model: model.to_owned(),
            refused: BTreeSet::new(),
            said: BTreeSet::new(),
        };
        let seen = look(&mut known);
        all.push(known);
        seen
    }
}

#[cfg(test)]
mod tests;
