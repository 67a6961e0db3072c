//! No path leads the file tools out of the workspace, from inside a real sandbox.

use serde_json::json;

use super::super::house::{House, Served};
use super::place::Place;

super::super::on_every_runtime!(
    no_path_and_no_link_leads_out_of_the_workspace,
    a_link_that_comes_and_goes_leads_nowhere,
);

/// Outside the workspace there is a file that the same user may read and write, and inside is
/// every kind of way to it.
const TEMPT: &str = "
    mkdir -p /tmp/out a/b && printf SECRET >/tmp/out/secret
    ln -s /tmp/out/secret file; ln -s /tmp/out folder; ln -s ../tmp/out relative
    ln -s a/../../tmp/out dots; ln -s / slash; ln -s loop loop; ln -s /tmp/out/new dangling
    ln -s chain2 chain1; ln -s chain3 chain2; ln -s /tmp/out chain3
    ln -s /proc/self/root root; ln -s /proc/1/root first; ln -s /proc/self/cwd/../tmp cwd
    ln -s /proc/self/environ environ; ln -s /proc/self/mem memory
    ln /tmp/out/secret hard 2>/dev/null && echo linked; mkfifo pipe; echo tempted";

const WAYS_OUT: [&str; 22] = [
    "../tmp/out/secret",
    "../../../../../../../tmp/out/secret",
    "a/../../tmp/out/secret",
    "a/b/../../../tmp/out/secret",
    "/tmp/out/secret",
    "/workspace/../tmp/out/secret",
    "//tmp/out/secret",
    "file",
    "folder/secret",
    "relative/secret",
    "dots/secret",
    "slash/tmp/out/secret",
    "chain1/secret",
    "loop/secret",
    "dangling",
    "root/tmp/out/secret",
    "first/tmp/out/secret",
    "cwd/out/secret",
    "environ",
    "memory",
    "file\0.txt",
    r"$'..\x2ftmp\x2fout\x2fsecret'",
];

/// Asserts O10.
async fn no_path_and_no_link_leads_out_of_the_workspace(house: House) {
    let mut place = Place::new(house).await;
    assert_eq!(place.attack(TEMPT).await.printed(), "tempted\n");
    let long = "x".repeat(70_000);
    let deep = format!("{}../tmp/out/secret", "a/../".repeat(20_000));
    let quoted = format!(r"$'caf\xe9/{}tmp/out/secret'", "../".repeat(9));
    let strange = [
        long.as_str(),
        deep.as_str(),
        quoted.as_str(),
        "\u{202e}",
        "a\u{7f}/../..",
    ];
    for path in WAYS_OUT.into_iter().chain(strange) {
        let shown: String = path.chars().take(60).collect();
        let read = json!({ "path": path });
        let told = place.session().call("read_file", read.clone()).await;
        assert!(
            !told.contains("SECRET") && !told.contains("PATH="),
            "{shown}: {told}"
        );
        let told = place.session().call("list_files", read).await;
        assert!(!told.contains("secret (6 bytes)"), "{shown}: {told}");
        let write = json!({ "path": path, "content": "PWNED" });
        let told = place.session().call("write_file", write).await;
        assert!(
            !told.starts_with("Wrote") || path.starts_with('\u{202e}'),
            "{shown}: {told}"
        );
    }
    let look = "ls -A /tmp /tmp/out | tr '\\n' ' '; cat /tmp/out/secret";
    let outcome = place.attack(look).await;
    assert_eq!(outcome.printed(), "/tmp: out  /tmp/out: secret SECRET");
    place.close().await;
}

/// What the exchange needs.
const READY: &str = "
    mkdir -p /tmp/out d && printf SECRET >/tmp/out/secret
    printf harmless >d/secret; printf harmless >f
    ln -s /tmp/out dl; ln -s /tmp/out/secret fl; echo ready";

/// Exchanges a file and a folder with links to the outside for four seconds.
const SWAP: &str = "perl -e 'my $end = time + 4; while (time < $end) {
      for my $it (\"d\", \"f\") {
        rename $it, \"$it-old\"; rename \"${it}l\", $it;
        rename $it, \"${it}l\"; rename \"$it-old\", $it;
      }
    }'; echo swapped";

/// Asserts O10.
async fn a_link_that_comes_and_goes_leads_nowhere(house: House) {
    let mut place = Place::new(house).await;
    assert_eq!(place.attack(READY).await.printed(), "ready\n");
    let swap = json!({ "command": SWAP });
    let session = place.session();
    let (swapped, ()) = tokio::join!(
        Box::pin(session.call("execute_command", swap)),
        Box::pin(work_meanwhile(session))
    );
    assert!(swapped.ends_with("swapped\n"), "{swapped}");
    let look = "ls -A /tmp /tmp/out | tr '\\n' ' '; cat /tmp/out/secret";
    let outcome = place.attack(look).await;
    assert_eq!(outcome.printed(), "/tmp: out  /tmp/out: secret SECRET");
    place.next_call_works("the race").await;
    place.close().await;
}

/// The honest side of the race.
async fn work_meanwhile(session: &Served) {
    let mut answered = 0;
    for round in 0..100 {
        for path in ["d/secret", "f"] {
            let told = session.call("read_file", json!({ "path": path })).await;
            assert!(!told.contains("SECRET"), "round {round}: {told}");
            answered += usize::from(told == "harmless" || told == "mine");
            let write = json!({ "path": path, "content": "mine" });
            session.call("write_file", write).await;
        }
        let told = session.call("list_files", json!({ "path": "d" })).await;
        assert!(!told.contains("secret (6 bytes)"), "round {round}: {told}");
    }
    assert!(answered > 0, "the honest side never won");
}
