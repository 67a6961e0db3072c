//! Tests that hostile archives and manifests are refused with clear messages.

use std::io::{Cursor, Write as _};

use serde_json::{Value, json};
use zip::write::{SimpleFileOptions, ZipWriter};

use super::{MOST, bundle, facts, inspect, manifest, pack, patched, refused, with};

#[test]
fn archives_that_lead_elsewhere_are_refused_by_name() {
    let check = |from: &str, to: &str, words: &str| {
        let file = bundle(&manifest(), &[(from, b"x", 0o644)]);
        refused(&patched(&file, from, to), "file", words);
    };
    check("QQ/evil.js", "../evil.js", "leads out of the bundle");
    check("a/QQ/b.js", "a/../b.js", "leads out of the bundle");
    check("Qetc/passwd", "/etc/passwd", "absolute");
    check("QQ/x.js", "C:/x.js", "absolute");
    check("aQb.js", "a\\b.js", "backslash");
    check("aQb.js", "a\u{7}b.js", "cannot be seen");
}

#[test]
fn files_that_are_no_plain_files_are_refused_by_name() {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default();
    zip.start_file("manifest.json", options).unwrap();
    zip.write_all(manifest().to_string().as_bytes()).unwrap();
    zip.add_symlink("server/index.js", "/etc/passwd", options)
        .unwrap();
    let file = zip.finish().unwrap().into_inner();
    refused(&file, "file", "`server/index.js`: it is a link");
}

#[test]
fn two_files_of_one_name_are_refused_however_they_are_written() {
    let twice = bundle(
        &manifest(),
        &[("aaa.js", b"1", 0o644), ("bbb.js", b"2", 0o644)],
    );
    refused(
        &patched(&twice, "bbb.js", "aaa.js"),
        "file",
        "two files have this name",
    );
    let folded = bundle(&manifest(), &[("Server/index.js", b"1", 0o644)]);
    refused(&folded, "file", "but for capitals");
    let both = bundle(&manifest(), &[("server", b"1", 0o644)]);
    refused(&both, "file", "a file and a folder at once");
}

#[test]
fn what_unpacks_to_too_much_is_refused() {
    let zeros = vec![0; 20 << 20];
    let bomb = bundle(&manifest(), &[("zeros", &zeros, 0o644)]);
    assert!(bomb.len() < 100_000);
    refused(&bomb, "file", "100 times its size");
    let problems = inspect(&bomb, 1 << 20).unwrap_err();
    assert!(problems[0].message.contains("1 MiB"), "{problems:?}");
}

#[test]
fn what_is_no_bundle_says_how_one_is_made() {
    refused(b"", "file", "no bundle");
    refused(b"{}", "file", "no bundle");
    let file = bundle(&manifest(), &[]);
    refused(&file[..file.len() / 2], "file", "cannot be read");
    refused(
        &pack(&[("a.js", b"1", 0o644)]),
        "manifest",
        "no `manifest.json`",
    );
    let broken = pack(&[("manifest.json", b"{", 0o644)]);
    refused(&broken, "manifest", "EOF");
    let mut damaged = bundle(&manifest(), &[("big", &[7; 4_000], 0o644)]);
    let at = damaged.windows(3).position(|it| it == b"big").unwrap() + 5;
    damaged[at] ^= 0xff;
    let problems = inspect(&damaged, MOST).unwrap_err();
    assert!(
        problems[0].message.contains("cannot be unpacked"),
        "{problems:?}"
    );
}

/// Asserts that the manifest with one changed member is refused at that field, in those words.
#[track_caller]
fn misfit(pointer: &str, value: Value, field: &str, words: &str) {
    refused(&bundle(&with(pointer, value), &[]), field, words);
}

#[test]
fn each_part_of_a_manifest_that_does_not_fit_is_named() {
    misfit("/name", Value::Null, "manifest", "missing field `name`");
    let kind = "manifest.server.type";
    misfit("/server/type", json!("ruby"), kind, "unknown variant");
    let version = "manifest.manifest_version";
    misfit("/manifest_version", json!("9.0"), version, "`9.0`");
    misfit("/manifest_version", Value::Null, version, "missing");
    let platforms = json!({"platforms": ["darwin", "win32"]});
    let field = "manifest.compatibility.platforms";
    misfit("/compatibility", platforms, field, "darwin, win32");
    let twins = json!({
        "a-b": {"type": "string", "sensitive": true}, "a_b": {"type": "string", "sensitive": true},
    });
    let field = "manifest.user_config.a_b";
    misfit("/user_config", twins, field, "same name");
}

#[test]
fn each_word_of_a_command_that_leads_nowhere_is_named() {
    let config = "/server/mcp_config";
    misfit(config, Value::Null, "manifest.server.mcp_config", "missing");
    let field = "manifest.server.entry_point";
    let path = "/server/entry_point";
    misfit(path, json!("server/main.js"), field, "no file");
    misfit(
        "/server/type",
        json!("binary"),
        field,
        "no program for Linux",
    );
    let field = "manifest.server.mcp_config.command";
    for (command, words) in [
        ("npx", "fetches packages"),
        ("ruby", "`ruby` is neither"),
        ("${__dirname}/no", "no file `no`"),
    ] {
        let path = format!("{config}/command");
        misfit(&path, json!(command), field, words);
    }
    let (path, env) = (format!("{config}/env"), json!({"A": "${PATH}"}));
    let field = "manifest.server.mcp_config.env.A";
    misfit(&path, env, field, "`${PATH}`");
    let (path, args) = (format!("{config}/args"), json!(["${user_config.key}"]));
    misfit(&path, args, "manifest.user_config", "not declared");
}

#[test]
fn a_manifest_of_before_is_understood_and_says_what_the_bundle_is() {
    let mut old = with("/manifest_version", Value::Null);
    old["dxt_version"] = json!("0.1");
    old["tools"] = json!([{"name": "add", "description": "Adds one.\u{202e}"}]);
    old["compatibility"] = json!({"runtimes": {"node": ">=18"}});
    let facts = facts(&old);
    assert_eq!(
        (facts.title.as_str(), facts.version.as_str()),
        ("Notes", "1.2.3")
    );
    assert_eq!(facts.runtime.as_deref(), Some(">=18"));
    assert_eq!(facts.args, ["/packages/bundle/server/index.js"]);
    assert!(!facts.tools[0].description.contains('\u{202e}'));
    assert_eq!(facts.files, 2);
}

#[test]
fn a_command_for_linux_goes_before_and_words_that_name_files_become_paths() {
    let config = json!({
        "command": "node.exe", "args": ["x"], "env": {"A": "1"},
        "platform_overrides": {
            "win32": {"args": ["w"]},
            "linux": {"command": "python", "args": ["server/index.js", "--to", "${HOME}/x", "server"]},
        },
    });
    let facts = facts(&with("/server/mcp_config", config));
    assert_eq!(facts.command, "python3");
    let words = [
        "/packages/bundle/server/index.js",
        "--to",
        "/workspace/x",
        "server",
    ];
    assert_eq!(facts.args, words);
    assert_eq!(facts.env["A"], "1");
    assert!(facts.names_folders);
}

#[test]
fn a_binary_has_to_be_for_this_machine() {
    let check = |head: &[u8], words: Option<&str>| {
        let mut manifest = with("/server/type", json!("binary"));
        manifest["server"]["entry_point"] = json!("server/tool");
        manifest["server"]["mcp_config"] = json!({"command": "server/tool"});
        let file = bundle(&manifest, &[("server/tool", head, 0o644)]);
        match words {
            Some(words) => refused(&file, "manifest.server.entry_point", words),
            None => assert_eq!(
                inspect(&file, MOST).unwrap().command,
                "/packages/bundle/server/tool"
            ),
        }
    };
    let elf = |machine: u8| {
        let mut head = b"\x7fELF".to_vec();
        head.resize(18, 0);
        head.extend([machine, 0, 0, 0]);
        head
    };
    let (own, other) = if cfg!(target_arch = "aarch64") {
        (183, 62)
    } else {
        (62, 183)
    };
    check(&elf(own), None);
    check(b"#!/bin/sh\n", None);
    check(&elf(other), Some("another processor"));
    check(b"MZ", Some("no program for Linux"));
    check(&[0xcf, 0xfa, 0xed, 0xfe], Some("no program for Linux"));
}

#[test]
fn a_signed_bundle_is_read_like_any_other() {
    let mut file = bundle(&manifest(), &[]);
    file.extend(b"MCPB_SIG_V1\x04\0\0\0PK\x05\x06MCPB_SIG_END");
    assert_eq!(inspect(&file, MOST).unwrap().version, "1.2.3");
}

#[test]
fn very_many_values_are_counted_and_looked_at_no_further() {
    let values: serde_json::Map<String, Value> = (0..30_000)
        .map(|n| (format!("key_{n}"), json!({ "type": "string" })))
        .collect();
    let many = with("/user_config", Value::Object(values));
    let words = "asks for more than 100 values";
    refused(&bundle(&many, &[]), "manifest.user_config", words);
    // Not all undeclared values are reported.
    let args: Vec<String> = (0..30_000)
        .map(|n| format!("${{user_config.k{n}}}"))
        .collect();
    let many = with("/server/mcp_config/args", json!(args));
    let problems = inspect(&bundle(&many, &[]), MOST).unwrap_err();
    assert_eq!(problems.len(), 20);
}
