//! What the yes of the caller lacks, where it does not let a call run by itself.

use super::approval::Verdict;
use crate::domain::Caller;
use crate::session::{Call, Consent};

/// What a rule wants beside a plain yes of the caller, whose session it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// A fresh gesture, which no client of MCP can give, whatever it is allowed to say.
    Gesture,
    /// Somebody else's yes; the caller's counts for nothing.
    Others,
    /// Somebody else's yes beside the caller's.
    Another,
}

impl Missing {
    /// What the caller's yes lacks; none = it suffices.
    pub(super) fn of(caller: &Caller, call: &Call) -> Option<Self> {
        let (owner, role) = (&caller.user.id, Some(caller.user.role));
        if call.wants.fresh_gesture {
            return Some(Self::Gesture);
        }
        if !call.wants.may_approve((owner, role), Some(owner)) {
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

    /// Whether nobody at the door is asked at all.
    pub(super) fn is_for_page(self) -> bool {
        match self {
            Self::Gesture | Self::Others => true,
            Self::Another => false,
        }
    }

    /// What it is, to go on with a word on what to do.
    pub fn words(self) -> &'static str {
        match self {
            Self::Gesture => "a rule wants a passkey or the password of a person with the yes",
            Self::Others => "a rule wants the yes of somebody else",
            Self::Another => "a rule wants the yes of somebody else beside this one",
        }
    }

    /// What becomes of the call where people have no page.
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
