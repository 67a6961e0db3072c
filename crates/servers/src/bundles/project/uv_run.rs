//! Parses the command line of `uv run`: the project, the program to start, and the extra packages that it
//! needs.

use std::path::Path;

use super::super::path::shown;
use sepal_mcp::config::{Word, Words, named_packages};

/// Options that have no effect here, because packages are installed once and the program has no network
/// access.
const FLAGS: [&str; 22] = [
    "--active",
    "--dev",
    "--exact",
    "--frozen",
    "--isolated",
    "--locked",
    "--managed-python",
    "--native-tls",
    "--no-cache",
    "--no-config",
    "--no-default-groups",
    "--no-dev",
    "--no-editable",
    "--no-env-file",
    "--no-progress",
    "--no-python-downloads",
    "--no-sync",
    "--offline",
    "--quiet",
    "--verbose",
    "-q",
    "-v",
];
/// Such options with a value. The sandboxes' own Python is used.
const WITH_VALUE: [&str; 7] = [
    "--cache-dir",
    "--color",
    "--group",
    "--link-mode",
    "--no-group",
    "--python",
    "-p",
];

/// The parsed command line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct UvRun {
    /// The folder of the project, as written.
    pub(super) folder: Option<String>,
    /// Packages beside those that the project requires.
    pub(super) with: Vec<String>,
    /// The optional parts of the project.
    pub(super) extras: Vec<String>,
    pub(super) has_all_extras: bool,
    pub(super) target: Target,
    /// The arguments of the program.
    pub(super) arguments: Vec<String>,
    /// True if Python does not buffer its output.
    pub(super) is_unbuffered: bool,
}

/// The program to start.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// A file of the bundle, as written.
    File(String),
    /// A module, by its name.
    Module(String),
    /// A program of the project, or of one of its packages.
    Script(String),
}

/// Returns true if uv takes the word for a Python file.
fn is_python(word: &str) -> bool {
    let extension = Path::new(word).extension();
    extension.is_some_and(|it| it.eq_ignore_ascii_case("py"))
}

/// Returns true if a command is uv, in any folder.
pub(in crate::bundles) fn is_uv(command: &str) -> bool {
    let name = command.rsplit(['/', '\\']).next().unwrap_or(command);
    name.trim_end_matches(".exe") == "uv"
}

impl UvRun {
    /// Parses a command line that starts uv, or the program that uv would start.
    pub(super) fn read(command: &str, args: &[String]) -> Result<Self, String> {
        let mut run = Self {
            folder: None,
            with: Vec::new(),
            extras: Vec::new(),
            has_all_extras: false,
            target: Target::Script(String::new()),
            arguments: Vec::new(),
            is_unbuffered: false,
        };
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let mut words = Words::new(&args);
        let mut is_run = !is_uv(command);
        if is_run {
            return run.start(command, words);
        }
        loop {
            match words.next() {
                None => return Err("`uv run` names no program: name the file to run".to_owned()),
                Some(Word::End) => {}
                Some(Word::Plain("run")) if !is_run => is_run = true,
                Some(Word::Plain(word)) if is_run => return run.start(word, words),
                Some(Word::Plain(word)) => {
                    let word = shown(word);
                    return Err(format!("`uv {word}` is not understood here: use `uv run`"));
                }
                Some(Word::Option("-m" | "--module", value)) if is_run => {
                    let name = words.value("-m", value)?;
                    return run.module(name, words);
                }
                Some(Word::Option(option, value)) => run.option(&mut words, option, value)?,
            }
        }
    }

    fn option<'w>(
        &mut self,
        words: &mut Words<'w>,
        option: &'w str,
        value: Option<&'w str>,
    ) -> Result<(), String> {
        match option {
            "--directory" | "--project" => {
                self.folder = Some(words.value(option, value)?.to_owned());
            }
            "--with" | "-w" => {
                let with = named_packages(words.value(option, value)?);
                self.with.extend(with);
            }
            "--extra" => self.extras.push(words.value(option, value)?.to_owned()),
            "--all-extras" => self.has_all_extras = true,
            // The next word is a file anyway.
            "-s" | "--script" => {}
            _ if FLAGS.contains(&option) && value.is_none() => {}
            _ if WITH_VALUE.contains(&option) => drop(words.value(option, value)?),
            _ => {
                let option = shown(option);
                return Err(format!(
                    "`{option}` of `uv run` is not understood here: leave it out, or put it behind the \
                     program if it is for the server"
                ));
            }
        }
        Ok(())
    }

    /// Parses the program: the first word that is not an option.
    fn start(mut self, first: &str, mut words: Words<'_>) -> Result<Self, String> {
        let name = first.trim_end_matches(".exe");
        if name != "python" && name != "python3" && !name.starts_with("python3.") {
            let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
            self.target = if is_python(name) {
                Target::File(name.to_owned())
            } else if !name.is_empty() && name.chars().all(is_name) {
                Target::Script(name.to_owned())
            } else {
                return Err(format!(
                    "`{}` is neither a file of Python nor the name of a program: name the file to run",
                    shown(name)
                ));
            };
            self.arguments = words.rest();
            return Ok(self);
        }
        loop {
            match words.next() {
                Some(Word::Plain(path)) if is_python(path) => {
                    self.target = Target::File(path.to_owned());
                    self.arguments = words.rest();
                    return Ok(self);
                }
                Some(Word::Option("-m", value)) => {
                    let name = words.value("-m", value)?;
                    return self.module(name, words);
                }
                Some(Word::Option("-u", None)) => self.is_unbuffered = true,
                Some(Word::Option("-B", None)) => {}
                Some(Word::Option(word, _) | Word::Plain(word)) => {
                    return Err(format!(
                        "`python {}` is not understood here: name a file (`.py`), or a module with `-m`",
                        shown(word)
                    ));
                }
                Some(Word::End) | None => {
                    return Err("`python` is given no file: name the one to run".to_owned());
                }
            }
        }
    }

    fn module(mut self, name: &str, words: Words<'_>) -> Result<Self, String> {
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
        if name.is_empty() || !name.chars().all(is_name) {
            let name = shown(name);
            return Err(format!("`{name}` is no name of a module of Python"));
        }
        self.target = Target::Module(name.to_owned());
        self.arguments = words.rest();
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::{Target, UvRun};

    fn read(line: &str) -> Result<UvRun, String> {
        let mut words = line.split(' ').map(str::to_owned);
        let command = words.next().unwrap();
        UvRun::read(&command, &words.collect::<Vec<_>>())
    }

    #[test]
    fn what_uv_starts_is_found_among_its_words() {
        let file = |path: &str| Target::File(path.to_owned());
        let module = |name: &str| Target::Module(name.to_owned());
        let script = |name: &str| Target::Script(name.to_owned());
        for (line, folder, target, arguments) in [
            ("uv run server.py --x", None, file("server.py"), vec!["--x"]),
            (
                "/usr/bin/uv run --directory ${__dirname} src/a.py",
                Some("${__dirname}"),
                file("src/a.py"),
                vec![],
            ),
            (
                "uv --directory=${__dirname}/a -q run --frozen -p 3.12 -- a.py b",
                Some("${__dirname}/a"),
                file("a.py"),
                vec!["b"],
            ),
            ("uv run python -u a.py", None, file("a.py"), vec![]),
            ("uv run -m a.b c", None, module("a.b"), vec!["c"]),
            ("uv run python3.12 -m a", None, module("a"), vec![]),
            (
                "uv.exe run fastmcp run a.py",
                None,
                script("fastmcp"),
                vec!["run", "a.py"],
            ),
            ("python a.py", None, file("a.py"), vec![]),
        ] {
            let read = read(line).unwrap();
            assert_eq!(read.folder.as_deref(), folder, "{line}");
            assert_eq!(
                (read.target, read.arguments),
                (target, arguments.into_iter().map(str::to_owned).collect()),
                "{line}"
            );
            assert_eq!(read.is_unbuffered, line.contains("-u"), "{line}");
        }
        let more = read("uv run --with a,b>=1,<2 --extra cli --all-extras --with=c a.py").unwrap();
        assert_eq!(more.with, ["a", "b>=1,<2", "c"]);
        assert_eq!(
            (more.extras, more.has_all_extras),
            (vec!["cli".to_owned()], true)
        );
    }

    #[test]
    fn what_is_not_understood_is_refused_by_name() {
        for (line, word) in [
            ("uv", "no program"),
            ("uv run", "no program"),
            ("uv run --directory", "--directory"),
            ("uv sync", "uv sync"),
            ("uv tool run a", "uv tool"),
            ("uv run --index https://i.test a.py", "--index"),
            ("uv run --env-file .env a.py", "--env-file"),
            ("uv run --frozen=x a.py", "--frozen"),
            ("uv run ../a", "../a"),
            ("uv run ${user_config.a}", "user_config"),
            ("uv run python -c 1", "-c"),
            ("uv run python", "no file"),
            ("uv run python ${user_config.a}", "user_config"),
            ("uv run -m a/b", "a/b"),
        ] {
            let refused = read(line).unwrap_err();
            assert!(refused.contains(word), "{line}: {refused}");
        }
    }
}
