//! When a runner is gone: what ran becomes unknown, what was approved long ago is asked again.

use super::Draft;
use crate::domain::{Actor, CallId, Code};
use crate::session::call::{Call, CallStatus, Decider, Outcome};
use crate::session::command::Refusal;
use crate::session::event::Event;

impl Draft<'_> {
    pub(super) fn take_over(&mut self, from: Option<&str>) {
        if self.control.version == 0 || self.control.runner.as_deref() != from {
            return;
        }
        self.claim();
        let Some(turn) = &self.control.turn else {
            return;
        };
        let is_turn_stopping = turn.is_stopping;
        let queue = turn.queue.clone();
        for call in &queue {
            self.recover(call, is_turn_stopping);
        }
        if queue.iter().any(|call| !call.is_ended()) {
            self.advance();
        }
    }

    fn recover(&mut self, call: &Call, is_turn_stopping: bool) {
        match &call.status {
            CallStatus::Executing { is_stopping, .. } => {
                let may_run_again = call
                    .facts
                    .as_ref()
                    .is_some_and(|facts| facts.may_run_again());
                let is_to_stop = is_turn_stopping || *is_stopping;
                match (may_run_again, is_to_stop) {
                    // Whether the call heard of it, and when it ended, nobody knows.
                    (false, _) => {
                        self.end_call(&call.id, Outcome::Unknown { cause: None }, 0);
                    }
                    (true, true) => self.end_call(&call.id, Outcome::Cancelled, 0),
                    (true, false) => {}
                }
            }
            CallStatus::Approved { at, .. }
                if self.inputs.now.since_ms(*at) > self.inputs.rules.approval_stale_after_ms =>
            {
                self.take_back(&call.id, Decider::System);
            }
            CallStatus::Approved { .. } | CallStatus::Pending { .. } | CallStatus::Ended { .. } => {
            }
        }
    }

    pub(super) fn settle(
        &mut self,
        call: &CallId,
        happened: bool,
        by: &Actor,
    ) -> Result<(), Refusal> {
        let Some(name) = self.control.unknown.get(call).cloned() else {
            return Err(Refusal::of_field(
                Code::NoSuchCall,
                "callId",
                format!("no call `{call}` has an unknown outcome"),
            ));
        };
        self.push(Event::Settled {
            call: call.clone(),
            name,
            happened,
            by: by.clone(),
        });
        Ok(())
    }
}
