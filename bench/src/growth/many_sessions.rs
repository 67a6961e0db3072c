//! Measures the session list of a person with very many sessions.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::{Value, json};

use super::curve::{CurveBound, Curves};
use super::rest::{Rest, median_ms};
use crate::process::Program;
use crate::subject::{Kind, Subject};

/// The number of sessions of a page.
const PAGE: usize = 50;
/// The number of concurrent requests while the list is filled.
const AT_ONCE: usize = 16;

pub(crate) async fn measure(sepal: &Path, most: usize, curves: &mut Curves) -> Result<()> {
    let upstream = Program::part(&["upstream"])?;
    let subject = Subject::start(Kind::Sqlite, upstream.address, sepal)?;
    let rest = Rest::new(&subject)?;
    let (mut medians, mut worst) = (Vec::new(), Vec::new());
    let mut made = 0;
    for count in [100, 1_000]
        .into_iter()
        .filter(|count| *count < most)
        .chain([most])
    {
        let titles = (made..count).map(|n| json!({ "title": format!("Session {n}") }));
        let posts = stream::iter(titles).map(|title| {
            let rest = &rest;
            async move { rest.post("/api/sessions", &title).await }
        });
        posts
            .buffer_unordered(AT_ONCE)
            .try_collect::<Vec<_>>()
            .await?;
        made = count;
        subject.program.settle().await?;
        let times = pages(&rest, count).await?;
        let slowest = times.iter().max().copied().unwrap_or_default();
        worst.push((count, slowest.as_secs_f64() * 1_000.0));
        medians.push((count, median_ms(times)));
    }
    let figure = ("page of the session list, median (ms)", "sessions");
    curves.take(figure, medians, CurveBound::AtMost(20.0));
    let figure = ("page of the session list, slowest (ms)", "sessions");
    curves.take(figure, worst, CurveBound::AtMost(20.0));
    Ok(())
}

/// Returns the time of each page of the whole list.
async fn pages(rest: &Rest<'_>, count: usize) -> Result<Vec<Duration>> {
    let (mut times, mut seen, mut cursor) = (Vec::new(), 0, String::new());
    loop {
        let path = format!("/api/sessions?limit={PAGE}&cursor={cursor}");
        let (page, took) = rest.get(&path).await?;
        times.push(took);
        let items = page.get("items").and_then(Value::as_array);
        seen += items.context("a list of sessions")?.len();
        match page.get("nextCursor").and_then(Value::as_str) {
            Some(next) => next.clone_into(&mut cursor),
            None => break,
        }
    }
    anyhow::ensure!(seen == count, "{seen} sessions were listed of {count}");
    Ok(times)
}
