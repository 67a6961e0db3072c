//! Asks one candidate: shows the answer while it streams, ends it where a budget does, and makes the session's
//! answer of it.

use std::sync::Arc;

use serde_json::Value;

use super::fitting::{AdmittedRequest, FittedHistory};
use super::meter::seen;
use super::{RequestScope, of_turn, unanswered};
use crate::agent::budget::PacedProvider;
use crate::agent::effects::skills::ReadSkill;
use crate::agent::effects::tool_call::proposal::propose;
use crate::agent::effects::tool_call::written_files::{self, Files};
use crate::agent::effects::trace::RequestSpan;
use crate::agent::effects::watch::{Thinking, Watch};
use crate::agent::feed::running_answer::{DeltaKind, RunningAnswer};
use crate::agent::feed::{FeedItem, Notice};
use crate::context;
use crate::domain::{CallId, CountedEntry, Entry, MicroUsd, READ_MORE, TokenUsage};
use crate::history::{self, PartOfResult, no_result};
use crate::llm::catalogue::Model;
use crate::llm::{self, CompactedInput, ModelEvent, Progress};
use crate::session::{
    Answer, Command, CompactedByVendor, ContextSize, Failure, ModelChoice, Proposal, Reasoning,
    Refusal, RequestShortening, Resolution,
};

/// The reason a candidate gave no answer.
pub(super) enum NoAnswer {
    Failed(llm::Failed),
    /// A budget is used up, and there is no text to keep.
    Stopped(Failure),
}

impl FittedHistory<'_> {
    /// Asks the candidate.
    pub(super) async fn ask(&self, admitted: &AdmittedRequest) -> Result<Answer, NoAnswer> {
        let request = &admitted.request;
        let (scope, gate) = (&self.context.scope, self.context.gate.as_ref());
        let body = request.body.clone();
        request.log_changes();
        let mut provider = Arc::clone(&self.candidate.provider);
        if let Some(gate) = gate {
            provider = Arc::new(PacedProvider::new(provider, Arc::clone(gate)));
        }
        let tools = body.tools.len();
        tracing::trace!(tools, "Formatting {tools} tools for provider.");
        let mut thinking = Thinking::default();
        let span = scope.trace.clone().map(|trace| {
            RequestSpan::begin(
                trace,
                self.candidate.provider.kind(),
                &self.candidate.choice,
                scope.request.iteration,
                &body,
            )
        });
        let mut watch = Watch::start(provider.kind(), span);
        let answer = context::ask(provider, body, scope.agent.parts.retry, |progress| {
            watch.see(&progress);
            thinking.see(&progress);
            scope.meter.see(&progress, &scope.agent);
            if let (Some(gate), Progress::Retry { .. }) = (gate, &progress) {
                gate.again(scope.meter.cost());
            }
            scope.show(progress);
        });
        let warn = |text| scope.warn(text);
        let answer = match gate {
            Some(gate) => gate.cover(answer, &warn).await,
            None => Ok(answer.await),
        };
        let answer = match answer {
            Ok(answer) => answer,
            Err(refusal) => return scope.cut_answer(&refusal, thinking.took_ms(), &request.shown),
        };
        let first_token_ms = watch.end(&answer);
        let answer = answer.map_err(NoAnswer::Failed)?;
        self.calibrate(&answer, request.parts.total());
        let limit = scope.limit(admitted, &answer)?;
        let answer = self.answer(answer, &request.shown, &thinking).await;
        let subject = of_turn(&self.candidate.choice, &request.parts);
        Ok(Answer {
            first_token_ms,
            request: Some(scope.agent.facts(subject, &answer.usage)),
            ..ended_by(limit, answer)
        })
    }

    /// Makes the session's answer of a whole answer, with its calls resolved.
    async fn answer(
        &self,
        answer: llm::Answer,
        shown: &history::Window,
        thinking: &Thinking,
    ) -> Answer {
        if answer.dropped_calls > 0 {
            tracing::warn!(
                dropped = answer.dropped_calls,
                finish = ?answer.finish,
                "Calls of an answer mean nothing and were dropped"
            );
        }
        let usage = answer.usage.unwrap_or_else(|| {
            // Few providers report no usage, so assemble the request again for these instead of keeping it
            // for all.
            let request = self.request();
            request.map_or_else(
                |_| TokenUsage::default(),
                |request| llm::tokens::estimated_usage(&request.body, &answer),
            )
        });
        let calls = self.propose(&answer).await;
        let (scope, choice) = (&self.context.scope, &self.candidate.choice);
        let model = scope.agent.describe(choice);
        let by_vendor = answer.compacted.as_ref();
        let by_vendor = by_vendor.map(|it| Box::new(compacted_by_vendor(it, choice, &model)));
        Answer {
            calls,
            dropped_calls: answer.dropped_calls as u64,
            shortened: (shown.shortened > 0).then(|| {
                let messages = shown.entries.len() as u64;
                let size = |tokens| ContextSize { messages, tokens };
                RequestShortening {
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
            cost: price(&model, usage, by_vendor.as_deref()),
            compacted_by_vendor: by_vendor,
            request: None,
            first_token_ms: None,
            finish: answer.finish.map_or("stop", llm::Finish::as_str).to_owned(),
            stop_detail: answer.stop_detail,
            answered_by: None,
            spent: scope.meter.spent(),
        }
    }

    /// Resolves the calls of an answer, with the known state of the files that they would write.
    async fn propose(&self, answer: &llm::Answer) -> Vec<Proposal> {
        let scope = &self.context.scope;
        let tools = &scope.agent.tools;
        let mut calls = Vec::with_capacity(answer.calls.len());
        for asked in &answer.calls {
            let provider_id = asked.provider_id.clone();
            calls.push(match &asked.args {
                Ok(args) if asked.name == READ_MORE => self.read_more(provider_id, args).await,
                Ok(args) if scope.agent.skills.answers(&asked.name) => {
                    Box::pin(scope.read_skill(provider_id, &asked.name, args)).await
                }
                Ok(args) => propose(tools, provider_id, &asked.name, args),
                Err(invalid) => {
                    let name = &asked.name;
                    tracing::warn!(tool.name = %name, %invalid, "Failed to parse arguments for tool {name}: {invalid}");
                    Proposal {
                        provider_id,
                        name: name.clone(),
                        args: Value::String(invalid.raw().to_owned()),
                        is_indirect: false,
                        resolution: Resolution::Invalid(invalid.to_string()),
                    }
                }
            });
        }
        written_files::look_up(&mut calls, || Files::of(tools, scope.is_unused)).await;
        calls
    }

    /// Answers a call of `read_more`: lets the model read whole results of this session that it was shown in
    /// a short form. It shows only results that the model was given before.
    async fn read_more(&self, provider_id: String, args: &Value) -> Proposal {
        let part = self.part_of_result(args).await;
        Proposal {
            provider_id,
            name: READ_MORE.to_owned(),
            args: args.clone(),
            is_indirect: false,
            resolution: part.map_or_else(Resolution::Invalid, Resolution::Answered),
        }
    }

    async fn part_of_result(&self, args: &Value) -> Result<String, String> {
        let asked = PartOfResult::asked(args)?;
        let past = self.past();
        let (earlier, turn) = past.parted();
        if let Some(whole) = result_of(&asked.call, turn) {
            return asked.of(whole);
        }
        if result_of(&asked.call, earlier).is_none() {
            return Err(no_result(&asked.call));
        }
        // For earlier turns, memory may have only the short form.
        let scope = &self.context.scope;
        let state = scope.journal.whole(scope.version).await.map_err(|error| {
            tracing::warn!(?error, "A result cannot be read again");
            "the result cannot be read now; try again later".to_owned()
        })?;
        let whole = result_of(&asked.call, &state.entries);
        asked.of(whole.ok_or_else(|| no_result(&asked.call))?)
    }
}

fn result_of<'a>(call: &CallId, entries: &'a [Arc<CountedEntry>]) -> Option<&'a str> {
    entries.iter().rev().find_map(|entry| match &***entry {
        Entry::ToolResult { call_id, text, .. } => (call_id == call).then_some(text.as_str()),
        Entry::User { .. } | Entry::Assistant { .. } | Entry::Note { .. } => None,
    })
}

impl RequestScope {
    fn show(&self, progress: Progress) {
        match progress {
            Progress::Event(ModelEvent::Text(piece)) => {
                self.feed.say(self.ticket, DeltaKind::Text, piece);
            }
            Progress::Event(ModelEvent::Reasoning(piece)) => {
                self.feed.say(self.ticket, DeltaKind::Reasoning, piece);
            }
            Progress::Event(ModelEvent::TextWasReasoning) => {
                self.feed.turn_text_into_reasoning(self.ticket);
            }
            Progress::Event(ModelEvent::LeftOut(what)) => {
                tracing::warn!("{what}");
                self.announce("parameter_left_out", what);
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
                self.feed.announce(FeedItem::Notice(Notice {
                    text: reason,
                    code: "model_retry".into(),
                    turn: self.request.turn,
                    retry: Some((attempt, max_attempts, delay, code)),
                }));
            }
        }
    }

    /// Answers a call that reads a skill. If its files were put into the workspace, the session is told
    /// first, and the mailbox keeps the order: the journal has them before the answer.
    async fn read_skill(&self, provider_id: String, name: &str, args: &Value) -> Proposal {
        let ReadSkill { resolution, placed } = self.agent.skills.read(name, args).await;
        if let Some((id, name, path)) = placed {
            let command = Command::AttachmentPlaced {
                request: self.request,
                id,
                name,
                path,
            };
            self.outcomes.submit(command).await;
        }
        Proposal {
            provider_id,
            name: name.to_owned(),
            args: args.clone(),
            is_indirect: false,
            resolution,
        }
    }

    /// Returns the refusal that explains why an answer ended at a limit that a budget set. An answer that is
    /// only hidden reasoning counts as none. Calls that were cut are left for the model to ask again.
    fn limit(
        &self,
        admitted: &AdmittedRequest,
        answer: &llm::Answer,
    ) -> Result<Option<Refusal>, NoAnswer> {
        let is_ended = answer.finish == Some(llm::Finish::Length) && answer.calls.is_empty();
        let Some(ceiling) = admitted.ceiling.as_ref().filter(|_| is_ended) else {
            return Ok(None);
        };
        let refusal = ceiling.refusal();
        tracing::info!(%refusal, "An answer ends where its budget does");
        if !answer.text.is_empty() {
            return Ok(Some(refusal));
        }
        let estimated = || llm::tokens::estimated_of(admitted.request.tokens, answer);
        let usage = answer.usage.unwrap_or_else(estimated);
        self.meter.spend(usage, &self.agent);
        Err(NoAnswer::Stopped(Failure {
            spent: self.meter.spent(),
            ..unanswered(refusal)
        }))
    }

    /// Makes an answer of one that a budget cut: its text so far is kept, and a person may let the model
    /// continue. If there is no text, there is no answer.
    fn cut_answer(
        &self,
        refusal: &Refusal,
        took_ms: Option<u64>,
        shown: &history::Window,
    ) -> Result<Answer, NoAnswer> {
        tracing::info!(%refusal, "An answer is cut by a budget");
        let said = self.feed.running_answer();
        let said = said.filter(|said| said.request() == self.request);
        let (text, thought) = said.map_or((None, None), RunningAnswer::into_parts);
        let so_far = seen(text.as_deref(), thought.as_ref());
        let mut spent = self.meter.stop(&so_far, &self.agent);
        let text = text.unwrap_or_default();
        let own = if text.is_empty() { None } else { spent.pop() };
        let Some(own) = own else {
            return Err(NoAnswer::Stopped(Failure {
                spent,
                ..unanswered(refusal.clone())
            }));
        };
        let answer = Answer {
            text,
            reasoning: thought.and_then(|thought| Reasoning::of(thought.text, took_ms)),
            calls: Vec::new(),
            dropped_calls: 0,
            shortened: None,
            compacted: shown.compacted.clone(),
            compacted_by_vendor: None,
            native: None,
            usage: own.usage,
            cost: own.cost,
            request: own.request,
            first_token_ms: None,
            finish: String::new(),
            stop_detail: None,
            answered_by: None,
            spent,
        };
        Ok(ended_by(Some(refusal.clone()), answer))
    }
}

/// Marks an answer with the budget that ended it, if one did.
fn ended_by(limit: Option<Refusal>, answer: Answer) -> Answer {
    match limit {
        None => answer,
        Some(refusal) => Answer {
            finish: refusal.code.as_str().to_owned(),
            stop_detail: Some(refusal.message),
            ..answer
        },
    }
}

/// Describes a vendor's compaction for people.
fn compacted_by_vendor(
    compacted: &CompactedInput,
    choice: &ModelChoice,
    model: &Model,
) -> CompactedByVendor {
    let CompactedInput {
        summary,
        before,
        after,
        usage,
    } = compacted;
    tracing::info!(
        llm.provider = %choice.provider,
        llm.model = %choice.model,
        before.tokens = before,
        after.tokens = after,
        "The vendor compacted the context"
    );
    CompactedByVendor {
        provider: choice.provider.clone(),
        model: choice.model.clone(),
        summary: summary.clone(),
        before: *before,
        after: *after,
        usage: *usage,
        cost: usage.and_then(|usage| model.price(&usage)),
    }
}

/// Returns the cost of an answer. A compaction before it is priced separately, because prices may depend on
/// the length of each pass.
fn price(
    model: &Model,
    usage: TokenUsage,
    compacted: Option<&CompactedByVendor>,
) -> Option<MicroUsd> {
    let Some(part) = compacted.and_then(|it| it.usage) else {
        return model.price(&usage);
    };
    let (own, compacting) = (usage.without(part), model.price(&part)?);
    Some(MicroUsd(model.price(&own)?.0.saturating_add(compacting.0)))
}
