//! Counts the changes of records that are changed as a whole. A writer can require that a record still has the
//! version that they read: the check is a statement of the transaction that writes, so of two writers who
//! read the same version, one is refused.

use sepal_core::domain::{AssistantId, Scope, SessionKey, SkillId, TenantId, UserId};

/// Names a record that is changed as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordName {
    pub(super) scope: String,
    pub(super) name: String,
}

impl RecordName {
    fn new(scope: &str, name: impl Into<String>) -> Self {
        Self {
            scope: scope.to_owned(),
            name: name.into(),
        }
    }

    /// A model provider.
    pub fn provider(scope: &Scope, id: &str) -> Self {
        Self::new(scope.as_str(), format!("provider/{id}"))
    }

    /// The default model of a scope, or of a user.
    pub fn model_default(scope: &Scope, user: Option<&UserId>) -> Self {
        let user = user.map_or("", UserId::as_str);
        Self::new(scope.as_str(), format!("model_default/{user}"))
    }

    /// The default compaction of a tenant.
    pub fn compaction(tenant: &TenantId) -> Self {
        Self::new(tenant.as_str(), "compaction")
    }

    /// The budgets of a tenant, all together.
    pub fn budgets(tenant: &TenantId) -> Self {
        Self::new(tenant.as_str(), "budgets")
    }

    /// Whether links to sessions of a tenant are allowed.
    pub fn sharing(tenant: &TenantId) -> Self {
        Self::new(tenant.as_str(), "sharing")
    }

    /// The mail setting of a user.
    pub fn mail(tenant: &TenantId, user: &UserId) -> Self {
        Self::new(tenant.as_str(), format!("mail/{user}"))
    }

    /// A skill.
    pub fn skill(tenant: &TenantId, id: &SkillId) -> Self {
        Self::new(tenant.as_str(), format!("skill/{id}"))
    }

    /// The newest version of an assistant.
    pub fn assistant(tenant: &TenantId, id: &AssistantId) -> Self {
        Self::new(tenant.as_str(), format!("assistant/{id}"))
    }

    /// The list of who may do what with an assistant.
    pub fn assistant_access(tenant: &TenantId, id: &AssistantId) -> Self {
        Self::new(tenant.as_str(), format!("assistant_access/{id}"))
    }

    /// A user's own switch of a skill.
    pub fn skill_switch(tenant: &TenantId, user: &UserId, id: &SkillId) -> Self {
        Self::new(tenant.as_str(), format!("skill_switch/{user}/{id}"))
    }

    /// The entry of an MCP server.
    pub fn server(scope: &Scope, name: &str) -> Self {
        Self::new(scope.as_str(), format!("server/{name}"))
    }

    /// The settings of the tools of an MCP server.
    pub fn tools(tenant: &TenantId, server: &str) -> Self {
        Self::new(tenant.as_str(), format!("tools/{server}"))
    }

    /// The marks of a session: pinned, archived, tags.
    pub fn marks(key: &SessionKey) -> Self {
        Self::new(key.tenant.as_str(), format!("marks/{}", key.session))
    }
}

/// The versions that a writer requires.
pub type Required = Vec<(RecordName, u64)>;

tokio::task_local! {
    static REQUIRED: Required;
}

/// Runs `work`, in which a change of each of these records succeeds only if it has this version. Otherwise
/// the change returns [`Error::Changed`](super::Error::Changed), and nothing is written. The change has to be made by this task.
/// What this task requires already stays.
pub async fn requiring<T>(more: Required, work: impl Future<Output = T>) -> T {
    let mut all = REQUIRED.try_with(Clone::clone).unwrap_or_default();
    for (record, version) in more {
        if !all.iter().any(|(known, _)| *known == record) {
            all.push((record, version));
        }
    }
    REQUIRED.scope(all, work).await
}

/// Returns true if this task requires a version of the record.
pub fn is_required(record: &RecordName) -> bool {
    required(record).is_some()
}

pub(super) fn required(record: &RecordName) -> Option<u64> {
    let found = |required: &Required| {
        let found = required.iter().find(|(known, _)| known == record);
        found.map(|(_, version)| *version)
    };
    REQUIRED.try_with(found).ok().flatten()
}
