//! Tests two gateways on one journal: each decides on what it has read, wakes are lost, one freezes and
//! returns, one dies. `World` makes the checks; this module chooses who acts when.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::world::{World, answer, wanted_calls};
use super::{Step, command, config, outcome, rules, some_calls};
use crate::domain::{CallId, GatewayId, ModelRequestId};
use crate::session::{Command, Effect, Event, Phase, Refusal, SessionState, effects};

/// A gateway with the state that it has read and the effects that it runs.
struct Gateway {
    id: GatewayId,
    starts: u32,
    state: SessionState,
    read: usize,
    /// The epoch in which the effects below were started.
    epoch: u64,
    calls: BTreeSet<CallId>,
    /// Calls whose server is being opened, with the state known at that moment.
    opening: BTreeMap<CallId, SessionState>,
    model: Option<ModelRequestId>,
}

impl Gateway {
    fn new(name: &str) -> Self {
        Self {
            id: name.into(),
            starts: 0,
            state: SessionState::default(),
            read: 0,
            epoch: 0,
            calls: BTreeSet::new(),
            opening: BTreeMap::new(),
            model: None,
        }
    }

    /// Applies up to `most` further commits: a wake may bring only one of several.
    fn read_on(&mut self, world: &World, most: usize) {
        let end = world.journal.len().min(self.read.saturating_add(most));
        for commit in &world.journal[self.read..end] {
            self.state.apply(commit);
        }
        self.read = end;
    }

    /// The shell's `reconcile`: only the runner runs effects.
    fn reconcile(&mut self, world: &mut World) {
        let control = &self.state.control;
        if !control.is_run_by(&self.id) || self.epoch != control.runner.epoch {
            self.calls.clear();
            self.opening.clear();
            self.model = None;
        }
        if !control.is_run_by(&self.id) {
            return;
        }
        self.epoch = control.runner.epoch;
        self.model = effects(control)
            .into_iter()
            .find_map(|effect| match effect {
                Effect::AskModel(request) => Some(request),
                Effect::RunCall { .. }
                | Effect::MakeTitle
                | Effect::Review(_)
                | Effect::DryRun(_)
                | Effect::Sample(_)
                | Effect::CopyWorkspace => None,
            });
        let wanted = wanted_calls(&self.state);
        self.calls.retain(|call| wanted.contains(call));
        self.opening.retain(|call, _| wanted.contains(call));
        for call in wanted.difference(&self.calls) {
            let known = || self.state.clone();
            self.opening.entry(call.clone()).or_insert_with(known);
        }
        if world.now % 2 == 0 {
            self.send_all(world);
        }
    }

    /// Sends the calls whose servers are open now; the fence stops those that were handed over.
    fn send_all(&mut self, world: &mut World) {
        for (call, known) in std::mem::take(&mut self.opening) {
            if world.send(&known, &call) {
                self.calls.insert(call);
            }
        }
    }

    /// The shell's commit loop: decide and append; after a conflict read on and decide again.
    fn commit(
        &mut self,
        world: &mut World,
        command: &Command,
        epoch: Option<u64>,
    ) -> Result<Vec<Event>, Refusal> {
        world.now += 1;
        loop {
            let events = world.decide_at(&self.state, command, &self.id, epoch)?;
            if events.is_empty() {
                return Ok(events);
            }
            if self.read < world.journal.len() {
                self.read_on(world, usize::MAX);
                continue;
            }
            if let Some(epoch) = epoch {
                assert!(
                    world.state.control.is_run_by(&self.id),
                    "only the runner has outcomes"
                );
                assert_eq!(epoch, world.state.control.runner.epoch);
            }
            world.append(events.clone());
            self.read_on(world, usize::MAX);
            return Ok(events);
        }
    }

    /// Simulates `kill -9`: another process opens the session in its place.
    fn die(&mut self, world: &World) {
        self.starts += 1;
        let name = self.id.as_str()[..1].to_owned();
        *self = Self {
            starts: self.starts,
            ..Self::new(&format!("{name}{}", self.starts))
        };
        self.read_on(world, usize::MAX);
    }

    /// Takes the session over because the runner is believed to be dead, which may be wrong.
    fn take_over(&mut self, world: &mut World) {
        let from = self.state.control.runner.gateway.clone();
        if self.state.control.is_unfinished() && from.as_ref() != Some(&self.id) {
            self.commit(world, &Command::TakeOver { from }, None)
                .unwrap();
        }
    }

    /// Ends an effect that runs on this gateway.
    fn end_something(&mut self, world: &mut World, (_, a, b): Step) {
        let epoch = Some(self.epoch);
        self.send_all(world);
        if let Some(request) = self.model {
            let answer = answer("text", some_calls(a, b));
            let command = Command::Answered { request, answer };
            self.model = None;
            self.commit(world, &command, epoch).unwrap();
        } else if let Some(call) = self.calls.pop_first() {
            let command = Command::CallEnded {
                call,
                outcome: outcome(b),
                duration_ms: 1,
            };
            self.commit(world, &command, epoch).unwrap();
        }
    }
}

/// Lets both gateways act without losses until the turn has ended.
fn come_to_rest(world: &mut World, gateways: &mut [Gateway; 2]) {
    let stop = Command::Stop {
        turn: None,
        said_so_far: None,
        thought_so_far: None,
        spent: Vec::new(),
    };
    gateways[0].read_on(world, usize::MAX);
    gateways[0].take_over(world);
    gateways[0].commit(world, &stop, None).unwrap();
    for view in 0..3 {
        let closed = super::views::closed(view);
        gateways[0].commit(world, &closed, None).unwrap();
    }
    for round in 0..64 {
        if !world.state.control.is_unfinished() {
            return;
        }
        let gateway = &mut gateways[round % 2];
        gateway.read_on(world, usize::MAX);
        gateway.reconcile(world);
        gateway.end_something(world, (0, 0, 1));
    }
    panic!(
        "the session does not come to rest: {:?}",
        world.state.control.turn
    );
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn two_gateways_keep_the_promises_of_one(
        seed in any::<u8>(),
        steps in prop::collection::vec((any::<Step>(), any::<u8>()), 1..64),
    ) {
        let mut world = World::new();
        rules(&mut world, seed);
        world.is_shared = true;
        world.shares_files = seed < 128;
        world.has_engine = seed % 4 > 0;
        let mut gateways = [Gateway::new("a"), Gateway::new("b")];
        for (step, who) in steps {
            let gateway = &mut gateways[usize::from(who % 2)];
            match who / 2 {
                // A wake: the gateway reads one commit or all; other picks lose the wake.
                0..=19 => gateway.read_on(&world, 1),
                20..=39 => gateway.read_on(&world, usize::MAX),
                40..=69 => gateway.end_something(&mut world, step),
                70..=74 => gateway.die(&world),
                75..=82 => gateway.take_over(&mut world),
                83..=84 => world.now += 20 * 60 * 1000,
                85 => world.has_engine = true,
                // A person sends a command on a page that may be behind.
                _ => {
                    let command = command(&world, (step.0 % 230, step.1, step.2));
                    let is_outcome = matches!(
                        command,
                        Command::Answered { .. } | Command::ModelFailed { .. } | Command::CallEnded { .. }
                    );
                    if !is_outcome {
                        let _ = gateway.commit(&mut world, &command, None);
                    }
                }
            }
            // A frozen gateway does not reconcile its effects.
            if step.0 % 4 > 0 {
                gateway.reconcile(&mut world);
            }
        }
        world.check_folds();
        come_to_rest(&mut world, &mut gateways);
        for gateway in &mut gateways {
            gateway.read_on(&world, usize::MAX);
            prop_assert_eq!(&gateway.state, &world.state);
        }
        let is_asking = world.state.control.turn.as_ref().is_some_and(|turn| turn.phase == Phase::Asking);
        prop_assert!(!is_asking);
    }
}
