//! Finds commands that download something at each start and that the gateway does not install. Sandboxes have
//! no network, so such a command would hang until its timeout.

use super::{EntryProblem, package_of};
use sepal_core::domain::{McpServerConfig, McpTransport};

/// Programs that always download.
const RUNNERS: [&str; 6] = ["npx", "bunx", "pnpx", "uvx", "pipx", "dlx"];
/// Programs that download if their name is followed by one of these words.
const WITH_WORD: [(&str, &[&str]); 6] = [
    ("npm", &["exec", "x", "init", "create"]),
    ("pnpm", &["dlx", "create"]),
    ("yarn", &["dlx", "create"]),
    ("bun", &["x"]),
    ("uv", &["tool", "run"]),
    ("deno", &["run"]),
];
/// Options that keep the program from downloading.
const OFFLINE: [&str; 6] = [
    "--offline",
    "--no-install",
    "--no",
    "--cached-only",
    "--prefer-offline",
    "--no-index",
];

/// Returns the problem of an entry that would download its package at each start.
pub(in crate::config) fn installing_problem(config: &McpServerConfig) -> Option<EntryProblem> {
    match package_of(config) {
        Ok(None) => {}
        Ok(Some(_)) => return None,
        Err(problem) => return Some(problem),
    }
    let (field, words) = match config.transport() {
        McpTransport::Stdio => ("command", config.command.as_deref()),
        McpTransport::StdioDocker => ("args", None),
        McpTransport::Http | McpTransport::Sse => return None,
    };
    let args = config.args.iter().map(String::as_str);
    let words: Vec<&str> = words.into_iter().chain(args).collect();
    let runner = installs(&words)?;
    let text = format!(
        "`{runner}` fetches the package when it starts, and sandboxes have no network. Packages are \
         installed for `npx`, `npm exec`, `pnpm dlx`, `yarn dlx`, `bunx`, `uvx`, `uv tool run` and \
         `pipx run`: name the server with one of them, or name an image that has it \
         (`containerImage`), a program of the sandbox's own image, or the address of a remote \
         server. If the image has the package already, add `--offline`"
    );
    Some(EntryProblem::new(field, text))
}

/// Returns the program that would download a package.
fn installs(words: &[&str]) -> Option<String> {
    let (command, args) = words.split_first()?;
    let name = command.rsplit(['/', '\\']).next().unwrap_or(command);
    let name = name.trim_end_matches(".cmd").trim_end_matches(".exe");
    if args.iter().any(|word| OFFLINE.contains(word)) {
        return None;
    }
    if RUNNERS.contains(&name) {
        return Some(name.to_owned());
    }
    let (_, fetching) = WITH_WORD.iter().find(|(program, _)| *program == name)?;
    let mut plain = args.iter().filter(|word| !word.starts_with('-'));
    let word = *plain.next()?;
    let fetches = match (name, word) {
        // Both may run a local project or file; only sources named from outside are downloaded.
        ("uv", "run") => args.iter().any(|word| word.starts_with("--with")),
        ("deno", "run") => plain.any(|word| {
            ["npm:", "jsr:", "https:", "http:"]
                .iter()
                .any(|from| word.starts_with(from))
        }),
        (_, word) => fetching.contains(&word),
    };
    fetches.then(|| format!("{name} {word}"))
}

#[cfg(test)]
mod tests {
    use super::installs;

    #[test]
    fn what_fetches_a_package_at_its_start_is_known_by_its_words() {
        fn check(line: &str, expected: Option<&str>) {
            let words: Vec<&str> = line.split(' ').collect();
            assert_eq!(installs(&words).as_deref(), expected, "{line}");
        }
        check("npx -y some-server", Some("npx"));
        check("npx.cmd some-server", Some("npx"));
        check("/usr/bin/npx some-server", Some("npx"));
        check("npx --offline some-server", None);
        check("npx --no-install some-server", None);
        check("uvx mcp-server-time", Some("uvx"));
        check("uvx --offline mcp-server-time", None);
        check("bunx x", Some("bunx"));
        check("bun x some-server", Some("bun x"));
        check("bun run server.ts", None);
        check("npm exec some-server", Some("npm exec"));
        check("npm start", None);
        check("pnpm dlx some-server", Some("pnpm dlx"));
        check("yarn dlx some-server", Some("yarn dlx"));
        check("uv tool run some-server", Some("uv tool"));
        check("uv run server.py", None);
        check("uv run --with mcp server.py", Some("uv run"));
        check("pipx run some-server", Some("pipx"));
        check("deno run -A npm:some-server", Some("deno run"));
        check("deno run -A server.ts", None);
        check("node server.js", None);
        check("python3 -m npx", None);
        check("npx-like", None);
        check("", None);
    }
}
