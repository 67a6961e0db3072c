//! Rewrites results: of tools, resources, prompts and completions. A piece that cannot be read becomes a line
//! that names it, in its place.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::{MAX_QUOTED, is_empty, object, put, quoted, simple_text, text, truth};

/// The most characters of a piece of an unknown kind that are kept.
const MAX_UNKNOWN: usize = 2_000;

/// The address of a resource that has none.
const NO_ADDRESS: &str = "resource:unnamed";

/// Rewrites the result of a tool. The call ran: whatever the result looks like, it is one.
pub(super) fn tool(result: Value) -> Value {
    if is_other(&result) {
        return result;
    }
    if result.is_null() {
        return json!({ "content": [note("the server answered without a result")] });
    }
    let Value::Object(mut members) = result else {
        return json!({ "content": contents(result) });
    };
    let mut result = Map::new();
    let content = members.remove("content");
    let structured = ["structuredContent", "structured_content"];
    let structured = structured.iter().find_map(|name| members.remove(*name));
    let is_error = ["isError", "is_error"];
    let is_error = is_error.iter().find_map(|name| members.remove(*name));
    // Revision 2024-10-07 has `toolResult` instead of `content`.
    let old = members.remove("toolResult");
    let is_blank = content.as_ref().is_none_or(Value::is_null);
    let content = match (content, old) {
        (Some(content), _) if !is_blank => contents(content),
        (_, Some(old)) => contents(old),
        _ if structured.is_some() || is_error.is_some() => Vec::new(),
        _ => bare(&members),
    };
    result.insert("content".to_owned(), content.into());
    put(&mut result, "structuredContent", structured);
    put(&mut result, "isError", truth(is_error.as_ref()));
    put(&mut result, "_meta", object(members.get("_meta")));
    Value::Object(result)
}

/// Returns true if the answer is a task, or asks for something first, instead of being a result.
fn is_other(result: &Value) -> bool {
    let kind = result.get("resultType").and_then(Value::as_str);
    matches!(kind, Some("input_required" | "task")) || crate::wire::message::is_task(result)
}

/// Returns the content of a result that has none of the members of a result.
fn bare(members: &Map<String, Value>) -> Vec<Value> {
    let mut said = members.clone();
    said.retain(|name, _| name != "_meta" && name != "resultType");
    if said.is_empty() {
        return vec![note("the server answered with an empty result")];
    }
    contents(Value::Object(said))
}

/// Rewrites the content of a result.
fn contents(content: Value) -> Vec<Value> {
    let pieces = as_list(content);
    let pieces = pieces.into_iter().enumerate();
    pieces
        .map(|(at, piece)| {
            block(&piece).unwrap_or_else(|reason| {
                note(&format!(
                    "part {} of the answer is left out: {reason}",
                    at + 1
                ))
            })
        })
        .collect()
}

/// Returns a list, which some leave out around its only element.
fn as_list(value: Value) -> Vec<Value> {
    if let Value::Array(items) = value {
        return items;
    }
    if value.is_null() {
        Vec::new()
    } else {
        vec![value]
    }
}

/// Returns a member of an object, or the value itself, which some send in place of the object.
fn inner(mut value: Value, member: &str) -> Value {
    match value
        .as_object_mut()
        .and_then(|members| members.remove(member))
    {
        Some(inner) => inner,
        None => value,
    }
}

/// Rewrites the result of reading a resource.
pub(super) fn resource(result: Value) -> Value {
    let meta = object(result.get("_meta"));
    let has_contents = result.get("contents").is_some();
    let member = if has_contents { "contents" } else { "content" };
    let contents = as_list(inner(result, member));
    let read = contents.iter().enumerate().map(|(at, content)| {
        resource_contents(content).unwrap_or_else(|reason| {
            let words = format!("[part {} of the resource is left out: {reason}]", at + 1);
            json!({ "uri": NO_ADDRESS, "text": words })
        })
    });
    let mut result = Map::new();
    result.insert("contents".to_owned(), read.collect());
    put(&mut result, "_meta", meta);
    Value::Object(result)
}

/// Rewrites a prompt. A message with several pieces becomes several messages.
pub(super) fn prompt(result: Value) -> Value {
    let description = simple_text(result.get("description"));
    let messages = as_list(inner(result, "messages"));
    let mut read = Vec::new();
    for (at, message) in messages.into_iter().enumerate() {
        let role = message.get("role").and_then(Value::as_str);
        let role = match role.map(str::to_ascii_lowercase).as_deref() {
            Some("assistant" | "model" | "ai") => "assistant",
            _ => "user",
        };
        let content = inner(message, "content");
        let pieces = if content.is_null() {
            vec![content]
        } else {
            as_list(content)
        };
        for piece in pieces {
            let content = block(&piece).unwrap_or_else(|reason| {
                note(&format!("part of message {} is left out: {reason}", at + 1))
            });
            read.push(json!({ "role": role, "content": content }));
        }
    }
    let mut result = Map::new();
    put(&mut result, "description", description);
    result.insert("messages".to_owned(), read.into());
    Value::Object(result)
}

/// Rewrites the values of a completion.
pub(super) fn completion(result: &Value) -> Value {
    let of = result.get("completion").unwrap_or(result);
    let values = of.get("values").unwrap_or(of);
    let values = values.as_array().map(Vec::as_slice).unwrap_or_default();
    let values: Vec<String> = values
        .iter()
        .filter_map(|value| simple_text(Some(value)))
        .collect();
    json!({ "completion": { "values": values } })
}

/// Builds a line that names what is missing.
fn note(words: &str) -> Value {
    plain(format!("[{words}]"))
}

fn plain(text: impl Into<String>) -> Value {
    json!({ "type": "text", "text": text.into() })
}

/// Rewrites one piece, or says why it cannot be read.
fn block(piece: &Value) -> Result<Value, String> {
    if piece.is_null() {
        return Err("it is null".to_owned());
    }
    let Value::Object(members) = piece else {
        return Ok(plain(text(piece)));
    };
    let kind = members.get("type").and_then(Value::as_str);
    let kind = kind.map(|kind| kind.trim().to_ascii_lowercase().replace('-', "_"));
    let kind = kind.as_deref().unwrap_or_else(|| guessed(members));
    let mut read = match kind {
        "text" | "input_text" | "output_text" => plain(text_of(members)?),
        "image" | "image_url" | "input_image" => media("image", members)?,
        "audio" | "input_audio" => media("audio", members)?,
        "resource" => {
            let said = members.get("resource").unwrap_or(piece);
            json!({ "type": "resource", "resource": resource_contents(said)? })
        }
        "resource_link" | "resourcelink" => link(members)?,
        "json" => {
            let said = ["json", "data", "value", "content"];
            let said = said.iter().find_map(|name| members.get(*name));
            plain(said.unwrap_or(piece).to_string())
        }
        "" => plain(piece.to_string()),
        other => unknown(other, members, piece),
    };
    let annotations = members.get("annotations").and_then(annotations);
    if let (Some(read), Some(annotations)) = (read.as_object_mut(), annotations) {
        read.insert("annotations".to_owned(), annotations);
    }
    Ok(read)
}

/// Guesses the kind of a piece that names none.
fn guessed(members: &Map<String, Value>) -> &'static str {
    let has = |name: &str| members.contains_key(name);
    let kind = simple_text(members.get("mimeType")).unwrap_or_default();
    match () {
        () if has("text") && !has("uri") => "text",
        () if has("data") && kind.starts_with("image/") => "image",
        () if has("data") && kind.starts_with("audio/") => "audio",
        () if has("resource") => "resource",
        () if has("uri") && (has("text") || has("blob")) => "resource",
        () if has("uri") => "resource_link",
        () => "",
    }
}

fn text_of(members: &Map<String, Value>) -> Result<String, String> {
    let said = ["text", "content", "value"].iter();
    let said = said.filter_map(|name| members.get(*name));
    let said = said.into_iter().find(|value| !value.is_null());
    said.map(text)
        .ok_or_else(|| "a text without text".to_owned())
}

/// Keeps what can be read of a piece of an unknown kind.
fn unknown(kind: &str, members: &Map<String, Value>, piece: &Value) -> Value {
    let said = match members.get("text").and_then(Value::as_str) {
        Some(text) => text.to_owned(),
        None => piece.to_string().chars().take(MAX_UNKNOWN).collect(),
    };
    let kind = quoted(kind);
    plain(format!(
        "[content of the kind {kind}, which is not known here]\n{said}"
    ))
}

/// Rewrites a picture or sound: its bytes may be base64, a `data:` address, or a list of numbers.
fn media(kind: &str, members: &Map<String, Value>) -> Result<Value, String> {
    let source = members.get("source").and_then(Value::as_object);
    let named = [
        "data",
        "image_url",
        "input_audio",
        "url",
        "uri",
        "base64",
        "blob",
    ];
    let said = named.iter().find_map(|name| {
        let found = members.get(*name).or_else(|| source?.get(*name));
        found.filter(|value| !is_empty(value))
    });
    // OpenAI's forms put the address into an object.
    let said = said.and_then(|said| {
        let inner = said.get("url").or_else(|| said.get("data"));
        inner.filter(|inner| inner.is_string()).or(Some(said))
    });
    let data = match said {
        Some(Value::String(data)) => data.clone(),
        Some(bytes) => {
            STANDARD.encode(numbers(bytes).ok_or_else(|| format!("its {kind} data is no base64"))?)
        }
        None => return Err(format!("its {kind} has no data")),
    };
    if data.starts_with("http://") || data.starts_with("https://") {
        let name = quoted(&data);
        return Ok(json!({ "type": "resource_link", "uri": data, "name": name }));
    }
    let types = [
        "mimeType",
        "mime_type",
        "mimetype",
        "media_type",
        "mediaType",
    ];
    let declared = types.iter().find_map(|name| {
        let found = members.get(*name).or_else(|| source?.get(*name));
        found
            .and_then(Value::as_str)
            .filter(|kind| kind.contains('/'))
    });
    let in_address = data.trim_start().strip_prefix("data:");
    let in_address = in_address.and_then(|rest| rest.split([';', ',']).next());
    let mime_type = declared
        .or(in_address.filter(|kind| kind.contains('/')))
        .unwrap_or_else(|| sniffed(kind, &data));
    Ok(json!({ "type": kind, "data": data, "mimeType": mime_type }))
}

/// Returns bytes that were written as a list of numbers, as Node writes a `Buffer`.
fn numbers(value: &Value) -> Option<Vec<u8>> {
    let list = value.get("data").unwrap_or(value).as_array()?;
    let byte = |number: &Value| u8::try_from(number.as_u64()?).ok();
    list.iter().map(byte).collect()
}

/// Returns the type of base64 by its first bytes.
fn sniffed(kind: &str, data: &str) -> &'static str {
    let data = data.trim_start();
    let known = [
        ("iVBORw0KGgo", "image/png"),
        ("/9j/", "image/jpeg"),
        ("_9j_", "image/jpeg"),
        ("R0lGOD", "image/gif"),
        (
            "UklGR",
            if kind == "image" {
                "image/webp"
            } else {
                "audio/wav"
            },
        ),
        ("SUQz", "audio/mpeg"),
        ("T2dnUw", "audio/ogg"),
    ];
    let found = known.iter().find(|(begin, _)| data.starts_with(begin));
    found.map_or("application/octet-stream", |(_, kind)| kind)
}

/// Rewrites the content of a resource.
fn resource_contents(said: &Value) -> Result<Value, String> {
    if said.is_null() {
        return Err("a resource without content".to_owned());
    }
    let Value::Object(members) = said else {
        return Ok(json!({ "uri": NO_ADDRESS, "text": text(said) }));
    };
    let uri = ["uri", "url"].iter();
    let uri = uri.clone().find_map(|name| simple_text(members.get(*name)));
    let name = uri.clone().unwrap_or_else(|| NO_ADDRESS.to_owned());
    let mut read = Map::new();
    read.insert("uri".to_owned(), name.clone().into());
    let types = ["mimeType", "mime_type"];
    let mime_type = types.iter().find_map(|name| members.get(*name)?.as_str());
    put(&mut read, "mimeType", mime_type);
    let written = members.get("text").filter(|text| !text.is_null());
    let blob = members.get("blob").filter(|blob| !blob.is_null());
    match (written, blob) {
        (Some(written), _) => put(&mut read, "text", Some(text(written))),
        (None, Some(Value::String(blob))) => put(&mut read, "blob", Some(blob.as_str())),
        (None, Some(blob)) => match numbers(blob) {
            Some(bytes) => put(&mut read, "blob", Some(STANDARD.encode(bytes))),
            None => return Err(format!("the resource {} is no base64", quoted(&name))),
        },
        (None, None) if uri.is_none() => return Err("a resource without address".to_owned()),
        (None, None) => {
            return Err(format!(
                "the resource {} has neither text nor bytes",
                quoted(&name)
            ));
        }
    }
    put(&mut read, "_meta", object(members.get("_meta")));
    Ok(Value::Object(read))
}

/// Rewrites a link to a resource.
fn link(members: &Map<String, Value>) -> Result<Value, String> {
    let mut read = described(members)?;
    read.insert("type".to_owned(), "resource_link".into());
    Ok(Value::Object(read))
}

/// Rewrites the description of a resource, or says why it cannot be read.
pub(super) fn described(members: &Map<String, Value>) -> Result<Map<String, Value>, String> {
    let uri = ["uri", "url", "href"].iter();
    let uri = uri.clone().find_map(|name| simple_text(members.get(*name)));
    let uri = uri.filter(|uri| !uri.is_empty());
    let uri = uri.ok_or_else(|| "a resource without address".to_owned())?;
    let title = simple_text(members.get("title"));
    let name = simple_text(members.get("name")).filter(|name| !name.is_empty());
    let name = name.or_else(|| title.clone()).unwrap_or_else(|| {
        let last = uri.trim_end_matches('/').rsplit('/').next();
        let last = last.filter(|last| !last.is_empty()).unwrap_or(&uri);
        last.chars().take(MAX_QUOTED).collect()
    });
    let mut read = Map::new();
    put(&mut read, "uri", Some(uri));
    put(&mut read, "name", Some(name));
    put(&mut read, "title", title);
    put(
        &mut read,
        "description",
        simple_text(members.get("description")),
    );
    let mime_type = members.get("mimeType").and_then(Value::as_str);
    put(&mut read, "mimeType", mime_type);
    let size = simple_text(members.get("size"));
    put(
        &mut read,
        "size",
        size.and_then(|size| size.trim().parse::<u64>().ok()),
    );
    put(
        &mut read,
        "annotations",
        members.get("annotations").and_then(annotations),
    );
    put(&mut read, "_meta", object(members.get("_meta")));
    Ok(read)
}

/// Keeps the annotations that can be read.
fn annotations(said: &Value) -> Option<Value> {
    let said = said.as_object()?;
    let role = |role: &Value| match role.as_str()?.trim().to_ascii_lowercase().as_str() {
        "user" => Some("user"),
        "assistant" => Some("assistant"),
        _ => None,
    };
    let audience: Option<Vec<&str>> = match said.get("audience") {
        Some(Value::Array(roles)) => Some(roles.iter().filter_map(role).collect()),
        Some(one @ Value::String(_)) => Some(role(one).into_iter().collect()),
        _ => None,
    };
    let mut read = Map::new();
    put(&mut read, "audience", audience);
    put(
        &mut read,
        "lastModified",
        simple_text(said.get("lastModified")),
    );
    Some(Value::Object(read))
}

#[cfg(test)]
mod tests {
    use rmcp::model::{CallToolResult, CompleteResult, GetPromptResult, ReadResourceResult};
    use serde_json::{Value, json};

    use super::{completion, prompt, resource, tool};

    const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=";

    /// Returns the content of a result, which rmcp reads too.
    fn content(result: Value) -> Value {
        let read = tool(result);
        serde_json::from_value::<CallToolResult>(read.clone()).unwrap();
        read["content"].clone()
    }

    fn text(text: &str) -> Value {
        json!({"type": "text", "text": text})
    }

    #[test]
    fn every_result_of_a_tool_is_one() {
        for (result, expected) in [
            (json!({"content": [text("a")]}), json!([text("a")])),
            (json!({"content": text("a")}), json!([text("a")])),
            (json!({"content": "a"}), json!([text("a")])),
            (json!({"content": 5}), json!([text("5")])),
            (json!({"content": {"a": 1}}), json!([text("{\"a\":1}")])),
            (json!({"content": null, "isError": false}), json!([])),
            (
                json!({"content": null, "structuredContent": {"a": 1}}),
                json!([]),
            ),
            (json!({"structuredContent": {"a": 1}}), json!([])),
            (json!({"isError": true}), json!([])),
            (json!({"content": []}), json!([])),
            (json!({"toolResult": "a"}), json!([text("a")])),
            (json!({"toolResult": {"a": 1}}), json!([text("{\"a\":1}")])),
            (
                json!({"content": null, "toolResult": [text("a")]}),
                json!([text("a")]),
            ),
            (json!("a"), json!([text("a")])),
            (json!(21.5), json!([text("21.5")])),
            (json!([text("a"), "b"]), json!([text("a"), text("b")])),
            (json!(text("a")), json!([text("a")])),
            (
                json!({"temperature": 21}),
                json!([text("{\"temperature\":21}")]),
            ),
            (
                json!({"content": [text("a")], "tools": [], "messages": []}),
                json!([text("a")]),
            ),
            (
                json!({"content": [text("a")], "resultType": "final"}),
                json!([text("a")]),
            ),
            (
                json!({"content": [text("a")], "_meta": []}),
                json!([text("a")]),
            ),
            (
                json!({}),
                json!([text("[the server answered with an empty result]")]),
            ),
            (
                json!({"content": null}),
                json!([text("[the server answered with an empty result]")]),
            ),
            (
                json!(null),
                json!([text("[the server answered without a result]")]),
            ),
        ] {
            assert_eq!(content(result.clone()), expected, "{result}");
        }
    }

    #[test]
    fn a_failure_is_one_in_any_spelling() {
        for (said, expected) in [
            (json!(true), json!(true)),
            (json!("true"), json!(true)),
            (json!("True"), json!(true)),
            (json!(1), json!(true)),
            (json!("false"), json!(false)),
            (json!(0), json!(false)),
            (json!(null), json!(null)),
            (json!("maybe"), json!(null)),
        ] {
            let read = tool(json!({"content": [], "isError": said}));
            assert_eq!(read["isError"], expected, "{said}");
        }
        assert_eq!(
            tool(json!({"content": [], "is_error": true}))["isError"],
            true
        );
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "one row for each form")]
    fn each_piece_of_a_result_is_read_or_named() {
        let left_out =
            |reason: &str| text(&format!("[part 2 of the answer is left out: {reason}]"));
        let image = |kind: &str| json!({"type": "image", "data": PNG, "mimeType": kind});
        let link = |name: &str| json!({"type": "resource_link", "uri": "a://b/c", "name": name});
        let embedded = |resource: Value| json!({"type": "resource", "resource": resource});
        for (piece, expected) in [
            // Texts.
            (json!({"type": "text", "text": 5}), text("5")),
            (json!({"type": "text", "text": true}), text("true")),
            (json!({"type": "text", "text": {"a": 1}}), text("{\"a\":1}")),
            (json!({"type": "text", "text": ["a"]}), text("[\"a\"]")),
            (
                json!({"type": "text", "text": null}),
                left_out("a text without text"),
            ),
            (json!({"type": "text"}), left_out("a text without text")),
            (json!({"type": "text", "content": "a"}), text("a")),
            (json!({"type": "Text", "text": "a"}), text("a")),
            (json!({"text": "a"}), text("a")),
            (json!("a"), text("a")),
            (json!(5), text("5")),
            (json!(["a"]), text("[\"a\"]")),
            (json!(null), left_out("it is null")),
            // JSON.
            (json!({"type": "json", "json": {"a": 1}}), text("{\"a\":1}")),
            (json!({"type": "json", "data": [1]}), text("[1]")),
            (json!({"a": 1}), text("{\"a\":1}")),
            // Pictures and sounds.
            (
                json!({"type": "image", "data": PNG, "mimeType": "image/png"}),
                image("image/png"),
            ),
            (json!({"type": "image", "data": PNG}), image("image/png")),
            (
                json!({"type": "image", "data": PNG, "mime_type": "image/x"}),
                image("image/x"),
            ),
            (
                json!({"data": PNG, "mimeType": "image/png"}),
                image("image/png"),
            ),
            (
                json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}),
                image("image/png"),
            ),
            (
                json!({"type": "image", "data": {"type": "Buffer", "data": [1, 2]}, "mimeType": "image/png"}),
                json!({"type": "image", "data": "AQI=", "mimeType": "image/png"}),
            ),
            (
                json!({"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{PNG}")}}),
                json!({"type": "image", "data": format!("data:image/png;base64,{PNG}"), "mimeType": "image/png"}),
            ),
            (
                json!({"type": "image_url", "image_url": {"url": "https://a.example/b.png"}}),
                json!({"type": "resource_link", "uri": "https://a.example/b.png", "name": "`https://a.example/b.png`"}),
            ),
            (
                json!({"type": "image", "data": null}),
                left_out("its image has no data"),
            ),
            (
                json!({"type": "image", "data": {"a": 1}}),
                left_out("its image data is no base64"),
            ),
            (
                json!({"type": "audio", "data": "UklGRg=="}),
                json!({"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"}),
            ),
            // Resources.
            (
                embedded(json!({"uri": "a:b", "text": "t"})),
                embedded(json!({"uri": "a:b", "text": "t"})),
            ),
            (
                embedded(json!({"uri": "a:b", "text": {"a": 1}})),
                embedded(json!({"uri": "a:b", "text": "{\"a\":1}"})),
            ),
            (
                embedded(json!({"uri": "a:b", "text": null, "blob": "AA"})),
                embedded(json!({"uri": "a:b", "blob": "AA"})),
            ),
            (
                embedded(json!({"uri": "a:b", "blob": [0]})),
                embedded(json!({"uri": "a:b", "blob": "AA=="})),
            ),
            (
                embedded(json!({"text": "t"})),
                embedded(json!({"uri": "resource:unnamed", "text": "t"})),
            ),
            (
                embedded(json!("t")),
                embedded(json!({"uri": "resource:unnamed", "text": "t"})),
            ),
            (
                json!({"type": "resource", "uri": "a:b", "text": "t"}),
                embedded(json!({"uri": "a:b", "text": "t"})),
            ),
            (
                embedded(json!({"uri": "a:b"})),
                left_out("the resource `a:b` has neither text nor bytes"),
            ),
            (
                embedded(json!({"uri": "a:b", "blob": {}})),
                left_out("the resource `a:b` is no base64"),
            ),
            (embedded(json!({})), left_out("a resource without address")),
            (
                embedded(json!(null)),
                left_out("a resource without content"),
            ),
            // Links.
            (
                json!({"type": "resource_link", "uri": "a://b/c", "name": "n"}),
                link("n"),
            ),
            (
                json!({"type": "resource_link", "uri": "a://b/c"}),
                link("c"),
            ),
            (
                json!({"type": "resource-link", "uri": "a://b/c", "name": 5}),
                link("5"),
            ),
            (
                json!({"type": "resource_link", "uri": "a://b/c", "name": "n", "size": -1}),
                link("n"),
            ),
            (
                json!({"type": "resource_link", "uri": "a://b/c", "name": "n", "mimeType": 1, "icons": 2}),
                link("n"),
            ),
            (
                json!({"type": "resource_link", "uri": "a:b", "name": "n", "size": "12"}),
                json!({"type": "resource_link", "uri": "a:b", "name": "n", "size": 12}),
            ),
            (
                json!({"type": "resource_link", "name": "n"}),
                left_out("a resource without address"),
            ),
            // What is not known.
            (
                json!({"type": "video", "text": "a film"}),
                text("[content of the kind `video`, which is not known here]\na film"),
            ),
            (
                json!({"type": "chart", "points": [1]}),
                text(
                    "[content of the kind `chart`, which is not known here]\n{\"points\":[1],\"type\":\"chart\"}",
                ),
            ),
        ] {
            let result = json!({"content": [text("before"), piece, text("after")]});
            let read = content(result);
            assert_eq!(
                read,
                json!([text("before"), expected, text("after")]),
                "{piece}"
            );
        }
    }

    #[test]
    fn odd_annotations_lose_nothing_but_themselves() {
        for (said, expected) in [
            (json!({"audience": ["user"]}), json!({"audience": ["user"]})),
            (json!({"audience": "User"}), json!({"audience": ["user"]})),
            (
                json!({"audience": ["user", "robot", 1]}),
                json!({"audience": ["user"]}),
            ),
            (json!({"audience": {"user": true}}), json!({})),
            (json!({"priority": "high"}), json!({})),
            (
                json!({"audience": null, "lastModified": 5}),
                json!({"lastModified": "5"}),
            ),
            (json!([]), json!(null)),
            (json!("user"), json!(null)),
            (json!(null), json!(null)),
        ] {
            let result = json!({"content": [{"type": "text", "text": "a", "annotations": said}]});
            let read = content(result);
            assert_eq!(
                (&read[0]["text"], &read[0]["annotations"]),
                (&json!("a"), &expected),
                "{said}"
            );
        }
    }

    #[test]
    fn what_is_no_result_yet_stays_as_it_is() {
        for said in [
            json!({"resultType": "input_required", "requestState": "s"}),
            json!({"resultType": "task", "taskId": "7", "status": "working"}),
            json!({"task": {"taskId": "7", "status": "working"}}),
        ] {
            assert_eq!(tool(said.clone()), said);
        }
    }

    #[test]
    fn resources_are_read_piece_by_piece() {
        let fine = json!({"uri": "a:b", "text": "t"});
        for (result, expected) in [
            (json!({"contents": [fine]}), json!([fine])),
            (json!({"contents": fine}), json!([fine])),
            (json!({"content": [fine]}), json!([fine])),
            (json!([fine]), json!([fine])),
            (fine.clone(), json!([fine])),
            (
                json!({"contents": "t"}),
                json!([{"uri": "resource:unnamed", "text": "t"}]),
            ),
            (json!({"contents": null}), json!([])),
            (json!(null), json!([])),
            (
                json!({"contents": [null, fine, {"uri": "a:c", "mimeType": 1, "text": 5, "_meta": 1}]}),
                json!([
                    {"uri": "resource:unnamed", "text": "[part 1 of the resource is left out: a resource without content]"},
                    fine,
                    {"uri": "a:c", "text": "5"},
                ]),
            ),
        ] {
            let read = resource(result.clone());
            serde_json::from_value::<ReadResourceResult>(read.clone()).unwrap();
            assert_eq!(read["contents"], expected, "{result}");
        }
    }

    #[test]
    fn prompts_are_read_message_by_message() {
        let said = |role: &str, content: Value| json!({"role": role, "content": content});
        for (result, expected) in [
            (
                json!({"messages": [said("user", text("a"))]}),
                json!([said("user", text("a"))]),
            ),
            (
                json!({"messages": [said("Assistant", json!("a"))]}),
                json!([said("assistant", text("a"))]),
            ),
            (
                json!({"messages": [said("system", text("a"))]}),
                json!([said("user", text("a"))]),
            ),
            (
                json!({"messages": [{"content": text("a")}]}),
                json!([said("user", text("a"))]),
            ),
            (json!({"messages": ["a"]}), json!([said("user", text("a"))])),
            (json!({"messages": "a"}), json!([said("user", text("a"))])),
            (json!("a"), json!([said("user", text("a"))])),
            (json!({"messages": null, "description": 5}), json!([])),
            (
                json!({"messages": [said("user", json!([text("a"), null])), said("user", text("b"))]}),
                json!([
                    said("user", text("a")),
                    said("user", text("[part of message 1 is left out: it is null]")),
                    said("user", text("b")),
                ]),
            ),
        ] {
            let read = prompt(result.clone());
            serde_json::from_value::<GetPromptResult>(read.clone()).unwrap();
            assert_eq!(read["messages"], expected, "{result}");
        }
    }

    #[test]
    fn completions_are_read_value_by_value() {
        for result in [
            json!({"completion": {"values": ["a", 5, null, {}], "total": "2"}}),
            json!({"values": ["a", 5]}),
            json!(["a", 5]),
        ] {
            let read = completion(&result);
            serde_json::from_value::<CompleteResult>(read.clone()).unwrap();
            assert_eq!(read["completion"]["values"], json!(["a", "5"]), "{result}");
        }
    }
}
