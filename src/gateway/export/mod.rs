//! Exports a session as a document: messages, answers and calls in reading order. The document is written
//! piece by piece, so that a long session does not need memory for all of its text.

mod call;
mod format;
mod html;
mod json;
mod markdown;

use format::Audience;
pub(in crate::gateway) use format::{Form, Format};

use std::collections::{HashMap, HashSet};
use std::io;

use self::call::{CallPart, call_part};
use crate::agent::ShownEvent;
use crate::domain::{Attachment, BlobId, CallId, SessionId, Timestamp, WorkspaceCopy};
use crate::session::{Decider, Event, Reasoning, SaidCall, Verdict};

/// The destination of a document.
pub(in crate::gateway) trait Sink {
    /// Adds text as it is. An error ends the writing.
    fn text(&mut self, text: &str) -> io::Result<()>;

    /// Adds the content of an attachment, in base64.
    fn content(&mut self, id: &BlobId) -> io::Result<()>;
}

/// A session to be exported.
#[derive(Debug)]
pub(in crate::gateway) struct Document {
    session: SessionId,
    /// The time of the export.
    at: Timestamp,
    events: Vec<ShownEvent>,
}

/// The conversation that the events describe, as the page shows it.
#[derive(Debug, Default)]
struct Conversation {
    parts: Vec<Part>,
    /// The index in `parts` of the newest call with each id.
    calls: HashMap<CallId, usize>,
}

/// A part of the conversation.
#[derive(Debug)]
enum Part {
    User {
        author: String,
        at: Timestamp,
        text: String,
        attachments: Vec<Attachment>,
    },
    Agent {
        /// The model, if the event names it.
        model: Option<String>,
        at: Timestamp,
        reasoning: Option<String>,
        text: String,
    },
    Call(Box<CallPart>),
    /// A notice about the session.
    Note {
        at: Timestamp,
        text: String,
    },
}

impl Document {
    /// Creates an empty document.
    pub(in crate::gateway) fn new(session: SessionId, at: Timestamp) -> Self {
        Self {
            session,
            at,
            events: Vec::new(),
        }
    }

    /// Adds the next event of the transcript.
    pub(in crate::gateway) fn push(&mut self, shown: ShownEvent) {
        self.events.push(shown);
    }

    /// Returns the latest title of the session, or "Session".
    pub(in crate::gateway) fn title(&self) -> &str {
        let mut newest = self.events.iter().rev();
        let title = newest.find_map(|shown| {
            if let Event::TitleSet { title, .. } = &shown.event {
                return Some(&**title);
            }
            None
        });
        title.filter(|title| !title.is_empty()).unwrap_or("Session")
    }

    /// Writes the document. The time grows with the length of the session; only the sink may block.
    pub(in crate::gateway) fn write(&self, form: Form, to: &mut dyn Sink) -> io::Result<()> {
        match form {
            Form::Export(Format::Markdown) => markdown::write(self, to),
            Form::Export(Format::Html) => html::write(self, Audience::Owner, to),
            Form::Export(Format::Json) => json::write(self, to),
            Form::Shared => html::write(self, Audience::Others, to),
        }
    }

    /// Returns the conversation without withdrawn messages. Others than the owner get no reasoning and no
    /// notices about other sessions.
    fn parts(&self, audience: Audience) -> Vec<Part> {
        let events = self.events.iter();
        let withdrawn = events.filter_map(|shown| {
            if let Event::Withdrawn { message_seq, .. } = shown.event {
                return Some(message_seq);
            }
            None
        });
        let withdrawn: HashSet<u64> = withdrawn.collect();
        let mut conversation = Conversation::default();
        for shown in &self.events {
            let is_ours = audience == Audience::Others
                && matches!(
                    shown.event,
                    Event::Forked { .. } | Event::WorkspaceCopied { .. }
                );
            if !withdrawn.contains(&shown.seq) && !is_ours {
                conversation.read(shown);
            }
        }
        if audience == Audience::Others {
            conversation.forget_thoughts();
        }
        conversation.parts
    }

    /// Returns all attachments, each once.
    fn attachments(&self) -> Vec<&Attachment> {
        let attached = self.events.iter().flat_map(|shown| {
            if let Event::UserMessage { attachments, .. } = &shown.event {
                attachments
            } else if let Event::Ended { outcome, .. } = &shown.event {
                outcome.attachments()
            } else {
                &[]
            }
        });
        let mut seen = HashSet::new();
        attached.filter(|it| seen.insert(&it.id)).collect()
    }
}

impl Conversation {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "what is no part of the conversation is left out"
    )]
    fn read(&mut self, shown: &ShownEvent) {
        let at = shown.at;
        match &shown.event {
            Event::UserMessage {
                text,
                author,
                attachments,
                ..
            } => self.parts.push(Part::User {
                author: author.name.clone(),
                at,
                text: text.clone(),
                attachments: attachments.clone(),
            }),
            Event::Said {
                text,
                calls,
                reasoning,
                ..
            } => {
                self.say(at, text, reasoning.as_ref());
                for call in calls {
                    self.begin_call(call_part(call, None));
                }
            }
            Event::ViewCalled { call, .. } => {
                let asked_by = call.origin.as_ref().map(|origin| origin.tool.clone());
                self.begin_call(call_part(&SaidCall::of(call), asked_by));
            }
            Event::Answered {
                text,
                model,
                reasoning,
                ..
            } => self.parts.push(Part::Agent {
                model: Some(model.clone()),
                at,
                reasoning: reasoning.as_ref().map(|it| it.text.clone()),
                text: text.clone(),
            }),
            Event::Decided { .. } | Event::Ended { .. } => self.follow_call(&shown.event),
            other => self.note(other, at),
        }
    }

    /// Adds the text and reasoning that precede the final answer, if there are any.
    fn say(&mut self, at: Timestamp, text: &str, reasoning: Option<&Reasoning>) {
        if !text.is_empty() || reasoning.is_some() {
            self.parts.push(Part::Agent {
                model: None,
                at,
                reasoning: reasoning.map(|it| it.text.clone()),
                text: text.to_owned(),
            });
        }
    }

    /// Removes the model's reasoning.
    fn forget_thoughts(&mut self) {
        for part in &mut self.parts {
            if let Part::Agent { reasoning, .. } = part {
                *reasoning = None;
            }
        }
        let is_empty = |part: &Part| matches!(part, Part::Agent { text, .. } if text.is_empty());
        self.parts.retain(|part| !is_empty(part));
    }

    /// Updates a call with its decision or outcome.
    fn follow_call(&mut self, event: &Event) {
        if let Event::Decided {
            call,
            verdict,
            by,
            reason,
            edited,
            edited_by,
            gesture,
            dry_run,
            expires_after_ms: _,
        } = event
        {
            let Some(part) = self.call(call) else { return };
            if let Some(edited) = edited {
                part.edit(&edited.args);
            }
            let verdict = match verdict {
                Verdict::Approved => "approved",
                Verdict::Rejected => "rejected",
                Verdict::TakenBack => {
                    part.decided = None;
                    return;
                }
            };
            let who = match by {
                Decider::Person(person) => person.name.clone(),
                Decider::Rule { name, .. } => format!("rule {name}"),
                Decider::Reviewer { model, reason, .. } => format!("{model} ({reason})"),
                Decider::System => "Sepal".to_owned(),
            };
            let change = match edited_by {
                Some(editor) => format!(", with arguments that {} changed", editor.name),
                None if edited.is_some() => ", with changed arguments".to_owned(),
                None => String::new(),
            };
            let taken = dry_run.as_ref();
            let taken = taken.map_or("", |_| ", with the result of its dry run");
            let why = reason.as_ref().map(|reason| format!(": {reason}"));
            let why = why.unwrap_or_default();
            let shown = gesture.map(|means| format!(", shown by {}", means.as_str()));
            let shown = shown.unwrap_or_default();
            part.decided = Some(format!("{verdict} by {who}{shown}{change}{taken}{why}"));
        } else if let Event::Ended {
            call,
            outcome,
            duration_ms,
            ..
        } = event
        {
            let Some(part) = self.call(call) else { return };
            part.status = Some(outcome.status());
            part.duration_ms = *duration_ms;
            part.output = outcome.text();
            part.attachments = outcome.attachments().to_vec();
        }
    }

    fn begin_call(&mut self, call: CallPart) {
        self.calls.insert(call.id.clone(), self.parts.len());
        self.parts.push(Part::Call(Box::new(call)));
    }

    fn call(&mut self, id: &CallId) -> Option<&mut CallPart> {
        let place = *self.calls.get(id)?;
        match self.parts.get_mut(place) {
            Some(Part::Call(call)) => Some(&mut **call),
            Some(Part::User { .. } | Part::Agent { .. } | Part::Note { .. }) | None => None,
        }
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "what is no part of the conversation is left out"
    )]
    fn note(&mut self, event: &Event, at: Timestamp) {
        let text = match event {
            Event::TurnFailed { text, .. } => format!("The turn failed: {text}"),
            Event::Cancelled {
                text, reasoning, ..
            } => {
                self.say(at, text.as_deref().unwrap_or_default(), reasoning.as_ref());
                "The turn was stopped.".to_owned()
            }
            Event::CompactedByVendor(made) => {
                let summary = made.summary.as_deref();
                let summary = summary.map(|summary| format!(" It goes on from this:\n{summary}"));
                format!(
                    "{} compacted what the model reads.{}",
                    made.provider,
                    summary.unwrap_or_default()
                )
            }
            Event::ContextReset => "The context was begun anew.".to_owned(),
            Event::ModelChosen { model } => {
                format!(
                    "From here on `{}` of {} answers.",
                    model.model, model.provider
                )
            }
            Event::Settled {
                name, happened, by, ..
            } => {
                let fate = if *happened {
                    "happened"
                } else {
                    "did not happen"
                };
                format!("{} said that the call of `{name}` {fate}.", by.name)
            }
            Event::Forked { origin, .. } => {
                format!(
                    "Up to here this is the past of the session {}.",
                    origin.session
                )
            }
            Event::WorkspaceCopied { outcome } => match outcome {
                WorkspaceCopy::Copied { .. } => {
                    "The workspace is a copy of that session's, as it was now.".to_owned()
                }
                WorkspaceCopy::Empty(_) => "The workspace is empty.".to_owned(),
            },
            _ => return,
        };
        self.parts.push(Part::Note { at, text });
    }
}

/// Formats a time to the minute, in UTC.
fn minute(at: Timestamp) -> String {
    let text = at.to_rfc3339();
    let minute = text.get(..16).unwrap_or(&text);
    format!("{} UTC", minute.replace('T', " "))
}

#[cfg(test)]
mod tests;
