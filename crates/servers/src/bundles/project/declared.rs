//! Reads the packages that a project requires from the index in its `pyproject.toml` and `uv.lock`. Nothing
//! else in them is used.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::super::archive::Archive;
use super::super::path::shown;
use super::uv_run::UvRun;
use super::{Dependencies, below};
use sepal_mcp::config::{EntryProblem, normal_name};

/// The most bytes of each of the two files.
const MOST_BYTES: u64 = 8 << 20;
/// The most packages that a project requires.
const MOST_WANTED: usize = 200;
/// The most locked packages of a project.
const MOST_LOCKED: usize = 2_000;
/// The most characters of a requirement.
const MOST_LETTERS: usize = 300;

/// The declarations of a project.
pub(super) struct Declared {
    /// The path of its `pyproject.toml`, below the bundle's folder.
    file: String,
    project: Table,
    sources: BTreeMap<String, toml::Value>,
    locked: Vec<String>,
}

#[derive(Deserialize)]
struct File {
    project: Option<Table>,
    #[serde(default)]
    tool: Tools,
}

/// `[project]` (PEP 621).
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Table {
    #[serde(default)]
    dependencies: Vec<String>,
    #[serde(default)]
    optional_dependencies: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    scripts: BTreeMap<String, String>,
    #[serde(default)]
    dynamic: Vec<String>,
    requires_python: Option<String>,
}

#[derive(Default, Deserialize)]
struct Tools {
    #[serde(default)]
    uv: Uv,
}

/// `[tool.uv]`.
#[derive(Default, Deserialize)]
struct Uv {
    /// Packages that do not come from the index.
    #[serde(default)]
    sources: BTreeMap<String, toml::Value>,
}

/// `uv.lock`.
#[derive(Deserialize)]
struct Lock {
    #[serde(default, rename = "package")]
    packages: Vec<Locked>,
}

#[derive(Deserialize)]
struct Locked {
    name: String,
    version: Option<String>,
    #[serde(default)]
    source: BTreeMap<String, toml::Value>,
}

impl Declared {
    /// Reads both files of the project in that folder of the bundle. `uv.lock` is optional.
    pub(super) fn read(archive: &mut Archive<'_>, folder: &str) -> Result<Self, Vec<EntryProblem>> {
        let file = below(folder, "pyproject.toml");
        let Some(read) = parsed::<File>(archive, &file)? else {
            return Err(refused(
                &file,
                "the bundle has no such file, and uv starts projects that have one: pack the folder with \
                 it, or use a bundle of type `python` that brings its packages along",
            ));
        };
        let Some(project) = read.project else {
            return Err(refused(
                &file,
                "it has no `[project]` that names what the server needs",
            ));
        };
        if project.dynamic.iter().any(|it| it == "dependencies") {
            let text = "its dependencies are `dynamic`, which only building it would tell: list them in \
                        `project.dependencies`";
            return Err(refused(&file, text));
        }
        let lock = parsed::<Lock>(archive, &below(folder, "uv.lock"))?;
        Ok(Self {
            file,
            project,
            sources: read.tool.uv.sources,
            locked: lock.map(locked).unwrap_or_default(),
        })
    }

    /// Returns the packages that the project requires, or the problems of all that cannot be installed from
    /// the index.
    pub(super) fn dependencies(&self, uv: &UvRun) -> Result<Dependencies, Vec<EntryProblem>> {
        let mut problems = Vec::new();
        let mut say = |text: String| {
            problems.push(EntryProblem::new(
                "file",
                format!("`{}`: {text}", shown(&self.file)),
            ));
        };
        let optional = &self.project.optional_dependencies;
        let mut wanted = self.project.dependencies.clone();
        if uv.has_all_extras {
            wanted.extend(optional.values().flatten().cloned());
        }
        for extra in &uv.extras {
            match optional.get(extra) {
                Some(more) => wanted.extend(more.iter().cloned()),
                None => say(format!("it has no optional part `{}`", shown(extra))),
            }
        }
        wanted.extend(uv.with.iter().cloned());
        let mut wanted: Vec<String> = wanted.iter().map(|it| it.trim().to_owned()).collect();
        wanted.sort();
        wanted.dedup();
        if wanted.len() > MOST_WANTED {
            say(format!("it asks for more than {MOST_WANTED} packages"));
        }
        for text in &wanted {
            match name_of(text) {
                None => say(format!(
                    "`{}` does not name a package of the index: folders, archives, addresses and \
                     repositories are not installed",
                    shown(text)
                )),
                Some(name) if self.sources.keys().any(|it| normal_name(it) == name) => {
                    say(format!(
                        "`{}` comes from elsewhere (`tool.uv.sources`), and packages of the index alone are \
                     installed: publish it, or pack its code into the bundle",
                        shown(&name)
                    ));
                }
                Some(_) => {}
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Dependencies {
            wanted,
            locked: self.locked.clone(),
        })
    }

    /// Returns the `module:object` of one of the project's own programs.
    pub(super) fn script(&self, name: &str) -> Option<&str> {
        let object = self.project.scripts.get(name)?.split('[').next()?.trim();
        let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | ':');
        (object.contains(':') && object.chars().all(is_plain)).then_some(object)
    }

    /// Returns the range of Python versions that the project supports.
    pub(super) fn python(&self) -> Option<String> {
        let wanted = self.project.requires_python.as_deref();
        wanted.filter(|it| it.len() <= MOST_LETTERS).map(shown)
    }
}

fn refused(file: &str, text: &str) -> Vec<EntryProblem> {
    vec![EntryProblem::new(
        "file",
        format!("`{}`: {text}", shown(file)),
    )]
}

/// Parses a file of the bundle; `None` if there is no such file.
fn parsed<T: DeserializeOwned>(
    archive: &mut Archive<'_>,
    file: &str,
) -> Result<Option<T>, Vec<EntryProblem>> {
    if !archive.has_file(file) {
        return Ok(None);
    }
    let bytes = archive.head(file, MOST_BYTES + 1).map_err(|it| vec![it])?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(refused(file, "it has more than 8 MiB"));
    }
    let text = String::from_utf8_lossy(&bytes);
    let read = toml::from_str(&text);
    read.map(Some).map_err(|error| {
        let said = shown(error.message());
        refused(
            file,
            &format!("it cannot be read ({said}): correct it, and pack the bundle again"),
        )
    })
}

/// Returns the locked version of each package of an index. A package with several locked versions is left
/// out: the right one depends on the machine, and pip chooses it.
fn locked(lock: Lock) -> Vec<String> {
    let mut versions: BTreeMap<String, Option<String>> = BTreeMap::new();
    for package in lock.packages {
        let version = package.version.filter(|it| is_version(it));
        let version = version.filter(|_| package.source.contains_key("registry"));
        let name = normal_name(&package.name);
        if name_of(&name).is_some() {
            let known = versions.contains_key(&name);
            versions.insert(name, version.filter(|_| !known));
        }
    }
    let pins = versions.into_iter();
    let pins =
        pins.filter_map(|(name, version)| version.map(|version| format!("{name}=={version}")));
    pins.take(MOST_LOCKED).collect()
}

fn is_version(text: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '!' | '+' | '-' | '_');
    !text.is_empty() && text.len() <= 100 && text.chars().all(is_letter)
}

/// Returns the name of the package that a requirement (PEP 508) needs from the index; `None` for any other
/// requirement. pip takes some of those for a folder or an address, and would run code from there.
fn name_of(text: &str) -> Option<String> {
    let is_line = text.len() <= MOST_LETTERS && text.chars().all(|c| (' '..='~').contains(&c));
    let wanted = text.split(';').next().filter(|_| is_line)?.trim_end();
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let end = wanted.find(|c| !is_part(c)).unwrap_or(wanted.len());
    let (name, rest) = wanted.split_at(end);
    let rest = rest.trim_start();
    let (extras, versions) = match rest.strip_prefix('[') {
        Some(inner) => inner.split_once(']')?,
        None => ("", rest),
    };
    let versions = versions.trim();
    let versions = match versions.strip_prefix('(') {
        Some(inner) => inner.strip_suffix(')')?.trim(),
        None => versions,
    };
    let is_end = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    let is_extra = |c: char| is_part(c) || matches!(c, ',' | ' ');
    let is_range = |range: &str| {
        let version = range.trim().trim_start_matches(['<', '>', '=', '!', '~']);
        let has_operator = version.len() < range.trim().len();
        has_operator && is_version(&version.trim_start().replace('*', "0"))
    };
    let fits = is_end(name.chars().next())
        && is_end(name.chars().next_back())
        && extras.chars().all(is_extra)
        && (versions.is_empty() || versions.split(',').all(is_range));
    fits.then(|| normal_name(name))
}

#[cfg(test)]
mod tests {
    use super::{Lock, locked, name_of};

    #[test]
    fn a_requirement_names_a_package_of_the_index_or_is_none() {
        for (text, name) in [
            ("mcp", Some("mcp")),
            ("Typing_Extensions", Some("typing-extensions")),
            ("mcp[cli]>=1.2,<2", Some("mcp")),
            ("mcp [cli, ws] (>= 1.2)", Some("mcp")),
            (
                "a ~=1.0; python_version < '3.11' and sys_platform == 'linux'",
                Some("a"),
            ),
            ("a==1.*", Some("a")),
            ("", None),
            ("-r other.txt", None),
            ("--index-url=https://i.test", None),
            ("a @ https://x.test/a.whl", None),
            ("a@git+https://x.test/a", None),
            ("https://x.test/a.whl", None),
            ("./a", None),
            ("bundle/a", None),
            ("a/", None),
            ("..", None),
            ("a.", None),
            ("a b", None),
            ("a\nb", None),
            ("a[", None),
            ("a (>=1", None),
            ("a>=1 -r b", None),
            ("a>=$(x)", None),
        ] {
            assert_eq!(name_of(text).as_deref(), name, "{text:?}");
        }
    }

    #[test]
    fn only_what_the_index_has_in_one_version_is_locked() {
        let lock: Lock = toml::from_str(
            r#"
version = 1
[[package]]
name = "mcp"
version = "1.2.3"
source = { registry = "https://pypi.org/simple" }
[[package]]
name = "own"
version = "0.1"
source = { editable = "." }
[[package]]
name = "Two_Ways"
version = "1"
source = { registry = "https://pypi.org/simple" }
[[package]]
name = "two-ways"
version = "2"
source = { registry = "https://pypi.org/simple" }
[[package]]
name = "odd"
version = "1 --index-url x"
source = { registry = "https://pypi.org/simple" }
[[package]]
name = "../odd"
version = "1"
source = { registry = "https://pypi.org/simple" }
"#,
        )
        .unwrap();
        assert_eq!(locked(lock), ["mcp==1.2.3"]);
    }
}
