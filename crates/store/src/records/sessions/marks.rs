//! Defines the marks that people set on their sessions beside the journals: pins, tags, the archive, and a
//! planned deletion. They are columns of the session list, which the projection of journals does not change.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use sepal_core::domain::Timestamp;

/// The most tags of one session; further tags are not added.
pub const MAX_TAGS: usize = 8;

/// The marks that a person set on their session, which are not part of its journal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marks {
    /// True if the session is listed before all unpinned ones.
    pub is_pinned: bool,
    /// True if the session is left out of the default list. Searches still find it.
    pub is_archived: bool,
    /// Tags of the person's own, sorted.
    pub tags: BTreeSet<String>,
    /// The number of changes to the marks.
    pub changes: u64,
    /// The time at which the session is deleted, if it was given up.
    pub delete_at: Option<Timestamp>,
}

/// A change of the marks. Tags are removed first and added then, up to [`MAX_TAGS`]; a tag in both sets is
/// removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MarksChange {
    pub is_pinned: Option<bool>,
    pub is_archived: Option<bool>,
    /// Replaces all tags; only the first [`MAX_TAGS`] are set.
    pub tags: Option<BTreeSet<String>>,
    pub add_tags: BTreeSet<String>,
    pub remove_tags: BTreeSet<String>,
}

impl MarksChange {
    pub(super) fn apply(&self, marks: &Marks) -> Marks {
        let mut tags: BTreeSet<String> = match &self.tags {
            Some(tags) => tags.iter().take(MAX_TAGS).cloned().collect(),
            None => marks.tags.clone(),
        };
        tags.retain(|tag| !self.remove_tags.contains(tag));
        for tag in self.add_tags.difference(&self.remove_tags) {
            if tags.len() < MAX_TAGS {
                tags.insert(tag.clone());
            }
        }
        Marks {
            is_pinned: self.is_pinned.unwrap_or(marks.is_pinned),
            is_archived: self.is_archived.unwrap_or(marks.is_archived),
            tags,
            ..marks.clone()
        }
    }
}

/// Joins the tags with a line break around each; no tag contains one.
pub(super) fn tags_column(tags: &BTreeSet<String>) -> String {
    let lines = tags.iter().map(|tag| format!("{tag}\n"));
    match lines.collect::<String>() {
        lines if lines.is_empty() => lines,
        lines => format!("\n{lines}"),
    }
}

/// Returns the LIKE pattern that finds one tag in the column of tags.
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{MAX_TAGS, Marks, MarksChange};

    fn tags(tags: &str) -> BTreeSet<String> {
        tags.chars().map(String::from).collect()
    }

    #[test]
    fn tags_are_removed_before_others_are_added_and_are_never_too_many() {
        let full = "bcdefghi";
        assert_eq!(tags(full).len(), MAX_TAGS);
        for (all, add, remove, expected) in [
            (None, "a", "b", "acdefghi"),
            (None, "a", "", full),
            (None, "az", "b", "acdefghi"),
            (None, "ab", "b", "acdefghi"),
            (Some("abcdefghijk"), "", "", "abcdefgh"),
            (Some("abcdefghijk"), "z", "a", "bcdefghz"),
            (Some(""), "ab", "", "ab"),
        ] {
            let change = MarksChange {
                tags: all.map(tags),
                add_tags: tags(add),
                remove_tags: tags(remove),
                ..MarksChange::default()
            };
            let marks = Marks {
                tags: tags(full),
                ..Marks::default()
            };
            assert_eq!(change.apply(&marks).tags, tags(expected), "{change:?}");
        }
    }
}
