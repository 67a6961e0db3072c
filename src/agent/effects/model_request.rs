//! The first effect: ask the model, show what it says, and bring back its answer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::cut;
use super::session_agent::{RequestBase, SessionAgent};
use super::tool_call::proposal::propose;
use super::tool_call::written_files;
use super::trace::{RequestSpan, TurnTrace};
use crate::agent::feed::running_answer::DeltaKind;
use crate::agent::feed::{Feed, Notice, Ticket, What};
use crate::domain::{Code, Effort, Fault, ModelRequestId, TokenUsage, Weighed};
use crate::history::{self, Limits, Past};
use crate::llm::tokens::Counter;
use crate::llm::{self, ModelEvent, Progress};
use crate::session::{
    Answer, Command, ContextSize, Cut, Failure, ModelChoice, Proposal, Reasoning, Refusal,
    Resolution, Shortened,
};
use crate::telemetry::instruments;

/// What is asked.
struct Request {
    body: llm::Request,
    shown: history::Window,
    /// Tokens of all of it, before the provider's reports correct them.
    counted: u64,
}

/// One model request of a turn.
pub(in crate::agent) struct ModelRequest {
    pub(in crate::agent) feed: Arc<Feed>,
    /// What it says is shown under this.
    pub(in crate::agent) ticket: Ticket,
    pub(in crate::agent) agent: SessionAgent,
    pub(in crate::agent) choice: ModelChoice,
    /// How much thinking the turn's message wants.
    pub(in crate::agent) effort: Option<Effort>,
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
        let counter = self.weigh().await;
        let Request {
            mut body,
            shown,
            counted,
        } = match self.request(counter) {
            Ok(asked) => asked,
            Err(failure) => return failed(failure),
        };
        let sight = agent.sight(&self.choice, provider.kind());
        let key = agent.key();
        let attached = agent.attachments.contents(&key, &body.entries, sight);
        body.contents = match attached.await {
            Ok(contents) => contents,
            Err(refusal) => return failed(unanswered(refusal)),
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
        let first_token_ms = watch.end(&answer);
        match answer {
            Ok(answer) => {
                self.calibrate(&answer, counted);
                let mut answer = self.answer(answer, (&shown, &thinking, counter)).await;
                answer.first_token_ms = first_token_ms;
                Command::Answered { request, answer }
            }
            Err(error) => {
                if matches!(error, llm::Error::Overflow { .. })
                    && let Some(cut) = self.cut(&shown, counter)
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
    fn cut(&self, shown: &history::Window, counter: Counter) -> Option<Cut> {
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

    fn request(&self, counter: Counter) -> Result<Request, Failure> {
        let refused = |code, text| Failure {
            code,
            text,
            is_retryable: false,
        };
        let input = history::last_input(&self.entries);
        let of = (input, self.limits);
        let request_base = self.agent.request_base(&self.choice, of, counter);
        let RequestBase {
            system,
            tools,
            limits,
            tokens,
            counted,
            window,
            ..
        } = request_base.map_err(|error| refused(Code::InvalidArguments, error.to_string()))?;
        let shown = history::window(self.past(), limits, |entry| counter.of_entry(entry));
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
        let body = llm::Request {
            model: self.choice.model.clone(),
            system: (!system.is_empty()).then_some(system),
            entries: shown.entries.clone().into(),
            contents: llm::Contents::default(),
            tools,
            temperature: self.agent.temperature,
            effort: self.effort.or(self.agent.effort(&self.choice)),
            max_tokens: self.agent.max_tokens.map(at_most),
            max_output: longest,
        };
        let entries = shown.entries.iter();
        let entries = entries.map(|entry| counter.counted(entry)).sum::<u64>();
        Ok(Request {
            counted: counted + entries,
            body,
            shown,
        })
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
            let request = self.request(counter).map(|request| request.body);
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
            first_token_ms: None,
            cost: self.agent.describe(&self.choice).price(&usage),
            finish: answer.finish.map_or("stop", llm::Finish::as_str).to_owned(),
            stop_detail: answer.stop_detail,
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
                    tracing::warn!(tool.name = %name, %invalid, "A call of `{name}` cannot be read");
                    Proposal {
                        provider_id,
                        name: name.clone(),
                        args: serde_json::Value::String(invalid.raw().to_owned()),
                        is_found: false,
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
        self.took.map(whole_ms)
    }
}

fn whole_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Measures one model request. A piece after the first costs one comparison.
struct Watch {
    provider: &'static str,
    since: Instant,
    /// From its start to its first piece.
    first: Option<Duration>,
    /// The same for traces.
    span: Option<RequestSpan>,
}

impl Watch {
    fn start(kind: llm::ProviderKind, span: Option<RequestSpan>) -> Self {
        Self {
            provider: kind.as_str(),
            since: Instant::now(),
            first: None,
            span,
        }
    }

    fn see(&mut self, progress: &Progress) {
        match progress {
            Progress::Event(_) if self.first.is_some() => {}
            Progress::Event(event) if !event.is_said() => {}
            Progress::Event(_) => {
                let first = self.since.elapsed();
                self.first = Some(first);
                instruments().first_token(self.provider, first);
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

    /// Gives the time to the first piece, in milliseconds.
    fn end(self, answer: &Result<llm::Answer, llm::Error>) -> Option<u64> {
        let outcome = if answer.is_ok() { "answered" } else { "failed" };
        instruments().model_asked(self.provider, outcome, self.since.elapsed());
        if let Some(span) = self.span {
            span.end(answer);
        }
        self.first.map(whole_ms)
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
