//! Runs random commands that rules about reading programs allow, in a real bash under `strace` in a sandbox:
//! only the programs that the rules name are executed, and no file is written.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "functions that tests share are tests too"
)]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use sepal_policy::{Call, CommandPrefix, Conditions, Effect, Rule, Rules, Scope, ShellTool};
use serde_json::json;
use tempfile::TempDir;

const MANUALS: &str = include_str!("manuals/options.txt");

/// The commands of the manuals that read and run nothing of a project.
const READERS: &[&str] = &[
    "basename",
    "cat",
    "cmp",
    "cut",
    "date",
    "df",
    "diff",
    "dirname",
    "du",
    "echo",
    "file",
    "find",
    "git blame",
    "git branch",
    "git diff",
    "git log",
    "git ls-files",
    "git rev-parse",
    "git show",
    "git status",
    "grep",
    "head",
    "jq",
    "ls",
    "md5sum",
    "nl",
    "od",
    "pwd",
    "realpath",
    "rg",
    "seq",
    "sort",
    "stat",
    "tail",
    "tr",
    "tree",
    "uname",
    "uniq",
    "wc",
    "which",
    "whoami",
];

/// System calls that change a file, run a program, or connect to something.
const CALLS: &str = "trace=?execve,?execveat,?open,?openat,?openat2,?creat,?truncate,?ftruncate,\
    ?rename,?renameat,?renameat2,?link,?linkat,?symlink,?symlinkat,?unlink,?unlinkat,?mkdir,?mkdirat,\
    ?rmdir,?mknod,?mknodat,?chmod,?fchmod,?fchmodat,?chown,?fchown,?lchown,?fchownat,?utime,?utimes,\
    ?utimensat,?futimesat,?setxattr,?fsetxattr,?lsetxattr,?connect,?settimeofday,?clock_settime";

/// A command with all options of its manual, whatever they do.
#[derive(Debug)]
struct Reader {
    prefix: &'static str,
    options: Vec<&'static str>,
}

/// The readers whose programs are installed here.
static READERS_HERE: LazyLock<Vec<Reader>> = LazyLock::new(|| {
    let mut readers: Vec<Reader> = Vec::new();
    for line in MANUALS.lines() {
        if let Some(prefix) = line.strip_prefix("## ") {
            let options = Vec::new();
            readers.push(Reader { prefix, options });
        } else if let Some((_, options)) = line.split_once(": ")
            && let Some(reader) = readers.last_mut()
        {
            // These options wait for more input.
            let waits = |option: &&str| {
                reader.prefix == "tail"
                    && matches!(*option, "-f" | "-F" | "--follow[=]" | "--retry")
            };
            reader
                .options
                .extend(options.split(' ').filter(|option| !waits(option)));
        }
    }
    readers.retain(|reader| READERS.contains(&reader.prefix) && is_here(reader.prefix));
    assert!(readers.len() > 20, "{}", readers.len());
    readers
});

fn is_here(prefix: &str) -> bool {
    let program = prefix.split(' ').next().unwrap_or_default();
    let folders = ["/usr/local/bin", "/usr/bin", "/bin"];
    folders
        .iter()
        .any(|folder| Path::new(folder).join(program).exists())
}

fn rules() -> Rules {
    let prefixes = READERS
        .iter()
        .map(|words| CommandPrefix::new(words.split(' ')));
    let rule = Rule {
        when: Conditions {
            command: Some(prefixes.collect()),
            ..Conditions::default()
        },
        ..Rule::new("readers", Effect::Allow, Scope::Session)
    };
    Rules::compile(vec![rule]).unwrap()
}

fn is_allowed(rules: &Rules, command: &str) -> bool {
    let arguments = json!({ "command": command });
    let shell = ShellTool {
        argument: "command".into(),
        harmless: vec![],
    };
    let call = Call {
        shell: Some(&shell),
        ..Call::new("sandbox", "execute_command", &arguments)
    };
    rules.decide(&call).effect == Effect::Allow
}

/// Operands. Some files in the folder have names that look like options.
const WORDS: &[&str] = &[
    "a.txt", "b.txt", "F", "./evil", "HEAD", "-", "--", "$X", "\"$X\"", "*.txt", "*", "./*",
    "sub/*", "$(ls)", "`ls`", "\"a$X\"", "+%F", "x", ".", "sub", "'1p'", "main", "new", "fix",
    "{}", "\\;", "+", "-5", "-exec", "ls", "sort", "$HOME", "~", "-o", "F",
];

/// Text that may follow a command.
const ENDS: &[&str] = &[
    "",
    "",
    "",
    " < a.txt",
    " 2>&1",
    " > /dev/null",
    " > F",
    " | sort",
    " | xargs sort",
    "; ls *",
    " | xargs cat",
    " && echo $X",
    " | uniq - F",
    " < ./evil",
    "; cd sub; git status",
];

/// Generates one option, as a program may read it: whole, abbreviated, with a value, or among other letters.
fn option() -> impl Strategy<Value = (Index, Index, u8, Index)> {
    (any::<Index>(), any::<Index>(), 0..8_u8, any::<Index>())
}

fn written(reader: &Reader, (at, other, way, cut): &(Index, Index, u8, Index)) -> String {
    let name = |option: &'static str| option.trim_end_matches("[=]").trim_end_matches('=');
    let pick = |at: &Index| -> &'static str { at.get::<&'static str>(&reader.options) };
    let option = name(pick(at));
    let letter = |option: &str| {
        option
            .trim_start_matches('-')
            .chars()
            .take(1)
            .collect::<String>()
    };
    match way {
        0 => format!("{option}=F"),
        1 => format!("{option} F"),
        2 if option.starts_with("--") && option.len() > 3 => {
            let end = 3 + cut.index(option.len() - 3);
            option[..end].to_owned()
        }
        3 => format!("-{}{}F", letter(option), letter(name(pick(other)))),
        4 => format!("-{}{} F", letter(option), letter(name(pick(other)))),
        5 => format!("{option}=./evil"),
        _ => option.to_owned(),
    }
}

fn command() -> impl Strategy<Value = String> {
    let reader = (0..READERS_HERE.len()).prop_filter_map("there is one", |at| READERS_HERE.get(at));
    let options = prop::collection::vec(option(), 0..3);
    let words = prop::collection::vec(select(WORDS), 0..3);
    (reader, options, words, any::<bool>(), select(ENDS)).prop_map(
        |(reader, options, words, is_first, end)| {
            let options: Vec<String> = options.iter().map(|it| written(reader, it)).collect();
            let (options, words) = (options.join(" "), words.join(" "));
            let rest = if is_first {
                format!("{words} {options}")
            } else {
                format!("{options} {words}")
            };
            format!("{} {}{end}", reader.prefix, rest.trim())
        },
    )
}

/// Creates a repository with files that a careless program takes for options, and a program that leaves a
/// trace.
fn folder() -> TempDir {
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::create_dir(at("sub")).unwrap();
    for name in [
        "a.txt",
        "b.txt",
        "-oF.txt",
        "--output=F",
        "--compress-program=.evil",
        "-exec",
        "--ext-diff",
        "sub/c.txt",
        "sub/-o",
    ] {
        std::fs::write(at(name), "b 2\na 1\n").unwrap();
    }
    std::fs::write(at("evil"), "#!/bin/sh\n/usr/bin/touch ran\n").unwrap();
    std::fs::set_permissions(at("evil"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let git = |words: &[&str]| {
        let mut git = Command::new("git");
        let git = git.args(["-c", "user.name=a", "-c", "user.email=a@example.com"]);
        let status = git
            .args(words)
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .status();
        assert!(status.unwrap().success(), "{words:?}");
    };
    git(&["init", "-q", "-b", "main"]);
    git(&["add", "--", "a.txt", "sub"]);
    git(&["commit", "-q", "-m", "first"]);
    std::fs::write(at("a.txt"), "a 1\nc 3\n").unwrap();
    folder
}

/// Returns everything that bash did for these commands besides reading and running the programs that the
/// rules name.
fn besides(commands: &[String]) -> Vec<String> {
    let (folder, logs) = (folder(), TempDir::new().unwrap());
    let quoted = commands
        .iter()
        .map(|command| command.replace('\'', "'\\''"));
    let lines: Vec<String> = quoted
        .map(|command| format!("timeout 5 bash -c '{command}'"))
        .collect();
    let script = format!(": begin\n{}\n: end\n", lines.join("\n"));
    let mut sandbox = Command::new("bwrap");
    sandbox.args([
        "--ro-bind",
        "/",
        "/",
        "--dev",
        "/dev",
        "--proc",
        "/proc",
        "--tmpfs",
        "/tmp",
    ]);
    for open in [folder.path(), logs.path()] {
        sandbox.arg("--bind").args([open, open]);
    }
    sandbox.args(["--unshare-all", "--die-with-parent", "--clearenv"]);
    sandbox.args(["--setenv", "PATH", "/usr/local/bin:/usr/bin:/bin"]);
    sandbox.args(["--setenv", "X", "-o F --output=F -exec"]);
    sandbox.arg("--setenv").arg("HOME").arg(folder.path());
    sandbox.arg("--chdir").arg(folder.path());
    sandbox.args(["strace", "-ff", "-qq", "-s", "300", "-e", CALLS, "-o"]);
    sandbox.arg(logs.path().join("log"));
    sandbox.args(["bash", "-c", &script]);
    let sandbox = sandbox
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let started = sandbox.status();
    started.unwrap_or_else(|error| panic!("bwrap (apt-get install bubblewrap): {error}"));
    let mut traces = String::new();
    for log in std::fs::read_dir(logs.path()).unwrap() {
        traces.push_str(&String::from_utf8_lossy(
            &std::fs::read(log.unwrap().path()).unwrap(),
        ));
    }
    let has_run = traces.contains("execve(\"/usr/bin/timeout\"") || traces.contains("/timeout\"");
    assert!(has_run, "strace saw nothing (apt-get install strace)");
    traces
        .lines()
        .filter(|line| does_more(line))
        .map(str::to_owned)
        .collect()
}

/// Returns true if a system call ran another program, or changed something.
fn does_more(line: &str) -> bool {
    let Some((call, arguments)) = line.split_once('(') else {
        return false;
    };
    if line.contains(") = -1 ") || line.contains(" = ? ") {
        return false;
    }
    let texts: Vec<&str> = arguments.split('"').collect();
    let path = texts.get(1).copied().unwrap_or_default();
    // Git writes its index when it has looked at files.
    let is_index = path.ends_with(".git/index.lock") || path.ends_with(".git/index");
    // `sort` merges with temporary files that it deletes.
    let is_cache = is_index || path.starts_with("/tmp/sort");
    match call {
        "execve" | "execveat" => {
            let name = path.rsplit('/').next().unwrap_or_default();
            let is_named = |prefix: &&str| prefix.split(' ').next() == Some(name);
            !matches!(name, "bash" | "timeout" | "xargs") && !READERS.iter().any(is_named)
        }
        "open" | "openat" | "openat2" => {
            let writes = ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC"];
            let is_sink = matches!(path, "/dev/null" | "/dev/tty");
            writes.iter().any(|flag| arguments.contains(flag)) && !is_sink && !is_cache
        }
        "connect" => !arguments.contains("AF_UNIX"),
        _ => !is_cache,
    }
}

fn config() -> ProptestConfig {
    let default = ProptestConfig::default();
    ProptestConfig {
        // Each case runs several commands; more cases run if more are requested.
        cases: (default.cases / 200).max(8),
        failure_persistence: None,
        max_shrink_iters: 8,
        ..default
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn what_a_read_rule_allows_only_reads(commands in prop::collection::vec(command(), 24)) {
        let rules = rules();
        let allowed: Vec<String> = commands
            .into_iter()
            .filter(|command| is_allowed(&rules, command))
            .collect();
        if allowed.is_empty() || besides(&allowed).is_empty() {
            return Ok(());
        }
        for command in &allowed {
            let besides = besides(std::slice::from_ref(command));
            prop_assert!(besides.is_empty(), "{}:\n{}", command, besides.join("\n"));
        }
    }
}

/// Checks that the oracle detects writes and programs.
#[test]
fn what_writes_and_runs_is_seen() {
    for command in [
        "echo x > F",
        "sort -oF a.txt",
        "sort *.txt",
        "./evil",
        "find . -name a.txt -delete",
        "git log --output=F",
        "env ls",
        "touch a.txt",
    ] {
        assert!(!besides(&[command.to_owned()]).is_empty(), "{command}");
        assert!(!is_allowed(&rules(), command), "{command}");
    }
    for command in [
        "ls *",
        "git status",
        "wc -l *.txt",
        "cat < a.txt",
        "echo \"$(git log)\"",
    ] {
        let besides = besides(&[command.to_owned()]);
        assert!(besides.is_empty(), "{command}: {besides:#?}");
        assert!(is_allowed(&rules(), command), "{command}");
    }
}

/// Of the random commands, enough are allowed to be tried, and enough are not.
#[test]
fn some_random_commands_are_allowed_and_others_are_not() {
    let (rules, mut runner) = (rules(), TestRunner::deterministic());
    let commands = prop::collection::vec(command(), 400);
    let commands = commands.new_tree(&mut runner).unwrap().current();
    let allowed = commands.iter().filter(|it| is_allowed(&rules, it)).count();
    assert!((80..320).contains(&allowed), "{allowed} of 400");
}
