//! Parses bash command lines into the simple commands that they may run. A command line that is not surely
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

/// The longest command line that is read, in bytes.
const MAX_BYTES: usize = 64 * 1024;
/// The most commands of one line.
const MAX_PARTS: usize = 512;
/// The deepest nesting of commands.
const MAX_DEPTH: usize = 24;

/// The reason that a command line was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Unread {
    #[error("The command is not a text")]
    NoText,
    #[error("The command is empty")]
    Empty,
    #[error("The command is too long or too deeply nested")]
    TooLarge,
    #[error("The command has a character that is invisible or looks like another one")]
    Sign,
    #[error("The command uses shell syntax that rules cannot read: {0}")]
    Form(&'static str),
    #[error("The command is incomplete: {0}")]
    Unfinished(&'static str),
}

/// A word of a command, after quote removal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Word {
    /// The exact text that the program gets.
    Literal(String),
    /// A text that is known only when the command runs.
    Open {
        /// True if it becomes at least one word, none of which begins an option.
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

    /// Returns true if the word may become options, several words, or none.
    pub(crate) fn is_wild(&self) -> bool {
        *self == Self::Open { is_tame: false }
    }
}

/// The reason that a command's words do not tell what it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hidden {
    /// Variables are set, and the values of some variables are commands.
    Assignment,
    /// The command itself is known only when it runs.
    Expansion,
    /// The command changes the meaning of later words of the shell.
    ChangesShell,
    /// The command runs a text in a language that is not parsed here.
    Code,
    /// The command runs its input.
    Input,
    /// The command has an unknown option, which may run something.
    Option,
}

/// One simple command that a command line may run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Part {
    /// The command as it is written.
    pub(crate) text: String,
    pub(crate) words: Vec<Word>,
    /// True if a redirection, or the command's own program, opens a file for writing.
    pub(crate) redirects: bool,
    /// Texts of here-documents and here-strings, which the command gets as its input.
    pub(crate) inputs: Vec<String>,
    pub(crate) hidden: Option<Hidden>,
    /// The word that names the file which the command runs as a program. A prefix must name it.
    pub(crate) script_at: Option<usize>,
    /// True if only deny and ask rules consider this reading of a command.
    pub(crate) is_shadow: bool,
    /// True if the command changes the folder for another command of the line that depends on files of its
    /// folder.
    pub(crate) leads: bool,
}

/// Returns the commands that `text` may run, including those that its commands run.
pub(crate) fn read(text: &str) -> Result<Vec<Part>, Unread> {
    let mut parts = Vec::new();
    read_into(text, 0, &mut parts)?;
    if parts.is_empty() {
        return Err(Unread::Empty);
    }
    mark_leading(&mut parts);
    Ok(parts)
}

/// Marks commands that change the folder of others. Their order does not matter: a loop may run it again.
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

/// Adds the commands that `part` runs, and then `part` itself.
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
        // `sudo sh` reads its commands from the here-document of `sudo`.
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

/// Formats words for people; an open word becomes `…`.
fn shown(words: &[Word]) -> String {
    let words = words.iter().map(|word| word.literal().unwrap_or("…"));
    words.collect::<Vec<_>>().join(" ")
}

/// Returns true for characters that every reader sees alike: no controls, no other spaces, nothing invisible
/// or combining.
fn is_plain_sign(sign: char) -> bool {
    match sign {
        '\n' | '\t' | ' '..='~' => true,
        sign if sign.is_ascii() || sign.is_whitespace() => false,
        // A character that Rust would escape has no glyph of its own.
        sign => sign.escape_debug().len() == 1,
    }
}

#[cfg(test)]
mod tests;
