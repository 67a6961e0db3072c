//! Makes the entry of a bundle, filled in with a person's answers.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value as Json, json};

use super::facts::{BundleFacts, WantedValue};
use super::template::{self, Part, WORKSPACE};
use crate::mcp_registry::FilledEntry;
use sepal_mcp::config::EntryProblem;

/// The most bytes of an answer.
const MOST_BYTES: usize = 8 * 1024;
/// The most values of a repeated answer.
const MOST_VALUES: usize = 50;

/// An answer, as it is put into the command.
enum Answer {
    /// No answer was given, and there is no default.
    Nothing,
    Texts(Vec<String>),
    /// The value of a secret, and the name that refers to it.
    Secret {
        name: String,
        value: String,
    },
}

/// Makes the entry, or returns all problems of the answers. Without `hosts`, the entry has no `network`.
pub(super) fn fill(
    facts: &BundleFacts,
    sha256: &str,
    given: &BTreeMap<String, String>,
    hosts: Option<&[String]>,
) -> Result<FilledEntry, Vec<EntryProblem>> {
    let mut problems = Vec::new();
    let mut answers = BTreeMap::new();
    for wanted in &facts.values {
        match answer(wanted, given.get(&wanted.key)) {
            Ok(answer) => drop(answers.insert(wanted.key.as_str(), answer)),
            Err(text) => problems.push(EntryProblem::new(format!("values.{}", wanted.key), text)),
        }
    }
    for key in given.keys().filter(|key| !is_wanted(facts, key)) {
        let text = "the bundle does not ask for that value: leave it out";
        problems.push(EntryProblem::new(format!("values.{key}"), text));
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let filling = Filling { facts, answers };
    Ok(FilledEntry {
        name: short_name(&facts.name),
        config: filling.config(sha256, hosts),
        secrets: filling.secrets(),
    })
}

fn is_wanted(facts: &BundleFacts, key: &str) -> bool {
    facts.values.iter().any(|wanted| wanted.key == key)
}

struct Filling<'f> {
    facts: &'f BundleFacts,
    answers: BTreeMap<&'f str, Answer>,
}

impl Filling<'_> {
    fn config(&self, sha256: &str, hosts: Option<&[String]>) -> Json {
        let mut env = Map::new();
        for (name, text) in &self.facts.env {
            if let Some(text) = self.variable(text) {
                env.insert(name.clone(), text.into());
            }
        }
        let (command, args) = self.words(&mut env);
        let bundle = json!({ "sha256": sha256, "values": self.kept() });
        let mut config = Map::new();
        let mut set = |name: &str, value: Json| drop(config.insert(name.to_owned(), value));
        set("transport", "stdio".into());
        set("bundle", bundle);
        set("command", command.into());
        if !args.is_empty() {
            set("args", json!(args));
        }
        if !env.is_empty() {
            set("env", Json::Object(env));
        }
        if !self.facts.description.is_empty() {
            set("description", self.facts.description.clone().into());
        }
        if let Some(hosts) = hosts {
            set("network", json!(hosts));
        }
        if self.sees_files() {
            set("workspace", "rw".into());
        }
        Json::Object(config)
    }

    /// Returns true if a path is answered, or if the bundle names folders of a person: then the server sees
    /// the session's files.
    fn sees_files(&self) -> bool {
        let is_given = |wanted: &WantedValue| {
            let answer = self.answers.get(wanted.key.as_str());
            wanted.is_path() && matches!(answer, Some(Answer::Texts(_)))
        };
        self.facts.names_folders || self.facts.values.iter().any(is_given)
    }

    /// Returns the answers without secrets, by key.
    fn kept(&self) -> BTreeMap<&str, String> {
        let answers = self.answers.iter();
        let texts = answers.filter_map(|(key, answer)| match answer {
            Answer::Texts(texts) => Some((*key, texts.join("\n"))),
            Answer::Nothing | Answer::Secret { .. } => None,
        });
        texts.collect()
    }

    fn secrets(&self) -> BTreeMap<String, String> {
        let answers = self.answers.values();
        let secrets = answers.filter_map(|answer| match answer {
            Answer::Secret { name, value } => Some((name.clone(), value.clone())),
            Answer::Nothing | Answer::Texts(_) => None,
        });
        secrets.collect()
    }

    /// Returns the value of a variable; `None` if it consists of an answer that was left out.
    fn variable(&self, text: &str) -> Option<String> {
        let parts = template::parts(text);
        if let [Part::Name(name)] = parts.as_slice()
            && let Some(Answer::Nothing) = self.answer(name)
        {
            return None;
        }
        let put = |part: Part<'_>| match part {
            Part::Text(text) => text.to_owned(),
            Part::Name(name) => match self.answer(name) {
                Some(Answer::Texts(texts)) => texts.join(","),
                Some(Answer::Secret { name, .. }) => format!("${{secret:{name}}}"),
                Some(Answer::Nothing) => String::new(),
                None => format!("${{{name}}}"),
            },
        };
        Some(parts.into_iter().map(put).collect())
    }

    fn answer(&self, name: &str) -> Option<&Answer> {
        self.answers.get(name.strip_prefix("user_config.")?)
    }

    /// Returns the command line. A shell takes secrets in it from variables, so that they appear nowhere in
    /// plain text.
    fn words(&self, env: &mut Map<String, Json>) -> (String, Vec<String>) {
        let args = &self.facts.args;
        let mut named: BTreeSet<&str> = BTreeSet::new();
        for key in args.iter().flat_map(|word| template::keys(word)) {
            if let Some(Answer::Secret { name, .. }) = self.answers.get(key) {
                named.insert(name);
            }
        }
        if named.is_empty() {
            let words = args.iter().flat_map(|word| self.spread(word));
            return (self.facts.command.clone(), words.collect());
        }
        for name in &named {
            env.insert(variable_of(name), format!("${{secret:{name}}}").into());
        }
        let words = args.iter().flat_map(|word| self.quoted(word));
        let line: Vec<String> = std::iter::once(quote(&self.facts.command))
            .chain(words)
            .collect();
        let script = format!("exec {}", line.join(" "));
        ("/bin/sh".to_owned(), vec!["-c".to_owned(), script])
    }

    /// Returns the words for a word without secrets: one for each value, none if the answer was left out.
    fn spread(&self, word: &str) -> Vec<String> {
        let parts = template::parts(word);
        if let [Part::Name(name)] = parts.as_slice() {
            match self.answer(name) {
                Some(Answer::Nothing) => return Vec::new(),
                Some(Answer::Texts(texts)) => return texts.clone(),
                Some(Answer::Secret { .. }) | None => {}
            }
        }
        vec![self.variable(word).unwrap_or_default()]
    }

    /// Returns the words of [`Self::spread`], quoted for a shell, with secrets as variables.
    fn quoted(&self, word: &str) -> Vec<String> {
        let is_secret = |key: &str| matches!(self.answers.get(key), Some(Answer::Secret { .. }));
        if !template::keys(word).any(is_secret) {
            return self.spread(word).iter().map(|word| quote(word)).collect();
        }
        let put = |part: Part<'_>| match part {
            Part::Text(text) => quote(text),
            Part::Name(name) => match self.answer(name) {
                Some(Answer::Secret { name, .. }) => format!("\"${{{}}}\"", variable_of(name)),
                Some(Answer::Texts(texts)) => quote(&texts.join(",")),
                Some(Answer::Nothing) => String::new(),
                None => quote(&format!("${{{name}}}")),
            },
        };
        vec![template::parts(word).into_iter().map(put).collect()]
    }
}

/// The name of the variable that brings a secret into a command line.
fn variable_of(secret: &str) -> String {
    format!("BUNDLE_{secret}")
}

/// Quotes a word for a shell.
fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Returns the answer, or else the default; or the problem of the answer.
fn answer(wanted: &WantedValue, given: Option<&String>) -> Result<Answer, String> {
    let given = given.map(|text| text.trim_end_matches(['\r', '\n']));
    let given = given.filter(|text| !text.is_empty());
    let Some(text) = given.or(wanted.default.as_deref()) else {
        if wanted.is_required {
            return Err("the server needs this value".to_owned());
        }
        return Ok(Answer::Nothing);
    };
    if text.len() > MOST_BYTES || text.contains('\0') {
        return Err(format!(
            "a value has at most {MOST_BYTES} bytes, and no NUL character"
        ));
    }
    if wanted.is_secret {
        return Ok(Answer::Secret {
            name: template::secret_name(&wanted.key),
            value: text.to_owned(),
        });
    }
    let texts: Vec<&str> = if wanted.is_repeated {
        text.lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .collect()
    } else {
        vec![text]
    };
    if texts.len() > MOST_VALUES {
        return Err(format!("at most {MOST_VALUES} values, one on each line"));
    }
    let texts: Result<Vec<String>, String> = texts.into_iter().map(|it| fit(wanted, it)).collect();
    texts.map(Answer::Texts)
}

/// Returns one value in the form that the server gets, or its problem.
fn fit(wanted: &WantedValue, text: &str) -> Result<String, String> {
    match wanted.kind.as_str() {
        "number" => number(wanted, text.trim()),
        "boolean" if !matches!(text, "true" | "false") => {
            Err("possible are: true, false".to_owned())
        }
        "directory" | "file" => path(text.trim()),
        _ => Ok(text.to_owned()),
    }
}

fn number(wanted: &WantedValue, text: &str) -> Result<String, String> {
    let number: f64 = text
        .parse()
        .map_err(|_| "this is not a number".to_owned())?;
    let least = wanted.min.as_ref().and_then(serde_json::Number::as_f64);
    let most = wanted.max.as_ref().and_then(serde_json::Number::as_f64);
    if !number.is_finite() {
        return Err("this is not a number".to_owned());
    }
    if let Some(least) = least.filter(|least| number < *least) {
        return Err(format!("has to be {least} at least"));
    }
    if let Some(most) = most.filter(|most| number > *most) {
        return Err(format!("has to be {most} at most"));
    }
    Ok(text.to_owned())
}

/// Returns a path below the session's files, which are all that a server can see, or the problem of the path.
fn path(text: &str) -> Result<String, String> {
    let inside = match text.strip_prefix(WORKSPACE) {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => Some(rest),
        Some(_) => None,
        None => (!text.starts_with(['/', '~'])).then_some(text),
    };
    let inside = inside.filter(|path| !path.split('/').any(|part| part == ".."));
    let Some(inside) = inside else {
        return Err(
            "has to lie below `/workspace`: a server sees the session's files, and none of anybody's \
             own machine"
                .to_owned(),
        );
    };
    let inside = inside.trim_matches('/');
    Ok(match inside {
        "" | "." => WORKSPACE.to_owned(),
        inside => format!("{WORKSPACE}/{inside}"),
    })
}

/// Returns a name in the characters that names of entries allow.
fn short_name(name: &str) -> String {
    let fit = |c: char| {
        if c.is_ascii_alphanumeric() || c == '_' {
            c
        } else {
            '-'
        }
    };
    let name: String = name.chars().map(fit).take(64).collect();
    match name.trim_matches('-') {
        "" => "server".to_owned(),
        name => name.to_owned(),
    }
}
