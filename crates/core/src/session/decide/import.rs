//! Builds the journal of a conversation that was held in another program. Pure.

use crate::domain::{Attachment, CommitId, Iteration, Timestamp, TokenUsage, TurnId};
use crate::session::command::Genesis;
use crate::session::event::{Commit, Event, SCHEMA};
use crate::session::state::SessionState;
use crate::session::title::TitleSource;

/// The author of an imported message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Speaker {
    Person,
    /// The model, with its name if known.
    Model(Option<String>),
}

/// An imported message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SaidElsewhere {
    pub by: Speaker,
    /// The time of the message, if known.
    pub at: Option<Timestamp>,
    pub text: String,
    /// Attachments that were stored in the new session.
    pub attachments: Vec<Attachment>,
}

/// Builder of an imported session. It takes the messages one after the other.
#[derive(Debug)]
pub struct Import {
    genesis: Genesis,
    now: Timestamp,
    state: SessionState,
    commits: Vec<Commit>,
}

impl Import {
    /// Starts a session with this title and creation time. No commit is later than `now`.
    #[must_use]
    pub fn new(genesis: Genesis, title: &str, at: Timestamp, now: Timestamp, id: CommitId) -> Self {
        let mut import = Self {
            genesis,
            now,
            state: SessionState::default(),
            commits: Vec::new(),
        };
        let Genesis {
            journal,
            owner,
            sandbox,
            model,
            assistant,
            servers,
        } = import.genesis.clone();
        let created = Event::Created {
            journal,
            owner,
            sandbox,
            model,
            assistant,
            servers,
        };
        let titled = Event::TitleSet {
            title: title.to_owned(),
            source: Some(TitleSource::Person),
        };
        import.push(id, Some(at), vec![created, titled]);
        import
    }

    /// Adds the next message.
    pub fn take(&mut self, said: &SaidElsewhere, id: CommitId) {
        let events = match &said.by {
            Speaker::Person => vec![Event::UserMessage {
                text: said.text.clone(),
                author: self.genesis.owner.clone(),
                client_message_id: None,
                effort: None,
                attachments: said.attachments.clone(),
            }],
            Speaker::Model(name) => {
                let model = name.as_ref().unwrap_or(&self.genesis.model.model).clone();
                let thinking = self.thinking(&model);
                vec![thinking, answered(self.next_turn(), &said.text, model)]
            }
        };
        self.push(id, said.at, events);
    }

    /// The whole journal and its state. An unanswered last message gets a cancelled turn.
    #[must_use]
    pub fn finish(mut self, id: CommitId) -> (Vec<Commit>, SessionState) {
        if !self.state.control.waiting.is_empty() {
            let thinking = self.thinking(&self.genesis.model.model);
            let cancelled = Event::Cancelled {
                turn: self.next_turn(),
                text: None,
                reasoning: None,
            };
            self.push(id, None, vec![thinking, cancelled]);
        }
        (self.commits, self.state)
    }

    fn next_turn(&self) -> TurnId {
        TurnId(self.state.control.turns.saturating_add(1))
    }

    fn thinking(&self, model: &str) -> Event {
        let waiting = self.state.control.waiting.iter();
        Event::Thinking {
            turn: self.next_turn(),
            iteration: Iteration(1),
            model: model.to_owned(),
            took: waiting.map(|message| message.seq).collect(),
            is_retry: false,
        }
    }

    /// Adds a commit as inherited, since its usage was not paid for here.
    fn push(&mut self, id: CommitId, at: Option<Timestamp>, events: Vec<Event>) {
        let control = &self.state.control;
        let at = at.unwrap_or(control.at).max(control.at).min(self.now);
        let commit = Commit {
            version: control.version.saturating_add(1),
            commit_id: id,
            schema: SCHEMA,
            at,
            seq: control.seq,
            events,
            is_inherited: true,
        };
        self.state.apply(&commit);
        self.commits.push(commit);
    }
}

fn answered(turn: TurnId, text: &str, model: String) -> Event {
    Event::Answered {
        turn,
        text: text.to_owned(),
        model,
        usage: TokenUsage::default(),
        cost: None,
        request: None,
        duration_ms: 0,
        first_token_ms: None,
        finish: "stop".to_owned(),
        stop_detail: None,
        dropped_calls: 0,
        native: None,
        reasoning: None,
        answered_by: None,
    }
}
