//! Reconstructs the outcome of a model request from the events that it led to.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "most events only follow from others"
)]

use std::time::Duration;

use serde_json::Value;

use crate::domain::{Actor, CallId, Code, ModelRequestId, Role};
use crate::session::call::{Call, DryRun, Outcome, Proposal, Resolution};
use crate::session::command::{Answer, Command, Cut, Failure, RequestShortening};
use crate::session::event::compaction::{CompactedByVendor, CompactionReport, CutKind};
use crate::session::event::{Event, MAX_ITERATIONS};
use crate::session::model::AttemptUsage;
use crate::session::state::{Control, Phase};
use crate::session::title::{TitleSource, Titling};

/// The running model request, if any.
pub(super) fn request(control: &Control) -> Option<ModelRequestId> {
    let turn = control.turn.as_ref()?;
    (turn.phase == Phase::Asking).then(|| turn.request())
}

/// The command that ended the model request. The events of failed attempts come first.
pub(super) fn requested(control: &Control, rest: &[Event]) -> Vec<Command> {
    let Some(request) = request(control) else {
        return Vec::new();
    };
    let spent = attempts(rest);
    let rest = rest.get(spent.len()..).unwrap_or_default();
    let compacted = rest.first().and_then(compacted);
    let rest = rest
        .get(usize::from(compacted.is_some())..)
        .unwrap_or_default();
    let shortened = rest.first().and_then(shortened);
    let rest = rest
        .get(usize::from(shortened.is_some())..)
        .unwrap_or_default();
    let by_vendor = rest.first().and_then(by_vendor);
    let rest = rest
        .get(usize::from(by_vendor.is_some())..)
        .unwrap_or_default();
    let command = match rest.first() {
        Some(Event::Said { .. } | Event::Answered { .. }) => {
            answer(rest, spent).map(|answer| Command::Answered {
                request,
                answer: Answer {
                    shortened,
                    compacted,
                    compacted_by_vendor: by_vendor,
                    ..answer
                },
            })
        }
        Some(event @ Event::TurnFailed { .. }) => failed(request, event, spent),
        Some(Event::ContextCut {
            strategy,
            kept,
            max_tokens,
            before,
            after,
        }) => Some(Command::Overflowed {
            request,
            cut: Cut {
                kept: *kept,
                kind: CutKind::of(strategy),
                max_tokens: max_tokens.unwrap_or_default(),
                before: *before,
                after: *after,
            },
            spent,
        }),
        Some(Event::Cancelled {
            turn,
            text,
            reasoning,
        }) => Some(Command::Stop {
            turn: Some(*turn),
            said_so_far: text.clone(),
            thought_so_far: reasoning.clone(),
            spent,
        }),
        _ => None,
    };
    command.into_iter().collect()
}

/// The command behind a failed turn: the request failed, or the time limit was exceeded.
fn failed(request: ModelRequestId, event: &Event, spent: Vec<AttemptUsage>) -> Option<Command> {
    let Event::TurnFailed {
        turn,
        code,
        text,
        is_retryable,
    } = event
    else {
        return None;
    };
    Some(match limit_of(*code, text) {
        Some(limit) => Command::TimeOut {
            turn: *turn,
            limit,
            spent,
        },
        None => Command::ModelFailed {
            request,
            failure: Failure {
                code: *code,
                text: text.clone(),
                is_retryable: *is_retryable,
                spent,
            },
        },
    })
}

/// The command behind a task that a server made of a call.
pub(super) fn task_created(event: &Event) -> Option<Command> {
    let Event::TaskCreated { call, task } = event else {
        return None;
    };
    Some(Command::TaskCreated {
        call: call.clone(),
        task: task.clone(),
    })
}

/// The command behind an attachment that a request put into the workspace.
pub(super) fn placed(control: &Control, event: &Event) -> Option<Command> {
    let Event::AttachmentPlaced { id, name, path } = event else {
        return None;
    };
    Some(Command::AttachmentPlaced {
        request: request(control)?,
        id: id.clone(),
        name: name.clone(),
        path: path.clone(),
    })
}

/// The command behind the start, end or removal of a dry run. The person's role is not recorded; it
/// sufficed.
pub(super) fn dry_run(call: &CallId, to: Option<&DryRun>, by: Option<&Actor>) -> Option<Command> {
    let (call, role) = (call.clone(), Some(Role::Owner));
    Some(match to {
        None => Command::DropDryRun {
            call,
            by: by?.clone(),
            role,
        },
        Some(DryRun {
            report: Some(report),
            ..
        }) => Command::DryRunEnded {
            call,
            report: Box::new(report.clone()),
        },
        Some(begun) => Command::DryRun {
            call,
            digest: Some(begun.digest.clone()),
            by: begun.by.clone(),
            role,
        },
    })
}

/// The command behind the end of a title request. The events of failed attempts come first.
pub(super) fn titled(rest: &[Event]) -> Option<Command> {
    let spent = attempts(rest);
    let rest = rest.get(spent.len()..).unwrap_or_default();
    let title = match rest.first()? {
        Event::TitleSet {
            title,
            source: Some(TitleSource::Model),
        } => Some(title.clone()),
        Event::TitlingMoved { to: Titling::Over } => None,
        _ => return None,
    };
    Some(Command::Titled { title, spent })
}

/// The command behind a review. The events of failed attempts come first.
pub(super) fn reviewed(rest: &[Event]) -> Option<Command> {
    let spent = attempts(rest);
    let rest = rest.get(spent.len()..).unwrap_or_default();
    let Event::Reviewed { call, review } = rest.first()? else {
        return None;
    };
    Some(Command::Reviewed {
        call: call.clone(),
        review: review.clone(),
        spent,
    })
}

/// The failed attempts of a request.
pub(super) fn attempts(rest: &[Event]) -> Vec<AttemptUsage> {
    let is_spent = |event: &&Event| matches!(event, Event::Spent { .. });
    rest.iter().take_while(is_spent).filter_map(spent).collect()
}

/// The time limit of a turn, parsed from the text of its error.
fn limit_of(code: Code, text: &str) -> Option<Duration> {
    if code != Code::TurnTimeout {
        return None;
    }
    let (_, after) = text.split_once("longer than ")?;
    let (seconds, _) = after.split_once(' ')?;
    Duration::try_from_secs_f64(seconds.parse().ok()?).ok()
}

fn spent(event: &Event) -> Option<AttemptUsage> {
    let Event::Spent {
        usage,
        cost,
        request,
        ..
    } = event
    else {
        return None;
    };
    Some(AttemptUsage {
        usage: *usage,
        cost: *cost,
        request: request.clone(),
    })
}

fn compacted(event: &Event) -> Option<Box<CompactionReport>> {
    match event {
        Event::ContextCompacted(compacted) => Some(compacted.clone()),
        _ => None,
    }
}

fn by_vendor(event: &Event) -> Option<Box<CompactedByVendor>> {
    match event {
        Event::CompactedByVendor(compacted) => Some(compacted.clone()),
        _ => None,
    }
}

fn shortened(event: &Event) -> Option<RequestShortening> {
    let Event::ResultsShortened {
        results,
        before,
        after,
    } = event
    else {
        return None;
    };
    Some(RequestShortening {
        results: *results,
        before: *before,
        after: *after,
    })
}

fn answer(rest: &[Event], spent: Vec<AttemptUsage>) -> Option<Answer> {
    let event = rest.first()?;
    let last = last_answer(event);
    let answer = last.or_else(|| answer_with_calls(event, proposals(rest)))?;
    Some(Answer { spent, ..answer })
}

/// An answer that ended its turn.
fn last_answer(event: &Event) -> Option<Answer> {
    let Event::Answered {
        text,
        usage,
        cost,
        request,
        first_token_ms,
        finish,
        stop_detail,
        dropped_calls,
        native,
        reasoning,
        answered_by,
        ..
    } = event
    else {
        return None;
    };
    // The calls of an answer at the iteration limit are not recorded, because they were not looked up.
    let has_calls = finish == MAX_ITERATIONS;
    Some(Answer {
        text: text.clone(),
        reasoning: reasoning.clone(),
        calls: has_calls.then(unknown_call).into_iter().collect(),
        dropped_calls: *dropped_calls,
        shortened: None,
        compacted: None,
        compacted_by_vendor: None,
        native: native.clone(),
        usage: *usage,
        cost: *cost,
        request: request.clone(),
        first_token_ms: *first_token_ms,
        finish: finish.clone(),
        stop_detail: stop_detail.clone(),
        answered_by: answered_by.clone(),
        spent: Vec::new(),
    })
}

/// An answer with calls.
fn answer_with_calls(event: &Event, calls: Vec<Proposal>) -> Option<Answer> {
    let Event::Said {
        text,
        usage,
        cost,
        request,
        native,
        reasoning,
        answered_by,
        ..
    } = event
    else {
        return None;
    };
    Some(Answer {
        text: text.clone(),
        reasoning: reasoning.clone(),
        calls,
        dropped_calls: 0,
        shortened: None,
        compacted: None,
        compacted_by_vendor: None,
        native: native.clone(),
        usage: *usage,
        cost: *cost,
        request: request.clone(),
        first_token_ms: None,
        finish: String::new(),
        stop_detail: None,
        answered_by: answered_by.clone(),
        spent: Vec::new(),
    })
}

fn unknown_call() -> Proposal {
    Proposal {
        provider_id: String::new(),
        name: String::new(),
        args: Value::Null,
        is_indirect: false,
        resolution: Resolution::Invalid(String::new()),
    }
}

/// The calls of an answer as the model requested them.
fn proposals(rest: &[Event]) -> Vec<Proposal> {
    let calls = rest.iter().find_map(|event| match event {
        Event::Queued { calls } => Some(calls),
        _ => None,
    });
    let calls = calls.map(Vec::as_slice).unwrap_or_default();
    let proposals = calls.iter().map(|call| Proposal {
        provider_id: call.provider_id.clone(),
        name: call.name.clone(),
        args: call.args.clone(),
        is_indirect: call.is_indirect,
        resolution: resolution(call, rest),
    });
    proposals.collect()
}

fn resolution(call: &Call, rest: &[Event]) -> Resolution {
    if let Some(facts) = &call.facts {
        return Resolution::Ready(facts.clone());
    }
    let outcome = rest.iter().find_map(|event| match event {
        Event::Ended {
            call: id, outcome, ..
        } if *id == call.id => Some(outcome),
        _ => None,
    });
    let text = outcome.map(Outcome::text).unwrap_or_default();
    match outcome {
        Some(Outcome::Completed { .. }) => Resolution::Answered(text),
        Some(
            Outcome::Failed { .. }
            | Outcome::Rejected { .. }
            | Outcome::Cancelled
            | Outcome::Unknown { .. },
        )
        | None => Resolution::Invalid(text),
    }
}
