//! Tracks a position in a command line.

/// The unread rest of a command line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Returns the unread rest.
    pub(super) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(super) fn starts_with(&self, prefix: &str) -> bool {
        self.rest().starts_with(prefix)
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let sign = self.peek()?;
        self.at += sign.len_utf8();
        Some(sign)
    }

    /// Moves past `prefix`, if it is next.
    pub(super) fn take(&mut self, prefix: &str) -> bool {
        let is_next = self.starts_with(prefix);
        if is_next {
            self.at += prefix.len();
        }
        is_next
    }

    /// Returns the next characters for which `is_like` is true, and moves past them.
    pub(super) fn take_while(&mut self, is_like: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|sign| !is_like(sign)).unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or_default()
    }

    /// Returns true if `sign` was read last.
    pub(super) fn is_behind(&self, sign: char) -> bool {
        self.text.get(..self.at).unwrap_or_default().ends_with(sign)
    }

    /// Returns the text read since `start`.
    pub(super) fn since(&self, start: &Self) -> &'a str {
        self.text.get(start.at..self.at).unwrap_or_default()
    }

    /// Skips blanks and line continuations (a backslash before a newline), but only where no word could
    /// continue on the next line.
    pub(super) fn skip_blanks(&mut self) {
        loop {
            self.take_while(is_blank);
            let before = self.text.get(..self.at).unwrap_or_default();
            let is_between = before.is_empty() || before.ends_with([' ', '\t', '\n']);
            if !(is_between && self.take("\\\n")) {
                return;
            }
        }
    }
}

pub(super) fn is_blank(sign: char) -> bool {
    matches!(sign, ' ' | '\t')
}

/// Returns true if an unquoted `sign` ends a word.
pub(super) fn ends_word(sign: char) -> bool {
    is_blank(sign) || matches!(sign, '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>')
}

pub(super) fn is_name_start(sign: char) -> bool {
    sign.is_ascii_alphabetic() || sign == '_'
}

pub(super) fn is_name(sign: char) -> bool {
    sign.is_ascii_alphanumeric() || sign == '_'
}
