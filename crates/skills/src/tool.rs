//! Defines the two tools by which a model reads skills. They only read, so no approval is needed; their
//! definitions depend on no skill, so that vendors' caches stay valid.

use serde_json::{Value, json};

use super::path::is_skill_name;
use sepal_core::domain::{READ_SKILL_FILE, Tool, ToolAnnotations, USE_SKILL};

/// The default length of a part of a file, in bytes.
const USUAL_BYTES: usize = 32_000;
/// The longest part, in bytes.
const MAX_BYTES: usize = 64_000;

/// A request for a part of a skill's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileQuestion {
    /// The skill.
    pub name: String,
    /// The path below the skill's folder.
    pub path: String,
    offset: usize,
    length: usize,
}

impl FileQuestion {
    /// Parses the arguments of a call, or returns what is wrong with them.
    pub fn asked(args: &Value) -> Result<Self, String> {
        let wrong =
            |what: &str| format!("the arguments of `{READ_SKILL_FILE}` are not valid: {what}");
        let path = args.get("path").and_then(Value::as_str);
        let path = path.filter(|path| !path.is_empty());
        let path = path.ok_or_else(|| wrong("`path` is the path of a file of the skill"))?;
        let number = |name: &str, usual: usize| match args.get(name) {
            None | Some(Value::Null) => Ok(usual),
            Some(value) => {
                let number = value
                    .as_u64()
                    .and_then(|number| usize::try_from(number).ok());
                number.ok_or_else(|| wrong(&format!("`{name}` is a number of bytes, 0 or more")))
            }
        };
        Ok(Self {
            name: skill_name(args).ok_or_else(|| wrong("`name` is the name of a skill"))?,
            path: path.strip_prefix("./").unwrap_or(path).to_owned(),
            offset: number("offset", 0)?,
            length: number("length", USUAL_BYTES)?.clamp(1, MAX_BYTES),
        })
    }

    /// Returns the requested part of a text, and where the next one begins; or the reason there is none.
    pub fn part_of(&self, whole: &str) -> Result<String, String> {
        let bytes = whole.len();
        if self.offset > 0 && self.offset >= bytes {
            let offset = self.offset;
            return Err(format!(
                "the file has {bytes} bytes: there is nothing from byte {offset} on"
            ));
        }
        let begin = whole.floor_char_boundary(self.offset);
        let end = whole.floor_char_boundary(begin.saturating_add(self.length).min(bytes));
        // A character may be longer than the requested part.
        let end = if end > begin || begin == bytes {
            end
        } else {
            whole.ceil_char_boundary(begin + 1)
        };
        let part = whole.get(begin..end).unwrap_or_default();
        if begin == 0 && end == bytes {
            return Ok(part.to_owned());
        }
        let next = if end < bytes {
            format!("the next part begins at offset {end}")
        } else {
            "this is its end".to_owned()
        };
        Ok(format!(
            "{part}\n[bytes {begin} to {end} of {bytes}; {next}]"
        ))
    }
}

/// Returns the skill that a call of `use_skill` names, or what is wrong with its arguments.
pub fn asked_skill(args: &Value) -> Result<String, String> {
    skill_name(args).ok_or_else(|| {
        format!(
            "the arguments of `{USE_SKILL}` are not valid: `name` is the name of a skill, such as \
             `pdf-processing`"
        )
    })
}

fn skill_name(args: &Value) -> Option<String> {
    let name = args.get("name").and_then(Value::as_str)?.trim();
    is_skill_name(name).then(|| name.to_owned())
}

/// The definitions of the two tools; always the same.
pub fn definitions() -> [Tool; 2] {
    let name = json!({"type": "string", "description": "The skill's name, as it is listed."});
    let using = "Reads the instructions of a skill, says which files it has, and puts them into the \
                 workspace, if there is one. Call it before you do a task that fits the skill's \
                 description. It runs nothing.";
    let reading = "Reads a file of a skill as text. The path is one that `use_skill` listed.";
    [
        tool(
            USE_SKILL,
            "Use a skill",
            using,
            json!({
                "type": "object",
                "properties": {"name": name},
                "required": ["name"],
            }),
        ),
        tool(
            READ_SKILL_FILE,
            "Read a file of a skill",
            reading,
            json!({
                "type": "object",
                "properties": {
                    "name": name,
                    "path": {"type": "string", "description": "The file, such as `references/forms.md`."},
                    "offset": {"type": "integer", "minimum": 0, "description": "The first byte; 0 without it."},
                    "length": {
                        "type": "integer",
                        "minimum": 1,
                        "description": format!("Bytes, at most {MAX_BYTES}; {USUAL_BYTES} without it."),
                    },
                },
                "required": ["name", "path"],
            }),
        ),
    ]
}

fn tool(name: &str, title: &str, description: &str, input_schema: Value) -> Tool {
    Tool {
        name: name.to_owned(),
        title: Some(title.to_owned()),
        description: description.to_owned(),
        input_schema,
        output_schema: None,
        annotations: ToolAnnotations::default(),
        needs_tasks: false,
        view: None,
        runs_as_task: false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{FileQuestion, asked_skill};

    #[test]
    fn parts_joined_are_the_whole_file() {
        let whole = "zwölf Boxkämpfer ".repeat(400);
        let (mut read, mut offset) = (String::new(), 0);
        while offset < whole.len() {
            let args = json!({ "name": "a", "path": "./b", "offset": offset, "length": 999 });
            let question = FileQuestion::asked(&args).unwrap();
            assert_eq!(question.path, "b");
            let text = question.part_of(&whole).unwrap();
            let (part, _) = text.rsplit_once("\n[").unwrap();
            read.push_str(part);
            offset += part.len();
        }
        assert_eq!(read, whole);
        let all = FileQuestion::asked(&json!({ "name": "a", "path": "b" })).unwrap();
        assert_eq!(all.part_of("short").unwrap(), "short");
        assert_eq!(all.part_of("").unwrap(), "");
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (args, wrong) in [
            (json!({}), "`path` is the path"),
            (json!({ "path": "a" }), "`name` is the name"),
            (json!({ "path": "a", "name": "../b" }), "`name` is the name"),
            (
                json!({ "path": "a", "name": "b", "offset": -1 }),
                "`offset` is a number",
            ),
        ] {
            let error = FileQuestion::asked(&args).unwrap_err();
            assert!(error.contains(wrong), "{error}");
        }
        assert!(asked_skill(&json!({ "name": "PDF" })).is_err());
        assert!(asked_skill(&json!({ "name": 3 })).is_err());
        assert_eq!(asked_skill(&json!({ "name": " pdf " })).unwrap(), "pdf");
    }
}
