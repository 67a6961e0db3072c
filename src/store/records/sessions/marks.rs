//! What people keep about their sessions beside the journals: pins, tags, the archive, and what was given
//! up. Columns of the rows of the session list, whose projection leaves them as they are.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::domain::Timestamp;

/// Tags of one session; one more is not added.
pub const MAX_TAGS: usize = 8;

/// What a person keeps about a session of theirs, beside what stands in its journal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marks {
    /// Before all that are not.
    pub is_pinned: bool,
    /// Off the list, and found all the same.
    pub is_archived: bool,
    /// Words of the person's own, sorted.
    pub tags: BTreeSet<String>,
    /// How often the three above were changed.
    pub changes: u64,
    /// When the session is deleted, if it was given up.
    pub delete_at: Option<Timestamp>,
}

/// What to change of the marks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MarksChange {
    pub is_pinned: Option<bool>,
    pub is_archived: Option<bool>,
    /// All tags anew.
    pub tags: Option<BTreeSet<String>>,
    pub add_tags: BTreeSet<String>,
    pub remove_tags: BTreeSet<String>,
}

impl MarksChange {
    pub(super) fn apply(&self, marks: &Marks) -> Marks {
        let mut tags = self.tags.clone().unwrap_or_else(|| marks.tags.clone());
        for tag in &self.add_tags {
            if tags.len() < MAX_TAGS {
                tags.insert(tag.clone());
            }
        }
        tags.retain(|tag| !self.remove_tags.contains(tag));
        Marks {
            is_pinned: self.is_pinned.unwrap_or(marks.is_pinned),
            is_archived: self.is_archived.unwrap_or(marks.is_archived),
            tags,
            ..marks.clone()
        }
    }
}

/// Each tag between line breaks; none has one in it.
pub(super) fn tags_column(tags: &BTreeSet<String>) -> String {
    let lines = tags.iter().map(|tag| format!("{tag}\n"));
    match lines.collect::<String>() {
        lines if lines.is_empty() => lines,
        lines => format!("\n{lines}"),
    }
}

/// What finds one tag among those of a session.
pub(super) fn tag_pattern(tag: &str) -> String {
    let mut escaped = String::with_capacity(tag.len());
    for char in tag.chars() {
        if matches!(char, '%' | '_' | '\\') {
            escaped.push('\\');
        }
        escaped.push(char);
    }
    format!("%\n{escaped}\n%")
}
