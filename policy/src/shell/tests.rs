//! What is read of command lines, as a table, and against bash itself.

use std::process::{Command, Stdio};

use proptest::prelude::*;
use tempfile::TempDir;

use super::{Hidden, Part, Word, read};

/// Parts as text: `name word` each, `*` for tame and `?` for wild open words, with marks behind.
fn shown(part: &Part) -> String {
    let words = part.words.iter().map(|word| match word {
        Word::Literal(text) => format!("[{text}]"),
        Word::Open { is_tame: true } => "*".to_owned(),
        Word::Open { is_tame: false } => "?".to_owned(),
    });
    let mut text: String = words.collect();
    for (is_marked, mark) in [
        (part.redirects, " redirects"),
        (part.hidden.is_some(), " hidden"),
        (part.is_shadow, " shadow"),
    ] {
        text.push_str(if is_marked { mark } else { "" });
    }
    text
}

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    let parts = read(text).unwrap_or_else(|why| panic!("{text:?}: {why}"));
    let parts: Vec<String> = parts.iter().map(shown).collect();
    assert_eq!(parts, expected, "{text:?}");
}

#[test]
fn words_are_read_as_bash_reads_them() {
    check("a b", &["[a][b]"]);
    check("a 'b c' \"d e\" f\\ g", &["[a][b c][d e][f g]"]);
    check("a'b'\"c\"d ''", &["[abcd][]"]);
    check("a \"\\a\\$\\\"\"", &["[a][\\a$\"]"]);
    check("a#b #c", &["[a#b]"]);
    check("a \\\n  b", &["[a][b]"]);
    check("a {} x{}", &["[a][{}][x{}]"]);
    check("a {b,c} b}", &["[a]??"]);
    check("a HEAD~1 ~ ~x a=~ a:~", &["[a][HEAD~1]??**"]);
    check("a *.c s/*.c -* [ab]", &["[a]?*??"]);
    check("a $x \"$x\" \"b$x\" \"-$x\" b$x ${x} $1", &["[a]??*????"]);
    check("a $ \"$\"", &["[a][$][$]"]);
    check("[ a = b ]", &["[[][a][=][b][]]"]);
}

#[test]
fn every_command_of_a_line_is_a_part() {
    check(
        "a && b || c | d; e & f",
        &["[a]", "[b]", "[c]", "[d]", "[e]", "[f]"],
    );
    check("a\nb\n\nc", &["[a]", "[b]", "[c]"]);
    check("(a; b) && { c; }", &["[a]", "[b]", "[c]"]);
    check(
        "if a; then b; elif c; then d; else e; fi",
        &["[a]", "[b]", "[c]", "[d]", "[e]"],
    );
    check("while a; do b; done", &["[a]", "[b]"]);
    check("! a", &["[a]"]);
    check("a $(b \"$(c)\") <(d)", &["[c]", "[b]?", "[d]", "[a]?*"]);
    check("for f in x y; do a \"$f\" $f; done", &["[a]*?"]);
    check("for f in x -y; do a \"$f\"; done", &["[a]?"]);
    check("for f in $(b); do a \"$f\"; done", &["[b]", "[a]?"]);
    check(
        "for f in s/*; do a \"$f\"; done; a \"$f\"",
        &["[a]*", "[a]?"],
    );
    check("for _ in s; do a \"$_\"; done", &["[a]?"]);
}

#[test]
fn redirections_and_assignments_are_seen() {
    check("a > b", &["[a] redirects"]);
    check("a <b", &["[a] redirects"]);
    check("a >/dev/null 2>&1 2>&-", &["[a]"]);
    check("a &>b", &["[a] redirects"]);
    check("a >&b", &["[a] redirects"]);
    check("a 2b>c", &["[a][2b] redirects"]);
    check("{ a; } > b", &["[a]", " redirects"]);
    check("> b", &[" redirects"]);
    check("a <<< \"$(b)\"", &["[b]", "[a]"]);
    check("A=1 b", &["[b] hidden"]);
    check("A=$(c) b", &["[c]", "[b] hidden"]);
    check("A+=1", &[" hidden"]);
    check("a <<X | b\n1\nX\nc", &["[a]", "[b]", "[c]"]);
    check("a <<'X'\n$(b)\nX", &["[a]"]);
    check("a <<-X\n\t1\n\tX\nc", &["[a]", "[c]"]);
    check("a <<X <<Y\nX\nX\nY\nc", &["[a]", "[c]"]);
}

#[test]
fn commands_in_commands_are_looked_through() {
    check("env -i a b", &["[a][b]", "[env][-i][a][b]"]);
    check("env A=1 b", &["[b]", "[env][A=1][b] hidden"]);
    check("env -S 'a b'", &["[env][-S][a b] hidden"]);
    check(
        "timeout -k 5 10 a b",
        &["[a][b]", "[timeout][-k][5][10][a][b]"],
    );
    check(
        "timeout --unknown 10 a",
        &["[timeout][--unknown][10][a] hidden"],
    );
    check(
        "nice -n5 nohup a",
        &["[a]", "[nohup][a]", "[nice][-n5][nohup][a]"],
    );
    check("sudo -u x a", &["[a]", "[sudo][-u][x][a]"]);
    check("sh -c 'a && b' c", &["[a]", "[b]", "[sh][-c][a && b][c]"]);
    check("bash -lc \"a '$x'\"", &["[bash][-lc]* hidden"]);
    check("sh -c 'a $(('", &["[sh][-c][a $((] hidden"]);
    check("a | sh", &["[a]", "[sh] hidden"]);
    check("bash a b", &["[a][b] shadow", "[bash][a][b]"]);
    check("eval a '&& b'", &["[a]", "[b]", "[eval][a][&& b]"]);
    check(
        "xargs -0 -n 1 a b",
        &["[a][b]?", "[xargs][-0][-n][1][a][b]"],
    );
    check("xargs -I{} a x{}", &["[a]?", "[xargs][-I{}][a][x{}]"]);
    check(
        "find s -exec a {} \\; -exec b {}x +",
        &[
            "[a]*",
            "[b]?",
            "[find][s][-exec][a][{}][;][-exec][b][{}x][+]",
        ],
    );
    check("git -C x a", &["[git][a] shadow", "[git][-C][x][a]"]);
    check(
        "git -c x=y a",
        &["[git][a] shadow", "[git][-c][x=y][a] hidden"],
    );
    check("git rebase --exe a", &["[git][rebase][--exe][a] hidden"]);
    check("python -c a", &["[python][-c][a] hidden"]);
    check("python3.12 a b", &["[a][b] shadow", "[python3.12][a][b]"]);
    check("python -m a", &["[python][-m][a]"]);
    check("alias a=b", &["[alias][a=b] hidden"]);
    check("set -euo pipefail", &["[set][-euo][pipefail]"]);
    check("set -- a", &["[set][--][a] hidden"]);
    check("awk '{print $1}' f", &["[awk][{print $1}][f]"]);
    check(
        "awk 'BEGIN{system(\"a\")}'",
        &["[awk][BEGIN{system(\"a\")}] hidden"],
    );
    check("sed s/a/b/g f", &["[sed][s/a/b/g][f]"]);
    check("sed s/a/b/e f", &["[sed][s/a/b/e][f] hidden"]);
    check("time ! a", &["[!][a]", "[time][!][a] hidden"]);
    check("command -v a", &["[command][-v][a]"]);
    check("tar -I a -xf b", &["[tar][-I][a][-xf][b] hidden"]);
}

#[test]
fn what_is_not_surely_understood_is_not_read() {
    for text in [
        "",
        "  ",
        "# a",
        "a '",
        "a \"",
        "a $(",
        "a `b`",
        "a \"`b`\"",
        "a $((1))",
        "a $[1]",
        "a $'b'",
        "a $\"b\"",
        "a ${b:-c}",
        "a ${#b}",
        "a() { b; }",
        "function a { b; }",
        "case a in a) b;; esac",
        "[[ a ]]",
        "((a))",
        "select a in b; do c; done",
        "coproc a",
        "a |& b",
        "a ;; b",
        "a &&& b",
        "a(b)",
        "a @(b|c)",
        "a=(b c)",
        "a[1]=b",
        "a[$(b)]=c",
        "a\u{a0}b",
        "a\u{200b}b",
        "a\u{202e}b",
        "a\u{301}",
        "a\rb",
        "a\x07",
        "a\u{feff}",
        "a \\",
        "a\\\nb",
        "a \"b\\\nc\"",
        "a <<X",
        "a <<X\nb",
        "a <<X\n$b\nX",
        "a <<X\n`b`\nX",
        "a <<\"$x\"\n$x",
        "a <<X 'b\nc'\nX",
        "a $(b <<X)\nX",
        "a $(b <<X\n1\nX\nc;\nd & )",
        "if a; then b",
        "{ a",
        "( a",
        "a )",
        "a; }",
        "then a",
        "a | ",
        "a &&",
        "for a b",
        "for ((;;)); do a; done",
        "for f in a; do for f in -x; do b; done; done",
        "a <(b)c",
        "a >",
        "a > > b",
        "$a(b)",
        "a $\\\nb",
        "time { a; }",
    ] {
        assert!(read(text).is_err(), "{text:?}: {:?}", read(text));
    }
    for deep in [
        "(".repeat(100_000),
        "a $(".repeat(100_000),
        "{ ".repeat(100_000),
        "! ".repeat(30_000),
        "a \"$(".repeat(10_000),
        format!("{}{}", "( ".repeat(1_000), " )".repeat(1_000)),
        "a;".repeat(20_000),
        "env ".repeat(10_000) + "a",
        "if ".repeat(20_000),
        "a <(".repeat(10_000),
    ] {
        assert!(read(&deep).is_err());
    }
}

/// The words of every command that bash would start for `text`, by a hook that runs instead of them.
/// Bash writes line by line, so commands that run side by side write no end of a line.
fn started_by_bash(text: &str, folder: &TempDir) -> Vec<Vec<String>> {
    let (log, home) = (folder.path().join("log"), folder.path().join("home"));
    std::fs::create_dir_all(&home).unwrap();
    let hook = format!(
        "PATH=/nowhere; command_not_found_handle() {{\n\
         local IFS=$'\\1'; local line=\"$*\"; printf '%s\\2' \"${{line//$'\\n'/$'\\3'}}\" >>'{log}'; }}\n\
         trap wait EXIT; exec 2>/dev/null\n{text}",
        log = log.display()
    );
    std::fs::write(&log, "").unwrap();
    let status = Command::new("bash")
        .args(["-c", &hook])
        .current_dir(&home)
        .env("HOME", &home)
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status();
    status.unwrap();
    let log = String::from_utf8(std::fs::read(&log).unwrap()).unwrap();
    let lines = log.replace('\u{3}', "\n");
    let mut lines: Vec<&str> = lines.split('\u{2}').collect();
    assert_eq!(lines.pop(), Some(""), "{text:?}");
    let words = |line: &str| line.split('\u{1}').map(str::to_owned).collect();
    lines.into_iter().map(words).collect()
}

/// Whether bash could have got `started` from `words`.
fn may_become(words: &[Word], started: &[String]) -> bool {
    match words.split_first() {
        None => started.is_empty(),
        Some((Word::Literal(text), rest)) => started
            .split_first()
            .is_some_and(|(first, more)| first == text && may_become(rest, more)),
        Some((Word::Open { is_tame: true }, rest)) => {
            let tame = started
                .iter()
                .take_while(|word| super::grammar::begins_no_option(word))
                .count();
            (1..=tame).any(|many| may_become(rest, &started[many..]))
        }
        Some((Word::Open { is_tame: false }, rest)) => {
            (0..=started.len()).any(|many| may_become(rest, &started[many..]))
        }
    }
}

/// Pieces from which texts are made that look like commands, and like nothing.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        6 => prop::sample::select(vec!["a", "b", "c1", "-x", "{}", "é", "=", "x=", "~", "1", "2"]),
        6 => prop::sample::select(vec![" ", " ", " ", "\n", "\t", "; ", " && ", " | ", " || ", " & "]),
        4 => prop::sample::select(vec!["'", "\"", "\\", "#", "$", "\\\n", "'b c'", "\"$x\"", "\"a$x\"", "$(", ")", "(", "{ ", "}", "; }"]),
        2 => prop::sample::select(vec![">", ">>", "<", "2>&1", "<<<", "<<X\n", "<<X", "\nX\n", "<<'X'\n", "<<-X\n", "\tX\n", "<(", "&>", ">|", ">/dev/null"]),
        2 => prop::sample::select(vec!["if ", "then ", "; then ", "fi", "; fi", "else ", "while ", "do ", "; do ", "done", "; done", "for ", "for v in a b", "\"$v\"", "! ", "in ", "time "]),
        2 => prop::sample::select(vec!["*", "?", "[", "]", "{a,b}", "{", ",", "!", "~", ":", "^", "%", "@", "+", "`", "[[", "]]", "((", "))", "case ", "$v", "${v}", "${x:-a}", "$'", "$1", "eval ", "eval 'a b'", "sleep 1"]),
    ];
    prop::collection::vec(piece, 1..14).prop_map(|pieces| pieces.concat())
}

/// Texts that bash mostly understands, with everything that may hide where a word or a line ends.
fn lists() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "a",
        "b",
        "-x",
        "'b\nc'",
        "\"b\nc\"",
        "'it'\\''s'",
        "\\#",
        "a#b",
        "\\;",
        "{}",
        "\"a$v\"",
        "\"$v\"",
        "'#'",
        "\"'\"",
        "'\"'",
        "c=d",
        "\\\\",
        "''",
        ">/dev/null",
        "2>&1",
        "&>/dev/null",
        "<<<'a\nb'",
        "$v",
        "*",
    ]);
    let word = words.prop_map(str::to_owned);
    let separators = prop::sample::select(vec![
        "; ",
        " && ",
        " || ",
        " | ",
        " & ",
        "\n",
        "\n\n",
        " # it's\n",
        " # \"\n",
        " # $(\n",
        " #\\\n",
        " \\\n",
        ";\n",
        " |\n",
        " <<X\n'\nX\n",
        " <<'X'\n$(\nX\n",
        " <<-X\n\tb\n\tX\n",
        " <<X | ",
        " <<X; ",
        "\nb\nX\n",
        " <<X && b\nc\nX\n",
    ]);
    let simple = prop::collection::vec(word, 1..4).prop_map(|words| words.join(" "));
    let list = simple.prop_recursive(4, 24, 3, move |inner| {
        let list = prop::collection::vec((inner.clone(), separators.clone()), 1..4)
            .prop_map(|list| list.into_iter().flat_map(|(one, end)| [one, end.to_owned()]).collect::<String>());
        prop_oneof![
            4 => list,
            1 => inner.clone().prop_map(|list| format!("( {list} )")),
            1 => inner.clone().prop_map(|list| format!("{{ {list}\n}}")),
            1 => inner.clone().prop_map(|list| format!("a $({list}\n) b")),
            1 => inner.clone().prop_map(|list| format!("a \"x$({list})\"")),
            1 => inner.clone().prop_map(|list| format!("a <({list}) b")),
            1 => inner.clone().prop_map(|list| format!("! {list}")),
            1 => inner.clone().prop_map(|list| format!("for v in s -s; do {list}\ndone")),
            1 => inner.clone().prop_map(|list| format!("for v in s t*; do\n{list}\ndone >/dev/null")),
            1 => (inner.clone(), inner).prop_map(|(one, two)| format!("if {one}\nthen {two}; else {one}\nfi")),
        ]
    });
    // One change makes a text that is almost understood.
    (
        list,
        any::<prop::sample::Index>(),
        prop::sample::select(vec![
            "", "", "'", "\"", "\\", "\n", "#", ")", "$", " ", "<", "&",
        ]),
    )
        .prop_map(|(mut list, at, sign)| {
            let ends: Vec<usize> = list.char_indices().map(|(at, _)| at).collect();
            list.insert_str(*at.get(&ends), sign);
            list
        })
}

/// Of what is random: at least 2,048 texts; `PROPTEST_CASES` asks for more.
fn config() -> ProptestConfig {
    let default = ProptestConfig::default();
    ProptestConfig {
        cases: default.cases.max(2_048),
        failure_persistence: None,
        ..default
    }
}

proptest! {
    #![proptest_config(config())]

    /// Whatever bash starts for a text that was read is one of its parts.
    #[test]
    fn bash_starts_nothing_that_was_not_read(text in prop_oneof![1 => pieces(), 2 => lists()]) {
        // Endless for bash, because its hook succeeds.
        if text.contains("while") || text.contains("until") {
            return Ok(());
        }
        let Ok(parts) = read(&text) else { return Ok(()) };
        let folder = TempDir::new().unwrap();
        let is_hidden = parts.iter().any(|part| !matches!(part.hidden, None | Some(Hidden::Assignment)));
        for started in started_by_bash(&text, &folder) {
            let is_read = parts.iter().any(|part| may_become(&part.words, &started));
            prop_assert!(is_read || is_hidden, "{:?}: bash started {:?}, read was {:?}", text, started, parts);
        }
        let files = std::fs::read_dir(folder.path().join("home")).unwrap();
        let redirects = parts.iter().any(|part| part.redirects);
        prop_assert_eq!(redirects || files.count() == 0, true, "{:?} wrote", text);
    }

    #[test]
    fn every_text_has_an_end(text in "\\PC{0,200}") {
        let _ = read(&text);
    }
}
