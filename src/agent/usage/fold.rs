//! Derives usage rows from commits. Rows follow from the journal alone, so that they can be derived again at
//! any time, also from journals of earlier releases, which contain less.

use std::collections::BTreeMap;

use crate::domain::{
    CallId, Iteration, MicroUsd, ModelRequestId, RequestPurpose, TokenUsage, TurnId, UserId,
};
use crate::llm::tokens;
use crate::session::{
    CallStatus, Commit, Control, Decider, Event, ModelChoice, RequestFacts, Turn,
};
use crate::store::records::{CallRow, EventPlace, RequestRow, UsageRows};

/// The context of the next commits, as far as rows need it.
#[derive(Debug, Clone, Default)]
pub(in crate::agent) struct UsageFold {
    owner: Option<UserId>,
    /// The model that the session chose.
    choice: Option<ModelChoice>,
    /// The model that the last request asked.
    asked: Option<ModelChoice>,
    request: Option<ModelRequestId>,
    /// The number of rows of that request so far.
    attempts: u64,
    /// The rules that decided calls which have not ended.
    rules: BTreeMap<CallId, String>,
}

/// The usage that an event reports for an attempt.
struct Attempt<'a> {
    turn: TurnId,
    usage: TokenUsage,
    cost: Option<MicroUsd>,
    facts: Option<&'a RequestFacts>,
    /// The provider and model that answered, if an earlier release recorded them.
    by: Option<(&'a str, &'a str)>,
    /// The model, if the event itself names one.
    model: Option<&'a str>,
    is_answer: bool,
}

impl UsageFold {
    /// Makes the fold for the commit after this state.
    pub(in crate::agent) fn of(control: &Control) -> Self {
        let turn = control.turn.as_ref();
        Self {
            owner: control.owner.as_ref().map(|owner| owner.id.clone()),
            choice: control.model.clone(),
            asked: turn.and_then(|turn| turn.asked.clone()),
            request: turn.map(Turn::request),
            // Failed attempts of a request are recorded with its end.
            attempts: 0,
            rules: decided_by_rules(control),
        }
    }

    /// Returns the rows of a commit.
    #[expect(clippy::wildcard_enum_match_arm, reason = "most events use nothing")]
    pub(in crate::agent) fn apply(&mut self, commit: &Commit) -> UsageRows {
        let mut rows = UsageRows::default();
        for (index, event) in (0..).zip(&commit.events) {
            match event {
                Event::Created { owner, model, .. } => {
                    self.owner = Some(owner.id.clone());
                    self.choice = Some(model.clone());
                }
                Event::ModelChosen { model } => self.choice = Some(model.clone()),
                Event::Thinking {
                    turn, iteration, ..
                } => {
                    self.asked.clone_from(&self.choice);
                    self.request = Some(ModelRequestId {
                        turn: *turn,
                        iteration: *iteration,
                    });
                    self.attempts = 0;
                }
                Event::Decided { call, by, .. } => {
                    self.rules.remove(call);
                    if let Decider::Rule { id: Some(id), .. } = by {
                        self.rules.insert(call.clone(), id.clone());
                    }
                }
                _ => {}
            }
            // A fork's inherited commits were counted in the original session.
            if commit.is_inherited {
                continue;
            }
            let Some(place) = self.place(commit, index) else {
                continue;
            };
            if let Some(attempt) = attempt(event) {
                rows.requests.push(self.request_row(place, &attempt));
            } else if let Some(row) = self.call_row(place, event) {
                rows.calls.push(row);
            }
        }
        rows
    }

    fn place(&self, commit: &Commit, index: u64) -> Option<EventPlace> {
        Some(EventPlace {
            commit: commit.commit_id.clone(),
            index,
            at: commit.at,
            owner: self.owner.clone()?,
        })
    }

    fn request_row(&mut self, place: EventPlace, attempt: &Attempt<'_>) -> RequestRow {
        let facts = attempt.facts;
        let purpose = facts.map(|facts| facts.purpose).unwrap_or_default();
        // A request beside the turn is not an attempt of the turn's request.
        let is_of_turn = purpose == RequestPurpose::Turn;
        self.attempts += u64::from(is_of_turn);
        let asked = self.asked.as_ref().or(self.choice.as_ref());
        let asked = asked.map(|choice| (choice.provider.as_str(), choice.model.as_str()));
        let said = facts.map(|facts| (facts.provider.as_str(), facts.model.as_str()));
        let (provider, model) = said.or(attempt.by).unwrap_or_else(|| {
            let (provider, model) = asked.unwrap_or_default();
            (provider, attempt.model.unwrap_or(model))
        });
        let request = self.request.filter(|request| request.turn == attempt.turn);
        let iteration = request.map_or(1, |ModelRequestId { iteration, .. }| {
            let Iteration(iteration) = iteration;
            u64::from(iteration)
        });
        RequestRow {
            place,
            turn: attempt.turn.0,
            iteration: if is_of_turn { iteration } else { 0 },
            attempt: if is_of_turn { self.attempts } else { 1 },
            purpose,
            is_answer: attempt.is_answer,
            provider: provider.to_owned(),
            model: model.to_owned(),
            usage: attempt.usage,
            cost: attempt.cost,
            price_version: facts.and_then(|facts| facts.price_version.clone()),
            charged: facts.and_then(|facts| facts.charged),
            parts: facts.map(|facts| facts.parts.clone()).unwrap_or_default(),
        }
    }

    /// Returns the row of a call, if it named a server.
    fn call_row(&mut self, place: EventPlace, event: &Event) -> Option<CallRow> {
        let Event::Ended {
            call,
            name,
            server,
            outcome,
            duration_ms,
        } = event
        else {
            return None;
        };
        let rule = self.rules.remove(call);
        (!server.is_empty()).then(|| CallRow {
            place,
            server: server.clone(),
            tool: name.clone(),
            status: outcome.status(),
            duration_ms: *duration_ms,
            result_tokens: tokens::of_text(&outcome.text()),
            rule,
        })
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "most events use nothing")]
fn attempt(event: &Event) -> Option<Attempt<'_>> {
    let (turn, usage, cost, request) = match event {
        Event::Spent {
            turn,
            usage,
            cost,
            request,
        }
        | Event::Said {
            turn,
            usage,
            cost,
            request,
            ..
        }
        | Event::Answered {
            turn,
            usage,
            cost,
            request,
            ..
        } => (*turn, *usage, *cost, request),
        _ => return None,
    };
    let by = match event {
        Event::Said { answered_by, .. } | Event::Answered { answered_by, .. } => {
            answered_by.as_ref()
        }
        _ => None,
    };
    let model = match event {
        Event::Answered { model, .. } => Some(model.as_str()),
        _ => None,
    };
    Some(Attempt {
        turn,
        usage,
        cost,
        facts: request.as_deref(),
        by: by.map(|by| (by.provider.as_str(), by.model.as_str())),
        model,
        is_answer: !matches!(event, Event::Spent { .. }),
    })
}

/// Returns the rules that approved the running and approved calls.
fn decided_by_rules(control: &Control) -> BTreeMap<CallId, String> {
    let by_rule = control.calls().filter_map(|call| match &call.status {
        CallStatus::Approved { by, .. } | CallStatus::Executing { by, .. } => match by {
            Decider::Rule { id: Some(id), .. } => Some((call.id.clone(), id.clone())),
            Decider::Rule { id: None, .. }
            | Decider::Person(_)
            | Decider::Reviewer { .. }
            | Decider::System => None,
        },
        CallStatus::Pending { .. } | CallStatus::Ended { .. } => None,
    });
    by_rule.collect()
}
