//! Lists the tables with rows of tenants: the one list by which a tenant is deleted, exported and imported.

/// A table with rows of tenants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TenantTable {
    pub(crate) name: &'static str,
    pub(crate) owner: Owner,
    /// True if an export of the tenant has the rows.
    pub(crate) is_exported: bool,
}

/// The way in which rows name their tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The column is the tenant.
    Column(&'static str),
    /// The column begins with the prefix, the tenant and a colon.
    Prefix {
        column: &'static str,
        prefix: &'static str,
    },
}

impl TenantTable {
    /// The condition for the rows of the tenant `$1`.
    pub(crate) fn condition(&self) -> String {
        match self.owner {
            Owner::Column(column) => format!("{column} = $1"),
            Owner::Prefix { column, prefix } => format!(
                "SUBSTR({column}, 1, LENGTH($1) + {}) = '{prefix}' || $1 || ':'",
                prefix.len().saturating_add(1)
            ),
        }
    }

    /// The statement that deletes the rows of the tenant `$1`.
    pub(crate) fn deletion(&self) -> String {
        format!("DELETE FROM {} WHERE {}", self.name, self.condition())
    }
}

/// A table whose rows travel with the tenant.
const fn exported(name: &'static str, column: &'static str) -> TenantTable {
    TenantTable {
        name,
        owner: Owner::Column(column),
        is_exported: true,
    }
}

/// A table whose rows stay behind when the tenant is exported.
const fn left(name: &'static str, column: &'static str) -> TenantTable {
    TenantTable {
        name,
        owner: Owner::Column(column),
        is_exported: false,
    }
}

/// Every table with rows of tenants, in the order in which they are deleted: rows that refer to others come
/// first. An import fills the tables in the opposite order. A test compares the list with the migrations.
/// `package_volumes` is not in it: the gateway that removes such a volume also deletes its row.
pub(crate) const TENANT_TABLES: &[TenantTable] = &[
    // An export reads the journals through the live store, because they may be in Redis.
    left("journal", "tenant"),
    // A snapshot is a cache: a session is folded from its journal, which proves it.
    left("snapshots", "tenant"),
    // Nothing of a tenant that is exported is unfinished.
    left("active", "tenant"),
    // The index is made anew from the journals.
    left("texts", "tenant"),
    exported("attachments", "tenant"),
    exported("assistant_files", "tenant"),
    exported("assistant_access", "tenant"),
    exported("assistant_versions", "tenant"),
    exported("assistants", "tenant"),
    exported("blobs", "tenant"),
    // Learned anew from the next answers of each provider.
    left("calibrations", "scope"),
    exported("tool_calls", "tenant"),
    // The sums come after the requests when tables are filled, because triggers count each added request.
    exported("daily_spend", "tenant"),
    exported("group_spend", "tenant"),
    exported("model_requests", "tenant"),
    // No model request runs.
    left("budget_reservations", "tenant"),
    exported("budget_warnings", "tenant"),
    exported("budgets", "tenant"),
    exported("record_versions", "scope"),
    // Answers to requests that clients sent to the gateways there.
    left("idempotency_keys", "tenant"),
    exported("compaction_defaults", "tenant"),
    exported("shared_sessions", "tenant"),
    exported("rules", "tenant"),
    // No call waits, so nobody has to be told.
    left("notifications", "tenant"),
    exported("webhooks", "tenant"),
    exported("passkeys", "tenant"),
    // Challenges and proofs that live for minutes.
    left("gestures", "tenant"),
    exported("mcp_grants", "tenant"),
    // The same rows by the scope of their server, which is the tenant or the installation.
    left("mcp_grants", "scope"),
    // People who are at an authorization server right now: its answer goes to the gateways there.
    left("mcp_authorizations", "tenant"),
    left("mcp_authorizations", "scope"),
    exported("mcp_clients", "scope"),
    exported("package_installations", "scope"),
    exported("tool_versions", "tenant"),
    exported("tool_definition_history", "tenant"),
    // The definitions that the tenant accepted. Other rows of the table are a cache for all tenants.
    TenantTable {
        name: "tool_definitions",
        owner: Owner::Prefix {
            column: "hash",
            prefix: "accepted:",
        },
        is_exported: true,
    },
    exported("mcp_tool_settings", "tenant"),
    exported("mcp_bundle_parts", "tenant"),
    exported("mcp_bundles", "tenant"),
    exported("mcp_servers", "tenant"),
    exported("secrets", "scope"),
    exported("providers", "scope"),
    exported("model_defaults", "scope"),
    exported("skill_switches", "tenant"),
    exported("skills", "tenant"),
    exported("skill_bundles", "tenant"),
    exported("workspace_changes", "tenant"),
    exported("workspace_states", "tenant"),
    exported("workspace_contents", "tenant"),
    // Results that a waiting call may take; no call waits.
    left("dry_run_results", "tenant"),
    // Says which engine keeps the files, which stay there. An import gives each row a new id.
    exported("sandboxes", "tenant"),
    exported("sessions", "tenant"),
    exported("decisions", "tenant"),
    // The chain is signed by the installation that kept it. An export has its records and signatures for reading
    // and for `sepal audit verify`; an import begins another chain, which seals the journals anew.
    left("audit_anchors", "tenant"),
    left("audit_seals", "tenant"),
    left("audit_sessions", "tenant"),
    left("audit_cursors", "tenant"),
    left("audit", "tenant"),
    left("audit_cuts", "tenant"),
    // Sign-in links that live for minutes.
    left("links", "tenant"),
    exported("scim_tokens", "tenant"),
    exported("directory_groups", "tenant"),
    exported("directory_people", "tenant"),
    exported("group_access", "tenant"),
    exported("group_roles", "tenant"),
    exported("group_members", "tenant"),
    exported("user_groups", "tenant"),
    exported("role_holders", "tenant"),
    exported("custom_roles", "tenant"),
    exported("session_readings", "tenant"),
    exported("session_transfers", "tenant"),
    exported("invitations", "tenant"),
    // Browsers that are signed in there.
    left("web_sessions", "tenant"),
    exported("identities", "tenant"),
    exported("api_keys", "tenant"),
    exported("users", "tenant"),
];

/// The tables that an export has, in the order in which an import fills them.
pub(crate) fn exported_tables() -> impl Iterator<Item = &'static TenantTable> {
    TENANT_TABLES.iter().rev().filter(|it| it.is_exported)
}
