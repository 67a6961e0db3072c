//! Describes assistants: what a session is started with beside its model, and how it narrows what the session's
//! owner may use.

use std::collections::BTreeSet;
use std::sync::Arc;

use sepal_policy::{self as policy, Effect as PolicyEffect, Rule, Scope};
use serde::{Deserialize, Serialize};

use super::model::ModelChoice;
use super::refusal::Refusal;
use crate::domain::{AssistantId, Attachment, Code, Effort, MicroUsd, ToolRef};

/// The longest name, in bytes.
const MAX_NAME: usize = 100;
/// The longest description, in bytes.
const MAX_DESCRIPTION: usize = 1_000;
/// The longest instructions, in bytes.
const MAX_INSTRUCTIONS: usize = 32 * 1024;
/// The most entries of the lists of models, skills, and servers.
const MAX_LISTED: usize = 100;
/// The most tools named for one server.
const MAX_TOOLS: usize = 500;
/// The longest name of a model, server, tool or skill, in bytes.
const MAX_WORD: usize = 256;
/// The most rules.
const MAX_RULES: usize = 50;
/// The most opening prompts.
const MAX_OPENINGS: usize = 8;
/// The longest opening prompt, in bytes.
const MAX_OPENING: usize = 4_000;
/// The most files.
const MAX_FILES: usize = 5;
/// The most bytes of all files together.
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;

/// One version of an assistant. It only narrows what the owner of a session may use.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AssistantDefinition {
    pub name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Added to the system prompt.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub instructions: String,
    /// The models that its sessions may use; the first is their default. Empty = any model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<AllowedModel>,
    /// The effort that its sessions begin with; `None` = the model's configured default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// The tools that its sessions may use; `None` = those of the session's owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<ToolSelection>,
    /// The names of the skills that its sessions may use; `None` = those of the session's owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skills: Option<Vec<String>>,
    /// Rules that ask or deny, whatever other rules allow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
    /// The budget of each session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<AssistantBudget>,
    /// Messages that an empty session offers to begin with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub openings: Vec<String>,
    /// Files that come with the first message of each session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<Attachment>,
}

/// A model that sessions of an assistant may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllowedModel {
    pub provider: String,
    /// The model's id at that provider.
    pub model: String,
}

/// A selection of tools, by server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ToolSelection(pub Vec<ServerTools>);

/// The selected tools of one server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerTools {
    pub server: String,
    /// The tools by the server's own names; `None` = all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
}

/// The amount that each session of an assistant may spend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssistantBudget {
    pub limit: MicroUsd,
    /// The percentage of the limit at which people are warned.
    pub warn_percent: u8,
    /// True if spending beyond the limit is refused; otherwise people are only warned.
    pub is_hard: bool,
}

/// What the owner of a session gave up beyond what its assistant narrows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Narrowing {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<ToolSelection>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skills: Option<Vec<String>>,
}

/// An assistant as a session uses it: one version, kept in the journal, so that a later change, or the end, of the
/// assistant does not change what the session was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionAssistant {
    pub id: AssistantId,
    /// The number of the version, from 1.
    pub version: u64,
    pub definition: Arc<AssistantDefinition>,
    #[serde(default)]
    pub narrowed: Narrowing,
}

impl ToolSelection {
    /// Returns true if it selects tools of the server.
    pub fn has_server(&self, server: &str) -> bool {
        self.0.iter().any(|it| it.server == server)
    }

    /// Returns true if it selects the tool.
    pub fn has(&self, at: &ToolRef) -> bool {
        let mut of_server = self.0.iter().filter(|it| it.server == at.server);
        of_server.any(|it| match &it.tools {
            None => true,
            Some(tools) => tools.contains(&at.tool),
        })
    }

    /// Returns the first part of `other` that this selection does not have.
    fn lacks(&self, other: &Self) -> Option<String> {
        for wanted in &other.0 {
            let server = &wanted.server;
            let all = || {
                self.0
                    .iter()
                    .any(|it| it.server == *server && it.tools.is_none())
            };
            match &wanted.tools {
                None if !all() => return Some(format!("all tools of `{server}`")),
                None => {}
                Some(tools) => {
                    let missing = tools.iter().find(|tool| {
                        let (server, tool) = (server.clone(), (*tool).clone());
                        !self.has(&ToolRef { server, tool })
                    });
                    if let Some(tool) = missing {
                        return Some(format!("`{tool}` of `{server}`"));
                    }
                }
            }
        }
        None
    }

    fn check(&self) -> Result<(), Refusal> {
        check_count("tools", self.0.len(), MAX_LISTED)?;
        for it in &self.0 {
            check_word("tools", &it.server)?;
            for tool in it.tools.iter().flatten() {
                check_word("tools", tool)?;
            }
            let tools = it.tools.as_ref().map_or(0, Vec::len);
            check_count("tools", tools, MAX_TOOLS)?;
        }
        Ok(())
    }
}

impl Narrowing {
    /// Checks that it gives up something, and asks for nothing that the assistant does not have.
    pub fn check(&self, assistant: &AssistantDefinition) -> Result<(), Refusal> {
        if let Some(tools) = &self.tools {
            tools.check()?;
            let missing = assistant.tools.as_ref().and_then(|has| has.lacks(tools));
            if let Some(missing) = missing {
                let text = format!("the assistant `{}` does not have {missing}", assistant.name);
                return Err(Refusal::of_field(Code::NotAllowed, "tools", text));
            }
        }
        if let Some(skills) = &self.skills {
            check_skills(skills)?;
            let has = assistant.skills.as_ref();
            let missing = skills
                .iter()
                .find(|skill| has.is_some_and(|has| !has.contains(skill)));
            if let Some(missing) = missing {
                let text = format!(
                    "the assistant `{}` does not have the skill `{missing}`",
                    assistant.name
                );
                return Err(Refusal::of_field(Code::NotAllowed, "skills", text));
            }
        }
        Ok(())
    }
}

impl SessionAssistant {
    fn selections(&self) -> impl Iterator<Item = &ToolSelection> {
        let own = self.definition.tools.iter();
        own.chain(&self.narrowed.tools)
    }

    /// Returns true if the session may use fewer tools than its owner.
    pub fn narrows_tools(&self) -> bool {
        self.selections().next().is_some()
    }

    /// Returns true if the session may use tools of the server.
    pub fn allows_server(&self, server: &str) -> bool {
        self.selections().all(|it| it.has_server(server))
    }

    /// Returns true if the session may use the tool.
    pub fn allows_tool(&self, at: &ToolRef) -> bool {
        self.selections().all(|it| it.has(at))
    }

    /// Returns true if the session may use the skill.
    pub fn allows_skill(&self, name: &str) -> bool {
        let mut lists = self.definition.skills.iter().chain(&self.narrowed.skills);
        lists.all(|list| list.iter().any(|it| it == name))
    }
}

impl AssistantDefinition {
    /// Returns the model that its sessions begin with; `None` = the owner's default.
    ///
    /// If the first one is not open to the person, the first that is; if none is, the first one all the same, which
    /// is refused where it is chosen.
    pub fn default_model(&self, is_open: impl Fn(&ModelChoice) -> bool) -> Option<ModelChoice> {
        let models = self.models.iter().map(|model| ModelChoice {
            effort: self.effort,
            ..ModelChoice::new(model.provider.as_str(), model.model.as_str())
        });
        models
            .clone()
            .find(is_open)
            .or_else(|| models.clone().next())
    }

    /// Returns true if its sessions may use the model.
    pub fn allows_model(&self, provider: &str, model: &str) -> bool {
        let mut models = self.models.iter();
        self.models.is_empty() || models.any(|it| it.provider == provider && it.model == model)
    }

    /// Refuses a model that its sessions may not use.
    pub fn check_model(&self, choice: &ModelChoice) -> Result<(), Refusal> {
        if self.allows_model(&choice.provider, &choice.model) {
            return Ok(());
        }
        let allowed = self.models.iter().map(|it| format!("`{}`", it.model));
        let allowed: Vec<String> = allowed.collect();
        let text = format!(
            "the assistant `{}` may not use the model `{}`, only {}",
            self.name,
            choice.model,
            allowed.join(", ")
        );
        Err(Refusal::of_field(Code::NotAllowed, "model", text))
    }

    /// Checks sizes and counts, and that the rules only ask or deny.
    pub fn check(&self) -> Result<(), Refusal> {
        if self.name.trim().is_empty() {
            let text = "`name` is missing";
            return Err(Refusal::of_field(Code::InvalidArguments, "name", text));
        }
        check_size("name", &self.name, MAX_NAME)?;
        check_size("description", &self.description, MAX_DESCRIPTION)?;
        check_size("instructions", &self.instructions, MAX_INSTRUCTIONS)?;
        check_count("models", self.models.len(), MAX_LISTED)?;
        for it in &self.models {
            check_word("models", &it.provider)?;
            check_word("models", &it.model)?;
        }
        if let Some(tools) = &self.tools {
            tools.check()?;
        }
        if let Some(skills) = &self.skills {
            check_skills(skills)?;
        }
        self.check_rules()?;
        if self.budget.is_some_and(|it| it.warn_percent > 100) {
            let text = "`warnPercent` is 0 to 100";
            return Err(Refusal::of_field(Code::InvalidArguments, "budget", text));
        }
        check_count("openings", self.openings.len(), MAX_OPENINGS)?;
        for opening in &self.openings {
            if opening.trim().is_empty() {
                let text = "an opening prompt is empty";
                return Err(Refusal::of_field(Code::InvalidArguments, "openings", text));
            }
            check_size("openings", opening, MAX_OPENING)?;
        }
        check_count("files", self.files.len(), MAX_FILES)?;
        let bytes: u64 = self.files.iter().map(|file| file.bytes).sum();
        if bytes > MAX_FILE_BYTES {
            let most = MAX_FILE_BYTES / (1024 * 1024);
            let text = format!("the files of an assistant may have {most} MiB together");
            return Err(Refusal::of_field(Code::TooLarge, "files", text));
        }
        let mut seen = BTreeSet::new();
        if self.files.iter().any(|file| !seen.insert(&file.id)) {
            let text = "two files have the same content";
            return Err(Refusal::of_field(Code::InvalidArguments, "files", text));
        }
        Ok(())
    }

    fn check_rules(&self) -> Result<(), Refusal> {
        check_count("rules", self.rules.len(), MAX_RULES)?;
        let wrong = |text: String| Refusal::of_field(Code::InvalidArguments, "rules", text);
        for rule in &self.rules {
            if rule.effect == PolicyEffect::Allow || rule.network.is_some() {
                let text = "a rule of an assistant asks or denies; it cannot allow anything";
                return Err(wrong(text.to_owned()));
            }
        }
        let rules = self.rules.iter().map(in_force).collect();
        policy::Rules::compile(rules).map_err(|problems| {
            let words: Vec<String> = problems.iter().map(ToString::to_string).collect();
            wrong(words.join("; "))
        })?;
        Ok(())
    }
}

/// The form in which a rule of an assistant decides: it holds whatever nearer rules allow, and never allows.
pub(super) fn in_force(rule: &Rule) -> Rule {
    let mut rule = rule.clone();
    if rule.effect == PolicyEffect::Allow {
        rule.effect = PolicyEffect::Ask;
    }
    rule.scope = Scope::Session;
    rule.binding = rule.effect == PolicyEffect::Ask;
    rule.reviewed = false;
    rule.network = None;
    rule
}

fn check_skills(skills: &[String]) -> Result<(), Refusal> {
    check_count("skills", skills.len(), MAX_LISTED)?;
    skills.iter().try_for_each(|it| check_word("skills", it))
}

fn check_word(field: &'static str, word: &str) -> Result<(), Refusal> {
    if word.is_empty() {
        let text = format!("a name in `{field}` is empty");
        return Err(Refusal::of_field(Code::InvalidArguments, field, text));
    }
    check_size(field, word, MAX_WORD)
}

fn check_size(field: &'static str, text: &str, most: usize) -> Result<(), Refusal> {
    if text.len() <= most {
        return Ok(());
    }
    let text = format!("`{field}` of an assistant may have {most} bytes");
    Err(Refusal::of_field(Code::TooLarge, field, text))
}

fn check_count(field: &'static str, count: usize, most: usize) -> Result<(), Refusal> {
    if count <= most {
        return Ok(());
    }
    let text = format!("`{field}` of an assistant may have {most} entries");
    Err(Refusal::of_field(Code::TooLarge, field, text))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sepal_policy::{Effect, Rule, Scope};

    use super::{
        AllowedModel, AssistantDefinition, Narrowing, ServerTools, SessionAssistant, ToolSelection,
    };
    use crate::domain::{AssistantId, Code, ToolRef};
    use crate::session::ModelChoice;

    fn selection(parts: &[(&str, Option<&[&str]>)]) -> ToolSelection {
        let parts = parts.iter().map(|(server, tools)| ServerTools {
            server: (*server).to_owned(),
            tools: tools.map(|tools| tools.iter().map(|it| (*it).to_owned()).collect()),
        });
        ToolSelection(parts.collect())
    }

    fn at(server: &str, tool: &str) -> ToolRef {
        ToolRef {
            server: server.to_owned(),
            tool: tool.to_owned(),
        }
    }

    fn definition() -> AssistantDefinition {
        AssistantDefinition {
            name: "Helper".to_owned(),
            ..AssistantDefinition::default()
        }
    }

    #[test]
    fn a_session_has_the_tools_that_both_its_assistant_and_its_owner_left_it() {
        let assistant = SessionAssistant {
            id: AssistantId::from_bits(1),
            version: 1,
            definition: Arc::new(AssistantDefinition {
                tools: Some(selection(&[("a", None), ("b", Some(&["x", "y"]))])),
                skills: Some(vec!["s".to_owned(), "t".to_owned()]),
                ..definition()
            }),
            // Names what the assistant does not have, as if no check had refused it.
            narrowed: Narrowing {
                tools: Some(selection(&[("b", Some(&["y", "z"])), ("c", None)])),
                skills: Some(vec!["t".to_owned(), "u".to_owned()]),
            },
        };
        let allowed = ["a/1", "b/x", "b/y", "b/z", "c/1"].map(|text| {
            let (server, tool) = text.split_once('/').unwrap();
            assistant.allows_tool(&at(server, tool))
        });
        assert_eq!(allowed, [false, false, true, false, false]);
        let servers = ["a", "b", "c"].map(|it| assistant.allows_server(it));
        assert_eq!(servers, [false, true, false]);
        let skills = ["s", "t", "u"].map(|it| assistant.allows_skill(it));
        assert_eq!(skills, [false, true, false]);
    }

    #[test]
    fn what_the_assistant_does_not_have_cannot_be_asked_for() {
        let assistant = AssistantDefinition {
            tools: Some(selection(&[("a", Some(&["x"]))])),
            skills: Some(vec!["s".to_owned()]),
            ..definition()
        };
        let tools = |tools| Narrowing {
            tools: Some(tools),
            skills: None,
        };
        for (narrowing, is_fine) in [
            (tools(selection(&[("a", Some(&["x"]))])), true),
            (tools(selection(&[])), true),
            (tools(selection(&[("a", Some(&["x", "y"]))])), false),
            (tools(selection(&[("a", None)])), false),
            (tools(selection(&[("b", Some(&["x"]))])), false),
        ] {
            let checked = narrowing.check(&assistant);
            assert_eq!(checked.is_ok(), is_fine, "{narrowing:?}");
            assert!(checked.is_ok() || checked.is_err_and(|it| it.field == Some("tools")));
        }
        let skills = Narrowing {
            tools: None,
            skills: Some(vec!["other".to_owned()]),
        };
        assert_eq!(skills.check(&assistant).unwrap_err().field, Some("skills"));
    }

    #[test]
    fn only_listed_models_are_allowed() {
        let mut assistant = definition();
        let choice = ModelChoice::new("p", "big");
        assert_eq!(assistant.check_model(&choice), Ok(()));
        assistant.models.push(AllowedModel {
            provider: "p".to_owned(),
            model: "small".to_owned(),
        });
        let refusal = assistant.check_model(&choice).unwrap_err();
        assert_eq!(refusal.code, Code::NotAllowed);
        assert!(refusal.message.contains("only `small`"), "{refusal}");
        let elsewhere = ModelChoice::new("q", "small");
        assert!(assistant.check_model(&elsewhere).is_err());
        let allowed = ModelChoice::new("p", "small");
        assert_eq!(assistant.check_model(&allowed), Ok(()));
    }

    #[test]
    fn a_rule_that_allows_is_refused_and_decides_as_one_that_asks() {
        let mut assistant = definition();
        let allow = Rule::new("r", Effect::Allow, Scope::Tenant);
        let in_force = super::in_force(&allow);
        assert_eq!(
            (in_force.effect, in_force.scope, in_force.binding),
            (Effect::Ask, Scope::Session, true)
        );
        assistant.rules.push(allow);
        assert_eq!(assistant.check().unwrap_err().field, Some("rules"));
    }

    #[test]
    fn sizes_are_limited() {
        assert_eq!(definition().check(), Ok(()));
        let nameless = AssistantDefinition::default();
        assert_eq!(nameless.check().unwrap_err().field, Some("name"));
        let long = AssistantDefinition {
            instructions: "x".repeat(32 * 1024 + 1),
            ..definition()
        };
        let refusal = long.check().unwrap_err();
        assert_eq!(
            (refusal.code, refusal.field),
            (Code::TooLarge, Some("instructions"))
        );
        let many = AssistantDefinition {
            openings: vec!["Hello".to_owned(); 9],
            ..definition()
        };
        assert_eq!(many.check().unwrap_err().field, Some("openings"));
    }
}
