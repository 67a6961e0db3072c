//! Reads `SKILL.md`: checks front matter and body against the convention, and reports all problems at once.

#[cfg(test)]
mod tests;
mod yaml;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use self::yaml::Yaml;
use super::path::{is_skill_name, shown};
use super::problem::Problem;

/// The longest front matter, in bytes.
const MAX_FRONT_MATTER: usize = 16 * 1024;
/// The longest `SKILL.md`, in bytes: a model reads it in one piece.
pub(super) const MAX_DOCUMENT: usize = 128 * 1024;
/// The longest description, in characters.
const MAX_DESCRIPTION: usize = 1024;
/// The longest `compatibility`, in characters.
const MAX_COMPATIBILITY: usize = 500;
/// The longest `license`, and the longest value of `metadata`, in characters.
const MAX_WORDS: usize = 1024;
/// The most entries of `metadata`, and of `allowed-tools`.
const MAX_ENTRIES: usize = 64;
/// The most characters of the parser's message that a problem repeats.
const MAX_SAID: usize = 300;
/// The remedy for a missing or invalid front matter.
const EXAMPLE: &str = "Begin the file with `---`, then `name: …` and `description: …`, then `---`.";

/// The fields of the front matter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Manifest {
    pub name: String,
    /// The purpose of the skill, and when to use it; 1 to 1024 characters.
    pub description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub license: Option<String>,
    /// The skill's requirements.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compatibility: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    /// Tools that the skill claims may run without approval. The claim grants nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_tools: Vec<String>,
}

/// A valid `SKILL.md`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    pub manifest: Manifest,
    /// The text after the front matter.
    pub body: String,
    /// The warnings.
    pub warnings: Vec<Problem>,
}

/// Reads a `SKILL.md`. With a folder, the name has to be that of the folder. Reports all problems.
pub fn read_document(file: &[u8], folder: Option<&str>) -> Result<Document, Vec<Problem>> {
    let (front, body) = split(file).map_err(|problem| vec![problem])?;
    let read = if front.trim().is_empty() {
        Yaml::Mapping(Vec::new())
    } else {
        yaml::read(front).map_err(|said| vec![no_yaml(&said)])?
    };
    let Yaml::Mapping(fields) = read else {
        let message = "the front matter is no list of fields";
        return Err(vec![Problem::new("SKILL.md", message, EXAMPLE)]);
    };
    let mut reader = Reader::default();
    let manifest = reader.manifest(fields, folder);
    if body.trim().is_empty() {
        let message = "nothing stands behind the front matter";
        let remedy = "Write what the model should do, behind the second `---`.";
        reader.warn("SKILL.md", message.to_owned(), remedy);
    }
    let (warnings, wrong): (Vec<_>, Vec<_>) =
        reader.problems.into_iter().partition(|it| it.is_warning);
    if wrong.is_empty() {
        return Ok(Document {
            manifest,
            body: body.trim_start_matches(['\r', '\n']).to_owned(),
            warnings,
        });
    }
    Err(wrong.into_iter().chain(warnings).collect())
}

/// Makes a `SKILL.md` of the texts that a person entered in the page.
pub fn write_document(name: &str, description: &str, body: &str) -> String {
    // A JSON string is also a YAML string, whatever it contains.
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let (name, description) = (quoted(name), quoted(description));
    let mut written = String::with_capacity(body.len() + description.len() + 64);
    // Writing to a string cannot fail.
    let _ = write!(
        written,
        "---\nname: {name}\ndescription: {description}\n---\n\n{body}"
    );
    if !written.ends_with('\n') {
        written.push('\n');
    }
    written
}

/// Splits front matter and body.
fn split(file: &[u8]) -> Result<(&str, &str), Problem> {
    let wrong = |message: String, remedy: &str| Problem::new("SKILL.md", message, remedy);
    if file.len() > MAX_DOCUMENT {
        let message = format!("it has more than {} KiB", MAX_DOCUMENT / 1024);
        let remedy = "Move what is not always needed into files below `references/`.";
        return Err(wrong(message, remedy));
    }
    let text = std::str::from_utf8(file)
        .map_err(|_| wrong("it is not UTF-8".to_owned(), "Save the file as UTF-8."))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let missing = || wrong("it has no front matter".to_owned(), EXAMPLE);
    let begun = text.strip_prefix("---").ok_or_else(missing)?;
    let (rest_of_line, begun) = begun.split_once('\n').ok_or_else(missing)?;
    if !rest_of_line.trim().is_empty() {
        return Err(missing());
    }
    let mut at = 0;
    for line in begun.split_inclusive('\n') {
        if line.trim_end() == "---" {
            let front = begun.get(..at).unwrap_or_default();
            let body = begun.get(at + line.len()..).unwrap_or_default();
            return Ok((front, body));
        }
        at += line.len();
        if at > MAX_FRONT_MATTER {
            let message = format!(
                "the front matter has more than {} KiB",
                MAX_FRONT_MATTER / 1024
            );
            let remedy = "Move the words behind the second `---`.";
            return Err(wrong(message, remedy));
        }
    }
    let message = "the front matter has no end".to_owned();
    Err(wrong(message, "Write a line `---` behind the last field."))
}

fn no_yaml(said: &str) -> Problem {
    let said: String = said.chars().take(MAX_SAID).collect();
    let message = format!("the front matter is no YAML: {}", shown(&said));
    let remedy = "Put texts with a colon or quotes into double quotes, and indent with spaces.";
    Problem::new("SKILL.md", message, remedy)
}

/// Reads the fields one by one, and records problems.
#[derive(Default)]
struct Reader {
    problems: Vec<Problem>,
}

impl Reader {
    fn wrong(&mut self, at: &str, message: String, remedy: &str) {
        self.problems.push(Problem::new(at, message, remedy));
    }

    fn warn(&mut self, at: &str, message: String, remedy: &str) {
        self.problems.push(Problem::warning(at, message, remedy));
    }

    fn manifest(&mut self, fields: Vec<(String, Yaml)>, folder: Option<&str>) -> Manifest {
        let mut manifest = Manifest::default();
        let (mut has_name, mut has_description) = (false, false);
        for (key, value) in fields {
            match key.as_str() {
                "name" => {
                    has_name = true;
                    manifest.name = self.text("name", value).unwrap_or_default();
                    self.check_name(&manifest.name, folder);
                }
                "description" => {
                    has_description = true;
                    manifest.description = self.text("description", value).unwrap_or_default();
                    self.check_length("description", &manifest.description, MAX_DESCRIPTION);
                }
                "license" => {
                    manifest.license = self.text("license", value);
                    let license = manifest.license.as_deref().unwrap_or("-");
                    self.check_length("license", license, MAX_WORDS);
                }
                "compatibility" => {
                    manifest.compatibility = self.text("compatibility", value);
                    let needs = manifest.compatibility.as_deref().unwrap_or("-");
                    self.check_length("compatibility", needs, MAX_COMPATIBILITY);
                }
                "metadata" => manifest.metadata = self.metadata(value),
                "allowed-tools" => manifest.allowed_tools = self.allowed_tools(value),
                other => {
                    let message =
                        "the convention has no such field; it is not looked at".to_owned();
                    let remedy = "Put it below `metadata`, or leave it out.";
                    self.warn(&shown(other), message, remedy);
                }
            }
        }
        for (field, is_there) in [("name", has_name), ("description", has_description)] {
            if !is_there {
                let remedy = format!("Add a line `{field}: …` to the front matter.");
                self.wrong(field, "it is missing".to_owned(), &remedy);
            }
        }
        manifest
    }

    /// Returns a text; a number counts as text, because people write versions as numbers.
    fn text(&mut self, at: &str, value: Yaml) -> Option<String> {
        match value {
            Yaml::Text(text) | Yaml::Number(text) => Some(text),
            Yaml::Flag(flag) => Some(flag.to_string()),
            Yaml::Nothing => Some(String::new()),
            Yaml::List(_) | Yaml::Mapping(_) => {
                self.wrong(at, "it is no text".to_owned(), "Write it as one text.");
                // Nothing else can be checked.
                None
            }
        }
    }

    fn check_name(&mut self, name: &str, folder: Option<&str>) {
        if !is_skill_name(name) {
            let message = format!(
                "`{}` is no name of a skill: 1 to 64 of `a-z`, `0-9` and `-`, with a letter or digit \
                 at both ends and no `--`",
                shown(name)
            );
            self.wrong(
                "name",
                message,
                "Use small letters, such as `pdf-processing`.",
            );
        } else if let Some(folder) = folder.filter(|folder| *folder != name) {
            let message = format!("the folder is called `{}`, not `{name}`", shown(folder));
            self.wrong("name", message, "Give folder and skill the same name.");
        }
    }

    fn check_length(&mut self, at: &str, text: &str, most: usize) {
        let letters = text.chars().count();
        if text.trim().is_empty() {
            self.wrong(
                at,
                "it is empty".to_owned(),
                "Write it, or leave the field out.",
            );
        } else if letters > most {
            let message = format!("it has {letters} letters, and may have {most}");
            self.wrong(
                at,
                message,
                "Shorten it; details belong behind the front matter.",
            );
        }
    }

    fn metadata(&mut self, value: Yaml) -> BTreeMap<String, String> {
        let Yaml::Mapping(entries) = value else {
            let remedy = "Write `metadata:` and below it lines such as `  author: …`.";
            self.wrong("metadata", "it is no list of fields".to_owned(), remedy);
            return BTreeMap::new();
        };
        if entries.len() > MAX_ENTRIES {
            let message = format!("it has more than {MAX_ENTRIES} fields");
            self.wrong("metadata", message, "Leave some of them out.");
            return BTreeMap::new();
        }
        let mut metadata = BTreeMap::new();
        for (key, value) in entries {
            let at = format!("metadata.{}", shown(&key));
            if key.chars().count() > MAX_WORDS {
                self.wrong(&at, "its name is too long".to_owned(), "Shorten the name.");
            } else if let Some(text) = self.text(&at, value) {
                if text.chars().count() > MAX_WORDS {
                    let message = format!("it has more than {MAX_WORDS} letters");
                    self.wrong(&at, message, "Shorten it.");
                }
                metadata.insert(key, text);
            }
        }
        metadata
    }

    /// Reads the claims: separated by spaces, as in the convention, or a list.
    fn allowed_tools(&mut self, value: Yaml) -> Vec<String> {
        let tools: Option<Vec<String>> = match value {
            Yaml::Text(text) => Some(claims(&text)),
            Yaml::Nothing => Some(Vec::new()),
            Yaml::List(items) => items
                .into_iter()
                .map(|item| match item {
                    Yaml::Text(text) => Some(text),
                    Yaml::Nothing
                    | Yaml::Flag(_)
                    | Yaml::Number(_)
                    | Yaml::List(_)
                    | Yaml::Mapping(_) => None,
                })
                .collect(),
            Yaml::Flag(_) | Yaml::Number(_) | Yaml::Mapping(_) => None,
        };
        let tools = tools.filter(|tools| {
            let is_short = |tool: &String| tool.chars().count() <= MAX_WORDS;
            tools.len() <= MAX_ENTRIES && tools.iter().all(is_short)
        });
        let Some(tools) = tools else {
            let message = format!("it is no list of at most {MAX_ENTRIES} tools");
            let remedy = "Write the tools behind each other, with spaces between them.";
            self.wrong("allowed-tools", message, remedy);
            return Vec::new();
        };
        if !tools.is_empty() {
            let message =
                "it grants nothing here: each call is decided about as any other".to_owned();
            let remedy = "Give a rule for the calls that may run unasked (docs/rules.md).";
            self.warn("allowed-tools", message, remedy);
        }
        tools
    }
}

/// Splits claims at spaces and commas, except within brackets.
fn claims(text: &str) -> Vec<String> {
    let mut claims = vec![String::new()];
    let mut depth = 0_usize;
    for letter in text.chars() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && (letter.is_whitespace() || letter == ',') {
            claims.push(String::new());
        } else if let Some(claim) = claims.last_mut() {
            claim.push(letter);
        }
    }
    claims.retain(|claim| !claim.is_empty());
    claims
}
