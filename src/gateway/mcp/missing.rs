//! Finds out what a call needs beside the approval of the caller.

use super::approval::Verdict;
use crate::domain::Caller;
use crate::session::{Call, Consent};

/// The requirement of a rule that a plain approval by the caller, who owns the session, does not meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// A fresh gesture, which no MCP client can give.
    Gesture,
    /// The approval of somebody else; the caller's approval does not count.
    Others,
    /// The approval of somebody else in addition to the caller's.
    Another,
}

impl Missing {
    /// Returns the requirement that the caller's approval does not meet; `None` if the approval suffices.
    pub(super) fn of(caller: &Caller, call: &Call) -> Option<Self> {
        let (owner, role) = (&caller.user.id, Some(caller.user.role));
        if call.wants.fresh_gesture {
            return Some(Self::Gesture);
        }
        if !call.wants.may_approve(owner, role, Some(owner)) {
            return Some(Self::Others);
        }
        let mut consents = call.consents.clone();
        consents.push(Consent {
            by: caller.actor(),
            role,
            at: call.since,
            gesture: None,
        });
        let mut open = call.wants.open(Some(owner), &consents);
        open.next().map(|_| Self::Another)
    }

    /// True if the person at the door is not asked at all.
    pub(super) fn is_for_page(self) -> bool {
        match self {
            Self::Gesture | Self::Others => true,
            Self::Another => false,
        }
    }

    /// Describes the requirement; callers append the remedy.
    pub fn words(self) -> &'static str {
        match self {
            Self::Gesture => "a rule wants a passkey or the password of a person with the yes",
            Self::Others => "a rule wants the yes of somebody else",
            Self::Another => "a rule wants the yes of somebody else beside this one",
        }
    }

    /// The rejection of the call for people without a page.
    pub(super) fn refused(self) -> Verdict {
        Verdict {
            approved: false,
            reason: Some(format!(
                "{} to this call, which only the page of a running Sepal takes (`sepal serve`, at \
                 `/approvals`)",
                self.words()
            )),
        }
    }
}
