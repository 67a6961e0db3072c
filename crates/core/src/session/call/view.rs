//! Tracks the calls that views request (MCP Apps), separately from those of the model.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Call, Elicitation, Proposal};
use crate::domain::{Actor, CallId, Digest, Timestamp};

/// Maximum number of remembered requests of views, for detecting repeats and limiting the rate.
const REMEMBERED_REQUESTS: usize = 64;
/// Maximum number of remembered refused calls, so that an equal request is refused without asking again.
const REMEMBERED_REFUSALS: usize = 64;

/// The origin of a call that a view requested.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewOrigin {
    /// The call that the view belongs to.
    pub call: CallId,
    /// The name of that call's tool, for people.
    pub tool: String,
    /// The page's own id of this showing of the view; showing the view again makes a new id.
    pub view: String,
    /// The page's own id of the request; a repeat changes nothing.
    pub request: String,
}

/// A call that a view requests, looked up and validated by the shell.
#[derive(Debug, Clone, PartialEq)]
pub struct ViewCall {
    pub origin: ViewOrigin,
    pub proposal: Proposal,
    /// The person who uses the view.
    pub by: Actor,
}

/// A request of a view that became a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewRequest {
    /// The page's own id of the request.
    pub request: String,
    pub at: Timestamp,
}

/// The calls of a session's views. They belong to no turn: they may start while no turn is running, and
/// continue when one ends.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ViewCalls {
    /// The open calls, and the calls that ended after the newest call was added.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<Arc<Call>>,
    /// Elicitations by servers during these calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub elicitations: Vec<Arc<Elicitation>>,
    /// The newest requests, oldest first.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub requests: VecDeque<ViewRequest>,
    /// The showing of a view and the equality digest of each refused call, oldest first.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub refused: VecDeque<(String, Digest)>,
    /// Calls with an unknown outcome that nobody has settled. The model does not know of them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub unknown: BTreeSet<CallId>,
}

impl ViewCalls {
    /// Returns true if no view has ever requested a call.
    pub fn is_unused(&self) -> bool {
        *self == Self::default()
    }

    /// The calls without a result.
    pub fn open(&self) -> impl Iterator<Item = &Arc<Call>> {
        self.calls.iter().filter(|call| !call.is_ended())
    }

    /// Returns true if that request already became a call.
    pub fn has_request(&self, request: &str) -> bool {
        self.requests.iter().any(|known| known.request == request)
    }

    /// Number of requests that became calls after `since`.
    pub fn requests_since(&self, since: Timestamp) -> usize {
        let recent = self.requests.iter().filter(|known| known.at > since);
        recent.count()
    }

    /// Returns true if an equal call was refused to that showing of a view.
    pub fn was_refused(&self, view: &str, equal: &Digest) -> bool {
        let mut refused = self.refused.iter();
        refused.any(|(of, what)| of == view && what == equal)
    }

    /// Adds a call that a view requested.
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

    /// Remembers a call that was refused to a view.
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
