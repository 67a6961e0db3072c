//! A person who talks, decides, drops connections and reconnects, session after session.

pub(super) mod profile;
pub(super) mod reader;
pub(super) mod tab;
pub(super) mod talk;
pub(super) mod witness;

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use futures::future::{OptionFuture, join};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;

use self::profile::{Profile, Step, Unsaid, later};
use self::tab::{Goal, Tab};
use self::talk::{BROKEN, ConnectionLost, ReceivedPacket, Talk, text};
use super::check::archive::{self, Rest};
use super::check::audit::Account;
use super::world::World;

/// The codes with which the gateway may refuse any command while Redis is away or under overload.
const PASSING: &[&str] = &["store_unavailable", "server_stopping", "too_many_requests"];
/// The codes with which a late decision may be refused.
const TOO_LATE: &[&str] = &[
    "no_such_call",
    "already_decided",
    "changed_since_shown",
    "nothing_to_do",
];
/// The interval at which an idle person checks the state.
const LOOK: Duration = Duration::from_millis(500);
/// The time for which a turn may show no progress at all.
const STUCK: Duration = Duration::from_secs(100);
/// The same limit if the model may become silent until the gateway gives up on it, after five minutes.
const STUCK_IN_SILENCE: Duration = Duration::from_mins(7);

/// Runs session after session until the end of the run.
pub(crate) async fn live(world: Arc<World>, index: usize, mut rng: Rng) {
    let person = rng.choice(&world.installation.people).cloned();
    let Some(person) = person else {
        return;
    };
    for number in 0_u32.. {
        if world.phase.finish.is_cancelled() {
            return;
        }
        let name = format!("{}-{index}-{number}", world.installation.name);
        let talk = Talk::new(Arc::clone(&world), person.clone(), name);
        let (goal, told) = watch::channel(Goal::default());
        let has_tab = world.installation.gateways.len() > 1 && rng.u32(0..3) == 0;
        let tab = has_tab.then(|| Tab::beside(&talk, rng.fork()));
        let tab = OptionFuture::from(tab.map(|tab| tab.look(told)));
        let profile = Profile::new(
            Arc::clone(&world.phase),
            Arc::clone(&world.ledger),
            rng.fork(),
        );
        let visit = Visit {
            talk,
            profile,
            account: Account::default(),
            rng: rng.fork(),
            is_stuck: false,
            forgets: rng.u32(0..5) == 0,
            goal,
        };
        Box::pin(async {
            let (visit, tab) = join(visit.run(), tab).await;
            visit.close(tab.as_ref()).await;
        })
        .await;
        if rng.u32(0..4) == 0 {
            look_over_the_fence(&world, &person.key, person.tenant, &mut rng).await;
        }
    }
}

/// Checks that a session of another tenant appears not to exist.
async fn look_over_the_fence(world: &Arc<World>, key: &str, tenant: usize, rng: &mut Rng) {
    let Some(session) = world.foreign(tenant, rng) else {
        return;
    };
    let person = super::installation::Person {
        tenant,
        key: key.to_owned(),
    };
    let mut talk = Talk::new(Arc::clone(world), person, session.clone());
    let auth = json!({ "token": key, "sessionId": session });
    match talk.enter(world.installation.any(rng), &auth, false).await {
        Ok(_) => talk.fail("a session of another tenant opened"),
        Err(reason) if reason.starts_with("session_not_found") => {
            world.ledger.count("looks at another tenant's session");
        }
        Err(reason) if reason.starts_with("store_unavailable") => {}
        Err(reason) if reason.starts_with(BROKEN) => talk.broke(&reason),
        Err(reason) => talk.fail(format!("another tenant's session said `{reason}`")),
    }
}

/// One session from its first message to its archive.
struct Visit {
    talk: Talk,
    profile: Profile,
    account: Account,
    rng: Rng,
    is_stuck: bool,
    /// True if the person leaves for good when the last turn has a card.
    forgets: bool,
    /// The goal of the second tab, if there is one.
    goal: watch::Sender<Goal>,
}

impl Visit {
    /// Runs until the session is at rest or forgotten.
    async fn run(mut self) -> Self {
        let mut rest = Rest::Turn;
        while rest == Rest::Turn {
            // The person may reconnect to another gateway.
            let gateway = self.talk.world.installation.any(&mut self.rng);
            self.goal.send_replace(Goal::BesideOneAt(gateway));
            let Ok(ready) = self.talk.connect(gateway, &mut self.rng).await else {
                let pause = later(&mut self.rng, 200, 2_000);
                tokio::time::sleep_until(pause).await;
                continue;
            };
            self.profile.ready(&ready);
            let stayed = self.stay().await;
            if self.account.is_forgotten {
                break;
            }
            if stayed.is_ok() || self.profile.is_done() {
                self.talk.leave();
                // A waiting message may have begun a turn of its own, with cards, so the person comes back.
                if self.account.said.is_empty() {
                    break;
                }
                rest = archive::rest(&self.talk).await;
            }
            if rest == Rest::Turn {
                let pause = later(&mut self.rng, 0, 3_000);
                tokio::time::sleep_until(pause).await;
            }
        }
        self.talk.leave();
        self.profile.leave();
        self.goal.send_replace(match rest {
            Rest::At(last) => Goal::See(last),
            Rest::Turn | Rest::Unreadable => Goal::Leave,
        });
        self
    }

    /// Closes the session, and audits it with the second tab.
    async fn close(mut self, tab: Option<&Talk>) {
        let (talk, account) = (&self.talk, &self.account);
        if let Some(session) = talk.session.clone().filter(|_| !account.said.is_empty()) {
            talk.world.tell(talk.person.tenant, session);
            archive::close(talk, tab, account, &mut self.rng).await;
        }
    }

    /// Stays until the connection is lost or there is nothing left to do.
    async fn stay(&mut self) -> Result<(), ConnectionLost> {
        let until = later(&mut self.rng, 3_000, 60_000);
        while !self.profile.is_done() {
            if Instant::now() >= until && !self.talk.world.phase.calm.is_cancelled() {
                self.talk.vanish(&mut self.rng);
                return Err(ConnectionLost);
            }
            self.look_whether_it_is_stuck();
            if self.forgets && self.profile.is_last_card() {
                self.account.is_forgotten = true;
                return Ok(());
            }
            let next = self.profile.next();
            match next {
                Some((at, step)) if at <= Instant::now() => {
                    self.profile.begin(&step);
                    self.take(&step).await?;
                }
                _ => {
                    let at = next.map_or(until, |(at, _)| at);
                    self.hear((Instant::now() + LOOK).min(at)).await?;
                }
            }
        }
        Ok(())
    }

    fn look_whether_it_is_stuck(&mut self) {
        let limit = if self.talk.world.phase.is_long {
            STUCK_IN_SILENCE
        } else {
            STUCK
        };
        let is_stuck = self.profile.is_running() && self.profile.heard.elapsed() > limit;
        if is_stuck && !self.is_stuck {
            let cards = self.profile.cards.len();
            let shown = limit.as_secs();
            self.talk.fail(format!(
                "nothing was shown of the turn for {shown} s, {cards} cards wait"
            ));
        }
        self.is_stuck = is_stuck;
    }

    /// Waits for the next packet until the deadline; returns the answer to a command, if one came.
    async fn hear(&mut self, deadline: Instant) -> Result<Option<(u64, Value)>, ConnectionLost> {
        match self.talk.hear(deadline).await? {
            ReceivedPacket::Event(name, args) => {
                self.profile.event(&name, &args);
                Ok(None)
            }
            ReceivedPacket::Answer(number, answer) => Ok(Some((number, answer))),
            ReceivedPacket::Nothing => Ok(None),
        }
    }

    /// Sends a command and waits for its answer: `Ok` if it was accepted, otherwise the code.
    async fn ask(
        &mut self,
        name: &str,
        arg: &[Value],
    ) -> Result<Result<(), String>, ConnectionLost> {
        let own = self.talk.send(name, arg).await?;
        let is_dropped = !self.talk.world.phase.calm.is_cancelled() && self.rng.u32(0..50) == 0;
        if is_dropped {
            self.talk.vanish(&mut self.rng);
            return Err(ConnectionLost);
        }
        let deadline = Talk::answer_by();
        while Instant::now() < deadline {
            let Some((number, answer)) = self.hear(deadline).await? else {
                continue;
            };
            if number != own {
                continue;
            }
            if answer["ok"] == true {
                return Ok(Ok(()));
            }
            let code = text(&answer["error"]["code"]).to_owned();
            self.talk
                .world
                .ledger
                .count(&format!("`{name}` refused: {code}"));
            if code == "internal" {
                self.talk.fail(format!("`{name}` was refused: {answer}"));
            }
            return Ok(Err(code));
        }
        self.talk.fail(format!("`{name}` has no answer"));
        self.talk.leave();
        Err(ConnectionLost)
    }

    async fn take(&mut self, step: &Step) -> Result<(), ConnectionLost> {
        match step {
            Step::Say => self.say(false).await,
            Step::SayMore => self.say(true).await,
            Step::Decide(call) => self.decide(call).await,
            Step::Cancel => self.ask("agent:cancel", &[json!({})]).await.map(drop),
            Step::StopCall(call) => {
                let call = json!({ "callId": call });
                self.ask("tool:cancel", &[call]).await.map(drop)
            }
            Step::Retry => self.ask("turn:retry", &[json!({})]).await.map(drop),
        }
    }

    async fn say(&mut self, is_more: bool) -> Result<(), ConnectionLost> {
        let unsaid = match self.profile.unsaid.clone() {
            Some(unsaid) => unsaid,
            None => self.new_message(is_more),
        };
        let rest = json!({ "clientMessageId": unsaid.id });
        let args = [json!(unsaid.text), rest];
        match self.ask("message", &args).await? {
            Ok(()) => {
                self.account.said.push(unsaid.id);
                self.profile.said();
                if self.rng.u32(0..20) == 0 {
                    // Repeating the command must change nothing.
                    drop(self.ask("message", &args).await?);
                }
            }
            Err(code) if PASSING.contains(&code.as_str()) => self.profile.again_soon(&Step::Say),
            Err(code) => {
                self.talk.fail(format!("a message was refused: {code}"));
                self.profile.unsaid = None;
            }
        }
        Ok(())
    }

    fn new_message(&mut self, is_more: bool) -> Unsaid {
        let number = self.account.words.len();
        let name = &self.talk.name;
        let id = format!("{name}-{number}");
        let script = self.profile.script(id.clone(), name, is_more);
        self.account.words.insert(id.clone(), script.words);
        if !is_more {
            self.profile.turns_left = self.profile.turns_left.saturating_sub(1);
        }
        let unsaid = Unsaid {
            id,
            text: script.text(),
        };
        self.profile.unsaid = Some(unsaid.clone());
        unsaid
    }

    async fn decide(&mut self, call: &str) -> Result<(), ConnectionLost> {
        let Some(card) = self.profile.cards.get(call).cloned() else {
            return Ok(());
        };
        let mut decision = json!({ "callId": call, "approved": true, "digest": card.digest });
        let (mut name, mut calls) = ("tool:approval", vec![call.to_owned()]);
        match self.rng.u32(0..100) {
            0..14 => {
                decision["approved"] = false.into();
                decision["reason"] = "not now".into();
            }
            14..20 => {
                if let Some(command) = card.args["command"].as_str() {
                    decision["args"] = json!({ "command": format!("{command} # edited") });
                }
            }
            20..26 => {
                calls = self.profile.cards.keys().cloned().collect();
                decision = json!({ "callIds": calls, "approved": true });
                name = "tool:approval_all";
            }
            _ => {}
        }
        let args = [decision];
        match self.ask(name, &args).await? {
            Ok(()) => {
                let is_approved = args.iter().all(|decision| decision["approved"] == true);
                for call in calls {
                    self.profile.cards.remove(&call);
                    if name == "tool:approval" {
                        self.account.decided.push((call, is_approved));
                    } else {
                        self.account.named.push(call);
                    }
                }
                if self.rng.u32(0..12) == 0 {
                    // Repeating the decision must change nothing.
                    drop(self.ask(name, &args).await?);
                }
            }
            Err(code) if PASSING.contains(&code.as_str()) => {
                self.profile.again_soon(&Step::Decide(call.to_owned()));
            }
            Err(code) => {
                self.profile.cards.remove(call);
                if !TOO_LATE.contains(&code.as_str()) {
                    self.talk.fail(format!("a decision was refused: {code}"));
                }
            }
        }
        Ok(())
    }
}
