//! Separates thoughts between tags (`<think>…</think>`) from the text around them. Open models write their
//! thoughts so, where the server does not take them apart. Pure.

/// The tags that begin thoughts, with their ends.
const TAGS: [(&str, &str); 3] = [
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
];

/// A piece of an answer.
#[derive(Debug, PartialEq)]
pub(crate) enum Piece {
    Text(String),
    Thought(String),
    /// All text so far was a thought.
    TextWasThought,
}

/// The text of a whole answer without the thoughts between tags that may precede it. Thoughts that never end
/// stay.
pub(crate) fn without_thoughts(answer: &str) -> &str {
    if !TAGS.iter().any(|(_, end)| answer.contains(end)) {
        return answer;
    }
    let mut tagged = Tagged::default();
    let mut said = 0;
    for piece in tagged.push(answer).into_iter().chain(tagged.end()) {
        if let Piece::Text(text) = piece {
            said += text.len();
        }
    }
    // Thoughts come first, so the text is the end of the answer.
    let begin = answer.len().saturating_sub(said);
    answer.get(begin..).unwrap_or(answer)
}

/// The position in an answer, over all its pieces.
#[derive(Debug, Default)]
pub(crate) struct Tagged {
    state: State,
    /// Characters that may be the beginning of a tag.
    held: String,
}

#[derive(Debug, Default, Clone, Copy, PartialEq)]
enum State {
    /// Nothing was said yet. Only here a tag begins thoughts: later it may be quoted.
    #[default]
    Start,
    /// Between the tags; holds the end, and whether a thought was read. White space before it is left out.
    Thinking(&'static str, bool),
    /// The line breaks behind the thoughts are left out.
    After,
    /// The text of an answer without an opening tag; some models' requests end with it. Holds whether text was
    /// said, and whether a backtick is open: a tag between backticks is quoted.
    Open { has_said: bool, is_quoted: bool },
    /// Nothing is looked for any more.
    Plain,
}

impl Tagged {
    /// Reads the next text.
    pub(crate) fn push(&mut self, text: &str) -> Vec<Piece> {
        let mut pieces = Vec::new();
        if self.state == State::Plain {
            add_text(&mut pieces, text);
            return pieces;
        }
        let mut rest = std::mem::take(&mut self.held);
        rest.push_str(text);
        while let Some(next) = self.step(&rest, &mut pieces) {
            rest = next;
        }
        pieces
    }

    /// Returns what was held back.
    pub(crate) fn end(&mut self) -> Option<Piece> {
        let held = std::mem::take(&mut self.held);
        if held.is_empty() {
            return None;
        }
        Some(match self.state {
            State::Thinking(..) => Piece::Thought(held),
            State::Start | State::After | State::Open { .. } | State::Plain => Piece::Text(held),
        })
    }

    /// Emits text before which nothing was said, or of which nothing is quoted yet, as the state says.
    fn say(&mut self, said: &str, has_said: bool, is_quoted: bool, pieces: &mut Vec<Piece>) {
        self.state = State::Open {
            has_said: has_said || !said.is_empty(),
            is_quoted: is_quoted != changes_quoting(said),
        };
        add_text(pieces, said);
    }

    /// Reads up to the next tag; returns the rest behind it.
    fn step(&mut self, text: &str, pieces: &mut Vec<Piece>) -> Option<String> {
        if text.is_empty() {
            return None;
        }
        match self.state {
            State::Start => {
                let begun = text.trim_start();
                let found = TAGS.iter().find(|(tag, _)| begun.starts_with(tag));
                if let Some((tag, end)) = found {
                    self.state = State::Thinking(end, false);
                    return Some(begun.get(tag.len()..).unwrap_or_default().to_owned());
                }
                if begun.is_empty() || TAGS.iter().any(|(tag, _)| tag.starts_with(begun)) {
                    text.clone_into(&mut self.held);
                    return None;
                }
                self.state = State::Open {
                    has_said: false,
                    is_quoted: false,
                };
                Some(text.to_owned())
            }
            State::Thinking(end, has_begun) => {
                let text = if has_begun { text } else { text.trim_start() };
                if let Some((thought, rest)) = text.split_once(end) {
                    add_thought(pieces, thought);
                    self.state = State::After;
                    return Some(rest.to_owned());
                }
                let (thought, held) = text.split_at(tail(text, &[end]));
                add_thought(pieces, thought);
                self.state = State::Thinking(end, has_begun || !thought.is_empty());
                held.clone_into(&mut self.held);
                None
            }
            State::After => {
                let rest = text.trim_start_matches(['\r', '\n']);
                if rest.is_empty() {
                    return None;
                }
                self.state = State::Plain;
                add_text(pieces, rest);
                None
            }
            State::Open {
                has_said,
                is_quoted,
            } => {
                let found = TAGS
                    .iter()
                    .filter_map(|(_, end)| Some((text.find(end)?, *end)))
                    .min();
                let Some((at, end)) = found else {
                    let ends: Vec<&str> = TAGS.iter().map(|(_, end)| *end).collect();
                    let (said, held) = text.split_at(tail(text, &ends));
                    self.say(said, has_said, is_quoted, pieces);
                    held.clone_into(&mut self.held);
                    return None;
                };
                let before = text.get(..at).unwrap_or_default();
                let behind = at + end.len();
                let rest = text.get(behind..).unwrap_or_default().to_owned();
                if is_quoted != changes_quoting(before) {
                    let quoted = text.get(..behind).unwrap_or_default();
                    self.say(quoted, has_said, is_quoted, pieces);
                    return Some(rest);
                }
                if has_said {
                    pieces.push(Piece::TextWasThought);
                }
                add_thought(pieces, before);
                self.state = State::After;
                Some(rest)
            }
            State::Plain => {
                add_text(pieces, text);
                None
            }
        }
    }
}

/// Returns true if a text opens or closes a quotation in backticks.
fn changes_quoting(text: &str) -> bool {
    text.matches('`').count() % 2 == 1
}

/// Returns the position from which on a text may be the beginning of one of these tags.
fn tail(text: &str, tags: &[&str]) -> usize {
    let at = text.rfind('<').filter(|at| {
        let rest = text.get(*at..).unwrap_or_default();
        tags.iter().any(|tag| tag.starts_with(rest))
    });
    at.unwrap_or(text.len())
}

fn add_text(pieces: &mut Vec<Piece>, text: &str) {
    if !text.is_empty() {
        pieces.push(Piece::Text(text.to_owned()));
    }
}

fn add_thought(pieces: &mut Vec<Piece>, text: &str) {
    if !text.is_empty() {
        pieces.push(Piece::Thought(text.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use super::{Piece, Tagged, without_thoughts};

    /// Reads an answer in pieces; thoughts are shown in brackets.
    fn read<'a>(said: impl IntoIterator<Item = &'a str>) -> String {
        let (mut tagged, mut text, mut thought) = (Tagged::default(), String::new(), String::new());
        let mut take = |piece: Piece| match piece {
            Piece::Text(more) => text.push_str(&more),
            Piece::Thought(more) => thought.push_str(&more),
            Piece::TextWasThought => thought.push_str(&std::mem::take(&mut text)),
        };
        for piece in said {
            tagged.push(piece).into_iter().for_each(&mut take);
        }
        tagged.end().into_iter().for_each(&mut take);
        if thought.is_empty() {
            text
        } else {
            format!("({thought}) {text}")
        }
    }

    #[test]
    fn thoughts_between_tags_are_thoughts_however_the_answer_is_cut() {
        for (answer, expected) in [
            ("<think>hm</think>yes", "(hm) yes"),
            ("<think>\nhm\n</think>\n\nyes", "(hm\n) yes"),
            ("\n<think>hm</think>yes", "(hm) yes"),
            ("<thinking>hm</thinking> yes", "(hm)  yes"),
            ("<thought>hm</thought>yes", "(hm) yes"),
            ("<think></think>yes", "yes"),
            ("<think>\n\n</think>\n\nyes", "yes"),
            ("<think>a < b</think>a <b> c", "(a < b) a <b> c"),
            ("<think>it never ends", "(it never ends) "),
            ("<think>it never ends</thin", "(it never ends</thin) "),
            ("yes", "yes"),
            ("<b>yes</b>", "<b>yes</b>"),
            ("<thi", "<thi"),
            ("a <think> in a text", "a <think> in a text"),
            (
                "<think>one</think>two <think>three</think>",
                "(one) two <think>three</think>",
            ),
            ("  yes", "  yes"),
            ("", ""),
            // The server has left out the opening tag.
            ("hm\n</think>\n\nyes", "(hm\n) yes"),
            ("a < b\n</thinking>yes", "(a < b\n) yes"),
            ("hm</thought>yes</thought>", "(hm) yes</thought>"),
            ("</think>yes", "yes"),
            ("hm</think>", "(hm) "),
            ("`x` hm</think>yes", "(`x` hm) yes"),
            // A quoted tag is text.
            ("it is `</think>`, so", "it is `</think>`, so"),
            (
                "```\n</think>\n```\nhm</think>yes",
                "(```\n</think>\n```\nhm) yes",
            ),
        ] {
            assert_eq!(read([answer]), expected, "{answer:?} whole");
            let chars = answer
                .char_indices()
                .map(|(at, c)| &answer[at..at + c.len_utf8()]);
            assert_eq!(read(chars), expected, "{answer:?} cut");
        }
    }

    #[test]
    fn a_stored_answer_is_sent_back_without_its_thoughts() {
        for (answer, expected) in [
            ("<think>hm</think>\n\nyes", "yes"),
            ("hm\n</think>\n\nyes", "yes"),
            ("<thinking>hm</thinking>", ""),
            ("yes", "yes"),
            ("it is `</think>`, so", "it is `</think>`, so"),
            ("a <think>b</think> c", " c"),
            ("<think>it never ends", "<think>it never ends"),
        ] {
            assert_eq!(without_thoughts(answer), expected, "{answer:?}");
        }
    }
}
