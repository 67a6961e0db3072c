//! Where a value came from, and what is wrong with the settings: all of it at once.

use std::fmt;

/// Where one value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A flag of the command line.
    Flag(&'static str),
    /// A variable of the environment or of `.env`.
    Env(String),
    /// A key of the settings file, spelled as it stands there.
    File {
        name: String,
        /// The key in it.
        key: String,
    },
    /// Worked out from other settings; the text says how.
    Derived(&'static str),
    /// Nobody set it.
    Default,
}

impl Source {
    /// Whether somebody wrote it in the settings file.
    pub(super) fn is_file(&self) -> bool {
        matches!(self, Self::File { .. })
    }

    /// Whether it stands above the file: on the command line or in the environment.
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

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The key, or the variable when it belongs to no key.
    pub path: String,
    /// Where it was said; `None` when it is missing or follows from several settings.
    pub source: Option<Source>,
    pub what: String,
    /// What would be right.
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

/// Everything that is wrong; never empty.
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

/// The known name that was probably meant, as a question.
pub(super) fn did_you_mean<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    known
        .map(|candidate| (strsim::osa_distance(name, candidate), candidate))
        .filter(|(typos, _)| *typos <= 3)
        .min_by_key(|(typos, _)| *typos)
        .map(|(_, candidate)| format!("did you mean `{candidate}`?"))
}
