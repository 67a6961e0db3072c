//! Measures turns with few tools and with many.

use std::path::Path;

use anyhow::Result;
use serde_json::json;

use super::curve::{CurveBound, Curves};
use crate::plan::Plan;
use crate::process::Program;
use crate::subject::{Kind, Subject};

/// The numbers of tools: those of every sandbox, and those with one more server.
const TOOLS: [usize; 2] = [4, 200];
/// The number of tools of a sandbox.
const BUNDLED: usize = 4;
/// The number of conversations.
const TALKERS: usize = 20;
/// The number of turns of each.
const TURNS: usize = 25;
/// The number of tokens of an answer.
const TOKENS: usize = 20;

pub(crate) async fn measure(sepal: &Path, curves: &mut Curves) -> Result<()> {
    let mut points = Vec::new();
    for count in TOOLS {
        let upstream = Program::part(&["upstream"])?;
        let more = (count - BUNDLED).to_string();
        let server = Program::part(&["tools", &more])?;
        let entry = json!({ "mcpServers": { "many": {
            "transport": "http", "url": format!("http://{}/mcp", server.address),
        } } });
        let files = [("mcp-config.json", entry.to_string())];
        let files = if count > BUNDLED { &files[..] } else { &[] };
        let subject = Subject::start_with(Kind::Sqlite, upstream.address, sepal, files)?;
        let mut talks = Vec::new();
        for _ in 0..TALKERS {
            talks.push(subject.connect().await?);
        }
        // The first turn reads the definitions.
        for talk in &mut talks {
            talk.turn(Plan::burst(TOKENS)).await?;
        }
        subject.program.settle().await?;
        let before = subject.program.cpu_seconds()?;
        for _ in 0..TURNS {
            for talk in &mut talks {
                talk.turn(Plan::burst(TOKENS)).await?;
            }
        }
        subject.program.settle().await?;
        let cpu_s = subject.program.cpu_seconds()? - before;
        points.push((count, cpu_s * 1_000.0 / (TALKERS * TURNS) as f64));
    }
    let figure = ("CPU per turn beside tools (ms)", "tools");
    curves.take(figure, points, CurveBound::Times(1.3));
    Ok(())
}
