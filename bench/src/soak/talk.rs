//! One person's side of a session: connecting, commands with their answers, events.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use reqwest::Client;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};
use tokio_util::task::TaskTracker;

use super::books::Kept;
use super::house::{House, Person};
use super::ledger::{Ledger, Place};
use super::sky::Sky;
use super::witness::Witness;
use crate::line::Line;

/// How long an answer of the gateway may take, whatever is away.
const PATIENCE: Duration = Duration::from_secs(30);
/// What a client may be told while Redis is away.
const PASSING: &[&str] = &["store_unavailable", "server_stopping"];

/// Stands before a reason that is no code of the gateway's.
const BROKEN: &str = "the connection broke";

/// What all people of one installation share.
pub(crate) struct World {
    pub(crate) sky: Arc<Sky>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) house: Arc<House>,
    pub(crate) client: Client,
    /// Connections that nobody reads any more.
    pub(crate) abandoned: TaskTracker,
    /// Sessions that are over and stay.
    kept: Mutex<Vec<Kept>>,
    /// Sessions of each tenant, which the other must not see.
    known: Mutex<Vec<(usize, String)>>,
    /// Answers that were compared with their pieces, and those of which pieces were missing.
    answers: [AtomicU64; 2],
}

impl World {
    pub(crate) fn new(
        (sky, ledger): (&Arc<Sky>, &Arc<Ledger>),
        house: House,
        client: Client,
    ) -> Self {
        Self {
            sky: Arc::clone(sky),
            ledger: Arc::clone(ledger),
            house: Arc::new(house),
            client,
            abandoned: TaskTracker::new(),
            kept: Mutex::default(),
            known: Mutex::default(),
            answers: <[AtomicU64; 2]>::default(),
        }
    }

    /// So many answers were compared with their pieces, of so many pieces were missing.
    pub(crate) fn compared(&self, compared: u64, incomplete: u64) {
        for (sum, more) in self.answers.iter().zip([compared, incomplete]) {
            sum.fetch_add(more, Ordering::Relaxed);
        }
    }

    /// All of both.
    pub(crate) fn answers(&self) -> [u64; 2] {
        self.answers
            .each_ref()
            .map(|sum| sum.load(Ordering::Relaxed))
    }

    /// A session of that tenant has something in it.
    pub(crate) fn tell(&self, tenant: usize, session: String) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.push((tenant, session));
    }

    /// A session is over and stays.
    pub(crate) fn keep(&self, kept: Kept) {
        let mut all = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(kept);
    }

    /// All of them.
    pub(crate) fn all_kept(&self) -> Vec<Kept> {
        let all = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        all.clone()
    }

    /// Some session of another tenant.
    pub(crate) fn foreign(&self, tenant: usize, rng: &mut Rng) -> Option<String> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let others: Vec<_> = known.iter().filter(|(of, _)| *of != tenant).collect();
        let (_, session) = rng.choice(others)?;
        Some(session.clone())
    }
}

/// The connection is gone.
#[derive(Debug)]
pub(crate) struct Lost;

/// What came.
#[derive(Debug)]
pub(crate) enum Heard {
    /// An event with its arguments.
    Event(String, Vec<Value>),
    /// The answer to a command.
    Answer(u64, Value),
    /// Nothing of interest.
    Nothing,
}

/// A session and the connection to it, if there is one.
pub(crate) struct Talk {
    pub(crate) world: Arc<World>,
    pub(crate) person: Person,
    /// The person's own name for the session.
    pub(crate) name: String,
    /// Its id, once it is known.
    pub(crate) session: Option<String>,
    journal: Option<String>,
    pub(crate) witness: Witness,
    line: Option<Line>,
    commands: u64,
}

impl Talk {
    pub(crate) fn new(world: Arc<World>, person: Person, name: String) -> Self {
        Self {
            world,
            person,
            name,
            session: None,
            journal: None,
            witness: Witness::default(),
            line: None,
            commands: 0,
        }
    }

    /// Writes down what must not be.
    pub(crate) fn fail(&self, what: impl Into<String>) {
        let place = Place {
            house: self.world.house.name,
            session: self.session.as_deref().unwrap_or(&self.name),
            seq: self.witness.known(),
        };
        self.world.ledger.fail(place, what);
    }

    /// A connection ended that should not have. A machine that stands still ends connections too.
    pub(crate) fn broke(&self, what: &str) {
        if self.world.sky.stood_still() {
            let what = "connections that broke after the machine stood still";
            self.world.ledger.count(what);
        } else {
            self.fail(what);
        }
    }

    /// Connects, by websocket or polling, going on from what was seen or afresh; `system:ready`.
    pub(crate) async fn connect(&mut self, rng: &mut Rng) -> Result<Value, Lost> {
        let goes_on = self.journal.is_some() && rng.u32(0..4) > 0;
        let session = self.session.as_ref().filter(|_| rng.bool());
        let mut auth = json!({
            "token": self.person.key, "sessionId": session.unwrap_or(&self.name),
        });
        if goes_on {
            auth["lastSeq"] = self.witness.known().into();
            auth["journalId"] = json!(self.journal);
        }
        let by_polling = rng.u32(0..10) == 0;
        match self.enter(&auth, by_polling).await {
            Ok(ready) => {
                self.journal = ready["journalId"].as_str().map(ToOwned::to_owned);
                self.session = ready["sessionId"].as_str().map(ToOwned::to_owned);
                self.world.ledger.count(match (goes_on, by_polling) {
                    (true, false) => "connections resumed",
                    (false, false) => "connections afresh",
                    (true, true) => "connections resumed by polling",
                    (false, true) => "connections afresh by polling",
                });
                if let Err(problem) = self.witness.ready(&ready, goes_on) {
                    self.fail(problem);
                }
                Ok(ready)
            }
            Err(reason) => {
                let code = reason.split(':').next().unwrap_or_default();
                if PASSING.contains(&code) {
                    self.world.ledger.count(&format!("refused: {code}"));
                } else if code == BROKEN {
                    self.broke(&reason);
                } else {
                    self.fail(format!("it was not let in: {reason}"));
                }
                Err(Lost)
            }
        }
    }

    /// Connects and waits for `system:ready`; or the code and why not.
    pub(crate) async fn enter(&mut self, auth: &Value, by_polling: bool) -> Result<Value, String> {
        let (address, client) = (self.world.house.gateway.address, self.world.client.clone());
        let deadline = Instant::now() + PATIENCE;
        let connecting = async {
            if by_polling {
                Line::polling(&client, address, auth).await
            } else {
                Line::websocket(address, auth).await
            }
        };
        let line = timeout_at(deadline, connecting).await;
        let line = line.map_err(|_| format!("{BROKEN}: no answer to the handshake"))?;
        let mut line = line.map_err(|error| format!("{BROKEN}: {error:#}"))?;
        loop {
            let packet = timeout_at(deadline, line.next()).await;
            let packet = packet.map_err(|_| format!("{BROKEN}: no system:ready"))?;
            let packet = packet.map_err(|error| format!("{BROKEN}: {error:#}"))?;
            if let Some(refused) = packet.strip_prefix("44") {
                let refused: Value = serde_json::from_str(refused).unwrap_or_default();
                return Err(refused["message"].as_str().unwrap_or_default().to_owned());
            }
            let (name, mut args) = match heard(&packet) {
                Heard::Event(name, args) => (name, args),
                Heard::Answer(..) | Heard::Nothing => continue,
            };
            let rest = args.pop().unwrap_or_default();
            match name.as_str() {
                "system:ready" => {
                    self.line = Some(line);
                    return Ok(rest);
                }
                "error" => return Err(format!("{}: {args:?}", text(&rest["code"]))),
                _ => {}
            }
        }
    }

    /// The next that comes, or nothing until `deadline`.
    pub(crate) async fn hear(&mut self, deadline: Instant) -> Result<Heard, Lost> {
        let Some(line) = &mut self.line else {
            return Err(Lost);
        };
        let packet = match timeout_at(deadline, line.next()).await {
            Err(_) => return Ok(Heard::Nothing),
            Ok(Err(error)) => {
                self.line = None;
                self.broke(&format!("the gateway ended the connection: {error:#}"));
                return Err(Lost);
            }
            Ok(Ok(packet)) => packet,
        };
        if packet.starts_with("41") {
            self.line = None;
            return Err(Lost);
        }
        let heard = heard(&packet);
        if let Heard::Event(name, args) = &heard {
            if name == "error" {
                let rest = args.last().unwrap_or(&Value::Null);
                let code = text(&rest["code"]);
                self.world.ledger.count(&format!("ended: {code}"));
                if !PASSING.contains(&code) {
                    self.fail(format!("the gateway ended the session: {args:?}"));
                }
            } else if let Err(problem) = self.witness.event(name, args) {
                self.fail(problem);
            }
        }
        Ok(heard)
    }

    /// Sends a command; the number of its answer.
    pub(crate) async fn send(&mut self, name: &str, args: &[Value]) -> Result<u64, Lost> {
        let number = self.commands;
        self.commands += 1;
        let mut packet = vec![json!(name)];
        packet.extend_from_slice(args);
        let packet = format!("42{number}{}", Value::Array(packet));
        let Some(line) = &mut self.line else {
            return Err(Lost);
        };
        if let Err(error) = line.send(packet).await {
            self.line = None;
            self.broke(&format!("`{name}` cannot be sent: {error:#}"));
            return Err(Lost);
        }
        Ok(number)
    }

    /// When an answer that is asked for now must have come.
    pub(crate) fn answer_by() -> Instant {
        Instant::now() + PATIENCE
    }

    /// Ends the connection without a farewell, or leaves it open and never looks at it again.
    pub(crate) fn vanish(&mut self, rng: &mut Rng) {
        let Some(line) = self.line.take() else {
            return;
        };
        self.world.ledger.count("fault: socket dropped");
        if rng.u32(0..5) == 0 {
            self.world.ledger.count("fault: socket left open");
            let some_time = Duration::from_millis(rng.u64(5_000..20_000));
            self.world.abandoned.spawn(async move {
                tokio::time::sleep(some_time).await;
                drop(line);
            });
        }
    }

    /// Ends the connection, because the person leaves.
    pub(crate) fn leave(&mut self) {
        self.line = None;
    }
}

/// A packet as it is meant.
fn heard(packet: &str) -> Heard {
    if let Some(event) = packet.strip_prefix("42")
        && let Ok(Value::Array(mut args)) = serde_json::from_str(event)
        && !args.is_empty()
        && let Value::String(name) = args.remove(0)
    {
        return Heard::Event(name, args);
    }
    if let Some(answer) = packet.strip_prefix("43") {
        let digits = answer.bytes().take_while(u8::is_ascii_digit).count();
        let (number, args) = answer.split_at(digits);
        let args: Vec<Value> = serde_json::from_str(args).unwrap_or_default();
        if let (Ok(number), Some(answer)) = (number.parse(), args.into_iter().next()) {
            return Heard::Answer(number, answer);
        }
    }
    Heard::Nothing
}

/// A text, or nothing.
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
