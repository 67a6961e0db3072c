//! Decides titles: the first words, then a model's title if that is enabled, and always a person's.

use super::Draft;
use crate::domain::{Code, TurnId};
use crate::session::event::Event;
use crate::session::model::AttemptUsage;
use crate::session::refusal::Refusal;
use crate::session::title::{TitleSource, Titling};

/// Maximum number of characters of the first message in a title.
const TITLE_CHARS: usize = 60;

/// Sets the title that a person gives.
pub(super) fn rename(draft: &mut Draft<'_>, title: &str) -> Result<(), Refusal> {
    let title = title.trim();
    if title.is_empty() || title.chars().count() > 200 {
        return Err(Refusal::of_field(
            Code::InvalidArguments,
            "title",
            "a title has 1 to 200 characters",
        ));
    }
    draft.create();
    // If a person repeats the first words, the title becomes theirs, so that no model replaces it.
    let is_by_words = draft.control.title.source == Some(TitleSource::FirstWords);
    if is_by_words || draft.control.title.text.as_deref() != Some(title) {
        draft.push(Event::TitleSet {
            title: title.to_owned(),
            source: Some(TitleSource::Person),
        });
    }
    Ok(())
}

/// Titles an untitled session with the first words of a text.
pub(super) fn title_by_words(draft: &mut Draft<'_>, text: &str) {
    draft.push(Event::TitleSet {
        title: first_words(text),
        source: Some(TitleSource::FirstWords),
    });
}

/// Requests a title from a model after an answer, once, unless a person has given one.
pub(super) fn ask_for_title(draft: &mut Draft<'_>, turn: TurnId) {
    let is_by_words = draft.control.title.source == Some(TitleSource::FirstWords);
    let is_unasked = draft.control.title.titling == Titling::Unasked;
    if draft.inputs.rules.has_titles_made && is_by_words && is_unasked {
        draft.push(Event::TitlingMoved {
            to: Titling::Asked(turn),
        });
    }
}

/// Ends the title request, with or without a title. A title that a person has given meanwhile stays; the
/// usage of the request counts in any case.
pub(super) fn titled(draft: &mut Draft<'_>, title: Option<&str>, spent: &[AttemptUsage]) {
    let Titling::Asked(turn) = draft.control.title.titling else {
        return;
    };
    draft.spend(turn, spent);
    let is_by_words = draft.control.title.source == Some(TitleSource::FirstWords);
    if let Some(title) = title.filter(|_| is_by_words) {
        draft.push(Event::TitleSet {
            title: title.to_owned(),
            source: Some(TitleSource::Model),
        });
    }
    draft.push(Event::TitlingMoved { to: Titling::Over });
}

/// The first words of a text, up to [`TITLE_CHARS`] characters.
fn first_words(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= TITLE_CHARS {
        return line;
    }
    let cut: String = line.chars().take(TITLE_CHARS).collect();
    let whole_words = cut
        .rsplit_once(' ')
        .map_or(cut.as_str(), |(words, _)| words);
    format!("{whole_words}…")
}
