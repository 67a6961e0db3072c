//! Parses redirections and here-documents.

use super::cursor::{ends_word, is_name};
use super::grammar::Grammar;
use super::{Hidden, Part, Unread, Word};

/// A here-document whose text follows the line.
pub(super) struct HereDocument<'a> {
    end: &'a str,
    is_quoted: bool,
    strips_tabs: bool,
    /// The substitution depth at which it was announced.
    depth: usize,
    /// The index of the part that reads it; `None` for that of a group.
    pub(super) part: Option<usize>,
}

impl Grammar<'_> {
    /// Parses one redirection, if one is next.
    pub(super) fn redirection(&mut self, part: &mut Part) -> Result<bool, Unread> {
        let before = self.cursor;
        let number = self.cursor.take_while(|sign| sign.is_ascii_digit());
        let is_next = match self.cursor.peek() {
            Some('<' | '>') => !(number.is_empty() && self.starts_substitution()),
            Some('&') => number.is_empty() && self.cursor.starts_with("&>"),
            _ => false,
        };
        if !is_next {
            self.cursor = before;
            return Ok(false);
        }
        // `{HOME}<file` sets the variable to the number of the file descriptor.
        let names_variable = number.is_empty() && before.is_behind('}');
        if names_variable && part.words.last().is_some_and(Word::is_wild) {
            part.hidden = Some(Hidden::Assignment);
        }
        if self.cursor.take("<<<") {
            self.cursor.skip_blanks();
            if let Word::Literal(text) = self.target()? {
                part.inputs.push(text);
            }
            return Ok(true);
        }
        if self.cursor.take("<<") {
            self.announce_here_document()?;
            return Ok(true);
        }
        let operators = ["&>>", "&>", ">>", ">|", ">&", "<&", "<>", ">", "<"];
        let Some(operator) = operators.iter().find(|sign| self.cursor.take(sign)) else {
            return Err(Unread::Form("this redirection"));
        };
        self.cursor.skip_blanks();
        let target = self.target()?;
        let is_copy = operator.ends_with('&')
            && target.literal().is_some_and(|text| {
                text == "-" || (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()))
            });
        // Reading a file changes nothing, but for these names bash connects to a host.
        let is_only_read = *operator == "<"
            && target.literal().is_some_and(|name| {
                !name.starts_with("/dev/tcp/") && !name.starts_with("/dev/udp/")
            });
        part.redirects |= !is_copy && !is_only_read && target.literal() != Some("/dev/null");
        Ok(true)
    }

    /// Parses the word after a redirection.
    fn target(&mut self) -> Result<Word, Unread> {
        match self.cursor.peek() {
            Some(sign) if !ends_word(sign) || self.starts_substitution() => self.word(),
            _ => Err(Unread::Form("this redirection")),
        }
    }

    /// Refuses a line end within a word while a here-document waits for the line's end.
    pub(super) fn check_line_end(&self) -> Result<(), Unread> {
        if self.waiting.is_empty() {
            Ok(())
        } else {
            Err(Unread::Form("a here-document before the end of a word"))
        }
    }

    /// Parses the end word of a here-document, whose text follows the line.
    fn announce_here_document(&mut self) -> Result<(), Unread> {
        if self.substitutions > 0 {
            // Bash 5.2 rewrites the commands of a substitution before it runs them, and joins lines after a
            // here-document: `$(a <<X` … `b;`, `c & )` runs `b c`.
            return Err(Unread::Form("a here-document in a substitution"));
        }
        let strips_tabs = self.cursor.take("-");
        self.cursor.skip_blanks();
        let quote = ["'", "\"", "\\"]
            .into_iter()
            .find(|quote| self.cursor.take(quote));
        let end = self.cursor.take_while(is_name);
        let is_closed = match quote {
            Some(quote @ ("'" | "\"")) => self.cursor.take(quote),
            _ => true,
        };
        let is_whole = self.cursor.peek().is_none_or(ends_word);
        if end.is_empty() || !is_closed || !is_whole {
            return Err(Unread::Form("this end of a here-document"));
        }
        self.waiting.push(HereDocument {
            end,
            is_quoted: quote.is_some(),
            strips_tabs,
            depth: self.depth,
            part: None,
        });
        Ok(())
    }

    /// Reads the texts of all here-documents that the line announced.
    pub(super) fn here_documents(&mut self) -> Result<(), Unread> {
        for document in std::mem::take(&mut self.waiting) {
            // Announced outside of the substitution that these lines belong to.
            if document.depth > self.depth + 1 || document.depth < self.depth {
                return Err(Unread::Form("a here-document around a substitution"));
            }
            let mut text = String::new();
            loop {
                let line = self.cursor.take_while(|sign| sign != '\n');
                let stripped = if document.strips_tabs {
                    line.trim_start_matches('\t')
                } else {
                    line
                };
                if stripped == document.end {
                    break;
                }
                if !document.is_quoted && line.contains(['$', '`', '\\']) {
                    return Err(Unread::Form("an expansion in a here-document"));
                }
                text.push_str(stripped);
                text.push('\n');
                if self.cursor.next().is_none() {
                    return Err(Unread::Unfinished("a here-document"));
                }
            }
            if let Some(part) = document.part.and_then(|at| self.parts.get_mut(at)) {
                part.inputs.push(text);
            }
        }
        Ok(())
    }
}
