//! The `sepal` command line: reads it, loads the settings, hands over to the app.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run()
}
