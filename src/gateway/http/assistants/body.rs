//! The wire form of assistants.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sepal_policy::{Approvers, Effect, Rule, Scope};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::agent::{
    AccessEntry, AccessWhom, AssistantDraft, AssistantFile, AssistantScope, AssistantView,
    NamedAccess,
};
use crate::domain::{Attachment, BlobId, Code, Effort, MicroUsd, Timestamp, UserId};
use crate::gateway::error::ApiError;
use crate::gateway::extract::required;
use crate::gateway::http::rules::{self, ConditionsBody};
use crate::gateway::paging::Page;
use crate::gateway::word_list;
use crate::session::{
    AllowedModel, AssistantBudget, AssistantDefinition, ServerTools, ToolSelection,
};
use crate::store::records::{AssistantLevel, AssistantVersion};

/// The default percentage of a budget at which people are warned.
const WARN_PERCENT: u8 = 80;
/// The most conditions that except a call from a rule.
const MAX_EXCEPT: usize = 50;

/// A model that sessions of an assistant may use.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub(super) struct AllowedModelBody {
    /// The provider's name.
    #[schema(max_length = 256)]
    provider: String,
    /// The model's id at that provider.
    #[schema(max_length = 256)]
    model: String,
}

/// The selected tools of one MCP server.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub(in crate::gateway::http) struct ServerToolsBody {
    /// The server's name.
    #[schema(max_length = 256)]
    server: String,
    /// The tools, by the server's own names; if absent, all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_items = 500)]
    tools: Option<Vec<String>>,
}

impl ServerToolsBody {
    /// Returns the selection that a list makes.
    pub(in crate::gateway::http) fn selection(list: Vec<Self>) -> ToolSelection {
        let parts = list.into_iter().map(|it| ServerTools {
            server: it.server,
            tools: it.tools,
        });
        ToolSelection(parts.collect())
    }

    fn list(selection: &ToolSelection) -> Vec<Self> {
        let parts = selection.0.iter().map(|it| Self {
            server: it.server.clone(),
            tools: it.tools.clone(),
        });
        parts.collect()
    }
}

/// A rule of an assistant. It asks or denies, whatever other rules allow.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AssistantRuleBody {
    /// The effect on the calls that the rule decides: `ask` or `deny`.
    #[schema(pattern = "^(ask|deny)$")]
    effect: String,
    /// The rule's name for people; if absent, it is derived from the rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 200)]
    name: Option<String>,
    /// The MCP server's name; `*` matches any text. If absent, any server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 200)]
    server: Option<String>,
    /// The tool's name at its server; `*` matches any text. If absent, any tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 200)]
    tool: Option<String>,
    /// The conditions on a call; if absent, the rule decides any call of the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    when: Option<ConditionsBody>,
    /// The exceptions: calls that the rule does not decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_items = 50)]
    except: Option<Vec<ConditionsBody>>,
    /// The people who must approve: `owner` (of the session; the default), `somebody_else` than the owner, `two`
    /// people, or somebody with at least the given role. Only for `ask`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^(owner|somebody_else|two|role:(member|admin|owner))$")]
    approvers: Option<String>,
    /// True if the approval needs a fresh gesture, which proves presence; false if absent. Only for `ask`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fresh_gesture: Option<bool>,
}

impl AssistantRuleBody {
    fn rule(self) -> Result<Rule, ApiError> {
        let effect = Effect::parse(&self.effect).filter(|effect| *effect != Effect::Allow);
        let effect = effect.ok_or_else(|| wrong("rules", "`effect` is `ask` or `deny`"))?;
        let id = format!("rul_{:032x}", rand::random::<u128>());
        let mut rule = Rule::new(id, effect, Scope::Session);
        if let Some(server) = &self.server {
            rule.server = rules::glob("rules", server)?;
        }
        if let Some(tool) = &self.tool {
            rule.tool = rules::glob("rules", tool)?;
        }
        rule.when = self.when.unwrap_or_default().conditions("rules")?;
        let except = self.except.unwrap_or_default();
        if except.len() > MAX_EXCEPT {
            return Err(wrong("rules", "`except` may have 50 parts"));
        }
        let except = except.into_iter().map(|it| it.conditions("rules"));
        rule.except = except.collect::<Result<_, _>>()?;
        rule.approvers = Approvers {
            who: rules::approver(self.approvers.as_deref())?,
            fresh_gesture: self.fresh_gesture.unwrap_or(false),
        };
        let name = self.name.filter(|name| !name.trim().is_empty());
        rule.name = Some(name.unwrap_or_else(|| sepal_policy::subject(&rule)));
        Ok(rule)
    }

    fn of(rule: &Rule) -> Self {
        let except: Vec<ConditionsBody> = rule.except.iter().map(ConditionsBody::of).collect();
        let word = rule.approvers.who.to_string();
        Self {
            effect: rule.effect.as_str().to_owned(),
            name: rule.name.clone(),
            server: Some(rule.server.as_str().to_owned()),
            tool: Some(rule.tool.as_str().to_owned()),
            when: (!rule.when.is_empty()).then(|| ConditionsBody::of(&rule.when)),
            except: (!except.is_empty()).then_some(except),
            approvers: (word != "owner").then_some(word),
            fresh_gesture: rule.approvers.fresh_gesture.then_some(true),
        }
    }
}

/// The amount that each session of an assistant may spend.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AssistantBudgetBody {
    /// The limit in US dollars.
    #[schema(minimum = 0, maximum = 1_000_000)]
    limit_usd: f64,
    /// The percentage of the limit at which people are warned; 80 if absent.
    #[schema(minimum = 0, maximum = 100)]
    warn_percent: Option<u8>,
    /// True if spending beyond the limit is refused, false if people are only warned; true if absent.
    is_hard: Option<bool>,
}

/// A file of an assistant: one that an earlier version has, by its `id`, or a new one.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AssistantFileBody {
    /// The SHA-256 of the content of a file that an earlier version of this assistant has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[0-9a-f]{64}$")]
    id: Option<String>,
    /// The name of a new file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 1024)]
    name: Option<String>,
    /// The content of a new file, in base64: a PNG, JPEG, GIF or WebP image, a PDF, or UTF-8 text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    data: Option<String>,
}

impl AssistantFileBody {
    fn file(self) -> Result<AssistantFile, ApiError> {
        let wrong = |text: &str| wrong("files", text);
        if let Some(data) = self.data {
            let bytes = STANDARD.decode(data.as_bytes());
            return Ok(AssistantFile::New {
                name: self.name.unwrap_or_default(),
                bytes: bytes.map_err(|_| wrong("`data` is not base64"))?,
            });
        }
        let id = self.id.as_deref().and_then(BlobId::parse);
        let id = id.ok_or_else(|| wrong("a file has its `id`, or `name` and `data`"))?;
        Ok(AssistantFile::Known(id))
    }

    /// A file with its content, as an export has it.
    pub(super) fn whole(file: &Attachment, content: &[u8]) -> Self {
        Self {
            id: None,
            name: Some(file.name.clone()),
            data: Some(STANDARD.encode(content)),
        }
    }
}

/// An assistant as it is written, and as it is exported.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct AssistantBody {
    /// The format of an export: `sepal-assistant/1`. May be absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^sepal-assistant/1$")]
    format: Option<String>,
    /// The assistant's name, at most 100 bytes.
    #[schema(
        min_length = 1,
        max_length = 100,
        pattern = r"\S",
        required,
        nullable = false
    )]
    name: Option<String>,
    /// The purpose of the assistant, at most 1,000 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 1000)]
    description: Option<String>,
    /// Text for the model, added to the system prompt, at most 32 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 32_768)]
    instructions: Option<String>,
    /// The models that its sessions may use; the first is their default. If absent or empty, any model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_items = 100)]
    models: Option<Vec<AllowedModelBody>>,
    /// The reasoning effort that its sessions begin with: `off`, `minimal`, `low`, `medium`, `high`, `max`, or a
    /// number of tokens; if absent, the effort that the settings define for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    effort: Option<Effort>,
    /// The tools that its sessions may use, of those that the person may use; if absent, all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_items = 100)]
    tools: Option<Vec<ServerToolsBody>>,
    /// The names of the skills that its sessions may use, of those that the person may use; if absent, all of
    /// them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_items = 100)]
    skills: Option<Vec<String>>,
    /// Rules for the calls of its sessions. They only ask or deny.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_items = 50)]
    rules: Option<Vec<AssistantRuleBody>>,
    /// The budget of each session; if absent, it has none of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    budget: Option<AssistantBudgetBody>,
    /// Messages that an empty session offers to begin with, each at most 4,000 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_items = 8)]
    openings: Option<Vec<String>>,
    /// Files that come with the first message of each session, at most 4 MiB together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_items = 5)]
    files: Option<Vec<AssistantFileBody>>,
}

impl AssistantBody {
    pub(super) fn draft(self) -> Result<AssistantDraft, ApiError> {
        let rules = self.rules.unwrap_or_default().into_iter();
        let files = self.files.unwrap_or_default().into_iter();
        let models = self.models.unwrap_or_default().into_iter();
        let models = models.map(|it| AllowedModel {
            provider: it.provider,
            model: it.model,
        });
        let budget = self.budget.map(|it| {
            if !(0.0..=1_000_000.0).contains(&it.limit_usd) {
                return Err(wrong("budget", "a budget has 0 to 1000000 dollars"));
            }
            Ok(AssistantBudget {
                limit: MicroUsd::from_usd(it.limit_usd),
                warn_percent: it.warn_percent.unwrap_or(WARN_PERCENT),
                is_hard: it.is_hard.unwrap_or(true),
            })
        });
        Ok(AssistantDraft {
            definition: AssistantDefinition {
                name: required("name", self.name)?.trim().to_owned(),
                description: self.description.unwrap_or_default(),
                instructions: self.instructions.unwrap_or_default(),
                models: models.collect(),
                effort: self.effort,
                tools: self.tools.map(ServerToolsBody::selection),
                skills: self.skills,
                rules: rules
                    .map(AssistantRuleBody::rule)
                    .collect::<Result<_, _>>()?,
                budget: budget.transpose()?,
                openings: self.openings.unwrap_or_default(),
                files: Vec::new(),
            },
            files: files
                .map(AssistantFileBody::file)
                .collect::<Result<_, _>>()?,
        })
    }

    /// The export of a version, with these files.
    pub(super) fn export(definition: &AssistantDefinition, files: Vec<AssistantFileBody>) -> Self {
        let facts = AssistantDefinitionItem::of(definition);
        let some = |text: String| (!text.is_empty()).then_some(text);
        Self {
            format: Some("sepal-assistant/1".to_owned()),
            name: Some(definition.name.clone()),
            description: some(definition.description.clone()),
            instructions: some(facts.instructions),
            models: (!facts.models.is_empty()).then_some(facts.models),
            effort: definition.effort,
            tools: facts.tools,
            skills: facts.skills,
            rules: (!facts.rules.is_empty()).then_some(facts.rules),
            budget: facts.budget,
            openings: (!facts.openings.is_empty()).then_some(facts.openings),
            files: (!files.is_empty()).then_some(files),
        }
    }
}

/// A file of an assistant.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct AssistantFileItem {
    /// The SHA-256 of the content, in hex.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    id: String,
    /// The file name for people.
    name: String,
    /// The media type, determined from the bytes.
    media_type: &'static str,
    /// The size of the stored content in bytes.
    bytes: u64,
}

/// What a version of an assistant says beside its name and description.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AssistantDefinitionItem {
    /// Text for the model, added to the system prompt.
    instructions: String,
    /// The models that its sessions may use; the first is their default. Empty = any model.
    models: Vec<AllowedModelBody>,
    /// The reasoning effort that its sessions begin with; absent = what the settings say of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    effort: Option<Effort>,
    /// The tools that its sessions may use; absent = all that the person may use.
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Vec<ServerToolsBody>>,
    /// The names of the skills that its sessions may use; absent = all that the person may use.
    #[serde(skip_serializing_if = "Option::is_none")]
    skills: Option<Vec<String>>,
    /// Rules for the calls of its sessions.
    rules: Vec<AssistantRuleBody>,
    /// The budget of each session; absent = none.
    #[serde(skip_serializing_if = "Option::is_none")]
    budget: Option<AssistantBudgetBody>,
    /// Messages that an empty session offers to begin with.
    openings: Vec<String>,
    /// Files that come with the first message of each session.
    files: Vec<AssistantFileItem>,
}

impl AssistantDefinitionItem {
    pub(super) fn of(definition: &AssistantDefinition) -> Self {
        let files = definition.files.iter().map(|file| AssistantFileItem {
            id: file.id.to_string(),
            name: file.name.clone(),
            media_type: file.media_type.as_str(),
            bytes: file.bytes,
        });
        let models = definition.models.iter().map(|it| AllowedModelBody {
            provider: it.provider.clone(),
            model: it.model.clone(),
        });
        Self {
            instructions: definition.instructions.clone(),
            models: models.collect(),
            effort: definition.effort,
            tools: definition.tools.as_ref().map(ServerToolsBody::list),
            skills: definition.skills.clone(),
            rules: definition.rules.iter().map(AssistantRuleBody::of).collect(),
            budget: definition.budget.map(|it| AssistantBudgetBody {
                limit_usd: it.limit.as_usd(),
                warn_percent: Some(it.warn_percent),
                is_hard: Some(it.is_hard),
            }),
            openings: definition.openings.clone(),
            files: files.collect(),
        }
    }
}

/// An assistant.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AssistantItem {
    /// The assistant's id.
    #[schema(pattern = "^ast_[0-9a-f]{32}$")]
    id: String,
    /// The assistant's name.
    name: String,
    /// The purpose of the assistant.
    description: String,
    /// Whose it is: a person's, or the team's.
    #[schema(value_type = word_list::AssistantScope)]
    scope: &'static str,
    /// What the caller may do with it.
    #[schema(value_type = word_list::AssistantLevel)]
    level: &'static str,
    /// The number of the newest version, from 1.
    version: u64,
    /// The user id of whoever made it.
    created_by: String,
    /// When it was made (RFC 3339).
    created_at: String,
    /// The user id of whoever made the newest version.
    updated_by: String,
    /// When the newest version was made (RFC 3339).
    updated_at: String,
}

impl AssistantItem {
    pub(super) fn of(view: AssistantView) -> Self {
        let row = view.row;
        Self {
            id: row.id.to_string(),
            scope: match row.owner {
                Some(_) => "person",
                None => "team",
            },
            level: view.level.as_str(),
            name: row.name,
            description: row.description,
            version: row.version,
            created_by: row.created_by.to_string(),
            created_at: row.created_at.to_rfc3339(),
            updated_by: row.updated_by.to_string(),
            updated_at: row.updated_at.to_rfc3339(),
        }
    }
}

/// Assistants, by name.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AssistantsPage {
    /// The assistants that the caller may see.
    items: Vec<AssistantItem>,
    /// The `cursor` of the next page; `null` on the last page.
    next_cursor: Option<String>,
}

impl AssistantsPage {
    pub(super) fn of(page: Page<AssistantView>) -> Self {
        Self {
            items: page.items.into_iter().map(AssistantItem::of).collect(),
            next_cursor: page.next_cursor,
        }
    }
}

/// An assistant with its newest version.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct AssistantDetails {
    /// The assistant.
    #[serde(flatten)]
    pub(super) item: AssistantItem,
    /// What its newest version says.
    pub(super) definition: AssistantDefinitionItem,
}

/// A version of an assistant.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AssistantVersionItem {
    /// The number of the version, from 1.
    version: u64,
    /// The user id of whoever made it.
    made_by: String,
    /// When it was made (RFC 3339).
    made_at: String,
    /// The earlier version that this one repeats; absent if it repeats none.
    #[serde(skip_serializing_if = "Option::is_none")]
    restored_from: Option<u64>,
}

impl AssistantVersionItem {
    pub(super) fn of(version: &AssistantVersion) -> Self {
        Self {
            version: version.version,
            made_by: version.made_by.to_string(),
            made_at: Timestamp::to_rfc3339(version.made_at),
            restored_from: version.restored_from,
        }
    }
}

/// The versions of an assistant, newest first.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AssistantVersions {
    /// The versions.
    pub(super) items: Vec<AssistantVersionItem>,
    /// The `cursor` of the next page; `null` on the last page.
    pub(super) next_cursor: Option<String>,
}

/// One version of an assistant.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct AssistantVersionDetails {
    /// The number of the version.
    pub(super) version: u64,
    /// The assistant's name in this version.
    pub(super) name: String,
    /// The assistant's purpose in this version.
    pub(super) description: String,
    /// What the version says.
    pub(super) definition: AssistantDefinitionItem,
}

/// Somebody who may do something with an assistant.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct AccessItem {
    /// The user id; `null` for everybody of the team.
    person: Option<String>,
    /// The person's name; `null` for the team.
    name: Option<String>,
    /// What they may do; each level includes those before it.
    #[schema(value_type = word_list::AssistantLevel)]
    level: &'static str,
}

/// Who may do what with an assistant, beside whoever made it and, for the team's, the admins.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct AccessList {
    /// The entries.
    items: Vec<AccessItem>,
}

impl AccessList {
    pub(super) fn of(entries: Vec<NamedAccess>) -> Self {
        let items = entries.into_iter().map(|it| AccessItem {
            person: it.entry.person.map(|id| id.to_string()),
            name: it.name,
            level: it.entry.level.as_str(),
        });
        Self {
            items: items.collect(),
        }
    }
}

/// An entry of the list of who may do what: a `person`, a `name`, or neither for everybody of the team.
#[derive(Debug, Deserialize, ToSchema)]
struct AccessBody {
    /// The user id of a person.
    #[schema(pattern = "^usr_[0-9a-f]{32}$")]
    person: Option<String>,
    /// The name of a person, in the place of `person`.
    #[schema(max_length = 200)]
    name: Option<String>,
    /// What they may do: `see` it, `use` it for sessions, `edit` it, or `own` it.
    #[schema(pattern = "^(see|use|edit|own)$")]
    level: String,
}

/// The new list of who may do what.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct AccessListBody {
    /// The entries, which replace all earlier ones.
    #[schema(max_items = 200, required, nullable = false)]
    entries: Option<Vec<AccessBody>>,
}

impl AccessListBody {
    pub(super) fn entries(self) -> Result<Vec<AccessEntry>, ApiError> {
        let entries = required("entries", self.entries)?;
        let entries = entries.into_iter().map(|it| {
            let level = AssistantLevel::parse(&it.level);
            let level = level
                .ok_or_else(|| wrong("entries", "`level` is `see`, `use`, `edit` or `own`"))?;
            let whom = match (it.person, it.name) {
                (Some(id), _) => {
                    let id = UserId::parse(&id);
                    let nobody = || wrong("entries", "`person` is the id of a person");
                    AccessWhom::Person(id.ok_or_else(nobody)?)
                }
                (None, Some(name)) => AccessWhom::Named(name),
                (None, None) => AccessWhom::Team,
            };
            Ok(AccessEntry { whom, level })
        });
        entries.collect()
    }
}

/// Reads whose a new assistant is.
pub(super) fn scope(text: &str) -> Result<AssistantScope, ApiError> {
    match text {
        "person" => Ok(AssistantScope::Person),
        "team" => Ok(AssistantScope::Team),
        _ => Err(wrong("scope", "`scope` is `person` or `team`")),
    }
}

fn wrong(field: &'static str, text: &str) -> ApiError {
    ApiError::of_field(Code::InvalidArguments, field, text)
}
