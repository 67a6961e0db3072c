//! The command line: five options, parsed by hand to keep the binary small.

use std::{ffi::OsString, path::PathBuf, time::Duration};

/// How long one command may run when nothing else is said.
const DEFAULT_COMMAND_TIMEOUT_S: u64 = 30;

/// Two streams of this size, in base64, fit the 4 MiB that the gateway reads of one message.
const MAX_OUTPUT_BYTES: usize = 1 << 20;

/// What the operator chose.
#[derive(Debug, PartialEq)]
pub(crate) struct Settings {
    /// The only folder that the file tools can reach.
    pub(crate) workspace: PathBuf,
    /// Default and maximum of one command.
    pub(crate) command_timeout: Duration,
    /// Most that is kept of each stream of a command.
    pub(crate) output_bytes: usize,
    /// Print the tool definitions and leave.
    pub(crate) describe: bool,
}

impl Settings {
    pub(crate) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, String> {
        let mut settings = Self {
            workspace: PathBuf::from("/workspace"),
            command_timeout: Duration::from_secs(DEFAULT_COMMAND_TIMEOUT_S),
            output_bytes: 0,
            describe: false,
        };
        let mut arguments = arguments.into_iter();
        while let Some(name) = arguments.next() {
            match name.to_str() {
                Some("--describe") => settings.describe = true,
                Some("--workspace") => {
                    let value = arguments.next().ok_or("`--workspace` needs a folder")?;
                    settings.workspace = value.into();
                }
                Some("--command-timeout") => {
                    settings.command_timeout = arguments
                        .next()
                        .and_then(|value| value.to_str()?.parse().ok())
                        .filter(|seconds| *seconds > 0)
                        .map(Duration::from_secs)
                        .ok_or("`--command-timeout` needs a whole number of seconds, 1 or more")?;
                }
                Some("--output-bytes") => {
                    settings.output_bytes = arguments
                        .next()
                        .and_then(|value| value.to_str()?.parse().ok())
                        .filter(|bytes| *bytes <= MAX_OUTPUT_BYTES)
                        .ok_or("`--output-bytes` needs a whole number of bytes, 1048576 at most")?;
                }
                _ => {
                    return Err(format!(
                        "unknown option `{}`; known: --workspace FOLDER, --command-timeout SECONDS, \
                         --output-bytes BYTES, --describe",
                        name.display()
                    ));
                }
            }
        }
        Ok(settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Settings, String> {
        Settings::parse(line.split_whitespace().map(OsString::from))
    }

    /// Asserts S2.50.
    #[test]
    fn options_have_defaults_and_can_be_set() {
        let settings = parse("").unwrap();
        assert_eq!(settings.workspace, PathBuf::from("/workspace"));
        assert_eq!(settings.command_timeout, Duration::from_secs(30));
        assert_eq!(settings.output_bytes, 0);
        let line = "--workspace /w --command-timeout 5 --output-bytes 1024 --describe";
        let settings = parse(line).unwrap();
        assert_eq!(settings.output_bytes, 1024);
        assert_eq!(settings.workspace, PathBuf::from("/w"));
        assert_eq!(settings.command_timeout, Duration::from_secs(5));
        assert!(settings.describe);
    }

    #[test]
    fn wrong_options_are_named() {
        for line in [
            "--command-timeout 0",
            "--command-timeout x",
            "--output-bytes -1",
            "--output-bytes 1048577",
            "--workspace",
            "-x",
        ] {
            assert!(
                parse(line).unwrap_err().contains('`'),
                "`{line}` was accepted"
            );
        }
    }
}
