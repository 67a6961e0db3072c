//! Sends a server's sampling request to a model, after a person approved it: exactly the request that they
//! were shown, and never to another model.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{Asker, BackgroundRequest, NoAnswer};
use crate::agent::effects::model_request::meter::{Subject, estimated};
use crate::agent::effects::session_agent::SessionAgent;
use crate::agent::effects::{Running, WantedEffects};
use crate::context::{AssembledRequest, Context, RequestOptions};
use crate::domain::{
    Code, CountedEntry, Effort, ElicitationId, Entry, RequestParts, RequestPurpose, TurnId,
};
use crate::llm::{self, Finish};
use crate::mcp::SamplingRequest;
use crate::session::{
    Command, Completion, Effect, ModelChoice, Sampling, SamplingMessage, SamplingProblem,
    SamplingRole, SamplingStage,
};

/// The time limit of a model's answer.
const PATIENCE: Duration = Duration::from_mins(5);

/// The running sampling requests.
#[derive(Default)]
pub(in crate::agent::effects) struct Samples(BTreeMap<ElicitationId, Sample>);

/// A running sampling request. Its usage is recorded even if nobody waits for the answer any more.
struct Sample {
    task: AbortHandle,
    /// Cancels the request on drop.
    _ends: DropGuard,
}

impl Samples {
    pub(in crate::agent::effects) fn is_empty(&self) -> bool {
        self.0.values().all(|sample| sample.task.is_finished())
    }

    /// Aborts all of them without an outcome: the session's next runner counts their usage.
    pub(in crate::agent::effects) fn clear(&mut self) {
        for sample in std::mem::take(&mut self.0).into_values() {
            sample.task.abort();
        }
    }
}

/// Starts missing requests and stops those that are no longer wanted.
pub(in crate::agent::effects) fn reconcile(
    running: &mut Running,
    wanted: &WantedEffects<'_>,
    effects: &[Effect],
) {
    let mut before = std::mem::take(&mut running.samples.0);
    for effect in effects {
        let Effect::Sample(id) = effect else {
            continue;
        };
        let goes_on = before.remove(id);
        if let Some(sample) = goes_on.or_else(|| begin(running, wanted, id)) {
            running.samples.0.insert(id.clone(), sample);
        }
    }
}

fn begin(running: &Running, wanted: &WantedEffects<'_>, id: &ElicitationId) -> Option<Sample> {
    let mut asked = wanted.control.elicitations();
    let asked = asked.find(|asked| asked.id == *id)?;
    let sampling = asked.sampling.as_deref()?.clone();
    let SamplingStage::Asking { turn, .. } = sampling.stage else {
        return None;
    };
    let stop = CancellationToken::new();
    let ends = stop.clone().drop_guard();
    let request = SampleRequest {
        asker: Running::asker(wanted, turn),
        id: id.clone(),
        turn,
        sampling,
    };
    let outcomes = running.outcomes();
    let asking = running.tracker.spawn(async move {
        outcomes.submit(request.run(stop).await).await;
    });
    Some(Sample {
        task: asking.abort_handle(),
        _ends: ends,
    })
}

/// Describes a server's sampling request, with the model to ask: the first one of the session's own provider
/// that the server names, otherwise the session's model. Other providers are excluded, because nobody chose
/// them to read this.
pub(in crate::agent::effects) fn described(
    agent: &SessionAgent,
    session: &ModelChoice,
    asked: &SamplingRequest,
) -> Sampling {
    let model = model_for(agent, session, &asked.hints);
    let longest = agent.longest_answer(&model).unwrap_or(u32::MAX);
    let limit = agent.parts.max_tokens.unwrap_or(u32::MAX).min(longest);
    let messages = asked
        .messages
        .iter()
        .map(|(is_assistant, text)| SamplingMessage {
            role: if *is_assistant {
                SamplingRole::Assistant
            } else {
                SamplingRole::User
            },
            text: text.clone(),
        });
    let mut sampling = Sampling {
        system: asked.system.clone(),
        messages: messages.collect(),
        max_tokens: asked.max_tokens.min(limit),
        temperature: asked.temperature,
        stop: asked.stop.clone(),
        model,
        at_least: crate::session::AttemptUsage {
            usage: estimated(0, &llm::Answer::default()),
            cost: None,
            request: None,
        },
        stage: SamplingStage::Requested,
    };
    let parts = parts(agent, &sampling);
    let tokens = agent.counter(&sampling.model).corrected(parts.total());
    let subject = Subject {
        choice: &sampling.model,
        parts: &parts,
        purpose: RequestPurpose::Sampling,
    };
    sampling.at_least = agent.spent(subject, estimated(tokens, &llm::Answer::default()));
    sampling
}

fn model_for(agent: &SessionAgent, session: &ModelChoice, hints: &[String]) -> ModelChoice {
    let own = ModelChoice::new(session.provider.as_str(), session.model.as_str());
    let Some(offer) = agent.parts.providers.find(&agent.tenant, &session.provider) else {
        return own;
    };
    let offered = offer.models().iter().map(String::as_str);
    let offered = [session.model.as_str()].into_iter().chain(offered);
    let offered: Vec<&str> = offered.chain(offer.default_model()).collect();
    let assistant = agent.tools.assistant();
    let is_allowed = |model: &str| {
        let provider = session.provider.as_str();
        let choice = ModelChoice::new(provider, model);
        let providers = &agent.parts.providers;
        providers.may_use((&agent.tenant, &agent.owner), &choice)
            && (assistant.as_ref()).is_none_or(|it| it.definition.allows_model(provider, model))
    };
    let named = hints.iter().find_map(|hint| {
        let hint = hint.to_lowercase();
        let mut offered = offered.iter().filter(|model| is_allowed(model));
        offered.find(|model| model.to_lowercase().contains(&hint))
    });
    named.map_or(own, |model| {
        ModelChoice::new(session.provider.as_str(), *model)
    })
}

fn entries(sampling: &Sampling) -> Vec<Arc<CountedEntry>> {
    let entries = sampling.messages.iter().map(|message| {
        let role = match message.role {
            SamplingRole::User => "user",
            SamplingRole::Assistant => "assistant",
        };
        CountedEntry::new(Entry::message(role, message.text.as_str()))
    });
    entries.collect()
}

fn parts(agent: &SessionAgent, sampling: &Sampling) -> RequestParts {
    let counter = agent.counter(&sampling.model);
    let said = entries(sampling);
    RequestParts {
        system: sampling
            .system
            .as_deref()
            .map_or(0, |text| counter.text(text)),
        message: said.iter().map(|entry| counter.counted(entry)).sum(),
        ..RequestParts::default()
    }
}

struct SampleRequest {
    asker: Asker,
    id: ElicitationId,
    turn: TurnId,
    sampling: Sampling,
}

impl SampleRequest {
    /// Sends the request, and returns the outcome as a command, even if it is no longer wanted, because it
    /// was paid for.
    #[tracing::instrument(skip_all, fields(session.id = %self.asker.agent.session, llm.model = %self.sampling.model.model))]
    async fn run(self, stop: CancellationToken) -> Command {
        let asked = tokio::time::timeout(PATIENCE, self.ask());
        let result = tokio::select! {
            result = asked => result.unwrap_or_else(|_| {
                let text = format!("the model did not answer within {} s", PATIENCE.as_secs());
                Err(problem(Code::ProviderUnavailable, text))
            }),
            () = stop.cancelled() => Err(problem(Code::NoSuchElicitation, "nobody waits for it")),
        };
        if let Err(problem) = &result {
            tracing::info!(code = problem.code.as_str(), "A server got no completion");
        }
        let agent = &self.asker.agent;
        let spent = self.asker.meter.stop(&llm::Answer::default(), agent);
        Command::Sampled {
            id: self.id,
            turn: self.turn,
            result,
            spent,
        }
    }

    async fn ask(&self) -> Result<Completion, SamplingProblem> {
        let (agent, sampling) = (&self.asker.agent, &self.sampling);
        let choice = &sampling.model;
        let providers = &agent.parts.providers;
        let candidates = providers.candidates(&agent.tenant, Some(&agent.owner), choice);
        let candidates = candidates.map_err(|refusal| problem(refusal.code, refusal.message))?;
        let mut last = problem(Code::ProviderUnavailable, "there is no model to ask");
        // Try further keys of the provider, but no fallback, because the person was not shown one.
        for candidate in candidates.iter().filter(|it| it.choice == *choice) {
            let asked = BackgroundRequest {
                purpose: RequestPurpose::Sampling,
                request: self.request(),
                parts: parts(agent, sampling),
            };
            match self.asker.put(candidate, asked).await {
                Ok(answer) => return self.completion(answer),
                Err(NoAnswer::Unpaid(refusal)) => {
                    return Err(problem(refusal.code, refusal.message));
                }
                Err(NoAnswer::Failed(failed)) => {
                    self.asker.meter.fail(&failed.so_far, agent);
                    last = problem(failed.error.code(), failed.error.to_string());
                    if !failed.error.may_be_elsewhere() {
                        break;
                    }
                }
            }
        }
        Err(last)
    }

    fn request(&self) -> AssembledRequest {
        let sampling = &self.sampling;
        let options = RequestOptions {
            model: sampling.model.model.clone(),
            effort: Some(Effort::Off),
            temperature: sampling.temperature,
            max_tokens: Some(sampling.max_tokens),
            max_output: self.asker.agent.longest_answer(&sampling.model),
            ..RequestOptions::default()
        };
        let system = sampling.system.as_deref().map(Context::system);
        let said = entries(sampling);
        let count = said.len();
        AssembledRequest::of(system, options).showing(&said, count)
    }

    /// Returns the server's answer: the text up to the first stop sequence.
    fn completion(&self, answer: llm::Answer) -> Result<Completion, SamplingProblem> {
        let refused = |text: &str| Err(problem(Code::ProviderRejected, text));
        let mut stop_reason = match answer.finish {
            Some(Finish::Length | Finish::WindowFull) => "maxTokens",
            Some(Finish::Filtered) => return refused("the provider's filter stopped the answer"),
            Some(Finish::Refused) => return refused("the model refused to answer"),
            Some(Finish::Stop | Finish::Calls | Finish::Paused | Finish::Other) | None => "endTurn",
        };
        let mut text = answer.text;
        let ends = self.sampling.stop.iter().filter_map(|end| text.find(end));
        if let Some(end) = ends.min() {
            text.truncate(end);
            stop_reason = "stopSequence";
        }
        if text.is_empty() && stop_reason != "stopSequence" {
            return refused("the model said nothing");
        }
        Ok(Completion {
            text,
            model: self.sampling.model.model.clone(),
            stop_reason: stop_reason.to_owned(),
        })
    }
}

fn problem(code: Code, text: impl Into<String>) -> SamplingProblem {
    SamplingProblem {
        code,
        text: text.into(),
    }
}
