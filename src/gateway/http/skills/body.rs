//! The wire form of skills.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::domain::{Caller, Role, Timestamp};
use crate::gateway::error::ApiError;
use crate::gateway::extract::required;
use crate::gateway::word_list;
use crate::skills::{
    Bundle, Document, FileFacts, Problem, SkillSettings, SkillSwitch, SkillView, write_document,
};

/// Something that is odd about a skill, or wrong with it.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SkillProblem {
    /// A field of the front matter, or the path of a file.
    at: String,
    message: String,
    /// What helps.
    remedy: String,
}

impl SkillProblem {
    pub(super) fn of(problem: Problem) -> Self {
        Self {
            at: problem.at,
            message: problem.message,
            remedy: problem.remedy,
        }
    }
}

/// A file of a skill.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SkillFileItem {
    /// Below the skill's folder.
    path: String,
    bytes: u64,
    /// Whether it may be run, in the sandbox.
    executable: bool,
}

impl SkillFileItem {
    fn of(file: FileFacts) -> Self {
        Self {
            path: file.path,
            bytes: file.bytes,
            executable: file.is_executable,
        }
    }
}

/// A skill.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SkillItem {
    #[schema(pattern = "^skl_[0-9a-f]{32}$")]
    id: String,
    name: String,
    /// What it does, and when it is of use.
    description: String,
    #[schema(value_type = word_list::SkillScope)]
    scope: &'static str,
    /// SHA-256 of its files, in hex: what transcripts name.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    hash: String,
    /// Counts its replacements, from 1.
    version: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    license: Option<String>,
    /// What it needs.
    #[serde(skip_serializing_if = "Option::is_none")]
    compatibility: Option<String>,
    metadata: BTreeMap<String, String>,
    /// Tools that it says may run unasked: a claim, which grants nothing.
    allowed_tools: Vec<String>,
    files: Vec<SkillFileItem>,
    /// Of all files together.
    bytes: u64,
    /// What is odd about it.
    warnings: Vec<SkillProblem>,
    /// Whether my sessions have it.
    enabled: bool,
    /// Whether the sessions of the tenant have it; of the tenant's skills alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    enabled_for_tenant: Option<bool>,
    /// Whether one of my own has its name, so that my sessions have that one.
    hidden: bool,
    /// Whether I may replace and remove it.
    may_change: bool,
    created_by: String,
    created_at: String,
    updated_by: String,
    updated_at: String,
}

impl SkillItem {
    pub(super) fn of(view: SkillView) -> Self {
        let enabled = view.is_on();
        let SkillView {
            row,
            scope,
            manifest,
            files,
            warnings,
            may_change,
            is_hidden,
        } = view;
        Self {
            id: row.id.to_string(),
            scope: scope.as_str(),
            hash: row.hash,
            version: row.version,
            license: manifest.license,
            compatibility: manifest.compatibility,
            metadata: manifest.metadata,
            allowed_tools: manifest.allowed_tools,
            bytes: files.iter().map(|file| file.bytes).sum(),
            files: files.into_iter().map(SkillFileItem::of).collect(),
            warnings: warnings.into_iter().map(SkillProblem::of).collect(),
            enabled,
            enabled_for_tenant: row.owner.is_none().then_some(row.is_enabled),
            hidden: is_hidden,
            may_change,
            name: row.name,
            description: row.description,
            created_by: row.created_by.to_string(),
            created_at: Timestamp::to_rfc3339(row.created_at),
            updated_by: row.updated_by.to_string(),
            updated_at: Timestamp::to_rfc3339(row.updated_at),
        }
    }
}

/// How much skills may hold.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SkillLimits {
    /// Bytes of one skill.
    bytes: u64,
    /// Files of one skill.
    files: usize,
    /// Skills of one person, and of the tenant.
    kept: u64,
    /// Skills that a model request describes.
    offered: usize,
}

/// Skills.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SkillsPage {
    skills: Vec<SkillItem>,
    /// Whether this installation gives sessions skills at all.
    enabled: bool,
    /// Whether sessions also have those of their workspace.
    workspace: bool,
    /// Whether I may change those of the tenant.
    may_change_tenant: bool,
    limits: SkillLimits,
}

impl SkillsPage {
    pub(super) fn of(views: Vec<SkillView>, caller: &Caller, said: &SkillSettings) -> Self {
        Self {
            skills: views.into_iter().map(SkillItem::of).collect(),
            enabled: said.is_on,
            workspace: said.has_workspace,
            may_change_tenant: caller.user.role >= Role::Admin,
            limits: SkillLimits {
                bytes: said.limits.bytes,
                files: said.limits.files,
                kept: said.most_kept,
                offered: said.most_offered,
            },
        }
    }
}

/// A skill with what its `SKILL.md` says.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SkillDetails {
    skill: SkillItem,
    /// What stands behind the front matter.
    body: String,
}

impl SkillDetails {
    pub(super) fn of(view: SkillView, bundle: &Bundle) -> Self {
        // The document was checked when the skill was uploaded.
        let body = bundle.document(None).map(|document| document.body);
        Self {
            skill: SkillItem::of(view),
            body: body.unwrap_or_default(),
        }
    }
}

/// What an upload would be.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SkillCheck {
    name: String,
    description: String,
    allowed_tools: Vec<String>,
    files: Vec<SkillFileItem>,
    /// What is odd about it.
    warnings: Vec<SkillProblem>,
}

impl SkillCheck {
    pub(super) fn of(document: Document, files: Vec<FileFacts>) -> Self {
        let Document {
            manifest, warnings, ..
        } = document;
        Self {
            name: manifest.name,
            description: manifest.description,
            allowed_tools: manifest.allowed_tools,
            files: files.into_iter().map(SkillFileItem::of).collect(),
            warnings: warnings.into_iter().map(SkillProblem::of).collect(),
        }
    }
}

/// A skill as it was written in the page.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct WrittenSkill {
    #[schema(required, nullable = false, max_length = 64)]
    name: Option<String>,
    #[schema(required, nullable = false, max_length = 1024)]
    description: Option<String>,
    /// Markdown.
    #[schema(required, nullable = false)]
    body: Option<String>,
}

impl WrittenSkill {
    /// Returns its `SKILL.md`.
    pub(super) fn document(self) -> Result<Vec<u8>, ApiError> {
        let name = required("name", self.name)?;
        let description = required("description", self.description)?;
        let body = required("body", self.body)?;
        Ok(write_document(&name, &description, &body).into_bytes())
    }
}

/// What is to be switched; what is left out stays as it is.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SkillSwitchBody {
    /// For my sessions.
    enabled: Option<bool>,
    /// For the sessions of the whole tenant; admins, and the tenant's skills alone.
    enabled_for_tenant: Option<bool>,
}

impl SkillSwitchBody {
    pub(super) fn switch(&self) -> SkillSwitch {
        SkillSwitch {
            mine: self.enabled,
            of_tenant: self.enabled_for_tenant,
        }
    }
}
