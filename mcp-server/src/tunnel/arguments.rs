//! The command line of a tunnel: `tunnel [--port N] -- PROGRAM ARGUMENTS…`.

use std::ffi::OsString;

/// What is run behind the tunnel.
#[derive(Debug, PartialEq)]
pub(crate) struct Arguments {
    /// The proxy's port on the loopback interface; 0 = one that is free.
    pub(crate) port: u16,
    pub(crate) program: OsString,
    /// What follows the program.
    pub(crate) rest: Vec<OsString>,
}

impl Arguments {
    /// Reads what follows the word `tunnel`.
    pub(crate) fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Self, String> {
        let mut words = words.into_iter();
        let mut port = 0;
        loop {
            let word = words.next().ok_or("`tunnel` needs `--` and a program")?;
            match word.to_str() {
                Some("--") => break,
                Some("--port") => {
                    port = words
                        .next()
                        .and_then(|value| value.to_str()?.parse().ok())
                        .ok_or("`--port` needs a number from 0 to 65535")?;
                }
                _ => {
                    return Err(format!(
                        "unknown option `{}` of `tunnel`; known: --port NUMBER, -- PROGRAM ARGUMENTS",
                        word.display()
                    ));
                }
            }
        }
        Ok(Self {
            port,
            program: words.next().ok_or("`tunnel` needs a program after `--`")?,
            rest: words.collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Arguments, String> {
        Arguments::parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn what_follows_the_dashes_is_the_programs() {
        let read = parse("-- node server.js --port 1").unwrap();
        assert_eq!((read.port, read.program.to_str()), (0, Some("node")));
        assert_eq!(read.rest, ["server.js", "--port", "1"].map(OsString::from));
        assert_eq!(parse("--port 3128 -- x").unwrap().port, 3128);
    }

    #[test]
    fn what_is_missing_or_unknown_is_named() {
        for line in ["", "--", "--port", "--port x -- y", "node", "-p 1 -- x"] {
            assert!(parse(line).unwrap_err().contains('`'), "`{line}`");
        }
    }
}
