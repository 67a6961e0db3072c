//! The wire form of skills.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::domain::{Caller, Right, Timestamp};
use crate::gateway::error::ApiError;
use crate::gateway::extract::required;
use crate::gateway::paging::Page;
use crate::gateway::word_list;
use crate::skills::{
    Bundle, Document, FileFacts, Problem, SkillSettings, SkillSwitch, SkillView, write_document,
};

/// A problem of a skill, or a warning about it.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SkillProblem {
    /// The field of the front matter, or the path of a file.
    at: String,
    /// The problem, for people.
    message: String,
    /// The remedy, for people.
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
    /// The path below the skill's folder.
    path: String,
    /// The size of the file in bytes.
    bytes: u64,
    /// True if the file is executable in the sandbox.
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
    /// The skill's id.
    #[schema(pattern = "^skl_[0-9a-f]{32}$")]
    id: String,
    /// The skill's name.
    name: String,
    /// The purpose of the skill, and when to use it.
    description: String,
    /// The sessions that the skill is for.
    #[schema(value_type = word_list::SkillScope)]
    scope: &'static str,
    /// The SHA-256 of the skill's files, in hex, which transcripts name.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    hash: String,
    /// The number of the skill's version, from 1; each replacement of the files increments it.
    version: u64,
    /// The skill's license; absent if the front matter has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    license: Option<String>,
    /// The skill's requirements; absent if the front matter has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    compatibility: Option<String>,
    /// The `metadata` of the front matter.
    metadata: BTreeMap<String, String>,
    /// Tools that the skill claims may run without approval. The claim grants nothing.
    allowed_tools: Vec<String>,
    /// The files of the skill.
    files: Vec<SkillFileItem>,
    /// The total size of all files in bytes.
    bytes: u64,
    /// The warnings about the skill.
    warnings: Vec<SkillProblem>,
    /// True if the caller's sessions have the skill.
    enabled: bool,
    /// True if the sessions of the tenant have the skill; absent if it is a person's own skill.
    #[serde(skip_serializing_if = "Option::is_none")]
    enabled_for_tenant: Option<bool>,
    /// True if the caller's sessions have a skill of the caller with the same name instead.
    hidden: bool,
    /// True if the caller may replace and remove the skill.
    may_change: bool,
    /// The user id of the person who added the skill.
    created_by: String,
    /// When the skill was added (RFC 3339).
    created_at: String,
    /// The user id of the person who last changed the skill.
    updated_by: String,
    /// When the skill was last changed (RFC 3339).
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

/// The limits of skills.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SkillLimits {
    /// The most bytes of one skill.
    bytes: u64,
    /// The most files of one skill.
    files: usize,
    /// The most skills that one person, and that the tenant, may store.
    kept: u64,
    /// The most skills that a model request describes.
    offered: usize,
}

/// The skills that the caller's sessions may have.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SkillsPage {
    /// The skills, by name.
    skills: Vec<SkillItem>,
    /// The cursor of the next page; `null` if there is none.
    next_cursor: Option<String>,
    /// True if this installation gives skills to sessions at all.
    enabled: bool,
    /// True if sessions also have the skills of their workspace.
    workspace: bool,
    /// True if the caller may change the tenant's skills.
    may_change_tenant: bool,
    /// The limits of skills.
    limits: SkillLimits,
}

impl SkillsPage {
    pub(super) fn of(page: Page<SkillView>, caller: &Caller, said: &SkillSettings) -> Self {
        Self {
            skills: page.items.into_iter().map(SkillItem::of).collect(),
            next_cursor: page.next_cursor,
            enabled: said.is_on,
            workspace: said.has_workspace,
            may_change_tenant: caller.may(Right::ManageSkills),
            limits: SkillLimits {
                bytes: said.limits.bytes,
                files: said.limits.files,
                kept: said.most_kept,
                offered: said.most_offered,
            },
        }
    }
}

/// A skill with the text of its `SKILL.md`.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SkillDetails {
    /// The skill.
    skill: SkillItem,
    /// The text after the front matter.
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

/// The skill that an upload would make.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SkillCheck {
    /// The skill's name.
    name: String,
    /// The purpose of the skill, and when to use it.
    description: String,
    /// Tools that the skill claims may run without approval. The claim grants nothing.
    allowed_tools: Vec<String>,
    /// The files of the skill.
    files: Vec<SkillFileItem>,
    /// The warnings about the skill.
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

/// A skill that was written in the page.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct WrittenSkill {
    /// The skill's name.
    #[schema(required, nullable = false, max_length = 64)]
    name: Option<String>,
    /// The purpose of the skill, and when to use it.
    #[schema(required, nullable = false, max_length = 1024)]
    description: Option<String>,
    /// The text of the skill, in Markdown.
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

/// The switches to change; absent fields stay unchanged.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SkillSwitchBody {
    /// True to enable the skill for the caller's sessions, false to disable it.
    enabled: Option<bool>,
    /// True to enable the skill for the sessions of the whole tenant, false to disable it. Only for admins,
    /// and only for skills of the tenant.
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
