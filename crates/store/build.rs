//! Rebuilds when a migration changes: the macro that embeds migrations cannot see new files by itself.

fn main() {
    println!("cargo:rerun-if-changed=../../migrations");
}
