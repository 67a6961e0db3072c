//! The source of a value, and the problems of the settings, which are reported together.

use std::fmt;

/// The source of one value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A command-line flag.
    Flag(&'static str),
    /// A variable of the environment or of `.env`.
    Env(String),
    /// A key of the settings file, spelled as in the file.
    File {
        name: String,
        /// The key in the file.
        key: String,
    },
    /// Derived from other settings; the text explains how.
    Derived(&'static str),
    /// The default.
    Default,
}

impl Source {
    /// Returns true if the value comes from the settings file.
    pub(super) fn is_file(&self) -> bool {
        matches!(self, Self::File { .. })
    }

    /// Returns true if the source overrides the file: the command line or the environment.
    pub(super) fn is_above_file(&self) -> bool {
        matches!(self, Self::Flag(_) | Self::Env(_))
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(name) => write!(f, "{name}"),
            Self::Env(name) => write!(f, "environment variable {name}"),
            Self::File { name, key } => write!(f, "{name}:{key}"),
            Self::Derived(how) => write!(f, "{how}"),
            Self::Default => write!(f, "default"),
        }
    }
}

/// One problem with the settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The key, or the variable if it belongs to no key.
    pub path: String,
    /// The source of the value; `None` if the value is missing or derived from several settings.
    pub source: Option<Source>,
    pub what: String,
    /// The values that would be accepted.
    pub accepted: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.what)?;
        if let Some(source) = &self.source {
            write!(f, "\n    set by: {source}")?;
        }
        write!(f, "\n    accepted: {}", self.accepted)
    }
}

/// All problems of the settings; never empty.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Problems(pub Vec<Problem>);

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.len() {
            1 => writeln!(f, "one setting is wrong")?,
            n => writeln!(f, "{n} settings are wrong")?,
        }
        for problem in &self.0 {
            write!(f, "\n  {problem}\n")?;
        }
        Ok(())
    }
}

/// Suggests the known name that was probably meant, as a question.
pub(super) fn did_you_mean<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    known
        .map(|candidate| (strsim::osa_distance(name, candidate), candidate))
        .filter(|(typos, _)| *typos <= 3)
        .min_by_key(|(typos, _)| *typos)
        .map(|(_, candidate)| format!("did you mean `{candidate}`?"))
}
