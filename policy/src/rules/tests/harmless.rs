//! Tests commands that begin like a rule and do more than it says: an allow rule lets a command run only if
//! the words after its prefix are known to be harmless.

use serde_json::json;

use super::{commands, on_command, rule, shell};
use crate::{Call, CommandPrefix, Conditions, Effect, Rule, Rules, Scope, propose, sentence};
use Effect::Allow;
use Scope::{Person, Session};

/// Returns the rule that the card offers for similar commands.
#[track_caller]
fn offered(command: &str) -> Rule {
    let arguments = json!({ "command": command });
    let shell = shell();
    let call = Call {
        shell: Some(&shell),
        ..Call::new("sandbox", "execute_command", &arguments)
    };
    let offer = propose(&call)
        .into_iter()
        .find(|offer| offer.reach == crate::Reach::Alike);
    let offer = offer.unwrap_or_else(|| panic!("nothing is offered for {command}"));
    offer.into_rule("card", Session, None)
}

/// The call of the card, later calls, and words of the reason.
const MORE: &[(&str, &[(&str, &str)])] = &[
    (
        "npm test",
        &[
            (
                "npm test --script-shell=./evil.sh",
                "`--script-shell` may run another program",
            ),
            (
                "npm test --script-shell ./evil.sh",
                "`--script-shell` may run another program",
            ),
            (
                "npm test --script-sh=./evil.sh",
                "`--script-sh` may run another program",
            ),
            (
                "npm test --node-options=--require=./evil.js",
                "`--node-options` may run",
            ),
            ("npm test --prefix evil", "`--prefix` may run"),
            ("npm test -C evil", "`-C` may run"),
            ("npm test --userconfig=./npmrc", "`--userconfig` may run"),
            (
                "npm test -- --config=evil.js",
                "`--config` may do more than read",
            ),
            ("npm test --whatever", "`--whatever` may do more than read"),
        ],
    ),
    (
        "npm run build",
        &[
            (
                "npm run build --script-shell ./evil.sh",
                "`--script-shell` may run",
            ),
            ("npm run build --shell=./evil.sh", "`--shell` may run"),
        ],
    ),
    (
        "npm audit",
        &[
            ("npm audit fix", "with `fix` it may do more than read"),
            ("npm audit --fix", "`--fix` may write"),
        ],
    ),
    (
        "npm view left-pad",
        &[("npm view git+ssh://evil/x", "may do more than read")],
    ),
    (
        "kubectl get pods",
        &[
            (
                "kubectl get pods --kubeconfig=./x",
                "`--kubeconfig` may run",
            ),
            (
                "kubectl get pods --kubeconfig ./x",
                "`--kubeconfig` may run",
            ),
            ("kubectl get pods --context other", "`--context` may run"),
            ("kubectl get pods --cache-dir=x", "`--cache-dir` may write"),
            ("kubectl get -k ./evil", "`-k` may run"),
        ],
    ),
    (
        "git log -1",
        &[
            (
                "git log -1 --output=.git/config --format=x",
                "`--output` may write",
            ),
            ("git log -1 --output .git/config", "`--output` may write"),
            ("git log --outp=x", "`--outp` may write"),
            ("git log --ext-diff", "`--ext-diff` may run"),
            ("git log --textconv", "`--textconv` may run"),
            ("git log --show-signature", "`--show-signature` may run"),
            ("git log '--format=%G?'", "`--format` may run"),
            ("git log --pretty %GS", "may run"),
            ("git log --help", "`--help` may run"),
        ],
    ),
    (
        "git diff",
        &[
            ("git diff --output=F", "`--output` may write"),
            ("git diff --stat --output F", "`--output` may write"),
            (
                "git diff --output-indicator-new=x --output=F",
                "`--output` may write",
            ),
            ("git diff --out=F", "`--out` may write"),
            ("git diff --remerge-diff", "`--remerge-diff` may write"),
        ],
    ),
    (
        "git branch",
        &[
            (
                "git branch --edit-description",
                "`--edit-description` may run",
            ),
            ("git branch --edit-desc", "`--edit-desc` may run"),
            ("git branch new", "with `new` it may do more than read"),
            ("git branch -D main", "`-D` may write"),
            ("git branch -avD main", "`-avD` may write"),
            ("git branch -uorigin", "`-uorigin` may write"),
        ],
    ),
    (
        "git status",
        &[
            ("git -C evil status", "other words follow the allowed ones"),
            (
                "git --git-dir=evil status",
                "other words follow the allowed ones",
            ),
            (
                "git --exec-path=evil status",
                "other words follow the allowed ones",
            ),
            (
                "git -c core.fsmonitor=./evil status",
                "other words follow the allowed ones",
            ),
            ("cd evil && git status", "No rule allows `cd evil`"),
        ],
    ),
    (
        "pip list",
        &[
            ("pip list --log F", "`--log` may write"),
            ("pip list --log=F", "`--log` may write"),
            ("pip list --python ./evil", "`--python` may run"),
        ],
    ),
    (
        "go test ./...",
        &[
            ("go test -ldflags=-extld=./evil ./...", "`-ldflags` may run"),
            (
                "go test --ldflags=-extld=./evil ./...",
                "`--ldflags` may run",
            ),
            ("go test -toolexec ./evil", "more than its words"),
            ("go test -o x", "`-o` may write"),
            ("go test -coverprofile=x", "`-coverprofile` may write"),
            ("go test ../evil", "with `../evil` it may do more than read"),
            ("go test -C evil", "`-C` may run"),
        ],
    ),
    (
        "cargo test",
        &[
            (
                "cargo test --manifest-path evil/Cargo.toml",
                "`--manifest-path` may run",
            ),
            (
                "cargo test --manifest-path=evil/Cargo.toml",
                "`--manifest-path` may run",
            ),
            ("cargo test --target-dir x", "`--target-dir` may write"),
            ("cargo test --target ./evil.json", "`--target` may run"),
            ("cargo test -Zscript", "`-Zscript` may run"),
            ("cargo test -C evil", "`-C` may run"),
            (
                "cargo test -- --logfile=x",
                "`--logfile` may do more than read",
            ),
            (
                "cargo test -- x --logfile x",
                "`--logfile` may do more than read",
            ),
        ],
    ),
    (
        "cargo fmt --check",
        &[("cargo fmt", "other words follow the allowed ones")],
    ),
    (
        "tree",
        &[
            ("tree -o F", "`-o` may write"),
            ("tree -ao F", "`-ao` may write"),
            ("tree -Io x F", "`-Io` may write"),
            ("tree -R -L 1", "`-R` may write"),
        ],
    ),
    (
        "file x",
        &[
            ("file -C -m x", "`-C` may write"),
            ("file -bC", "`-bC` may write"),
            ("file -z x", "`-z` may run"),
        ],
    ),
    (
        "sort x",
        &[
            ("sort --output=F x", "`--output` may write"),
            ("sort --outp=F x", "`--outp` may write"),
            ("sort -o F x", "`-o` may write"),
            ("sort -uo F x", "`-uo` may write"),
            ("sort -T evil x", "`-T` may write"),
            ("sort *.txt", "a word is only known when the command runs"),
        ],
    ),
    (
        "uniq x",
        &[("uniq x F", "with `F` it may do more than read")],
    ),
    (
        "date",
        &[
            ("date -s now", "`-s` may write"),
            ("date 010203", "with `010203` it may do more than read"),
        ],
    ),
    ("diff a b", &[("diff -l a b", "`-l` may run")]),
    (
        "find . -name x",
        &[
            ("find . -delete", "`-delete` may write"),
            ("find . -fprint F", "`-fprint` may write"),
            ("find . -exec sort + -o F \\;", "No rule allows `sort"),
        ],
    ),
    (
        "rg x",
        &[("rg -z x", "`-z` may run"), ("rg -iz x", "`-iz` may run")],
    ),
    (
        "pytest",
        &[
            ("pytest -p evil", "`-p` may run"),
            ("pytest -c evil.ini", "`-c` may run"),
            ("pytest --rootdir=evil", "`--rootdir` may run"),
            ("pytest ../evil", "with `../evil` it may do more than read"),
            ("pytest @evil", "with `@evil` it may do more than read"),
            ("pytest --junitxml=F", "`--junitxml` may write"),
        ],
    ),
    (
        "eslint src",
        &[
            ("eslint --config evil.js src", "`--config` may run"),
            ("eslint -f ./evil.js src", "`-f` may run"),
            ("eslint --fix src", "`--fix` may write"),
        ],
    ),
    (
        "ls",
        &[
            ("GIT_PAGER=./evil ls", "it sets a variable"),
            ("NODE_OPTIONS=--require=./evil.js ls", "it sets a variable"),
            ("LD_PRELOAD=./evil.so ls", "it sets a variable"),
            ("PATH=. ls", "it sets a variable"),
            ("for PATH in .; do ls; done", "No rule allows `for PATH`"),
            ("ls {HOME}<a", "it sets a variable"),
            ("ls --frobnicate", "`--frobnicate` may do more than read"),
            ("ls > F", "it redirects output to a file"),
            ("ls < /dev/tcp/evil/80", "it redirects output to a file"),
        ],
    ),
    ("docker ps", &[("docker ps -H tcp://evil", "`-H` may run")]),
    (
        "terraform fmt -check",
        &[("terraform fmt -check -write=true", "`-write` may write")],
    ),
    (
        "tsc --noEmit",
        &[("tsc --noEmit -p evil.json", "`-p` may run")],
    ),
];

#[test]
fn a_rule_that_the_card_offered_lets_nothing_run_or_write_beside_what_it_names() {
    let mut wrong = Vec::new();
    for (of, later) in MORE {
        let rules = [offered(of)];
        assert_eq!(on_command(&rules, of), "Allowed by rule “card”.", "{of}");
        for (command, reason) in *later {
            let because = on_command(&rules, command);
            let is_hidden = because.contains("it runs something that the command does not name");
            let is_said = because.contains(reason) || is_hidden;
            if because.starts_with("Allowed") || because.starts_with("Denied") || !is_said {
                wrong.push(format!("{command}: {because}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Everyday commands under these rules.
const DAILY: &[(&str, &[&str])] = &[
    (
        "npm test",
        &[
            "npm test --silent",
            "npm test -s",
            "npm test -- src/a.test.js",
        ],
    ),
    ("npm run build", &["npm run build --if-present"]),
    (
        "kubectl get pods",
        &[
            "kubectl get pods -n web -o json -l app=x",
            "kubectl get -A svc",
            "kubectl get -ojson po",
        ],
    ),
    (
        "git log -1",
        &[
            "git log --oneline -n 5",
            "git log -5 --stat -- src",
            "git log --format='%h %s' --since=yesterday main..HEAD",
            "git log -p -S word --graph --all",
            "git log -M50% -L1,5:a.rs",
        ],
    ),
    (
        "git diff",
        &[
            "git diff --stat HEAD~1",
            "git diff --cached -U5 -- 'a b'",
            "git diff -w --name-only main...HEAD",
        ],
    ),
    (
        "git branch",
        &[
            "git branch -a",
            "git branch -vv --sort=-committerdate",
            "git branch --contains HEAD",
        ],
    ),
    (
        "git status",
        &["git status -sb", "git status --porcelain=v1 -uno src"],
    ),
    (
        "cargo test",
        &[
            "cargo test --locked -p sepal --lib",
            "cargo test name -- --nocapture --test-threads=1",
        ],
    ),
    (
        "go test ./...",
        &[
            "go test -v -run TestX -count=1 ./pkg/...",
            "go test --race .",
        ],
    ),
    (
        "sort x",
        &["sort -t: -k2,2n -r", "sort -u --parallel=2 a b"],
    ),
    (
        "find . -name x",
        &[
            "find src -type f -name '*.rs' -mtime -7",
            "find . \\( -name a -o -name b \\) -print0",
        ],
    ),
    ("tree", &["tree -aL 2 src"]),
    ("file x", &["file -b --mime-type a b"]),
    (
        "pytest",
        &[
            "pytest -q -k 'a and b' tests/test_a.py::test_b",
            "pytest -vv -x --tb=short --maxfail 1",
        ],
    ),
    (
        "wc x",
        &["wc -l *.rs", "wc -l \"$F\"", "wc < x", "cat x | wc"],
    ),
    (
        "ls",
        &["ls -la *", "ls $HOME", "l\\s -l", "ls `ls`", "ls $(ls)"],
    ),
];

#[test]
fn what_only_reads_is_not_asked() {
    let mut wrong = Vec::new();
    for (of, later) in DAILY {
        let rules = [offered(of), rule("cat", Allow, Session, commands(&["cat"]))];
        for command in *later {
            let because = on_command(&rules, command);
            if !because.starts_with("Allowed") {
                wrong.push(format!("{command}: {because}"));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{}",
        wrong.join(
            "
"
        )
    );
}

#[test]
fn a_rule_without_a_table_takes_no_options() {
    let rules = [rule(
        "typed",
        Allow,
        Session,
        commands(&["frob", "npm", "make"]),
    )];
    for (command, is_allowed) in [
        ("frob x", true),
        ("frob -x", false),
        ("frob +x", false),
        ("frob $X", false),
        ("frob \"a$X\"", true),
        ("frob -- x", false),
        ("npm test", true),
        ("npm install x", false),
        ("npm --prefix x test", false),
        ("npm $X", false),
        ("make -j4 test", true),
        ("make -f evil.mk", false),
        ("make -C evil", false),
        ("make SHELL=./evil", false),
    ] {
        let because = on_command(&rules, command);
        assert_eq!(
            because.starts_with("Allowed"),
            is_allowed,
            "{command}: {because}"
        );
    }
}

#[test]
fn a_typed_rule_may_be_wider_and_says_so() {
    let wide = |words: &str| CommandPrefix {
        any_words: true,
        ..CommandPrefix::new(words.split(' '))
    };
    let mut typed = rule("typed", Allow, Person, Conditions::default());
    typed.when.command = Some(vec![wide("npm test")]);
    typed.tool = "execute_command".into();
    for command in [
        "npm test --prefix x",
        "npm test -- --watch=false",
        "npm test $X",
    ] {
        let because = on_command(&[typed.clone()], command);
        assert!(
            because.starts_with("Allowed") || command.contains('$'),
            "{command}: {because}"
        );
    }
    for command in ["npm test > F", "A=1 npm test", "npm tests"] {
        assert!(
            on_command(&[typed.clone()], command).starts_with("Rule"),
            "{command}"
        );
    }
    assert_eq!(
        sentence(&typed),
        "Always, for you, run `npm test` with any further words, even ones that write files or run \
         programs, with `execute_command` of any server without asking."
    );
    assert_eq!(crate::subject(&typed), "npm test …");
    let mut nothing = typed.clone();
    nothing.when.command = Some(vec![CommandPrefix {
        more: false,
        ..wide("npm test")
    }]);
    assert!(Rules::compile(vec![nothing]).is_err());
    let refusing = Rule {
        effect: Effect::Deny,
        ..typed
    };
    assert!(Rules::compile(vec![refusing]).is_err());
}

#[test]
fn the_folder_for_another_command_is_one_that_the_rule_names() {
    let rules = [rule(
        "typed",
        Allow,
        Session,
        commands(&["cd", "ls", "npm test"]),
    )];
    assert!(on_command(&rules, "cd src && ls").starts_with("Allowed"));
    assert_eq!(
        on_command(&rules, "cd src && npm test"),
        "Rule “typed” does not allow `cd src`: it changes to a folder that the \
         rule does not name, and a later command depends on that folder."
    );
    let rules = [offered("cd web && npm test")];
    assert!(sentence(&rules[0]).contains("run `cd web` or `npm test …` with"));
    assert!(on_command(&rules, "cd web && npm test --silent").starts_with("Allowed"));
    assert!(on_command(&rules, "cd evil && npm test").starts_with("Rule"));
    assert!(on_command(&rules, "cd && npm test").starts_with("Rule"));
}

/// A rule from before `any_words` existed, with an example that it matched then.
#[test]
fn a_kept_prefix_takes_only_harmless_words_from_now_on() {
    let kept = json!({
        "id": "kept", "effect": "allow", "scope": "person", "server": "sandbox",
        "tool": "execute_command", "when": {"command": [{"words": ["npm", "test"], "more": true}]},
        "examples": {
            "matching": {
                "server": "sandbox", "tool": "execute_command",
                "arguments": {"command": "npm test -- --watch=false"},
                "shell": {"argument": "command"}
            },
            "other": {
                "server": "sandbox", "tool": "execute_command",
                "arguments": {"command": "ls"}, "shell": {"argument": "command"}
            }
        }
    });
    let kept: Rule = serde_json::from_value(kept).unwrap();
    let rules = Rules::compile_safely(vec![kept]);
    let shell = shell();
    let decide = |command: &str| {
        let arguments = json!({ "command": command });
        let call = Call {
            shell: Some(&shell),
            ..Call::new("sandbox", "execute_command", &arguments)
        };
        rules.decide(&call).effect
    };
    assert_eq!(decide("npm test --silent"), Allow);
    assert_eq!(decide("npm test -- --watch=false"), Effect::Ask);
    assert_eq!(decide("npm test --script-shell=./evil.sh"), Effect::Ask);
}

/// Deny rules find a command in every form in which it may be hidden.
#[test]
fn what_is_denied_is_refused_in_every_form_that_is_read() {
    let mut wrong = Vec::new();
    let rules = [
        rule("all", Allow, Session, Conditions::default()),
        rule("rm", Effect::Deny, Person, commands(&["rm"])),
    ];
    for command in [
        "echo `rm x`",
        "echo \"a `rm x` b\"",
        "echo `echo \\`rm x\\``",
        "f() { rm x; }",
        "f() { rm x; }; f",
        "f () ( rm x )",
        "function f { rm x; }",
        "function f() { rm x; }; f",
        "trap 'rm x' EXIT",
        "trap -- 'rm x' EXIT",
        "sh <<EOF\nrm x\nEOF",
        "bash -s <<'EOF'\nls\nrm x\nEOF",
        "sudo sh <<EOF\nrm x\nEOF",
        "cat x | sh <<EOF\nrm x\nEOF",
        "sh <<< 'rm x'",
        "case x in x) rm y;; esac",
        "case $1 in a|b) ls;; *) rm y; esac",
        "case x in (a) ls ;& b) rm y ;; esac",
        "case x in a) sh -c 'rm y';; esac",
        "if true; then case x in x) rm y;; esac; fi",
        "case `rm x` in a) ls;; esac",
    ] {
        let because = on_command(&rules, command);
        if !because.starts_with("Denied") {
            wrong.push(format!("{command}: {because}"));
        }
    }
    for command in [
        "echo `ls`",
        "case x in rm) ls;; esac",
        "cat <<EOF\nrm x\nEOF",
        "sh -c ls <<EOF\nrm x\nEOF",
    ] {
        let because = on_command(&rules, command);
        if !because.starts_with("Allowed") {
            wrong.push(format!("{command}: {because}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
