//! Asks the model, shows the answer while it streams, and returns it as a command.

mod asking;
pub(super) mod compacting;
mod counting;
mod cut;
pub(in crate::agent) mod meter;
mod paying;
mod reading;
mod results;
mod summarising;

use std::sync::Arc;

use self::compacting::ByVendor;
use self::meter::Meter;
use self::results::Results;
use super::Outcomes;
use super::session_agent::{Reads, RequestBase, SessionAgent};
use super::tool_call::proposal::propose;
use super::tool_call::written_files::{self, Files};
use super::trace::{RequestSpan, TurnTrace};
use super::watch::Thinking;
use crate::agent::attachments::Placed;
use crate::agent::budget::Ceiling;
use crate::agent::feed::running_answer::DeltaKind;
use crate::agent::feed::{Feed, Notice, Ticket, What};
use crate::agent::journal::Journal;
use crate::context::{Arranged, Assembled, Manner};
use crate::domain::{
    Code, CompactionStrategy, Effort, EngineId, ModelRequestId, READ_MORE, RequestParts,
    TokenUsage, Weighed,
};
use crate::history::{self, Limits, Past};
use crate::llm::tokens::Counter;
use crate::llm::{self, ModelEvent, Progress};
use crate::providers::Candidate;
use crate::session::{
    Answer, Compaction, ContextSize, Cut, CutKind, Failure, Gap, ModelChoice, Proposal, Reasoning,
    Resolution, Shortened,
};
use crate::store::records::Payer;

/// One model request of a turn.
pub(in crate::agent) struct ModelRequest {
    pub(in crate::agent) feed: Arc<Feed>,
    /// The ticket for its pieces in the feed.
    pub(in crate::agent) ticket: Ticket,
    pub(in crate::agent) agent: SessionAgent,
    pub(in crate::agent) choice: ModelChoice,
    /// The effort that the turn's message asks for.
    pub(in crate::agent) effort: Option<Effort>,
    pub(in crate::agent) said: Vec<Arc<Weighed>>,
    /// The arranged contexts of the session's providers, including the history; empty before they are asked.
    pub(in crate::agent) arranged: Arranged,
    /// The history as the current model reads it.
    pub(in crate::agent) entries: Vec<Arc<Weighed>>,
    /// The attachments that are in the workspace.
    pub(in crate::agent) placed: Placed,
    /// Sends outcomes besides the answer.
    pub(in crate::agent) outcomes: Outcomes,
    /// `seq` of the message that the turn began with.
    pub(in crate::agent) question: Option<u64>,
    /// The place among the entries where some are missing.
    pub(in crate::agent) gap: Gap,
    /// The compaction that the request before used.
    pub(in crate::agent) compaction: Option<Compaction>,
    /// The part of the history that the session lets the model read.
    pub(in crate::agent) limits: history::Limits,
    /// The compaction by the vendor.
    pub(in crate::agent) by_vendor: ByVendor,
    /// True if results have been shortened since the context began.
    pub(in crate::agent) has_short_results: bool,
    /// The journal that has the whole results, up to `version`.
    pub(in crate::agent) journal: Journal,
    pub(in crate::agent) version: u64,
    /// True if the limits were lowered in this turn, after the provider found a request too long.
    pub(in crate::agent) is_limit_lowered: bool,
    /// The strategies to use if the history does not fit.
    pub(in crate::agent) strategies: Vec<CompactionStrategy>,
    /// True if no tool has run in the session.
    pub(in crate::agent) is_unused: bool,
    /// The engine that keeps its files, if there may be any.
    pub(in crate::agent) files_at: Option<EngineId>,
    /// The trace, if tracing is on.
    pub(in crate::agent) trace: Option<TurnTrace>,
    /// The turn and iteration of the request.
    pub(in crate::agent) request: ModelRequestId,
    /// The payer of the request.
    pub(in crate::agent) payer: Payer,
    /// Counts its usage.
    pub(in crate::agent) meter: Arc<Meter>,
    /// The number of earlier gateways that sent it and are gone.
    pub(in crate::agent) lost: u32,
}

/// A request to one model.
pub(super) struct Asked {
    pub(super) body: Assembled,
    /// The part of the history that it holds.
    pub(super) shown: history::Window,
    /// The approximate tokens of the request.
    pub(super) tokens: u64,
    /// Their composition, before correction by the provider's reports.
    pub(super) parts: RequestParts,
    /// A limit on the answer that a budget sets.
    pub(super) ceiling: Option<Ceiling>,
}

impl ModelRequest {
    fn past(&self) -> Past<'_> {
        Past {
            entries: &self.entries,
            question: self.question,
            gap: self.gap,
            compaction: self.compaction.as_ref(),
            compactor: self.by_vendor.resumable(),
        }
    }

    fn window(&self, past: Past<'_>, limits: Limits, counter: Counter) -> history::Window {
        let count = |entry: &Weighed| counter.of_entry(entry);
        let mut shown = history::window(past, limits, &self.strategies, count);
        if !self.arranged.is_whole() {
            // The positions in an arranged history are not those of the session.
            shown.compacted = None;
        }
        shown
    }

    /// Returns a cut to half of the tokens: by shorter results if that is enough, otherwise by the session's
    /// strategies, once in a turn, otherwise with only the newest turn; `None` = nothing is left to cut
    /// (S2.26, D2).
    pub(super) fn cut(&self, shown: &history::Window, counter: Counter) -> Option<Cut> {
        let half = self.by_vendor.limits(self.limits).at_most(shown.tokens / 2);
        let past = self.past();
        let turn = past.newest_turn();
        let mut again = self.window(past, half, counter);
        let has_earlier = again.due.is_some() || again.entries.len() > turn;
        let kind = if again.left_out == shown.left_out {
            CutKind::Shortening
        } else if has_earlier && !self.is_limit_lowered {
            CutKind::LowerLimit
        } else {
            again = self.window(past.newest(turn), half, counter);
            CutKind::FreshContext
        };
        let kept = match kind {
            CutKind::Shortening | CutKind::LowerLimit => self.entries.len(),
            // An arranged history does not tell what to drop from the session's own.
            CutKind::FreshContext if !self.arranged.is_whole() => return None,
            CutKind::FreshContext => again.entries.len(),
        };
        (again.tokens < shown.tokens).then(|| Cut {
            kept,
            kind,
            max_tokens: shown.tokens / 2,
            before: shown.size(),
            after: again.size(),
        })
    }

    /// Returns the request's base, and the window on the history. The first request that shortens a result
    /// also explains how to read the rest, which takes a little of its room.
    fn read(
        &self,
        choice: &ModelChoice,
        counter: Counter,
    ) -> Result<(RequestBase, history::Window), history::PromptError> {
        let mut reads = Reads {
            input: history::last_input(&self.entries),
            arranged: &self.arranged,
            limits: self.by_vendor.limits(self.limits),
            has_short_results: self.has_short_results,
        };
        loop {
            let base = self.agent.request_base(choice, reads, counter)?;
            let shown = self.window(self.past(), base.limits, counter);
            if reads.has_short_results || !shown.has_short_results {
                return Ok((base, shown));
            }
            reads.has_short_results = true;
        }
    }

    /// Builds the request to that model.
    pub(super) fn request(&self, choice: &ModelChoice, counter: Counter) -> Result<Asked, Failure> {
        let refused = |code, text| Failure {
            code,
            text,
            is_retryable: false,
            spent: Vec::new(),
        };
        let prepared = self.read(choice, counter);
        let (base, shown) =
            prepared.map_err(|error| refused(Code::InvalidArguments, error.to_string()))?;
        let of_what = (shown.read(), self.question);
        let compacting = self.by_vendor.compacting(self.limits, (&base, &shown));
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
        // An assumed window refuses nothing: the provider decides.
        if let Some(window) = window.filter(|window| needed > *window) {
            // The newest message alone, or the tools alone, are too large, so no cut can help.
            let text = format!(
                "the request needs about {needed} tokens ({tokens} of them for the system prompt, \
                 the tools and what stands beside the history), and the model `{}` reads {window}; shorten the message, switch \
                 servers off, or choose a model with a larger window",
                choice.model
            );
            return Err(refused(Code::ContextOverflow, text));
        }
        let longest = self.agent.longest_answer(choice);
        let at_most = |most: u32| longest.map_or(most, |longest| most.min(longest));
        let manner = Manner {
            model: choice.model.clone(),
            tools,
            deferral,
            temperature: self.agent.parts.temperature,
            effort: self.effort.or(self.agent.effort(choice)),
            max_tokens: self.agent.parts.max_tokens.map(at_most),
            max_output: longest,
            compacting,
        };
        let turn = self.past().newest_turn();
        Ok(Asked {
            body: Assembled::new(&system, (&shown.entries, turn), manner),
            shown,
            tokens: needed,
            parts,
            ceiling: None,
        })
    }

    pub(super) fn span(&self, candidate: &Candidate, request: &Assembled) -> Option<RequestSpan> {
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
                }));
            }
        }
    }

    /// Answers a call of `read_more`.
    async fn read_more(&self, provider_id: String, args: &serde_json::Value) -> Proposal {
        let results = Results {
            past: self.past(),
            journal: &self.journal,
            version: self.version,
        };
        Proposal {
            provider_id,
            name: READ_MORE.to_owned(),
            args: args.clone(),
            is_indirect: false,
            resolution: results.read(args).await,
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
            // Few providers report no usage, so rebuild the request for these instead of keeping it for all.
            let request = self.request(choice, counter).map(|asked| asked.body);
            request.map_or_else(
                |_| TokenUsage::default(),
                |request| llm::tokens::estimated_usage(&request, &answer),
            )
        });
        let calls = self.propose(&answer).await;
        let model = self.agent.describe(choice);
        let by_vendor = answer.compacted.as_ref();
        let by_vendor = by_vendor.map(|it| Box::new(compacting::told(it, choice, &model)));
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
            compacted: shown.compacted.clone(),
            text: answer.text,
            reasoning: Reasoning::of(answer.reasoning, thinking.took_ms()),
            native: answer.native,
            usage,
            cost: compacting::price(&model, usage, by_vendor.as_deref()),
            compacted_by_vendor: by_vendor,
            request: None,
            first_token_ms: None,
            finish: answer.finish.map_or("stop", llm::Finish::as_str).to_owned(),
            stop_detail: answer.stop_detail,
            answered_by: None,
            spent: self.meter.spent(),
        }
    }

    /// Resolves the calls of an answer, with the known state of the files that they would write.
    async fn propose(&self, answer: &llm::Answer) -> Vec<Proposal> {
        let tools = &self.agent.tools;
        let mut calls = Vec::with_capacity(answer.calls.len());
        for asked in &answer.calls {
            let provider_id = asked.provider_id.clone();
            calls.push(match &asked.args {
                Ok(args) if asked.name == READ_MORE => self.read_more(provider_id, args).await,
                Ok(args) if self.agent.skills.answers(&asked.name) => {
                    self.read_skill(provider_id, &asked.name, args).await
                }
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
            });
        }
        written_files::look(&mut calls, || Files::of(tools, self.is_unused)).await;
        calls
    }
}
