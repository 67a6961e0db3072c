//! Asks for an answer: the session's model first, then its fallbacks one after the other. The result is a
//! command.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::meter::Subject;
use super::paying::{self, NoAnswer, unanswered};
use super::summarising::{NoSummary, Summariser};
use super::{Asked, ModelRequest, compacting, counting, cut};
use crate::agent::budget::{Gate, Paced, Warn};
use crate::agent::effects::watch::{Thinking, Watch};
use crate::agent::feed::{Notice, What};
use crate::context::{self, Assembled};
use crate::domain::{Code, CompactionStrategy, Fault, RequestParts, RequestPurpose, Weighed};
use crate::history;
use crate::llm::tokens::Counter;
use crate::llm::{self, Progress};
use crate::providers::Candidate;
use crate::session::{Answer, Command, Failure, ModelChoice, Refusal};

/// The failed attempts.
struct Lost {
    /// The error of the session's model.
    error: llm::Error,
    /// The part of the history that it was shown.
    shown: history::Window,
    /// The counter of its tokens.
    counter: Counter,
    /// The errors of the fallbacks.
    others: Vec<llm::Error>,
}

impl Lost {
    fn new(error: llm::Error, shown: history::Window, counter: Counter) -> Self {
        Self {
            error,
            shown,
            counter,
            others: Vec::new(),
        }
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)?;
        let mut others = self.others.iter();
        others.try_for_each(|error| write!(f, "; in its place, {error}"))
    }
}

impl ModelRequest {
    /// Asks for an answer, and returns the outcome as a command.
    #[tracing::instrument(skip_all, fields(session.id = %self.agent.session, llm.provider = %self.choice.provider, llm.model = %self.choice.model, turn = %self.request.turn))]
    pub(in crate::agent) async fn run(mut self) -> Command {
        let candidates = self
            .agent
            .parts
            .providers
            .candidates(&self.agent.tenant, &self.choice);
        let candidates = match candidates {
            Ok(candidates) => candidates,
            Err(refusal) => return self.failed(unanswered(refusal)),
        };
        self.agent.tools.refresh().await;
        self.refresh_skills().await;
        self.gather().await;
        let gate = self.agent.parts.budgets.gate(self.payer.clone());
        let gate = gate.as_ref();
        let mut first: Option<Lost> = None;
        let mut candidates = VecDeque::from(candidates);
        while let Some(candidate) = candidates.pop_front() {
            let candidate = &candidate;
            let (asked, counter) = match self.prepare(candidate, gate, first.is_none()).await {
                Ok(Some(prepared)) => prepared,
                Ok(None) => continue,
                Err(failure) => return self.failed(failure),
            };
            self.begin(candidate, &asked, first.as_ref());
            let answer = self.ask(candidate, &asked, counter, gate).await;
            let request = self.request;
            let failed = match answer {
                Ok(mut answer) => {
                    answer.answered_by =
                        first.map(|lost| Box::new(candidate.instead(lost.error.to_string())));
                    return Command::Answered { request, answer };
                }
                Err(NoAnswer::Stopped(failure)) => {
                    return Command::ModelFailed { request, failure };
                }
                Err(NoAnswer::Failed(failed)) => failed,
            };
            self.meter.fail(&failed.so_far, &self.agent);
            if self.by_vendor.forgets_block(&asked, &failed.error) {
                self.feed.announce(compacting::refused(request.turn));
                candidates.push_front(candidate.clone());
                continue;
            }
            // Further fallbacks are asked after any error, unless a call was complete, which might then run
            // twice.
            let helps = first.is_some() || failed.error.may_be_elsewhere();
            let may_go_on = helps && !failed.so_far.has_whole_call;
            match &mut first {
                Some(lost) => lost.others.push(failed.error),
                None => first = Some(Lost::new(failed.error, asked.shown, counter)),
            }
            if !may_go_on {
                break;
            }
        }
        first.map_or_else(
            || self.failed(unanswered(nobody(&self.choice))),
            |lost| self.lost(&lost),
        )
    }

    /// Prepares for asking a candidate.
    fn begin(&mut self, candidate: &Candidate, asked: &Asked, first: Option<&Lost>) {
        let subject = of_turn(&candidate.choice, &asked.parts);
        self.meter.asks(subject, asked.tokens);
        if let Some(lost) = first {
            self.tell_fallback(candidate, lost);
        } else {
            let lost = std::mem::take(&mut self.lost);
            self.meter.lose(lost, &self.agent);
        }
    }

    /// Builds the request to a candidate and reserves its cost; `None` = a fallback whose window is too
    /// small, which is skipped.
    async fn prepare(
        &mut self,
        candidate: &Candidate,
        gate: Option<&Arc<Gate>>,
        is_first: bool,
    ) -> Result<Option<(Asked, Counter)>, Failure> {
        self.by_vendor.ask(candidate, self.arranged.is_whole());
        let counter = self.read_as(candidate).await;
        let mut asked = match self.with_summary(&candidate.choice, counter, gate).await {
            Ok(asked) => asked,
            Err(failure) if is_first => return Err(failure),
            Err(_) => return Ok(None),
        };
        let contents = self.contents(candidate, &asked.body).await;
        asked.body = asked.body.with_contents(contents.map_err(unanswered)?);
        if let Some(gate) = gate {
            let model = self.agent.describe(&candidate.choice);
            let longest = u32::try_from(model.max_output).unwrap_or(u32::MAX);
            let warn = |text| self.warn(text);
            let of = (model, asked.paid_tokens());
            let admitted = gate.admit(of, self.meter.cost(), &warn).await;
            let tightest = admitted.map_err(unanswered)?;
            let told = asked.body.max_tokens.filter(|&limit| limit > 0);
            asked.ceiling = gate.ceiling(tightest, told.unwrap_or(longest));
            let tokens = asked.ceiling.as_ref().map(|ceiling| ceiling.tokens);
            asked.body = asked.body.with_affordable(tokens);
            paying::tell(self, asked.ceiling.as_ref());
        }
        Ok(Some((asked, counter)))
    }

    /// Builds the request to that model, with a summary if one is due. If it cannot be written, the other
    /// strategies choose what to leave out.
    async fn with_summary(
        &mut self,
        choice: &ModelChoice,
        counter: Counter,
        gate: Option<&Arc<Gate>>,
    ) -> Result<Asked, Failure> {
        let mut asked = self.request(choice, counter)?;
        let Some(due) = asked.shown.due.take() else {
            return Ok(asked);
        };
        let warn = |text| self.warn(text);
        let summariser = Summariser {
            agent: &self.agent,
            choice: &self.choice,
            meter: &self.meter,
            gate: gate.map(|gate| (gate, &warn as Warn<'_>)),
        };
        let (summary, by) = match summariser.summary(&due).await {
            Ok(written) => written,
            Err(why) => {
                self.tell_no_summary(&why);
                self.strategies
                    .retain(|strategy| *strategy != CompactionStrategy::PartialSummary);
                return self.request(choice, counter);
            }
        };
        let before = asked.shown.tokens;
        let count = |entry: &Weighed| counter.of_entry(entry);
        asked.shown = asked.shown.summarised((&summary, by), count);
        asked.tokens += asked.shown.tokens.saturating_sub(before);
        if let Some(note) = asked.shown.entries.first() {
            counting::add(&mut asked.parts, (note, false), counter);
        }
        let turn = self.past().newest_turn();
        asked.body = asked.body.showing(&asked.shown.entries, turn);
        Ok(asked)
    }

    fn tell_no_summary(&self, why: &NoSummary) {
        tracing::warn!(%why, "What leaves the context is not summarised");
        self.feed.announce(What::Notice(Notice {
            text: format!("What leaves the context is not summarised: {why}"),
            code: "summary_failed".into(),
            turn: self.request.turn,
            retry: None,
        }));
    }

    fn failed(&self, failure: Failure) -> Command {
        let spent = self.meter.spent();
        Command::ModelFailed {
            request: self.request,
            failure: Failure { spent, ..failure },
        }
    }

    /// Ends a request that nobody answered: shortens the history and tries again, or fails the turn.
    fn lost(&self, lost: &Lost) -> Command {
        let error = &lost.error;
        if matches!(error, llm::Error::Overflow { .. })
            && let Some(cut) = self.cut(&lost.shown, lost.counter)
        {
            cut::log_overflow(error, &cut);
            return Command::Overflowed {
                request: self.request,
                cut,
                spent: self.meter.spent(),
            };
        }
        tracing::warn!(?error, others = ?lost.others, "The model request ended for good");
        self.failed(Failure {
            code: error.code(),
            text: lost.to_string(),
            is_retryable: matches!(error.fault(), Fault::Transient | Fault::External),
            spent: Vec::new(),
        })
    }

    /// Loads the attachments of a request that its model can see.
    async fn contents(
        &self,
        candidate: &Candidate,
        body: &Assembled,
    ) -> Result<llm::Contents, Refusal> {
        let agent = &self.agent;
        let sight = agent
            .reader(&candidate.choice, self.by_vendor.limits(self.limits))
            .sight();
        let attached = &agent.parts.attachments;
        attached.contents(&agent.key(), &body.entries, sight).await
    }

    /// Asks one candidate.
    async fn ask(
        &self,
        candidate: &Candidate,
        asked: &Asked,
        counter: Counter,
        gate: Option<&Arc<Gate>>,
    ) -> Result<Answer, NoAnswer> {
        let body = asked.body.clone();
        let Asked { shown, parts, .. } = asked;
        cut::log(shown);
        let mut provider = Arc::clone(&candidate.provider);
        if let Some(gate) = gate {
            provider = Arc::new(Paced::new(provider, Arc::clone(gate)));
        }
        let tools = body.tools.len();
        tracing::trace!(tools, "Formatting {tools} tools for provider.");
        let mut thinking = Thinking::default();
        let mut watch = Watch::start(provider.kind(), self.span(candidate, &body));
        let answer = context::ask(provider, body, self.agent.parts.retry, |progress| {
            watch.see(&progress);
            thinking.see(&progress);
            self.meter.see(&progress, &self.agent);
            if let (Some(gate), Progress::Retry { .. }) = (gate, &progress) {
                gate.again(self.meter.cost());
            }
            self.show(progress);
        });
        let answer = self.within_budget(answer, gate).await;
        let answer = match answer {
            Ok(answer) => answer,
            Err(refusal) => return paying::cut(self, &refusal, thinking.took_ms(), shown),
        };
        let first_token_ms = watch.end(&answer);
        let answer = answer.map_err(NoAnswer::Failed)?;
        let choice = &candidate.choice;
        self.calibrate(choice, &answer, parts.total());
        let limit = paying::limit(self, asked, &answer)?;
        let answer = self.answer(answer, choice, (shown, &thinking, counter));
        let answer = answer.await;
        Ok(Answer {
            first_token_ms,
            request: Some(self.agent.facts(of_turn(choice, parts), &answer.usage)),
            ..paying::ended_by(limit, answer)
        })
    }

    /// Waits for an answer while its budgets last.
    async fn within_budget<T>(
        &self,
        answer: impl Future<Output = T>,
        gate: Option<&Arc<Gate>>,
    ) -> Result<T, Refusal> {
        let warn = |text| self.warn(text);
        match gate {
            Some(gate) => gate.cover(answer, &warn).await,
            None => Ok(answer.await),
        }
    }

    /// Warns people that a budget is about to run out.
    fn warn(&self, text: String) {
        let turn = self.request.turn;
        self.feed
            .announce(What::Notice(Notice::of_budget(text, turn)));
    }

    /// Announces the fallback that answers, and the reason; the text of the attempt before is void.
    fn tell_fallback(&self, candidate: &Candidate, lost: &Lost) {
        let by = candidate.instead(lost.error.to_string());
        let text = format!(
            "Answered by {} because {}",
            candidate.shown(&self.choice),
            by.reason
        );
        tracing::warn!(
            fallback.provider = %by.provider,
            fallback.model = %by.model,
            reason = by.reason,
            "Another model is asked in the place of `{}/{}`",
            self.choice.provider,
            self.choice.model
        );
        let attempts = self.agent.parts.retry.max_retries.saturating_add(1);
        self.feed.restart_answer(self.ticket);
        self.feed.announce(What::Notice(Notice {
            text,
            code: "model_fallback".into(),
            turn: self.request.turn,
            retry: Some((1, attempts, Duration::ZERO, lost.error.code())),
        }));
    }
}

fn of_turn<'a>(choice: &'a ModelChoice, parts: &'a RequestParts) -> Subject<'a> {
    Subject {
        choice,
        parts,
        purpose: RequestPurpose::Turn,
    }
}

fn nobody(choice: &ModelChoice) -> Refusal {
    let text = format!("provider `{}` cannot be asked", choice.provider);
    Refusal::new(Code::ProviderUnavailable, text)
}
