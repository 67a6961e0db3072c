//! Decides the approval queue (S2.28 to S2.45): calls are asked for one by one, decided in any order and
//! run in parallel.

pub(super) mod dry_run;

use std::sync::Arc;

use super::consent::{Approval, Person, Yes, check_may_decide, consent, withdraw_consent};
use super::elicitation;
use super::refusal::{
    already_decided, check_not_expired, check_repeat, check_same_tool, check_shown, no_such_call,
};
use super::rules::{ask_for_review, check_not_denied, expire_calls, withdraw_approvals};
use super::{Draft, nothing_to_do, views};
use crate::domain::{Actor, CallId, Code};
use crate::session::call::{Call, CallStatus, Decider, ElicitationEnd, Outcome, Verdict};
use crate::session::command::Decision;
use crate::session::event::{EditedArgs, Event};
use crate::session::refusal::Refusal;
use crate::session::state::Phase;

impl Draft<'_> {
    /// Takes the next step of a queue: asks for the next call, starts the approved calls, or asks the model
    /// once every call has a result.
    pub(super) fn advance(&mut self) {
        expire_calls(self);
        withdraw_approvals(self);
        views::advance(self);
        let turn = self.control.turn.as_ref();
        // Calls of views do not affect a running model request.
        let Some(turn) = turn.filter(|turn| turn.phase == Phase::Calling) else {
            return;
        };
        let (request, is_stopping) = (turn.request(), turn.is_stopping);
        let overdue_ms = turn.overdue_ms;
        if turn.queue.iter().any(|call| call.is_pending()) {
            ask_for_review(self);
            self.ask_next();
            return;
        }
        if turn.queue.iter().any(|call| call.is_approved()) {
            self.start_approved();
            return;
        }
        if turn.queue.iter().all(|call| call.is_ended()) {
            if let Some(limit_ms) = overdue_ms {
                self.timed_out(request.turn, limit_ms);
            } else if is_stopping {
                self.cancelled(request.turn, None, None);
            } else {
                self.ask_model(request.next(), false);
            }
        }
    }

    /// Sends one card at a time (S2.32), although any pending call may be decided.
    fn ask_next(&mut self) {
        let is_asked =
            |call: &Arc<Call>| matches!(call.status, CallStatus::Pending { asked: true });
        if self.queue().iter().any(is_asked) {
            return;
        }
        let next = self
            .queue()
            .iter()
            .find(|call| call.is_pending())
            .map(|call| call.id.clone());
        if let Some(id) = next {
            self.ask_for(&id);
        }
    }

    fn ask_for(&mut self, id: &CallId) {
        // A call of a view is asked for on its own.
        if self.control.views.calls.iter().any(|call| call.id == *id) {
            return views::advance(self);
        }
        let Some(turn) = &self.control.turn else {
            return;
        };
        let Some(index) = turn.queue.iter().position(|call| call.id == *id) else {
            return;
        };
        let Some(call) = turn.queue.get(index) else {
            return;
        };
        let asked = Event::ApprovalAsked {
            call: Arc::clone(call),
            position: index + 1,
            total: turn.queue.len(),
            said: turn.said.clone(),
        };
        self.push(asked);
    }

    /// Starts all approved calls together (S2.36), but first those that take a dry run's result, one by
    /// one: their results apply only while nothing else changes the files.
    fn start_approved(&mut self) {
        let takes = |call: &&Arc<Call>| call.taken_result.is_some();
        if self
            .queue()
            .iter()
            .filter(takes)
            .any(|call| call.is_executing())
        {
            return;
        }
        let approved = self.queue().iter().filter(|call| call.is_approved());
        let first = approved.clone().find(takes);
        let approved: Vec<Arc<Call>> = match first {
            Some(first) => vec![Arc::clone(first)],
            None => approved.cloned().collect(),
        };
        if !self.queue().iter().any(|call| call.is_executing()) {
            self.claim_work();
        }
        for call in approved {
            self.start(&call);
        }
    }

    pub(super) fn start(&mut self, call: &Call) {
        let Some(facts) = &call.facts else { return };
        self.push(Event::Started {
            call: call.id.clone(),
            name: call.name.clone(),
            server: facts.tool.server.clone(),
            digest: facts.digest.clone(),
            view: facts.view.clone(),
        });
    }

    fn find(&self, id: &CallId) -> Result<&Arc<Call>, Refusal> {
        self.control.call(id).ok_or_else(|| no_such_call(id))
    }

    pub(super) fn decide_call(&mut self, decision: &Decision) -> Result<(), Refusal> {
        let Ok(call) = self.find(&decision.call).cloned() else {
            return check_repeat(&self.control, decision);
        };
        if decision.approved || call.has_expired {
            check_not_expired(&call, self.inputs.now)?;
        }
        if decision.approved {
            self.approve_call(&call, decision)
        } else {
            self.reject_call(&call, decision)
        }
    }

    fn approve_call(&mut self, call: &Call, decision: &Decision) -> Result<(), Refusal> {
        match &call.status {
            CallStatus::Pending { .. } => {}
            // The same decision is repeated.
            CallStatus::Approved { .. } | CallStatus::Executing { .. }
                if decision.edit.is_none() && decision.dry_run == call.taken_result =>
            {
                return check_shown(call.digest(), decision);
            }
            CallStatus::Ended {
                by: Some(Decider::Person(_)),
                status,
            } if status != "rejected" && decision.edit.is_none() => {
                return check_shown(call.digest(), decision);
            }
            CallStatus::Approved { .. }
            | CallStatus::Executing { .. }
            | CallStatus::Ended { .. } => return Err(already_decided(&call.id)),
        }
        let Some(facts) = &call.facts else {
            return Err(already_decided(&call.id));
        };
        check_shown(Some(&facts.digest), decision)?;
        // An edit to the current arguments is not a change.
        let edit = decision.edit.as_ref();
        let edited = match edit.filter(|edit| edit.args != call.args) {
            None => None,
            Some(edit) => {
                check_same_tool(&facts.digest, edit)?;
                if let Some(problem) = &edit.invalid {
                    let problem = problem.clone();
                    return Err(Refusal::of_field(Code::InvalidArguments, "args", problem));
                }
                Some(EditedArgs {
                    args: edit.args.clone(),
                    digest: edit.digest.clone(),
                    equal: edit.equal.clone(),
                })
            }
        };
        dry_run::check_result(call, decision)?;
        // The rules are applied to the changed arguments again.
        let args = edited.as_ref().map_or(&call.args, |edited| &edited.args);
        check_not_denied(self, call, args)?;
        let yes = Yes {
            person: Person::of(decision),
            edited,
            dry_run: decision.dry_run.clone(),
            names_digest: decision.digest.is_some(),
            reason: decision.reason.as_deref(),
        };
        let is_new = consent(self, call, yes)?;
        if is_new {
            self.advance();
        }
        Ok(())
    }

    fn reject_call(&mut self, call: &Call, decision: &Decision) -> Result<(), Refusal> {
        check_may_decide(self, call, Person::of(decision))?;
        let by = Decider::Person(decision.by.clone());
        if decision.take_back && call.is_pending() {
            withdraw_consent(self, call, &decision.by);
            return Ok(());
        }
        match &call.status {
            CallStatus::Pending { .. } => {
                self.reject(&call.id, decision.reason.as_deref(), by);
            }
            // Nothing has started yet: without a reason the call waits again, with one it is rejected.
            CallStatus::Approved { .. } if decision.reason.is_none() => {
                self.take_back(&call.id, by);
                self.ask_for(&call.id);
                return Ok(());
            }
            CallStatus::Approved { .. } => self.reject(&call.id, decision.reason.as_deref(), by),
            CallStatus::Ended { status, .. } if status == "rejected" => return Ok(()),
            CallStatus::Executing { .. } | CallStatus::Ended { .. } => {
                return Err(already_decided(&call.id));
            }
        }
        self.advance();
        Ok(())
    }

    pub(super) fn decide_all(
        &mut self,
        call_ids: Option<&[CallId]>,
        approved: bool,
        reason: Option<&str>,
        person: Person<'_>,
    ) -> Result<(), Refusal> {
        let ids = match call_ids {
            Some(ids) => ids.to_vec(),
            None if approved => {
                return Err(Refusal::of_field(
                    Code::InvalidArguments,
                    "callIds",
                    "approving several calls needs the ids of the calls that were seen",
                ));
            }
            None => {
                let pending = self.control.calls().filter(|call| call.is_pending());
                pending.map(|call| call.id.clone()).collect()
            }
        };
        self.check_together(&ids, approved, person)?;
        for id in &ids {
            // Calls that were decided one by one keep their decision; overdue calls cannot be approved.
            let call = self.find(id).ok().filter(|call| {
                call.is_pending() && !(approved && call.is_overdue(self.inputs.now))
            });
            let Some(call) = call.cloned() else { continue };
            if approved {
                let yes = Yes {
                    person,
                    edited: None,
                    dry_run: None,
                    names_digest: false,
                    reason,
                };
                consent(self, &call, yes)?;
            } else {
                self.reject(id, reason, Decider::Person(person.actor.clone()));
            }
        }
        if !self.events.is_empty() {
            self.advance();
        }
        Ok(())
    }

    /// Checks that all calls are known and, for an approval, that rules do not deny any of them. An
    /// approval fails as expired only if all calls have expired.
    fn check_together(
        &self,
        ids: &[CallId],
        approved: bool,
        person: Person<'_>,
    ) -> Result<(), Refusal> {
        let mut too_late = Ok(());
        let mut is_too_late = approved && !ids.is_empty();
        for id in ids {
            if let Some(past) = self.control.past_decision(id) {
                is_too_late &= past.has_expired;
                continue;
            }
            let call = self.find(id)?;
            if !approved {
                if call.is_pending() {
                    check_may_decide(self, call, person)?;
                }
                continue;
            }
            if let Err(refusal) = check_not_expired(call, self.inputs.now) {
                too_late = Err(refusal);
                continue;
            }
            is_too_late = false;
            if call.is_pending() {
                check_not_denied(self, call, &call.args)?;
            }
        }
        if is_too_late { too_late } else { Ok(()) }
    }

    pub(super) fn approve(&mut self, id: &CallId, approval: Approval) {
        let Approval {
            by,
            edited,
            gesture,
            dry_run,
            reason,
        } = approval;
        let (edited, edited_by) = match edited {
            Some(edited) => (Some(edited), None),
            None => self.earlier_edit(id, &by),
        };
        self.push(Event::Decided {
            call: id.clone(),
            verdict: Verdict::Approved,
            by,
            reason,
            edited,
            edited_by,
            gesture,
            dry_run,
            expires_after_ms: None,
        });
    }

    /// The arguments that a person edited before the approval, so that the decision contains what runs;
    /// with the editor, if it is not the decider.
    fn earlier_edit(&self, id: &CallId, by: &Decider) -> (Option<EditedArgs>, Option<Actor>) {
        let call = self.find(id).ok().filter(|it| it.original_args.is_some());
        let Some((call, facts)) = call.and_then(|call| Some((call, call.facts.as_ref()?))) else {
            return (None, None);
        };
        let edited = EditedArgs {
            args: call.args.clone(),
            digest: facts.digest.clone(),
            equal: facts.equal.clone(),
        };
        let is_theirs =
            |editor: &&Actor| matches!(by, Decider::Person(person) if person.id == editor.id);
        let edited_by = call.edited_by.as_ref().filter(|it| !is_theirs(it));
        (Some(edited), edited_by.cloned())
    }

    /// Takes an approval back: the call waits again, with a new expiry.
    pub(super) fn take_back(&mut self, id: &CallId, by: Decider) {
        self.push(Event::Decided {
            call: id.clone(),
            verdict: Verdict::TakenBack,
            by,
            reason: None,
            edited: None,
            edited_by: None,
            gesture: None,
            dry_run: None,
            expires_after_ms: self.inputs.rules.approval_expiry_ms,
        });
    }

    /// Rejects a call. It has its result at once and does not block the other calls (S2.34).
    pub(super) fn reject(&mut self, id: &CallId, reason: Option<&str>, by: Decider) {
        let reason = reason.map(ToOwned::to_owned);
        self.push(Event::Decided {
            call: id.clone(),
            verdict: Verdict::Rejected,
            by,
            reason: reason.clone(),
            edited: None,
            edited_by: None,
            gesture: None,
            dry_run: None,
            expires_after_ms: None,
        });
        self.end_call(id, Outcome::Rejected { reason }, 0);
    }

    /// Records the one result of a call.
    pub(super) fn end_call(&mut self, id: &CallId, outcome: Outcome, duration_ms: u64) {
        let Ok(call) = self.find(id) else { return };
        let (name, server) = (call.name.clone(), call.server().to_owned());
        let asked = elicitation::of_call(self, id);
        self.push(Event::Ended {
            call: id.clone(),
            name,
            server,
            outcome,
            duration_ms,
        });
        elicitation::close(self, asked, ElicitationEnd::CallEnded);
    }

    pub(super) fn call_ended(&mut self, id: &CallId, outcome: &Outcome, duration_ms: u64) {
        if self.find(id).is_ok_and(|call| call.is_executing()) {
            self.end_call(id, outcome.clone(), duration_ms);
            self.advance();
        }
    }

    pub(super) fn stop_call(&mut self, id: &CallId) -> Result<(), Refusal> {
        let call = self.find(id)?;
        match &call.status {
            CallStatus::Executing {
                is_stopping: false, ..
            } => {
                self.push(Event::CallStopRequested { call: id.clone() });
                elicitation::stop(self, Some(id));
                Ok(())
            }
            CallStatus::Executing {
                is_stopping: true, ..
            }
            | CallStatus::Ended { .. } => Ok(()),
            CallStatus::Pending { .. } | CallStatus::Approved { .. } => {
                Err(nothing_to_do("the call does not run; reject it instead"))
            }
        }
    }
}
