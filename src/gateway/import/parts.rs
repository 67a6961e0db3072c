//! Parts that all forms share: texts, times, calls, and notes about omitted content.

use std::fmt;

use bytes::Bytes;
use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::FileEntry;
use crate::agent::{CarriedFile, Conversation};
use crate::domain::Timestamp;
use crate::session::{SaidElsewhere, Speaker};

/// The maximum number of bytes of one message.
const MAX_TEXT: usize = 256 * 1024;
/// The maximum number of characters of a title.
const MAX_TITLE: usize = 200;
/// The maximum number of bytes of an id from another program; a longer id counts as missing.
const MAX_ID: usize = 256;
/// The maximum number of values of one conversation, counting lists, objects and their items. Each takes up
/// to about two hundred bytes of memory.
const MAX_VALUES: usize = 500_000;
/// The beginning of a line that names omitted content.
const LEFT_OUT: &str = "[Left out: ";
/// The most kinds of omitted content that are listed of one conversation.
const MAX_LISTED: usize = 20;
/// Numbers from this size are milliseconds: as seconds, this number would be the year 5138.
const MILLISECONDS_FROM: f64 = 1e11;

/// A conversation that is being read.
pub(super) struct Reading {
    place: &'static str,
    id: Option<String>,
    title: String,
    created_at: Option<Timestamp>,
    said: Vec<SaidElsewhere>,
    files: Vec<CarriedFile>,
}

impl Reading {
    pub(super) fn new(
        place: &'static str,
        id: &Value,
        title: &Value,
        created_at: Option<Timestamp>,
    ) -> Self {
        let id = id
            .as_str()
            .filter(|id| !id.is_empty() && id.len() <= MAX_ID);
        Self {
            place,
            id: id.map(ToOwned::to_owned),
            title: one_line(title.as_str().unwrap_or_default()),
            created_at,
            said: Vec::new(),
            files: Vec::new(),
        }
    }

    /// Adds a message; consecutive messages of the same speaker are merged.
    pub(super) fn say(&mut self, by: Speaker, at: Option<Timestamp>, text: &str) {
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        if let Some(last) = self.said.last_mut()
            && continues(&last.by, &by)
        {
            last.text.push_str("\n\n");
            last.text.push_str(text);
            last.by = by;
            return;
        }
        if self.said.is_empty() && by != Speaker::Person {
            // A conversation has to begin with a message of a person.
            self.said.push(SaidElsewhere {
                by: Speaker::Person,
                at,
                text: left_out("what came before"),
                attachments: Vec::new(),
            });
        }
        self.said.push(SaidElsewhere {
            by,
            at,
            text: text.to_owned(),
            attachments: Vec::new(),
        });
    }

    /// Attaches a file to the last message of a person.
    pub(super) fn attach(&mut self, at: Option<Timestamp>, name: &str, content: Bytes) {
        if self
            .said
            .last()
            .is_none_or(|last| last.by != Speaker::Person)
        {
            self.said.push(SaidElsewhere {
                by: Speaker::Person,
                at,
                text: String::new(),
                attachments: Vec::new(),
            });
        }
        self.files.push(CarriedFile {
            at: self.said.len().saturating_sub(1),
            name: one_line(name),
            content,
        });
    }

    /// Returns the complete conversation.
    pub(super) fn finish(mut self) -> FileEntry {
        let title = if self.title.is_empty() {
            let first = self.said.first().map_or("", |said| &said.text);
            one_line(first)
        } else {
            self.title
        };
        let unusable = |why| FileEntry::Unusable {
            title: title.clone(),
            why,
        };
        let Some(id) = self.id else {
            return unusable("it has no id, by which it would be known again");
        };
        if self.said.is_empty() {
            return unusable("it is empty");
        }
        for said in &mut self.said {
            shorten(&mut said.text);
        }
        FileEntry::Conversation(Conversation {
            origin: (self.place, id),
            title: if title.is_empty() {
                "Untitled".to_owned()
            } else {
                title
            },
            created_at: self.created_at,
            said: self.said,
            files: self.files,
        })
    }
}

/// True if both speakers are the same, so that their messages are merged. An unnamed model equals any model.
fn continues(last: &Speaker, next: &Speaker) -> bool {
    match (last, next) {
        (Speaker::Person, Speaker::Person) => true,
        (Speaker::Model(last), Speaker::Model(next)) => {
            last.is_none() || next.is_none() || last == next
        }
        (Speaker::Person, Speaker::Model(_)) | (Speaker::Model(_), Speaker::Person) => false,
    }
}

fn shorten(text: &mut String) {
    if text.len() <= MAX_TEXT {
        return;
    }
    let end = text.floor_char_boundary(MAX_TEXT);
    let rest = text.len() - end;
    text.truncate(end);
    text.push_str("\n\n");
    text.push_str(&left_out(&format!("the rest, {rest} bytes")));
}

fn one_line(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    words.chars().take(MAX_TITLE).collect()
}

/// The first `MOST` items of a list, and whether the list has more.
pub(super) struct Items<'a, const MOST: usize> {
    pub(super) items: Vec<&'a RawValue>,
    pub(super) has_more: bool,
}

impl<'de: 'a, 'a, const MOST: usize> Deserialize<'de> for Items<'a, MOST> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct List<const MOST: usize>;
        impl<'de, const MOST: usize> Visitor<'de> for List<MOST> {
            type Value = (Vec<&'de RawValue>, bool);

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut items = Vec::new();
                while items.len() < MOST {
                    let Some(item) = list.next_element()? else {
                        return Ok((items, false));
                    };
                    items.push(item);
                }
                let mut has_more = false;
                while list.next_element::<IgnoredAny>()?.is_some() {
                    has_more = true;
                }
                Ok((items, has_more))
            }
        }
        let (items, has_more) = from.deserialize_seq(List::<MOST>)?;
        Ok(Self { items, has_more })
    }
}

/// True if an entry has more values than the limit. A few bytes can hold very many values.
pub(super) fn has_too_many_values(entry: &RawValue) -> bool {
    let (mut values, mut is_text, mut is_escaped) = (0_usize, false, false);
    for byte in entry.get().bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_text => is_escaped = true,
            b'"' => is_text = !is_text,
            b',' | b'[' | b'{' if !is_text => values += 1,
            _ => {}
        }
    }
    values > MAX_VALUES
}

/// Returns the title of an entry that is not a conversation.
pub(super) fn title_of(entry: &RawValue) -> String {
    #[derive(Deserialize)]
    struct TitleField {
        title: Option<String>,
    }
    let read: Option<TitleField> = serde_json::from_str(entry.get()).ok();
    one_line(&read.and_then(|read| read.title).unwrap_or_default())
}

/// Returns a line that names omitted content.
pub(super) fn left_out(what: &str) -> String {
    let what: String = one_line(what);
    format!("{LEFT_OUT}{what}]")
}

/// Returns a line that names content that has no known form.
pub(super) fn unreadable(what: &str) -> String {
    left_out(&format!("{what} that cannot be read"))
}

/// Returns the lines of a conversation that name what was left out, each once.
pub(in crate::gateway) fn left_out_of(conversation: &Conversation) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let texts = conversation.said.iter().map(|said| said.text.as_str());
    for line in texts.flat_map(str::lines) {
        let what = line.trim().strip_prefix(LEFT_OUT);
        let Some(what) = what.and_then(|what| what.strip_suffix(']')) else {
            continue;
        };
        if found.len() == MAX_LISTED {
            break;
        }
        if !found.iter().any(|known| known == what) {
            found.push(what.to_owned());
        }
    }
    found
}

/// Returns a line that names an omitted file or picture.
pub(super) fn left_out_file(name: Option<&str>) -> String {
    match name.filter(|name| !name.is_empty()) {
        Some(name) => left_out(&format!("the file `{name}`")),
        None => left_out("a file"),
    }
}

/// Describes arguments that replaced the proposed arguments of a call.
pub(super) fn changed(args: &Value) -> String {
    let args = serde_json::to_string_pretty(args).unwrap_or_default();
    format!("The arguments were changed to\n\n{}", fenced("json", &args))
}

/// Describes a call of a tool.
pub(super) fn called(name: &str, args: &Value) -> String {
    let args = match args {
        // Some programs store the arguments as the model's raw text.
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            serde_json::to_string_pretty(args).unwrap_or_default()
        }
    };
    let name = one_line(name);
    if args.trim().is_empty() {
        return format!("Called `{name}`.");
    }
    format!("Called `{name}` with\n\n{}", fenced("json", &args))
}

/// Describes the output of a tool.
pub(super) fn gave(name: Option<&str>, text: &str) -> String {
    let name = name.map_or_else(|| "It".to_owned(), |name| format!("`{}`", one_line(name)));
    if text.trim().is_empty() {
        return format!("{name} gave nothing.");
    }
    format!("{name} gave\n\n{}", fenced("", text))
}

/// Returns a code block whose fence is longer than any run of backticks in the text.
pub(super) fn fenced(language: &str, text: &str) -> String {
    let mut longest = 2;
    let mut run = 0;
    for byte in text.bytes() {
        run = if byte == b'`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat(longest + 1);
    let text = text.trim_end();
    format!("{fence}{language}\n{text}\n{fence}")
}

/// Parses a time in seconds or milliseconds since 1970, or in RFC 3339.
pub(super) fn time(value: &Value) -> Option<Timestamp> {
    if let Some(text) = value.as_str() {
        let at: jiff::Timestamp = text.parse().ok()?;
        return checked(at.as_millisecond());
    }
    let number = value.as_f64().filter(|number| number.is_finite())?;
    let ms = if number.abs() < MILLISECONDS_FROM {
        number * 1_000.0
    } else {
        number
    };
    #[expect(clippy::cast_possible_truncation, reason = "it saturates")]
    checked(ms.round() as i64)
}

/// Refuses times before 1970.
fn checked(ms: i64) -> Option<Timestamp> {
    (ms > 0).then_some(Timestamp(ms))
}

/// Returns a field of an object, or null if it is missing.
pub(super) fn field<'v>(value: &'v Value, name: &str) -> &'v Value {
    const NOTHING: &Value = &Value::Null;
    value.get(name).unwrap_or(NOTHING)
}

/// Returns a text unless it is missing or blank.
pub(super) fn text_of(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !text.trim().is_empty())
}
