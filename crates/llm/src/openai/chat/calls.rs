//! Assigns the pieces of a stream to calls. By the specification the index decides; real servers give every
//! call index 0, send complete calls without an index, or change ids midway. Pure.

use std::collections::VecDeque;

use serde_json::Value;

use super::wire::CallDelta;
use crate::ModelEvent;
use crate::request::names::Names;
use crate::stream::MAX_CALLS;

/// The calls of one answer so far.
#[derive(Debug, Default)]
pub(super) struct Calls(Vec<Call>);

#[derive(Debug, Default)]
struct Call {
    wire_index: Option<u64>,
    id: String,
    name: String,
    /// Arguments that arrived before the call was announced.
    waiting: String,
    is_announced: bool,
    arguments: Arguments,
    extra: Option<Value>,
}

/// The position in the JSON of a call's arguments.
#[derive(Debug, Default)]
struct Arguments {
    depth: usize,
    is_text: bool,
    is_escaped: bool,
    /// True once the outermost object has ended.
    is_whole: bool,
}

impl Arguments {
    fn read(&mut self, json: &str) {
        for byte in json.bytes() {
            if self.is_text {
                self.is_text = self.is_escaped || byte != b'"';
                self.is_escaped = !self.is_escaped && byte == b'\\';
                continue;
            }
            match byte {
                b'"' => self.is_text = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    self.is_whole |= self.depth == 0;
                }
                _ => {}
            }
        }
    }
}

/// The answer has more calls than the limit.
#[derive(Debug, thiserror::Error)]
#[error("more than {MAX_CALLS} tool calls")]
pub(super) struct TooManyCalls;

impl Calls {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds the next piece.
    pub(super) fn push(
        &mut self,
        delta: &CallDelta<'_>,
        names: &Names,
        out: &mut VecDeque<ModelEvent>,
    ) -> Result<(), TooManyCalls> {
        let at = match self.place_of(delta) {
            Some(at) => at,
            None => self.begin(delta, names, out)?,
        };
        // Two calls with one id could not be told apart later.
        let is_taken = self.0.iter().take(at).any(|call| call.id == delta.id.0);
        if let Some(call) = self.0.get_mut(at) {
            call.take(delta, at, is_taken, names, out);
        }
        Ok(())
    }

    /// Announces the calls that waited for an id until the end.
    pub(super) fn announce_all(&mut self, names: &Names, out: &mut VecDeque<ModelEvent>) {
        for (at, call) in self.0.iter_mut().enumerate() {
            call.announce(at, names, out);
        }
    }

    /// The `extra_content` of the calls, in call order; `None` if there is none.
    pub(super) fn take_extra(&mut self) -> Option<Value> {
        let has_extra = self.0.iter().any(|call| call.extra.is_some());
        let extra = self.0.iter_mut();
        has_extra.then(|| {
            extra
                .map(|call| call.extra.take().unwrap_or_default())
                .collect()
        })
    }

    /// The call that a piece belongs to; `None` if it starts a new call.
    fn place_of(&self, delta: &CallDelta<'_>) -> Option<usize> {
        let id = delta.id.0.as_ref();
        if let Some(index) = delta.index {
            let same = |call: &Call| call.wire_index == Some(index);
            let at = self.0.iter().rposition(same)?;
            return self.goes_on(at, delta);
        }
        if !id.is_empty() {
            let at = self.0.iter().rposition(|call| call.id == id)?;
            return self.goes_on(at, delta);
        }
        let last = self.0.len().checked_sub(1);
        last.filter(|_| !delta.has_name())
    }

    /// Returns the call again if the piece goes on with it. A piece with a name begins another call if its id or
    /// its name is another one, or if the arguments so far are whole and it has more.
    fn goes_on(&self, at: usize, delta: &CallDelta<'_>) -> Option<usize> {
        let call = self.0.get(at)?;
        let (Some(function), false) = (&delta.function, call.name.is_empty()) else {
            return Some(at);
        };
        let (id, name) = (delta.id.0.as_ref(), function.name.0.as_ref());
        if name.is_empty() {
            return Some(at);
        }
        let has_other_id = !id.is_empty() && !call.id.is_empty() && id != call.id;
        // Some servers repeat the name, or send more of it.
        let has_other_name = !name.starts_with(call.name.as_str());
        let begins = function.arguments().trim_start().starts_with('{');
        let is_other = has_other_id || has_other_name || (call.arguments.is_whole && begins);
        (!is_other).then_some(at)
    }

    fn begin(
        &mut self,
        delta: &CallDelta<'_>,
        names: &Names,
        out: &mut VecDeque<ModelEvent>,
    ) -> Result<usize, TooManyCalls> {
        let at = self.0.len();
        if at >= MAX_CALLS {
            return Err(TooManyCalls);
        }
        if let Some(before) = self.0.last_mut().filter(|call| !call.name.is_empty()) {
            before.announce(at - 1, names, out);
        }
        self.0.push(Call {
            wire_index: delta.index,
            ..Call::default()
        });
        Ok(at)
    }
}

impl Call {
    fn take(
        &mut self,
        delta: &CallDelta<'_>,
        at: usize,
        is_taken: bool,
        names: &Names,
        out: &mut VecDeque<ModelEvent>,
    ) {
        if self.id.is_empty() && !is_taken {
            self.id.push_str(&delta.id.0);
        }
        if let Some(extra) = delta.extra_content {
            self.extra = serde_json::from_str(extra.get()).ok();
        }
        let Some(function) = &delta.function else {
            return;
        };
        if self.name.is_empty() {
            self.name.push_str(&function.name.0);
        }
        let json = function.arguments();
        self.arguments.read(&json);
        if !self.is_announced {
            self.waiting.push_str(&json);
            // An id may still arrive as long as there are no arguments.
            let is_ready = !self.id.is_empty() || !self.waiting.is_empty();
            if !self.name.is_empty() && is_ready {
                self.announce(at, names, out);
            }
        } else if !json.is_empty() {
            out.push_back(ModelEvent::CallArguments {
                index: at,
                json: json.into_owned(),
            });
        }
    }

    fn announce(&mut self, at: usize, names: &Names, out: &mut VecDeque<ModelEvent>) {
        if std::mem::replace(&mut self.is_announced, true) {
            return;
        }
        out.push_back(ModelEvent::CallStarted {
            index: at,
            provider_id: self.id.clone(),
            name: names.original(&self.name).to_owned(),
        });
        let json = std::mem::take(&mut self.waiting);
        if !json.is_empty() {
            out.push_back(ModelEvent::CallArguments { index: at, json });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::{CallDelta, Calls};
    use crate::request::names::Names;
    use crate::stream::line::{in_and_out, one_line};

    /// Compares the events in the form of [`one_line`].
    fn check_calls(deltas: &[&str], expected: &str) {
        let (mut calls, names, mut out) = (Calls::default(), Names::default(), VecDeque::new());
        for delta in deltas {
            let delta: CallDelta<'_> = serde_json::from_str(delta).unwrap();
            calls.push(&delta, &names, &mut out).unwrap();
        }
        calls.announce_all(&names, &mut out);
        assert_eq!(one_line(&out, in_and_out), expected, "{deltas:?}");
    }

    #[test]
    fn calls_are_told_apart_in_every_order() {
        check_calls(
            &[
                r#"{"index":0,"id":"a","type":"function","function":{"name":"t","arguments":""}}"#,
                r#"{"index":0,"function":{"arguments":"{\"x\":"}}"#,
                r#"{"index":1,"id":"b","function":{"name":"u","arguments":"{}"}}"#,
                r#"{"index":0,"function":{"arguments":"1}"}}"#,
            ],
            r#"0:a/t 0+{"x": 1:b/u 1+{} 0+1}"#,
        );
        // Complete calls without an index, with and without ids; arguments as an object.
        check_calls(
            &[
                r#"{"id":"a","function":{"name":"t","arguments":{"x":1}}}"#,
                r#"{"id":"b","function":{"name":"t","arguments":"{}"}}"#,
            ],
            r#"0:a/t 0+{"x":1} 1:b/t 1+{}"#,
        );
        check_calls(
            &[
                r#"{"function":{"name":"t","arguments":"{}"}}"#,
                r#"{"function":{"name":"t","arguments":null}}"#,
            ],
            "0:/t 0+{} 1:/t",
        );
        // Every call has index 0.
        check_calls(
            &[
                r#"{"index":0,"id":"a","function":{"name":"t","arguments":"{}"}}"#,
                r#"{"index":0,"id":"b","function":{"name":"t","arguments":"{\"y\":"}}"#,
                r#"{"index":0,"function":{"arguments":"2}"}}"#,
            ],
            r#"0:a/t 0+{} 1:b/t 1+{"y": 1+2}"#,
        );
        // A new id with every piece, the name repeated, and arguments before the name.
        check_calls(
            &[
                r#"{"index":0,"id":"a","function":{"name":"t","arguments":"{"}}"#,
                r#"{"index":0,"id":"zzz","function":{"arguments":"}"}}"#,
            ],
            "0:a/t 0+{ 0+}",
        );
        check_calls(
            &[
                r#"{"index":0,"id":"a","function":{"arguments":"{"}}"#,
                r#"{"index":0,"id":"a","function":{"name":"t"}}"#,
                r#"{"index":0,"id":"a","function":{"name":"t","arguments":"}"}}"#,
            ],
            "0:a/t 0+{ 0+}",
        );
        // All calls have index 0, and no ids, or one id for all.
        let alone = |index: &str, id: &str, name: &str, arguments: &str| {
            format!(r#"{{{index}{id}"function":{{"name":"{name}","arguments":{arguments:?}}}}}"#)
        };
        for index in ["\"index\":0,", ""] {
            for (id, first) in [("", ""), ("\"id\":\"\",", ""), ("\"id\":\"a\",", "a")] {
                let one = alone(index, id, "t", "{\"x\":\"}{\"}");
                let two = alone(index, id, "t", "{}");
                let three = alone(index, id, "u", "{}");
                check_calls(
                    &[&one, &two, &three],
                    &format!("0:{first}/t 0+{{\"x\":\"}}{{\"}} 1:/t 1+{{}} 2:/u 2+{{}}"),
                );
            }
        }
        // The arguments of each come in pieces.
        check_calls(
            &[
                r#"{"index":0,"id":"","function":{"name":"t","arguments":"{\"x\":"}}"#,
                r#"{"index":0,"function":{"arguments":"1}"}}"#,
                r#"{"index":0,"id":"","function":{"name":"t","arguments":"{\"x\":"}}"#,
                r#"{"index":0,"function":{"arguments":"2}"}}"#,
            ],
            r#"0:/t 0+{"x": 0+1} 1:/t 1+{"x": 1+2}"#,
        );
        // The name repeated at the end is no call.
        check_calls(
            &[
                r#"{"index":0,"id":"a","function":{"name":"t","arguments":"{}"}}"#,
                r#"{"index":0,"id":"a","function":{"name":"t","arguments":""}}"#,
            ],
            "0:a/t 0+{}",
        );
        // A call without arguments before another one.
        check_calls(
            &[
                r#"{"index":0,"id":"","function":{"name":"t","arguments":""}}"#,
                r#"{"index":0,"id":"","function":{"name":"u","arguments":"{}"}}"#,
            ],
            "0:/t 1:/u 1+{}",
        );
        // The id arrives after the name, the index starts at 1, and there are no arguments.
        check_calls(
            &[
                r#"{"index":1,"function":{"name":"t"}}"#,
                r#"{"index":1,"id":"a"}"#,
            ],
            "0:a/t",
        );
    }
}
