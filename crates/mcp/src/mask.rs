//! Masks a server's secrets in everything that the server says.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// The replacement for a secret value.
pub const MASK: &str = "••••";

/// The shortest value that is masked, in bytes: shorter ones would mask ordinary words.
const SHORTEST_SECRET: usize = 6;
/// The fewest letters of a value that is masked: in Chinese, two letters are a word and six bytes.
const FEWEST_LETTERS: usize = 3;
/// The shortest line of a multi-line secret (a private key, for example) that is masked by itself.
const SHORTEST_LINE: usize = 16;

/// Masks known secrets in texts.
#[derive(Clone, Default)]
pub struct Cleaner(
    /// Every form in which a secret may appear in a text.
    Vec<String>,
);

impl Cleaner {
    /// Creates a cleaner for these secrets; those too short to be told from ordinary words are ignored.
    pub fn new(secrets: &BTreeSet<String>) -> Self {
        let forms: BTreeSet<String> = secrets.iter().flat_map(|secret| forms(secret)).collect();
        Self(forms.into_iter().collect())
    }

    /// Returns the text with secrets masked. Where several secrets overlap, no part of any remains.
    pub fn clean(&self, text: &str) -> String {
        let mut hits: Vec<(usize, usize)> = Vec::new();
        for form in &self.0 {
            find(text, form, &mut hits);
        }
        if hits.is_empty() {
            return text.to_owned();
        }
        hits.sort_unstable();
        let mut cleaned = String::with_capacity(text.len());
        let mut copied = 0;
        for (from, to) in hits {
            if from >= copied {
                cleaned.push_str(text.get(copied..from).unwrap_or_default());
                cleaned.push_str(MASK);
            }
            copied = copied.max(to);
        }
        cleaned.push_str(text.get(copied..).unwrap_or_default());
        cleaned
    }

    /// Masks all strings of the value, including member names. A number that contains a secret becomes a
    /// string.
    pub fn clean_value(&self, value: Value) -> Value {
        if self.0.is_empty() {
            return value;
        }
        match value {
            Value::String(text) => Value::String(self.clean(&text)),
            Value::Number(number) => {
                let text = number.to_string();
                let cleaned = self.clean(&text);
                if cleaned == text {
                    Value::Number(number)
                } else {
                    Value::String(cleaned)
                }
            }
            Value::Array(items) => items
                .into_iter()
                .map(|item| self.clean_value(item))
                .collect(),
            Value::Object(members) => Value::Object(self.clean_members(members)),
            Value::Null | Value::Bool(_) => value,
        }
    }

    /// Masks names and values of the members. Names that become equal are numbered, so no member is lost.
    fn clean_members(&self, members: Map<String, Value>) -> Map<String, Value> {
        let renamed = |name: &str| self.clean(name);
        let (kept, other): (Map<_, _>, Map<_, _>) = members
            .into_iter()
            .partition(|(name, _)| renamed(name) == *name);
        let mut cleaned = Map::new();
        for (name, value) in kept.into_iter().chain(other) {
            let name = renamed(&name);
            let mut free = name.clone();
            let mut count = 1;
            while cleaned.contains_key(&free) {
                count += 1;
                free = format!("{name} {count}");
            }
            cleaned.insert(free, self.clean_value(value));
        }
        cleaned
    }
}

/// Adds the places at which `form` appears in the text to `hits`; overlapping matches are merged.
fn find(text: &str, form: &str, hits: &mut Vec<(usize, usize)>) {
    let own = hits.len();
    let mut from = 0;
    while let Some(at) = text.get(from..).and_then(|rest| rest.find(form)) {
        let (begin, end) = (from + at, from + at + form.len());
        match hits.get_mut(own..).and_then(<[_]>::last_mut) {
            Some(last) if last.1 >= begin => last.1 = end,
            Some(_) | None => hits.push((begin, end)),
        }
        from = begin + form.chars().next().map_or(1, char::len_utf8);
    }
}

/// Returns the forms in which a secret may appear in a text: plain, in JSON (with and without non-ASCII
/// characters escaped), in a URL, and line by line.
fn forms(secret: &str) -> Vec<String> {
    let secret = secret.trim();
    let mut plain = vec![secret];
    let lines = secret.lines().map(str::trim);
    plain.extend(lines.filter(|line| line.len() >= SHORTEST_LINE));
    let is_long =
        |form: &&str| form.len() >= SHORTEST_SECRET && form.chars().count() >= FEWEST_LETTERS;
    let plain = plain.into_iter().filter(is_long);
    plain.flat_map(written).collect()
}

fn written(plain: &str) -> [String; 7] {
    let json = Value::from(plain).to_string();
    let json = json.strip_prefix('"').unwrap_or(&json);
    let json = json.strip_suffix('"').unwrap_or(json);
    let ascii = |digits: fn(u16) -> String| -> String {
        json.chars()
            .map(|letter| {
                if letter.is_ascii() {
                    return letter.to_string();
                }
                let mut units = [0; 2];
                letter
                    .encode_utf16(&mut units)
                    .iter()
                    .copied()
                    .map(digits)
                    .collect()
            })
            .collect()
    };
    [
        plain.to_owned(),
        json.to_owned(),
        json.replace('/', "\\/"),
        ascii(|unit| format!("\\u{unit:04x}")),
        ascii(|unit| format!("\\u{unit:04X}")),
        url::form_urlencoded::byte_serialize(plain.as_bytes()).collect(),
        percent_encoding::utf8_percent_encode(plain, percent_encoding::NON_ALPHANUMERIC)
            .to_string(),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Cleaner;

    fn cleaner<const N: usize>(secrets: [&str; N]) -> Cleaner {
        Cleaner::new(&secrets.into_iter().map(str::to_owned).collect())
    }

    #[test]
    fn no_part_of_a_secret_is_left_in_a_text() {
        let check = |text: &str, expected: &str| {
            let secrets = [
                "a-token",
                "a-token-and-more",
                "overlap",
                "lapping",
                "aaaaaa",
                "short",
                "钥匙",
                "一把钥匙",
            ];
            assert_eq!(cleaner(secrets).clean(text), expected);
        };
        check("x a-token-and-more b a-token", "x •••• b ••••");
        check("an overlapping pair", "an •••• pair");
        check("aaaaaaaaaa", "••••");
        check("short words stay", "short words stay");
        check("钥匙在这里", "钥匙在这里");
        check("这是一把钥匙", "这是••••");
        check("aoverlap lapping", "a•••• ••••");
    }

    #[test]
    fn a_secret_is_found_however_it_is_written() {
        let secret = "p\"a\\ß/w d\u{1f511}";
        let cleaner = cleaner([secret]);
        let json = json!({ "a": [secret] }).to_string();
        assert_eq!(cleaner.clean(&json), r#"{"a":["••••"]}"#);
        for written in [
            r#"p\"a\\ß\/w d🔑"#,
            r#"p\"a\\\u00df/w d\ud83d\udd11"#,
            r#"p\"a\\\u00DF/w d\uD83D\uDD11"#,
            "p%22a%5C%C3%9F%2Fw+d%F0%9F%94%91",
            "p%22a%5C%C3%9F%2Fw%20d%F0%9F%94%91",
        ] {
            assert_eq!(cleaner.clean(written), "••••", "{written}");
        }
    }

    #[test]
    fn a_secret_of_several_lines_is_found_line_by_line_and_without_its_end() {
        let key = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG\nshort\n-----END KEY-----\n";
        let cleaner = cleaner([key, "swordfish\n"]);
        assert_eq!(cleaner.clean(&format!("<{key}>")), "<••••\n>");
        assert_eq!(cleaner.clean("1: MIIEvQIBADANBgkqhkiG"), "1: ••••");
        assert_eq!(cleaner.clean("swordfish"), "••••");
    }

    #[test]
    fn every_text_of_a_value_is_cleaned_and_names_stay_apart() {
        let cleaner = cleaner(["swordfish", "12345678"]);
        let value = json!({
            "swordfish": 1, "the swordfish": [null, "a swordfish", 12_345_678, 5],
            "••••": true,
        });
        assert_eq!(
            cleaner.clean_value(value),
            json!({ "•••• 2": 1, "the ••••": [null, "a ••••", "••••", 5], "••••": true })
        );
    }
}
