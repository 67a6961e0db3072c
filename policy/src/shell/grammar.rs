//! Parses lists, pipelines and loops: the grammar around words. The grammar accepts more than bash does, but
//! never yields other commands than bash runs.

use super::cursor::{Cursor, ends_word, is_blank, is_name, is_name_start};
use super::redirections::HereDocument;
use super::{Hidden, MAX_DEPTH, MAX_PARTS, Part, Unread, Word};

/// Words with a special meaning at the beginning of a command.
const RESERVED: &[&str] = &[
    "!", "{", "}", "if", "then", "elif", "else", "fi", "while", "until", "for", "do", "done",
    "case", "esac", "select", "function", "coproc", "in", "[[", "]]",
];

/// The end of a list of commands.
#[derive(Clone, Copy)]
enum End {
    Text,
    Parenthesis,
    /// One of these reserved words.
    Words(&'static [&'static str]),
    /// The end of a branch of `case`.
    Branch,
}

/// The variable of an enclosing loop.
pub(super) struct LoopVariable<'a> {
    pub(super) name: &'a str,
    /// True if none of its values can begin an option.
    pub(super) is_tame: bool,
}

/// The parser of one command line.
pub(super) struct Grammar<'a> {
    pub(super) cursor: Cursor<'a>,
    pub(super) loops: Vec<LoopVariable<'a>>,
    pub(super) parts: Vec<Part>,
    pub(super) waiting: Vec<HereDocument<'a>>,
    pub(super) depth: usize,
    /// The number of enclosing substitutions.
    pub(super) substitutions: usize,
}

/// Returns all simple commands of the text, in the order in which they end.
pub(super) fn commands(cursor: Cursor<'_>, depth: usize) -> Result<Vec<Part>, Unread> {
    let mut grammar = Grammar {
        cursor,
        loops: Vec::new(),
        parts: Vec::new(),
        waiting: Vec::new(),
        depth,
        substitutions: 0,
    };
    grammar.list(End::Text)?;
    if !grammar.waiting.is_empty() {
        return Err(Unread::Unfinished("a here-document"));
    }
    Ok(grammar.parts)
}

impl Grammar<'_> {
    /// Parses commands up to `end`, which stays unread.
    fn list(&mut self, end: End) -> Result<(), Unread> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Unread::TooLarge);
        }
        loop {
            self.skip_lines()?;
            match (end, self.cursor.peek()) {
                (End::Text, None) | (End::Parenthesis, Some(')')) => break,
                (End::Parenthesis, None) => return Err(Unread::Unfinished("a parenthesis")),
                (End::Words(_), None) => return Err(Unread::Unfinished("a loop or a condition")),
                (End::Words(words), Some(_)) if self.is_reserved(words) => break,
                (End::Branch, None) => return Err(Unread::Unfinished("`case`")),
                (End::Branch, Some(_)) if self.ends_branch() || self.is_reserved(&["esac"]) => {
                    break;
                }
                (_, Some(_)) => {}
            }
            self.and_or()?;
            self.cursor.skip_blanks();
            match self.cursor.peek() {
                Some(';') if matches!(end, End::Branch) && self.ends_branch() => {}
                Some(';') if !self.cursor.starts_with(";;") => self.skip(1),
                Some('&') => self.skip(1),
                None | Some('\n' | ')' | '#') => {}
                Some(_) => return Err(Unread::Form("this order of words and signs")),
            }
        }
        self.depth -= 1;
        Ok(())
    }

    /// Returns true if `;;`, `;&` or `;;&` is next.
    fn ends_branch(&self) -> bool {
        self.cursor.starts_with(";;") || self.cursor.starts_with(";&")
    }

    fn skip(&mut self, signs: usize) {
        for _ in 0..signs {
            self.cursor.next();
        }
    }

    /// Parses commands joined by `&&`, `||` and `|`.
    fn and_or(&mut self) -> Result<(), Unread> {
        loop {
            self.command()?;
            self.cursor.skip_blanks();
            if self.cursor.starts_with("|&") {
                return Err(Unread::Form("`|&`"));
            }
            if !(self.cursor.take("&&") || self.cursor.take("||") || self.cursor.take("|")) {
                return Ok(());
            }
            self.skip_lines()?;
        }
    }

    /// Skips blanks, comments and line ends.
    fn skip_lines(&mut self) -> Result<(), Unread> {
        loop {
            self.cursor.skip_blanks();
            match self.cursor.peek() {
                Some('#') => {
                    self.cursor.take_while(|sign| sign != '\n');
                }
                Some('\n') => {
                    self.cursor.next();
                    self.here_documents()?;
                }
                _ => return Ok(()),
            }
        }
    }

    /// Returns the reserved word that is next.
    fn reserved(&self) -> Option<&'static str> {
        let rest = self.cursor.rest();
        let word = rest.split(ends_word).next().unwrap_or_default();
        RESERVED.iter().copied().find(|reserved| *reserved == word)
    }

    fn is_reserved(&self, words: &[&str]) -> bool {
        self.reserved().is_some_and(|word| words.contains(&word))
    }

    fn take_reserved(&mut self, words: &[&str]) -> Result<&'static str, Unread> {
        match self.reserved() {
            Some(word) if words.contains(&word) => {
                self.cursor.take(word);
                Ok(word)
            }
            _ => Err(Unread::Form("this order of words and signs")),
        }
    }

    fn command(&mut self) -> Result<(), Unread> {
        self.depth += 1;
        if self.depth > MAX_DEPTH || self.parts.len() > MAX_PARTS {
            return Err(Unread::TooLarge);
        }
        self.cursor.skip_blanks();
        match self.reserved() {
            None if self.cursor.starts_with("((") => return Err(Unread::Form("`((`")),
            None if self.cursor.take("(") => {
                self.list(End::Parenthesis)?;
                self.skip(1);
                self.redirections_of_compound()?;
            }
            None if self.starts_function() => self.function(self.cursor, false)?,
            None => self.simple()?,
            Some("!") => {
                self.skip(1);
                self.command()?;
            }
            Some("{") => {
                self.skip(1);
                self.list(End::Words(&["}"]))?;
                self.take_reserved(&["}"])?;
                self.redirections_of_compound()?;
            }
            Some("if") => self.condition()?,
            Some("while" | "until") => {
                self.take_reserved(&["while", "until"])?;
                self.list(End::Words(&["do"]))?;
                self.body()?;
            }
            Some("for") => self.for_loop()?,
            Some("case") => self.case()?,
            Some("select") => return Err(Unread::Form("`select`")),
            Some("function") => {
                let start = self.cursor;
                self.take_reserved(&["function"])?;
                self.function(start, true)?;
            }
            Some("coproc") => return Err(Unread::Form("`coproc`")),
            Some("[[") => return Err(Unread::Form("`[[`")),
            Some(_) => return Err(Unread::Form("this order of words and signs")),
        }
        self.depth -= 1;
        Ok(())
    }

    fn condition(&mut self) -> Result<(), Unread> {
        self.take_reserved(&["if"])?;
        loop {
            self.list(End::Words(&["then"]))?;
            self.take_reserved(&["then"])?;
            self.list(End::Words(&["elif", "else", "fi"]))?;
            match self.take_reserved(&["elif", "else", "fi"])? {
                "elif" => {}
                "else" => {
                    self.list(End::Words(&["fi"]))?;
                    self.take_reserved(&["fi"])?;
                    break;
                }
                _ => break,
            }
        }
        self.redirections_of_compound()
    }

    /// Parses `case WORD in PATTERN) …;; esac`. Every branch may run.
    fn case(&mut self) -> Result<(), Unread> {
        self.take_reserved(&["case"])?;
        self.cursor.skip_blanks();
        self.plain_word()?;
        self.skip_lines()?;
        self.take_reserved(&["in"])?;
        loop {
            self.skip_lines()?;
            if self.is_reserved(&["esac"]) {
                break;
            }
            self.cursor.take("(");
            loop {
                self.cursor.skip_blanks();
                self.plain_word()?;
                self.cursor.skip_blanks();
                if !self.cursor.take("|") {
                    break;
                }
            }
            if !self.cursor.take(")") {
                return Err(Unread::Form("this pattern of `case`"));
            }
            self.list(End::Branch)?;
            if !(self.cursor.take(";;&") || self.cursor.take(";;") || self.cursor.take(";&")) {
                break;
            }
        }
        self.take_reserved(&["esac"])?;
        self.redirections_of_compound()
    }

    /// Parses a word, which has to be next.
    fn plain_word(&mut self) -> Result<(), Unread> {
        match self.cursor.peek() {
            Some(sign) if !ends_word(sign) && sign != '#' => self.word().map(|_| ()),
            _ => Err(Unread::Form("this order of words and signs")),
        }
    }

    /// Returns true if `name ()` is next.
    fn starts_function(&self) -> bool {
        let mut ahead = self.cursor;
        let name = ahead.take_while(|sign| is_name(sign) || sign == '-');
        ahead.take_while(is_blank);
        name.starts_with(is_name_start) && ahead.take("(")
    }

    /// Parses a function's name and body. The definition changes the meaning of the name, so it becomes a
    /// part of its own that no prefix allows.
    fn function(&mut self, start: Cursor<'_>, has_keyword: bool) -> Result<(), Unread> {
        self.cursor.skip_blanks();
        let name = self.cursor.take_while(|sign| is_name(sign) || sign == '-');
        self.cursor.skip_blanks();
        let has_parentheses = self.cursor.take("(");
        self.cursor.skip_blanks();
        let is_closed = !has_parentheses || self.cursor.take(")");
        let is_head = name.starts_with(is_name_start) && (has_parentheses || has_keyword);
        if !is_head || !is_closed {
            return Err(Unread::Form("this kind of function"));
        }
        let text = self.cursor.since(&start).trim_end().to_owned();
        self.skip_lines()?;
        let is_group = self.is_reserved(&["{"]) || self.cursor.starts_with("(");
        if !is_group || self.cursor.starts_with("((") {
            return Err(Unread::Form("this kind of function"));
        }
        // The body runs when the function is called, when enclosing loops may have ended.
        let loops = std::mem::take(&mut self.loops);
        self.command()?;
        self.loops = loops;
        self.add(Part {
            text,
            hidden: Some(Hidden::ChangesShell),
            ..Part::default()
        });
        Ok(())
    }

    /// Parses `do … done` and its redirections.
    fn body(&mut self) -> Result<(), Unread> {
        self.take_reserved(&["do"])?;
        self.list(End::Words(&["done"]))?;
        self.take_reserved(&["done"])?;
        self.redirections_of_compound()
    }

    fn for_loop(&mut self) -> Result<(), Unread> {
        self.take_reserved(&["for"])?;
        self.cursor.skip_blanks();
        let name = self.cursor.take_while(is_name);
        if !name.starts_with(is_name_start) || self.loops.iter().any(|around| around.name == name) {
            return Err(Unread::Form("this kind of loop"));
        }
        self.cursor.skip_blanks();
        // The shell changes some variables by itself, such as `_`, and programs read others, such as `PATH`,
        // `HOME` or `http_proxy`; none of them consists of lower case letters only.
        let is_own = name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        if !is_own {
            self.add(Part {
                text: format!("for {name}"),
                hidden: Some(Hidden::Assignment),
                ..Part::default()
            });
        }
        let mut is_tame = is_own;
        if self.is_reserved(&["in"]) {
            self.take_reserved(&["in"])?;
            loop {
                self.cursor.skip_blanks();
                match self.cursor.peek() {
                    Some(';' | '\n' | '#') => break,
                    Some(sign) if !ends_word(sign) => {
                        let word = self.word()?;
                        is_tame &= match &word {
                            Word::Literal(text) => begins_no_option(text),
                            Word::Open { is_tame } => *is_tame,
                        };
                    }
                    _ => return Err(Unread::Form("this kind of loop")),
                }
            }
        } else {
            is_tame = false;
        }
        self.cursor.take(";");
        self.skip_lines()?;
        self.loops.push(LoopVariable { name, is_tame });
        self.body()?;
        self.loops.pop();
        Ok(())
    }

    /// Parses one simple command, with assignments and redirections.
    fn simple(&mut self) -> Result<(), Unread> {
        let start = self.cursor;
        let mut end = self.cursor;
        let mut part = Part::default();
        let documents = self.waiting.len();
        loop {
            self.cursor.skip_blanks();
            if self.redirection(&mut part)? {
                end = self.cursor;
                continue;
            }
            match self.cursor.peek() {
                None | Some('\n' | ';' | '&' | '|' | ')') => break,
                Some('#') => {
                    self.cursor.take_while(|sign| sign != '\n');
                    break;
                }
                Some('(') => return Err(Unread::Form("a function")),
                Some(_) => {}
            }
            if part.words.is_empty() && self.is_assignment()? {
                self.word()?;
                part.hidden = Some(Hidden::Assignment);
            } else {
                let word = self.word()?;
                part.words.push(word);
            }
            end = self.cursor;
        }
        end.since(&start).clone_into(&mut part.text);
        if part.text.is_empty() {
            return Err(Unread::Form("this order of words and signs"));
        }
        let place = self.parts.len();
        if self.add(part) {
            for document in self.waiting.iter_mut().skip(documents) {
                document.part = Some(place);
            }
        }
        Ok(())
    }

    /// Adds a part, unless it does nothing.
    fn add(&mut self, part: Part) -> bool {
        let does_something = !part.words.is_empty() || part.redirects || part.hidden.is_some();
        if does_something {
            self.parts.push(part);
        }
        does_something
    }

    /// Returns true if the next word sets a variable.
    fn is_assignment(&self) -> Result<bool, Unread> {
        let mut ahead = self.cursor;
        if !ahead.take_while(is_name).starts_with(is_name_start) {
            return Ok(false);
        }
        if ahead.starts_with("[") {
            return Err(Unread::Form("an array"));
        }
        Ok(ahead.starts_with("=") || ahead.starts_with("+="))
    }

    /// Parses the redirections of a loop or a group, which become a part of their own.
    fn redirections_of_compound(&mut self) -> Result<(), Unread> {
        self.cursor.skip_blanks();
        let start = self.cursor;
        let mut end = start;
        let mut part = Part::default();
        while self.redirection(&mut part)? {
            end = self.cursor;
            self.cursor.skip_blanks();
        }
        end.since(&start).clone_into(&mut part.text);
        self.add(part);
        Ok(())
    }

    pub(super) fn starts_substitution(&self) -> bool {
        self.cursor.starts_with("<(") || self.cursor.starts_with(">(")
    }

    /// Parses the commands between backquotes as a separate text.
    pub(super) fn backquoted(&mut self, text: &str) -> Result<(), Unread> {
        let mut inner = Grammar {
            cursor: Cursor::new(text),
            loops: Vec::new(),
            parts: Vec::new(),
            waiting: Vec::new(),
            depth: self.depth,
            substitutions: self.substitutions + 1,
        };
        inner.list(End::Text)?;
        if inner.parts.is_empty() {
            return Err(Unread::Form("a substitution that runs nothing"));
        }
        self.parts.append(&mut inner.parts);
        Ok(())
    }

    /// Parses the commands of `$(`, `<(` or `>(`, which was just read.
    pub(super) fn substitution(&mut self) -> Result<(), Unread> {
        let parts = self.parts.len();
        self.substitutions += 1;
        self.list(End::Parenthesis)?;
        self.substitutions -= 1;
        if self.parts.len() == parts {
            // Bash drops the word of a `<(…)` that contains only a comment.
            return Err(Unread::Form("a substitution that runs nothing"));
        }
        self.cursor.next();
        Ok(())
    }
}

/// Returns true if no program takes the word for an option.
pub(super) fn begins_no_option(text: &str) -> bool {
    !text.is_empty() && !text.starts_with(['-', '+'])
}
