//! Fuzzes the file tools: whatever the model asks for, nothing outside of the workspace is read or
//! written, and answers stay bounded.

use std::{ffi::OsStr, fs, os::unix::ffi::OsStrExt as _};

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Workspace, list, name, read, write};
use crate::failure::Failure;

/// What lies outside, and must neither change nor be told.
const SECRET: &str = "this lies outside of the workspace";

/// One tool call a line: `{"name": …, "arguments": …}`.
#[test]
fn file_tools() {
    sepal_fuzz::check("file_tools", |input| {
        if !input.contains(&0) {
            let shown = name::show(OsStr::from_bytes(input));
            assert_eq!(name::parse(&shown).as_os_str().as_bytes(), input);
        }
        let outside = sepal_fuzz::scratch();
        let inside = outside.path().join("workspace");
        fs::create_dir_all(inside.join("folder")).unwrap();
        fs::write(outside.path().join("secret"), SECRET).unwrap();
        fs::write(inside.join("a.txt"), "one\ntwo\nthree\n").unwrap();
        let link =
            |to: &str, name: &str| std::os::unix::fs::symlink(to, inside.join(name)).unwrap();
        link("../secret", "leads-out");
        link("..", "up");
        link("a.txt", "leads-in");
        let workspace = Workspace::open(&inside).unwrap();
        for line in input.split(|byte| *byte == b'\n').take(16) {
            let Ok(call) = serde_json::from_slice::<Value>(line) else {
                continue;
            };
            if let Some(text) = answer(&workspace, &call) {
                // A file may hold it when the model wrote it there.
                let is_known = input
                    .windows(SECRET.len())
                    .any(|it| it == SECRET.as_bytes());
                assert!(is_known || !text.contains(SECRET), "{text}");
            }
        }
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 2);
        let kept = fs::read_to_string(outside.path().join("secret")).unwrap();
        assert_eq!(kept, SECRET);
    });
}

fn answer(workspace: &Workspace, call: &Value) -> Option<String> {
    let arguments = &call["arguments"];
    let said = match call["name"].as_str()? {
        "read_file" => run(workspace, arguments, read)?,
        "write_file" => run(workspace, arguments, write)?,
        "list_files" => run(workspace, arguments, list)?,
        _ => return None,
    };
    let text = said.map_or_else(|failure| failure.to_string(), |texts| texts.concat());
    let asked = arguments.to_string().len();
    assert!(text.len() <= 512 * 1024 + 8 * asked, "{} bytes", text.len());
    Some(text)
}

type Tool<A> = fn(&Workspace, &A) -> Result<Vec<String>, Failure>;

/// None where the arguments are not the tool's.
fn run<A: DeserializeOwned>(
    workspace: &Workspace,
    arguments: &Value,
    tool: Tool<A>,
) -> Option<Result<Vec<String>, Failure>> {
    let arguments = A::deserialize(arguments).ok()?;
    Some(tool(workspace, &arguments))
}
