//! Masks secrets in host names: a program may ask for `SECRET.evil.example`, and people read the log.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use crate::egress::dial::Target;

/// The text that replaces a secret.
const MASK: &str = "••••";
/// The shortest secret that is masked: shorter ones would also match ordinary names.
const SHORTEST_SECRET: usize = 6;
/// The most characters that are shown of a text that is not a host name.
const MAX_SHOWN: usize = 100;

/// The secrets of one program, which are masked in its host names. Host names are case-insensitive and allow
/// few characters, so a secret is matched in any case, with dots anywhere, and without the characters that a
/// name cannot have.
#[derive(Clone, Default)]
pub struct HostMask {
    /// The secrets in the form of [`letters`]; none is empty.
    secrets: Arc<[String]>,
}

/// Shows no secrets.
impl fmt::Debug for HostMask {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "HostMask({} secrets)", self.secrets.len())
    }
}

impl HostMask {
    /// Stores the secrets; those too short to be distinguished from ordinary words are skipped.
    pub fn new(secrets: &BTreeSet<String>) -> Self {
        let forms = secrets.iter().map(|secret| {
            let letters = letters(secret).map(|(_, letter)| letter);
            letters.collect::<String>()
        });
        let is_long = |form: &String| form.len() >= SHORTEST_SECRET;
        Self {
            secrets: forms.filter(is_long).collect(),
        }
    }

    /// The target in the form to log; true if its name contained a secret.
    pub(super) fn shown(&self, target: &Target) -> (Target, bool) {
        let masked = self.masked(&target.host);
        let is_masked = masked.is_some();
        let host = masked.unwrap_or_else(|| target.host.clone());
        let most = if target.is_name() {
            host.len()
        } else {
            MAX_SHOWN
        };
        let shown = Target {
            host: host.chars().take(most).collect(),
            port: target.port,
        };
        (shown, is_masked)
    }

    /// The text with secrets masked; `None` if it contains none.
    fn masked(&self, text: &str) -> Option<String> {
        let found: Vec<(usize, char)> = letters(text).collect();
        let plain: String = found.iter().map(|(_, letter)| letter).collect();
        let mut hits: Vec<(usize, usize)> = Vec::new();
        for secret in self.secrets.iter() {
            // Each letter is one byte, so byte offsets are letter indexes.
            hits.extend(plain.match_indices(secret).filter_map(|(at, hit)| {
                let (first, _) = found.get(at)?;
                let (last, _) = found.get(at + hit.len() - 1)?;
                Some((*first, last + 1))
            }));
        }
        if hits.is_empty() {
            return None;
        }
        hits.sort_unstable();
        let mut masked = String::with_capacity(text.len());
        let mut copied = 0;
        for (from, to) in hits {
            if from >= copied {
                masked.push_str(text.get(copied..from).unwrap_or_default());
                masked.push_str(MASK);
            }
            copied = copied.max(to);
        }
        masked.push_str(text.get(copied..).unwrap_or_default());
        Some(masked)
    }
}

/// The letters and digits of a text in lower case, each with its byte offset.
fn letters(text: &str) -> impl Iterator<Item = (usize, char)> {
    let signs = text.char_indices();
    signs
        .filter(|(_, sign)| sign.is_ascii_alphanumeric())
        .map(|(at, sign)| (at, sign.to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::HostMask;
    use crate::egress::dial::Target;

    fn shown(secrets: &[&str], host: &str) -> (String, bool) {
        let secrets = secrets.iter().copied().map(str::to_owned).collect();
        let (host, port) = (host.to_owned(), 443);
        let (shown, is_masked) = HostMask::new(&secrets).shown(&Target { host, port });
        (shown.host, is_masked)
    }

    #[test]
    fn a_secret_is_found_however_a_name_can_spell_it() {
        let secrets = ["Sword-Fish_77", "gh+p/0123456789="];
        let check = |host: &str, expected: &str| {
            let is_masked = expected != host;
            assert_eq!(shown(&secrets, host), (expected.to_owned(), is_masked));
        };
        check("api.github.com", "api.github.com");
        check("sword-fish_77.evil.example", "••••.evil.example");
        check("swordfish77.evil.example", "••••.evil.example");
        check("x-sword.fish.77-y.evil.example", "x-••••-y.evil.example");
        check("a.ghp0123456789.b.example", "a.••••.b.example");
        check("ghp0123.456789.example", "••••.example");
        check("SWORD-FISH_77 is no name", "•••• is no name");
        check("ä.sword-fish_77", "ä.••••");
        check("sword.example", "sword.example");
    }

    #[test]
    fn short_secrets_and_long_nonsense_are_no_trouble() {
        assert_eq!(shown(&["abc", ""], "abc.example").0, "abc.example");
        let long = format!("{} swordfish77", "x y".repeat(60));
        let (told, _) = shown(&["swordfish77"], &long);
        assert!(told.len() <= 100 && !told.contains("sword"), "{told}");
        let at_the_cut = format!("{}swordfish77", "a ".repeat(47));
        let (told, is_masked) = shown(&["swordfish77"], &at_the_cut);
        assert!(is_masked && !told.contains("sword"), "{told}");
    }
}
