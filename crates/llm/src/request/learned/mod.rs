//! Remembers which request parts a provider's models refused, and which omissions were reported.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::{Mutex, PoisonError};

use tracing::info;

use crate::Error;

/// The most models that are remembered; their names come from people.
const MODELS: usize = 256;
/// The most parts that a model may refuse one after another in one request.
const MOST_REFUSALS: usize = 6;

/// A part of a request that a model may refuse.
pub(crate) trait Part: Debug + Copy + Ord + Send + Sync {
    /// Returns true if the model refuses the part in other requests too.
    fn is_lasting(self) -> bool {
        true
    }
}

/// The parts that the models of one provider refuse. `P` names the parts of a request.
#[derive(Debug)]
pub(crate) struct Learned<P>(
    /// The known models, newest last. Never locked across an await.
    Mutex<Vec<Known<P>>>,
);

#[derive(Debug)]
struct Known<P> {
    model: String,
    refused: BTreeSet<P>,
    /// The parts whose omission was reported to people.
    said: BTreeSet<P>,
}

/// The error of an attempt, and the refused part if the error is about one.
pub(crate) type Failed<P> = (Error, Option<P>);

impl<P> Default for Learned<P> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<P: Part> Learned<P> {
    /// Runs `attempt` with the parts to omit, and again without each further part that the model refuses.
    /// Refusals are remembered once a request without those parts succeeded.
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
            // New relative to this request; meanwhile other requests may have learned the same.
            let part = part.filter(|part| news.len() < MOST_REFUSALS && refused.insert(*part));
            let Some(part) = part else {
                return Err(error);
            };
            info!(llm.model = %model, ?part, "Model `{model}` refuses a part of the request, which is left out");
            news.push(part);
        }
    }

    /// The messages about omissions that were not reported before: each part once per model.
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

    /// Returns true if the model is known to refuse the part.
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
