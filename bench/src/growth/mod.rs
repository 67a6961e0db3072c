//! `./run bench growth`: measures how costs grow with the number of things. One gateway runs on its embedded
//! database; each curve is printed with its bound.

mod curve;
mod long_session;
mod many_sessions;
mod many_tools;
mod rest;
mod tools;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};

pub(crate) use tools::serve as serve_tools;

use self::curve::Curves;

/// What to measure.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The gateway's program.
    #[arg(long)]
    sepal: PathBuf,
    /// Where all figures are kept.
    #[arg(long)]
    out: PathBuf,
    /// Messages of the longest session.
    #[arg(long, default_value_t = 10_000)]
    messages: usize,
    /// Sessions of the longest list.
    #[arg(long, default_value_t = 10_000)]
    sessions: usize,
}

/// Measures, prints, and writes the figures.
pub(crate) async fn run(options: &Options) -> Result<ExitCode> {
    let sepal = options.sepal.canonicalize();
    let sepal = sepal.with_context(|| format!("{} is not there", options.sepal.display()))?;
    let mut curves = Curves::default();
    long_session::measure(&sepal, options.messages, &mut curves).await?;
    many_tools::measure(&sepal, &mut curves).await?;
    many_sessions::measure(&sepal, options.sessions, &mut curves).await?;
    curves.write(&options.out)?;
    println!("{}", curves.text());
    println!("All figures: {}", options.out.display());
    Ok(if curves.hold() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
