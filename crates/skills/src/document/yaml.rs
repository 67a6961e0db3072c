//! Reads the YAML of a front matter within bounds: aliases count as their expansion, so that a few lines
//! cannot become gigabytes.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};

use crate::path::shown;

/// The most bytes of text after expansion.
const MAX_BYTES: usize = 64 * 1024;
/// The most values.
const MAX_VALUES: usize = 1_000;
/// The deepest nesting of lists and mappings.
const MAX_DEPTH: usize = 8;

/// A value of a front matter. Numbers are kept as text, as people would write them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Yaml {
    Nothing,
    Flag(bool),
    Number(String),
    Text(String),
    List(Vec<Yaml>),
    Mapping(Vec<(String, Yaml)>),
}

/// Reads the YAML of a front matter, or returns what is wrong with it.
pub(super) fn read(text: &str) -> Result<Yaml, String> {
    let room = Room {
        bytes: Cell::new(MAX_BYTES),
        values: Cell::new(MAX_VALUES),
    };
    let seed = Seed {
        room: &room,
        depth: 0,
    };
    let read = seed.deserialize(serde_yaml_ng::Deserializer::from_str(text));
    read.map_err(|error| error.to_string())
}

/// The rest of the bounds.
struct Room {
    bytes: Cell<usize>,
    values: Cell<usize>,
}

#[derive(Clone, Copy)]
struct Seed<'r> {
    room: &'r Room,
    depth: usize,
}

impl Seed<'_> {
    fn take<E: serde::de::Error>(self, bytes: usize) -> Result<(), E> {
        let left = self.room.bytes.get().checked_sub(bytes);
        self.room
            .bytes
            .set(left.ok_or_else(|| E::custom("it holds too much text"))?);
        let left = self.room.values.get().checked_sub(1);
        self.room
            .values
            .set(left.ok_or_else(|| E::custom("it holds too many values"))?);
        Ok(())
    }

    fn inner<E: serde::de::Error>(self) -> Result<Self, E> {
        if self.depth >= MAX_DEPTH {
            return Err(E::custom(
                "its lists and mappings lie too deep in each other",
            ));
        }
        self.take(0)?;
        Ok(Self {
            depth: self.depth + 1,
            ..self
        })
    }

    fn number<E: serde::de::Error>(self, number: impl fmt::Display) -> Result<Yaml, E> {
        let text = number.to_string();
        self.take(text.len())?;
        Ok(Yaml::Number(text))
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Yaml;

    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<Yaml, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Yaml;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of a front matter")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Yaml, E> {
        self.take(0)?;
        Ok(Yaml::Nothing)
    }

    /// An empty document, for example only comments.
    fn visit_none<E: serde::de::Error>(self) -> Result<Yaml, E> {
        self.visit_unit()
    }

    fn visit_bool<E: serde::de::Error>(self, flag: bool) -> Result<Yaml, E> {
        self.take(0)?;
        Ok(Yaml::Flag(flag))
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Yaml, E> {
        self.number(number)
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Yaml, E> {
        self.number(number)
    }

    fn visit_i128<E: serde::de::Error>(self, number: i128) -> Result<Yaml, E> {
        self.number(number)
    }

    fn visit_u128<E: serde::de::Error>(self, number: u128) -> Result<Yaml, E> {
        self.number(number)
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Yaml, E> {
        // Keep a version such as 1.0 as it is.
        self.number(format_args!("{number:?}"))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Yaml, E> {
        self.take(text.len())?;
        Ok(Yaml::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Yaml, A::Error> {
        let inner = self.inner()?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(inner)? {
            list.push(item);
        }
        Ok(Yaml::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Yaml, A::Error> {
        let inner = self.inner()?;
        let mut mapping: Vec<(String, Yaml)> = Vec::new();
        while let Some(key) = entries.next_key_seed(inner)? {
            let key = match key {
                Yaml::Text(text) | Yaml::Number(text) => text,
                Yaml::Nothing | Yaml::Flag(_) | Yaml::List(_) | Yaml::Mapping(_) => {
                    return Err(A::Error::custom("a key is no text"));
                }
            };
            if mapping.iter().any(|(known, _)| *known == key) {
                let key = shown(&key);
                return Err(A::Error::custom(format_args!("`{key}` stands twice")));
            }
            mapping.push((key, entries.next_value_seed(inner)?));
        }
        Ok(Yaml::Mapping(mapping))
    }

    fn visit_enum<A: serde::de::EnumAccess<'de>>(self, _: A) -> Result<Yaml, A::Error> {
        Err(A::Error::custom("tags such as `!name` are not taken"))
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::{Yaml, read};

    #[test]
    fn values_are_read_as_people_write_them() {
        let text = "a: text\nb: 1.0\nc: [x, true, null]\nd:\n  e: 340282366920938463463374607431768211455\n";
        let Yaml::Mapping(read) = read(text).unwrap() else {
            panic!("no mapping");
        };
        assert_eq!(read[0], ("a".into(), Yaml::Text("text".into())));
        assert_eq!(read[1], ("b".into(), Yaml::Number("1.0".into())));
        assert_eq!(
            read[2].1,
            Yaml::List(vec![
                Yaml::Text("x".into()),
                Yaml::Flag(true),
                Yaml::Nothing
            ])
        );
        let Yaml::Mapping(inner) = &read[3].1 else {
            panic!("no mapping");
        };
        assert_eq!(
            inner[0].1,
            Yaml::Number("340282366920938463463374607431768211455".into())
        );
    }

    #[test]
    fn bombs_end_in_words() {
        let mut aliases = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for n in 1..10 {
            let before = n - 1;
            let ten = vec![format!("*a{before}"); 10].join(", ");
            // Writing to a string cannot fail.
            let _ = writeln!(aliases, "a{n}: &a{n} [{ten}]");
        }
        let copies = format!("a: &a {}\nb: [{}]\n", "x".repeat(9_000), "*a, ".repeat(100));
        let number = format!("a: {}", "9".repeat(10_000));
        for (text, problem) in [
            (aliases, Some("too many values")),
            (copies, Some("too much text")),
            ("[".repeat(5_000), None),
            (
                format!("a: {}{}", "[".repeat(20), "]".repeat(20)),
                Some("too deep"),
            ),
            ("a: 1\na: 2\n".to_owned(), Some("stands twice")),
            ("a: !x 1\n".to_owned(), Some("tags")),
            ("a: *b\n".to_owned(), None),
            ("? [a]\n: b\n".to_owned(), Some("no text")),
            ("a: b: c\n".to_owned(), None),
        ] {
            let wrong = read(&text).unwrap_err();
            if let Some(problem) = problem {
                assert!(wrong.contains(problem), "{wrong}");
            }
        }
        assert!(read(&number).is_ok(), "a long number is a number");
    }
}
