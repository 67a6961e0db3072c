//! Rewrites lists of tools, resources and prompts, entry by entry. An entry that cannot be used is left out and
//! named under [`LEFT_OUT`].

use serde_json::{Map, Value, json};

use super::{LEFT_OUT, is_empty, object, put, quoted, results, simple_text, truth};

/// An entry that can be used, with a remark if a part of it was left out; or the reason that it cannot.
type Entry = Result<(Map<String, Value>, Option<String>), String>;

/// The most remarks of one page.
const MAX_REMARKS: usize = 50;

pub(super) fn tools(result: Value) -> Value {
    list(result, "tools", "tool", tool)
}

pub(super) fn resources(result: Value) -> Value {
    list(result, "resources", "resource", |said| {
        let read = results::described(said)?;
        Ok((read, None))
    })
}

pub(super) fn templates(result: Value) -> Value {
    list(result, "resourceTemplates", "template", template)
}

pub(super) fn prompts(result: Value) -> Value {
    list(result, "prompts", "prompt", prompt)
}

/// Rewrites a list. `what` is its member, and one entry of it in words.
fn list(
    result: Value,
    member: &str,
    what: &str,
    read: impl Fn(&Map<String, Value>) -> Entry,
) -> Value {
    let mut members = match result {
        Value::Object(members) => members,
        entries @ Value::Array(_) => Map::from_iter([(member.to_owned(), entries)]),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Map::new(),
    };
    let mut remarks = Vec::new();
    let entries = match members.remove(member) {
        Some(Value::Array(entries)) => entries,
        // Some write a list as an object with the names as its keys.
        Some(Value::Object(named)) => named.into_iter().map(named_entry).collect(),
        Some(Value::Null) | None => Vec::new(),
        Some(Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
            remarks.push(format!("its list of {what}s is no list"));
            Vec::new()
        }
    };
    let mut kept = Vec::new();
    for (at, entry) in entries.into_iter().enumerate() {
        let named = simple_text(entry.get("name").or_else(|| entry.get("uri")));
        let named = named.map_or_else(|| (at + 1).to_string(), |name| quoted(&name));
        let entry = match entry {
            Value::Object(said) => read(&said),
            Value::Null => Err("it is null".to_owned()),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Err("it is no object".to_owned())
            }
        };
        match entry {
            Ok((entry, remark)) => {
                kept.push(Value::Object(entry));
                remarks.extend(remark.map(|remark| format!("its {what} {named}: {remark}")));
            }
            Err(reason) => remarks.push(format!("its {what} {named} is left out: {reason}")),
        }
    }
    let more = remarks.len().saturating_sub(MAX_REMARKS);
    remarks.truncate(MAX_REMARKS);
    if more > 0 {
        remarks.push(format!("its list of {what}s has {more} more such entries"));
    }
    let mut list = Map::new();
    list.insert(member.to_owned(), kept.into());
    let cursor = simple_text(members.get("nextCursor")).filter(|cursor| !cursor.is_empty());
    put(&mut list, "nextCursor", cursor);
    let mut meta = object(members.get("_meta")).unwrap_or_default();
    // Only we write this member.
    meta.remove(LEFT_OUT);
    if !remarks.is_empty() {
        meta.insert(LEFT_OUT.to_owned(), remarks.into());
    }
    put(&mut list, "_meta", (!meta.is_empty()).then_some(meta));
    Value::Object(list)
}

fn named_entry((name, mut entry): (String, Value)) -> Value {
    if let Value::Object(said) = &mut entry {
        said.entry("name").or_insert_with(|| name.into());
    }
    entry
}

fn tool(said: &Map<String, Value>) -> Entry {
    let name = simple_text(said.get("name")).filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| "it has no name".to_owned())?;
    let mut remark = None;
    let schemas = ["inputSchema", "input_schema", "parameters"];
    let schema = schemas.iter().find_map(|member| said.get(*member));
    let schema = match schema {
        Some(Value::Object(schema)) => schema.clone(),
        None | Some(Value::Null) => {
            remark = Some("it has no input schema, so any arguments are passed on".to_owned());
            any_object()
        }
        Some(Value::String(text)) => {
            if let Ok(Value::Object(schema)) = serde_json::from_str(text) {
                schema
            } else {
                remark = Some(unreadable_schema());
                any_object()
            }
        }
        Some(_) => {
            remark = Some(unreadable_schema());
            any_object()
        }
    };
    let mut tool = Map::new();
    put(&mut tool, "name", Some(name));
    put(&mut tool, "title", simple_text(said.get("title")));
    put(
        &mut tool,
        "description",
        simple_text(said.get("description")),
    );
    put(&mut tool, "inputSchema", Some(schema));
    let output = said.get("outputSchema").filter(|output| !is_empty(output));
    put(&mut tool, "outputSchema", object(output));
    if output.is_some_and(|output| !output.is_object()) {
        let words = "its output schema is no object, so results are not checked";
        remark.get_or_insert_with(|| words.to_owned());
    }
    put(&mut tool, "annotations", hints(said.get("annotations")));
    put(&mut tool, "execution", object(said.get("execution")));
    put(&mut tool, "_meta", object(said.get("_meta")));
    Ok((tool, remark))
}

fn any_object() -> Map<String, Value> {
    Map::from_iter([("type".to_owned(), json!("object"))])
}

fn unreadable_schema() -> String {
    "its input schema is no object, so any arguments are passed on".to_owned()
}

/// Keeps the hints of a tool that can be read.
fn hints(said: Option<&Value>) -> Option<Map<String, Value>> {
    let said = said?.as_object()?;
    let mut hints = Map::new();
    put(&mut hints, "title", simple_text(said.get("title")));
    for hint in [
        "readOnlyHint",
        "destructiveHint",
        "idempotentHint",
        "openWorldHint",
    ] {
        put(&mut hints, hint, truth(said.get(hint)));
    }
    Some(hints)
}

fn template(said: &Map<String, Value>) -> Entry {
    let uri = ["uriTemplate", "uri_template", "uri"].iter();
    let uri = uri
        .clone()
        .find_map(|member| simple_text(said.get(*member)));
    let uri = uri.filter(|uri| !uri.is_empty());
    let uri = uri.ok_or_else(|| "it has no address".to_owned())?;
    let title = simple_text(said.get("title"));
    let name = simple_text(said.get("name")).or_else(|| title.clone());
    let mut template = Map::new();
    put(
        &mut template,
        "name",
        Some(name.unwrap_or_else(|| uri.clone())),
    );
    put(&mut template, "uriTemplate", Some(uri));
    put(&mut template, "title", title);
    put(
        &mut template,
        "description",
        simple_text(said.get("description")),
    );
    put(
        &mut template,
        "mimeType",
        said.get("mimeType").and_then(Value::as_str),
    );
    Ok((template, None))
}

fn prompt(said: &Map<String, Value>) -> Entry {
    let name = simple_text(said.get("name")).filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| "it has no name".to_owned())?;
    let mut remark = None;
    let arguments = match said.get("arguments") {
        Some(Value::Array(arguments)) => arguments.clone(),
        Some(Value::Object(named)) => named.clone().into_iter().map(named_entry).collect(),
        None | Some(Value::Null) => Vec::new(),
        Some(_) => {
            remark = Some("its arguments are no list".to_owned());
            Vec::new()
        }
    };
    let mut read = Vec::new();
    for argument in &arguments {
        match read_argument(argument) {
            Some(argument) => read.push(argument),
            None => remark = Some("an argument without a name is left out".to_owned()),
        }
    }
    let mut prompt = Map::new();
    put(&mut prompt, "name", Some(name));
    put(&mut prompt, "title", simple_text(said.get("title")));
    put(
        &mut prompt,
        "description",
        simple_text(said.get("description")),
    );
    put(&mut prompt, "arguments", Some(read));
    Ok((prompt, remark))
}

fn read_argument(said: &Value) -> Option<Value> {
    let mut argument = Map::new();
    let name = simple_text(Some(said)).or_else(|| simple_text(said.get("name")))?;
    put(&mut argument, "name", Some(name));
    put(&mut argument, "title", simple_text(said.get("title")));
    put(
        &mut argument,
        "description",
        simple_text(said.get("description")),
    );
    put(&mut argument, "required", truth(said.get("required")));
    Some(Value::Object(argument))
}

#[cfg(test)]
mod tests {
    use rmcp::model::{
        ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    };
    use serde_json::{Value, json};

    use super::super::LEFT_OUT;
    use super::{prompts, resources, templates, tools};

    fn fine(name: &str) -> Value {
        json!({"name": name, "inputSchema": {"type": "object"}})
    }

    #[test]
    fn one_odd_tool_hides_no_other() {
        let left_out = |reason: &str| Some(format!("its tool 2 is left out: {reason}"));
        let any = |remark: &str| Some(format!("its tool `t`: {remark}"));
        let no_schema = "it has no input schema, so any arguments are passed on";
        let odd_schema = "its input schema is no object, so any arguments are passed on";
        for (tool, expected, remark) in [
            (fine("t"), Some(fine("t")), None),
            (json!({"name": "t"}), Some(fine("t")), any(no_schema)),
            (
                json!({"name": "t", "inputSchema": null}),
                Some(fine("t")),
                any(no_schema),
            ),
            (
                json!({"name": "t", "inputSchema": "object"}),
                Some(fine("t")),
                any(odd_schema),
            ),
            (
                json!({"name": "t", "inputSchema": []}),
                Some(fine("t")),
                any(odd_schema),
            ),
            (
                json!({"name": "t", "inputSchema": true}),
                Some(fine("t")),
                any(odd_schema),
            ),
            (
                json!({"name": "t", "inputSchema": "{\"type\":\"object\"}"}),
                Some(fine("t")),
                None,
            ),
            (
                json!({"name": "t", "input_schema": {"type": "object"}}),
                Some(fine("t")),
                None,
            ),
            (
                json!({"name": "t", "parameters": {"type": "object"}}),
                Some(fine("t")),
                None,
            ),
            (
                json!({"name": 5, "inputSchema": {"type": "object"}}),
                Some(fine("5")),
                None,
            ),
            (json!({"inputSchema": {}}), None, left_out("it has no name")),
            (
                json!({"name": "", "inputSchema": {}}),
                None,
                Some("its tool `` is left out: it has no name".to_owned()),
            ),
            (
                json!({"name": null, "inputSchema": {}}),
                None,
                left_out("it has no name"),
            ),
            (json!(null), None, left_out("it is null")),
            (json!("t"), None, left_out("it is no object")),
            (
                json!({"name": "t", "inputSchema": {"type": "object"}, "annotations": "none", "icons": 5, "_meta": []}),
                Some(fine("t")),
                None,
            ),
            (
                json!({"name": "t", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": "true", "title": 5, "destructiveHint": null}}),
                Some(
                    json!({"name": "t", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true, "title": "5"}}),
                ),
                None,
            ),
            (
                json!({"name": "t", "inputSchema": {"type": "object"}, "outputSchema": null}),
                Some(fine("t")),
                None,
            ),
            (
                json!({"name": "t", "inputSchema": {"type": "object"}, "outputSchema": "text"}),
                Some(fine("t")),
                any("its output schema is no object, so results are not checked"),
            ),
        ] {
            let read = tools(json!({"tools": [fine("a"), tool, fine("b")]}));
            serde_json::from_value::<ListToolsResult>(read.clone()).unwrap();
            let all: Vec<Value> = [Some(fine("a")), expected, Some(fine("b"))]
                .into_iter()
                .flatten()
                .collect();
            assert_eq!(read["tools"], json!(all), "{tool}");
            let remarks = remark.map(|remark| vec![remark]);
            assert_eq!(json!(read["_meta"][LEFT_OUT]), json!(remarks), "{tool}");
        }
    }

    #[test]
    fn a_list_is_one_in_any_form() {
        for (result, expected) in [
            (json!({"tools": [fine("a")]}), json!([fine("a")])),
            (json!([fine("a")]), json!([fine("a")])),
            (
                json!({"tools": {"a": {"inputSchema": {"type": "object"}}}}),
                json!([fine("a")]),
            ),
            (json!({"tools": null}), json!([])),
            (json!({}), json!([])),
            (json!(null), json!([])),
            (json!({"tools": "none"}), json!([])),
        ] {
            assert_eq!(tools(result.clone())["tools"], expected, "{result}");
        }
        for (cursor, expected) in [
            (json!("2"), json!("2")),
            (json!(2), json!("2")),
            (json!(""), json!(null)),
            (json!(null), json!(null)),
            (json!({"page": 2}), json!(null)),
        ] {
            let read = tools(json!({"tools": [], "nextCursor": cursor}));
            assert_eq!(read["nextCursor"], expected, "{cursor}");
        }
        let many = vec![Value::Null; 60];
        let read = tools(json!({"tools": many, "_meta": {"a": 1, "sepal/leftOut": ["theirs"]}}));
        let remarks = read["_meta"][LEFT_OUT].as_array().unwrap();
        assert_eq!(remarks.len(), 51);
        assert_eq!(remarks[50], "its list of tools has 10 more such entries");
        assert_eq!(read["_meta"]["a"], 1);
    }

    #[test]
    fn one_odd_resource_template_or_prompt_hides_no_other() {
        let read = resources(json!({"resources": [
            null, {"uri": "a://b/c"}, {"name": "n"}, {"uri": "a:d", "name": 5, "size": "7", "icons": {}},
        ]}));
        serde_json::from_value::<ListResourcesResult>(read.clone()).unwrap();
        assert_eq!(
            read["resources"],
            json!([{"uri": "a://b/c", "name": "c"}, {"uri": "a:d", "name": "5", "size": 7}])
        );
        assert_eq!(
            read["_meta"][LEFT_OUT],
            json!([
                "its resource 1 is left out: it is null",
                "its resource `n` is left out: a resource without address"
            ])
        );
        let read =
            templates(json!({"resourceTemplates": [{"uriTemplate": "a:{b}"}, {"name": "n"}, 5]}));
        serde_json::from_value::<ListResourceTemplatesResult>(read.clone()).unwrap();
        assert_eq!(
            read["resourceTemplates"],
            json!([{"name": "a:{b}", "uriTemplate": "a:{b}"}])
        );
        let read = prompts(json!({"prompts": [
            {"name": "p", "arguments": [{"name": "a", "required": "true"}, "b", null, {"description": "c"}]},
            {"description": "no name"},
            {"name": 5, "arguments": {"a": {"required": false}}},
            {"name": "q", "arguments": "none"},
        ]}));
        serde_json::from_value::<ListPromptsResult>(read.clone()).unwrap();
        assert_eq!(
            read["prompts"],
            json!([
                {"name": "p", "arguments": [{"name": "a", "required": true}, {"name": "b"}]},
                {"name": "5", "arguments": [{"name": "a", "required": false}]},
                {"name": "q", "arguments": []},
            ])
        );
        assert_eq!(
            read["_meta"][LEFT_OUT],
            json!([
                "its prompt `p`: an argument without a name is left out",
                "its prompt 2 is left out: it has no name",
                "its prompt `q`: its arguments are no list",
            ])
        );
    }
}
