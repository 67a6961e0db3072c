//! The session as somebody who joins sees it.

use super::replica::Replica;
use crate::agent::cluster::presence::HasSite as _;
use crate::agent::effects::meter::Meter;
use crate::agent::feed::{Joined, LeftOut, QueueState, SessionView, TurnView, UsageState};
use crate::history::{self, Past};
use crate::llm;
use crate::llm::tokens::Counter;
use crate::session::{Activity, ModelChoice, Phase, Spent};

impl Replica {
    pub(super) fn queue(&self) -> QueueState {
        let control = &self.state.control;
        let (calls, said) = match &control.turn {
            Some(turn) => (turn.queue.clone(), turn.said.clone()),
            None => (Vec::new(), String::new()),
        };
        QueueState {
            calls,
            said,
            seq: control.seq,
        }
    }

    pub(super) fn usage(&self) -> UsageState {
        let control = &self.state.control;
        let model = self.agent.describe(self.choice());
        UsageState {
            totals: control.totals,
            context_tokens: control.last_usage.total(),
            window: model.context_window,
            is_window_assumed: model.is_window_assumed,
            reads_whole: control.reads_whole,
            left_out: self.left_out(),
            counter: self.counter(),
            seq: control.seq,
        }
    }

    /// What counts the model's tokens without holding up the session.
    fn counter(&self) -> Counter {
        let entries = self.state.entries.iter().map(|entry| &**entry);
        self.agent.counter(self.choice()).at_hand(entries)
    }

    /// What a request of the model that is stopped has used: as its meter says where it ran here, else
    /// as one can tell.
    pub(super) fn spent(&self, meter: Option<&Meter>, so_far: &llm::Answer) -> Vec<Spent> {
        if let Some(meter) = meter {
            return meter.stop(so_far, &self.agent);
        }
        let control = &self.state.control;
        let choice = control.asked().unwrap_or(&self.genesis.model);
        self.agent
            .spent_elsewhere(control, (choice, self.request_tokens(choice)), so_far)
    }

    /// About how many tokens a request to that model takes now.
    fn request_tokens(&self, choice: &ModelChoice) -> u64 {
        let input = history::last_input(&self.state.entries);
        let own = self.agent.turn_limits(&self.state.control);
        let entries = self.state.entries.iter().map(|entry| &**entry);
        let counter = self.agent.counter(choice).at_hand(entries);
        let Ok(base) = self.agent.request_base(choice, (input, own), counter) else {
            return 0;
        };
        base.tokens + self.window(base.limits, counter).tokens
    }

    /// What a request with these limits shows of the past.
    fn window(&self, limits: history::Limits, counter: Counter) -> history::Window {
        let strategies = self.agent.history.strategies(&self.state.control);
        let past = Past::of(&self.state);
        history::window(past, limits, strategies, |entry| counter.of_entry(entry))
    }

    /// What the next request would leave out.
    fn left_out(&self) -> LeftOut {
        let input = history::last_input(&self.state.entries);
        let own = self.agent.turn_limits(&self.state.control);
        let counter = self.counter();
        let of = (input, own);
        let (limits, whole) = match self.agent.request_base(self.choice(), of, counter) {
            Ok(request_base) => (request_base.limits, request_base.whole),
            // The request itself says what is wrong with the prompt.
            Err(_) => (own, history::Limits::default()),
        };
        let shown = self.window(limits, counter);
        LeftOut {
            messages: self.state.left_out + shown.left_out,
            from_seq: shown.from_seq,
            whole_reads_more: !whole.are_within(limits),
        }
    }

    pub(super) fn joined(&self) -> Joined {
        let (signals, answer) = self.feed.watch();
        let control = &self.state.control;
        let view = SessionView {
            journal: control
                .journal
                .clone()
                .unwrap_or_else(|| self.genesis.journal.clone()),
            seq: control.seq,
            title: control.title.clone(),
            model: self.choice().clone(),
            strategies: control.strategies.clone().unwrap_or_default(),
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
            configured_max_tokens: self.agent.history.limits.max_tokens,
            container: self.agent.tools.site().container,
        };
        Joined { signals, view }
    }
}
