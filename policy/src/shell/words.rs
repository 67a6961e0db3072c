//! Parses words: quotes, expansions, and the parts that are known before the command runs.

use super::cursor::{ends_word, is_name, is_name_start};
use super::grammar::{Grammar, begins_no_option};
use super::{Unread, Word};

/// A word that is being read.
#[derive(Default)]
struct Draft {
    /// The literal text before the first expansion, or all of it.
    text: String,
    is_open: bool,
    /// True if the word may become several words, none, or begin in an unknown way.
    is_wild: bool,
}

impl Draft {
    fn push(&mut self, sign: char) {
        if !self.is_open {
            self.text.push(sign);
        }
    }

    /// Records an expansion; `is_tame` is true if it begins no option by itself.
    fn open(&mut self, is_tame: bool) {
        if !self.is_open {
            self.is_wild |= if self.text.is_empty() {
                !is_tame
            } else {
                !begins_no_option(&self.text)
            };
        }
        self.is_open = true;
    }

    /// Records an expansion that may become several words.
    fn split(&mut self) {
        self.is_open = true;
        self.is_wild = true;
    }

    fn finish(self) -> Word {
        if self.is_open {
            Word::Open {
                is_tame: !self.is_wild,
            }
        } else {
            Word::Literal(self.text)
        }
    }
}

impl Grammar<'_> {
    /// Parses the next word.
    pub(super) fn word(&mut self) -> Result<Word, Unread> {
        if self.starts_substitution() {
            self.cursor.next();
            self.cursor.next();
            self.substitution()?;
            return match self.cursor.peek() {
                // The word is the name of a pipe, `/dev/fd/63`.
                None => Ok(Word::Open { is_tame: true }),
                Some(sign) if ends_word(sign) && sign != '(' => Ok(Word::Open { is_tame: true }),
                Some(_) => Err(Unread::Form("this substitution")),
            };
        }
        let start = self.cursor;
        let mut draft = Draft::default();
        while let Some(sign) = self.cursor.peek() {
            if ends_word(sign) {
                break;
            }
            self.cursor.next();
            self.unquoted(sign, &mut draft, matches!(self.cursor.since(&start), "~"))?;
        }
        if self.cursor.starts_with("(") || self.starts_substitution() {
            return Err(Unread::Form("a parenthesis in a word"));
        }
        if self.cursor.since(&start) == "[" {
            return Ok(Word::Literal("[".to_owned()));
        }
        Ok(draft.finish())
    }

    /// Parses one unquoted character, which was just read.
    fn unquoted(&mut self, sign: char, draft: &mut Draft, is_home: bool) -> Result<(), Unread> {
        match sign {
            '\'' => self.single_quotes(draft)?,
            '"' => self.double_quotes(draft)?,
            '\\' => match self.cursor.next() {
                None | Some('\n') => return Err(Unread::Form("a line that goes on within a word")),
                Some(sign) => draft.push(sign),
            },
            '`' => {
                self.backquotes(false)?;
                draft.split();
            }
            '$' => self.dollar(draft, false)?,
            '*' | '?' | '[' => draft.open(false),
            '~' if is_home => draft.open(false),
            // Bash expands the tilde in words that look like assignments.
            '=' | ':' if self.cursor.starts_with("~") => {
                draft.push(sign);
                draft.open(false);
            }
            '{' if self.cursor.take("}") => {
                draft.push('{');
                draft.push('}');
            }
            '{' | '}' => draft.split(),
            sign => draft.push(sign),
        }
        Ok(())
    }

    fn single_quotes(&mut self, draft: &mut Draft) -> Result<(), Unread> {
        loop {
            match self.cursor.next() {
                None => return Err(Unread::Unfinished("a quotation")),
                Some('\'') => return Ok(()),
                Some(sign) => {
                    if sign == '\n' {
                        self.check_line_end()?;
                    }
                    draft.push(sign);
                }
            }
        }
    }

    fn double_quotes(&mut self, draft: &mut Draft) -> Result<(), Unread> {
        loop {
            match self.cursor.next() {
                None => return Err(Unread::Unfinished("a quotation")),
                Some('"') => return Ok(()),
                Some('`') => {
                    self.backquotes(true)?;
                    draft.open(false);
                }
                Some('$') => self.dollar(draft, true)?,
                Some('\\') => match self.cursor.next() {
                    None => return Err(Unread::Unfinished("a quotation")),
                    Some('\n') => return Err(Unread::Form("a line that goes on within a word")),
                    Some(sign @ ('$' | '`' | '"' | '\\')) => draft.push(sign),
                    Some(sign) => {
                        draft.push('\\');
                        draft.push(sign);
                    }
                },
                Some(sign) => {
                    if sign == '\n' {
                        self.check_line_end()?;
                    }
                    draft.push(sign);
                }
            }
        }
    }

    /// Parses the commands between backquotes, the first of which was just read. A backslash in them escapes
    /// `$`, a backquote and itself, and within double quotes also a double quote.
    fn backquotes(&mut self, is_quoted: bool) -> Result<(), Unread> {
        let mut text = String::new();
        loop {
            match self.cursor.next() {
                None => return Err(Unread::Unfinished("a backquote")),
                Some('`') => break,
                Some('\\') => match self.cursor.next() {
                    None => return Err(Unread::Unfinished("a backquote")),
                    Some('\n') => return Err(Unread::Form("a line that goes on within a word")),
                    Some(sign @ ('$' | '`' | '\\')) => text.push(sign),
                    Some('"') if is_quoted => text.push('"'),
                    Some(sign) => {
                        text.push('\\');
                        text.push(sign);
                    }
                },
                Some(sign) => {
                    if sign == '\n' {
                        self.check_line_end()?;
                    }
                    text.push(sign);
                }
            }
        }
        self.backquoted(&text)
    }

    /// Parses the expansion after a `$`, which was just read.
    fn dollar(&mut self, draft: &mut Draft, is_quoted: bool) -> Result<(), Unread> {
        let is_tame = match self.cursor.peek() {
            Some('(') => {
                if self.cursor.starts_with("((") {
                    return Err(Unread::Form("arithmetic"));
                }
                self.cursor.next();
                self.substitution()?;
                false
            }
            Some('{') => {
                self.cursor.next();
                let name = self.cursor.take_while(is_name);
                if !name.starts_with(is_name_start) || !self.cursor.take("}") {
                    return Err(Unread::Form("this kind of variable"));
                }
                self.is_tame_variable(name)
            }
            Some(sign) if is_name_start(sign) => {
                let name = self.cursor.take_while(is_name);
                self.is_tame_variable(name)
            }
            Some('0'..='9' | '@' | '*' | '#' | '?' | '$' | '!' | '-') => {
                self.cursor.next();
                draft.split();
                return Ok(());
            }
            Some('"') if is_quoted => {
                draft.push('$');
                return Ok(());
            }
            None => {
                draft.push('$');
                return Ok(());
            }
            Some(sign) if !is_quoted && ends_word(sign) => {
                draft.push('$');
                return Ok(());
            }
            Some(_) => return Err(Unread::Form("this use of `$`")),
        };
        if is_quoted {
            draft.open(is_tame);
        } else {
            draft.split();
        }
        Ok(())
    }

    fn is_tame_variable(&self, name: &str) -> bool {
        let mut around = self.loops.iter().rev();
        around.any(|variable| variable.name == name && variable.is_tame)
    }
}
