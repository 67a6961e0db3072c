//! Finds the newest branch of a tree of messages in one pass over its text.
//!
//! A conversation is nested as deep as it is long, so its tree is not read recursively, and not level by
//! level, which would scan the rest of the text again at each level.

/// The byte range of a message of the branch in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    start: usize,
    end: usize,
    /// The byte range of the list of its answers.
    children: Option<(usize, usize)>,
}

/// A list or object that is open at the current position.
enum Open {
    /// A list of messages: the answers to the message at this depth, or the top-level list if `None`.
    Messages(Option<usize>),
    /// The message at this depth of the branch.
    Message(usize),
    Other,
}

impl Place {
    /// Returns the message's JSON without its answers.
    pub(super) fn own_text(&self, text: &str) -> Option<String> {
        let Some((start, end)) = self.children else {
            return text.get(self.start..self.end).map(str::to_owned);
        };
        let (before, after) = (text.get(self.start..start)?, text.get(end..self.end)?);
        Some(format!("{before}null{after}"))
    }
}

/// Returns the last message at each level of a list of messages in valid JSON, or `None` if no top-level
/// message has a list of answers, so that the text is not a tree.
pub(super) fn newest_branch(text: &str) -> Option<Vec<Place>> {
    let bytes = text.as_bytes();
    let mut branch: Vec<Place> = Vec::new();
    let mut open: Vec<Open> = Vec::new();
    // True if the next value holds the answers to the open message.
    let mut are_children = false;
    let mut is_tree = false;
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                let end = end_of_text(bytes, at);
                let is_key = next_sign(bytes, end) == Some(b':');
                if is_key && matches!(open.last(), Some(Open::Message(_))) {
                    are_children = text.get(at..end) == Some("\"children\"");
                }
                at = end;
                continue;
            }
            b',' => are_children = false,
            b'{' => match open.last() {
                Some(Open::Messages(above)) => {
                    // This message replaces the earlier one at this level and its answers.
                    let depth = above.map_or(0, |above| above + 1);
                    branch.truncate(depth);
                    branch.push(Place {
                        start: at,
                        end: at,
                        children: None,
                    });
                    open.push(Open::Message(depth));
                }
                _ => open.push(Open::Other),
            },
            b'[' => match open.last() {
                None => open.push(Open::Messages(None)),
                Some(Open::Message(depth)) if are_children => {
                    let depth = *depth;
                    is_tree |= depth == 0;
                    if let Some(message) = branch.get_mut(depth) {
                        message.children = Some((at, at));
                    }
                    are_children = false;
                    open.push(Open::Messages(Some(depth)));
                }
                Some(_) => open.push(Open::Other),
            },
            b'}' | b']' => match open.pop() {
                Some(Open::Message(depth)) => {
                    if let Some(message) = branch.get_mut(depth) {
                        message.end = at + 1;
                    }
                }
                Some(Open::Messages(Some(depth))) => {
                    let children = branch.get_mut(depth).and_then(|it| it.children.as_mut());
                    if let Some((_, end)) = children {
                        *end = at + 1;
                    }
                }
                Some(Open::Messages(None) | Open::Other) | None => {}
            },
            _ => {}
        }
        at += 1;
    }
    is_tree.then_some(branch)
}

/// Returns the end of the string that begins at `start`.
fn end_of_text(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Returns the next byte that is not whitespace.
fn next_sign(bytes: &[u8], at: usize) -> Option<u8> {
    let rest = bytes.get(at..).unwrap_or_default();
    rest.iter()
        .copied()
        .find(|byte| !byte.is_ascii_whitespace())
}

#[cfg(test)]
mod tests {
    use super::newest_branch;

    fn branch(text: &str) -> Option<Vec<String>> {
        let places = newest_branch(text)?;
        Some(
            places
                .iter()
                .map(|place| place.own_text(text).unwrap())
                .collect(),
        )
    }

    #[test]
    fn the_last_message_at_each_level_is_found_without_what_answers_it() {
        let text = r#"[{"id":1,"children":[{"id":2}]},
            {"children" : [{"id":4,"children":[]},{"id":5,"children":[{"id":6}],"x":[{"y":1}]}],"id":3}]"#;
        let expected = [
            r#"{"children" : null,"id":3}"#,
            r#"{"id":5,"children":null,"x":[{"y":1}]}"#,
            r#"{"id":6}"#,
        ];
        assert_eq!(branch(text).unwrap(), expected);
    }

    #[test]
    fn only_a_list_behind_its_own_name_is_what_answers_a_message() {
        for text in [
            "[]",
            r#"[{"id":1}]"#,
            r#"[{"text":"children","x":[{}]}]"#,
            r#"[{"x":{"children":[{}]}}]"#,
            r#"[{"children":null,"x":[{}]}]"#,
            r#"[{"a\"":"\"children\":[","b":[1]}]"#,
        ] {
            assert_eq!(branch(text), None, "{text}");
        }
    }
}
