//! Parses the names that Sepal and the proxy agree on, and checks the names in paths.

const CONTAINER_PREFIX: &str = "sepal-sb-";
const VOLUME_PREFIX: &str = "sepal-ws-";
const SANDBOX_PREFIX: &str = "sbx_";
const SANDBOX_DIGITS: usize = 32;
/// The suffix of the name of a container that measures a workspace.
const MEASURE_SUFFIX: &str = ".measure";
const MAX_SERVER_NAME: usize = 64;
const MAX_WORD: usize = 255;

/// The owner of a container, according to its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ContainerName {
    pub(crate) name: String,
    pub(crate) sandbox: String,
    /// True if the container only measures the workspace.
    pub(crate) measures: bool,
}

impl ContainerName {
    /// Parses `sepal-sb-<sandbox>`, `…-<server>`, and each of them with `.measure`.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let rest = name.strip_prefix(CONTAINER_PREFIX)?;
        let (rest, measures) = match rest.strip_suffix(MEASURE_SUFFIX) {
            Some(rest) => (rest, true),
            None => (rest, false),
        };
        let (sandbox, server) = rest.split_at_checked(SANDBOX_PREFIX.len() + SANDBOX_DIGITS)?;
        let is_plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_');
        let is_server = match server.strip_prefix('-') {
            Some(server) => server.len() <= MAX_SERVER_NAME && server.chars().all(is_plain),
            None => server.is_empty(),
        };
        (is_server && is_sandbox(sandbox)).then(|| Self {
            name: name.to_owned(),
            sandbox: sandbox.to_owned(),
            measures,
        })
    }
}

/// Returns the volume of a sandbox's workspace.
pub(crate) fn volume(sandbox: &str) -> String {
    format!("{VOLUME_PREFIX}{sandbox}")
}

/// Returns the sandbox whose workspace the volume is.
pub(crate) fn sandbox_of_volume(name: &str) -> Option<&str> {
    let sandbox = name.strip_prefix(VOLUME_PREFIX)?;
    is_sandbox(sandbox).then_some(sandbox)
}

fn is_sandbox(text: &str) -> bool {
    text.strip_prefix(SANDBOX_PREFIX).is_some_and(|digits| {
        digits.len() == SANDBOX_DIGITS
            && digits
                .bytes()
                .all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'))
    })
}

/// Returns true for a name or id as engines assign them, which has no special meaning in a path.
pub(crate) fn is_word(text: &str) -> bool {
    let is_plain = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'.' | b'_' | b'-');
    text.len() <= MAX_WORD
        && text
            .as_bytes()
            .first()
            .is_some_and(u8::is_ascii_alphanumeric)
        && text.bytes().all(is_plain)
}

/// Returns true for the id that an engine assigned to a container.
pub(crate) fn is_id(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|it| it.is_ascii_hexdigit())
}

/// Returns true for an image reference: `name`, `host:port/a/name:tag`, `name@sha256:…`, an id.
pub(crate) fn is_image(text: &str) -> bool {
    let is_part = |part: &str| {
        let is_plain = |it: u8| it.is_ascii_alphanumeric() || b"._-:@".contains(&it);
        part.as_bytes()
            .first()
            .is_some_and(u8::is_ascii_alphanumeric)
            && part.bytes().all(is_plain)
    };
    text.len() <= MAX_WORD && text.split('/').all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SANDBOX: &str = "sbx_0000000000000000000000000000001f";

    #[test]
    fn containers_are_named_after_their_sandbox() {
        let check = |name: &str| {
            let found = ContainerName::parse(name)?;
            assert_eq!(found.name, name);
            Some((found.sandbox, found.measures))
        };
        let (first, measure) = (format!("sepal-sb-{SANDBOX}"), SANDBOX.to_owned());
        assert_eq!(check(&first), Some((measure.clone(), false)));
        assert_eq!(
            check(&format!("{first}-git_hub-1")),
            Some((measure.clone(), false))
        );
        assert_eq!(check(&format!("{first}-x.measure")), Some((measure, true)));
        for wrong in [
            "",
            "db",
            "sepal-sb-",
            "sepal-sb-sbx_1",
            &first.to_uppercase(),
            &first.replace("1f", "1G"),
        ] {
            assert_eq!(check(wrong), None, "{wrong}");
        }
        for end in [
            "x",
            "-a.b",
            "-a/b",
            "/../db",
            ".measure.measure",
            "-é",
            &"-x".repeat(40),
        ] {
            assert_eq!(check(&format!("{first}{end}")), None, "{end}");
        }
    }

    #[test]
    fn volumes_are_named_after_their_sandbox() {
        assert_eq!(sandbox_of_volume(&volume(SANDBOX)), Some(SANDBOX));
        for wrong in ["data", "sepal-ws-", "sepal-ws-../etc", "/etc"] {
            assert_eq!(sandbox_of_volume(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn words_and_images_mean_nothing_in_a_path() {
        assert!(is_word("a.b_c-1") && is_id(&"0a".repeat(32)));
        for wrong in ["", ".", "..", "a/b", "a b", "-a", "a%2e", "a?b", "a#b", "é"] {
            assert!(!is_word(wrong), "{wrong}");
        }
        for image in [
            "busybox",
            "sepal/sandbox:0.1.0",
            "host:5000/a/b@sha256:0a",
            "sha256:0a",
        ] {
            assert!(is_image(image), "{image}");
        }
        for wrong in [
            "", "/a", "a//b", "a/../b", "a/./b", "../a", "a b", "a%2fb", "-a", "a/",
        ] {
            assert!(!is_image(wrong), "{wrong}");
        }
    }
}
