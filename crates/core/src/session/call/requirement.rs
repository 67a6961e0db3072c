//! Models the requirements of a waiting call beyond its owner's approval.

use sepal_policy::Approver;
use serde::{Deserialize, Serialize};

use crate::domain::{Actor, GestureMeans, Role, Timestamp, UserId};

/// The requirements that a pending call has to meet before it may start. Plain = the owner's approval.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalRequirement {
    /// The required approvers, each once, in order; all of them have to approve. Empty = only the owner.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvers: Vec<Approver>,
    /// True if an approval needs a fresh proof of presence.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fresh_gesture: bool,
    /// The time at which an undecided call is rejected; `None` = never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// The time allowed for the decision, in milliseconds, for the text of the rejection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_after_ms: Option<u64>,
}

impl ApprovalRequirement {
    /// The requirements of rules, without an expiry.
    pub fn new(approvers: &[Approver], fresh_gesture: bool) -> Self {
        let is_plain = approvers.iter().all(|who| *who == Approver::Owner);
        Self {
            approvers: if is_plain {
                Vec::new()
            } else {
                approvers.to_vec()
            },
            fresh_gesture,
            expires_at: None,
            expires_after_ms: None,
        }
    }

    /// Sets the expiry to `after_ms` milliseconds after `now`.
    #[must_use]
    pub fn expiring(mut self, now: Timestamp, after_ms: Option<u64>) -> Self {
        self.expires_after_ms = after_ms;
        self.expires_at = after_ms.map(|ms| {
            let ms = i64::try_from(ms).unwrap_or(i64::MAX);
            Timestamp(now.0.saturating_add(ms))
        });
        self
    }

    /// Adds the owner to the required approvers.
    #[must_use]
    pub fn with_owner(mut self) -> Self {
        // An empty list already means the owner.
        if !self.approvers.is_empty() && !self.approvers.contains(&Approver::Owner) {
            self.approvers.insert(0, Approver::Owner);
        }
        self
    }

    /// Returns true if only the owner's approval is required, with no time limit.
    pub fn is_plain(&self) -> bool {
        self.approvers.is_empty() && !self.fresh_gesture && self.expires_at.is_none()
    }

    /// The required approvers whose approval is still missing, given these consents and that session owner.
    pub fn open<'w>(
        &'w self,
        owner: Option<&'w UserId>,
        consents: &'w [Consent],
    ) -> impl Iterator<Item = &'w Approver> {
        let approvers = match self.approvers.as_slice() {
            [] => &[Approver::Owner],
            approvers => approvers,
        };
        approvers.iter().filter(move |approver| {
            let fitting = consents
                .iter()
                .filter(|consent| fits(approver, &consent.by.id, consent.role, owner))
                .filter(|consent| consent.gesture.is_some() || !self.fresh_gesture);
            fitting.count() < needed(approver)
        })
    }

    /// Returns true if that person's approval counts for at least one required approver, given that session
    /// owner.
    pub fn may_approve(&self, who: &UserId, role: Option<Role>, owner: Option<&UserId>) -> bool {
        match self.approvers.as_slice() {
            [] => fits(&Approver::Owner, who, role, owner),
            approvers => approvers
                .iter()
                .any(|approver| fits(approver, who, role, owner)),
        }
    }

    /// The lowest role with which a person other than the session's owner may decide; `None` = no other
    /// person may.
    pub fn lowest_role(&self) -> Option<Role> {
        let roles = self.approvers.iter().filter_map(|approver| match approver {
            Approver::Owner => None,
            Approver::SomebodyElse | Approver::Two => Some(Role::Approver),
            Approver::Role(name) => Some(Role::parse(name)?.max(Role::Approver)),
        });
        roles.min()
    }
}

/// Number of people who have to approve.
fn needed(approver: &Approver) -> usize {
    match approver {
        Approver::Owner | Approver::Role(_) | Approver::SomebodyElse => 1,
        Approver::Two => 2,
    }
}

/// Returns true if that person's approval counts. An unknown role matches nobody.
fn fits(approver: &Approver, who: &UserId, role: Option<Role>, owner: Option<&UserId>) -> bool {
    let is_owner = owner == Some(who);
    let may_decide = is_owner || role.is_some_and(Role::may_decide);
    match approver {
        Approver::Owner => is_owner,
        Approver::SomebodyElse => may_decide && !is_owner,
        Approver::Two => may_decide,
        Approver::Role(name) => {
            may_decide
                && role.is_some_and(|role| Role::parse(name).is_some_and(|least| role >= least))
        }
    }
}

/// An approval of a call that needs more than its owner's. It covers the current arguments: an edit drops
/// it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Consent {
    pub by: Actor,
    /// The person's role at that time, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    pub at: Timestamp,
    /// The means of the fresh gesture, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gesture: Option<GestureMeans>,
}

#[cfg(test)]
mod tests {
    use sepal_policy::Approver;

    use super::{ApprovalRequirement, Consent};
    use crate::domain::{Actor, Role, Timestamp, UserId};

    fn consent(bits: u128, role: Role) -> Consent {
        Consent {
            by: Actor {
                id: UserId::from_bits(bits),
                name: "p".into(),
            },
            role: Some(role),
            at: Timestamp(0),
            gesture: None,
        }
    }

    #[test]
    fn a_yes_counts_for_whom_the_rules_ask() {
        let owner = UserId::from_bits(1);
        let (own, other, third) = (
            consent(1, Role::Member),
            consent(2, Role::Member),
            consent(3, Role::Owner),
        );
        let viewer = consent(4, Role::Viewer);
        let approver = consent(5, Role::Approver);
        let role = |name: &str| Approver::Role(name.into());
        for (approvers, yes, is_met) in [
            (vec![], vec![&own], true),
            (vec![], vec![&other], false),
            (vec![Approver::SomebodyElse], vec![&own], false),
            (vec![Approver::SomebodyElse], vec![&viewer], false),
            (vec![Approver::SomebodyElse], vec![&other], true),
            (vec![Approver::Two], vec![&own], false),
            (vec![Approver::Two], vec![&own, &viewer], false),
            (vec![Approver::Two], vec![&other, &third], true),
            (vec![role("admin")], vec![&own, &other], false),
            (vec![role("admin")], vec![&third], true),
            (vec![role("viewer")], vec![&viewer], false),
            (vec![], vec![&approver], false),
            (vec![Approver::SomebodyElse], vec![&approver], true),
            (vec![Approver::Two], vec![&own, &approver], true),
            (vec![role("approver")], vec![&approver], true),
            (vec![role("approver")], vec![&other], true),
            (vec![role("approver")], vec![&viewer], false),
            (vec![role("member")], vec![&approver], false),
            (vec![role("nobody")], vec![&third], false),
            (vec![Approver::Owner, role("admin")], vec![&third], false),
            (
                vec![Approver::Owner, role("admin")],
                vec![&own, &third],
                true,
            ),
        ] {
            let wants = ApprovalRequirement::new(&approvers, false);
            let yes: Vec<Consent> = yes.into_iter().cloned().collect();
            let is_open = wants.open(Some(&owner), &yes).next().is_some();
            assert_eq!(!is_open, is_met, "{approvers:?} {yes:?}");
        }
    }
}
