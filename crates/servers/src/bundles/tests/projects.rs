//! Tests of bundles that uv starts: the packages that they require, and the command that replaces uv.

use serde_json::{Value, json};

use super::super::facts::BundleFacts;
use super::{MOST, inspect, pack, refused};

const PROJECT: &str = r#"
[project]
name = "notes"
version = "1.2.3"
requires-python = ">=3.10"
dependencies = ["mcp[cli]>=1.2", "httpx ; python_version < '4'"]

[project.optional-dependencies]
more = ["rich"]

[project.scripts]
notes = "notes.main:app.run"

[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
"#;

/// Packs a bundle with that server in its manifest, and these files.
fn bundle(server: &Value, files: &[(&str, &str)]) -> Vec<u8> {
    let manifest = json!({
        "manifest_version": "0.4", "name": "notes", "version": "1.2.3", "description": "Keeps notes.",
        "author": {"name": "Ada"}, "server": server,
    });
    let manifest = manifest.to_string();
    let own = [("manifest.json", manifest.as_str()), ("src/server.py", "1")];
    let files = own.iter().chain(files);
    let files: Vec<_> = files
        .map(|(name, text)| (*name, text.as_bytes(), 0o644))
        .collect();
    pack(&files)
}

fn of_uv(args: &[&str]) -> Value {
    json!({
        "type": "uv", "entry_point": "src/server.py", "mcp_config": {"command": "uv", "args": args},
    })
}

fn facts(server: &Value, files: &[(&str, &str)]) -> BundleFacts {
    inspect(&bundle(server, files), MOST).unwrap()
}

#[test]
fn a_project_is_started_without_uv_and_says_what_it_needs() {
    let whole = [("pyproject.toml", PROJECT)];
    let run = [
        "run",
        "--directory",
        "${__dirname}",
        "src/server.py",
        "--x",
        "${user_config.y}",
    ];
    let mut server = of_uv(&run);
    server["mcp_config"]["env"] = json!({"PYTHONPATH": "${__dirname}/lib", "MODE": "a"});
    let mut manifest_less = server.clone();
    let found = inspect(&bundle(&server, &whole), MOST).unwrap_err();
    assert_eq!(found[0].field, "manifest.user_config", "{found:?}");
    manifest_less["mcp_config"]["args"] = json!(&run[..5]);
    let facts = facts(&manifest_less, &whole);
    assert_eq!(
        (facts.kind.as_str(), facts.command.as_str()),
        ("python", "python3")
    );
    assert_eq!(facts.args, ["/packages/bundle/src/server.py", "--x"]);
    assert_eq!(facts.env["MODE"], "a");
    assert_eq!(
        facts.env["PYTHONPATH"],
        "/packages/bundle/lib:/packages/site:/packages/bundle/src:/packages/bundle"
    );
    assert_eq!(facts.runtime.as_deref(), Some(">=3.10"));
    let dependencies = facts.dependencies.unwrap();
    assert_eq!(
        dependencies.wanted,
        ["httpx ; python_version < '4'", "mcp[cli]>=1.2"]
    );
    assert!(dependencies.locked.is_empty());
}

#[test]
fn a_bundle_that_does_not_say_how_runs_its_entry_point() {
    let server = json!({"type": "uv", "entry_point": "src/server.py"});
    let lock = r#"
version = 1
[[package]]
name = "mcp"
version = "1.9.0"
source = { registry = "https://pypi.org/simple" }
"#;
    let files = [("pyproject.toml", PROJECT), ("uv.lock", lock)];
    let facts = facts(&server, &files);
    assert_eq!(facts.args, ["/packages/bundle/src/server.py"]);
    assert_eq!(facts.dependencies.unwrap().locked, ["mcp==1.9.0"]);
}

#[test]
fn one_of_type_python_that_uv_starts_is_a_project_too() {
    let server = json!({
        "type": "python", "entry_point": "src/server.py",
        "mcp_config": {"command": "uv", "args": ["--directory", "${__dirname}/app", "run", "--extra", "more", "main.py", "./a.json", "b"]},
    });
    let files = [
        ("app/pyproject.toml", PROJECT),
        ("app/main.py", "1"),
        ("app/a.json", "{}"),
    ];
    let facts = facts(&server, &files);
    let args = [
        "/packages/bundle/app/main.py",
        "/packages/bundle/app/a.json",
        "b",
    ];
    assert_eq!(facts.args, args);
    assert_eq!(
        facts.env["PYTHONPATH"],
        "/packages/site:/packages/bundle/app"
    );
    assert!(
        facts
            .dependencies
            .unwrap()
            .wanted
            .contains(&"rich".to_owned())
    );
}

#[test]
fn programs_of_the_project_and_of_its_packages_are_called_by_their_names() {
    let whole = [("pyproject.toml", PROJECT)];
    let started = |args: &[&str]| facts(&of_uv(args), &whole).args;
    let own = started(&["run", "notes", "-v"]);
    assert_eq!(
        (own[0].as_str(), &own[2..]),
        (
            "-c",
            ["notes.main:app.run", "-v"].map(str::to_owned).as_slice()
        )
    );
    let of_package = started(&["run", "mcp", "run", "src/server.py"]);
    assert!(of_package[1].contains("entry_points"), "{of_package:?}");
    assert_eq!(
        of_package[2..],
        ["mcp", "run", "/packages/bundle/src/server.py"]
    );
    let module = started(&["run", "python", "-m", "notes.main"]);
    assert!(module[1].contains("run_module"), "{module:?}");
    assert_eq!(module[2..], ["notes.main"]);
}

#[test]
fn what_nothing_here_can_install_or_start_is_named() {
    let server = || of_uv(&["run", "src/server.py"]);
    let said = |project: &str, words: &str| {
        refused(
            &bundle(&server(), &[("pyproject.toml", project)]),
            "file",
            words,
        );
    };
    refused(
        &bundle(&server(), &[]),
        "file",
        "`pyproject.toml`: the bundle has no such file",
    );
    said("[project", "it cannot be read");
    said("[tool.poetry]\nname = 'a'", "no `[project]`");
    said("[project]\ndynamic = ['dependencies']", "`dynamic`");
    said(
        "[project]\ndependencies = ['a @ https://x.test/a.whl']",
        "`a @ https://x.test/a.whl` does not name",
    );
    said(
        "[project]\ndependencies = ['src/a']",
        "does not name a package",
    );
    said(
        "[project]\ndependencies = ['--index-url=https://x.test']",
        "does not name a package",
    );
    let many: Vec<String> = (0..201).map(|at| format!("'a{at}'")).collect();
    said(
        &format!("[project]\ndependencies = [{}]", many.join(",")),
        "more than 200",
    );
    let sources =
        "[project]\ndependencies = ['My_Own>=1']\n[tool.uv.sources]\nmy-own = { path = '../x' }";
    said(sources, "`my-own` comes from elsewhere");
}

#[test]
fn a_command_of_uv_that_leads_nowhere_is_named() {
    let whole = [("pyproject.toml", PROJECT)];
    let field = "manifest.server.mcp_config";
    for (args, words) in [
        (&["run", "gone.py"][..], "no file `gone.py`"),
        (
            &["run", "--directory", "/etc", "src/server.py"],
            "not a folder of the bundle",
        ),
        (
            &["run", "--directory", "${__dirname}/../x", "src/server.py"],
            "not a folder of the bundle",
        ),
        (
            &["run", "--directory", "${__dirname}x", "src/server.py"],
            "not a folder of the bundle",
        ),
        (
            &["run", "--directory", "${user_config.a}", "src/server.py"],
            "not a folder of the bundle",
        ),
        (&["sync"], "`uv sync`"),
        (
            &["run", "--index", "https://x.test", "src/server.py"],
            "`--index`",
        ),
    ] {
        refused(&bundle(&of_uv(args), &whole), field, words);
    }
    let extra = ["run", "--extra", "none", "src/server.py"];
    refused(
        &bundle(&of_uv(&extra), &whole),
        "file",
        "no optional part `none`",
    );
}
