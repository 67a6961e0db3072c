//! The `sepal` command line.

fn main() {}
