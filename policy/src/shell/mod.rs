//! Command lines of bash, read as the simple commands that they may run. What is not surely
//! understood is [`Unread`].

mod cursor;
mod grammar;
mod options;
mod redirections;
mod runners;
mod words;

use thiserror::Error;

pub(crate) use self::options::{Harm, harm, offered_prefix};
pub(crate) use self::runners::base_name;
use self::{cursor::Cursor, runners::Look};

/// Longer command lines are not read, in bytes.
const MAX_BYTES: usize = 64 * 1024;
/// Commands of one line that are looked at.
const MAX_PARTS: usize = 512;
/// How deep commands may stand in commands.
const MAX_DEPTH: usize = 24;

/// Why a command line was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Unread {
    #[error("the command is no text")]
    NoText,
    #[error("the command is empty")]
    Empty,
    #[error("the command is too long or too deeply nested")]
    TooLarge,
    #[error("the command has a sign that cannot be seen or that looks like another one")]
    Sign,
    #[error("the command uses a form of the shell that rules do not read: {0}")]
    Form(&'static str),
    #[error("the command has no end: {0}")]
    Unfinished(&'static str),
}

/// A word of a command, after quotes are taken away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Word {
    /// The program gets exactly this.
    Literal(String),
    /// The program gets something that is only known when the command runs.
    Open {
        /// Whether it is at least one word, and none that begins an option.
        is_tame: bool,
    },
}

impl Word {
    pub(crate) fn literal(&self) -> Option<&str> {
        match self {
            Self::Literal(text) => Some(text),
            Self::Open { .. } => None,
        }
    }

    /// Whether the word may become options, or several words, or none.
    pub(crate) fn is_wild(&self) -> bool {
        *self == Self::Open { is_tame: false }
    }
}

/// Why what a command runs cannot be told from its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hidden {
    /// Variables are set, and some of them are commands.
    Assignment,
    /// What runs is only known when it runs.
    Expansion,
    /// The command changes what later words of the shell mean.
    ChangesShell,
    /// The command runs a text in a language that is not read here.
    Code,
    /// The command runs what it reads from its input.
    Input,
    /// The command has an option of which it is unknown whether it runs something.
    Option,
}

/// One simple command that a command line may run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Part {
    /// The command as it is written.
    pub(crate) text: String,
    pub(crate) words: Vec<Word>,
    /// Whether a redirection, or the command's own program, opens a file to write to it.
    pub(crate) redirects: bool,
    /// Texts that it gets as its input from here-documents and here-strings.
    pub(crate) inputs: Vec<String>,
    pub(crate) hidden: Option<Hidden>,
    /// The word that names the file which the command runs as a program. A prefix must name it.
    pub(crate) script_at: Option<usize>,
    /// Whether only deny and ask rules look at this reading of a command.
    pub(crate) is_shadow: bool,
    /// Whether it changes the folder in which another command of the line runs that goes by the files
    /// of its folder.
    pub(crate) leads: bool,
}

/// The commands that `text` may run, those that its commands run included.
pub(crate) fn read(text: &str) -> Result<Vec<Part>, Unread> {
    let mut parts = Vec::new();
    read_into(text, 0, &mut parts)?;
    if parts.is_empty() {
        return Err(Unread::Empty);
    }
    mark_leading(&mut parts);
    Ok(parts)
}

/// Marks commands that change the folder of others. Their order does not count: loops run it again.
fn mark_leading(parts: &mut [Part]) {
    if !parts.iter().any(options::is_of_folder) {
        return;
    }
    for part in parts {
        let program = part.words.first().and_then(Word::literal);
        part.leads = program.is_some_and(options::is_mover);
    }
}

fn read_into(text: &str, depth: usize, parts: &mut Vec<Part>) -> Result<(), Unread> {
    if text.len() > MAX_BYTES || depth > MAX_DEPTH {
        return Err(Unread::TooLarge);
    }
    if !text.chars().all(is_plain_sign) {
        return Err(Unread::Sign);
    }
    for part in grammar::commands(Cursor::new(text), depth)? {
        look_through(part, depth, parts)?;
    }
    Ok(())
}

/// Adds `part`, and before it what it runs.
fn look_through(mut part: Part, depth: usize, parts: &mut Vec<Part>) -> Result<(), Unread> {
    if depth > MAX_DEPTH || parts.len() >= MAX_PARTS {
        return Err(Unread::TooLarge);
    }
    let Look {
        commands,
        shadows,
        texts,
        hidden,
        script_at,
        writes,
    } = runners::look(&part.words);
    let reads_input = hidden == Some(Hidden::Input);
    part.redirects |= writes;
    part.hidden = part.hidden.or(hidden);
    part.script_at = script_at;
    let inner = |words: Vec<Word>, is_shadow: bool| Part {
        text: shown(&words),
        words,
        is_shadow: is_shadow || part.is_shadow,
        // What `sudo sh` runs stands in the here-document of `sudo`.
        inputs: part.inputs.clone(),
        ..Part::default()
    };
    let commands = commands.into_iter().map(|words| inner(words, false));
    let shadows = shadows.into_iter().map(|words| inner(words, true));
    for inner in commands.chain(shadows) {
        look_through(inner, depth + 1, parts)?;
    }
    let inputs = part.inputs.iter().filter(|_| reads_input).cloned();
    let texts: Vec<String> = texts.into_iter().chain(inputs).collect();
    for text in texts {
        match read_into(&text, depth + 1, parts) {
            Ok(()) => {}
            Err(Unread::TooLarge) => return Err(Unread::TooLarge),
            Err(_) => part.hidden = part.hidden.or(Some(Hidden::Code)),
        }
    }
    parts.push(part);
    Ok(())
}

/// Words for people; what is open is `…`.
fn shown(words: &[Word]) -> String {
    let words = words.iter().map(|word| word.literal().unwrap_or("…"));
    words.collect::<Vec<_>>().join(" ")
}

/// Signs that every reader of the text sees alike: no controls, no other spaces, nothing invisible
/// or combining.
fn is_plain_sign(sign: char) -> bool {
    match sign {
        '\n' | '\t' | ' '..='~' => true,
        sign if sign.is_ascii() || sign.is_whitespace() => false,
        // What Rust would show as an escape has no form of its own.
        sign => sign.escape_debug().len() == 1,
    }
}

#[cfg(test)]
mod tests;
