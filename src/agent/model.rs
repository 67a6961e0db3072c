//! The first effect: ask the model, show what it says, and bring back its answer.

use std::sync::Arc;
use std::time::Instant;

use super::answer::DeltaKind;
use super::factory::{AgentParts, Standing};
use super::feed::{Feed, Notice, Ticket, What};
use super::trace::{RequestSpan, TurnTrace};
use crate::domain::{Code, Fault, TokenUsage, Weighed};
use crate::history;
use crate::llm::{self, ModelEvent, Progress};
use crate::session::{
    Answer, Command, ContextSize, Failure, ModelChoice, Proposal, Refusal, Resolution,
};
use crate::telemetry::instruments;

/// One model request of a turn.
pub(super) struct Asking {
    pub(super) feed: Arc<Feed>,
    /// What it says is shown under this.
    pub(super) ticket: Ticket,
    pub(super) parts: AgentParts,
    pub(super) choice: ModelChoice,
    pub(super) entries: Vec<Arc<Weighed>>,
    /// How much of them the session lets it read.
    pub(super) limits: history::Limits,
    /// Where it is told, if anybody wants to know.
    pub(super) trace: Option<TurnTrace>,
    pub(super) turn: u64,
    pub(super) iteration: u32,
}

impl Asking {
    /// The outcome as a command.
    #[tracing::instrument(skip_all, fields(session.id = %self.parts.session, llm.provider = %self.choice.provider, llm.model = %self.choice.model, turn = self.turn))]
    pub(super) async fn run(self) -> Command {
        let (turn, iteration) = (self.turn, self.iteration);
        let failed = |failure| Command::ModelFailed {
            turn,
            iteration,
            failure,
        };
        let parts = &self.parts;
        let provider = match parts.providers.provider(&parts.tenant, &self.choice) {
            Ok(provider) => provider,
            Err(refusal) => return failed(unanswered(refusal)),
        };
        parts.tools.refresh().await;
        let (request, shown) = match self.request() {
            Ok(asked) => asked,
            Err(failure) => return failed(failure),
        };
        let mut watch = Watch::start(provider.kind(), self.span(provider.kind(), &request));
        let answer = llm::ask(provider, request, self.parts.retry, |progress| {
            watch.see(&progress);
            self.show(progress);
        });
        let answer = answer.await;
        watch.end(&answer);
        match answer {
            Ok(answer) => {
                let answer = self.answer(answer);
                Command::Answered {
                    turn,
                    iteration,
                    answer,
                }
            }
            Err(error) => {
                if matches!(error, llm::Error::Overflow { .. })
                    && let Some(fresh) = self.fresh_context(&shown)
                {
                    tracing::warn!(?error, "The request did not fit; less of the past is shown");
                    return fresh;
                }
                tracing::warn!(?error, "The model request ended for good");
                failed(Failure {
                    code: error.code(),
                    text: error.to_string(),
                    is_retryable: matches!(error.fault(), Fault::Transient | Fault::External),
                })
            }
        }
    }

    /// The request again with nothing but the newest turn, unless that is all there was (S2.26, C2).
    fn fresh_context(&self, shown: &history::Window) -> Option<Command> {
        let kept = history::newest_turn(&shown.entries);
        let newest = shown.entries.get(shown.entries.len() - kept..)?;
        (kept < shown.entries.len()).then(|| Command::Overflowed {
            turn: self.turn,
            iteration: self.iteration,
            kept,
            before: ContextSize {
                messages: shown.entries.len() as u64,
                tokens: shown.tokens,
            },
            after: ContextSize {
                messages: kept as u64,
                tokens: newest
                    .iter()
                    .map(|entry| entry.weight(llm::tokens::estimate))
                    .sum(),
            },
        })
    }

    fn request(&self) -> Result<(llm::Request, history::Window), Failure> {
        let refused = |code, text| Failure {
            code,
            text,
            is_retryable: false,
        };
        let input = history::last_input(&self.entries);
        let standing = self.parts.standing(&self.choice, input, self.limits);
        let Standing {
            system,
            tools,
            limits,
            tokens,
            ..
        } = standing.map_err(|error| refused(Code::InvalidArguments, error.to_string()))?;
        let shown = history::window(&self.entries, limits, llm::tokens::estimate);
        let needed = tokens + shown.tokens;
        if let Some(window) = self
            .parts
            .window(&self.choice)
            .filter(|window| needed > *window)
        {
            // The newest message alone, or the tools alone, are too large: no cut can help.
            let text = format!(
                "the request needs about {needed} tokens ({tokens} of them for the system prompt \
                 and the tools), and the model `{}` reads {window}; shorten the message, switch \
                 servers off, or choose a model with a larger window",
                self.choice.model
            );
            return Err(refused(Code::ContextOverflow, text));
        }
        if shown.left_out > 0 {
            tracing::info!(
                left_out = shown.left_out,
                "Older entries do not fit and were left out"
            );
        }
        let request = llm::Request {
            model: self.choice.model.clone(),
            system: (!system.is_empty()).then_some(system),
            entries: shown.entries.clone().into(),
            tools,
            temperature: self.parts.temperature,
            max_tokens: self.parts.max_tokens,
        };
        Ok((request, shown))
    }

    fn span(&self, kind: llm::ProviderKind, request: &llm::Request) -> Option<RequestSpan> {
        let trace = self.trace.clone()?;
        let asked = (&self.choice, self.iteration);
        Some(RequestSpan::begin(trace, kind, asked, request))
    }

    fn show(&self, progress: Progress) {
        match progress {
            Progress::Event(ModelEvent::Text(piece)) => {
                self.feed.say(self.ticket, DeltaKind::Text, piece);
            }
            Progress::Event(ModelEvent::Reasoning(piece)) => {
                self.feed.say(self.ticket, DeltaKind::Reasoning, piece);
            }
            Progress::Event(_) => {}
            Progress::Retry {
                attempt,
                max_attempts,
                delay,
                code,
                reason,
            } => {
                self.feed.restart_answer(self.ticket);
                self.feed.announce(What::Notice(Notice {
                    text: reason,
                    code: "model_retry".into(),
                    turn: self.turn,
                    retry: Some((attempt, max_attempts, delay, code)),
                }));
            }
        }
    }

    fn answer(&self, answer: llm::Answer) -> Answer {
        let usage = answer.usage.unwrap_or_else(|| {
            // Few servers say nothing: the request is built again for them instead of kept for all.
            let request = self.request().map(|(request, _)| request);
            request.map_or_else(
                |_| TokenUsage::default(),
                |request| llm::tokens::estimated_usage(&request, &answer),
            )
        });
        let calls = answer.calls.iter().map(|asked| {
            let (args, resolution) = match &asked.args {
                Ok(args) => (args.clone(), self.parts.tools.resolve(&asked.name, args)),
                Err(invalid) => (
                    serde_json::Value::String(invalid.raw.clone()),
                    Resolution::Invalid(invalid.to_string()),
                ),
            };
            let (provider_id, name) = (asked.provider_id.clone(), asked.name.clone());
            Proposal {
                provider_id,
                name,
                args,
                resolution,
            }
        });
        Answer {
            calls: calls.collect(),
            text: answer.text,
            native: answer.native,
            usage,
            cost: self.parts.catalogue.price(&usage, &self.choice.model),
            finish: answer.finish.map_or("stop", llm::Finish::as_str).to_owned(),
        }
    }
}

/// Measures one model request. A piece after the first costs one comparison.
struct Watch {
    provider: &'static str,
    since: Instant,
    is_silent: bool,
    /// The same for traces.
    span: Option<RequestSpan>,
}

impl Watch {
    fn start(kind: llm::ProviderKind, span: Option<RequestSpan>) -> Self {
        Self {
            provider: kind.as_str(),
            since: Instant::now(),
            is_silent: true,
            span,
        }
    }

    fn see(&mut self, progress: &Progress) {
        match progress {
            Progress::Event(_) if !self.is_silent => {}
            Progress::Event(_) => {
                self.is_silent = false;
                instruments().first_token(self.provider, self.since.elapsed());
                if let Some(span) = &mut self.span {
                    span.answers();
                }
            }
            Progress::Retry { attempt, code, .. } => {
                instruments().model_retried(self.provider);
                if let Some(span) = &mut self.span {
                    span.retries(*attempt, *code);
                }
            }
        }
    }

    fn end(self, answer: &Result<llm::Answer, llm::Error>) {
        let outcome = if answer.is_ok() { "answered" } else { "failed" };
        instruments().model_asked(self.provider, outcome, self.since.elapsed());
        if let Some(span) = self.span {
            span.end(answer);
        }
    }
}

/// Why nobody can be asked: asking again helps once there is a key, or another choice.
fn unanswered(refusal: Refusal) -> Failure {
    Failure {
        code: refusal.code,
        text: refusal.message,
        is_retryable: true,
    }
}
