//! Converts `docker run … IMAGE args`, as the files of other systems spell it, into an image of our own
//! engine (S0.35): the program `docker` is never called.

use super::problem::EntryProblem;
use sepal_core::domain::{McpServerConfig, McpTransport};

/// Switches without effect here: the gateway attaches, removes and names containers itself.
const IGNORED: [&str; 8] = [
    "-i",
    "-t",
    "-it",
    "-ti",
    "--interactive",
    "--tty",
    "--rm",
    "--init",
];
/// Options with a value that have no effect here either.
const IGNORED_WITH_VALUE: [&str; 3] = ["--name", "--pull", "--platform"];

/// Returns the entry as an image if it is `docker run …`, and any other entry unchanged.
pub fn as_image(config: &McpServerConfig) -> Result<McpServerConfig, EntryProblem> {
    let is_docker = config.transport() == McpTransport::Stdio
        && matches!(config.command.as_deref(), Some("docker" | "podman"))
        && config.args.first().is_some_and(|word| word == "run");
    if !is_docker {
        return Ok(config.clone());
    }
    let mut image = McpServerConfig {
        transport: Some(McpTransport::StdioDocker),
        command: None,
        args: Vec::new(),
        ..config.clone()
    };
    let mut words = config.args.iter().skip(1);
    while let Some(word) = words.next() {
        if !word.starts_with('-') {
            image.container_image = Some(word.clone());
            image.args = words.cloned().collect();
            return Ok(image);
        }
        if IGNORED.contains(&word.as_str()) {
            continue;
        }
        let (option, value) = match word.split_once('=') {
            Some((option, value)) => (option, Some(value.to_owned())),
            None => (word.as_str(), words.next().cloned()),
        };
        let Some(value) = value else { break };
        take_option(&mut image, option, &value)?;
    }
    Err(EntryProblem::new("args", "`docker run` names no image"))
}

fn take_option(image: &mut McpServerConfig, option: &str, value: &str) -> Result<(), EntryProblem> {
    let refused = |text: &str| EntryProblem::new("args", format!("`{option}`: {text}"));
    match option {
        "-e" | "--env" => {
            let (name, value) = match value.split_once('=') {
                Some((name, value)) => (name.to_owned(), value.to_owned()),
                // `-e NAME` passes on a variable of the entry, or else of the environment.
                None => (value.to_owned(), format!("${{{value}}}")),
            };
            image.env.entry(name).or_insert(value);
            Ok(())
        }
        "--network" | "--net" if value == "none" => Ok(()),
        "--network" | "--net" => Err(refused("containers of servers have no network")),
        "-m" | "--memory" => {
            let mebibytes = mebibytes(value).ok_or_else(|| refused("not an amount of memory"))?;
            image.container_memory = Some(mebibytes);
            Ok(())
        }
        "--cpus" => {
            let cores = value
                .parse()
                .map_err(|_| refused("not a number of cores"))?;
            image.container_cpu = Some(cores);
            Ok(())
        }
        "-v" | "--volume" | "--mount" => Err(refused(
            "folders of the host are not mounted; use `workspace` for the session's files",
        )),
        _ if IGNORED_WITH_VALUE.contains(&option) => Ok(()),
        _ => Err(refused("this option of `docker run` is not supported")),
    }
}

fn mebibytes(text: &str) -> Option<u64> {
    let text = text.to_ascii_lowercase();
    let text = text.trim_end_matches('b');
    let digits = text.trim_end_matches(['k', 'm', 'g']);
    let amount: u64 = digits.parse().ok()?;
    match text.get(digits.len()..)? {
        "" => Some(amount >> 20),
        "k" => Some(amount >> 10),
        "m" => Some(amount),
        "g" => amount.checked_mul(1024),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::as_image;
    use sepal_core::domain::McpTransport;

    fn read(config: Value) -> Result<Value, String> {
        let config = serde_json::from_value(config).unwrap();
        let image = as_image(&config).map_err(|problem| problem.message)?;
        Ok(json!(image))
    }

    #[test]
    fn docker_run_becomes_an_image() {
        let image = read(json!({
            "command": "docker",
            "args": ["run", "-i", "--rm", "-e", "TOKEN", "-eX", "--memory=1g", "--cpus", "2",
                     "mcp/time", "--zone", "-v"],
            "env": {"TOKEN": "t"},
        }));
        assert!(image.is_err(), "-eX is not understood, and is not guessed");
        let image = read(json!({
            "command": "docker",
            "args": ["run", "-i", "--rm", "-e", "TOKEN", "-e", "A=b=c", "--memory=1g",
                     "--cpus", "2", "mcp/time", "--zone", "-v"],
            "env": {"TOKEN": "t"},
        }))
        .unwrap();
        assert_eq!(image["transport"], json!(McpTransport::StdioDocker));
        assert_eq!(image["containerImage"], "mcp/time");
        assert_eq!(image["args"], json!(["--zone", "-v"]));
        assert_eq!(image["env"], json!({"TOKEN": "t", "A": "b=c"}));
        assert_eq!(image["containerMemory"], 1024);
        assert_eq!(image["containerCpu"], 2.0);
        assert_eq!(image.get("command"), None);
    }

    #[test]
    fn what_reaches_the_host_is_refused_by_name() {
        for (args, word) in [
            (json!(["run", "-v", "/:/host", "x"]), "-v"),
            (json!(["run", "--privileged", "x", "y"]), "--privileged"),
            (json!(["run", "--network", "host", "x"]), "--network"),
            (json!(["run", "-i"]), "no image"),
        ] {
            let refused = read(json!({"command": "docker", "args": args})).unwrap_err();
            assert!(refused.contains(word), "{refused}");
        }
    }

    #[test]
    fn other_commands_stay_as_they_are() {
        let plain = json!({"command": "docker", "args": ["ps"]});
        assert_eq!(read(plain).unwrap()["command"], "docker");
    }
}
