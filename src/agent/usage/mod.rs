//! Reports the usage of sessions: derives rows from journals, keeps them complete, and sums them for people
//! who may see them.

pub(super) mod completion;
pub(super) mod fold;

use crate::domain::{Caller, Code, Right, SessionId, TenantId, Timestamp, UserId};
use crate::session::Refusal;
use crate::store::records::{CallSums, Direction, RequestSums, Sorting, UsageBy, UsageGroup};

/// Identifies the people whose usage a caller may see; can only be made from a caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageAccess {
    pub(in crate::agent) tenant: TenantId,
    /// One person; `None` = everybody in the tenant.
    pub(in crate::agent) owner: Option<UserId>,
    /// The person whose sessions' titles are shown.
    pub(in crate::agent) reader: UserId,
}

impl UsageAccess {
    /// Returns the caller's access to a person, or to everybody that they may see: themselves, or their
    /// tenant.
    pub fn of(caller: &Caller, person: Option<UserId>) -> Result<Self, Refusal> {
        let own = &caller.user.id;
        let sees_all = caller.may(Right::ReadUsage);
        let is_anothers = person.as_ref().is_some_and(|person| person != own);
        if is_anothers && !sees_all {
            let text = "only admins see what others used";
            return Err(Refusal::of_field(Code::NotAllowed, "person", text));
        }
        Ok(Self {
            tenant: caller.tenant.id.clone(),
            owner: if sees_all { person } else { Some(own.clone()) },
            reader: own.clone(),
        })
    }
}

/// The query.
#[derive(Debug, Clone)]
pub struct UsageRequest {
    pub by: UsageBy,
    /// The start of the range, inclusive.
    pub from: Timestamp,
    /// The end of the range, exclusive.
    pub to: Timestamp,
    pub provider: Option<String>,
    pub model: Option<String>,
    pub session: Option<SessionId>,
    pub sorting: Sorting,
    pub direction: Direction,
    pub offset: usize,
    pub limit: usize,
}

/// The usage report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageReport {
    /// The sums of all model requests in the range.
    pub totals: RequestSums,
    pub groups: UsageGroups,
    /// True if there are more groups.
    pub has_more: bool,
}

/// A page of groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UsageGroups {
    Requests(Vec<UsageGroup<RequestSums>>),
    Calls(Vec<UsageGroup<CallSums>>),
}
