//! Lists the rights that decide who may administer what in a tenant.

use super::{Caller, Role, User};

/// Declares [`Right`] with the name of each right.
macro_rules! rights {
    ($($(#[$doc:meta])* $name:ident = $text:literal),* $(,)?) => {
        /// A right that a built-in role, a custom role or a group gives.
        ///
        /// Rights are about what belongs to the whole tenant or to other people. What people do with things of
        /// their own is decided by [`Role::may_act`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Right {
            $($(#[$doc])* $name,)*
        }

        impl Right {
            /// Every right.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The name on the wire and in the database.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }

            /// Parses the form that [`Self::as_str`] writes.
            pub fn parse(text: &str) -> Option<Self> {
                match text {
                    $($text => Some(Self::$name),)*
                    _ => None,
                }
            }
        }
    };
}

rights! {
    /// See the people of the tenant; invite, add and change viewers, approvers and members.
    ManagePeople = "people.manage",
    /// Make and change admins and owners, and give every right.
    ManageAdmins = "people.manage_admins",
    /// See and revoke the API keys of other people.
    ManageKeys = "keys.manage",
    /// Make custom roles, and give them to people and groups.
    ManageRoles = "roles.manage",
    /// Make groups and choose their members.
    ManageGroups = "groups.manage",
    /// Give and remove rules for the whole tenant, and see those of everybody.
    ManageRules = "rules.manage",
    /// Set the budgets of sessions, people and the tenant.
    ManageBudgets = "budgets.manage",
    /// Add and change the MCP servers of the tenant, with their secrets, packages and tools.
    ManageServers = "servers.manage",
    /// Add and change the model providers of the tenant.
    ManageProviders = "providers.manage",
    /// Choose the default model and the compaction of the tenant.
    ManageModels = "models.manage",
    /// Send test requests to models, which cost money.
    TestModels = "models.test",
    /// Add and change the skills of the tenant.
    ManageSkills = "skills.manage",
    /// Make assistants of the tenant, and administer those that others share with the whole tenant.
    ManageAssistants = "assistants.manage",
    /// Allow or forbid sharing by link.
    ManageSharing = "sharing.manage",
    /// Add and change the webhooks of the tenant.
    ManageWebhooks = "webhooks.manage",
    /// Read the whole audit of the tenant, and the decisions of every session without their arguments.
    ReadAudit = "audit.read",
    /// Read what everybody in the tenant used.
    ReadUsage = "usage.read",
    /// Let one's own sessions and servers reach any host, not only those of `sandbox.network_on_request`.
    OpenAnyHost = "network.open",
    /// Read a session of somebody else, for a stated reason and a limited time. The owner of the session is
    /// told. No built-in role has this right.
    ReadSessions = "sessions.read_content",
}

impl Right {
    fn bit(self) -> u32 {
        1 << (self as u32)
    }
}

/// A set of rights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Rights(u32);

impl Rights {
    /// No rights.
    pub const NONE: Self = Self(0);

    /// Returns true if the set has a right.
    pub fn has(self, right: Right) -> bool {
        self.0 & right.bit() != 0
    }

    /// Both sets together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The rights of this set that another one lacks.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns true if there are none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The rights, in the order of [`Right::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Right> {
        let all = Right::ALL.iter().copied();
        all.filter(move |right| self.has(*right))
    }

    /// The names, in the order of [`Right::ALL`].
    pub fn names(self) -> Vec<&'static str> {
        self.iter().map(Right::as_str).collect()
    }

    /// The names, separated by spaces, as the database has them.
    pub fn to_text(self) -> String {
        self.names().join(" ")
    }

    /// Reads what [`Self::to_text`] writes. A name that this version does not know gives nothing.
    pub fn from_text(text: &str) -> Self {
        text.split_whitespace().filter_map(Right::parse).collect()
    }
}

impl FromIterator<Right> for Rights {
    fn from_iter<T: IntoIterator<Item = Right>>(rights: T) -> Self {
        let bits = rights.into_iter().fold(0, |bits, right| bits | right.bit());
        Self(bits)
    }
}

impl Role {
    /// The rights that the built-in role gives.
    pub fn rights(self) -> Rights {
        match self {
            Self::Viewer | Self::Approver | Self::Member => Rights::NONE,
            Self::Admin => of_admins(),
            Self::Owner => {
                let more = [Right::ManageAdmins, Right::ManageRoles];
                of_admins().and(more.into_iter().collect())
            }
        }
    }
}

fn of_admins() -> Rights {
    let all = Right::ALL.iter().copied();
    all.filter(|right| match right {
        Right::ManageAdmins | Right::ManageRoles | Right::ReadSessions => false,
        Right::ManagePeople
        | Right::ManageKeys
        | Right::ManageGroups
        | Right::ManageRules
        | Right::ManageBudgets
        | Right::ManageServers
        | Right::ManageProviders
        | Right::ManageModels
        | Right::TestModels
        | Right::ManageSkills
        | Right::ManageAssistants
        | Right::ManageSharing
        | Right::ManageWebhooks
        | Right::ReadAudit
        | Right::ReadUsage
        | Right::OpenAnyHost => true,
    })
    .collect()
}

/// The rights in their tenant of those who administer the installation.
const OF_INSTALLATION: [Right; 7] = [
    Right::ManagePeople,
    Right::ManageAdmins,
    Right::ManageKeys,
    Right::ManageRoles,
    Right::ManageGroups,
    Right::ManageServers,
    Right::TestModels,
];

impl User {
    /// The rights that the user has without custom roles.
    pub fn built_in_rights(&self) -> Rights {
        let of_installation = if self.installation_admin {
            OF_INSTALLATION.into_iter().collect()
        } else {
            Rights::NONE
        };
        self.role.rights().and(of_installation)
    }
}

impl Caller {
    /// Every right of the caller: of their built-in role, and of their custom roles.
    pub fn rights(&self) -> Rights {
        self.user.built_in_rights().and(self.custom_rights)
    }

    /// Returns true if the caller has a right.
    pub fn may(&self, right: Right) -> bool {
        self.rights().has(right)
    }

    /// The rights of a set that the caller may not give to others. Nobody gives a right that they lack, except
    /// those who make owners, who give every right.
    pub fn may_not_give(&self, rights: Rights) -> Rights {
        if self.may(Right::ManageAdmins) {
            Rights::NONE
        } else {
            rights.without(self.rights())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Right, Rights, Role};
    use crate::domain::{Caller, Tenant, TenantId, User, UserId};

    fn caller(role: Role, installation_admin: bool, custom: &[Right]) -> Caller {
        let tenant = TenantId::from_bits(1);
        Caller {
            user: User {
                id: UserId::from_bits(1),
                tenant: tenant.clone(),
                name: "ana".into(),
                role,
                installation_admin,
            },
            tenant: Tenant {
                id: tenant,
                name: "acme".into(),
            },
            custom_rights: custom.iter().copied().collect(),
            credential: None,
            grant: None,
        }
    }

    #[test]
    fn every_right_is_read_as_it_is_written() {
        let all: Rights = Right::ALL.iter().copied().collect();
        assert_eq!(Rights::from_text(&all.to_text()), all);
        assert_eq!(all.iter().count(), Right::ALL.len());
        for right in Right::ALL {
            assert_eq!(Right::parse(right.as_str()), Some(*right));
        }
        let of_later = Rights::from_text("audit.read tea.make  usage.read");
        assert_eq!(of_later.to_text(), "audit.read usage.read");
        assert!(Rights::from_text("").is_empty());
    }

    #[test]
    fn a_higher_role_has_the_rights_of_the_lower_ones() {
        for pair in Role::ALL.windows(2) {
            assert!(pair[0].rights().without(pair[1].rights()).is_empty());
        }
        assert!(Role::Member.rights().is_empty());
    }

    #[test]
    fn no_built_in_role_reads_what_others_wrote() {
        for role in Role::ALL {
            for is_installation_admin in [false, true] {
                let caller = caller(role, is_installation_admin, &[]);
                assert!(!caller.may(Right::ReadSessions), "{role:?}");
            }
        }
        let auditor = caller(Role::Viewer, false, &[Right::ReadSessions]);
        assert!(auditor.may(Right::ReadSessions));
        assert!(!auditor.may(Right::ReadAudit));
    }

    #[test]
    fn nobody_gives_a_right_that_they_lack() {
        let wanted: Rights = [Right::ReadAudit, Right::ReadSessions]
            .into_iter()
            .collect();
        let lacks = |caller: &Caller| caller.may_not_give(wanted).to_text();
        let helper = caller(Role::Member, false, &[Right::ManageRoles, Right::ReadAudit]);
        assert_eq!(lacks(&helper), "sessions.read_content");
        assert_eq!(
            lacks(&caller(Role::Admin, false, &[])),
            "sessions.read_content"
        );
        assert_eq!(lacks(&caller(Role::Owner, false, &[])), "");
        assert_eq!(lacks(&caller(Role::Member, true, &[])), "");
    }
}
