//! Checks the events that one client is shown of a session: every event once, in order, and the whole
//! answer.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde_json::Value;

use crate::soak::script::source_of;

/// The events that have no `seq`.
const UNPLACED: &[&str] = &[
    "tool:queue",
    "session:usage",
    "tool:progress",
    "system:message",
    "mcp:health",
    "mcpAdded",
    "mcpRemoved",
];

/// A shown event.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct WitnessedEvent {
    name: String,
    digest: u64,
}

impl WitnessedEvent {
    pub(crate) fn of(name: &str, args: &[Value]) -> Self {
        let mut hasher = DefaultHasher::new();
        for arg in args {
            arg.to_string().hash(&mut hasher);
        }
        Self {
            name: name.to_owned(),
            digest: hasher.finish(),
        }
    }

    /// The name of the event.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

/// All events of a session by `seq`; a failed call has its output and its error at the same `seq`.
pub(crate) type Stream = BTreeMap<u64, Vec<WitnessedEvent>>;

/// True if the events at one `seq` are the output and the error of a failed call.
pub(crate) fn is_failed_call(shown: &[WitnessedEvent]) -> bool {
    let names = shown.iter().map(WitnessedEvent::name);
    names.eq(["tool:output", "agent:error"])
}

/// The turn, iteration and attempt of an answer.
type Order = (u64, u64, u64);

/// A running answer.
#[derive(Debug)]
struct Running {
    order: Order,
    text: String,
    is_closed: bool,
}

/// The memory of one client across all its connections.
#[derive(Debug, Default)]
pub(crate) struct Witness {
    /// The `seq` of the last event.
    known: u64,
    seen: Stream,
    running: Option<Running>,
    /// The head of the session at the last `system:ready`: events up to it are repeated, and answers up to
    /// it come without their deltas.
    head: u64,
    /// True right after a snapshot: open cards follow with their own `seq`.
    is_fresh: bool,
    /// The number of answers that were seen from their beginning on one connection, and compared with their
    /// deltas.
    compared: u64,
    /// The number of those with missing deltas.
    incomplete: u64,
    /// True if the model's running request was seen from its beginning on this connection.
    is_watching: bool,
    /// True if somebody else stops answers, at another gateway: the stored text is what was shown there, and
    /// this client may have been shown more by then (docs/replicas.md).
    is_bystander: bool,
}

impl Witness {
    /// Creates the witness of a client at another gateway than the person who stops answers.
    pub(crate) fn bystander() -> Self {
        Self {
            is_bystander: true,
            ..Self::default()
        }
    }

    /// Returns the `seq` of the last event.
    pub(crate) fn known(&self) -> u64 {
        self.known
    }

    /// Returns all seen events.
    pub(crate) fn seen(&self) -> &Stream {
        &self.seen
    }

    /// Returns the number of answers that were compared with their deltas.
    pub(crate) fn compared(&self) -> u64 {
        self.compared
    }

    /// Returns the number of those with missing deltas.
    pub(crate) fn incomplete(&self) -> u64 {
        self.incomplete
    }

    /// Processes `system:ready`; `asked` is true if the client sent its resume point.
    pub(crate) fn ready(&mut self, ready: &Value, asked: bool) -> Result<(), String> {
        let is_resumed = ready["resumed"] == true;
        let head = ready["seq"].as_u64().unwrap_or(0);
        (self.running, self.is_watching, self.head) = (None, false, head);
        if asked != is_resumed {
            return Err(format!(
                "it said that it has {} and got resumed: {is_resumed}, head {head}",
                self.known
            ));
        }
        if head < self.known {
            return Err(format!("had seen {}, now the head is {head}", self.known));
        }
        self.is_fresh = !is_resumed;
        if is_resumed {
            return Ok(());
        }
        self.page(&ready["state"]["transcript"]["events"], head)?;
        self.known = head;
        let running = &ready["state"]["running"];
        if running["phase"] == "model" {
            self.running = Some(Running {
                order: order_of(running),
                text: running["text"].as_str().unwrap_or_default().to_owned(),
                is_closed: false,
            });
        }
        Ok(())
    }

    /// Checks the last page of the transcript: without gaps up to the head, and equal to the seen events.
    fn page(&mut self, events: &Value, head: u64) -> Result<(), String> {
        let page = stream_of(events.as_array().map_or(&[], Vec::as_slice))?;
        let mut next = page.keys().next().copied().unwrap_or(head + 1);
        for (seq, shown) in page {
            if seq != next {
                return Err(format!("the page has {seq} after {}", next - 1));
            }
            next += 1;
            match self.seen.get(&seq) {
                // The client had left between a failed call's output and its error.
                Some(seen)
                    if !(*seen == shown || is_failed_call(&shown) && shown.starts_with(seen)) =>
                {
                    return Err(format!("{seq} was {seen:?} and is now {shown:?}"));
                }
                Some(_) | None => drop(self.seen.insert(seq, shown)),
            }
        }
        if next == head + 1 {
            return Ok(());
        }
        Err(format!("the page ends at {}, the head is {head}", next - 1))
    }

    /// Processes an event.
    pub(crate) fn event(&mut self, name: &str, args: &[Value]) -> Result<(), String> {
        let rest = args.last().unwrap_or(&Value::Null);
        if name == "agent:delta" {
            return self.delta(args.first().and_then(Value::as_str).unwrap_or(""), rest);
        }
        if UNPLACED.contains(&name) {
            if rest["code"] == "model_retry" {
                // The text of the previous attempt is void, even if the next attempt has no text.
                self.running = None;
            }
            return Ok(());
        }
        let Some(seq) = rest["seq"].as_u64() else {
            // The refusal of a command without an acknowledgement.
            let is_refusal = name == "agent:error";
            return is_refusal
                .then_some(())
                .ok_or_else(|| format!("`{name}` has no place"));
        };
        let shown = WitnessedEvent::of(name, args);
        if seq == self.known + 1 {
            self.known = seq;
            self.seen.insert(seq, vec![shown]);
            self.is_fresh &= name == "tool:approval_required";
            return self.said(name, args);
        }
        let is_again = self.is_fresh && name == "tool:approval_required" && seq <= self.known;
        let is_error = name == "agent:error" && seq == self.known;
        match self.seen.get_mut(&seq) {
            Some(seen) if is_again && seen.contains(&shown) => Ok(()),
            // A card older than the page that came with the state.
            None if is_again => Ok(()),
            Some(seen) if is_error && seen.len() == 1 => {
                seen.push(shown);
                Ok(())
            }
            _ => Err(format!("`{name}` has {seq} after {}", self.known)),
        }
    }

    /// Updates the running answer by an event.
    fn said(&mut self, name: &str, args: &[Value]) -> Result<(), String> {
        let rest = args.last().unwrap_or(&Value::Null);
        match name {
            "agent:thinking" => {
                (self.running, self.is_watching) = (None, self.known > self.head);
                Ok(())
            }
            "agent:message" | "agent:response" => {
                self.whole(args.first().and_then(Value::as_str).unwrap_or(""))
            }
            "agent:cancelled" => {
                let kept = rest["text"].as_str().unwrap_or_default();
                self.is_watching = false;
                let Some(running) = self.running.take().filter(|running| !running.is_closed) else {
                    return Ok(());
                };
                let shown = running.text;
                let is_cut = self.is_bystander && shown.starts_with(kept);
                if is_cut || kept.starts_with(&shown) {
                    return Ok(());
                }
                Err(format!("it showed `{shown}` and kept `{kept}`"))
            }
            "agent:error" if rest["callId"].is_null() => {
                (self.running, self.is_watching) = (None, false);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn whole(&mut self, text: &str) -> Result<(), String> {
        let is_watching = std::mem::take(&mut self.is_watching);
        if self
            .running
            .as_ref()
            .is_some_and(|running| running.is_closed)
        {
            return Ok(());
        }
        let pieces = self.running.as_ref().map_or("", |running| &running.text);
        // The deltas of an abandoned attempt are replaced by the whole answer of another attempt.
        let is_of_another = source_of(pieces).is_some_and(|of| source_of(text) != Some(of));
        if !text.starts_with(pieces) && !is_of_another {
            return Err(format!("the pieces are `{pieces}`, the whole `{text}`"));
        }
        if is_watching || is_of_another {
            self.compared += 1;
            self.incomplete += u64::from(pieces != text);
        }
        if let Some(running) = &mut self.running {
            running.is_closed = true;
        }
        Ok(())
    }

    fn delta(&mut self, text: &str, place: &Value) -> Result<(), String> {
        if place["kind"] != "text" {
            return Ok(());
        }
        let (order, offset) = (order_of(place), place["offset"].as_u64().unwrap_or(0));
        let at = self.running.as_ref().map(|running| running.order);
        if at.is_none_or(|at| at < order) {
            self.running = Some(Running {
                order,
                text: String::new(),
                is_closed: false,
            });
        }
        let Some(running) = &mut self.running else {
            return Ok(());
        };
        if running.order > order || running.is_closed {
            return Ok(());
        }
        let has = running.text.encode_utf16().count() as u64;
        let Some(known) = has.checked_sub(offset) else {
            return Err(format!("a piece of {order:?} is at {offset} after {has}"));
        };
        let units = text
            .encode_utf16()
            .skip(usize::try_from(known).unwrap_or(usize::MAX));
        let rest = String::from_utf16(&units.collect::<Vec<_>>());
        running.text += &rest.map_err(|_| format!("a piece at {offset} splits a character"))?;
        Ok(())
    }
}

fn order_of(place: &Value) -> Order {
    let number = |name: &str| place[name].as_u64().unwrap_or(0);
    (number("turn"), number("iteration"), number("attempt"))
}

/// Groups items `{ seq, event, args }` by their `seq`.
pub(crate) fn stream_of(items: &[Value]) -> Result<Stream, String> {
    let mut stream = Stream::new();
    for item in items {
        let (name, seq) = (item["event"].as_str(), item["seq"].as_u64());
        let args = item["args"].as_array();
        let ((Some(name), Some(seq)), Some(args)) = ((name, seq), args) else {
            return Err(format!("this is no event: {item}"));
        };
        let is_next = stream.last_key_value().is_none_or(|(last, _)| *last <= seq);
        if !is_next {
            return Err(format!("{seq} stands after a later one"));
        }
        stream
            .entry(seq)
            .or_default()
            .push(WitnessedEvent::of(name, args));
    }
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::Witness;

    fn ready(seq: u64, resumed: bool, events: &Value) -> Value {
        json!({ "seq": seq, "resumed": resumed,
            "state": { "transcript": { "events": events }, "running": null } })
    }

    fn thinking(seq: u64) -> [Value; 1] {
        [json!({ "turn": 1, "iteration": 1, "seq": seq })]
    }

    #[test]
    fn a_gap_and_a_repetition_are_seen() {
        let mut witness = Witness::default();
        witness.ready(&ready(0, false, &json!([])), false).unwrap();
        witness.event("agent:thinking", &thinking(1)).unwrap();
        assert!(witness.event("agent:thinking", &thinking(1)).is_err());
        assert!(witness.event("agent:thinking", &thinking(3)).is_err());
        witness.event("agent:thinking", &thinking(2)).unwrap();
        assert!(witness.ready(&ready(2, false, &json!([])), true).is_err());
        assert!(witness.ready(&ready(1, true, &json!([])), true).is_err());
    }

    #[test]
    fn a_failed_call_has_two_events_at_one_place() {
        let mut witness = Witness::default();
        let output = [json!("no"), json!({ "callId": "c", "seq": 1 })];
        witness.event("tool:output", &output).unwrap();
        witness.event("agent:error", &output).unwrap();
        assert!(witness.event("agent:error", &output).is_err());
    }

    #[test]
    fn only_a_bystander_may_have_been_shown_more_than_a_stop_keeps() {
        let piece = [
            json!("said more"),
            json!({ "turn": 1, "iteration": 1, "attempt": 1, "offset": 0, "kind": "text" }),
        ];
        let stopped = |text: &str| [json!({ "turn": 1, "text": text, "seq": 2 })];
        for (mut witness, kept, is_fine) in [
            (Witness::default(), "said more and more", true),
            (Witness::default(), "said", false),
            (Witness::bystander(), "said", true),
            (Witness::bystander(), "something else", false),
        ] {
            witness.event("agent:thinking", &thinking(1)).unwrap();
            witness.event("agent:delta", &piece).unwrap();
            let end = witness.event("agent:cancelled", &stopped(kept));
            assert_eq!(end.is_ok(), is_fine, "{kept}");
        }
    }

    #[test]
    fn pieces_must_give_the_whole() {
        let piece = |text: &str, attempt: u64, offset: u64| {
            [
                json!(text),
                json!({ "turn": 1, "iteration": 1, "attempt": attempt, "offset": offset,
                    "kind": "text" }),
            ]
        };
        let whole = |seq: u64| [json!("𝄞ab"), json!({ "turn": 1, "seq": seq })];
        let mut witness = Witness::default();
        witness.event("agent:thinking", &thinking(1)).unwrap();
        witness.event("agent:delta", &piece("void", 1, 0)).unwrap();
        witness.event("agent:delta", &piece("𝄞", 2, 0)).unwrap();
        witness.event("agent:delta", &piece("𝄞a", 2, 0)).unwrap();
        assert!(witness.event("agent:delta", &piece("b", 2, 4)).is_err());
        witness.event("agent:delta", &piece("b", 2, 3)).unwrap();
        witness.event("agent:response", &whole(2)).unwrap();
        assert_eq!(witness.compared(), 1);

        witness.event("agent:thinking", &thinking(3)).unwrap();
        witness.event("agent:response", &whole(4)).unwrap();
        assert_eq!(witness.incomplete(), 1, "no piece came");
        witness.event("agent:thinking", &thinking(5)).unwrap();
        let other = [
            json!("x"),
            json!({ "turn": 2, "iteration": 1, "attempt": 1, "offset": 0, "kind": "text" }),
        ];
        witness.event("agent:delta", &other).unwrap();
        assert!(witness.event("agent:response", &whole(6)).is_err());
    }
}
