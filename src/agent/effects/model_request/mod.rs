//! Asks a model for the next answer of a turn, stage by stage: a [`ModelRequest`] has what the session knows, a
//! [`GatheredContext`] what its context providers add, a [`FittedHistory`] what one candidate reads of it, and an
//! [`AdmittedRequest`] is asked. The result is a command.

mod answering;
mod fitting;
pub(in crate::agent) mod meter;
mod summarising;

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use self::answering::NoAnswer;
use self::fitting::{AdmittedRequest, FittedHistory, FittingWays};
use self::meter::{Meter, Subject};
use super::Outcomes;
use super::session_agent::SessionAgent;
use super::trace::TurnTrace;
use crate::agent::attachments::AttachmentPaths;
use crate::agent::budget::Gate;
use crate::agent::feed::{Feed, FeedItem, Notice, Ticket};
use crate::agent::journal::Journal;
use crate::context::{ArrangedContexts, ContextSession};
use crate::domain::{
    Code, CountedEntry, Effort, EngineId, Fault, ModelRequestId, RequestParts, RequestPurpose,
};
use crate::history::{CompactionStrategy, Limits};
use crate::llm;
use crate::providers::Candidate;
use crate::session::{Command, Compaction, Cut, Failure, Gaps, ModelChoice, Refusal};
use crate::store::records::Payer;

/// One model request of a turn, with what the session knows.
pub(in crate::agent) struct ModelRequest {
    pub(in crate::agent) scope: RequestScope,
    /// The session's working context.
    pub(in crate::agent) entries: Vec<Arc<CountedEntry>>,
    pub(in crate::agent) history: HistoryScope,
    /// The attachments that are in the workspace.
    pub(in crate::agent) placed: AttachmentPaths,
    /// The engine that keeps the session's files, if there may be any.
    pub(in crate::agent) files_at: Option<EngineId>,
    /// The number of earlier gateways that sent it and are gone.
    pub(in crate::agent) restarts: u32,
}

/// The parts that all stages of a model request share.
pub(in crate::agent) struct RequestScope {
    pub(in crate::agent) feed: Arc<Feed>,
    /// The ticket for the answer's pieces in the feed.
    pub(in crate::agent) ticket: Ticket,
    pub(in crate::agent) agent: SessionAgent,
    /// The session's model.
    pub(in crate::agent) choice: ModelChoice,
    /// The effort that the turn's message asks for.
    pub(in crate::agent) effort: Option<Effort>,
    /// Sends outcomes besides the answer.
    pub(in crate::agent) outcomes: Outcomes,
    /// The journal that has the whole results, up to `version`.
    pub(in crate::agent) journal: Journal,
    pub(in crate::agent) version: u64,
    /// True if no tool has run in the session.
    pub(in crate::agent) is_unused: bool,
    /// The trace, if tracing is on.
    pub(in crate::agent) trace: Option<TurnTrace>,
    /// The turn and iteration of the request.
    pub(in crate::agent) request: ModelRequestId,
    /// The payer of the request.
    pub(in crate::agent) payer: Payer,
    /// Counts its usage.
    pub(in crate::agent) meter: Arc<Meter>,
}

/// The part of the history that a session lets its model read, and how it may be made to fit.
pub(in crate::agent) struct HistoryScope {
    /// `seq` of the message that the turn began with.
    pub(in crate::agent) question: Option<u64>,
    /// The places among the entries where some are missing.
    pub(in crate::agent) gaps: Gaps,
    /// The compaction that the request before used.
    pub(in crate::agent) compaction: Option<Compaction>,
    /// The limits of the session.
    pub(in crate::agent) limits: Limits,
    /// The limits if the model's vendor compacts.
    pub(in crate::agent) vendor_limits: Limits,
    /// True if the limits were lowered in this turn, after the provider found a request too long.
    pub(in crate::agent) is_limit_lowered: bool,
    /// True if results have been shortened since the context began.
    pub(in crate::agent) has_short_results: bool,
    /// The strategies to use if the history does not fit.
    pub(in crate::agent) strategies: Vec<Arc<dyn CompactionStrategy>>,
}

/// A model request whose context is gathered. It can be fitted to one candidate after the other.
struct GatheredContext {
    scope: RequestScope,
    /// The arranged contexts of the session's providers, including the history.
    arranged: ArrangedContexts,
    history: HistoryScope,
    /// The attachments that are in the workspace.
    placed: AttachmentPaths,
    /// The number of earlier gateways that sent it and are gone.
    restarts: u32,
    /// The gate of the budgets that pay for it, if there are any.
    gate: Option<Arc<Gate>>,
}

/// The failed attempts.
struct FailedAttempts {
    /// The error of the session's model.
    error: llm::Error,
    /// A cut of the history after which it may fit, if it was too long.
    cut: Option<Cut>,
    /// The errors of the fallbacks.
    others: Vec<llm::Error>,
}

impl fmt::Display for FailedAttempts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)?;
        let mut others = self.others.iter();
        others.try_for_each(|error| write!(f, "; in its place, {error}"))
    }
}

impl ModelRequest {
    /// Asks for an answer, and returns the outcome as a command.
    #[tracing::instrument(skip_all, fields(session.id = %self.scope.agent.session, llm.provider = %self.scope.choice.provider, llm.model = %self.scope.choice.model, turn = %self.scope.request.turn))]
    pub(in crate::agent) async fn run(self) -> Command {
        let agent = &self.scope.agent;
        let providers = &agent.parts.providers;
        providers.refresh_access(&agent.tenant).await;
        match providers.candidates(&agent.tenant, Some(&agent.owner), &self.scope.choice) {
            Ok(candidates) => {
                let gathered = self.gather().await;
                Box::pin(gathered.ask_candidates(candidates)).await
            }
            Err(refusal) => self.scope.failed(unanswered(refusal)),
        }
    }

    /// Gathers contexts from the session's providers. If one fails, the turn goes on without its context, and
    /// people are told.
    async fn gather(self) -> GatheredContext {
        let Self {
            scope,
            entries,
            mut history,
            placed,
            files_at,
            restarts,
        } = self;
        let has_files = files_at.is_some();
        scope.agent.tools.refresh().await;
        scope.refresh_skills(has_files).await;
        let key = scope.agent.key();
        let session = ContextSession::of(&key, &entries, scope.request.turn);
        let session = session.with_files(has_files);
        let gathered = scope.agent.context.gather(&session).await;
        for (provider, error) in &gathered.failures {
            tracing::warn!(context.provider = %provider, %error, "A context provider failed");
            let text = format!("Not read for this turn: {provider}: {error}");
            scope.announce("context_unavailable", text);
        }
        let arranged = gathered.arranged(&session);
        if !arranged.is_whole() {
            // The session's gaps and compaction refer to its whole history, not to a part of it.
            (history.gaps, history.compaction) = (Gaps::default(), None);
            history.strategies.retain(|strategy| !strategy.summarises());
        }
        let gate = scope.agent.parts.budgets.gate(scope.payer.clone());
        GatheredContext {
            scope,
            arranged,
            history,
            placed,
            restarts,
            gate,
        }
    }
}

impl RequestScope {
    /// Looks up the current skills; people are told about skills that cannot be read.
    async fn refresh_skills(&self, has_files: bool) {
        let skills = &self.agent.skills;
        if let Some(why) = skills.refresh(self.request.turn, has_files).await {
            tracing::warn!(why, "Skills cannot be read");
            let text = format!("Not read for this turn: skills: {why}");
            self.announce("context_unavailable", text);
        }
    }

    /// Tells people something about the request.
    fn announce(&self, code: &'static str, text: String) {
        self.feed.announce(FeedItem::Notice(Notice {
            text,
            code: code.into(),
            turn: self.request.turn,
            retry: None,
        }));
    }

    /// Warns people that a budget is about to run out.
    fn warn(&self, text: String) {
        let turn = self.request.turn;
        self.feed
            .announce(FeedItem::Notice(Notice::of_budget(text, turn)));
    }

    fn failed(&self, failure: Failure) -> Command {
        let spent = self.meter.spent();
        Command::ModelFailed {
            request: self.request,
            failure: Failure { spent, ..failure },
        }
    }

    /// Ends a request that nobody answered: shortens the history and tries again, or fails the turn.
    fn lost(&self, mut lost: FailedAttempts) -> Command {
        if let Some(cut) = lost.cut.take() {
            log_overflow(&lost.error, &cut);
            return Command::Overflowed {
                request: self.request,
                cut,
                spent: self.meter.spent(),
            };
        }
        let error = &lost.error;
        tracing::warn!(?error, others = ?lost.others, "The model request ended for good");
        self.failed(Failure {
            code: error.code(),
            text: lost.to_string(),
            is_retryable: matches!(error.fault(), Fault::Transient | Fault::External),
            spent: Vec::new(),
        })
    }

    /// Announces the fallback that answers, and the reason; the text of the attempt before is void.
    fn announce_fallback(&self, candidate: &Candidate, lost: &FailedAttempts) {
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
        self.feed.announce(FeedItem::Notice(Notice {
            text,
            code: "model_fallback".into(),
            turn: self.request.turn,
            retry: Some((1, attempts, Duration::ZERO, lost.error.code())),
        }));
    }
}

impl GatheredContext {
    /// Asks the session's model first, then its fallbacks one after the other.
    async fn ask_candidates(mut self, candidates: Vec<Candidate>) -> Command {
        let request = self.scope.request;
        let mut ways = FittingWays::new(self.history.strategies.clone());
        let mut restarts = self.restarts;
        let mut first: Option<FailedAttempts> = None;
        let mut candidates = VecDeque::from(candidates);
        while let Some(candidate) = candidates.pop_front() {
            let mut fitted = self.fit(&candidate, &mut ways).await;
            let scope = &fitted.context.scope;
            let assembled = match fitted.assemble().await {
                Ok(assembled) => assembled,
                Err(failure) if first.is_none() => return scope.failed(failure),
                // The window of this fallback is too small.
                Err(_) => continue,
            };
            let admitted = match fitted.admit(assembled).await {
                Ok(admitted) => admitted,
                Err(failure) => return scope.failed(failure),
            };
            let subject = of_turn(&candidate.choice, &admitted.request.parts);
            scope.meter.asks(subject, admitted.request.tokens);
            match &first {
                Some(lost) => scope.announce_fallback(&candidate, lost),
                None => scope
                    .meter
                    .lose(std::mem::take(&mut restarts), &scope.agent),
            }
            let failed = match fitted.ask(&admitted).await {
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
            scope.meter.fail(&failed.so_far, &scope.agent);
            let (request, error) = (&admitted.request, &failed.error);
            if fitted.forgets_block(request, error) || fitted.leaves_out_tool(request, error) {
                candidates.push_front(candidate.clone());
                continue;
            }
            // Further fallbacks are asked after any error, unless a call was complete, which might then run
            // twice.
            let helps = first.is_some() || failed.error.may_be_elsewhere();
            let may_go_on = helps && !failed.so_far.has_whole_call;
            match &mut first {
                Some(lost) => lost.others.push(failed.error),
                None => first = Some(fitted.lose(failed.error, &admitted)),
            }
            if !may_go_on {
                break;
            }
        }
        match first {
            Some(lost) => self.scope.lost(lost),
            None => self.scope.failed(unanswered(nobody(&self.scope.choice))),
        }
    }
}

impl FittedHistory<'_> {
    /// Keeps the error of the session's model, with a cut if the request was too long.
    fn lose(&self, error: llm::Error, admitted: &AdmittedRequest) -> FailedAttempts {
        let is_too_long = matches!(error, llm::Error::Overflow { .. });
        FailedAttempts {
            cut: is_too_long
                .then(|| self.cut(&admitted.request.shown))
                .flatten(),
            error,
            others: Vec::new(),
        }
    }
}

/// Logs that a request that was too long for the provider is repeated with less.
fn log_overflow(error: &llm::Error, cut: &Cut) {
    tracing::warn!(
        ?error,
        strategy = cut.kind.strategy(),
        before.messages = cut.before.messages,
        before.tokens = cut.before.tokens,
        after.messages = cut.after.messages,
        after.tokens = cut.after.tokens,
        "The request did not fit; less of the past is shown"
    );
}

fn of_turn<'a>(choice: &'a ModelChoice, parts: &'a RequestParts) -> Subject<'a> {
    Subject {
        choice,
        parts,
        purpose: RequestPurpose::Turn,
    }
}

/// Makes the failure if nobody can be asked. It is retryable, because a key may be added or another model
/// chosen.
fn unanswered(refusal: Refusal) -> Failure {
    Failure {
        code: refusal.code,
        text: refusal.message,
        is_retryable: true,
        spent: Vec::new(),
    }
}

fn nobody(choice: &ModelChoice) -> Refusal {
    let text = format!("provider `{}` cannot be asked", choice.provider);
    Refusal::new(Code::ProviderUnavailable, text)
}
