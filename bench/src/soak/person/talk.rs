//! One person's side of a session: connections, commands with their answers, and events.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use super::witness::Witness;
use crate::line::Line;
use crate::soak::check::ledger::Place;
use crate::soak::installation::Person;
use crate::soak::installation::gateway::{Era, Gateway};
use crate::soak::world::World;

/// The time limit for an answer of the gateway, even while other parts are away.
const PATIENCE: Duration = Duration::from_secs(30);
/// The codes that a client may get while Redis is away.
const PASSING: &[&str] = &["store_unavailable", "server_stopping"];

/// The prefix of a reason that is not a code of the gateway.
pub(crate) const BROKEN: &str = "the connection broke";

/// The connection is gone.
#[derive(Debug)]
pub(crate) struct ConnectionLost;

/// A received packet.
#[derive(Debug)]
pub(crate) enum ReceivedPacket {
    /// An event with its arguments.
    Event(String, Vec<Value>),
    /// The answer to a command.
    Answer(u64, Value),
    /// Nothing of interest.
    Nothing,
}

/// A session and its connection, if there is one.
pub(crate) struct Talk {
    pub(crate) world: Arc<World>,
    pub(crate) person: Person,
    /// The person's own name for the session.
    pub(crate) name: String,
    /// The session's id, after the first `system:ready`.
    pub(crate) session: Option<String>,
    journal: Option<String>,
    pub(crate) witness: Witness,
    line: Option<Line>,
    commands: u64,
    /// The index of the current or last gateway, with its era at the time of connecting.
    at: Option<(usize, Era)>,
    /// The prefix of reports that tells whose connection this is.
    pub(crate) role: &'static str,
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
            at: None,
            role: "",
        }
    }

    /// Returns the current or last gateway.
    fn gateway(&self) -> Option<(&Gateway, Era)> {
        let (number, era) = self.at?;
        Some((self.world.installation.gateway(number)?, era))
    }

    /// Records a failure.
    pub(crate) fn fail(&self, what: impl Into<String>) {
        let gateway = self.gateway().map(|(gateway, _)| gateway.name.as_str());
        let place = Place {
            installation: gateway.unwrap_or(self.world.installation.name),
            session: self.session.as_deref().unwrap_or(&self.name),
            seq: self.witness.known(),
        };
        let what = format!("{}{}", self.role, what.into());
        self.world.ledger.fail(place, what);
    }

    /// Records that a connection ended unexpectedly. A killed gateway or a stalled machine is a valid
    /// reason.
    pub(crate) fn broke(&self, what: &str) {
        let gateway = self.gateway();
        if gateway.is_some_and(|(gateway, era)| gateway.was_killed_since(era)) {
            let what = "connections that ended with their gateway, or found none";
            self.world.ledger.count(what);
        } else if self.world.phase.stood_still() {
            let what = "connections that broke after the machine stood still";
            self.world.ledger.count(what);
        } else {
            self.fail(what);
        }
    }

    /// Connects to a gateway, by websocket or polling, either resuming or afresh; returns `system:ready`.
    pub(crate) async fn connect(
        &mut self,
        gateway: usize,
        rng: &mut Rng,
    ) -> Result<Value, ConnectionLost> {
        let has_moved = self.at.is_some_and(|(before, _)| before != gateway);
        let goes_on = self.journal.is_some() && rng.u32(0..4) > 0;
        // Another gateway does not know the id of a session that is not stored yet, but the name works.
        let is_stored = self.witness.known() > 0 || self.world.installation.gateways.len() == 1;
        let session = self.session.as_ref().filter(|_| is_stored && rng.bool());
        let mut auth = json!({
            "token": self.person.key, "sessionId": session.unwrap_or(&self.name),
        });
        if goes_on {
            auth["lastSeq"] = self.witness.known().into();
            auth["journalId"] = json!(self.journal);
        }
        let by_polling = rng.u32(0..10) == 0;
        match self.enter(gateway, &auth, by_polling).await {
            Ok(ready) => {
                if has_moved {
                    self.world
                        .ledger
                        .count("connections to another gateway than before");
                }
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
                Err(ConnectionLost)
            }
        }
    }

    /// Connects to a gateway and waits for `system:ready`; the error is a code with the reason.
    pub(crate) async fn enter(
        &mut self,
        gateway: usize,
        auth: &Value,
        by_polling: bool,
    ) -> Result<Value, String> {
        let client = self.world.client.clone();
        let there = self.world.installation.gateway(gateway);
        let there = there.ok_or("there is no gateway")?;
        let address = there.address;
        self.at = Some((gateway, there.era()));
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
                ReceivedPacket::Event(name, args) => (name, args),
                ReceivedPacket::Answer(..) | ReceivedPacket::Nothing => continue,
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

    /// Returns the next packet, or [`ReceivedPacket::Nothing`] at the deadline.
    pub(crate) async fn hear(
        &mut self,
        deadline: Instant,
    ) -> Result<ReceivedPacket, ConnectionLost> {
        let Some(line) = &mut self.line else {
            return Err(ConnectionLost);
        };
        let packet = match timeout_at(deadline, line.next()).await {
            Err(_) => return Ok(ReceivedPacket::Nothing),
            Ok(Err(error)) => {
                self.line = None;
                self.broke(&format!("the gateway ended the connection: {error:#}"));
                return Err(ConnectionLost);
            }
            Ok(Ok(packet)) => packet,
        };
        if packet.starts_with("41") {
            self.line = None;
            return Err(ConnectionLost);
        }
        let heard = heard(&packet);
        if let ReceivedPacket::Event(name, args) = &heard {
            if name == "error" {
                let rest = args.last().unwrap_or(&Value::Null);
                let code = text(&rest["code"]);
                self.world.ledger.count(&format!("ended: {code}"));
                if !PASSING.contains(&code) {
                    self.fail(format!("the gateway ended the session: {args:?}"));
                }
            } else if name == "system:ready" {
                self.hear_again(args.last().unwrap_or(&Value::Null));
            } else if let Err(problem) = self.witness.event(name, args) {
                self.fail(problem);
            }
        }
        Ok(heard)
    }

    /// Handles `system:ready` on a connection that already had one: another gateway has stored the session.
    /// The seen events stay valid, and missed events follow.
    fn hear_again(&mut self, ready: &Value) {
        self.world
            .ledger
            .count("sessions that were stored at another gateway");
        self.journal = ready["journalId"].as_str().map(ToOwned::to_owned);
        if let Err(problem) = self.witness.ready(ready, true) {
            self.fail(problem);
        }
    }

    /// Sends a command; returns the number of its acknowledgement.
    pub(crate) async fn send(&mut self, name: &str, args: &[Value]) -> Result<u64, ConnectionLost> {
        let number = self.commands;
        self.commands += 1;
        let mut packet = vec![json!(name)];
        packet.extend_from_slice(args);
        let packet = format!("42{number}{}", Value::Array(packet));
        let Some(line) = &mut self.line else {
            return Err(ConnectionLost);
        };
        if let Err(error) = line.send(packet).await {
            self.line = None;
            self.broke(&format!("`{name}` cannot be sent: {error:#}"));
            return Err(ConnectionLost);
        }
        Ok(number)
    }

    /// Returns the deadline for the answer to a command sent now.
    pub(crate) fn answer_by() -> Instant {
        Instant::now() + PATIENCE
    }

    /// Drops the connection without a close packet, or leaves it open and never reads it again.
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

    /// True if there is a connection, as far as the client can tell.
    pub(crate) fn is_connected(&self) -> bool {
        self.line.is_some()
    }

    /// Ends the connection, because the person leaves.
    pub(crate) fn leave(&mut self) {
        self.line = None;
    }
}

/// Parses a packet.
fn heard(packet: &str) -> ReceivedPacket {
    if let Some(event) = packet.strip_prefix("42")
        && let Ok(Value::Array(mut args)) = serde_json::from_str(event)
        && !args.is_empty()
        && let Value::String(name) = args.remove(0)
    {
        return ReceivedPacket::Event(name, args);
    }
    if let Some(answer) = packet.strip_prefix("43") {
        let digits = answer.bytes().take_while(u8::is_ascii_digit).count();
        let (number, args) = answer.split_at(digits);
        let args: Vec<Value> = serde_json::from_str(args).unwrap_or_default();
        if let (Ok(number), Some(answer)) = (number.parse(), args.into_iter().next()) {
            return ReceivedPacket::Answer(number, answer);
        }
    }
    ReceivedPacket::Nothing
}

/// Returns the text, or an empty one.
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
