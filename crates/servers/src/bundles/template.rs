//! Parses and resolves `${…}` in the texts of a manifest.

/// The folder of a bundle's files, as its program sees it.
pub(super) const FOLDER: &str = "/packages/bundle";
/// The folder that replaces folders of a person.
pub(super) const WORKSPACE: &str = "/workspace";

/// A part of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part<'t> {
    Text(&'t str),
    /// The name in `${…}`.
    Name(&'t str),
}

/// Returns the parts of a text, in order.
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

/// Returns the keys of a person's values that a text names.
pub(super) fn keys(text: &str) -> impl Iterator<Item = &str> {
    parts(text).into_iter().filter_map(|part| match part {
        Part::Name(name) => name.strip_prefix("user_config."),
        Part::Text(_) => None,
    })
}

/// Returns the value of a name that needs no answer: the bundle's folder, a person's folder, or a separator.
pub(super) fn known(name: &str) -> Option<&'static str> {
    match name {
        "__dirname" => Some(FOLDER),
        "HOME" | "DESKTOP" | "DOCUMENTS" | "DOWNLOADS" => Some(WORKSPACE),
        "pathSeparator" | "/" => Some("/"),
        _ => None,
    }
}

/// Replaces the names with known values; other names are left as they are.
pub(super) fn resolved(text: &str) -> String {
    let parts = parts(text).into_iter();
    parts
        .map(|part| match part {
            Part::Text(text) => text.to_owned(),
            Part::Name(name) => known(name).map_or_else(|| format!("${{{name}}}"), str::to_owned),
        })
        .collect()
}

/// Returns the name of a secret in our entries, by the key of its value.
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
