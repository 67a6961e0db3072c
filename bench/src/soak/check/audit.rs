//! Audits the transcript of a session at rest against the acknowledged and shown events.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use crate::soak::person::witness::{Stream, is_failed_call, stream_of};
use crate::soak::script::{answer, mark_of, source_of};

/// The person's acknowledged actions.
#[derive(Debug, Default)]
pub(crate) struct Account {
    /// The acknowledged messages, in their order.
    pub(crate) said: Vec<String>,
    /// The number of words of the answer to each message that was ever sent.
    pub(crate) words: HashMap<String, usize>,
    /// The acknowledged decisions.
    pub(crate) decided: Vec<(String, bool)>,
    /// The calls named in an acknowledged decision about several calls: each was decided by it, or earlier
    /// by another decision.
    pub(crate) named: Vec<String>,
    /// True if the person left for good while calls waited for a decision.
    pub(crate) is_forgotten: bool,
}

/// The number of times that a call may have left its mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Times {
    /// The call did not run.
    Never,
    /// The call ran, or its end was not seen.
    AtMostOnce,
    /// The call ran to its end.
    Once,
}

/// The findings about a session.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// The violated requirements.
    pub(crate) problems: Vec<String>,
    /// The marks of its calls.
    pub(crate) marks: BTreeMap<String, Times>,
    /// The statuses with which its calls ended.
    pub(crate) statuses: Vec<String>,
}

/// One call, as its events describe it.
#[derive(Debug, Default)]
struct Life {
    mark: Option<String>,
    asked: usize,
    decisions: Vec<bool>,
    started: usize,
    ends: Vec<String>,
    /// True if the command ended by itself: a command that is killed right after its fork does nothing.
    has_exit_code: bool,
}

/// True if no turn runs at the end of these items.
pub(crate) fn is_at_rest(items: &[Value]) -> bool {
    let turns = items.iter().rev().filter_map(|item| {
        let rest = last_of(item);
        match item["event"].as_str()? {
            "agent:response" | "agent:cancelled" => Some(true),
            "agent:error" if rest["callId"].is_null() => Some(true),
            "agent:thinking" | "user:message" => Some(false),
            _ => None,
        }
    });
    turns.into_iter().next().unwrap_or(true)
}

/// Compares the whole transcript with the acknowledged actions (`account`) and the shown events (`seen`).
pub(crate) fn audit(items: &[Value], account: &Account, seen: &Stream) -> Findings {
    let mut findings = Findings {
        problems: unlike(items, seen),
        ..Findings::default()
    };
    findings.problems.extend(messages(items, account));
    findings.problems.extend(answers(items, account));
    let lives = lives(items);
    for (call, approved) in &account.decided {
        let decisions = lives.get(call).map_or(&[][..], |life| &life.decisions);
        if !decisions.contains(approved) {
            let problem = format!("the decision {approved} on {call} is lost: {decisions:?}");
            findings.problems.push(problem);
        }
    }
    for call in &account.named {
        if lives.get(call).is_none_or(|life| life.decisions.is_empty()) {
            findings
                .problems
                .push(format!("the decision on {call} and others is lost"));
        }
    }
    for (call, life) in lives {
        if account.is_forgotten && life.asked == 1 && life.ends.is_empty() && life.started == 0 {
            // The call still waits for its decision.
            findings
                .marks
                .extend(life.mark.map(|mark| (mark, Times::Never)));
            continue;
        }
        judge(&call, life, &mut findings);
    }
    findings
}

/// Returns the differences between the transcript and the shown events, and gaps in the transcript.
pub(crate) fn unlike(items: &[Value], seen: &Stream) -> Vec<String> {
    match stream_of(items) {
        Ok(stream) => differences(&stream, seen),
        Err(problem) => vec![problem],
    }
}

fn differences(stream: &Stream, seen: &Stream) -> Vec<String> {
    let mut problems = Vec::new();
    for (place, (seq, shown)) in (1..).zip(stream) {
        if place != *seq {
            problems.push(format!("the transcript has {seq} where {place} belongs"));
            break;
        }
        if shown.len() != 1 && !is_failed_call(shown) {
            problems.push(format!("the transcript has {shown:?} at {seq}"));
        }
    }
    for (seq, shown) in seen {
        match stream.get(seq) {
            Some(stored) if stored == shown => {}
            // The client left between a failed call's output and its error.
            Some(stored) if is_failed_call(stored) && stored.starts_with(shown) => {}
            stored => problems.push(format!(
                "{seq} was shown as {shown:?}, stored is {stored:?}"
            )),
        }
    }
    problems
}

fn messages(items: &[Value], account: &Account) -> Option<String> {
    let ids = items.iter().filter(|item| item["event"] == "user:message");
    let ids = ids.map(|item| last_of(item)["clientMessageId"].as_str().unwrap_or(""));
    let stored: Vec<&str> = ids.collect();
    let said: Vec<&str> = account.said.iter().map(String::as_str).collect();
    (stored != said).then(|| format!("acknowledged messages {said:?}, stored {stored:?}"))
}

/// Checks that every answer is complete and comes from one request of the model; a stopped answer must be
/// its beginning.
fn answers(items: &[Value], account: &Account) -> Vec<String> {
    let problem = |item: &Value| {
        let (text, is_whole) = match item["event"].as_str()? {
            "agent:response" => (item["args"].get(0)?.as_str()?, true),
            "agent:cancelled" => (last_of(item)["text"].as_str()?, false),
            _ => return None,
        };
        if !is_whole && "I look. ".starts_with(text) {
            return None;
        }
        let Some((id, request)) = source_of(text) else {
            return Some(format!("nobody said `{text}`"));
        };
        let Some(words) = account.words.get(id) else {
            return Some(format!("`{text}` answers no message"));
        };
        let said = answer(id, request, *words);
        let is_right = if is_whole {
            said == text
        } else {
            said.starts_with(text)
        };
        (!is_right).then(|| format!("the model said `{said}`, stored is `{text}`"))
    };
    items.iter().filter_map(problem).collect()
}

fn lives(items: &[Value]) -> BTreeMap<String, Life> {
    let mut lives: BTreeMap<String, Life> = BTreeMap::new();
    for item in items {
        let rest = last_of(item);
        if item["event"] == "agent:message" {
            for call in rest["calls"].as_array().into_iter().flatten() {
                let id = call["callId"].as_str().unwrap_or_default();
                let life = lives.entry(id.to_owned()).or_default();
                life.asked += 1;
                life.mark = mark_of(&call["args"]).map(ToOwned::to_owned);
            }
            continue;
        }
        let Some(call) = rest["callId"].as_str() else {
            continue;
        };
        let life = lives.entry(call.to_owned()).or_default();
        match item["event"].as_str().unwrap_or_default() {
            "tool:decided" => life.decisions.push(rest["approved"] == true),
            "tool:started" => life.started += 1,
            "tool:output" => {
                let status = rest["status"].as_str().unwrap_or_default();
                life.ends.push(status.to_owned());
                life.has_exit_code = rest["exitCode"].is_number();
            }
            _ => {}
        }
    }
    lives
}

fn judge(call: &str, life: Life, findings: &mut Findings) {
    let said = format!("{life:?}");
    let mut say = |problem: &str| {
        findings
            .problems
            .push(format!("call {call} {problem}: {said}"));
    };
    if life.asked != 1 {
        say("was not asked for once");
    }
    let [end] = life.ends.as_slice() else {
        return say("has not one result");
    };
    if life.started > 1 {
        say("started twice");
    }
    if life.started == 1 && !life.decisions.contains(&true) {
        say("started without an approval");
    }
    if life.started == 0 && end == "completed" {
        say("has a result and never started");
    }
    if life.decisions.last() == Some(&true) && life.started == 0 && end == "rejected" {
        say("was approved and is rejected");
    }
    findings.statuses.push(end.clone());
    let times = match (life.started, end.as_str()) {
        (0, _) => Times::Never,
        (_, "completed") if life.has_exit_code => Times::Once,
        _ => Times::AtMostOnce,
    };
    if let Some(mark) = life.mark {
        findings.marks.insert(mark, times);
    }
}

/// Returns the marks whose count differs from the expectation.
pub(crate) fn wrong_marks(
    expected: &BTreeMap<String, Times>,
    found: &BTreeMap<String, usize>,
) -> Vec<String> {
    let mut problems = Vec::new();
    for (mark, times) in expected {
        let count = found.get(mark).copied().unwrap_or(0);
        let is_right = match times {
            Times::Never => count == 0,
            Times::AtMostOnce => count <= 1,
            Times::Once => count == 1,
        };
        if !is_right {
            problems.push(format!("{mark} was to run {times:?} and ran {count} times"));
        }
    }
    for (mark, count) in found {
        if !expected.contains_key(mark) {
            problems.push(format!("{mark} ran {count} times and is no call"));
        }
    }
    problems
}

/// Returns the last argument of an item.
fn last_of(item: &Value) -> &Value {
    let last = item["args"].as_array().and_then(|args| args.last());
    last.unwrap_or(&Value::Null)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Account, Times, audit, is_at_rest, wrong_marks};
    use crate::soak::person::witness::stream_of;
    use crate::soak::script::answer;

    fn story() -> (Vec<Value>, Account) {
        let call = json!({ "callId": "c", "args": { "command": "echo m.1.0 >> ran-t; x" } });
        let text = answer("m", 2, 3);
        let events = [
            ("user:message", json!(["SOAK", { "clientMessageId": "m" }])),
            ("agent:thinking", json!([{}])),
            ("agent:message", json!(["I look. ", { "calls": [call] }])),
            ("tool:decided", json!([{ "callId": "c", "approved": true }])),
            ("tool:started", json!([{ "callId": "c" }])),
            (
                "tool:output",
                json!(["", { "callId": "c", "status": "completed", "exitCode": 0 }]),
            ),
            ("agent:response", json!([text, {}])),
        ];
        let items = (1..)
            .zip(events)
            .map(|(seq, (event, args))| json!({ "seq": seq, "event": event, "args": args }));
        let account = Account {
            said: vec!["m".to_owned()],
            words: [("m".to_owned(), 3)].into(),
            decided: vec![("c".to_owned(), true)],
            ..Account::default()
        };
        (items.collect(), account)
    }

    #[test]
    fn a_whole_story_has_no_problem() {
        let (items, account) = story();
        assert!(is_at_rest(&items) && !is_at_rest(&items[..2]));
        let findings = audit(&items, &account, &stream_of(&items).unwrap());
        assert!(findings.problems.is_empty(), "{:?}", findings.problems);
        assert_eq!(findings.marks["m.1.0"], Times::Once);
        let once = [("m.1.0".to_owned(), 1)].into();
        assert!(wrong_marks(&findings.marks, &once).is_empty());
        let twice = [("m.1.0".to_owned(), 2)].into();
        assert_eq!(wrong_marks(&findings.marks, &twice).len(), 1);
        assert_eq!(wrong_marks(&findings.marks, &[].into()).len(), 1);
    }

    #[test]
    fn whatever_is_missing_doubled_or_changed_is_found() {
        let (items, account) = story();
        let seen = stream_of(&items).unwrap();
        for index in 0..items.len() {
            let mut fewer = items.clone();
            fewer.remove(index);
            assert!(
                !audit(&fewer, &account, &seen).problems.is_empty(),
                "{index}"
            );
            let mut changed = items.clone();
            changed[index]["args"] = json!(["other", { "callId": "d" }]);
            assert!(
                !audit(&changed, &account, &seen).problems.is_empty(),
                "{index}"
            );
            let mut doubled = items.clone();
            doubled.insert(index, items[index].clone());
            assert!(
                !audit(&doubled, &account, &seen).problems.is_empty(),
                "{index}"
            );
        }
    }
}
