//! Reads entries that name a package: `npx -y PACKAGE`, `uvx PACKAGE` and similar commands. The command stays
//! as a person wrote it; its package is installed once, and started without the runner.

mod fetching;
mod npm;
mod pypi;

pub(super) use fetching::installing_problem;
pub use pypi::{named_packages, normal_name};

use super::problem::EntryProblem;
use sepal_core::domain::{McpServerConfig, McpTransport, PackageRegistry, PackageSpec};

/// The package of an entry and the arguments of its program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageCommand {
    pub spec: PackageSpec,
    /// The arguments of the program.
    pub arguments: Vec<String>,
}

/// The reason that a runner's command line is not understood.
pub(crate) type Refusal = String;

/// Returns the package that an entry starts; `None` if its command is not a package runner.
pub fn package_of(config: &McpServerConfig) -> Result<Option<PackageCommand>, EntryProblem> {
    if config.transport() != McpTransport::Stdio {
        return Ok(None);
    }
    let Some(command) = config.command.as_deref() else {
        return Ok(None);
    };
    if let Some(bundle) = &config.bundle {
        let mut command = of_bundle(&bundle.sha256, command, &config.args);
        command.spec.allow_scripts = config.allow_scripts;
        return Ok(Some(command));
    }
    let program = program_name(command);
    let words: Vec<&str> = config.args.iter().map(String::as_str).collect();
    let read = npm::read(program, &words).or_else(|| pypi::read(program, &words));
    let Some(read) = read else { return Ok(None) };
    let mut command = read.map_err(|text| EntryProblem::new("args", text))?;
    command.spec.allow_scripts = config.allow_scripts;
    Ok(Some(command))
}

/// Returns the command of a bundle, which is never read as a package runner.
fn of_bundle(sha256: &str, command: &str, args: &[String]) -> PackageCommand {
    let words = std::iter::once(command).chain(args.iter().map(String::as_str));
    PackageCommand {
        spec: PackageSpec {
            registry: PackageRegistry::Bundle,
            name: sha256.to_owned(),
            version: None,
            extras: Vec::new(),
            with: Vec::new(),
            program: None,
            allow_scripts: false,
        },
        arguments: words.map(str::to_owned).collect(),
    }
}

/// Returns the name of a program without its folder and the extensions of Windows.
fn program_name(command: &str) -> &str {
    let name = command.rsplit(['/', '\\']).next().unwrap_or(command);
    name.trim_end_matches(".cmd").trim_end_matches(".exe")
}

/// Reads the words of a command line from left to right.
pub struct Words<'w> {
    left: std::slice::Iter<'w, &'w str>,
}

/// An option with its inline value, or another word.
pub enum Word<'w> {
    Option(&'w str, Option<&'w str>),
    Plain(&'w str),
    /// `--`: everything after it is plain.
    End,
}

impl<'w> Iterator for Words<'w> {
    type Item = Word<'w>;

    fn next(&mut self) -> Option<Word<'w>> {
        let word = *self.left.next()?;
        if word == "--" {
            return Some(Word::End);
        }
        if !word.starts_with('-') || word == "-" {
            return Some(Word::Plain(word));
        }
        let (option, value) = match word.split_once('=') {
            Some((option, value)) => (option, Some(value)),
            None => (word, None),
        };
        Some(Word::Option(option, value))
    }
}

impl<'w> Words<'w> {
    /// Reads these words.
    pub fn new(words: &'w [&'w str]) -> Self {
        Self { left: words.iter() }
    }

    /// Returns the value of an option: the part after `=`, or the next word.
    pub fn value(&mut self, option: &str, inline: Option<&'w str>) -> Result<&'w str, Refusal> {
        let value = inline.or_else(|| self.left.next().copied());
        value.ok_or_else(|| format!("`{option}` needs a value"))
    }

    /// Returns the words that have not been read yet.
    pub fn rest(self) -> Vec<String> {
        self.left.map(|word| (*word).to_owned()).collect()
    }
}

/// Returns the refusal of an unknown option; its meaning is not guessed.
fn unknown_option(runner: &str, option: &str) -> Refusal {
    format!(
        "`{option}` of `{runner}` is not understood here: leave it out (the package is installed once, \
         by this gateway), or put it behind the package if it is for the server"
    )
}

/// Returns the refusal of a package that is not named by its name in the registry.
fn elsewhere(package: &str) -> Refusal {
    format!(
        "`{package}` does not name a package of the registry: folders, archives, addresses and \
         repositories are not installed; publish it, or use an image"
    )
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::package_of;

    fn read(line: &str) -> Result<Value, String> {
        let mut words = line.split(' ');
        let config = json!({
            "command": words.next(), "args": words.collect::<Vec<_>>(),
        });
        let config = serde_json::from_value(config).unwrap();
        let found = package_of(&config).map_err(|problem| problem.message)?;
        Ok(found.map_or(Value::Null, |it| json!([it.spec, it.arguments])))
    }

    fn npm(name: &str, more: Value, arguments: Value) -> Value {
        spec("npm", name, more, arguments)
    }

    fn pypi(name: &str, more: Value, arguments: Value) -> Value {
        spec("pypi", name, more, arguments)
    }

    fn spec(registry: &str, name: &str, more: Value, arguments: Value) -> Value {
        let mut spec = json!({"registry": registry, "name": name});
        let (Value::Object(own), Value::Object(more)) = (&mut spec, more) else {
            panic!("an object");
        };
        own.extend(more);
        Value::Array(vec![spec, arguments])
    }

    #[test]
    fn runners_of_npm_name_a_package_its_version_and_its_program() {
        let check =
            |line: &str, expected: Value| assert_eq!(read(line).unwrap(), expected, "{line}");
        let everything = "@modelcontextprotocol/server-everything";
        check(
            "npx -y @modelcontextprotocol/server-everything",
            npm(everything, json!({}), json!([])),
        );
        check(
            "npx -y @modelcontextprotocol/server-everything@2026.1.14 stdio",
            npm(
                everything,
                json!({"version": "2026.1.14"}),
                json!(["stdio"]),
            ),
        );
        check(
            "npx.cmd --yes a@latest -v",
            npm("a", json!({}), json!(["-v"])),
        );
        check(
            "/usr/bin/npx a@^1.2",
            npm("a", json!({"version": "^1.2"}), json!([])),
        );
        check(
            "npx -y -p a@1 --package=b run --x",
            npm(
                "a",
                json!({"version": "1", "with": ["b"], "program": "run"}),
                json!(["--x"]),
            ),
        );
        check("npm exec -y -- a --x", npm("a", json!({}), json!(["--x"])));
        check("npm x a -- --x", npm("a", json!({}), json!(["--x"])));
        check("bunx a", npm("a", json!({}), json!([])));
        check("bun x a", npm("a", json!({}), json!([])));
        check("pnpm dlx a b", npm("a", json!({}), json!(["b"])));
        check("pnpx a", npm("a", json!({}), json!([])));
        check("yarn dlx a", npm("a", json!({}), json!([])));
    }

    #[test]
    fn runners_of_python_name_a_package_its_version_and_its_program() {
        let check =
            |line: &str, expected: Value| assert_eq!(read(line).unwrap(), expected, "{line}");
        check(
            "uvx mcp-server-fetch",
            pypi("mcp-server-fetch", json!({}), json!([])),
        );
        check(
            "uvx mcp-server-git==2026.1.14 --repository /workspace",
            pypi(
                "mcp-server-git",
                json!({"version": "==2026.1.14"}),
                json!(["--repository", "/workspace"]),
            ),
        );
        check(
            "uvx Some_Server@latest",
            pypi("some-server", json!({}), json!([])),
        );
        check(
            "uvx a@1.2",
            pypi("a", json!({"version": "==1.2"}), json!([])),
        );
        check(
            "uv tool run a>=1,<2",
            pypi("a", json!({"version": ">=1,<2"}), json!([])),
        );
        check(
            "uvx --from a[cli]==1 --with b,c==2 run -x",
            pypi(
                "a",
                json!({"version": "==1", "extras": ["cli"], "with": ["b", "c==2"], "program": "run"}),
                json!(["-x"]),
            ),
        );
        check("pipx run a", pypi("a", json!({}), json!([])));
        check(
            "pipx run --spec a==1 b",
            pypi("a", json!({"version": "==1", "program": "b"}), json!([])),
        );
    }

    #[test]
    fn other_commands_are_no_packages() {
        for line in [
            "node server.js",
            "npm start",
            "uv run server.py",
            "python3 -m x",
            "bun run x",
            "npx --offline a",
            "uvx --offline a",
            "npx-like a",
            "deno run npm:a",
        ] {
            assert_eq!(read(line).unwrap(), Value::Null, "{line}");
        }
    }

    #[test]
    fn what_cannot_be_installed_as_it_is_written_is_refused_by_name() {
        for (line, word) in [
            ("npx", "no package"),
            ("npx -y", "no package"),
            ("npx -p a", "no program"),
            ("npx --registry=https://r.test a", "--registry"),
            ("npx -c a", "-c"),
            ("npx github:a/b", "github:a/b"),
            ("npx a/b", "a/b"),
            ("npx ./a", "./a"),
            ("npx https://x.test/a.tgz", "https://x.test/a.tgz"),
            ("npx a@file:../b", "file:../b"),
            ("npx ../../etc", "../../etc"),
            ("uvx", "no package"),
            ("uvx --from git+https://x.test/a b", "git+https://x.test/a"),
            ("uvx --index-url https://i.test a", "--index-url"),
            ("uvx --python 3.9 a", "--python"),
            ("uvx ./a", "./a"),
            ("uvx --with -r a", "-r"),
            ("pipx run --pip-args=x a", "--pip-args"),
            ("uvx --from a", "no program"),
        ] {
            let refused = read(line).unwrap_err();
            assert!(refused.contains(word), "{line}: {refused}");
        }
    }
}
