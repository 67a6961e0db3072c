//! `${…}` in the words of a manifest.

/// Where the files of a bundle lie for its program.
pub(super) const FOLDER: &str = "/packages/bundle";
/// What stands for the folders of a person.
pub(super) const WORKSPACE: &str = "/workspace";

/// A part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part<'t> {
    Text(&'t str),
    /// The name of what stands there.
    Name(&'t str),
}

/// The parts of a text, in order.
pub(super) fn parts(mut text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    while let Some((before, rest)) = text.split_once("${") {
        let Some((name, after)) = rest.split_once('}') else {
            break;
        };
        parts.push(Part::Text(before));
        parts.push(Part::Name(name));
        text = after;
    }
    parts.push(Part::Text(text));
    parts.retain(|part| *part != Part::Text(""));
    parts
}

/// The keys of values of a person that a text names.
pub(super) fn keys(text: &str) -> impl Iterator<Item = &str> {
    parts(text).into_iter().filter_map(|part| match part {
        Part::Name(name) => name.strip_prefix("user_config."),
        Part::Text(_) => None,
    })
}

/// What a name stands for that needs no person: the bundle's folder, a folder of theirs, a separator.
pub(super) fn known(name: &str) -> Option<&'static str> {
    match name {
        "__dirname" => Some(FOLDER),
        "HOME" | "DESKTOP" | "DOCUMENTS" | "DOWNLOADS" => Some(WORKSPACE),
        "pathSeparator" | "/" => Some("/"),
        _ => None,
    }
}

/// A text with what is known put in its place; the rest stays as it is.
pub(super) fn resolved(text: &str) -> String {
    let parts = parts(text).into_iter();
    parts
        .map(|part| match part {
            Part::Text(text) => text.to_owned(),
            Part::Name(name) => known(name).map_or_else(|| format!("${{{name}}}"), str::to_owned),
        })
        .collect()
}

/// The name of a secret in our entries, by the key of its value.
pub(super) fn secret_name(key: &str) -> String {
    let upper = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_uppercase()
        } else {
            '_'
        }
    };
    key.chars().map(upper).take(100).collect()
}

#[cfg(test)]
mod tests {
    use super::{keys, resolved};

    #[test]
    fn what_is_known_is_put_in_and_the_rest_stays() {
        for (text, expected) in [
            ("${__dirname}${/}server", "/packages/bundle/server"),
            ("${HOME}/x", "/workspace/x"),
            ("a ${user_config.b} ${c", "a ${user_config.b} ${c"),
            ("", ""),
        ] {
            assert_eq!(resolved(text), expected);
        }
        let text = "--${user_config.a}=${user_config.b}${HOME}";
        assert_eq!(keys(text).collect::<Vec<_>>(), ["a", "b"]);
    }
}
