//! Reconstructs the commands of people, models and tools from the events that they led to.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "most events only follow from others"
)]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::answer::{dry_run, placed, requested, reviewed, task_created, titled};
use super::call::{called_by_view, ended, sampled, shown_sampling};
use crate::domain::{
    Actor, CallId, Digest, Gesture, GestureCall, GestureMeans, Role, SessionId, TurnId,
};
use crate::session::call::{Call, Decider, ElicitationEnd, ElicitationReply, Verdict};
use crate::session::command::{Command, Decision, Edit};
use crate::session::event::{EditedArgs, Event};
use crate::session::state::Control;
use crate::session::title::TitleSource;

/// Commands that may have led to the beginning of these events, the likeliest first.
pub(super) fn causes(control: &Control, rest: &[Event]) -> Vec<Command> {
    let Some(first) = rest.first() else {
        return Vec::new();
    };
    match first {
        Event::Created { .. } => created(rest.get(1..).unwrap_or_default()),
        Event::OwnerChanged { .. } => {
            let from = control.runner.gateway.clone();
            let dry_run = rest.get(1).and_then(dry_run_moved);
            let others = [Command::TakeOver { from }, Command::Retry];
            dry_run.into_iter().chain(others).collect()
        }
        Event::Thinking { .. } => vec![Command::Retry],
        Event::Decided { .. } | Event::Consented { .. } => decided(control, rest),
        Event::WantsChanged { .. } => wanted(control, rest),
        Event::ConsentWithdrawn { call, by } => vec![taken_back(call, by)],
        Event::ViewCalled { call, by } => called_by_view(call, by).into_iter().collect(),
        Event::Ended { .. } => ended(control, first),
        // Rules may allow a waiting call by now.
        Event::Started { .. } | Event::ApprovalAsked { .. } | Event::ReviewAsked { .. } => {
            vec![Command::ReviewCalls]
        }
        Event::ElicitationAsked(_)
        | Event::ElicitationOpened { .. }
        | Event::ElicitationResolved { .. } => elicited(control, first).into_iter().collect(),
        Event::SamplingMoved { .. } => sampled(control, rest).into_iter().collect(),
        Event::StopRequested { turn, limit_ms } => vec![stopped(*turn, *limit_ms)],
        Event::CallStopRequested { call } => vec![Command::StopCall { call: call.clone() }],
        Event::TaskCreated { .. } => task_created(first).into_iter().collect(),
        Event::DryRunMoved { .. } => dry_run_moved(first).into_iter().collect(),
        Event::AttachmentPlaced { .. } => placed(control, first).into_iter().collect(),
        Event::TitlingMoved { .. }
        | Event::TitleSet {
            source: Some(TitleSource::Model),
            ..
        } => titled(rest).into_iter().collect(),
        Event::Reviewed { .. } => reviewed(rest).into_iter().collect(),
        Event::Spent { .. } => requested(control, rest)
            .into_iter()
            .chain(titled(rest))
            .chain(reviewed(rest))
            .chain(sampled(control, rest))
            .collect(),
        Event::ContextCompacted(_)
        | Event::ResultsShortened { .. }
        | Event::CompactedByVendor(_)
        | Event::Said { .. }
        | Event::Answered { .. }
        | Event::TurnFailed { .. }
        | Event::ContextCut { .. }
        | Event::Cancelled { .. } => requested(control, rest),
        simple => said(simple).into_iter().collect(),
    }
}

/// The command behind the move of a dry run.
fn dry_run_moved(event: &Event) -> Option<Command> {
    match event {
        Event::DryRunMoved { call, to, by } => dry_run(call, to.as_deref(), by.as_ref()),
        _ => None,
    }
}

/// The command behind an elicitation event.
fn elicited(control: &Control, event: &Event) -> Option<Command> {
    if let Event::ElicitationAsked(asked) = event {
        return Some(Command::Elicit(Arc::clone(asked)));
    }
    if let Event::ElicitationOpened { id, by, .. } = event {
        let (id, by) = (id.clone(), by.clone());
        return Some(Command::OpenElicitation { id, by });
    }
    let Event::ElicitationResolved {
        id,
        answer,
        by,
        end,
        ..
    } = event
    else {
        return None;
    };
    let id = id.clone();
    if *end == Some(ElicitationEnd::Completed) {
        return Some(Command::CompleteElicitation { id });
    }
    Some(match by {
        Some(by) => Command::AnswerElicitation(ElicitationReply {
            answer: answer.clone(),
            by: by.clone(),
            invalid: None,
            sampling: shown_sampling(control, &id),
            id,
        }),
        None => Command::WithdrawElicitation { id },
    })
}

/// The command behind an event that is the only one of its command.
fn said(event: &Event) -> Option<Command> {
    Some(match event {
        Event::UserMessage {
            text,
            author,
            client_message_id,
            effort,
            attachments,
        } => Command::Say {
            text: text.clone(),
            attachments: attachments.clone(),
            author: author.clone(),
            client_message_id: client_message_id.clone(),
            effort: *effort,
        },
        Event::TitleSet { title, .. } => Command::Rename {
            title: title.clone(),
        },
        Event::ModelChosen { model } => Command::ChooseModel {
            model: model.clone(),
        },
        Event::AssistantUpdated { assistant, by } => Command::UpdateAssistant {
            assistant: Arc::clone(assistant),
            by: by.clone(),
        },
        Event::WindowChosen { whole } => Command::ChooseWindow { whole: *whole },
        Event::CompactionChosen { strategies } => Command::ChooseCompaction {
            strategies: strategies.clone(),
        },
        Event::RuleGiven { rule, by } => Command::GiveRule {
            rule: rule.clone(),
            by: by.clone(),
        },
        Event::RuleTakenBack { id, by } => Command::TakeRuleBack {
            id: id.clone(),
            by: by.clone(),
        },
        Event::HostRefused(refusal) => Command::HostRefused(refusal.clone()),
        Event::ContextReset => Command::ResetContext,
        Event::WorkspaceCopied { outcome } => Command::WorkspaceCopied { outcome: *outcome },
        Event::Withdrawn {
            client_message_id, ..
        } => Command::Withdraw {
            client_message_id: client_message_id.clone(),
        },
        Event::Settled {
            call, happened, by, ..
        } => Command::ResolveUnknown {
            call: call.clone(),
            happened: *happened,
            by: by.clone(),
        },
        _ => return None,
    })
}

/// The command that created the session.
fn created(next: &[Event]) -> Vec<Command> {
    let first = next.first().and_then(said);
    let open = Command::Open { title: None };
    first.into_iter().chain([open]).collect()
}

fn stopped(turn: TurnId, limit_ms: Option<u64>) -> Command {
    match limit_ms {
        Some(limit) => Command::TimeOut {
            turn,
            limit: Duration::from_millis(limit),
            spent: Vec::new(),
        },
        None => Command::Stop {
            turn: Some(turn),
            said_so_far: None,
            thought_so_far: None,
            spent: Vec::new(),
        },
    }
}

/// The commands behind changed approval requirements: a review of all calls, or a decision about one of
/// them.
fn wanted(control: &Control, rest: &[Event]) -> Vec<Command> {
    let is_decision =
        |event: &Event| matches!(event, Event::Consented { .. } | Event::Decided { .. });
    let next = rest.iter().position(is_decision);
    let rest = next.and_then(|next| rest.get(next..)).unwrap_or_default();
    let mut commands = vec![Command::ReviewCalls];
    if !rest.is_empty() {
        commands.extend(decided(control, rest));
    }
    commands
}

fn taken_back(call: &CallId, by: &Actor) -> Command {
    Command::Decide(Decision {
        call: call.clone(),
        approved: false,
        take_back: true,
        reason: None,
        edit: None,
        dry_run: None,
        digest: None,
        by: by.clone(),
        role: ANY_ROLE,
    })
}

/// The commands behind a decision. Single decisions look the same as a joint one until the next call is
/// asked for.
fn decided(control: &Control, rest: &[Event]) -> Vec<Command> {
    let Some(decision) = rest.first().and_then(RecordedDecision::of) else {
        return vec![Command::ReviewCalls];
    };
    let RecordedDecision {
        call,
        verdict,
        by,
        role,
        edited,
    } = decision;
    let reason = reason_for(rest, call);
    let mut said = rest.iter().filter_map(consent_role);
    let role = said
        .find(|(who, _)| *who == by)
        .map_or(role, |(_, role)| role);
    let shown = control.call(call).map(|call| &**call);
    let edit = edited.filter(|edited| is_change(shown, edited));
    let edit = edit.map(|edited| self::edit(edited, shown));
    let one = Command::Decide(Decision {
        call: call.clone(),
        approved: verdict == Verdict::Approved,
        take_back: verdict == Verdict::TakenBack,
        reason: reason.clone(),
        edit,
        dry_run: taken_result(rest, call),
        // The current digest, because the card showed it.
        digest: shown.and_then(Call::digest).cloned(),
        by: by.clone(),
        role,
    });
    let mut commands = vec![one];
    let ids = together(control, rest, (verdict, by, reason.as_deref()));
    commands.extend((2..=ids.len()).rev().map(|count| Command::DecideAll {
        call_ids: ids.get(..count).map(<[CallId]>::to_vec),
        approved: verdict == Verdict::Approved,
        reason: reason.clone(),
        by: by.clone(),
        role,
    }));
    match rest.first().and_then(gesture_of) {
        Some((_, _, means)) => commands
            .into_iter()
            .map(|command| with_gesture(control, rest, means, command))
            .collect(),
        None => commands,
    }
}

/// Wraps the command with its gesture, which covers every call that the events say was decided with one.
fn with_gesture(
    control: &Control,
    rest: &[Event],
    means: GestureMeans,
    decision: Command,
) -> Command {
    let calls = rest.iter().filter_map(gesture_of);
    let calls = calls.filter_map(|(call, edited, _)| {
        let shown = control.call(call)?;
        let digest = shown.digest()?.clone();
        let edited = edited.filter(|edited| is_change(Some(shown), edited));
        Some(GestureCall {
            session: SessionId::from_bits(0),
            call: call.clone(),
            digest,
            edited: edited.map(|edited| Digest::of_json(&edited.args)),
        })
    });
    Command::WithGesture {
        gesture: Gesture {
            means,
            calls: calls.collect(),
        },
        decision: Box::new(decision),
    }
}

/// The call that was approved with a fresh gesture.
fn gesture_of(event: &Event) -> Option<(&CallId, Option<&EditedArgs>, GestureMeans)> {
    match event {
        Event::Decided {
            call,
            edited,
            gesture: Some(means),
            ..
        }
        | Event::Consented {
            call,
            edited,
            gesture: Some(means),
            ..
        } => Some((call, edited.as_ref(), *means)),
        _ => None,
    }
}

/// A role for deciders whose own role is not recorded: it sufficed.
const ANY_ROLE: Option<Role> = Some(Role::Owner);

/// A person's decision, as an event records it.
struct RecordedDecision<'a> {
    call: &'a CallId,
    verdict: Verdict,
    by: &'a Actor,
    role: Option<Role>,
    edited: Option<&'a EditedArgs>,
}

impl<'a> RecordedDecision<'a> {
    fn of(event: &'a Event) -> Option<Self> {
        match event {
            Event::Decided {
                call,
                verdict,
                by: Decider::Person(by),
                edited,
                ..
            } => Some(Self {
                call,
                verdict: *verdict,
                by,
                role: ANY_ROLE,
                edited: edited.as_ref(),
            }),
            Event::Consented {
                call,
                by,
                role,
                edited,
                ..
            } => Some(Self {
                call,
                verdict: Verdict::Approved,
                by,
                role: *role,
                edited: edited.as_ref(),
            }),
            _ => None,
        }
    }
}

fn consent_role(event: &Event) -> Option<(&Actor, Option<Role>)> {
    match event {
        Event::Consented { by, role, .. } => Some((by, *role)),
        _ => None,
    }
}

/// The reason that came with a decision; [`Event::Decided`] has it, also behind a consent that completes
/// the approvals.
fn reason_for(rest: &[Event], id: &CallId) -> Option<String> {
    let is_its = |event: &&Event| match event {
        Event::Decided { call, .. } | Event::Consented { call, .. } => call == id,
        _ => false,
    };
    let mut its = rest.iter().take(2).filter(is_its);
    its.find_map(|event| match event {
        Event::Decided { reason, .. } => reason.clone(),
        _ => None,
    })
}

/// The dry-run result that came with a decision; [`Event::Decided`] has it, also behind a consent that
/// completes the approvals.
fn taken_result(rest: &[Event], id: &CallId) -> Option<Digest> {
    rest.iter().take(2).find_map(|event| match event {
        Event::Decided { call, dry_run, .. } if call == id => dry_run.clone(),
        _ => None,
    })
}

fn edit(edited: &EditedArgs, shown: Option<&Call>) -> Edit {
    Edit {
        args: edited.args.clone(),
        unedited: shown.and_then(Call::digest).cloned(),
        digest: edited.digest.clone(),
        equal: edited.equal.clone(),
        invalid: None,
    }
}

/// Returns true if the edit came with this decision; an earlier edit is only recorded again.
fn is_change(shown: Option<&Call>, edited: &EditedArgs) -> bool {
    shown.is_none_or(|call| call.args != edited.args)
}

/// The calls that were decided alike in succession; each rejection is followed by its result.
fn together(
    control: &Control,
    rest: &[Event],
    alike: (Verdict, &Actor, Option<&str>),
) -> Vec<CallId> {
    let changes = |call: &CallId, edited: &Option<EditedArgs>| {
        let shown = control.call(call).map(|call| &**call);
        edited
            .as_ref()
            .is_some_and(|edited| is_change(shown, edited))
    };
    let mut ids: Vec<CallId> = Vec::new();
    let mut seen = BTreeSet::new();
    for event in rest {
        match event {
            Event::Decided {
                call,
                verdict,
                by: Decider::Person(by),
                reason,
                edited,
                ..
            } if !changes(call, edited)
                && (*verdict, by, reason.as_deref()) == alike
                && seen.insert(call.clone()) =>
            {
                ids.push(call.clone());
            }
            Event::Consented {
                call, by, edited, ..
            } if !changes(call, edited)
                && (Verdict::Approved, by) == (alike.0, alike.1)
                && seen.insert(call.clone()) =>
            {
                ids.push(call.clone());
            }
            Event::Ended { call, .. } | Event::Decided { call, .. } if seen.contains(call) => {}
            Event::WantsChanged { .. } => {}
            _ => break,
        }
    }
    ids
}
