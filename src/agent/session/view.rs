//! Shows the session to people who join it.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::replica::Replica;
use crate::agent::cluster::presence::HasSite as _;
use crate::agent::effects::model_request::meter::Meter;
use crate::agent::effects::session_agent::Reads;
use crate::agent::feed::{
    GoingOn, OmittedHistory, QueueState, QueueView, SessionSubscription, SessionView, TurnView,
    UsageState,
};
use crate::agent::key_limits;
use crate::agent::request::Submission;
use crate::context::{ArrangedContexts, ContextSession};
use crate::domain::{CallId, Code, RequestParts, Role, UserId};
use crate::history::{self, Past};
use crate::llm;
use crate::llm::tokens::Counter;
use crate::session::{Activity, AttemptUsage, Gaps, ModelChoice, Phase, Refusal};

impl Replica {
    pub(super) fn queue(&self) -> QueueState {
        QueueState::of(&self.state.control)
    }

    /// The part of the queue that the person may see.
    pub(super) fn queue_for(&self, who: (&UserId, Role)) -> QueueView {
        QueueView::of(&self.state, who)
    }

    /// Admits the owner only; to anybody else the session does not exist.
    pub(super) fn admit(&self, by: &UserId) -> Result<(), Refusal> {
        if self.owner().id == *by {
            return Ok(());
        }
        Err(Refusal::new(
            Code::SessionNotFound,
            "there is no such session",
        ))
    }

    /// Admits others only to decide the calls that wait for their approval.
    pub(super) async fn admit_request(&mut self, submission: &Submission) -> Result<(), Refusal> {
        let Submission {
            by,
            action,
            servers,
            ..
        } = submission;
        let refused = match self.admit(by) {
            Ok(()) => {
                check_acts(action.decides().and_then(|(_, role)| role))?;
                return self.check_servers(servers.as_deref());
            }
            Err(refused) => refused,
        };
        let Some((calls, role)) = action.decides().filter(|(calls, _)| !calls.is_empty()) else {
            return Err(refused);
        };
        if !self.may_decide(by, role, calls) && !self.cluster.membership.is_alone() {
            self.catch_up().await;
        }
        if !self.may_decide(by, role, calls) {
            return Err(refused);
        }
        self.check_servers(servers.as_deref())
    }

    fn check_servers(&self, of_key: Option<&BTreeSet<String>>) -> Result<(), Refusal> {
        key_limits::check_servers(of_key, self.servers().map(|servers| &**servers))
    }

    /// Returns true if the approval of this person, who is not the owner, counts for all of these calls.
    fn may_decide(&self, who: &UserId, role: Option<Role>, calls: &[CallId]) -> bool {
        let control = &self.state.control;
        let owner = control.owner.as_ref().map(|owner| &owner.id);
        calls.iter().all(|id| {
            let call = control.call(id);
            call.is_some_and(|call| call.wants.may_approve(who, role, owner))
        })
    }

    pub(super) fn usage(&self) -> UsageState {
        let control = &self.state.control;
        let model = self.agent.describe(self.choice());
        let (left_out, next_input) = self.next_request();
        UsageState {
            totals: control.usage.totals,
            context_tokens: control.usage.last_usage.total(),
            window: model.context_window,
            is_window_assumed: model.is_window_assumed,
            reads_whole: control.context.reads_whole,
            next_input,
            left_out,
            counter: self.counter(),
            last_request: control.usage.last_request.clone(),
            going_on: GoingOn::after(&control.usage.last_usage, &model),
            seq: control.seq,
        }
    }

    /// A counter for the model's tokens that does not block the session.
    fn counter(&self) -> Counter {
        let entries = self.state.entries.iter().map(|entry| &**entry);
        self.agent.counter(self.choice()).at_hand(entries)
    }

    /// Returns the usage of a stopped model request: from its meter if it ran here, otherwise estimated.
    pub(super) fn spent(&self, meter: Option<&Meter>, so_far: &llm::Answer) -> Vec<AttemptUsage> {
        if let Some(meter) = meter {
            return meter.stop(so_far, &self.agent);
        }
        let control = &self.state.control;
        let choice = control.asked().unwrap_or(&self.genesis.model);
        let (tokens, parts) = self.request_tokens(choice);
        self.agent
            .spent_elsewhere(control, choice, tokens, &parts, so_far)
    }

    /// Estimates the tokens of a request to that model now, with their composition.
    fn request_tokens(&self, choice: &ModelChoice) -> (u64, RequestParts) {
        let own = self.limits_of(choice);
        let entries = self.state.entries.iter().map(|entry| &**entry);
        let counter = self.agent.counter(choice).at_hand(entries);
        let arranged = self.arranged();
        let reads = self.reads(&arranged, own);
        let Ok(base) = self.agent.request_base(choice, reads, counter) else {
            return (0, RequestParts::default());
        };
        let shown = self.window(&arranged, choice, own, base.limits, counter);

        let parts = self.agent.composition(
            &base,
            shown.read(),
            self.state.control.context.question,
            counter,
        );
        (base.tokens + shown.tokens, parts)
    }

    /// Returns how much of the history a request to that model may read: the whole window if its vendor
    /// compacts.
    fn limits_of(&self, choice: &ModelChoice) -> history::Limits {
        let control = &self.state.control;
        match self.agent.compactor(choice) {
            Some(_) => history::Limits::default().lowered(control),
            None => self.agent.turn_limits(control),
        }
    }

    /// Arranges the contexts of the next request, as far as the providers have them at hand.
    fn arranged(&self) -> ArrangedContexts {
        let turn = self.state.control.turn.as_ref().map(|turn| turn.id);
        let entries = &self.state.entries;
        let session = ContextSession::of(&self.key, entries, turn.unwrap_or_default());
        self.agent.context.at_hand(&session).arranged(&session)
    }

    /// The input of the next request within these limits.
    fn reads<'a>(&'a self, arranged: &'a ArrangedContexts, limits: history::Limits) -> Reads<'a> {
        Reads {
            input: history::last_input(&self.state.entries),
            arranged,
            limits,
            has_short_results: self.state.control.context.has_short_results,
        }
    }

    /// Returns the window on the history of a request to that model: within `limits`, if the session lets it
    /// read `own`.
    fn window(
        &self,
        arranged: &ArrangedContexts,
        choice: &ModelChoice,
        own: history::Limits,
        limits: history::Limits,
        counter: Counter,
    ) -> history::Window {
        let reader = self.agent.reader(choice, own);
        let entries = reader.entries(arranged.history(), &self.state.control.placed);
        let compactor = self.agent.compactor(choice).filter(|_| arranged.is_whole());
        let mut past = Past {
            entries: &entries,
            compactor: compactor.as_ref().map(|it| it.family.as_str()),
            ..Past::of(&self.state)
        };
        if !arranged.is_whole() {
            (past.gaps, past.compaction) = (Gaps::NONE, None);
        }
        let strategies = self.agent.strategies(&self.state.control);
        history::window(past, limits, &strategies, |entry| counter.of_entry(entry))
    }

    /// Returns what the next request would leave out, and its approximate tokens; `None` if unknown.
    fn next_request(&self) -> (OmittedHistory, Option<u64>) {
        let own = self.limits_of(self.choice());
        let counter = self.counter();
        let arranged = self.arranged();
        let reads = self.reads(&arranged, own);
        let base = self.agent.request_base(self.choice(), reads, counter);
        let base = base.ok();
        // The request itself reports an error of the prompt.
        let usual = (own, history::Limits::default());
        let (limits, whole) = base
            .as_ref()
            .map_or(usual, |base| (base.limits, base.whole));
        let shown = self.window(&arranged, self.choice(), own, limits, counter);
        let hidden = self
            .state
            .entries
            .len()
            .saturating_sub(arranged.history().len());
        let left_out = OmittedHistory {
            messages: self.state.left_out + shown.left_out + hidden as u64,
            from_seq: shown.from_seq,
            whole_reads_more: !whole.are_within(limits),
        };
        (left_out, base.map(|base| base.tokens + shown.tokens))
    }

    pub(super) fn joined(&self) -> SessionSubscription {
        let (signals, answer) = self.feed.watch();
        let control = &self.state.control;
        let view = SessionView {
            journal: control
                .journal
                .clone()
                .unwrap_or_else(|| self.genesis.journal.clone()),
            seq: control.seq,
            title: control.title.text.clone(),
            model: self.choice().clone(),
            strategies: control.context.strategies.clone().unwrap_or_default(),
            assistant: self.assistant().cloned(),
            is_stored: control.version > 0,
            queue: self.queue(),
            usage: self.usage(),
            turn: control.turn.as_ref().map(|turn| TurnView {
                id: turn.id,
                iteration: turn.iteration,
                phase: match (turn.phase, control.activity()) {
                    (Phase::Asking, _) => "model",
                    (Phase::Calling, Activity::Waiting(_)) => "waiting",
                    (Phase::Calling, _) => "calls",
                },
                since: turn.phase_since,
            }),
            answer,
            waiting: control.waiting.clone(),
            configured_max_tokens: self.agent.parts.history.limits.max_tokens,
            rules: Arc::clone(&control.rules),
            container: self.agent.tools.site().container,
        };
        SessionSubscription { signals, view }
    }
}

/// Refuses somebody who decides in a session of their own with a role that has no sessions any more.
fn check_acts(role: Option<Role>) -> Result<(), Refusal> {
    if role.is_none_or(Role::may_act) {
        return Ok(());
    }
    let text = "your role decides calls in sessions of others, not in its own";
    Err(Refusal::new(Code::NotAllowed, text))
}
