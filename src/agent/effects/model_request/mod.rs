//! The first effect: ask the model, show what it says, and bring back its answer.

mod asking;
mod counting;
mod cut;
pub(in crate::agent) mod meter;
mod reading;

use std::sync::Arc;

use self::meter::Meter;
use super::Outcomes;
use super::session_agent::{RequestBase, SessionAgent};
use super::tool_call::proposal::propose;
use super::tool_call::written_files;
use super::trace::{RequestSpan, TurnTrace};
use super::watch::Thinking;
use crate::agent::attachments::Placed;
use crate::agent::feed::running_answer::DeltaKind;
use crate::agent::feed::{Feed, Notice, Ticket, What};
use crate::domain::{Code, Effort, ModelRequestId, RequestParts, TokenUsage, Weighed};
use crate::history::{self, Limits, Past};
use crate::llm::tokens::Counter;
use crate::llm::{self, ModelEvent, Progress};
use crate::providers::Candidate;
use crate::session::{
    Answer, ContextSize, Cut, Failure, ModelChoice, Proposal, Reasoning, Resolution, Shortened,
};
use crate::store::records::Payer;

/// One model request of a turn.
pub(in crate::agent) struct ModelRequest {
    pub(in crate::agent) feed: Arc<Feed>,
    /// What it says is shown under this.
    pub(in crate::agent) ticket: Ticket,
    pub(in crate::agent) agent: SessionAgent,
    pub(in crate::agent) choice: ModelChoice,
    /// How much thinking the turn's message wants.
    pub(in crate::agent) effort: Option<Effort>,
    pub(in crate::agent) said: Vec<Arc<Weighed>>,
    /// The same as the model that is asked now reads it.
    pub(in crate::agent) entries: Vec<Arc<Weighed>>,
    /// Which attachments are in the workspace.
    pub(in crate::agent) placed: Placed,
    /// Where it tells what it did beside its answer.
    pub(in crate::agent) outcomes: Outcomes,
    /// `seq` of the message that the turn began with.
    pub(in crate::agent) question: Option<u64>,
    /// How much of them the session lets it read.
    pub(in crate::agent) limits: history::Limits,
    /// Whether no tool has run in the session.
    pub(in crate::agent) is_unused: bool,
    /// Where it is told, if anybody wants to know.
    pub(in crate::agent) trace: Option<TurnTrace>,
    /// Which request of the session it is.
    pub(in crate::agent) request: ModelRequestId,
    /// Who pays for it.
    pub(in crate::agent) payer: Payer,
    /// What it uses.
    pub(in crate::agent) meter: Arc<Meter>,
    /// How many gateways asked before and are gone.
    pub(in crate::agent) lost: u32,
}

/// A request to one model.
pub(super) struct Asked {
    pub(super) body: llm::Request,
    /// What of the past it holds.
    pub(super) shown: history::Window,
    /// About how many tokens it takes.
    pub(super) tokens: u64,
    /// What they are for, before the provider's reports correct them.
    pub(super) parts: RequestParts,
}

impl ModelRequest {
    fn past(&self) -> Past<'_> {
        Past {
            entries: &self.entries,
            question: self.question,
        }
    }

    /// The request again with half of the tokens: by shorter results if that is enough, else with
    /// nothing but the newest turn; none = that is all there was (S2.26, D2).
    pub(super) fn cut(&self, shown: &history::Window, counter: Counter) -> Option<Cut> {
        let count = |entry: &Weighed| counter.of_entry(entry);
        let newest = |kept: usize| {
            let from = self.entries.len().checked_sub(kept)?;
            let entries = self.entries.get(from..)?;
            Some(Past {
                entries,
                ..self.past()
            })
        };
        let half = Limits {
            max_tokens: Some(shown.tokens / 2),
            max_messages: None,
        };
        let all = shown.entries.len();
        let mut again = history::window(newest(all)?, half, count);
        let is_shortening = again.left_out == 0;
        if !is_shortening {
            let turn = self.past().newest_turn().min(all);
            again = history::window(newest(turn)?, half, count);
        }
        let kept = again.entries.len();
        (again.tokens < shown.tokens).then_some(Cut {
            kept,
            is_shortening,
            max_tokens: shown.tokens / 2,
            before: ContextSize {
                messages: all as u64,
                tokens: shown.tokens,
            },
            after: ContextSize {
                messages: kept as u64,
                tokens: again.tokens,
            },
        })
    }

    /// The request to that model.
    pub(super) fn request(&self, choice: &ModelChoice, counter: Counter) -> Result<Asked, Failure> {
        let refused = |code, text| Failure {
            code,
            text,
            is_retryable: false,
            spent: Vec::new(),
        };
        let input = history::last_input(&self.entries);
        let of = (input, self.limits);
        let request_base = self.agent.request_base(choice, of, counter);
        let base =
            request_base.map_err(|error| refused(Code::InvalidArguments, error.to_string()))?;
        let shown = history::window(self.past(), base.limits, |entry| counter.of_entry(entry));
        let of_what = (shown.entries.as_slice(), self.question);
        let parts = self.agent.parts(&base, of_what, counter);
        let RequestBase {
            system,
            tools,
            deferral,
            tokens,
            window,
            ..
        } = base;
        let needed = tokens + shown.tokens;
        tracing::debug!(tokens = needed, "Estimated tokens being sent: {needed}");
        // What is only assumed refuses nothing: the provider knows better.
        if let Some(window) = window.filter(|window| needed > *window) {
            // The newest message alone, or the tools alone, are too large: no cut can help.
            let text = format!(
                "the request needs about {needed} tokens ({tokens} of them for the system prompt \
                 and the tools), and the model `{}` reads {window}; shorten the message, switch \
                 servers off, or choose a model with a larger window",
                choice.model
            );
            return Err(refused(Code::ContextOverflow, text));
        }
        let longest = self.agent.longest_answer(choice);
        let at_most = |most: u32| longest.map_or(most, |longest| most.min(longest));
        let request = llm::Request {
            model: choice.model.clone(),
            system: (!system.is_empty()).then_some(system),
            entries: shown.entries.clone().into(),
            contents: llm::Contents::default(),
            tools,
            deferral,
            temperature: self.agent.temperature,
            effort: self.effort.or(self.agent.effort(choice)),
            max_tokens: self.agent.max_tokens.map(at_most),
            max_output: longest,
        };
        Ok(Asked {
            body: request,
            shown,
            tokens: needed,
            parts,
        })
    }

    pub(super) fn span(
        &self,
        candidate: &Candidate,
        request: &llm::Request,
    ) -> Option<RequestSpan> {
        let trace = self.trace.clone()?;
        let asked = (&candidate.choice, self.request.iteration);
        Some(RequestSpan::begin(
            trace,
            candidate.provider.kind(),
            asked,
            request,
        ))
    }

    pub(super) fn show(&self, progress: Progress) {
        match progress {
            Progress::Event(ModelEvent::Text(piece)) => {
                self.feed.say(self.ticket, DeltaKind::Text, piece);
            }
            Progress::Event(ModelEvent::Reasoning(piece)) => {
                self.feed.say(self.ticket, DeltaKind::Reasoning, piece);
            }
            Progress::Event(ModelEvent::LeftOut(what)) => {
                tracing::warn!("{what}");
                self.feed.announce(What::Notice(Notice {
                    text: what,
                    code: "parameter_left_out".into(),
                    turn: self.request.turn,
                    retry: None,
                    cut: None,
                }));
            }
            Progress::Begins | Progress::Event(_) => {}
            Progress::Retry {
                attempt,
                max_attempts,
                delay,
                code,
                reason,
                ..
            } => {
                self.feed.restart_answer(self.ticket);
                self.feed.announce(What::Notice(Notice {
                    text: reason,
                    code: "model_retry".into(),
                    turn: self.request.turn,
                    retry: Some((attempt, max_attempts, delay, code)),
                    cut: None,
                }));
            }
        }
    }

    pub(super) async fn answer(
        &self,
        answer: llm::Answer,
        choice: &ModelChoice,
        (shown, thinking, counter): (&history::Window, &Thinking, Counter),
    ) -> Answer {
        if answer.dropped_calls > 0 {
            tracing::warn!(
                dropped = answer.dropped_calls,
                finish = ?answer.finish,
                "Calls of an answer mean nothing and were dropped"
            );
        }
        let usage = answer.usage.unwrap_or_else(|| {
            // Few servers say nothing: the request is built again for them instead of kept for all.
            let request = self.request(choice, counter).map(|asked| asked.body);
            request.map_or_else(
                |_| TokenUsage::default(),
                |request| llm::tokens::estimated_usage(&request, &answer),
            )
        });
        let calls = self.propose(&answer).await;
        Answer {
            calls,
            dropped_calls: answer.dropped_calls as u64,
            shortened: (shown.shortened > 0).then(|| {
                let messages = shown.entries.len() as u64;
                let size = |tokens| ContextSize { messages, tokens };
                Shortened {
                    results: shown.shortened as u64,
                    before: size(shown.whole_tokens),
                    after: size(shown.tokens),
                }
            }),
            text: answer.text,
            reasoning: Reasoning::of(answer.reasoning, thinking.took_ms()),
            native: answer.native,
            usage,
            cost: self.agent.describe(choice).price(&usage),
            request: None,
            first_token_ms: None,
            finish: answer.finish.map_or("stop", llm::Finish::as_str).to_owned(),
            stop_detail: answer.stop_detail,
            answered_by: None,
            spent: self.meter.spent(),
        }
    }

    /// The calls of an answer, looked up, with what is known of the files that they would write.
    async fn propose(&self, answer: &llm::Answer) -> Vec<Proposal> {
        let tools = &self.agent.tools;
        let calls = answer.calls.iter().map(|asked| {
            let provider_id = asked.provider_id.clone();
            match &asked.args {
                Ok(args) => propose(tools, provider_id, &asked.name, args),
                Err(invalid) => {
                    let name = &asked.name;
                    tracing::warn!(tool.name = %name, %invalid, "Failed to parse arguments for tool {name}: {invalid}");
                    Proposal {
                        provider_id,
                        name: name.clone(),
                        args: serde_json::Value::String(invalid.raw().to_owned()),
                        is_indirect: false,
                        resolution: Resolution::Invalid(invalid.to_string()),
                    }
                }
            }
        });
        let mut calls: Vec<Proposal> = calls.collect();
        written_files::look(&mut calls, || tools.files(self.is_unused)).await;
        calls
    }
}
