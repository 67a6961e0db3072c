//! `sepal backup` and `sepal restore`, as the real program does them.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use crate::model_stub::ModelStub;
use crate::rest::Client;
use crate::support::{Person, Server, TestSocket, docker, person, sepal};

const ENV: [(&str, &str); 2] = [
    ("SPL_SANDBOX", "none"),
    ("SPL_OUTGOING_ALLOW", "127.0.0.0/8"),
];
const KEY: &str = "sk-kept-by-the-backup";

/// Runs the program with these settings; what it said, and whether it worked.
fn run(data: &Path, env: &[(&str, &str)], args: &[&str]) -> (bool, String) {
    let mut program = sepal(data);
    program.envs(env.iter().copied());
    let output = program.args(args).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

#[track_caller]
fn done(data: &Path, args: &[&str]) -> String {
    done_with(data, &[], args)
}

#[track_caller]
fn done_with(data: &Path, env: &[(&str, &str)], args: &[&str]) -> String {
    let (is_done, text) = run(data, env, args);
    assert!(is_done, "{args:?}: {text}");
    text
}

/// It is refused with these words, and the folder stays as it is.
#[track_caller]
fn refused(data: &Path, args: &[&str], words: &[&str]) {
    refused_with(data, &[], args, words);
}

#[track_caller]
fn refused_with(data: &Path, env: &[(&str, &str)], args: &[&str], words: &[&str]) {
    let before = names(data);
    let (is_done, text) = run(data, env, args);
    assert!(!is_done, "{args:?}: {text}");
    for word in words {
        assert!(text.contains(word), "{args:?}: no `{word}` in {text}");
    }
    let mut after = names(data);
    after.retain(|name| name != "lock");
    assert!(after.iter().all(|name| before.contains(name)), "{after:?}");
    assert!(!folder_of(data).iter().any(|name| name.contains(".sepal-")));
}

fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let name =
        |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    entries.map(name).collect()
}

fn folder_of(data: &Path) -> Vec<String> {
    names(data.parent().unwrap())
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// What a session shows to whoever opens it.
fn transcript(socket: &TestSocket) -> Value {
    socket.ready["state"]["transcript"]["events"].clone()
}

/// A session whose model is asked with a key that is only in the database, sealed.
async fn session_with_a_sealed_key(server: &Server, ana: &Person, model: &ModelStub) -> String {
    let client = Client::at(server.address, &ana.key);
    let body = json!({
        "kind": "openai-compatible", "baseUrl": model.base_url(), "apiKey": KEY, "models": ["m"],
    });
    client.put("/api/providers/mine", body).await.ok(201);
    let wanted = json!({ "provider": "mine", "model": "m" });
    let session = client.post("/api/sessions", wanted).await.ok(201);
    session["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_backup_of_a_running_gateway_goes_on_elsewhere() {
    let folder = TempDir::new().unwrap();
    let (data, other) = (folder.path().join("data"), folder.path().join("other"));
    let model = ModelStub::start().await;
    model.will_say("kept").then_say("too late").then_say("hi");
    let server = Server::start_with(&data, &model, &ENV);
    let ana = person(&data, &ENV);
    done(
        &data,
        &["admin", "user", "role", "ana", "admin", "--tenant", "acme"],
    );
    let session = session_with_a_sealed_key(&server, &ana, &model).await;
    let mut socket = TestSocket::open(server.address, &ana, Some(&session)).await;
    socket.say("remember this").await;
    assert_eq!(socket.wait_for_answer().await, "kept");
    let seen = TestSocket::open(server.address, &ana, Some(&session)).await;
    let before = transcript(&seen);
    fs::write(data.join("mcp-config.json"), r#"{"mcpServers":{}}"#).unwrap();
    let settings = folder.path().join("my.yaml");
    fs::write(&settings, "agent: { name: kept }\n").unwrap();

    let archive = folder.path().join("sepal.tar.gz");
    let settings = settings.to_str().unwrap();
    let said = done(
        &data,
        &["--config", settings, "backup", archive.to_str().unwrap()],
    );
    for name in ["sepal.db", "secret.key", "mcp-config.json", "settings.yaml"] {
        assert!(said.contains(name), "{said}");
    }
    assert_eq!(mode(&archive), 0o600);
    assert!(!folder_of(&data).iter().any(|name| name.starts_with(".se")));
    // Nothing is written over, and what comes later is not in it.
    refused(
        &data,
        &["backup", archive.to_str().unwrap()],
        &["exists", "another name"],
    );
    socket.say("after the backup").await;
    socket.wait_for_answer().await;
    server.kill();

    let said = done(&other, &["restore", archive.to_str().unwrap()]);
    assert!(said.contains("restored-settings.yaml"), "{said}");
    for name in [
        "sepal.db",
        "secret.key",
        "mcp-config.json",
        "restored-settings.yaml",
    ] {
        assert_eq!(mode(&other.join(name)), 0o600, "{name}");
    }
    let server = Server::start_with(&other, &model, &ENV);
    let mut socket = TestSocket::open(server.address, &ana, Some(&session)).await;
    assert_eq!(transcript(&socket), before);
    socket.say("go on").await;
    assert_eq!(socket.wait_for_answer().await, "hi");
    // The sealed key of the provider opens, and is the one that was given.
    assert_eq!(socket.ready["providerId"], "mine");
    let asked = model.requests().pop().unwrap();
    assert_eq!(asked.authorization, Some(format!("Bearer {KEY}")));
}

/// What a command prints in the sandbox of a session.
async fn output(model: &ModelStub, socket: &mut TestSocket, command: &str) -> String {
    model
        .will_call("execute_command", json!({ "command": command }))
        .then_say("Ran");
    socket.say("run").await;
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    let output = socket.wait_for("tool:output").await;
    assert_eq!(socket.wait_for_answer().await, "Ran");
    output.text().to_owned()
}

/// A session's files are saved beside its running sandbox, and come back into another data folder, where the
/// first installation does not share them.
async fn files_of_a_session_come_back(sandbox: &[(&str, &str)]) -> (TempDir, PathBuf, String) {
    let folder = TempDir::new().unwrap();
    let (data, other) = (folder.path().join("data"), folder.path().join("other"));
    let archive = folder.path().join("sepal.tar.gz");
    let path = archive.to_str().unwrap();
    let model = ModelStub::start().await;
    let server = Server::start_with(&data, &model, sandbox);
    let ana = person(&data, sandbox);
    let mut socket = TestSocket::open(server.address, &ana, None).await;
    let make = "echo kept >notes; ln -s /etc/passwd out; printf '#!/bin/sh\\necho ran\\n' >run.sh; \
                chmod 711 run.sh; mkdir -p deep/er; echo x >deep/er/x; chmod 555 deep/er";
    output(&model, &mut socket, make).await;
    let session = socket.session();

    let none = [("SPL_SANDBOX", "none")];
    let back_up = ["backup", "--workspaces", path];
    refused_with(&data, &none, &back_up, &["SPL_SANDBOX", "--workspaces"]);
    assert!(!archive.exists());
    let said = done_with(&data, sandbox, &back_up);
    assert!(said.contains("workspaces of 1 sessions"), "{said}");
    // The session goes on as if nothing had been, in the sandbox that it had.
    let said = output(&model, &mut socket, "cat notes; echo later >notes").await;
    assert!(said.contains("kept"), "{said}");
    drop(socket);
    server.stop();

    let words = ["SPL_SANDBOX", "--without-workspaces"];
    refused_with(&other, &none, &["restore", path], &words);
    assert_eq!(names(&other), ["lock"]);
    let said = done_with(&other, sandbox, &["restore", path]);
    assert!(said.contains("files of 1 sessions came back"), "{said}");
    let server = Server::start_with(&other, &model, sandbox);
    let mut socket = TestSocket::open(server.address, &ana, Some(&session)).await;
    let look = "cat notes deep/er/x; ./run.sh; readlink out; stat -c '%a' run.sh deep/er; ls -A";
    let said = output(&model, &mut socket, look).await;
    let expected = "kept\nx\nran\n/etc/passwd\n711\n555\ndeep\nnotes\nout\nrun.sh";
    assert!(said.contains(expected), "{said}");
    drop(socket);
    server.stop();

    let without = folder.path().join("without");
    let args = ["restore", "--without-workspaces", path];
    let said = done_with(&without, &none, &args);
    assert!(said.contains("left out"), "{said}");
    (folder, archive, session)
}

#[tokio::test]
async fn files_of_a_session_come_back_with_docker() {
    let env = [
        ("SPL_SANDBOX", "docker"),
        ("SPL_SANDBOX_DOCKER_HOST", &docker::address()),
        ("SPL_SANDBOX_IMAGE", &docker::image()),
        ("SPL_SANDBOX_POOL_SIZE", "0"),
    ];
    Box::pin(files_of_a_session_come_back(&env)).await;
}

#[tokio::test]
async fn files_of_a_session_come_back_with_bubblewrap() {
    let env = [("SPL_SANDBOX", "bubblewrap")];
    let (folder, archive, session) = Box::pin(files_of_a_session_come_back(&env)).await;
    let other = folder.path().join("other");
    let workspaces = names(&other.join("workspaces"));
    assert_eq!(workspaces.len(), 1, "the janitor leaves it: {workspaces:?}");

    // An archive whose files lead out of the workspace brings nothing back, and the rest of the backup does.
    let mut entries = entries(&archive);
    let hostile = hostile_tar();
    let (_, content) = entries.last_mut().unwrap();
    let (before, after) = (part(content), part(&hostile));
    *content = hostile;
    let manifest = String::from_utf8(entries[0].1.clone()).unwrap();
    let manifest = manifest
        .replace(&before.0, &after.0)
        .replace(&before.1, &after.1);
    entries[0].1 = manifest.into_bytes();
    let bad = folder.path().join("bad.tar.gz");
    write(&bad, &entries);
    let last = folder.path().join("last");
    let (is_done, said) = run(&last, &env, &["restore", bad.to_str().unwrap()]);
    assert!(!is_done && said.contains("files of 0 sessions"), "{said}");
    assert!(said.contains(&session), "{said}");
    assert!(names(&last).contains(&"sepal.db".to_owned()));
    assert!(names(&last.join("workspaces")).is_empty());
    assert!(!folder.path().join("evil").exists() && !last.join("evil").exists());
}

/// The size and the digest of a file, as the manifest says them.
fn part(content: &[u8]) -> (String, String) {
    let size = format!("\"bytes\": {}", content.len());
    (size, hex::encode(Sha256::digest(content)))
}

/// An archive with names that lead elsewhere.
fn hostile_tar() -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for name in ["../evil", "../../evil", "/evil"] {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Regular);
        header.set_mode(0o600);
        header.set_size(4);
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_cksum();
        archive.append(&header, b"evil".as_slice()).unwrap();
    }
    archive.into_inner().unwrap()
}

/// An installation that never ran as a gateway, with its backup.
fn kept() -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    done(&data, &["admin", "tenant", "add", "acme"]);
    let archive = folder.path().join("sepal.tar.gz");
    done(&data, &["backup", archive.to_str().unwrap()]);
    (folder, archive)
}

#[tokio::test]
async fn nothing_is_restored_over_a_gateway_that_runs_or_data_that_is_there() {
    let (folder, archive) = kept();
    let archive = archive.to_str().unwrap();
    let data = folder.path().join("data");
    let model = ModelStub::start().await;
    let server = Server::start_with(&data, &model, &ENV);
    let in_use = ["in use by the server with process id"];
    refused(&data, &["restore", archive], &in_use);
    refused(&data, &["restore", "--force", archive], &in_use);
    server.kill();

    refused(&data, &["restore", archive], &["is not empty", "--force"]);
    done(&data, &["admin", "tenant", "add", "later"]);
    let said = done(&data, &["restore", "--force", archive]);
    let aside = names(&data);
    let aside = aside
        .iter()
        .find(|name| name.starts_with("before-restore-"));
    let aside = data.join(aside.unwrap());
    assert!(said.contains(aside.to_str().unwrap()), "{said}");
    assert!(names(&aside).contains(&"sepal.db".to_owned()));
    let tenants = done(&data, &["admin", "tenant", "list"]);
    assert!(
        tenants.contains("acme") && !tenants.contains("later"),
        "{tenants}"
    );
}

#[test]
fn what_is_no_backup_or_a_damaged_one_changes_nothing() {
    let (folder, archive) = kept();
    let (other, bad) = (
        folder.path().join("other"),
        folder.path().join("bad.tar.gz"),
    );
    let path = bad.to_str().unwrap();
    let whole = fs::read(&archive).unwrap();
    let restore = ["restore", path];

    fs::write(&bad, &whole[..whole.len() / 2]).unwrap();
    refused(&other, &restore, &["is damaged", "nothing was changed"]);
    fs::write(&bad, &whole[..whole.len() - 4]).unwrap();
    refused(&other, &restore, &["is damaged"]);
    fs::write(&bad, b"some text").unwrap();
    refused(&other, &restore, &["is not a backup"]);
    refused(&other, &["restore", "/no/such/file"], &["cannot be read"]);

    let plain = entries(&archive);
    let mut changed = plain.clone();
    let database = changed
        .iter_mut()
        .find(|(name, _)| name.ends_with("sepal.db"));
    let bytes = &mut database.unwrap().1;
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    write(&bad, &changed);
    refused(&other, &restore, &["is damaged", "not what was kept"]);

    write(&bad, &plain[..1]);
    refused(&other, &restore, &["is damaged", "is missing"]);
    write(&bad, &plain[1..]);
    refused(&other, &restore, &["is not a backup", "it begins with"]);
    let mut more = plain.clone();
    more.push(("data/more".to_owned(), b"more".to_vec()));
    write(&bad, &more);
    refused(&other, &restore, &["is not a backup", "data/more"]);

    let mut newer = plain;
    let text = String::from_utf8(newer[0].1.clone()).unwrap();
    newer[0].1 = text
        .replace("\"version\": 1", "\"version\": 2")
        .into_bytes();
    write(&bad, &newer);
    refused(&other, &restore, &["newer than this one"]);
}

#[test]
fn no_name_and_no_link_of_an_archive_leads_out_of_the_folder() {
    let (folder, archive) = kept();
    let (other, bad) = (
        folder.path().join("other"),
        folder.path().join("bad.tar.gz"),
    );
    let restore = ["restore", bad.to_str().unwrap()];
    let plain = entries(&archive);
    for evil in [
        "../evil",
        "/tmp/evil",
        "data/../../evil",
        "data/sepal.db/../../../evil",
        "workspaces/../../evil.tar",
        "workspaces/sbx_0/../../../evil.tar",
    ] {
        // Where the database should be, with a manifest that says so and one that does not.
        let mut there = plain.clone();
        there[1].0 = evil.to_owned();
        write(&bad, &there);
        refused(&other, &restore, &["is not a backup"]);
        let text = String::from_utf8(there[0].1.clone()).unwrap();
        there[0].1 = text.replace("data/sepal.db", evil).into_bytes();
        write(&bad, &there);
        refused(&other, &restore, &["is not a backup", "manifest names"]);
        assert!(!folder.path().join("evil").exists());
    }
    let links = [
        tar::EntryType::Symlink,
        tar::EntryType::Link,
        tar::EntryType::Directory,
    ];
    for kind in links {
        let mut archive = tar::Builder::new(GzEncoder::new(
            File::create(&bad).unwrap(),
            Compression::fast(),
        ));
        append(&mut archive, &plain[0]);
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(0);
        header.set_mode(0o777);
        header.set_link_name("/etc/passwd").unwrap();
        archive
            .append_data(&mut header, "data/sepal.db", std::io::empty())
            .unwrap();
        archive.into_inner().unwrap().finish().unwrap();
        refused(
            &other,
            &restore,
            &["is not a backup", "stands in the place"],
        );
    }
}

#[test]
fn what_is_elsewhere_is_refused_with_the_way_to_keep_it() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let file = folder.path().join("sepal.tar.gz");
    for (name, value, words) in [
        (
            "DATABASE_URL",
            "postgres://ann:secret@127.0.0.1:9/s",
            ["PostgreSQL", "pg_dump"],
        ),
        ("REDIS_URL", "redis://127.0.0.1:9", ["Redis", "AOF"]),
    ] {
        for command in ["backup", "restore"] {
            let mut program = sepal(&data);
            program.env(name, value).arg(command).arg(&file);
            let output = program.output().unwrap();
            assert!(!output.status.success());
            let text = String::from_utf8(output.stderr).unwrap();
            for word in words {
                assert!(text.contains(word), "{text}");
            }
            assert!(!text.contains("secret@"), "{text}");
        }
    }
    refused(
        &data,
        &["backup", file.to_str().unwrap()],
        &["no database at", "data_dir"],
    );
    assert!(!file.exists());
}

type Entry = (String, Vec<u8>);

/// The archive, unpacked in memory.
fn entries(archive: &Path) -> Vec<Entry> {
    let mut archive = tar::Archive::new(GzDecoder::new(File::open(archive).unwrap()));
    let read = |entry: std::io::Result<tar::Entry<'_, _>>| {
        let mut entry = entry.unwrap();
        let name = String::from_utf8(entry.path_bytes().into_owned()).unwrap();
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        (name, content)
    };
    archive.entries().unwrap().map(read).collect()
}

fn write(path: &Path, entries: &[Entry]) {
    let file = File::create(path).unwrap();
    let mut archive = tar::Builder::new(GzEncoder::new(file, Compression::fast()));
    for entry in entries {
        append(&mut archive, entry);
    }
    let mut file = archive.into_inner().unwrap().finish().unwrap();
    file.flush().unwrap();
}

/// With the name as it is: the library would refuse to write what we must refuse to read.
fn append(archive: &mut tar::Builder<GzEncoder<File>>, (name, content): &Entry) {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::Regular);
    header.set_mode(0o600);
    header.set_size(content.len() as u64);
    header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
    header.set_cksum();
    archive.append(&header, content.as_slice()).unwrap();
}
