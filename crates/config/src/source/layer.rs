//! Merges the sources and builds the settings, or reports all problems.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::file;
use super::file::Entry;
use crate::check::{Raw, check};
use crate::family::{self, Member, Members, contexts, oidc, providers, rules, servers};
use crate::problem::did_you_mean;
use crate::table::{
    CONTEXTS, Definition, Fallback, Family, Kind, LATER, OIDC, PROVIDERS, RULES, SERVERS, SETTINGS,
    find,
};
use crate::value::{ResolvedValue, Values, checked, variable};
use crate::{Problem, Problems, Settings, Source, Sources, derive, docs};

/// The result of loading.
#[derive(Debug, Clone)]
pub struct LoadedSettings {
    pub settings: Settings,
    /// Notices for the operator, logged at start.
    pub notices: Vec<String>,
    /// Every key with its value and source, one per line, for `sepal config show`; secrets are not shown.
    pub shown: String,
}

/// Loads the settings; the error holds all problems, not only the first.
pub fn load(sources: &Sources) -> Result<LoadedSettings, Problems> {
    let mut problems = Vec::new();
    let filed = sources.file.as_ref();
    let filed = filed.map(|file| file::read(file, &sources.env, &mut problems));
    let (entries, members) = filed.unwrap_or_default();
    refuse_variables(&sources.env, &mut problems);
    refuse_flags(sources, &mut problems);
    let mut values = Values::new();
    for definition in SETTINGS {
        if let Some(resolved) = resolve(definition, sources, &entries, &mut problems) {
            values.insert(definition.key, resolved);
        }
    }
    derive::fill(&mut values, sources);
    let (of_servers, others): (Vec<_>, Vec<_>) = members
        .into_iter()
        .partition(|member: &Member| member.is_of(&SERVERS));
    let (of_rules, others): (Vec<_>, Vec<_>) = others
        .into_iter()
        .partition(|member: &Member| member.is_of(&RULES));
    let (of_oidc, others): (Vec<_>, Vec<_>) = others
        .into_iter()
        .partition(|member: &Member| member.is_of(&OIDC));
    let (of_contexts, of_providers) = others
        .into_iter()
        .partition(|member| member.is_of(&CONTEXTS));
    let (providers, notices) = providers::fill(&mut values, of_providers, sources, &mut problems);
    let servers = servers::read(of_servers, sources, &mut problems);
    let contexts = contexts::read(of_contexts, &mut problems);
    let rules = rules::read(of_rules, &mut problems);
    let oidc = oidc::read(of_oidc, &values, sources, &mut problems);
    derive::cross_check(&values, &mut problems);
    if !problems.is_empty() {
        return Err(Problems(problems));
    }
    let families = [
        (&PROVIDERS, &providers),
        (&CONTEXTS, &contexts),
        (&SERVERS, &servers),
        (&OIDC, &oidc),
        (&RULES, &rules),
    ];
    match Settings::from_tree(tree(&values, &families)) {
        Ok(settings) => Ok(LoadedSettings {
            settings,
            notices,
            shown: docs::show(&values, &families),
        }),
        Err(error) => Err(Problems(vec![Problem {
            path: "settings".to_owned(),
            source: None,
            what: format!("table and structs disagree: {error}"),
            accepted: "nothing; please report this".to_owned(),
        }])),
    }
}

/// The value of one key: flag, else environment, else file, else default. `None` after a problem.
fn resolve(
    definition: &'static Definition,
    sources: &Sources,
    entries: &[Entry],
    problems: &mut Vec<Problem>,
) -> Option<ResolvedValue> {
    let flag = sources.flags.iter().find(|flag| flag.key == definition.key);
    let given = flag
        .map(|flag| (Raw::Text(flag.value.clone()), Source::Flag(flag.name)))
        .or_else(|| variable(definition.env.iter().copied(), sources));
    // The file's value is checked even if another source overrides it.
    let filed = entries.iter().find(|entry| entry.key == definition.key);
    let filed = filed.map(|entry| checked(definition, &entry.raw, &entry.source, problems));
    if let Some((raw, source)) = given {
        return checked(definition, &raw, &source, problems);
    }
    filed.unwrap_or_else(|| fallback(definition))
}

fn fallback(definition: &Definition) -> Option<ResolvedValue> {
    let value = match (definition.fallback, definition.kind) {
        (Fallback::Is(text), kind) => check(kind, &Raw::Text(text.to_owned())).ok()?,
        (Fallback::Words(_), Kind::Origins | Kind::Networks | Kind::PublicKeys | Kind::Texts) => {
            Value::Array(Vec::new())
        }
        (Fallback::Words(_), _) => Value::Null,
    };
    Some(ResolvedValue {
        value,
        source: Source::Default,
    })
}

/// Refuses unknown variables that start with our prefix, and variables of later versions.
fn refuse_variables(env: &BTreeMap<String, String>, problems: &mut Vec<Problem>) {
    let known = || SETTINGS.iter().flat_map(|definition| definition.env);
    for (name, value) in env {
        let is_known = known().any(|known| known == name);
        let is_of_family = servers::is_variable(name) || oidc::is_variable(name);
        if is_known || value.trim().is_empty() || is_of_family {
            continue;
        }
        let is_later = LATER.iter().flat_map(|later| later.env).any(|later| {
            let family = later.strip_suffix('*');
            family.map_or(*later == name, |family| name.starts_with(family))
        });
        let (what, accepted) = if is_later {
            ("this setting is not in this version yet", None)
        } else if name.starts_with("SPL_") {
            let of_oidc = OIDC.env.iter().map(|(name, _)| name);
            let all = known().chain(servers::FIRST_NAMES).chain(of_oidc);
            let hint = did_you_mean(name, all.copied());
            ("unknown variable", hint)
        } else {
            continue;
        };
        problems.push(Problem {
            path: name.clone(),
            source: Some(Source::Env(name.clone())),
            what: what.to_owned(),
            accepted: accepted.unwrap_or_else(|| "leave it out".to_owned()),
        });
    }
}

/// Refuses flags with an unknown key, in case a key was renamed.
fn refuse_flags(sources: &Sources, problems: &mut Vec<Problem>) {
    for flag in sources.flags.iter().filter(|flag| find(flag.key).is_none()) {
        problems.push(Problem {
            path: flag.key.to_owned(),
            source: Some(Source::Flag(flag.name)),
            what: "unknown setting".to_owned(),
            accepted: "the settings of docs/configuration.md".to_owned(),
        });
    }
}

/// Settings that are only checked, or whose values are in the entries of the families.
const NOT_IN_TREE: &[&str] = &[
    "agent.llm.api",
    "agent.llm.cache_ttl",
    "agent.llm.compaction",
    "agent.llm.compaction_threshold",
    "agent.llm.api_key",
    "agent.llm.api_keys",
    "agent.llm.base_url",
    "agent.llm.context_window",
    "agent.llm.fallback",
];

/// The values as one nested object.
fn tree(values: &Values, families: &[(&Family, &Members)]) -> Value {
    let mut root = Value::Object(Map::new());
    for (key, resolved) in values.iter().filter(|(key, _)| !NOT_IN_TREE.contains(key)) {
        put(&mut root, key, resolved.value.clone());
    }
    for (family, members) in families {
        put(&mut root, family.key, family::tree(members));
    }
    root
}

fn put(root: &mut Value, key: &str, value: Value) {
    let mut place = root;
    for segment in key.split('.') {
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        place = &mut place[segment];
    }
    *place = value;
}
