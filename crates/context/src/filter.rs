//! Filters contexts: by kind, by time, and by relevance to the question (S4.23).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bm25::{Document, SearchEngineBuilder, Tokenizer};

use super::kind::ContextKind;
use super::provider::{ContextError, ContextProvider, ContextSession};
use super::value::Context;
use sepal_core::domain::Timestamp;
use sepal_store::clock::now;

/// A filter of contexts. Each condition that is set has to hold; without any, all pass. The order stays.
#[derive(Debug, Clone, Default)]
pub struct ContextFilter {
    kinds: Option<BTreeSet<ContextKind>>,
    since: Option<Timestamp>,
    before: Option<Timestamp>,
    max_age: Option<Duration>,
    relevance: Option<Relevance>,
}

/// A comparison of contexts with the question, by BM25.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Relevance {
    /// The most contexts that pass, the most relevant ones.
    pub most: usize,
}

/// Splits a text into lowercase words of letters and digits.
#[derive(Debug, Default)]
struct Words;

impl Tokenizer for Words {
    fn tokenize(&self, text: &str) -> Vec<String> {
        let words = text.split(|letter: char| !letter.is_alphanumeric());
        let words = words.filter(|word| !word.is_empty());
        words.map(str::to_lowercase).collect()
    }
}

impl ContextFilter {
    /// Admits only these kinds.
    #[must_use]
    pub fn kinds(self, kinds: impl IntoIterator<Item = ContextKind>) -> Self {
        Self {
            kinds: Some(kinds.into_iter().collect()),
            ..self
        }
    }

    /// Admits only contexts from that time or later. A context without a time does not pass.
    #[must_use]
    pub fn since(self, at: Timestamp) -> Self {
        Self {
            since: Some(at),
            ..self
        }
    }

    /// Admits only contexts from before that time. A context without a time does not pass.
    #[must_use]
    pub fn before(self, at: Timestamp) -> Self {
        Self {
            before: Some(at),
            ..self
        }
    }

    /// Admits only contexts up to that age. A context without a time does not pass.
    #[must_use]
    pub fn newer_than(self, age: Duration) -> Self {
        Self {
            max_age: Some(age),
            ..self
        }
    }

    /// Of the rest, admits only the most relevant ones that share words with the question; all of them if
    /// there are no more than that, or if there is no question.
    #[must_use]
    pub fn relevance(self, relevance: Relevance) -> Self {
        Self {
            relevance: Some(relevance),
            ..self
        }
    }

    /// Returns the contexts that pass, in their order.
    pub fn apply(&self, mut contexts: Vec<Context>, question: &str) -> Vec<Context> {
        let now = now();
        contexts.retain(|context| self.admits(context, now));
        let Some(Relevance { most }) = self.relevance else {
            return contexts;
        };
        if contexts.len() <= most || question.trim().is_empty() {
            return contexts;
        }
        let relevant = relevant(&contexts, question, most);
        let numbered = contexts.into_iter().enumerate();
        let chosen = numbered.filter(|(place, _)| relevant.contains(place));
        chosen.map(|(_, context)| context).collect()
    }

    fn admits(&self, context: &Context, now: Timestamp) -> bool {
        let has_kind = |kinds: &BTreeSet<ContextKind>| kinds.contains(context.kind());
        if !self.kinds.as_ref().is_none_or(has_kind) {
            return false;
        }
        if self.since.is_none() && self.before.is_none() && self.max_age.is_none() {
            return true;
        }
        context.timestamp().is_some_and(|at| {
            self.since.is_none_or(|since| at >= since)
                && self.before.is_none_or(|before| at < before)
                && self
                    .max_age
                    .is_none_or(|age| u128::from(now.since_ms(at)) <= age.as_millis())
        })
    }
}

fn relevant(contexts: &[Context], question: &str, most: usize) -> BTreeSet<usize> {
    let documents = contexts.iter().enumerate();
    let documents =
        documents.map(|(place, context)| Document::new(place, context.content().into_owned()));
    let engine =
        SearchEngineBuilder::<usize, u32, Words>::with_tokenizer_and_documents(Words, documents)
            .build();
    let found = engine.search(question, most).into_iter();
    found.map(|found| found.document.id).collect()
}

/// A provider with a filter.
pub struct FilteredProvider {
    provider: Arc<dyn ContextProvider>,
    filter: ContextFilter,
}

impl FilteredProvider {
    /// Provides the contexts of `provider` that `filter` admits.
    pub fn new(provider: Arc<dyn ContextProvider>, filter: ContextFilter) -> Self {
        Self { provider, filter }
    }
}

#[async_trait]
impl ContextProvider for FilteredProvider {
    fn name(&self) -> &str {
        self.provider.name()
    }

    async fn provide(&self, session: &ContextSession<'_>) -> Result<Vec<Context>, ContextError> {
        let contexts = self.provider.provide(session).await?;
        Ok(self.filter.apply(contexts, session.input()))
    }

    fn at_hand(&self, session: &ContextSession<'_>) -> Option<Vec<Context>> {
        let contexts = self.provider.at_hand(session)?;
        Some(self.filter.apply(contexts, session.input()))
    }
}

#[cfg(test)]
mod tests {
    use super::{ContextFilter, Relevance};
    use crate::{Context, ContextKind};
    use sepal_core::domain::Timestamp;

    fn texts(filter: &ContextFilter, question: &str) -> String {
        let said = |kind: &str, text: &str, at: &str| {
            Context::new(kind, text).with_metadata("timestamp", at)
        };
        let contexts = vec![
            said("user", "apples and pears", "1970-01-01T00:00:03Z"),
            said("doc", "pears and plums", "1970-01-01T00:00:02Z"),
            said("doc", "cars", "1970-01-01T00:00:01Z"),
            Context::new("doc", "plums"),
        ];
        let chosen = filter.apply(contexts, question);
        let chosen: Vec<_> = chosen.iter().map(Context::content).collect();
        chosen.join(", ")
    }

    /// Asserts S4.23, S4.24.
    #[test]
    fn contexts_are_chosen_by_kind_by_time_and_by_the_question() {
        let all = ContextFilter::default();
        let everything = "apples and pears, pears and plums, cars, plums";
        assert_eq!(texts(&all, "plums"), everything);
        let docs = all.clone().kinds([ContextKind::from("doc")]);
        assert_eq!(texts(&docs, ""), "pears and plums, cars, plums");
        assert_eq!(texts(&all.clone().kinds([ContextKind::System]), ""), "");
        let since = all.clone().since(Timestamp(2_000));
        assert_eq!(texts(&since, ""), "apples and pears, pears and plums");
        let between = since.before(Timestamp(3_000));
        assert_eq!(texts(&between, ""), "pears and plums");
        let fresh = all.clone().newer_than(std::time::Duration::from_mins(1));
        assert_eq!(texts(&fresh, ""), "", "all of it is of 1970");
        let relevant = |most| all.clone().relevance(Relevance { most });
        assert_eq!(texts(&relevant(2), "Any plums?"), "pears and plums, plums");
        assert_eq!(texts(&relevant(2), "bicycles"), "");
        assert_eq!(texts(&relevant(2), " "), everything);
        assert_eq!(texts(&relevant(4), "plums"), everything);
        let both = docs.relevance(Relevance { most: 1 });
        assert_eq!(texts(&both, "cars, please"), "cars");
    }
}
