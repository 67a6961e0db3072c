//! Shows a stored skill to a person.

use serde::{Deserialize, Serialize};

use crate::bundle::FileFacts;
use crate::document::Manifest;
use crate::problem::Problem;
use sepal_core::domain::{Caller, Right};
use sepal_store::records::SkillRow;

/// The sessions that a stored skill is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkillScope {
    /// Those of the person who stored it.
    Person,
    /// Those of everybody in the tenant; stored by admins.
    Tenant,
}

impl SkillScope {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Tenant => "tenant",
        }
    }

    /// Parses the name.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "person" => Some(Self::Person),
            "tenant" => Some(Self::Tenant),
            _ => None,
        }
    }
}

/// The switches to change; `None` = unchanged.
#[derive(Debug, Clone, Copy, Default)]
pub struct SkillSwitch {
    /// For the caller's own sessions.
    pub mine: Option<bool>,
    /// For the sessions of the whole tenant.
    pub of_tenant: Option<bool>,
}

/// The stored facts about a skill besides its name and description.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Facts {
    pub(super) manifest: Manifest,
    pub(super) files: Vec<FileFacts>,
    /// The warnings from the upload: place, message, remedy.
    pub(super) warnings: Vec<(String, String, String)>,
}

/// A skill as a caller sees it.
#[derive(Debug, Clone)]
pub struct SkillView {
    pub row: SkillRow,
    pub scope: SkillScope,
    pub manifest: Manifest,
    pub files: Vec<FileFacts>,
    /// The warnings from the upload.
    pub warnings: Vec<Problem>,
    /// True if the caller may change, remove and, for the tenant, switch it.
    pub may_change: bool,
    /// True if it is the tenant's, and a skill of the caller has the same name.
    pub is_hidden: bool,
}

impl SkillView {
    pub(super) fn of(row: SkillRow, caller: &Caller) -> Self {
        // Unreadable facts are left out; the skill itself stays usable.
        let facts: Facts = serde_json::from_str(&row.facts).unwrap_or_else(|error| {
            tracing::warn!(skill.id = %row.id, %error, "The facts of a skill cannot be read");
            Facts::default()
        });
        let scope = match row.owner {
            Some(_) => SkillScope::Person,
            None => SkillScope::Tenant,
        };
        let warnings = facts.warnings.into_iter();
        Self {
            scope,
            manifest: facts.manifest,
            files: facts.files,
            warnings: warnings
                .map(|(at, message, remedy)| Problem::warning(at, message, remedy))
                .collect(),
            may_change: may_write(caller, scope),
            is_hidden: false,
            row,
        }
    }

    /// Returns true if the caller's sessions have it, unless it is hidden.
    pub fn is_on(&self) -> bool {
        self.row.is_enabled && !self.row.is_off_for_reader
    }
}

/// Returns true if the caller may change such skills.
pub(super) fn may_write(caller: &Caller, scope: SkillScope) -> bool {
    match scope {
        SkillScope::Person => caller.user.role.may_act(),
        SkillScope::Tenant => caller.may(Right::ManageSkills),
    }
}
