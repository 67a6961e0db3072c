//! Lists the ways to run a server of the registry, and makes an entry of one of them.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json, json};

use super::format::{Argument, Input, KeyValue, Package, Remote, Server};
use super::question::{Answers, Question, Value, braced, questions};
use super::{FilledEntry, clip};
use sepal_mcp::config::EntryProblem;

/// Options of `docker run` that an entry implies anyway.
const PLAIN_OPTIONS: [&str; 4] = ["-i", "--rm", "--interactive", "--init"];

/// One way to run a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Way {
    /// The id of the way among those of its server, for example `package-0`.
    pub id: String,
    /// `npm`, `pypi`, `oci`, `mcpb`, `nuget`, `http` or `sse`, or a kind that we do not know.
    pub kind: String,
    /// The package with its version, the image, or the address.
    pub target: String,
    /// The questions that have to be answered before it can be added.
    pub questions: Vec<Question>,
    /// The reason why it cannot be added here; `None` if it can.
    pub lack: Option<&'static str>,
}

/// Returns all ways of a server, in the order of the registry: packages, then addresses.
pub(super) fn ways(server: &Server) -> Vec<Way> {
    let packages = server.packages.iter().enumerate().map(|(at, package)| Way {
        id: format!("package-{at}"),
        kind: clip(&package.registry_type, 40),
        target: clip(&pinned(package), 400),
        questions: package_questions(package),
        lack: package_lack(package),
    });
    let remotes = server.remotes.iter().enumerate().map(|(at, remote)| Way {
        id: format!("remote-{at}"),
        kind: transport(remote).unwrap_or(&remote.kind).to_owned(),
        target: clip(&remote.url, 400),
        questions: remote_questions(remote),
        lack: transport(remote)
            .is_none()
            .then_some("this version does not know its transport"),
    });
    packages.chain(remotes).collect()
}

/// Makes the entry of a way with a person's answers; `None` if there is no such way.
pub(super) fn fill(
    server: &Server,
    way: &str,
    given: &BTreeMap<String, String>,
) -> Option<Result<FilledEntry, Vec<EntryProblem>>> {
    let mut answers = Answers::new(given);
    let mut entry = Entry::default();
    let (kind, at) = way.split_once('-')?;
    let at: usize = at.parse().ok()?;
    match kind {
        "package" => entry.package(server.packages.get(at)?, &mut answers),
        "remote" => entry.remote(server.remotes.get(at)?, &mut answers),
        _ => return None,
    }
    if !answers.problems.is_empty() {
        return Some(Err(answers.problems));
    }
    if !server.description.is_empty() {
        let description = clip(&server.description, 500);
        entry
            .config
            .insert("description".to_owned(), description.into());
    }
    Some(Ok(FilledEntry {
        name: short_name(&server.name),
        config: Json::Object(entry.config),
        secrets: entry.secrets,
    }))
}

/// Returns the package's name with its exact version.
fn pinned(package: &Package) -> String {
    let version = package
        .version
        .as_deref()
        .filter(|version| !version.is_empty());
    match (package.registry_type.as_str(), version) {
        ("npm" | "pypi", Some(version)) => format!("{}@{version}", package.identifier),
        // Newer identifiers contain their own tag or digest.
        ("oci", Some(version)) if !names_version(&package.identifier) => {
            format!("{}:{version}", package.identifier)
        }
        (_, _) => package.identifier.clone(),
    }
}

/// Returns true if an image's name has a tag or a digest.
fn names_version(image: &str) -> bool {
    image.contains('@')
        || image
            .rsplit('/')
            .next()
            .is_some_and(|last| last.contains(':'))
}

fn package_lack(package: &Package) -> Option<&'static str> {
    if package.transport.kind != "stdio" {
        return Some("it listens on a port, and Sepal speaks to packages over stdio");
    }
    match package.registry_type.as_str() {
        "npm" | "pypi" | "oci" if !is_name(&package.identifier) => {
            Some("its name is no name of a package")
        }
        "npm" | "pypi" if package.version.as_deref().is_none_or(str::is_empty) => {
            Some("the registry names no version of it")
        }
        "npm" | "pypi" => None,
        "oci" => package
            .runtime_arguments
            .iter()
            .any(|argument| !is_plain(argument, package))
            .then_some("it wants options of `docker run` that reach the host"),
        "mcpb" => Some("it is a bundle: fetch its file, and add it from there"),
        "nuget" => Some("it needs .NET"),
        _ => Some("this version does not know its kind of package"),
    }
}

/// Returns true if the entry implies this option of `docker run` anyway.
fn is_plain(argument: &Argument, package: &Package) -> bool {
    let value = argument.input.value.as_deref();
    match argument.name.as_deref().or(value) {
        Some("-e" | "--env") => value.is_some_and(|value| {
            let name = value.split('=').next().unwrap_or(value);
            package
                .environment_variables
                .iter()
                .any(|variable| variable.name == name)
        }),
        Some(word) => PLAIN_OPTIONS.contains(&word),
        None => false,
    }
}

/// Returns true if the identifier is safe as the name of a package or an image, and cannot be read as an
/// option or a path.
fn is_name(identifier: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "@/._-:+".contains(c);
    !identifier.starts_with(['-', '.', '/'])
        && !identifier.is_empty()
        && identifier.chars().all(fits)
}

/// Returns the name of a remote's transport in our entries.
fn transport(remote: &Remote) -> Option<&'static str> {
    match remote.kind.as_str() {
        "streamable-http" | "http" => Some("http"),
        "sse" => Some("sse"),
        _ => None,
    }
}

fn package_questions(package: &Package) -> Vec<Question> {
    let environment = package.environment_variables.iter();
    let environment = environment.flat_map(|variable| of_key("env", variable));
    // Options of `docker run` become fields of the entry.
    let runtime: &[Argument] = match package.registry_type.as_str() {
        "oci" => &[],
        _ => &package.runtime_arguments,
    };
    environment
        .chain(of_arguments("runtime", runtime))
        .chain(of_arguments("argument", &package.arguments))
        .collect()
}

fn remote_questions(remote: &Remote) -> Vec<Question> {
    let variables = remote
        .variables
        .iter()
        .filter(|(name, variable)| variable.value.is_none() && remote.url.contains(&braced(name)));
    variables
        .map(|(name, variable)| Question::new(format!("url.{name}"), name, variable))
        .chain(
            remote
                .headers
                .iter()
                .flat_map(|header| of_key("header", header)),
        )
        .collect()
}

fn of_key(place: &str, variable: &KeyValue) -> Vec<Question> {
    questions(
        &format!("{place}.{}", variable.name),
        &variable.name,
        &variable.input,
    )
}

fn of_arguments<'a>(place: &'a str, arguments: &'a [Argument]) -> impl Iterator<Item = Question> {
    arguments
        .iter()
        .enumerate()
        .flat_map(move |(at, argument)| {
            let label = argument.name.as_deref().or(argument.value_hint.as_deref());
            let asked = questions(
                &format!("{place}.{at}"),
                label.unwrap_or("argument"),
                &argument.input,
            );
            asked.into_iter().map(|question| Question {
                is_repeated: argument.is_repeated && argument.input.value.is_none(),
                ..question
            })
        })
}

/// Returns the last part of `io.github.user/weather`, in the characters that names of entries allow.
fn short_name(name: &str) -> String {
    let last = name.rsplit('/').next().unwrap_or(name);
    let fit = |c: char| {
        if c.is_ascii_alphanumeric() || c == '_' {
            c
        } else {
            '-'
        }
    };
    let name: String = last.chars().map(fit).take(64).collect();
    match name.trim_matches('-') {
        "" => "server".to_owned(),
        name => name.to_owned(),
    }
}

/// An entry under construction.
#[derive(Default)]
struct Entry {
    config: Map<String, Json>,
    secrets: BTreeMap<String, String>,
}

impl Entry {
    fn package(&mut self, package: &Package, answers: &mut Answers<'_>) {
        let mut words = Vec::new();
        let runner = match package.registry_type.as_str() {
            "oci" => None,
            "pypi" => Some("uvx"),
            _ => Some("npx"),
        };
        if let Some(runner) = runner {
            words.extend(arguments("runtime", &package.runtime_arguments, answers));
            // Without `-y`, `npx` asks for permission to install.
            if runner == "npx" && !words.iter().any(|word| word == "-y" || word == "--yes") {
                words.insert(0, "-y".to_owned());
            }
            words.push(pinned(package));
            self.config.insert("transport".to_owned(), "stdio".into());
            self.config.insert("command".to_owned(), runner.into());
        } else {
            self.config
                .insert("transport".to_owned(), "stdio-docker".into());
            self.config
                .insert("containerImage".to_owned(), pinned(package).into());
        }
        words.extend(arguments("argument", &package.arguments, answers));
        if !words.is_empty() {
            self.config.insert("args".to_owned(), json!(words));
        }
        self.values("env", "env", &package.environment_variables, answers);
    }

    fn remote(&mut self, remote: &Remote, answers: &mut Answers<'_>) {
        let mut url = remote.url.clone();
        for (name, variable) in &remote.variables {
            if !url.contains(&braced(name)) {
                continue;
            }
            let required = Input {
                is_required: true,
                ..variable.clone()
            };
            let value = match &variable.value {
                Some(value) => Some(value.clone()),
                None => answers.answer(&format!("url.{name}"), &required),
            };
            let Some(text) = value else { continue };
            let value = Value {
                text,
                is_secret: variable.is_secret,
            };
            let value = self.kept(name, value);
            url = url.replace(&braced(name), &value);
        }
        let transport = transport(remote).unwrap_or("http");
        self.config.insert("transport".to_owned(), transport.into());
        self.config.insert("url".to_owned(), url.into());
        self.values("headers", "header", &remote.headers, answers);
    }

    /// Adds variables or headers; secret values are stored beside the entry.
    fn values(
        &mut self,
        field: &str,
        place: &str,
        variables: &[KeyValue],
        answers: &mut Answers<'_>,
    ) {
        let mut values = Map::new();
        for variable in variables {
            let key = format!("{place}.{}", variable.name);
            if let Some(value) = answers.value(&key, &variable.input) {
                let text = self.kept(&variable.name, value);
                values.insert(variable.name.clone(), text.into());
            }
        }
        if !values.is_empty() {
            self.config.insert(field.to_owned(), Json::Object(values));
        }
    }

    /// Returns the text for a value in the entry: a reference if it is secret.
    fn kept(&mut self, name: &str, value: Value) -> String {
        if !value.is_secret {
            return value.text;
        }
        let upper = |c: char| {
            if c.is_ascii_alphanumeric() {
                c.to_ascii_uppercase()
            } else {
                '_'
            }
        };
        let name: String = name.chars().map(upper).take(100).collect();
        let reference = format!("${{secret:{name}}}");
        self.secrets.insert(name, value.text);
        reference
    }
}

/// Returns the words of a command line. An argument without a value is left out with its name.
fn arguments(place: &str, arguments: &[Argument], answers: &mut Answers<'_>) -> Vec<String> {
    let mut words = Vec::new();
    for (at, argument) in arguments.iter().enumerate() {
        let key = format!("{place}.{at}");
        let name = argument
            .name
            .as_deref()
            .filter(|_| argument.kind == "named");
        let Some(value) = answers.value(&key, &argument.input) else {
            continue;
        };
        let is_several = argument.is_repeated && argument.input.value.is_none();
        let values: Vec<&str> = if is_several {
            value.text.lines().filter(|line| !line.is_empty()).collect()
        } else {
            vec![value.text.as_str()]
        };
        for value in values {
            words.extend(name.map(str::to_owned));
            words.push(value.to_owned());
        }
    }
    words
}
