//! Replays a journal: reconstructs from its events the commands of people, models and tools, and checks
//! that [`decide`] gives the same events again. Pure.

mod answer;
mod call;
mod cause;
mod circumstances;

use self::cause::causes;
use self::circumstances::Circumstances;
use super::decide::decide;
use super::event::{Commit, Event};
use super::state::{Control, SessionState};
use crate::domain::Digest;

/// A session that is decided again, commit by commit.
#[derive(Debug, Default)]
pub struct Replay {
    /// The state after the recorded events.
    recorded: SessionState,
    /// The state after the events that were decided again.
    replayed: SessionState,
    circumstances: Circumstances,
    figures: ReplayFigures,
}

/// Counts of a replay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReplayFigures {
    /// Commits in the journal.
    pub commits: u64,
    /// Commits that were not decided again because a fork took them from another session.
    pub taken: u64,
    pub events: u64,
}

/// The result of a whole replay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayReport {
    pub figures: ReplayFigures,
    /// Hash of the state after the recorded events.
    pub recorded: Digest,
    /// Hash of the state after the events that were decided again.
    pub replayed: Digest,
}

/// A difference between a recorded decision and the one that the engine makes now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("commit {version} is decided otherwise now: {what}")]
pub struct Difference {
    /// Version of the commit.
    pub version: u64,
    /// The difference, for people.
    pub what: String,
}

impl Replay {
    /// Decides the next commit of the journal again.
    pub fn step(&mut self, commit: &Commit) -> Result<(), Difference> {
        // Commits of a fork that were decided in another session, and the commit that ends them.
        let is_taken = commit.is_inherited
            || commit
                .events
                .iter()
                .any(|event| matches!(event, Event::Forked { .. }));
        self.circumstances.meet(&commit.events);
        let events = if is_taken {
            commit.events.clone()
        } else {
            self.decide_again(commit)?
        };
        self.figures.commits += 1;
        self.figures.taken += u64::from(is_taken);
        self.figures.events += events.len() as u64;
        let control = &self.replayed.control;
        let again = Commit {
            version: control.version.saturating_add(1),
            seq: control.seq,
            events,
            ..commit.clone()
        };
        self.recorded.apply(commit);
        self.replayed.apply(&again);
        Ok(())
    }

    /// Returns the figures and the hashes of both states.
    pub fn finish(self) -> ReplayReport {
        ReplayReport {
            figures: self.figures,
            recorded: hash(&self.recorded),
            replayed: hash(&self.replayed),
        }
    }

    /// The events that a commit's causes lead to now.
    fn decide_again(&mut self, commit: &Commit) -> Result<Vec<Event>, Difference> {
        let mut control = self.replayed.control.clone();
        let mut rest = commit.events.as_slice();
        let mut events = Vec::with_capacity(rest.len());
        while !rest.is_empty() {
            let decided = self.next(&control, rest, commit)?;
            for event in &decided {
                control.evolve(event, commit.at);
            }
            rest = rest.get(decided.len()..).unwrap_or_default();
            events.extend(decided);
        }
        Ok(events)
    }

    /// The events that the next cause leads to; they have to match the beginning of the recorded ones.
    fn next(
        &mut self,
        control: &Control,
        rest: &[Event],
        commit: &Commit,
    ) -> Result<Vec<Event>, Difference> {
        self.circumstances.learn(control, rest, commit.at);
        let differs = |what: String| Difference {
            version: commit.version,
            what,
        };
        let mut first = None;
        for command in causes(control, rest) {
            let inputs = self.circumstances.inputs(control, rest, commit.at);
            let inputs = inputs.ok_or_else(|| differs("the session was never created".into()))?;
            match decide(control, [&command], inputs.as_inputs()) {
                Ok(mut events) => {
                    for (recorded, decided) in rest.iter().zip(&mut events) {
                        forget(recorded, decided);
                    }
                    if !events.is_empty() && rest.starts_with(&events) {
                        return Ok(events);
                    }
                    first = first.or_else(|| Some(mismatch(rest, &events)));
                }
                Err(refusal) => first = first.or(Some(format!("it is refused: {refusal}"))),
            }
        }
        Err(differs(first.unwrap_or_else(|| {
            let event = rest.first().map(name).unwrap_or_default();
            format!("nothing that a person, a model or a tool says leads to `{event}`")
        })))
    }
}

/// Removes the title's source if the recorded event lacks it, as in journals of earlier releases.
fn forget(recorded: &Event, decided: &mut Event) {
    if let (Event::TitleSet { source: None, .. }, Event::TitleSet { source, .. }) =
        (recorded, decided)
    {
        *source = None;
    }
}

fn hash(state: &SessionState) -> Digest {
    // Serialization fails only for maps with non-string keys, which a snapshot does not have.
    Digest::of_json(&serde_json::to_value(state).unwrap_or_default())
}

/// Describes the first difference between recorded and decided events.
fn mismatch(recorded: &[Event], decided: &[Event]) -> String {
    let place = recorded.iter().zip(decided).position(|(was, is)| was != is);
    let place = place.unwrap_or(recorded.len().min(decided.len()));
    let at = |events: &[Event]| events.get(place).map_or("nothing".into(), written);
    format!(
        "recorded is {}, and now it would be {}",
        at(recorded),
        at(decided)
    )
}

/// Maximum characters of an event in a difference.
const SHOWN: usize = 400;

fn written(event: &Event) -> String {
    let text = serde_json::to_string(event).unwrap_or_default();
    match text.char_indices().nth(SHOWN) {
        Some((cut, _)) => format!("{}…", text.get(..cut).unwrap_or_default()),
        None => text,
    }
}

/// The `type` tag of an event.
fn name(event: &Event) -> String {
    let value = serde_json::to_value(event).unwrap_or_default();
    let name = value.get("type").and_then(serde_json::Value::as_str);
    name.unwrap_or_default().to_owned()
}
