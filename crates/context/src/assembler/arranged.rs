//! Arranges the providers' contexts in the order in which a model reads them. Here the order is reversed from
//! newest first, once (C5).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use super::Gathered;
use crate::ContextKind;
use crate::conversion::{Part, parts, reduced};
use crate::prompts::{PromptWeights, Prompts, Rendered};
use crate::provider::ContextSession;
use crate::value::{Body, Context, Text};
use sepal_core::domain::{Entry, Tool, Weighed};
use sepal_core::history::PromptError;
use sepal_llm::tokens::Counter;

/// The parts of a request, oldest first.
#[derive(Debug, Clone, Default)]
pub struct Arranged {
    prompt: Option<Arc<Prompts>>,
    /// Further parts of the system prompt.
    system: Vec<Context>,
    /// Contexts before the history.
    before: Vec<Beside>,
    history: Vec<Arc<Weighed>>,
    /// Contexts right before the newest question.
    after: Vec<Beside>,
    /// True if the history is the session's whole history.
    is_whole: bool,
}

/// A context outside of the history.
#[derive(Debug, Clone)]
struct Beside {
    source: Arc<str>,
    entry: Arc<Weighed>,
}

/// The system prompt of one request, with the contexts outside of the history.
#[derive(Debug, Clone, Default)]
pub struct SystemText {
    /// The whole prompt; empty = none.
    pub text: Arc<str>,
    rendered: Rendered,
    system: Vec<Context>,
    pub(super) before: Vec<Arc<Weighed>>,
    pub(super) after: Vec<Arc<Weighed>>,
    sources: Vec<Beside>,
}

impl Gathered {
    /// Arranges everything in the order of a request.
    pub fn arranged(self, session: &ContextSession<'_>) -> Arranged {
        let mut arranged = Arranged {
            history: Vec::with_capacity(session.entries().len()),
            ..Arranged::default()
        };
        let mut entry: Option<Arc<Weighed>> = None;
        let mut kept: Vec<Part> = Vec::new();
        for context in self
            .lists
            .into_iter()
            .flat_map(|list| list.into_iter().rev())
        {
            let Body::Entry(of, part) = context.body() else {
                arranged.end(entry.take(), &kept);
                arranged.add(context);
                continue;
            };
            if entry.as_ref().is_none_or(|open| !Arc::ptr_eq(open, of)) {
                arranged.end(entry.replace(Arc::clone(of)), &kept);
                kept.clear();
            }
            kept.push(*part);
        }
        arranged.end(entry, &kept);
        let all = session.entries();
        let pairs = arranged.history.iter().zip(all);
        arranged.is_whole = arranged.history.len() == all.len()
            && pairs
                .into_iter()
                .all(|(one, other)| Arc::ptr_eq(one, other));
        arranged
    }
}

impl Arranged {
    /// Arranges only these contexts, given newest first, without a session: for requests about one, such as
    /// that for its title.
    pub fn of(contexts: impl IntoIterator<Item = Context>) -> Self {
        let mut arranged = Self::default();
        let contexts: Vec<_> = contexts.into_iter().collect();
        for context in contexts.into_iter().rev() {
            arranged.add(context);
        }
        arranged
    }

    /// The history, oldest first: the original entries, or their remaining parts.
    pub fn history(&self) -> &[Arc<Weighed>] {
        &self.history
    }

    /// The entries outside of the history, for counting.
    pub fn beside(&self) -> impl Iterator<Item = &Arc<Weighed>> {
        let beside = self.before.iter().chain(&self.after);
        beside.map(|it| &it.entry)
    }

    /// Returns true if the history is the session's whole history, so that its compaction applies.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Renders the system prompt with these tools and the question, and adds the contexts outside of the
    /// history.
    pub fn system(&self, tools: &Arc<[Tool]>, input: &str) -> Result<SystemText, PromptError> {
        let rendered = match &self.prompt {
            Some(prompt) => prompt.with(tools, input)?,
            None => Rendered::default(),
        };
        let mut text = Arc::clone(&rendered.system);
        if !self.system.is_empty() {
            let more = self.system.iter().map(|context| context.content());
            let all: Vec<_> = std::iter::once((&*rendered.system).into())
                .chain(more)
                .filter(|part| !part.trim().is_empty())
                .collect();
            text = all.join("\n\n").into();
        }
        let entries = |beside: &[Beside]| beside.iter().map(|it| Arc::clone(&it.entry)).collect();
        Ok(SystemText {
            text,
            rendered,
            system: self.system.clone(),
            before: entries(&self.before),
            after: entries(&self.after),
            sources: self.before.iter().chain(&self.after).cloned().collect(),
        })
    }

    /// Adds these parts of an entry.
    fn end(&mut self, entry: Option<Arc<Weighed>>, kept: &[Part]) {
        let Some(entry) = entry else { return };
        let is_whole = kept.len() == parts(&entry).count();
        let left = if is_whole {
            Some(entry)
        } else {
            reduced(&entry, kept)
        };
        self.history.extend(left);
    }

    /// Adds a context that is not part of an entry.
    fn add(&mut self, context: Context) {
        let text = match (context.body(), context.kind()) {
            (Body::Template(prompt), _) if self.prompt.is_none() => {
                self.prompt = Some(Arc::clone(prompt));
                return;
            }
            (Body::Text(_), ContextKind::System) => {
                self.system.push(context);
                return;
            }
            // Vendors accept only their own reasoning, and only one template is rendered.
            (Body::Text(_), ContextKind::Thinking) | (Body::Template(_) | Body::Entry(..), _) => {
                return;
            }
            (Body::Text(text), _) => text,
        };
        let beside = Beside {
            source: context.source().unwrap_or("context").into(),
            entry: Arc::clone(shown(text, &context)),
        };
        if self.history.is_empty() {
            self.before.push(beside);
        } else {
            self.after.push(beside);
        }
    }
}

/// Returns the entry that a request shows for a text. Calls and results without their counterparts are shown
/// as material as well.
fn shown<'a>(text: &'a Text, context: &Context) -> &'a Arc<Weighed> {
    text.entry(|words| match context.kind() {
        kind @ (ContextKind::User | ContextKind::Assistant) => Entry::message(kind.as_str(), words),
        ContextKind::System
        | ContextKind::ToolCall
        | ContextKind::ToolResult
        | ContextKind::Thinking
        | ContextKind::Custom(_) => Entry::Note {
            text: framed(words, context),
        },
    })
}

/// Frames material with two lines that name its kind and source. It cannot end its own frame.
fn framed(words: &str, context: &Context) -> String {
    let attribute = |value: &str| {
        value
            .replace(['"', '<', '>', '\n', '\r'], "_")
            .chars()
            .take(200)
            .collect::<String>()
    };
    let source = attribute(context.source().unwrap_or_default());
    let kind = attribute(context.kind().as_str());
    let mut framed = String::with_capacity(words.len() + 80);
    // Writing to a string cannot fail.
    let _ = writeln!(framed, "<context type=\"{kind}\" source=\"{source}\">");
    framed.push_str(&words.replace("</context", "<\\/context"));
    framed.push_str("\n</context>");
    framed
}

impl SystemText {
    /// Counts the tokens of everything, including the tools.
    pub fn tokens(&self, tools: &[Tool], counter: Counter) -> u64 {
        let weights = self.weights(tools, counter);
        let beside = self.before.iter().chain(&self.after);
        let beside: u64 = beside.map(|entry| counter.counted(entry)).sum();
        let system: u64 = self.of_system(counter).map(|(_, tokens)| tokens).sum();
        let tools: u64 = weights.tools.iter().sum();
        counter.corrected(weights.system + system + tools + beside)
    }

    /// Counts the tokens of the prompt's template and of the tools, before correction by the provider's
    /// reports.
    pub fn weights(&self, tools: &[Tool], counter: Counter) -> Arc<PromptWeights> {
        self.rendered.weights(tools, counter)
    }

    /// Counts the tokens of the providers' contexts outside of the history, by source, before correction.
    pub fn sources(&self, counter: Counter) -> BTreeMap<String, u64> {
        let beside = self.sources.iter();
        let beside = beside.map(|it| (&*it.source, counter.counted(&it.entry)));
        let mut sources = BTreeMap::new();
        for (source, tokens) in beside.chain(self.of_system(counter)) {
            *sources.entry(source.to_owned()).or_default() += tokens;
        }
        sources
    }

    fn of_system(&self, counter: Counter) -> impl Iterator<Item = (&str, u64)> {
        self.system.iter().map(move |context| {
            let tokens = match context.body() {
                Body::Text(text) => counter.counted(text.entry(|words| Entry::Note {
                    text: words.to_owned(),
                })),
                Body::Template(_) | Body::Entry(..) => 0,
            };
            (context.source().unwrap_or("context"), tokens)
        })
    }
}
