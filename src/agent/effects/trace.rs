//! Defines the trace of a turn, with names and attributes of OpenTelemetry's conventions for generative AI,
//! and our own (`sepal.…`). Contains no texts of people, models or tools.

use std::sync::Arc;

use super::session_agent::SessionAgent;
use crate::context::AssembledRequest;
use crate::domain::{Code, Iteration, Timestamp, TurnId};
use crate::llm::{self, ProviderKind};
use crate::session::{Call, CallStatus, Decider, ModelChoice, Outcome};
use crate::store::clock::now;
use crate::telemetry::traces::{Span, Trace, Traces};

/// The trace of one turn. The ids of the trace and its root span follow from the journal, so that all
/// gateways that run the turn, and all their restarts, add to one trace.
#[derive(Clone)]
pub(in crate::agent) struct TurnTrace {
    traces: Traces,
    trace: Trace,
    agent: Arc<str>,
    tenant: String,
    session: String,
    turn: TurnId,
    started: Timestamp,
}

impl SessionAgent {
    /// Returns the trace of that turn, if tracing is on.
    pub(in crate::agent) fn trace(&self, turn: TurnId, started: Timestamp) -> Option<TurnTrace> {
        self.parts.traces.is_on().then(|| {
            let (tenant, session) = (self.tenant.to_string(), self.session.to_string());
            // A named session may be created again after it was deleted, but not with the same start time.
            let facts = [&tenant, &session, &turn.to_string(), &started.0.to_string()];
            TurnTrace {
                trace: Trace::of(&facts.map(String::as_str)),
                traces: self.parts.traces.clone(),
                agent: Arc::clone(&self.parts.agent_name),
                tenant,
                session,
                turn,
                started,
            }
        })
    }
}

impl TurnTrace {
    /// Adds the root span of the turn, with the last model asked and the number of requests.
    pub(in crate::agent) fn ended(
        &self,
        how: &TurnEnd<'_>,
        kind: &'static str,
        choice: &ModelChoice,
        requests: Iteration,
        at: Timestamp,
    ) {
        let name = format!("invoke_agent {}", self.agent);
        let mut span = self.with_whose(Span::root(self.trace, &name, self.started));
        span.set("gen_ai.operation.name", "invoke_agent");
        span.name("gen_ai.agent.name", &self.agent);
        span.set("gen_ai.provider.name", provider_name(kind));
        span.name("gen_ai.request.model", &choice.model);
        span.set("sepal.model_requests", i64::from(requests.0));
        match how {
            TurnEnd::Answered(finish) => {
                span.set("sepal.outcome", "answered");
                span.list("gen_ai.response.finish_reasons", finish);
            }
            TurnEnd::Failed(code) => {
                span.set("sepal.outcome", "failed");
                span.fail(code.as_str());
            }
            TurnEnd::Cancelled => span.set("sepal.outcome", "cancelled"),
        }
        self.traces.end(span, at);
    }

    /// Adds the wait of a call that was decided, or that can no longer be decided.
    pub(in crate::agent) fn waited(
        &self,
        call: &Call,
        verdict: &'static str,
        by: Option<&Decider>,
        at: Timestamp,
    ) {
        let name = format!("wait_for_approval {}", call.name);
        let mut span = self.of_call(call, Span::child(self.trace, &name, call.since));
        span.set("sepal.approval.verdict", verdict);
        if let Some(by) = by {
            span.set("sepal.approval.by", decider_name(by));
        }
        self.traces.end(span, at);
    }

    /// Adds a call that has its result. A call that never ran has only a wait, or was invalid.
    pub(in crate::agent) fn call_ended(&self, call: &Call, outcome: &Outcome, at: Timestamp) {
        let start = match &call.status {
            CallStatus::Executing { at, .. } => *at,
            // The model made up its name.
            CallStatus::Pending { .. } if call.facts.is_none() => {
                let mut span = Span::child(self.trace, "execute_tool", at);
                span.set("gen_ai.operation.name", "execute_tool");
                span.set("gen_ai.tool.call.id", call.id.to_string());
                return self.end_call(self.with_whose(span), outcome, at);
            }
            CallStatus::Pending { .. } if matches!(outcome, Outcome::Cancelled) => {
                return self.waited(call, "cancelled", None, at);
            }
            CallStatus::Pending { .. } | CallStatus::Approved { .. } | CallStatus::Ended { .. } => {
                return;
            }
        };
        let name = format!("execute_tool {}", call.name);
        let mut span = self.of_call(call, Span::child(self.trace, &name, start));
        span.set("gen_ai.operation.name", "execute_tool");
        span.name("sepal.mcp.server", call.server());
        if let CallStatus::Executing { by, .. } = &call.status {
            span.set("sepal.approval.by", decider_name(by));
        }
        self.end_call(span, outcome, at);
    }

    fn end_call(&self, mut span: Span, outcome: &Outcome, at: Timestamp) {
        span.set("sepal.outcome", outcome.status());
        match outcome {
            Outcome::Failed { code, .. } => span.fail(code.as_str()),
            Outcome::Unknown { .. } => span.fail(Code::ToolUnknownOutcome.as_str()),
            Outcome::Completed { .. } | Outcome::Rejected { .. } | Outcome::Cancelled => {}
        }
        self.traces.end(span, at);
    }

    fn of_call(&self, call: &Call, span: Span) -> Span {
        let mut span = self.with_whose(span);
        span.name("gen_ai.tool.name", &call.name);
        span.set("gen_ai.tool.call.id", call.id.to_string());
        span
    }

    /// Adds tenant, session and turn to a span, so that a collector can separate tenants.
    fn with_whose(&self, mut span: Span) -> Span {
        span.set("sepal.tenant.id", self.tenant.clone());
        span.set("gen_ai.conversation.id", self.session.clone());
        span.set("sepal.turn", i64::try_from(self.turn.0).unwrap_or(i64::MAX));
        span
    }
}

/// The end of a turn.
pub(in crate::agent) enum TurnEnd<'a> {
    /// The model stopped for this reason.
    Answered(&'a str),
    Failed(Code),
    Cancelled,
}

/// The span of a running model request. Dropping it before its end records a cancellation.
pub(in crate::agent) struct RequestSpan {
    turn: TurnTrace,
    span: Option<Span>,
    begun: Timestamp,
}

impl RequestSpan {
    pub(in crate::agent) fn begin(
        turn: TurnTrace,
        kind: ProviderKind,
        choice: &ModelChoice,
        iteration: Iteration,
        request: &AssembledRequest,
    ) -> Self {
        // A clock that went back must not place this span before its turn.
        let begun = now().max(turn.started);
        let name = format!("chat {}", choice.model);
        let mut span = turn.with_whose(Span::child(turn.trace, &name, begun).as_client());
        span.set("gen_ai.operation.name", "chat");
        span.set("gen_ai.provider.name", provider_name(kind.as_str()));
        span.name("gen_ai.request.model", &choice.model);
        span.name("sepal.provider", &choice.provider);
        span.set("sepal.iteration", i64::from(iteration.0));
        if let Some(temperature) = request.temperature {
            span.set("gen_ai.request.temperature", temperature);
        }
        if let Some(tokens) = request.max_tokens {
            span.set("gen_ai.request.max_tokens", i64::from(tokens));
        }
        Self {
            turn,
            span: Some(span),
            begun,
        }
    }

    /// Records the time to the first piece of the answer.
    pub(in crate::agent) fn answers(&mut self) {
        if let Some(span) = &mut self.span {
            let ms = now().since_ms(self.begun);
            span.set(
                "sepal.first_token_ms",
                i64::try_from(ms).unwrap_or(i64::MAX),
            );
        }
    }

    /// Records that an attempt failed and another one follows.
    pub(in crate::agent) fn retries(&mut self, next: u32, code: Code) {
        if let Some(span) = &mut self.span {
            let facts = vec![
                ("error.type", code.as_str().into()),
                ("sepal.next_attempt", i64::from(next).into()),
            ];
            span.happened("sepal.retry", now(), facts);
        }
    }

    pub(in crate::agent) fn end(mut self, answer: &Result<llm::Answer, llm::Failed>) {
        let Some(mut span) = self.span.take() else {
            return;
        };
        match answer {
            Ok(answer) => say_answer(&mut span, answer),
            Err(failed) => {
                span.set("sepal.outcome", "failed");
                span.fail(failed.error.code().as_str());
            }
        }
        self.turn.traces.end(span, now());
    }
}

impl Drop for RequestSpan {
    fn drop(&mut self) {
        if let Some(mut span) = self.span.take() {
            span.set("sepal.outcome", "cancelled");
            self.turn.traces.end(span, now());
        }
    }
}

fn say_answer(span: &mut Span, answer: &llm::Answer) {
    span.set("sepal.outcome", "answered");
    if let Some(finish) = answer.finish {
        span.list("gen_ai.response.finish_reasons", finish.as_str());
    }
    // Usage that the provider did not report is not estimated here.
    if let Some(usage) = answer.usage {
        let tokens = [
            ("gen_ai.usage.input_tokens", usage.input_tokens),
            ("gen_ai.usage.output_tokens", usage.output_tokens),
            ("gen_ai.usage.cache_read.input_tokens", usage.cached_tokens),
        ];
        for (name, tokens) in tokens {
            span.set(name, i64::try_from(tokens).unwrap_or(i64::MAX));
        }
    }
}

/// Returns the provider name of the conventions, which differs from ours for one provider.
fn provider_name(kind: &'static str) -> &'static str {
    if kind == ProviderKind::Gemini.as_str() {
        "gcp.gemini"
    } else {
        kind
    }
}

/// Names the kind of decider, never the person.
fn decider_name(by: &Decider) -> &'static str {
    match by {
        Decider::Person(_) => "person",
        Decider::Rule { .. } => "rule",
        Decider::Reviewer { .. } => "reviewer",
        Decider::System => "system",
    }
}
