//! Whatever is done to a workspace, an undo brings back how it was.

use super::Ana;
use crate::support::TestApp;

/// A generator whose numbers are the same on every machine (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % most as u64).unwrap()
    }

    fn path(&mut self) -> &'static str {
        const PATHS: [&str; 9] = [
            "a",
            "b",
            "d",
            "d/a",
            "d/e",
            "d/e/f",
            "'s p'",
            "'s p/x'",
            r"$'caf\xe9'",
        ];
        PATHS[self.below(PATHS.len())]
    }

    /// One change; what cannot be done is left.
    fn command(&mut self) -> String {
        let (path, other) = (self.path(), self.path());
        match self.below(9) {
            0 => format!("echo {} > {path}", self.below(1000)),
            1 => format!("echo {} >> {path}", self.below(1000)),
            2 => format!("mkdir -p {path}"),
            3 => format!("rm -rf {path}"),
            4 => format!("rm -rf {other}; mv {path} {other}"),
            5 => format!("ln -sfn {other} {path}"),
            6 => format!("chmod {} {path}", ["700", "755", "750"][self.below(3)]),
            7 => format!("head -c {} /dev/zero > {path}", self.below(70_000)),
            _ => format!("ln -f {path} {other}"),
        }
    }
}

/// Some steps of some changes each, and after each of some undos the tree of that time.
async fn every_step_is_undone(app: TestApp, seed: u64, steps: usize) {
    let ana = Ana::open(&app, "acme").await;
    let mut random = Random(seed);
    // The tree before each step.
    let mut before = Vec::new();
    for _ in 0..steps {
        let tree = ana.tree(&app).await;
        let commands: Vec<String> = (0..4).map(|_| random.command()).collect();
        let line = commands.join(" 2>/dev/null; ");
        ana.runs(&app, &format!("umask 022; {line} 2>/dev/null; true"))
            .await;
        let number = ana.history().await[0]["number"].clone();
        before.push((number, tree, commands));
    }
    for _ in 0..steps {
        let at = random.below(before.len());
        let (number, tree, _) = &before[at];
        let undone = ana.undoes(number).await;
        assert_eq!(
            undone["unrestored"],
            serde_json::json!([]),
            "seed {seed}, step {at}: {before:?}"
        );
        let now = ana.tree(&app).await;
        assert_eq!(now, *tree, "seed {seed}, step {at}: {before:?}");
    }
}

#[tokio::test]
async fn every_step_of_random_changes_is_undone_in_bubblewrap() {
    for seed in [1, 2, 3] {
        every_step_is_undone(TestApp::with_sandbox().await, seed, 6).await;
    }
}

#[tokio::test]
async fn every_step_of_random_changes_is_undone_in_docker() {
    every_step_is_undone(TestApp::with_docker().await, 4, 5).await;
}
