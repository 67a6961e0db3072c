//! Who may ask what was used: members for themselves, admins for their tenant.

use crate::domain::{Caller, Code, Role, SessionId, TenantId, Timestamp, UserId};
use crate::session::Refusal;
use crate::store::records::{CallSums, Direction, RequestSums, Sorting, UsageBy, UsageGroup};

/// Whose usage somebody may see; only a caller gives one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageAccess {
    pub(in crate::agent) tenant: TenantId,
    /// Of one person; none = of everybody in the tenant.
    pub(in crate::agent) owner: Option<UserId>,
    /// Whose titles are told.
    pub(in crate::agent) reader: UserId,
}

impl UsageAccess {
    /// What the caller may see of a person, or of everybody they may see: themselves, or their tenant.
    pub fn of(caller: &Caller, person: Option<UserId>) -> Result<Self, Refusal> {
        let own = &caller.user.id;
        let sees_all = caller.user.role >= Role::Admin;
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

/// What is asked of it.
#[derive(Debug, Clone)]
pub struct UsageRequest {
    pub by: UsageBy,
    /// From this time on.
    pub from: Timestamp,
    /// Before this time.
    pub to: Timestamp,
    pub provider: Option<String>,
    pub model: Option<String>,
    pub session: Option<SessionId>,
    pub sorting: Sorting,
    pub direction: Direction,
    pub offset: usize,
    pub limit: usize,
}

/// What was used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageReport {
    /// All model requests of the range.
    pub totals: RequestSums,
    pub groups: UsageGroups,
    /// Whether there are more groups.
    pub has_more: bool,
}

/// A page of groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UsageGroups {
    Requests(Vec<UsageGroup<RequestSums>>),
    Calls(Vec<UsageGroup<CallSums>>),
}
