//! The first effect: ask the model, show what it says, and bring back its answer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::cut;
use super::session_agent::{RequestBase, SessionAgent};
use super::tool_call::written_files;
use super::trace::{RequestSpan, TurnTrace};
use crate::agent::feed::running_answer::DeltaKind;
use crate::agent::feed::{Feed, Notice, Ticket, What};
use crate::domain::{Code, Fault, ModelRequestId, TokenUsage, Weighed};
use crate::history::{self, Limits, Past};
use crate::llm::{self, ModelEvent, Progress};
use crate::session::{
    Answer, Command, ContextSize, Cut, Failure, ModelChoice, Proposal, Reasoning, Refusal,
    Resolution, Shortened,
};
use crate::telemetry::instruments;

/// One model request of a turn.
pub(in crate::agent) struct ModelRequest {
    pub(in crate::agent) feed: Arc<Feed>,
    /// What it says is shown under this.
    pub(in crate::agent) ticket: Ticket,
    pub(in crate::agent) agent: SessionAgent,
    pub(in crate::agent) choice: ModelChoice,
    pub(in crate::agent) entries: Vec<Arc<Weighed>>,
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
}

impl ModelRequest {
    /// The outcome as a command.
    #[tracing::instrument(skip_all, fields(session.id = %self.agent.session, llm.provider = %self.choice.provider, llm.model = %self.choice.model, turn = %self.request.turn))]
    pub(in crate::agent) async fn run(self) -> Command {
        let request = self.request;
        let failed = |failure| Command::ModelFailed { request, failure };
        let agent = &self.agent;
        let provider = match agent.providers.provider(&agent.tenant, &self.choice) {
            Ok(provider) => provider,
            Err(refusal) => return failed(unanswered(refusal)),
        };
        agent.tools.refresh().await;
        let (body, shown) = match self.request() {
            Ok(asked) => asked,
            Err(failure) => return failed(failure),
        };
        cut::tell(&self.feed, (self.request.turn, self.entries.len()), &shown);
        let mut thinking = Thinking::default();
        let mut watch = Watch::start(provider.kind(), self.span(provider.kind(), &body));
        let answer = llm::ask(provider, body, self.agent.retry, |progress| {
            watch.see(&progress);
            thinking.see(&progress);
            self.show(progress);
        });
        let answer = answer.await;
        watch.end(&answer);
        match answer {
            Ok(answer) => {
                let answer = self.answer(answer, (&shown, &thinking)).await;
                Command::Answered { request, answer }
            }
            Err(error) => {
                if matches!(error, llm::Error::Overflow { .. })
                    && let Some(cut) = self.cut(&shown)
                {
                    cut::log_overflow(&error, &cut);
                    return Command::Overflowed { request, cut };
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

    fn past(&self) -> Past<'_> {
        Past {
            entries: &self.entries,
            question: self.question,
        }
    }

    /// The request again with half of the tokens: by shorter results if that is enough, else with
    /// nothing but the newest turn; none = that is all there was (S2.26, D2).
    fn cut(&self, shown: &history::Window) -> Option<Cut> {
        let count = llm::tokens::estimate;
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

    fn request(&self) -> Result<(llm::Request, history::Window), Failure> {
        let refused = |code, text| Failure {
            code,
            text,
            is_retryable: false,
        };
        let input = history::last_input(&self.entries);
        let request_base = self.agent.request_base(&self.choice, input, self.limits);
        let RequestBase {
            system,
            tools,
            limits,
            tokens,
            window,
            ..
        } = request_base.map_err(|error| refused(Code::InvalidArguments, error.to_string()))?;
        let shown = history::window(self.past(), limits, llm::tokens::estimate);
        let needed = tokens + shown.tokens;
        tracing::debug!(tokens = needed, "Estimated tokens being sent: {needed}");
        // What is only assumed refuses nothing: the provider knows better.
        if let Some(window) = window.filter(|window| needed > *window) {
            // The newest message alone, or the tools alone, are too large: no cut can help.
            let text = format!(
                "the request needs about {needed} tokens ({tokens} of them for the system prompt \
                 and the tools), and the model `{}` reads {window}; shorten the message, switch \
                 servers off, or choose a model with a larger window",
                self.choice.model
            );
            return Err(refused(Code::ContextOverflow, text));
        }
        let longest = self.agent.longest_answer(&self.choice);
        let at_most = |most: u32| longest.map_or(most, |longest| most.min(longest));
        let request = llm::Request {
            model: self.choice.model.clone(),
            system: (!system.is_empty()).then_some(system),
            entries: shown.entries.clone().into(),
            tools,
            temperature: self.agent.temperature,
            effort: None,
            max_tokens: self.agent.max_tokens.map(at_most),
            max_output: longest,
        };
        Ok((request, shown))
    }

    fn span(&self, kind: llm::ProviderKind, request: &llm::Request) -> Option<RequestSpan> {
        let trace = self.trace.clone()?;
        let asked = (&self.choice, self.request.iteration);
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
                    turn: self.request.turn,
                    retry: Some((attempt, max_attempts, delay, code)),
                    cut: None,
                }));
            }
        }
    }

    async fn answer(
        &self,
        answer: llm::Answer,
        (shown, thinking): (&history::Window, &Thinking),
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
            let request = self.request().map(|(request, _)| request);
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
            cost: self.agent.describe(&self.choice).price(&usage),
            finish: answer.finish.map_or("stop", llm::Finish::as_str).to_owned(),
            stop_detail: answer.stop_detail,
        }
    }

    /// The calls of an answer, looked up, with what is known of the files that they would write.
    async fn propose(&self, answer: &llm::Answer) -> Vec<Proposal> {
        let tools = &self.agent.tools;
        let calls = answer.calls.iter().map(|asked| {
            let (args, resolution) = match &asked.args {
                Ok(args) => (args.clone(), tools.resolve(&asked.name, args)),
                Err(invalid) => {
                    let name = &asked.name;
                    tracing::warn!(tool.name = %name, %invalid, "A call of `{name}` cannot be read");
                    (
                        serde_json::Value::String(invalid.raw().to_owned()),
                        Resolution::Invalid(invalid.to_string()),
                    )
                }
            };
            let (provider_id, name) = (asked.provider_id.clone(), asked.name.clone());
            Proposal {
                provider_id,
                name,
                args,
                resolution,
            }
        });
        let mut calls: Vec<Proposal> = calls.collect();
        written_files::look(&mut calls, || tools.files(self.is_unused)).await;
        calls
    }
}

/// Measures how long a model thinks aloud before it says or asks something. The clock is read twice.
#[derive(Default)]
struct Thinking {
    since: Option<Instant>,
    took: Option<Duration>,
}

impl Thinking {
    fn see(&mut self, progress: &Progress) {
        match progress {
            Progress::Retry { .. } => *self = Self::default(),
            Progress::Event(ModelEvent::Reasoning(_)) => {
                self.since.get_or_insert_with(Instant::now);
            }
            Progress::Event(_) => {
                if let Some(since) = self.since {
                    self.took.get_or_insert_with(|| since.elapsed());
                }
            }
        }
    }

    fn took_ms(&self) -> Option<u64> {
        self.took
            .map(|took| u64::try_from(took.as_millis()).unwrap_or(u64::MAX))
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
