//! Defines the context, the only structure between sources and the prompt (S4.1).

use std::borrow::Cow;
use std::sync::Arc;

use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::conversion::{self, Metadata, Part};
use super::kind::ContextKind;
use super::prompts::Prompts;
use sepal_core::domain::{CountedEntry, Entry, Memo, Timestamp};

/// One piece of what a model may read: kind, content and metadata. Cheap to clone. A context from the history
/// holds the original entry, of which the request is built; its content and metadata are computed when
/// somebody reads them (S4.17).
#[derive(Debug, Clone)]
pub struct Context {
    kind: ContextKind,
    body: Body,
    /// Metadata in addition to that of the body.
    added: Option<Arc<Metadata>>,
}

/// The source of a context's content.
#[derive(Debug, Clone)]
pub(super) enum Body {
    Text(Arc<Text>),
    /// A system prompt whose placeholders the assembler fills in.
    Template(Arc<Prompts>),
    /// A part of an entry.
    Entry(Arc<CountedEntry>, Part),
}

/// A text, and its cached entry for requests.
#[derive(Debug)]
pub(super) struct Text {
    pub(super) text: Arc<str>,
    entry: Memo<Arc<CountedEntry>>,
}

impl Context {
    /// Makes a text of that kind.
    pub fn new(kind: impl Into<ContextKind>, text: impl Into<Arc<str>>) -> Self {
        Self {
            kind: kind.into(),
            body: Body::Text(Arc::new(Text {
                text: text.into(),
                entry: Memo::default(),
            })),
            added: None,
        }
    }

    /// Makes a part of the system prompt.
    pub fn system(text: impl Into<Arc<str>>) -> Self {
        Self::new(ContextKind::System, text)
    }

    /// Makes a message of a person.
    pub fn user(text: impl Into<Arc<str>>) -> Self {
        Self::new(ContextKind::User, text)
    }

    pub(super) fn of_template(prompts: Arc<Prompts>) -> Self {
        Self {
            kind: ContextKind::System,
            body: Body::Template(prompts),
            added: None,
        }
    }

    /// Returns the contexts of an entry, newest first.
    pub(super) fn of_entry(entry: &Arc<CountedEntry>) -> impl Iterator<Item = Self> {
        let parts = conversion::parts(entry).rev();
        parts.map(|part| Self::of_part(entry, part))
    }

    fn of_part(entry: &Arc<CountedEntry>, part: Part) -> Self {
        Self {
            kind: conversion::kind(entry, part),
            body: Body::Entry(Arc::clone(entry), part),
            added: None,
        }
    }

    /// Adds a metadata value. The shared content stays unchanged (S4.14).
    #[must_use]
    pub fn with_metadata(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        let added = self.added.get_or_insert_default();
        Arc::make_mut(added).insert(name.into(), value.into());
        self
    }

    /// Turns the text into material of that name, whatever its kind: text from an untrusted source must not
    /// speak as the operator, a person or the model.
    #[must_use]
    pub fn as_material(self, name: &str) -> Self {
        let mut kind = ContextKind::from(name);
        if !matches!(kind, ContextKind::Custom(_)) {
            kind = ContextKind::Custom("material".into());
        }
        Self { kind, ..self }
    }

    /// The kind.
    pub fn kind(&self) -> &ContextKind {
        &self.kind
    }

    /// Returns the content, computed now if it is part of an entry.
    pub fn content(&self) -> Cow<'_, str> {
        match &self.body {
            Body::Text(text) => Cow::Borrowed(&text.text),
            Body::Template(prompts) => Cow::Borrowed(prompts.template()),
            Body::Entry(entry, part) => conversion::content(entry, *part),
        }
    }

    /// Returns the metadata: that of the entry, and all added values.
    pub fn metadata(&self) -> Metadata {
        let mut metadata = match &self.body {
            Body::Entry(entry, part) => conversion::metadata(entry, *part),
            Body::Text(_) | Body::Template(_) => Metadata::new(),
        };
        let added = self.added.iter().flat_map(|added| added.iter());
        metadata.extend(added.map(|(name, value)| (name.clone(), value.clone())));
        metadata
    }

    /// Returns an added metadata value.
    pub(super) fn added(&self, name: &str) -> Option<&Value> {
        self.added.as_ref()?.get(name)
    }

    /// The provider that gave it; `None` for the session's history.
    pub fn source(&self) -> Option<&str> {
        self.added("source")?.as_str()
    }

    /// The time of the context, if known.
    pub fn timestamp(&self) -> Option<Timestamp> {
        if let Some(at) = self.added("timestamp").and_then(Value::as_str) {
            let at = at.parse::<jiff::Timestamp>().ok()?;
            return Some(Timestamp(at.as_millisecond()));
        }
        match &self.body {
            Body::Entry(entry, _) => entry.stamp().map(|stamp| stamp.at),
            Body::Text(_) | Body::Template(_) => None,
        }
    }

    pub(super) fn body(&self) -> &Body {
        &self.body
    }
}

impl Serialize for Context {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut fields = to.serialize_struct("Context", 3)?;
        fields.serialize_field("type", &self.kind)?;
        fields.serialize_field("content", &self.content())?;
        fields.serialize_field("metadata", &self.metadata())?;
        fields.end()
    }
}

impl Text {
    /// Returns the entry that a request shows for the text, made once and counted once.
    pub(super) fn entry(&self, make: impl FnOnce(&str) -> Entry) -> &Arc<CountedEntry> {
        self.entry.get(|| CountedEntry::new(make(&self.text)))
    }
}
