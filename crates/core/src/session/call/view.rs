//! Calls that views ask for (MCP Apps), beside those of the model: which view asks, and what the session
//! keeps of them.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Call, Elicitation, Proposal};
use crate::domain::{Actor, CallId, Digest, Timestamp};

/// Requests of views that are remembered, for repeats and for the rate.
const REMEMBERED_REQUESTS: usize = 64;
/// Refused calls that are remembered, so that nobody is asked for the same again and again.
const REMEMBERED_REFUSALS: usize = 64;

/// Which view asks for a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewOrigin {
    /// The call whose view it is.
    pub call: CallId,
    /// The name of that call's tool, for people.
    pub tool: String,
    /// The page's own id of this showing of the view: shown once more, it is another.
    pub view: String,
    /// The page's own id of the request; a repeat changes nothing.
    pub request: String,
}

/// A call that a view asks for, looked up and validated by the shell.
#[derive(Debug, Clone, PartialEq)]
pub struct ViewCall {
    pub origin: ViewOrigin,
    pub proposal: Proposal,
    /// Whose view it is.
    pub by: Actor,
}

/// A request of a view that became a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewRequest {
    /// The page's own id.
    pub request: String,
    pub at: Timestamp,
}

/// The calls of views of a session. They belong to no turn: they come while none runs, and go on when
/// one ends.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ViewCalls {
    /// Those that go on, and those that have ended since the last one came.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<Arc<Call>>,
    /// What servers asked while they run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub elicitations: Vec<Arc<Elicitation>>,
    /// The newest requests, oldest first.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub requests: VecDeque<ViewRequest>,
    /// What was refused to which showing of a view, by equality; oldest first.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub refused: VecDeque<(String, Digest)>,
    /// Those of unknown outcome that nobody has settled. The model never heard of them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub unknown: BTreeSet<CallId>,
}

impl ViewCalls {
    /// Whether no view has ever asked for a call.
    pub fn is_unused(&self) -> bool {
        *self == Self::default()
    }

    /// Those that have no result yet.
    pub fn open(&self) -> impl Iterator<Item = &Arc<Call>> {
        self.calls.iter().filter(|call| !call.is_ended())
    }

    /// Whether that request became a call already.
    pub fn has_request(&self, request: &str) -> bool {
        self.requests.iter().any(|known| known.request == request)
    }

    /// How many requests became calls since then.
    pub fn requests_since(&self, since: Timestamp) -> usize {
        let recent = self.requests.iter().filter(|known| known.at > since);
        recent.count()
    }

    /// Whether this very call was refused to that showing of a view.
    pub fn was_refused(&self, view: &str, equal: &Digest) -> bool {
        let mut refused = self.refused.iter();
        refused.any(|(of, what)| of == view && what == equal)
    }

    /// Takes in a call that a view asks for.
    pub(in crate::session) fn take(&mut self, call: &Arc<Call>, at: Timestamp) {
        self.calls.retain(|known| !known.is_ended());
        self.calls.push(Arc::clone(call));
        let request = call.origin.as_ref().map(|origin| origin.request.clone());
        remember(
            &mut self.requests,
            ViewRequest {
                request: request.unwrap_or_default(),
                at,
            },
            REMEMBERED_REQUESTS,
        );
    }

    /// Remembers what was refused to a view.
    pub(in crate::session) fn refuse(&mut self, view: String, equal: Digest) {
        remember(&mut self.refused, (view, equal), REMEMBERED_REFUSALS);
    }
}

fn remember<T>(known: &mut VecDeque<T>, new: T, most: usize) {
    if known.len() == most {
        known.pop_front();
    }
    known.push_back(new);
}
