//! The first effect: ask the model, show what it says, and bring back its answer.

use std::sync::Arc;

use super::factory::AgentParts;
use super::feed::{DeltaKind, Feed, Notice, What};
use crate::domain::{Code, Entry, Fault};
use crate::history;
use crate::llm::{self, ModelEvent, Progress};
use crate::session::{Answer, Command, Failure, ModelChoice, Proposal, Refusal, Resolution};

/// One model request of a turn.
pub(super) struct Asking {
    pub(super) feed: Arc<Feed>,
    pub(super) parts: AgentParts,
    pub(super) choice: ModelChoice,
    pub(super) entries: Vec<Arc<Entry>>,
    pub(super) turn: u64,
    pub(super) iteration: u32,
}

impl Asking {
    /// The outcome as a command.
    #[tracing::instrument(skip_all, fields(llm.provider = %self.choice.provider, llm.model = %self.choice.model, turn = self.turn))]
    pub(super) async fn run(self) -> Command {
        let (turn, iteration) = (self.turn, self.iteration);
        let parts = &self.parts;
        let provider = parts.providers.provider(&parts.tenant, &self.choice);
        let ready = provider
            .map_err(failure)
            .and_then(|provider| Ok((provider, self.request()?)));
        let (provider, request) = match ready {
            Ok(ready) => ready,
            Err(failure) => {
                return Command::ModelFailed {
                    turn,
                    iteration,
                    failure,
                };
            }
        };
        let estimate = request.clone();
        let answer = llm::ask(provider, request, self.parts.retry, |progress| {
            self.show(progress);
        });
        match answer.await {
            Ok(answer) => {
                let answer = self.answer(answer, &estimate);
                Command::Answered {
                    turn,
                    iteration,
                    answer,
                }
            }
            Err(error) => {
                tracing::warn!(?error, "The model request ended for good");
                let failure = Failure {
                    code: error.code(),
                    text: error.to_string(),
                    is_retryable: matches!(error.fault(), Fault::Transient | Fault::External),
                };
                Command::ModelFailed {
                    turn,
                    iteration,
                    failure,
                }
            }
        }
    }

    fn request(&self) -> Result<llm::Request, Failure> {
        let tools = self.parts.tools.definitions();
        let system = self.parts.prompt.render(&tools).map_err(|error| Failure {
            code: Code::InvalidArguments,
            text: error.to_string(),
            is_retryable: false,
        })?;
        let shown = history::window(&self.entries, self.parts.history, llm::tokens::estimate);
        if shown.left_out > 0 {
            tracing::info!(
                left_out = shown.left_out,
                "Older entries do not fit and were left out"
            );
        }
        Ok(llm::Request {
            model: self.choice.model.clone(),
            system: (!system.is_empty()).then(|| system.into()),
            entries: shown
                .entries
                .iter()
                .map(|entry| Entry::clone(entry))
                .collect(),
            tools,
            temperature: self.parts.temperature,
            max_tokens: self.parts.max_tokens,
        })
    }

    fn show(&self, progress: Progress) {
        let request = (self.turn, self.iteration);
        match progress {
            Progress::Event(ModelEvent::Text(piece)) => {
                self.feed.say(request, DeltaKind::Text, piece);
            }
            Progress::Event(ModelEvent::Reasoning(piece)) => {
                self.feed.say(request, DeltaKind::Reasoning, piece);
            }
            Progress::Event(_) => {}
            Progress::Retry {
                attempt,
                max_attempts,
                delay,
                code,
                reason,
            } => {
                self.feed.restart_answer(attempt);
                self.feed.show(What::Notice(Notice {
                    text: reason,
                    code: "model_retry",
                    turn: self.turn,
                    retry: Some((attempt, max_attempts, delay, code)),
                }));
            }
        }
    }

    fn answer(&self, answer: llm::Answer, request: &llm::Request) -> Answer {
        let usage = answer
            .usage
            .unwrap_or_else(|| llm::tokens::estimated_usage(request, &answer));
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

/// Why nobody can be asked: asking again helps once there is a key, or another choice.
fn failure(refusal: Refusal) -> Failure {
    Failure {
        code: refusal.code,
        text: refusal.message,
        is_retryable: true,
    }
}
