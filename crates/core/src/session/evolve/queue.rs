//! Folds the events of calls.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "`Control::evolve` is the exhaustive match"
)]

use std::sync::Arc;

use crate::domain::{Actor, CallId, GestureMeans, Memo, Role, RunsInKind, Timestamp, written_path};
use crate::session::call::{
    Call, CallStatus, Consent, Decider, Outcome, PastDecision, Verdict, ViewOrigin,
};
use crate::session::event::{EditedArgs, Event};
use crate::session::review::{CallReview, Review, ReviewVerdict, RunningReview};
use crate::session::state::{Control, tool_key};

/// Maximum number of decisions about calls of earlier queues that are kept to detect repeats.
const PAST_DECISIONS: usize = 64;

impl Control {
    pub(super) fn evolve_queue(&mut self, event: &Event, at: Timestamp) {
        match event {
            Event::Queued { calls } => self.enqueue(calls),
            Event::WantsChanged { call, wants } => {
                self.change(call, |call| call.wants = wants.clone());
            }
            Event::Consented {
                call,
                by,
                role,
                edited,
                gesture,
                ..
            } => self.consented((call, edited.as_ref()), (by, *role, *gesture), at),
            Event::ConsentWithdrawn { call, by } => {
                self.change(call, |call| call.consents.retain(|it| it.by.id != by.id));
                self.attend(at);
            }
            Event::ApprovalAsked { call, .. } => {
                self.change(&call.id, |call| {
                    call.status = CallStatus::Pending { asked: true }
                });
            }
            Event::Decided { .. } => self.evolve_decision(event, at),
            Event::Started { call, .. } => self.started(call, at),
            Event::CallStopRequested { call } => self.change(call, |call| {
                if let CallStatus::Executing { is_stopping, .. } = &mut call.status {
                    *is_stopping = true;
                }
            }),
            Event::TaskCreated { call, task } => {
                self.change(call, |call| call.task = Some(task.clone()));
            }
            Event::Ended { call, outcome, .. } => {
                self.ended(call, outcome);
                super::elicitation::evolve_elicitation(self, event, at);
            }
            Event::ReviewAsked { call } => self.review_asked(call),
            Event::Reviewed { call, review } => self.reviewed(call, review),
            Event::DryRunMoved { call, to, .. } => {
                self.change(call, |call| call.dry_run.clone_from(to));
            }
            _ => {}
        }
    }

    /// Folds a decision about a call, with or without edited arguments.
    fn evolve_decision(&mut self, event: &Event, at: Timestamp) {
        let Event::Decided {
            call,
            verdict,
            by,
            edited,
            edited_by,
            gesture,
            dry_run,
            expires_after_ms,
            ..
        } = event
        else {
            return;
        };
        if let Some(edited) = edited {
            let decider = match by {
                Decider::Person(person) => Some(person),
                Decider::Rule { .. } | Decider::Reviewer { .. } | Decider::System => None,
            };
            let editor = edited_by.as_ref().or(decider);
            self.change(call, |call| edit(call, edited, editor));
        }
        self.change(call, |call| {
            call.gesture = *gesture;
            call.taken_result.clone_from(dry_run);
            // A dry run stays valid for a call that waits again and has not run.
            if dry_run.is_none() && *verdict != Verdict::TakenBack {
                call.dry_run = None;
            }
        });
        self.decided(call, *verdict, by, at);
        if *verdict == Verdict::TakenBack {
            self.change(call, |call| {
                let wants = std::mem::take(&mut call.wants);
                call.wants = wants.expiring(at, *expires_after_ms);
            });
        }
    }

    fn change(&mut self, id: &CallId, change: impl FnOnce(&mut Call)) {
        let queue = self.turn.iter_mut().flat_map(|turn| &mut turn.queue);
        let mut calls = queue.chain(&mut self.views.calls);
        if let Some(call) = calls.find(|call| call.id == *id) {
            let call = Arc::make_mut(call);
            call.card = Memo::default();
            change(call);
        }
    }

    /// Drops running dry runs: they ended with their process, and their results are lost.
    pub(super) fn forget_dry_runs(&mut self) {
        let queue = self.calls();
        let running = queue.filter(|call| call.is_dry_running());
        let running: Vec<CallId> = running.map(|call| call.id.clone()).collect();
        for id in running {
            self.change(&id, |call| call.dry_run = None);
        }
    }

    fn enqueue(&mut self, calls: &[Arc<Call>]) {
        if let Some(turn) = &mut self.turn {
            turn.queue = calls.to_vec();
        }
        if let Some(first) = calls.first() {
            self.keep_stamp(first);
        }
    }

    /// Remembers the timestamp in a call id, so that later calls get other ids.
    pub(super) fn keep_stamp(&mut self, call: &Call) {
        let stamp = call.id.as_str().split('_').nth(1);
        if let Some(ms) = stamp.and_then(|ms| ms.parse().ok()) {
            self.last_call_ms = ms;
        }
    }

    /// Remembers people's decisions about the current queue, which may be sent again after the queue is
    /// gone.
    pub(super) fn keep_decisions(&mut self) {
        let queue = self.turn.iter().flat_map(|turn| &turn.queue);
        let queue: Vec<Arc<Call>> = queue.cloned().collect();
        for call in &queue {
            self.keep_decision(call);
        }
    }

    pub(super) fn keep_decision(&mut self, call: &Call) {
        let Some(past) = PastDecision::of(call) else {
            return;
        };
        if self.past.len() == PAST_DECISIONS {
            self.past.pop_front();
        }
        self.past.push_back(Arc::new(past));
    }

    fn consented(
        &mut self,
        (id, edited): (&CallId, Option<&EditedArgs>),
        (by, role, gesture): (&Actor, Option<Role>, Option<GestureMeans>),
        at: Timestamp,
    ) {
        self.change(id, |call| {
            if let Some(edited) = edited {
                edit(call, edited, Some(by));
            }
            call.consents.retain(|it| it.by.id != by.id);
            call.consents.push(Consent {
                by: by.clone(),
                role,
                at,
                gesture,
            });
        });
        self.attend(at);
    }

    /// Records that a person acted on the turn.
    fn attend(&mut self, at: Timestamp) {
        if let Some(turn) = &mut self.turn {
            turn.attended = Some(at);
        }
    }

    fn decided(&mut self, id: &CallId, verdict: Verdict, by: &Decider, at: Timestamp) {
        let mut rejected = None;
        let mut origin: Option<ViewOrigin> = None;
        let mut has_expired = false;
        self.change(id, |call| match verdict {
            Verdict::Approved => call.status = CallStatus::Approved { by: by.clone(), at },
            Verdict::TakenBack => {
                call.status = CallStatus::Pending { asked: false };
                if let Decider::Person(by) = by {
                    call.awaits_person = true;
                    // If that person consented, only that consent; otherwise the owner without a consent
                    // drops all.
                    let gave = call.consents.iter().any(|it| it.by.id == by.id);
                    call.consents.retain(|it| gave && it.by.id != by.id);
                }
            }
            Verdict::Rejected => {
                rejected = call.facts.as_ref().map(|facts| facts.equal.clone());
                origin.clone_from(&call.origin);
                has_expired = *by == Decider::System && call.is_overdue(at);
                call.has_expired = has_expired;
                let by = Some(by.clone());
                call.status = CallStatus::Ended {
                    status: "rejected".into(),
                    by,
                };
            }
        });
        let is_by_person = matches!(by, Decider::Person(_));
        if is_by_person && verdict == Verdict::Approved {
            // A person's approval resets the count that switches the reviewer off.
            self.reviewing.refusals = 0;
        }
        if is_by_person && verdict != Verdict::TakenBack {
            self.decided_at = Some(at);
        }
        if let Some(origin) = origin {
            if let Some(equal) = rejected {
                self.views.refuse(origin.view, equal);
            }
            return;
        }
        if let Some(turn) = &mut self.turn {
            // The turn's time limit did not run while the call waited.
            if is_by_person || has_expired {
                turn.attended = Some(at);
            }
            turn.rejected.extend(rejected);
        }
    }

    fn review_asked(&mut self, id: &CallId) {
        let turn = self.turn.as_ref();
        self.reviewing.running = turn.and_then(|turn| {
            Some(RunningReview {
                turn: turn.id,
                call: id.clone(),
                digest: turn.call(id)?.digest()?.clone(),
            })
        });
        self.change(id, |call| call.review = Some(CallReview::Running));
    }

    /// Folds a finished review. One that comes after the person's decision does not count.
    fn reviewed(&mut self, id: &CallId, review: &Review) {
        self.reviewing.running = None;
        let mut is_late = true;
        self.change(id, |call| {
            is_late = !call.is_pending();
            call.review = (!is_late).then(|| CallReview::Over(review.clone()));
        });
        // The reviewer's own approval does not reset the count; only a person's does.
        if review.verdict != ReviewVerdict::Allowed && !is_late {
            self.reviewing.refusals = self.reviewing.refusals.saturating_add(1);
        }
    }

    fn started(&mut self, id: &CallId, at: Timestamp) {
        let mut used = None;
        let mut is_here = false;
        self.change(id, |call| {
            if let CallStatus::Approved { by, .. } = &call.status {
                call.status = CallStatus::Executing {
                    by: by.clone(),
                    at,
                    is_stopping: false,
                };
            }
            used = call.facts.as_ref().map(|facts| tool_key(&facts.tool));
            let kind = call.facts.as_ref().map(|facts| facts.runs_in.kind);
            is_here = kind.is_some_and(|kind| kind != RunsInKind::Remote);
        });
        self.used_tools.extend(used);
        if is_here && self.engine.is_none() {
            self.engine.clone_from(&self.runner.engine);
        }
    }

    fn ended(&mut self, id: &CallId, outcome: &Outcome) {
        let mut lost = None;
        self.change(id, |call| {
            let by = match &call.status {
                CallStatus::Approved { by, .. } | CallStatus::Executing { by, .. } => {
                    Some(by.clone())
                }
                CallStatus::Ended { by, .. } => by.clone(),
                CallStatus::Pending { .. } => None,
            };
            call.status = CallStatus::Ended {
                status: outcome.status().into(),
                by,
            };
            call.result = Some(outcome.beginning());
            call.result_digest = Some(outcome.digest());
            (call.dry_run, call.taken_result) = (None, None);
            lost = call
                .facts
                .as_ref()
                .map(|facts| (call.name.clone(), facts.equal.clone()));
        });
        if let (Outcome::Unknown { .. }, Some((name, equal))) = (outcome, lost) {
            if self.views.calls.iter().any(|call| call.id == *id) {
                self.views.unknown.insert(id.clone());
            }
            self.unknown.insert(id.clone(), name);
            self.unknown_equals.insert(equal);
        }
    }
}

/// Replaces the arguments that would run and keeps the model's as the original. A decision may repeat an
/// earlier edit, which changes nothing.
fn edit(call: &mut Call, edited: &EditedArgs, editor: Option<&Actor>) {
    let is_made = call.original_args.is_some() && call.args == edited.args;
    if is_made && call.digest() == Some(&edited.digest) {
        return;
    }
    call.edited_by = editor.cloned();
    let is_same_file = written_path(&call.args) == written_path(&edited.args);
    let before = std::mem::replace(&mut call.args, edited.args.clone());
    call.original_args.get_or_insert(before);
    call.consents.clear();
    call.dry_run = None;
    if let Some(facts) = call.facts.as_mut().map(Arc::make_mut) {
        facts.card = Memo::default();
        facts.digest = edited.digest.clone();
        facts.equal = edited.equal.clone();
        // The file facts apply to one path only.
        facts.file = facts.file.filter(|_| is_same_file);
    }
}
