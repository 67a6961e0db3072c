//! Finds the successor of a retired model: the one that its vendor names, else the newest of its family.

use jiff::civil::Date;

use super::{Ability, Model, Vendor, find};

/// The longest chain of named successors that is followed.
const LONGEST_LINE: usize = 8;

/// Finds the successor of `model` among the listed models: a named one, else the newest of its family. It
/// must not be retired and must be able to call tools.
pub fn successor<'a>(
    vendor: Vendor,
    model: &str,
    listed: &'a [&'a str],
    today: Date,
) -> Option<&'a str> {
    let lives = |id: &str| {
        let known = find(vendor, id)?;
        (known.is_living(today) && known.can(Ability::Tools)).then_some(known)
    };
    let named = line(vendor, model);
    let mut named = named.iter().filter_map(|heir| {
        listed
            .iter()
            .find(|id| **id == heir.id && lives(id).is_some())
    });
    if let Some(heir) = named.next() {
        return Some(heir);
    }
    let own = family(model);
    let related = |id: &&&str| **id != model && family(id) == own && lives(id).is_some();
    let listed = listed.iter().filter(related);
    listed.max_by_key(|id| version(id)).copied()
}

/// The chain of named successors, nearest first.
fn line(vendor: Vendor, model: &str) -> Vec<Model> {
    let heir = |model: &Model| find(vendor, model.successor.as_deref()?);
    let first = find(vendor, model).as_ref().and_then(heir);
    std::iter::successors(first, heir)
        .take(LONGEST_LINE)
        .collect()
}

/// The words of a model's name that identify its product line: `claude sonnet`, `gemini flash lite`, `gpt
/// mini`.
pub fn family(id: &str) -> Vec<&str> {
    const STAGES: [&str; 5] = ["models", "latest", "preview", "exp", "experimental"];
    let is_line = |word: &&str| {
        !word.is_empty() && !word.contains(|c: char| c.is_ascii_digit()) && !STAGES.contains(word)
    };
    words(id).filter(is_line).collect()
}

/// The numbers in a model's name, in order.
fn version(id: &str) -> Vec<u64> {
    let number = |word: &str| {
        let digits = word.trim_end_matches(|c: char| !c.is_ascii_digit());
        digits.parse().ok()
    };
    words(id).filter_map(number).collect()
}

fn words(id: &str) -> impl Iterator<Item = &str> {
    id.split(['-', '.', '_', '/', ':', '@'])
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use crate::catalogue::successor;
    use crate::{ProviderKind, Vendor};

    #[test]
    fn a_model_that_is_gone_is_followed_by_its_heir_or_the_newest_of_its_family() {
        fn check(model: &str, listed: &[&str], expected: Option<&str>) {
            let kind = if model.starts_with("claude") {
                ProviderKind::Anthropic
            } else if model.starts_with("gpt") {
                ProviderKind::OpenAi
            } else {
                ProviderKind::Gemini
            };

            let found = successor(Vendor::of(kind, None), model, listed, date(2026, 12, 2));
            assert_eq!(found, expected, "{model}");
        }
        let claudes = [
            "claude-opus-5-5",
            "claude-sonnet-4-6",
            "claude-sonnet-5",
            "claude-sonnet-5-5",
        ];
        check(
            "claude-sonnet-4-5-20250929",
            &claudes,
            Some("claude-sonnet-5-5"),
        );
        check(
            "claude-sonnet-4-5-20250929",
            &claudes[..3],
            Some("claude-sonnet-5"),
        );
        check("claude-sonnet-4-5-20250929", &claudes[..1], None);
        // Retired models, models of another line and unknown models do not succeed.
        let geminis = [
            "gemini-2.5-flash",
            "gemini-3.5-flash",
            "gemini-3.8-flash-tts",
            "gemini-3.5-flash-lite",
            "gemini-9-flash",
        ];
        check("gemini-2.0-flash-exp", &geminis, Some("gemini-3.5-flash"));
        check("gpt-4o", &["gpt-5.6", "gpt-6-luna"], Some("gpt-6-luna"));
        check("gpt-4o", &["gpt-5.2", "gpt-5.6", "gpt-4"], Some("gpt-5.6"));
    }
}
