//! Gathers `agent.llm.providers`, and chooses the default provider.

use serde_json::{Value, json};

use super::presets::{COMPATIBLE, PRESETS, Preset, preset};
use super::{Fields, Member, Members, compaction, has_problem, of_models, path};
use crate::check::{Raw, is_name};
use crate::problem::did_you_mean;
use crate::settings::{fallback, listed};
use crate::table::{PROVIDERS, find, provider_kind};
use crate::value::{ResolvedValue, Values, checked, variable};
use crate::{Problem, ProviderKind, Source, Sources};

/// The placeholder key of the examples. Loading accepts it, but the provider will refuse it (D13).
const DUMMY_KEY: &str = "dummy-api-key";

const PROVIDER: &str = "agent.llm.provider";
const API_KEY: &str = "agent.llm.api_key";
const BASE_URL: &str = "agent.llm.base_url";
const API: &str = "agent.llm.api";
const CACHE_TTL: &str = "agent.llm.cache_ttl";
const MODEL: &str = "agent.llm.model";
const FALLBACK: &str = "agent.llm.fallback";
const CONTEXT_WINDOW: &str = "agent.llm.context_window";

/// Settings that apply to the default provider's entry: each setting and its field.
const OF_DEFAULT: &[(&str, &str)] = &[
    (API_KEY, "api_key"),
    ("agent.llm.api_keys", "api_keys"),
    (FALLBACK, "fallback"),
    (BASE_URL, "base_url"),
    (API, "api"),
    (CACHE_TTL, "cache_ttl"),
    (compaction::BY, "compaction"),
    (compaction::THRESHOLD, "compaction_threshold"),
    (CONTEXT_WINDOW, "context_window"),
];
/// The vendors in the order in which a key makes one the default.
const VENDORS: [&str; 3] = ["openai", "anthropic", "gemini"];
const OPENAI: &str = "openai";
const SCRIPTED: &str = "scripted";

/// Gathers the entries, chooses the default, and puts the default's address, key and model into `values`.
pub(crate) fn fill(
    values: &mut Values,
    members: Vec<Member>,
    sources: &Sources,
    problems: &mut Vec<Problem>,
) -> (Members, Vec<String>) {
    let mut gathering = Gathering {
        values,
        sources,
        entries: of_file(members, problems),
        problems,
    };
    let default = gathering.choose();
    gathering.take_settings(default.as_deref(), Source::is_file);
    gathering.take_variables(default.as_deref());
    gathering.take_settings(default.as_deref(), Source::is_above_file);
    if let Some(default) = &default {
        gathering.describe(default);
    }
    of_models::check(&gathering.entries, gathering.problems);
    compaction::check(&gathering.entries, default.as_deref(), gathering.problems);
    gathering.check(default.as_deref());
    let notices = gathering.notices(default.as_deref());
    (gathering.entries, notices)
}

/// The entries of the file, with aliases of names resolved (D12) and missing kinds filled in from names.
fn of_file(members: Vec<Member>, problems: &mut Vec<Problem>) -> Members {
    let mut entries = Members::new();
    for member in members {
        let name = provider_kind(&member.name).map_or(member.name.clone(), str::to_owned);
        let mut fields = member.fields;
        let is_wrong = has_problem(&PROVIDERS, &member.name, problems);
        let mut refuse = |what: &str, accepted: &str| {
            problems.push(Problem {
                path: format!("{}.{}", PROVIDERS.key, member.name),
                source: Some(member.source.clone()),
                what: what.to_owned(),
                accepted: accepted.to_owned(),
            });
        };
        if !is_name(&name) {
            refuse(
                "the name cannot be used",
                "1 to 64 letters, digits, `_` or `-`",
            );
            continue;
        }
        if entries.contains_key(&name) {
            refuse(
                "the provider stands twice, in two spellings",
                "only one of them",
            );
            continue;
        }
        if let Some(preset) = preset(&name) {
            preset.fill(&mut fields);
        }
        match provider_kind(&name) {
            Some(kind) if !fields.contains_key("kind") => {
                fields.insert("kind", derived(kind, "as its name says"));
            }
            None if is_wrong => continue,
            None if !fields.contains_key("kind") => {
                refuse("its `kind` is missing", "a `kind` beside its other fields");
                continue;
            }
            Some(_) | None => {}
        }
        entries.insert(name, fields);
    }
    entries
}

/// The error message for an invalid fallback, if there is one.
fn wrong_fallback(given: &ResolvedValue) -> Option<String> {
    let text = given.value.as_str()?;
    let wrong = listed(text).find(|part| fallback(part).is_none())?;
    Some(format!("`{wrong}` names no provider with a model"))
}

fn derived(text: &str, why: &'static str) -> ResolvedValue {
    ResolvedValue {
        value: json!(text),
        source: Source::Derived(why),
    }
}

struct Gathering<'a> {
    values: &'a mut Values,
    sources: &'a Sources,
    entries: Members,
    problems: &'a mut Vec<Problem>,
}

impl Gathering<'_> {
    /// The value of a vendor's own variable for one of our keys.
    fn vendor(&self, key: &str, vendor: &str) -> Option<(Raw, Source)> {
        let names = find(key)?.vendor.iter();
        let names = names.filter(|(of, _)| *of == vendor);
        variable(names.map(|(_, name)| *name), self.sources)
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.values.get(key)?.value.as_str()
    }

    /// The name of the default provider; `None` after a problem with it.
    fn choose(&mut self) -> Option<String> {
        let given = self.values.get(PROVIDER)?;
        if let Some(name) = given.value.as_str() {
            let is_known = provider_kind(name).is_some() || preset(name).is_some();
            if is_known || self.entries.contains_key(name) {
                return Some(name.to_owned());
            }
            let presets = PRESETS.iter().map(|preset| preset.name);
            let known = VENDORS.into_iter().chain(presets);
            let known = known.chain([COMPATIBLE, SCRIPTED]);
            let known = known.chain(self.entries.keys().map(String::as_str));
            let hint = did_you_mean(name, known);
            self.problems.push(Problem {
                path: PROVIDER.to_owned(),
                source: Some(given.source.clone()),
                what: format!(
                    "`{name}` is neither a kind nor an entry of `{}`",
                    PROVIDERS.key
                ),
                accepted: hint.unwrap_or_else(|| {
                    find(PROVIDER).map_or_else(String::new, |it| super::accepts(it.kind))
                }),
            });
            return None;
        }
        let (name, why) = self.suggest();
        self.values.insert(PROVIDER, derived(&name, why));
        Some(name)
    }

    /// The default provider if none is configured, and the reason.
    fn suggest(&self) -> (String, &'static str) {
        let has_key = |vendor: &str| {
            let entry = self.entries.get(vendor);
            entry.is_some_and(|fields| fields.contains_key("api_key"))
                || self.vendor(API_KEY, vendor).is_some()
        };
        let presets = PRESETS.iter().map(|preset| preset.name);
        let mut vendors = VENDORS.into_iter().chain(presets);
        let with_key = vendors.find(|vendor| has_key(vendor));
        let has_url = self.text(BASE_URL).is_some() || self.vendor(BASE_URL, OPENAI).is_some();
        if self.text(API_KEY).is_some() {
            (OPENAI.to_owned(), "chosen because there is a key")
        } else if let Some(vendor) = with_key {
            (vendor.to_owned(), "chosen because there is a key")
        } else if has_url || self.entries.contains_key(COMPATIBLE) {
            (COMPATIBLE.to_owned(), "chosen because there is a base URL")
        } else if let Some(name) = self.entries.keys().next() {
            (name.clone(), "chosen because it is the first entry")
        } else {
            let why = "chosen because no provider has a key";
            (SCRIPTED.to_owned(), why)
        }
    }

    /// The entry of that name; a new entry gets the kind or the preset of that name.
    fn entry(&mut self, name: &str) -> &mut Fields {
        self.entries.entry(name.to_owned()).or_insert_with(|| {
            let mut fields = Fields::new();
            match preset(name) {
                Some(preset) => preset.fill(&mut fields),
                None => drop(fields.insert("kind", derived(name, "as its name says"))),
            }
            fields
        })
    }

    /// Copies the `agent.llm.*` settings to the default's entry, if their source matches `sort`.
    fn take_settings(&mut self, default: Option<&str>, sort: fn(&Source) -> bool) {
        let Some(default) = default else { return };
        self.entry(default);
        for (key, field) in OF_DEFAULT {
            let given = self.values.get(key);
            let given = given.filter(|it| !it.value.is_null() && sort(&it.source));
            if let Some(resolved) = given.cloned() {
                self.entry(default).insert(field, resolved);
            }
        }
    }

    /// Copies every vendor's variables to its entry.
    fn take_variables(&mut self, default: Option<&str>) {
        for vendor in VENDORS {
            let has_key = self.vendor(API_KEY, vendor).is_some();
            let has_url = self.vendor(BASE_URL, vendor).is_some();
            // A key goes to its vendor, or to the base URL that is set together with it.
            let is_beside = vendor == OPENAI && has_url && self.is_compatible(default);
            let is_server = vendor == OPENAI && has_url && !has_key && default != Some(OPENAI);
            let name = if is_beside || is_server && !self.entries.contains_key(OPENAI) {
                COMPATIBLE
            } else {
                vendor
            };
            let is_wanted = has_key || name == COMPATIBLE || self.entries.contains_key(name);
            if is_wanted {
                self.take_variable(name, vendor, API_KEY, "api_key");
                self.take_variable(name, vendor, BASE_URL, "base_url");
            }
        }
        for preset in PRESETS {
            let entry = self.entries.get(preset.name);
            let kind = entry.and_then(|fields| fields.get("kind"));
            // A vendor's key must not go to another server with the same provider name.
            let is_its_own = kind.is_none_or(|kind| kind.value == COMPATIBLE);
            let address = entry.and_then(|fields| fields.get("base_url"));
            let is_there = address.is_none_or(|it| matches!(it.source, Source::Derived(_)));
            if is_its_own && is_there {
                self.take_variable(preset.name, preset.name, API_KEY, "api_key");
            }
        }
    }

    /// Returns true if the default is a compatible server whose base URL is not set by a flag or one of our
    /// own variables.
    fn is_compatible(&self, default: Option<&str>) -> bool {
        let own = self.values.get(BASE_URL);
        let is_own = own.is_some_and(|it| !it.value.is_null() && it.source.is_above_file());
        default == Some(COMPATIBLE) && !is_own
    }

    fn take_variable(&mut self, name: &str, vendor: &str, key: &str, field: &'static str) {
        let Some(definition) = find(key) else { return };
        let Some((raw, source)) = self.vendor(key, vendor) else {
            return;
        };
        if let Some(resolved) = checked(definition, &raw, &source, self.problems) {
            self.entry(name).insert(field, resolved);
        }
    }

    /// Puts the default's address, key and model into `values`, to be shown.
    fn describe(&mut self, default: &str) {
        let fields = self.entry(default).clone();
        for (key, field) in OF_DEFAULT {
            if let Some(resolved) = fields.get(field)
                && self.values.contains_key(key)
            {
                self.values.insert(key, resolved.clone());
            }
        }
        if self.values.get(MODEL).is_some_and(|it| it.value.is_null()) {
            let offered = fields.get("models").and_then(|models| models.value.get(0));
            let kind = fields.get("kind").and_then(|kind| kind.value.as_str());
            let known = || Some(json!(ProviderKind::named(kind?)?.default_model()?));
            let source = match offered {
                Some(_) => Source::Derived("the first model of the provider's entry"),
                None => Source::Default,
            };
            let value = offered.cloned().or_else(known).unwrap_or(Value::Null);
            self.values.insert(MODEL, ResolvedValue { value, source });
        }
    }

    /// Refuses entries that can never work, and a default without a model.
    fn check(&mut self, default: Option<&str>) {
        let (mut missing, mut wrong) = (Vec::new(), Vec::new());
        for (name, fields) in &self.entries {
            let is_default = default == Some(name.as_str());
            if let Some(given) = fields.get("fallback") {
                let of_default = (is_default, FALLBACK.to_owned());
                wrong.extend(wrong_fallback(given).map(|what| Problem {
                    path: match of_default {
                        (true, path) => path,
                        (false, _) => path(&PROVIDERS, name, "fallback"),
                    },
                    source: Some(given.source.clone()),
                    what,
                    accepted: "`provider/model`, several separated by commas".to_owned(),
                }));
            }
            let is_compatible = fields
                .get("kind")
                .is_some_and(|kind| kind.value == COMPATIBLE);
            let path = if is_default {
                BASE_URL.to_owned()
            } else {
                path(&PROVIDERS, name, "base_url")
            };
            // An invalid base URL was already reported.
            let is_told = self.problems.iter().any(|problem| problem.path == path);
            if is_compatible && !fields.contains_key("base_url") && !is_told {
                let accepted = "the server's address, for example `http://localhost:11434/v1`";
                missing.push((path, accepted));
            }
            let has_model = self.values.get(MODEL).is_none_or(|it| !it.value.is_null());
            if is_default && !has_model {
                missing.push((MODEL.to_owned(), "the server's name of a model"));
            }
        }
        let problems = missing.into_iter().map(|(path, accepted)| Problem {
            path,
            source: None,
            what: format!("`{COMPATIBLE}` needs it"),
            accepted: accepted.to_owned(),
        });
        self.problems.extend(problems);
        self.problems.extend(wrong);
    }

    fn notices(&self, default: Option<&str>) -> Vec<String> {
        let is_dummy = |fields: &Fields| {
            let is_scripted = fields
                .get("kind")
                .is_some_and(|kind| kind.value == SCRIPTED);
            let key = fields.get("api_key");
            !is_scripted && key.is_some_and(|key| key.value == DUMMY_KEY)
        };
        let dummies = self.entries.iter().filter(|(_, fields)| is_dummy(fields));
        let notices = dummies.map(|(name, _)| {
            let key = if default == Some(name.as_str()) {
                API_KEY.to_owned()
            } else {
                path(&PROVIDERS, name, "api_key")
            };
            format!(
                "`{key}` is the dummy of the examples, which `{name}` will refuse; set SPL_LLM_API_KEY"
            )
        });
        let keyless = PRESETS.iter().filter(|preset| {
            let entry = self.entries.get(preset.name);
            entry.is_some_and(|fields| !fields.contains_key("api_key"))
        });
        let keyless = keyless.map(|preset| {
            let Preset { name, key, .. } = preset;
            format!("`{name}` has no key and will refuse every request; set {key}")
        });
        notices.chain(keyless).collect()
    }
}
