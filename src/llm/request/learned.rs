//! What a provider's models refused, learned from their refusals, and what was said of it.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use crate::llm::ModelEvent;

/// Models of which something is kept; their names come from people.
const MODELS: usize = 256;

/// What the models of one provider take none of. `P` names the parts of a request.
#[derive(Debug)]
pub(in crate::llm) struct Learned<P>(Mutex<Vec<Known<P>>>);

#[derive(Debug)]
struct Known<P> {
    model: String,
    refused: BTreeSet<P>,
    /// What people were told.
    said: BTreeSet<String>,
}

impl<P> Default for Learned<P> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<P: Copy + Ord> Learned<P> {
    /// What that model refused so far.
    pub(in crate::llm) fn refused(&self, model: &str) -> BTreeSet<P> {
        self.with(model, |known| known.refused.clone())
    }

    /// Remembers a refusal, and says whether it is news: what was known already was not sent.
    pub(in crate::llm) fn learn(&self, model: &str, part: P) -> bool {
        self.with(model, |known| known.refused.insert(part))
    }

    /// The events that tell people what was left out: each text once for a model.
    pub(in crate::llm) fn tell(&self, model: &str, left_out: Vec<String>) -> Vec<ModelEvent> {
        if left_out.is_empty() {
            return Vec::new();
        }
        self.with(model, |known| {
            let news = left_out.into_iter();
            let news = news.filter(|text| known.said.insert(text.clone()));
            news.map(ModelEvent::LeftOut).collect()
        })
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
mod tests {
    use super::{Learned, MODELS};

    #[test]
    fn a_refusal_is_learned_for_its_model_and_said_once() {
        let learned = Learned::default();
        assert!(learned.learn("a", 'x'));
        assert!(!learned.learn("a", 'x'), "it was not sent again");
        assert_eq!(learned.refused("a"), ['x'].into());
        assert!(learned.refused("b").is_empty());
        let tell = |model| learned.tell(model, vec!["no x".to_owned()]).len();
        assert_eq!([tell("a"), tell("a"), tell("b")], [1, 0, 1]);
        for more in 0..MODELS {
            learned.learn(&more.to_string(), 'x');
        }
        assert!(learned.refused("a").is_empty(), "the oldest are forgotten");
    }
}
