//! Provides a test shell for the pure core: a journal, a fold, and checks after every commit.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a check looks at the events that it is about"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sepal_policy::{Approvers, Scope};
use serde_json::Value;

use crate::domain::{
    Actor, CallId, CommitId, CountedEntry, Digest, EngineId, Entry, ForkOrigin, GatewayId,
    JournalId, Memo, RunsIn, RunsInKind, SandboxId, SessionId, Timestamp, TokenUsage,
    ToolAnnotations, ToolRef, Totals, UserId,
};
use crate::session::proof::{Chain, DecisionRecord, Verifier};
use crate::session::{
    Answer, Call, CallStatus, Command, Commit, ContextSize, Cut, CutKind, Decider, Decision,
    Effect, Event, Fork, Gateway, Genesis, Inputs, ModelChoice, Outcome, Output, Policy,
    PolicyEffect, Proposal, Refusal, Replay, Resolution, Rule, Rules, SCHEMA, SessionState,
    ToolFacts, Verdict, decide, effects,
};

/// A session with its journal; every commit is checked against the invariants.
pub struct World {
    pub state: SessionState,
    pub journal: Vec<Commit>,
    pub(crate) rules: Rules,
    pub(crate) now: i64,
    pub(crate) genesis: Genesis,
    starts: u32,
    /// True if several gateways act on the session, each on its own state.
    pub(crate) is_shared: bool,
    /// All gateways reach the same workspaces.
    pub(crate) shares_files: bool,
    /// True once the gateway has an engine.
    pub(crate) has_engine: bool,
    /// Calls that run in this process.
    running: BTreeSet<CallId>,
    runs: BTreeMap<CallId, u32>,
    approved: BTreeMap<CallId, Digest>,
    /// Equality digests of calls with an unknown outcome.
    unknown: BTreeSet<Digest>,
    snapshot: (usize, Vec<u8>),
    /// The model of the last request.
    asked: String,
}

/// A message of the session's owner.
pub fn say(text: &str) -> Command {
    Command::Say {
        text: text.into(),
        author: World::person(),
        client_message_id: None,
        effort: None,
        attachments: vec![],
    }
}

/// A tenant's rule for tools of any server, with its name as id.
pub(crate) fn rule(name: &str, tool: &str, effect: PolicyEffect) -> Rule {
    let mut rule = Rule::new(name, effect, Scope::Tenant);
    rule.name = Some(name.to_owned());
    rule.tool = tool.into();
    rule
}

/// A policy with these rules in force.
pub(crate) fn policy(rules: Vec<Rule>) -> Policy {
    Policy::InForce(sepal_policy::Rules::compile(rules).unwrap())
}

impl World {
    pub(crate) fn digest_of(&self, call: &CallId) -> String {
        let call = self.state.control.call(call).unwrap();
        call.facts.as_ref().unwrap().digest.as_str().to_owned()
    }
}

fn decision(call: &CallId, approved: bool, reason: Option<&str>) -> Command {
    Command::Decide(Decision {
        call: call.clone(),
        approved,
        take_back: false,
        reason: reason.map(Into::into),
        edit: None,
        dry_run: None,
        digest: None,
        by: World::person(),
        role: None,
    })
}

/// The owner's approval of a call.
pub fn approve(call: &CallId) -> Command {
    decision(call, true, None)
}

pub(crate) fn reject(call: &CallId, reason: Option<&str>) -> Command {
    decision(call, false, reason)
}

/// The two digests of a call: of what would run, and of equal calls.
pub fn digests(tool: &str, args: &Value) -> (Digest, Digest) {
    let tool = ToolRef {
        server: "files".into(),
        tool: tool.into(),
    };
    let definition = Digest::from_wire("definition");
    (
        Digest::of_call(&tool, &definition, args, "image"),
        Digest::of_equal_calls(&tool, args),
    )
}

/// A proposed call of a known tool.
pub fn proposal(tool: &str, args: Value) -> Proposal {
    let (digest, equal) = digests(tool, &args);
    Proposal {
        provider_id: format!("p-{tool}"),
        name: tool.into(),
        args,
        is_indirect: false,
        resolution: Resolution::Ready(Arc::new(ToolFacts {
            tool: ToolRef {
                server: "files".into(),
                tool: tool.into(),
            },
            title: None,
            description: String::new(),
            schema: Arc::new(serde_json::json!({"type": "object"}).into()),
            annotations: ToolAnnotations {
                read_only_hint: Some(tool.starts_with("read")),
                idempotent_hint: Some(tool.starts_with("write")),
                ..ToolAnnotations::default()
            },
            is_trusted: true,
            is_without_workspace: false,
            drift: None,
            file: None,
            view: None,
            definition: Some(Digest::from_wire("definition")),
            runs_in: RunsIn {
                kind: RunsInKind::Sandbox,
                hosts: vec![],
            },
            digest,
            equal,
            card: Memo::default(),
        })),
    }
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}

impl World {
    /// An empty session.
    pub fn new() -> Self {
        Self {
            state: SessionState::default(),
            journal: Vec::new(),
            rules: Rules::default(),
            now: 1_000,
            genesis: Genesis {
                journal: JournalId::from_bits(1),
                owner: Self::person(),
                sandbox: SandboxId::from_bits(1),
                model: ModelChoice::new("scripted", "m"),
                assistant: None,
                servers: None,
            },
            starts: 0,
            is_shared: false,
            shares_files: false,
            has_engine: true,
            running: BTreeSet::new(),
            runs: BTreeMap::new(),
            approved: BTreeMap::new(),
            unknown: BTreeSet::new(),
            asked: String::new(),
            snapshot: (0, serde_json::to_vec(&SessionState::default()).unwrap()),
        }
    }

    pub(crate) fn person() -> Actor {
        Actor {
            id: UserId::from_bits(7),
            name: "Ana".into(),
        }
    }

    /// The id of the only gateway, in worlds with one gateway at a time.
    fn gateway(&self) -> GatewayId {
        format!("gateway {}", self.starts).into()
    }

    pub(crate) fn decide_on(
        &self,
        state: &SessionState,
        command: &Command,
    ) -> Result<Vec<Event>, Refusal> {
        self.decide_at(state, command, &self.gateway(), None)
    }

    /// Decides as that gateway on the state that it knows.
    pub(crate) fn decide_at(
        &self,
        state: &SessionState,
        command: &Command,
        gateway: &GatewayId,
        epoch: Option<u64>,
    ) -> Result<Vec<Event>, Refusal> {
        self.decide_together_at(state, std::slice::from_ref(command), gateway, epoch)
    }

    fn decide_together_at(
        &self,
        state: &SessionState,
        commands: &[Command],
        gateway: &GatewayId,
        epoch: Option<u64>,
    ) -> Result<Vec<Event>, Refusal> {
        let engine = EngineId::from(if self.shares_files {
            "both"
        } else {
            &gateway.as_str()[..1]
        });
        let inputs = Inputs {
            gateway: Gateway {
                id: gateway,
                engine: self.has_engine.then_some(&engine),
                is_runner_alive: self.now % 3 > 0,
                epoch,
            },
            rules: &self.rules,
            now: Timestamp(self.now),
            genesis: &self.genesis,
        };
        decide(&state.control, commands, inputs)
    }

    /// Decides a command and appends its commit, as the shell does.
    pub fn submit(&mut self, command: &Command) -> Result<(), Refusal> {
        self.now += 1;
        let events = self.decide_on(&self.state, command)?;
        if !events.is_empty() {
            self.append(events);
        }
        Ok(())
    }

    /// Decides several commands as one commit, and checks that they give the same events as one after the
    /// other.
    pub(crate) fn submit_together(&mut self, commands: &[Command]) -> Result<(), Refusal> {
        self.now += 1;
        let gateway = self.gateway();
        let together = self.decide_together_at(&self.state, commands, &gateway, None)?;
        let (mut state, mut apart) = (self.state.clone(), Vec::new());
        for command in commands {
            let events = self.decide_on(&state, command)?;
            state.apply(&self.commit_of(&state, events.clone()));
            apart.extend(events);
        }
        assert_eq!(together, apart);
        if !together.is_empty() {
            self.append(together);
        }
        Ok(())
    }

    fn commit_of(&self, state: &SessionState, events: Vec<Event>) -> Commit {
        let control = &state.control;
        Commit {
            version: control.version + 1,
            commit_id: CommitId::from_bits(u128::from(control.version) + 1),
            schema: SCHEMA,
            at: Timestamp(self.now),
            seq: control.seq,
            events,
            is_inherited: false,
        }
    }

    pub(crate) fn append(&mut self, events: Vec<Event>) {
        let commit = self.commit_of(&self.state, events);
        let before = self.state.clone();
        self.state.apply(&commit);
        self.check(&before, &commit);
        self.journal.push(commit);
        if !self.is_shared {
            self.run_effects();
        }
    }

    /// Checks the invariants after a commit.
    fn check(&mut self, before: &SessionState, commit: &Commit) {
        let (was, is) = (&before.control, &self.state.control);
        assert_eq!(commit.seq, was.seq);
        assert_eq!(commit.last_seq(), is.seq, "`seq` has no gap");
        check_totals(was.usage.totals, is.usage.totals, &commit.events);
        let mut step = before.clone();
        for event in &commit.events {
            let entries = step.entries.clone();
            step.apply(&Commit {
                events: vec![event.clone()],
                ..commit.clone()
            });
            self.check_event(event, &step);
            if matches!(
                event,
                Event::WindowChosen { .. } | Event::CompactionChosen { .. }
            ) {
                assert_eq!(
                    entries, step.entries,
                    "a choice of what is read forgets nothing"
                );
            }
        }
    }

    fn check_event(&mut self, event: &Event, after: &SessionState) {
        check_status(event, after);
        match event {
            Event::Decided {
                call,
                verdict: Verdict::Approved,
                by,
                ..
            } => self.check_approval(call, by, after),
            Event::Decided { call, by, .. } => {
                self.approved.remove(call);
                self.check_expiry(call, by, after);
            }
            Event::Ended { call, outcome, .. } => self.take_note(call, outcome, after),
            Event::Started { call, digest, .. } => {
                assert_eq!(
                    self.approved.get(call),
                    Some(digest),
                    "no call runs undecided"
                );
                self.check_not_denied(call, after);
            }
            Event::ApprovalAsked { .. } => check_place(event, after),
            Event::Thinking { model, .. } => {
                check_pairs(&after.entries);
                let turn = after.control.turn.as_ref().unwrap();
                assert!(turn.queue.is_empty(), "the queue is cleared first");
                let choice = after.control.model.as_ref().unwrap();
                assert_eq!(*model, choice.model, "a request asks what was chosen last");
                self.asked.clone_from(model);
            }
            Event::Answered { model, .. } => {
                assert_eq!(*model, self.asked, "an answer names the model that gave it");
            }
            Event::ModelChosen { model } => {
                assert_eq!(after.control.model.as_ref(), Some(model));
                let turn = after.control.turn.as_ref();
                assert!(
                    turn.is_none_or(|turn| turn.asked.as_ref().unwrap().model == self.asked),
                    "a switch leaves the running request alone"
                );
            }
            Event::WindowChosen { whole } => {
                assert_eq!(after.control.context.reads_whole, *whole);
            }
            Event::Queued { calls } => {
                for call in calls {
                    assert!(!self.runs.contains_key(&call.id), "call ids never repeat");
                }
            }
            Event::ViewCalled { call, .. } => {
                assert!(!self.runs.contains_key(&call.id), "call ids never repeat");
                assert!(call.origin.is_some());
            }
            _ => {}
        }
    }

    /// Checks that a call that the current rules deny does not run, even if it was approved before.
    fn check_not_denied(&self, id: &CallId, after: &SessionState) {
        let call = after.control.call(id).unwrap();
        let name = &call.name;
        let Policy::InForce(rules) = &self.rules.policy else {
            panic!("the world has rules");
        };
        let given = after.control.rules.given().iter().map(|it| &it.rule);
        let mut denying = rules.iter().chain(given);
        assert!(
            !denying.any(|rule| {
                let exactly = rule.when.exactly.as_ref();
                rule.effect == PolicyEffect::Deny
                    && rule.tool.fits(name)
                    && exactly.is_none_or(|exactly| *exactly == call.args)
            }),
            "{name} runs although it is denied"
        );
    }

    /// Checks that no call expires early, and that only the clock expires a call.
    fn check_expiry(&self, id: &CallId, by: &Decider, after: &SessionState) {
        let call = after.control.call(id).unwrap();
        if call.has_expired {
            assert_eq!(*by, Decider::System);
            let at = call.wants.expires_at.unwrap();
            assert!(at.0 <= self.now, "`{id}` expired early");
            assert!(!self.runs.contains_key(id), "an expired call has run");
        } else if call.is_pending() {
            let at = call.wants.expires_at;
            assert!(
                at.is_none_or(|at| at.0 > self.now),
                "what waits again has time for it"
            );
        }
    }

    fn check_approval(&mut self, id: &CallId, by: &Decider, after: &SessionState) {
        let call = after.control.call(id).unwrap();
        let facts = call.facts.as_ref().unwrap();
        let is_by_rule = matches!(by, Decider::Rule { .. });
        assert!(
            !is_by_rule || !self.unknown.contains(&facts.equal),
            "a rule repeats a call of unknown outcome"
        );
        if matches!(by, Decider::Reviewer { .. }) {
            self.check_reviewed(call, after);
        }
        assert!(
            call.wants.expires_at.is_none_or(|at| at.0 > self.now),
            "an expired call is approved"
        );
        let (digest, _) = digests(&facts.tool.tool, &call.args);
        assert_eq!(digest, facts.digest, "the digest binds what would run");
        self.approved.insert(id.clone(), digest);
    }

    /// Checks that a model only approves calls that the current rules open to review and that need nobody
    /// but the owner.
    fn check_reviewed(&self, call: &Call, after: &SessionState) {
        let facts = call.facts.as_ref().unwrap();
        assert!(!call.awaits_person, "a person wants to look at it");
        assert!(
            !self.unknown.contains(&facts.equal),
            "a model repeats a call of unknown outcome"
        );
        assert!(
            !after.control.reviewing.is_off(),
            "three refusals leave it to the person"
        );
        let Policy::InForce(rules) = &self.rules.policy else {
            panic!("the world has rules");
        };
        let given = after.control.rules.given().iter().map(|it| &it.rule);
        let about = rules.iter().chain(given);
        let is_about = |rule: &&Rule| {
            let exactly = rule.when.exactly.as_ref();
            rule.tool.fits(&call.name) && exactly.is_none_or(|args| *args == call.args)
        };
        let about: Vec<&Rule> = about.filter(is_about).collect();
        let is = |rule: &&&Rule, effect| rule.effect == effect;
        assert!(
            !about.iter().any(|rule| is(&rule, PolicyEffect::Deny)),
            "a model approves what is denied"
        );
        assert!(
            about
                .iter()
                .any(|rule| is(&rule, PolicyEffect::Ask) && rule.reviewed),
            "nobody opened {} to the model",
            call.name
        );
        let asks = about.iter().filter(|rule| is(rule, PolicyEffect::Ask));
        assert!(
            asks.into_iter()
                .all(|rule| rule.approvers == Approvers::default()),
            "somebody else has to say yes"
        );
    }

    fn take_note(&mut self, id: &CallId, outcome: &Outcome, after: &SessionState) {
        if matches!(outcome, Outcome::Unknown { .. }) {
            let facts = after.control.call(id).unwrap().facts.as_ref();
            self.unknown.extend(facts.map(|facts| facts.equal.clone()));
        }
    }

    /// Starts the effects that have to run and do not run in this process yet.
    fn run_effects(&mut self) {
        let wanted = wanted_calls(&self.state);
        self.running.retain(|call| wanted.contains(call));
        for call in wanted.difference(&self.running.clone()) {
            let state = self.state.clone();
            self.run(&state, call);
            self.running.insert(call.clone());
        }
    }

    /// The fence: sends a call that was prepared on the known state, unless the session was handed over
    /// since. Returns true if the call was sent.
    pub(crate) fn send(&mut self, state: &SessionState, call: &CallId) -> bool {
        let known = usize::try_from(state.control.version).unwrap();
        if self.journal[known..].iter().any(Commit::hands_over) {
            return false;
        }
        let status = self.state.control.call(call).map(|call| &call.status);
        assert!(
            matches!(status, Some(CallStatus::Executing { .. })),
            "`{call}` is settled and was begun"
        );
        self.run(state, call);
        true
    }

    /// Runs a call with the known state.
    pub(crate) fn run(&mut self, state: &SessionState, call: &CallId) {
        let call_now = state.control.call(call).unwrap();
        if call_now.task.is_some() {
            // The task is resumed, and the call is not sent again.
            return;
        }
        let facts = call_now.facts.clone().unwrap();
        assert_eq!(
            self.approved.get(call),
            Some(&facts.digest),
            "exactly what was approved"
        );
        let runs = self.runs.entry(call.clone()).or_default();
        *runs += 1;
        let only_reads = facts.tool.tool.starts_with("read");
        assert!(*runs == 1 || only_reads, "`{call}` ran twice");
    }

    /// The process dies, and another one folds the journal.
    pub(crate) fn crash(&mut self) {
        self.running.clear();
        self.starts += 1;
        self.state = self.folded();
        let from = self.state.control.runner.gateway.clone();
        let tasks = self.tasks();
        self.submit(&Command::TakeOver { from }).unwrap();
        assert_eq!(self.tasks(), tasks, "a task is picked up, whoever is gone");
        self.run_effects();
    }

    /// The calls that their servers run as tasks.
    fn tasks(&self) -> Vec<CallId> {
        let calls = self.state.control.calls();
        let tasks = calls.filter(|call| call.is_executing() && call.task.is_some());
        tasks.map(|call| call.id.clone()).collect()
    }

    pub(crate) fn folded(&self) -> SessionState {
        let mut state = SessionState::default();
        for commit in &self.journal {
            let stored = Commit::from_bytes(&commit.to_bytes().unwrap()).unwrap();
            state.apply(&stored);
        }
        state
    }

    /// Number of newest entries that a cut can keep without separating calls from results.
    pub(crate) fn newest_turn(&self) -> usize {
        let entries = &self.state.entries;
        let asked = entries
            .iter()
            .rposition(|entry| matches!(***entry, Entry::User { .. }));
        asked.map_or(entries.len(), |index| entries.len() - index)
    }

    /// A cut of this kind: to the newest turn, or one that keeps every entry.
    pub(crate) fn cut(&self, kind: CutKind) -> Cut {
        let size = ContextSize {
            messages: self.state.entries.len() as u64,
            tokens: 0,
        };
        Cut {
            kept: match kind {
                CutKind::FreshContext => self.newest_turn(),
                CutKind::Shortening | CutKind::LowerLimit => self.state.entries.len(),
            },
            kind,
            max_tokens: 1,
            before: size,
            after: size,
        }
    }

    pub(crate) fn take_snapshot(&mut self) {
        self.snapshot = (self.journal.len(), serde_json::to_vec(&self.state).unwrap());
    }

    pub(crate) fn check_folds(&self) {
        self.check_chain();
        self.check_journal_folds();
        self.check_replay();
    }

    /// Checks that the stored journal is a chain, and that each decision about a call has its record.
    fn check_chain(&self) {
        let (mut chain, mut verifier) = (Chain::default(), Verifier::default());
        for commit in &self.journal {
            let body = chain.append(commit).unwrap();
            assert_eq!(Commit::from_bytes(&body).unwrap(), *commit);
            let records = verifier.take(&body).unwrap().records.unwrap();
            let is_recorded = |record: &&DecisionRecord| {
                matches!(
                    record,
                    DecisionRecord::CallConsented { .. }
                        | DecisionRecord::CallDecided { .. }
                        | DecisionRecord::CallStarted { .. }
                )
            };
            let is_decision = |event: &&Event| {
                let is_here = !commit.is_inherited;
                is_here
                    && matches!(
                        event,
                        Event::Consented { .. } | Event::Decided { .. } | Event::Started { .. }
                    )
            };
            assert_eq!(
                records.iter().filter(is_recorded).count(),
                commit.events.iter().filter(is_decision).count(),
                "each decision about a call has its record"
            );
        }
        assert_eq!(verifier.link(), chain.into_link().as_ref());
    }

    /// Checks that the journal folds to the state, without a replay. Rulings on arguments that an edit
    /// replaced are not in the journal, so a replay may differ if rules depend on arguments.
    pub(crate) fn check_journal_folds(&self) {
        assert_eq!(
            self.folded(),
            self.state,
            "fold of the journal = live state"
        );
        let mut state: SessionState = serde_json::from_slice(&self.snapshot.1).unwrap();
        for commit in &self.journal[self.snapshot.0..] {
            state.apply(commit);
        }
        assert_eq!(state, self.state, "fold of snapshot and tail = live state");
    }

    /// Checks that a replay of the recorded commands gives the same decisions.
    fn check_replay(&self) {
        let mut replay = Replay::default();
        for commit in &self.journal {
            replay.step(commit).unwrap();
        }
        let replayed = replay.finish();
        assert_eq!(replayed.recorded, replayed.replayed, "the same state");
        assert_eq!(replayed.figures.commits, self.journal.len() as u64);
    }

    /// A fork that shares the events up to `seq`, checked against what every fork keeps.
    pub(crate) fn forked(&self, seq: u64) -> Self {
        self.fork(seq, |fork| fork)
    }

    /// A fork of a session with files, up to `seq`.
    pub(crate) fn forked_with_files(&self, seq: u64) -> Self {
        self.fork(seq, |fork| fork.with_files(true))
    }

    fn fork(&self, seq: u64, change: impl Fn(Fork) -> Fork) -> Self {
        let origin = ForkOrigin {
            session: SessionId::from_bits(1),
            seq,
            root: SessionId::from_bits(2),
        };
        let genesis = Genesis {
            journal: JournalId::from_bits(2),
            sandbox: SandboxId::from_bits(2),
            ..self.genesis.clone()
        };
        let mut fork = change(Fork::new(origin.clone(), genesis));
        let id = |n: usize| CommitId::from_bits(1_000_000 + n as u128);
        for (n, commit) in self.journal.iter().enumerate() {
            if !fork.take(commit, id(n)) {
                break;
            }
        }
        let (journal, state) = fork.finish(id(self.journal.len()), Timestamp(self.now));
        let mut forked = Self {
            journal,
            state,
            now: self.now,
            ..Self::new()
        };
        forked.snapshot = (0, serde_json::to_vec(&SessionState::default()).unwrap());
        forked.check_fork(self, &origin);
        forked
    }

    fn check_fork(&self, source: &Self, origin: &ForkOrigin) {
        self.check_folds();
        let control = &self.state.control;
        assert_eq!(control.turn, None, "nothing runs in a new fork");
        assert_eq!(
            control.usage.totals,
            Totals::default(),
            "nothing is paid twice"
        );
        assert_eq!(control.forked_from.as_ref(), Some(origin));
        assert_eq!(control.runner.gateway, None, "whoever asks first runs it");
        assert!(control.used_tools.is_empty() && control.unknown.is_empty());
        check_pairs(&self.state.entries);
        let shown = |journal: &[Commit]| -> Vec<(u64, Timestamp, Event)> {
            let commits = journal.iter();
            let all = commits.flat_map(|commit| {
                let shown = commit.shown();
                shown.map(|(seq, event)| (seq, commit.at, event.clone()))
            });
            all.filter(|(seq, ..)| *seq <= origin.seq).collect()
        };
        let shared = shown(&self.journal);
        assert_eq!(
            shared,
            shown(&source.journal),
            "the shared past is the same"
        );
        for (version, commit) in (1..).zip(&self.journal) {
            assert_eq!(commit.version, version);
            assert_eq!(
                Commit::from_bytes(&commit.to_bytes().unwrap()).unwrap(),
                *commit
            );
        }
    }

    /// Ends the running model request with a text and calls.
    pub fn answer(&mut self, text: &str, calls: Vec<Proposal>) {
        let turn = self.state.control.turn.as_ref().unwrap();
        let request = turn.request();
        let answer = answer(text, calls);
        self.submit(&Command::Answered { request, answer }).unwrap();
    }

    /// Ends a running call with a result.
    pub fn finish(&mut self, call: &CallId) {
        self.end(
            call,
            Outcome::Completed {
                output: Output::default(),
            },
        );
    }

    pub(crate) fn end(&mut self, call: &CallId, outcome: Outcome) {
        self.submit(&Command::CallEnded {
            call: call.clone(),
            outcome,
            duration_ms: 1,
        })
        .unwrap();
    }

    /// The calls of the current turn, in order.
    pub fn queue(&self) -> Vec<CallId> {
        let turn = self.state.control.turn.as_ref();
        turn.map_or(vec![], |turn| {
            turn.queue.iter().map(|call| call.id.clone()).collect()
        })
    }

    /// The calls of the current turn and of views.
    pub(crate) fn calls(&self) -> Vec<CallId> {
        let calls = self.state.control.calls();
        calls.map(|call| call.id.clone()).collect()
    }

    /// All events of the journal, in order.
    pub fn events(&self) -> impl Iterator<Item = &Event> {
        self.journal.iter().flat_map(|commit| &commit.events)
    }

    pub(crate) fn asked(&self) -> Vec<(CallId, usize, usize)> {
        self.events()
            .filter_map(|event| match event {
                Event::ApprovalAsked {
                    call,
                    position,
                    total,
                    ..
                } => Some((call.id.clone(), *position, *total)),
                _ => None,
            })
            .collect()
    }

    pub(crate) fn started(&self) -> Vec<CallId> {
        self.events()
            .filter_map(|event| match event {
                Event::Started { call, .. } => Some(call.clone()),
                _ => None,
            })
            .collect()
    }
}

pub(crate) fn answer(text: &str, calls: Vec<Proposal>) -> Answer {
    Answer {
        text: text.into(),
        reasoning: None,
        calls,
        dropped_calls: 0,
        first_token_ms: None,
        shortened: None,
        compacted: None,
        compacted_by_vendor: None,
        native: None,
        usage: TokenUsage {
            input_tokens: 3,
            output_tokens: 2,
            ..TokenUsage::default()
        },
        cost: None,
        request: None,
        finish: "stop".into(),
        stop_detail: None,
        answered_by: None,
        spent: Vec::new(),
    }
}

/// The calls that have to run.
pub(crate) fn wanted_calls(state: &SessionState) -> BTreeSet<CallId> {
    let effects = effects(&state.control);
    let calls = effects.into_iter().filter_map(|effect| match effect {
        Effect::RunCall { call, .. } => Some(call),
        Effect::AskModel { .. }
        | Effect::MakeTitle
        | Effect::Review(_)
        | Effect::DryRun(_)
        | Effect::Sample(_)
        | Effect::CopyWorkspace => None,
    });
    calls.collect()
}

/// Checks that the totals are the sum over all requests and never fall (S1.4).
fn check_totals(was: Totals, is: Totals, events: &[Event]) {
    let mut sum = was;
    for event in events {
        if let Event::Said { usage, cost, .. }
        | Event::Answered { usage, cost, .. }
        | Event::Spent { usage, cost, .. } = event
        {
            sum += (*usage, *cost);
        }
    }
    assert_eq!(is, sum, "totals are the sum of all requests");
    assert!(is.total_tokens >= was.total_tokens, "totals never fall");
    assert!(is.cost >= was.cost, "totals never fall");
}

/// Checks that a card has its place among the calls of its answer; a view's call is asked for alone.
fn check_place(event: &Event, after: &SessionState) {
    let Event::ApprovalAsked {
        call,
        position,
        total,
        ..
    } = event
    else {
        return;
    };
    if call.origin.is_some() {
        assert_eq!((*position, *total), (1, 1));
        return;
    }
    let queue = &after.control.turn.as_ref().unwrap().queue;
    assert_eq!(queue.len(), *total);
    assert_eq!(queue[position - 1].id, call.id, "positions are stable");
}

/// Checks that each event leaves its call in the matching status (S2.29).
fn check_status(event: &Event, after: &SessionState) {
    let status = |id: &CallId| &after.control.call(id).unwrap().status;
    let is_right = match event {
        Event::Queued { calls } => calls
            .iter()
            .all(|call| matches!(status(&call.id), CallStatus::Pending { asked: false })),
        Event::ApprovalAsked { call, .. } => {
            matches!(status(&call.id), CallStatus::Pending { asked: true })
        }
        Event::Decided { call, verdict, .. } => match verdict {
            Verdict::Approved => matches!(status(call), CallStatus::Approved { .. }),
            Verdict::TakenBack => matches!(status(call), CallStatus::Pending { .. }),
            Verdict::Rejected => {
                matches!(status(call), CallStatus::Ended { status, .. } if status == "rejected")
            }
        },
        Event::Started { call, .. } => matches!(status(call), CallStatus::Executing { .. }),
        Event::Ended { call, outcome, .. } => {
            matches!(status(call), CallStatus::Ended { status, .. } if status == outcome.status())
        }
        _ => true,
    };
    assert!(is_right, "{event:?} leaves its call elsewhere");
}

/// Checks that every call has exactly one result before any other entry.
fn check_pairs(entries: &[Arc<CountedEntry>]) {
    let mut open: BTreeSet<&CallId> = BTreeSet::new();
    let mut closed: BTreeSet<&CallId> = BTreeSet::new();
    for entry in entries {
        match &***entry {
            Entry::ToolResult { call_id, .. } => {
                assert!(open.remove(call_id), "a result without its open call");
                assert!(closed.insert(call_id), "two results for one call");
            }
            other => {
                assert!(
                    open.is_empty(),
                    "{other:?} stands between a call and its result"
                );
                if let Entry::Assistant { calls, .. } = other {
                    open.extend(calls.iter().map(|call| &call.id));
                }
            }
        }
    }
    assert!(
        open.is_empty(),
        "a call without a result before a model request"
    );
}
