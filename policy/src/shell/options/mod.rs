//! Decides whether the words after a rule's prefix are known to be harmless.
//!
//! [`forms`] is the table: for each command that it knows, the options that only read, those that write and
//! those that run something else. An option that the table does not list as reading is asked, and so is every
//! option of a program that the table does not have.
//!
//! Options are compared as they are written. An abbreviated long option never counts as one that reads,
//! because programs complete it from all their options, not only from those listed here. A word after an
//! option that takes a value is its value only if it does not look like an option itself: programs and
//! versions differ in which options take values.

mod forms;

use super::runners::checks_its_options;
use super::{Part, Word};
use forms::FORMS;

/// The most options of one command that are looked up; beyond that the call is asked. Each rule looks them up
/// anew.
const MAX_OPTIONS: usize = 64;

/// The reason that a command may do more than its rule's prefix says. Each names the word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Harm {
    /// The option writes to a file.
    Writes(String),
    /// The option names or starts a program, or a folder or configuration to run from.
    Runs(String),
    /// The effect of the option or the subcommand is unknown.
    Unknown(String),
    /// The command does more than read with this word.
    Operand(String),
    /// The command writes unless it has this option.
    Without(&'static str),
    /// The word is known only when the command runs, and may become an option.
    Open,
}

/// A command of the table: a program, or one of its subcommands.
#[derive(Debug, Clone, Copy)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a column of the table"
)]
pub(super) struct Form {
    command: &'static str,
    reads: &'static [&'static str],
    writes: &'static str,
    runs: &'static str,
    style: Style,
    operands: Operands,
    behind: Behind,
    /// True if `reads` holds every option of the program's manual, so that a word that is known only when the
    /// command runs cannot become an option that writes or runs.
    is_complete: bool,
    /// True if the card may offer it.
    is_offered: bool,
    /// True if files of the folder in which it runs decide what it does: settings, scripts, tests.
    is_of_folder: bool,
    /// The option without which the command writes.
    needs: Option<&'static str>,
    /// Texts in words that make the program start another one.
    running_texts: &'static [&'static str],
    /// True if only options before a subcommand are listed.
    is_global: bool,
}

/// The way in which a program parses its options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    /// As `getopt_long`: single letters may be combined, and a value may be part of the same word.
    Letters,
    /// Letters may be combined, but values are always separate words.
    LettersOnly,
    /// Each option is a word, with one dash or two.
    Words,
}

/// The operands that do not change what the prefix says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operands {
    Any,
    None,
    /// At most one, because the second names a file that is written.
    AtMostOne,
    /// Paths below the folder in which it runs: it runs what they name.
    Inside,
    /// Plain names of packages: with other characters they are addresses or folders.
    Names,
    /// Words that begin with `+`, as formats of `date` do.
    Formats,
    /// Only this word.
    Word(&'static str),
}

/// The meaning of words after `--`.
#[derive(Debug, Clone, Copy)]
enum Behind {
    Operands,
    /// Options of another program, which is unknown.
    Unknown,
    /// Options of another program, of which these only read.
    Options(&'static str),
}

/// The class of an option in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Reads,
    Writes,
    Runs,
    Unknown,
}

/// An option as it was parsed in a command.
#[derive(Debug, Clone, Copy)]
struct Reading {
    class: Class,
    /// True if the next word is its value.
    wants_value: bool,
}

impl Reading {
    const UNKNOWN: Self = Self {
        class: Class::Unknown,
        wants_value: false,
    };
}

/// An entry of the table, such as `-v`, `-n=` or `--color[=]`.
struct ListedOption<'a> {
    name: &'a str,
    value: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Value {
    None,
    /// In the same word only.
    Attached,
    /// In the same word or in the next one.
    Any,
}

impl<'a> ListedOption<'a> {
    fn read(entry: &'a str) -> Self {
        if let Some(name) = entry.strip_suffix("[=]") {
            let value = Value::Attached;
            Self { name, value }
        } else if let Some(name) = entry.strip_suffix('=') {
            let value = Value::Any;
            Self { name, value }
        } else {
            let value = Value::None;
            Self { name: entry, value }
        }
    }
}

/// Returns the reason that the words of `part` after the first `named` ones are not surely harmless; `None`
/// if they are.
pub(crate) fn harm(part: &Part, named: usize) -> Option<Harm> {
    let words = &part.words;
    if let Some(script) = part.script_at {
        return of_unknown(words, named.max(script + 1));
    }
    let Some(program) = words.first().and_then(Word::literal) else {
        return Some(Harm::Open);
    };
    let Some(name) = known_name(program) else {
        return of_unknown(words, named.max(1));
    };
    if checks_its_options(name) {
        return None;
    }
    match find(name, words, named) {
        FoundOption::Form(form, start) => form.harm(words, start, named),
        FoundOption::NotInTable(start) => of_unknown(words, named.max(start)),
        FoundOption::Harm(harm) => Some(harm),
        FoundOption::Nothing => None,
    }
}

/// Returns the words with which a card offers similar commands, if it may.
pub(crate) fn offered_prefix(part: &Part) -> Option<Vec<&str>> {
    let words: Vec<&str> = part.words.iter().map_while(Word::literal).collect();
    let name = words.first().copied()?;
    let FoundOption::Form(form, start) = find(name, &part.words, usize::MAX) else {
        return None;
    };
    let is_at_once = start == form.command.split(' ').count();
    let mut length = start;
    if form.takes_script() {
        words.get(start).filter(|word| is_plain_name(word))?;
        length += 1;
    }
    if let Some(option) = form.needs {
        words.get(start).filter(|word| **word == option)?;
        length += 1;
    }
    let is_harmless = form.is_offered && is_at_once && harm(part, length).is_none();
    is_harmless.then(|| words.into_iter().take(length).collect())
}

/// Returns true if files of the folder in which the command runs may decide what it does.
pub(super) fn is_of_folder(part: &Part) -> bool {
    if part.script_at.is_some() {
        return true;
    }
    let Some(program) = part.words.first() else {
        return false;
    };
    let Some(name) = program.literal().and_then(known_name) else {
        return true;
    };
    if is_mover(name) || checks_its_options(name) {
        return false;
    }
    match find(name, &part.words, usize::MAX) {
        FoundOption::Form(form, _) => form.is_of_folder,
        FoundOption::NotInTable(_) | FoundOption::Harm(_) => true,
        FoundOption::Nothing => FORMS
            .iter()
            .any(|form| form.program() == name && form.is_of_folder),
    }
}

/// Returns true if the builtin changes the folder of all later commands.
pub(super) fn is_mover(name: &str) -> bool {
    matches!(name, "cd" | "pushd" | "popd")
}

/// Returns the table's name of a program: `/usr/bin/git` is `git`; `./git` may be any program.
fn known_name(program: &str) -> Option<&str> {
    let name = program
        .strip_prefix("/usr/bin/")
        .or_else(|| program.strip_prefix("/bin/"))
        .unwrap_or(program);
    (!name.contains('/')).then_some(name)
}

enum FoundOption {
    /// The entry, and the index of the first word after its name.
    Form(&'static Form, usize),
    /// No entry; the index of the first word that may be an option.
    NotInTable(usize),
    Harm(Harm),
    /// The command has no subcommand.
    Nothing,
}

fn find(name: &str, words: &[Word], named: usize) -> FoundOption {
    let mut forms = FORMS.iter().filter(|form| form.program() == name);
    let is_alone = |form: &&Form| !form.is_global && form.command == name;
    if let Some(form) = forms.clone().find(is_alone) {
        return FoundOption::Form(form, 1);
    }
    if forms.clone().next().is_none() {
        return FoundOption::NotInTable(1);
    }
    let globals = forms.clone().find(|form| form.is_global);
    let mut at = 1;
    loop {
        let Some(word) = words.get(at) else {
            return FoundOption::Nothing;
        };
        let Some(text) = word.literal() else {
            return FoundOption::Harm(Harm::Open);
        };
        if !is_option(text) {
            let is_named = |form: &&Form| {
                let mut parts = form.command.split(' ');
                parts.next() == Some(name) && parts.next() == Some(text)
            };
            return match forms.find(is_named) {
                Some(form) => FoundOption::Form(form, at + 1),
                None if at < named => FoundOption::NotInTable(at + 1),
                None => FoundOption::Harm(Harm::Unknown(shown(text))),
            };
        }
        let reading = globals.map_or(Reading::UNKNOWN, |form| form.option(text));
        if let Some(harm) = reading.harm(text).filter(|_| at >= named) {
            return FoundOption::Harm(harm);
        }
        at += 1 + usize::from(reading.wants_value);
    }
}

/// Returns the harm of words of an unknown program that may be options.
fn of_unknown(words: &[Word], from: usize) -> Option<Harm> {
    let rest = words.get(from..).unwrap_or_default();
    rest.iter().find_map(|word| match word {
        Word::Literal(text) if is_option(text) || (text.starts_with('+') && text.len() > 1) => {
            Some(Harm::Unknown(shown(text)))
        }
        Word::Literal(_) | Word::Open { is_tame: true } => None,
        Word::Open { is_tame: false } => Some(Harm::Open),
    })
}

/// Returns true for an option; `-` alone is a file name.
fn is_option(text: &str) -> bool {
    text.len() > 1 && text.starts_with('-')
}

/// Returns true if a word after an option that takes a value is that value: `-5` is one, `-o` may be an
/// option.
fn is_value(word: &Word) -> bool {
    let is_number = |text: &str| {
        text.bytes()
            .skip(1)
            .all(|byte| byte.is_ascii_digit() || byte == b'.')
    };
    word.literal()
        .is_some_and(|text| !is_option(text) || is_number(text))
}

/// Formats the word for a reason: without its value, and shortened.
fn shown(text: &str) -> String {
    let name = text.split('=').next().unwrap_or(text);
    name.chars().take(60).collect()
}

/// Returns true for a name as scripts of a project have them.
fn is_plain_name(word: &str) -> bool {
    word.starts_with(|sign: char| sign.is_ascii_alphabetic())
        && word
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_:".contains(&byte))
}

impl Reading {
    fn harm(self, text: &str) -> Option<Harm> {
        match self.class {
            Class::Reads => None,
            Class::Writes => Some(Harm::Writes(shown(text))),
            Class::Runs => Some(Harm::Runs(shown(text))),
            Class::Unknown => Some(Harm::Unknown(shown(text))),
        }
    }
}

impl Form {
    fn program(&self) -> &'static str {
        self.command.split(' ').next().unwrap_or_default()
    }

    /// Returns true if its first operand names a script of the project.
    fn takes_script(&self) -> bool {
        self.command.ends_with(" run") && self.program() != "vitest"
    }

    fn entries(&self) -> impl Iterator<Item = (Class, ListedOption<'static>)> {
        let reads = self.reads.iter().flat_map(|list| list.split_whitespace());
        let reads = reads.map(|entry| (Class::Reads, entry));
        let writes = self.writes.split_whitespace();
        let runs = self.runs.split_whitespace();
        reads
            .chain(writes.map(|entry| (Class::Writes, entry)))
            .chain(runs.map(|entry| (Class::Runs, entry)))
            .map(|(class, entry)| (class, ListedOption::read(entry)))
    }

    fn harm(&self, words: &[Word], start: usize, named: usize) -> Option<Harm> {
        let mut at = start;
        let (mut operands, mut options) = (0, 0);
        let mut is_behind = false;
        let has_needed = |option| words.iter().any(|word| word.literal() == Some(option));
        while let Some(word) = words.get(at) {
            let is_named = at < named;
            at += 1;
            let Word::Literal(text) = word else {
                if !is_named && !self.takes_open(word, is_behind) {
                    return Some(Harm::Open);
                }
                continue;
            };
            if self.running_texts.iter().any(|it| text.contains(it)) && !is_named {
                return Some(Harm::Runs(shown(text)));
            }
            if text == "--" && !is_behind && self.command != "find" {
                is_behind = true;
                continue;
            }
            if self.command == "find" && matches!(text.as_str(), "-exec" | "-execdir") {
                // The command that `find` executes is a part of its own.
                at = super::runners::end_of_exec(words, at);
                continue;
            }
            let reading = match self.behind {
                _ if !is_option(text) => None,
                _ if !is_behind => Some(self.option(text)),
                Behind::Operands => None,
                Behind::Unknown => Some(Reading::UNKNOWN),
                Behind::Options(list) => {
                    let entries = list.split_whitespace();
                    let entries = entries.map(|entry| (Class::Reads, ListedOption::read(entry)));
                    Some(read_option(text, Style::Letters, entries))
                }
            };
            let Some(reading) = reading else {
                operands += 1;
                if !is_named && !self.takes_operand(text, operands) {
                    return Some(Harm::Operand(shown(text)));
                }
                continue;
            };
            options += 1;
            if options > MAX_OPTIONS {
                return Some(Harm::Unknown(shown(text)));
            }
            let has_value = reading.wants_value && words.get(at).is_some_and(is_value);
            // A prefix that ends with an option that runs something does not cover the option's value.
            let is_named = is_named && (!has_value || at < named);
            if let Some(harm) = reading.harm(text).filter(|_| !is_named) {
                return Some(harm);
            }
            at += usize::from(has_value);
        }
        let needed = self.needs.filter(|option| !has_needed(*option));
        needed.map(Harm::Without)
    }

    /// Returns true if the expansion of the word cannot matter.
    fn takes_open(&self, word: &Word, is_behind: bool) -> bool {
        let is_operand = !word.is_wild() || (is_behind && matches!(self.behind, Behind::Operands));
        self.is_complete || (is_operand && self.operands == Operands::Any)
    }

    /// Returns true if an operand, the `count`th, does not change what the prefix says.
    fn takes_operand(&self, text: &str, count: usize) -> bool {
        match self.operands {
            Operands::Any => true,
            Operands::None => false,
            Operands::AtMostOne => count <= 1,
            Operands::Inside => {
                !text.starts_with(['/', '~', '@', '+'])
                    && !text.contains("://")
                    && text.split('/').all(|name| name != "..")
            }
            Operands::Names => {
                let name = match text.strip_prefix('@') {
                    Some(scoped) => scoped.split_once('/').map(|(_, name)| name),
                    None => Some(text),
                };
                name.is_some_and(|name| {
                    name.starts_with(|sign: char| sign.is_ascii_alphanumeric())
                        && !name.contains(['/', ':', '\\'])
                })
            }
            Operands::Formats => text.starts_with('+'),
            Operands::Word(word) => text == word,
        }
    }

    fn option(&self, text: &str) -> Reading {
        let is_number = text.bytes().skip(1).all(|byte| byte.is_ascii_digit());
        let takes_number = |(class, entry): (Class, ListedOption<'_>)| {
            class == Class::Reads && entry.name == "-NUM"
        };
        if is_number && self.entries().any(takes_number) {
            return Reading {
                class: Class::Reads,
                wants_value: false,
            };
        }
        read_option(text, self.style, self.entries())
    }
}

fn read_option<'a>(
    text: &str,
    style: Style,
    entries: impl Iterator<Item = (Class, ListedOption<'a>)>,
) -> Reading {
    let entries: Vec<(Class, ListedOption<'a>)> = entries.collect();
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (text, None),
    };
    let with_one_dash = name.strip_prefix('-').filter(|rest| rest.starts_with('-'));
    let is_name =
        |listed: &str| listed == name || (style == Style::Words && Some(listed) == with_one_dash);
    if let Some((class, entry)) = entries.iter().find(|(_, entry)| is_name(entry.name)) {
        return match (entry.value, value) {
            (Value::None, Some(_)) => Reading {
                class: Class::Unknown.max_harm(*class),
                wants_value: false,
            },
            (kind, value) => Reading {
                class: *class,
                wants_value: kind == Value::Any && value.is_none(),
            },
        };
    }
    if text.starts_with("--") || style == Style::Words {
        // The harmful option that it may abbreviate, if there is one.
        let may_be = |(class, entry): &&(Class, ListedOption<'_>)| {
            *class != Class::Reads && name.len() > 3 && entry.name.starts_with(name)
        };
        let class = entries.iter().find(may_be).map(|(class, _)| *class);
        return Reading {
            class: class.unwrap_or(Class::Unknown),
            wants_value: false,
        };
    }
    read_letters(text, style, &entries)
}

/// Parses combined letters: `-la` is `-l -a`, and `-n5` is `-n` with its value.
fn read_letters(text: &str, style: Style, entries: &[(Class, ListedOption<'_>)]) -> Reading {
    let mut wants_value = false;
    let mut letters = text.strip_prefix('-').unwrap_or(text).chars();
    while let Some(letter) = letters.next() {
        let is_letter = |listed: &str| {
            let mut signs = listed.chars().skip(1);
            signs.next() == Some(letter) && signs.next().is_none()
        };
        let found = entries.iter().find(|(_, entry)| is_letter(entry.name));
        let Some((class, entry)) = found else {
            return Reading::UNKNOWN;
        };
        if *class != Class::Reads {
            return Reading {
                class: *class,
                wants_value: entry.value == Value::Any && letters.as_str().is_empty(),
            };
        }
        match entry.value {
            Value::None => {}
            _ if style == Style::LettersOnly => wants_value = true,
            Value::Attached => break,
            Value::Any => {
                wants_value = letters.as_str().is_empty();
                break;
            }
        }
    }
    Reading {
        class: Class::Reads,
        wants_value,
    }
}

impl Class {
    /// Returns the class of an option that is written with a value although it takes none.
    fn max_harm(self, listed: Self) -> Self {
        if listed == Self::Reads { self } else { listed }
    }
}

#[cfg(test)]
mod tests;
