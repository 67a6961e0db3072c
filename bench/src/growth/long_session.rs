//! Measures one growing session at every length: processor time of turns, join, newest page, and disk.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result};

use super::curve::{CurveBound, Curves};
use super::rest::{Rest, median_ms};
use crate::plan::Plan;
use crate::process::Program;
use crate::subject::{Kind, Subject, Talk};

/// The numbers of messages at which the session is measured; the largest number is an option.
const LENGTHS: [usize; 2] = [100, 1_000];
/// The number of turns whose processor time is measured together: the clock has steps of 10 ms.
const TURNS: usize = 300;
/// The number of tokens of an answer.
const TOKENS: usize = 20;
/// The number of joins and pages that are timed.
const READS: usize = 40;
/// The number of messages of a turn.
const PER_TURN: usize = 2;
/// The number of short sessions, with about fifty messages each, that show the cost of history per turn.
const TALKERS: usize = 40;
/// The number of turns in each of the two measurements.
const SHORT: usize = 10;
/// The number of turns between the two measurements, so that the second is about 50 messages after the
/// first.
const BETWEEN: usize = 15;

/// The measurements at one length.
struct Point {
    cpu_ms: f64,
    join_ms: f64,
    page_ms: f64,
    bytes: f64,
}

pub(crate) async fn measure(sepal: &Path, longest: usize, curves: &mut Curves) -> Result<()> {
    let mut points = Vec::new();
    let upstream = Program::part(&["upstream"])?;
    let subject = Subject::start(Kind::Sqlite, upstream.address, sepal)?;
    let mut talk = subject.connect().await?;
    let mut messages = 0;
    let lengths = LENGTHS.into_iter().filter(|length| *length < longest);
    for length in lengths.chain([longest]) {
        while messages < length {
            talk.turn(Plan::burst(TOKENS)).await?;
            messages += PER_TURN;
        }
        let bytes = stored_bytes(&subject).await? / messages as f64;
        let point = at_length(&subject, &mut talk, bytes).await?;
        messages += TURNS * PER_TURN;
        points.push((length, point));
    }
    let curve = |of: fn(&Point) -> f64| {
        let points = points.iter().map(|(length, point)| (*length, of(point)));
        points.collect::<Vec<_>>()
    };
    let cpu = ("CPU per turn (ms)", "messages");
    curves.take(cpu, curve(|point| point.cpu_ms), CurveBound::Times(1.3));
    let join = ("join (ms)", "messages");
    curves.take(join, curve(|point| point.join_ms), CurveBound::Times(1.5));
    let page = ("newest page of the transcript (ms)", "messages");
    curves.take(page, curve(|point| point.page_ms), CurveBound::Times(1.5));
    let disk = ("disk per message (bytes)", "messages");
    curves.take(disk, curve(|point| point.bytes), CurveBound::None);
    drop(talk);
    history(sepal, curves).await
}

/// Measures one length, which adds further turns to the session.
async fn at_length(subject: &Subject, talk: &mut Talk, bytes: f64) -> Result<Point> {
    let cpu_ms = cpu_of(subject, std::slice::from_mut(talk), TURNS).await?;
    let session = talk.session().context("a gateway's session")?.to_owned();
    let rest = Rest::new(subject)?;
    let (mut joins, mut pages) = (Vec::new(), Vec::new());
    for _ in 0..READS {
        let began = Instant::now();
        let joined = subject.join(&session).await?;
        joins.push(began.elapsed());
        drop(joined);
        let path = format!("/api/sessions/{session}/events?before=9007199254740991&limit=100");
        pages.push(rest.get(&path).await?.1);
    }
    Ok(Point {
        cpu_ms,
        join_ms: median_ms(joins),
        page_ms: median_ms(pages),
        bytes,
    })
}

/// Returns the processor milliseconds of a turn, averaged over all turns of all conversations, which run
/// concurrently.
async fn cpu_of(subject: &Subject, talks: &mut [Talk], turns: usize) -> Result<f64> {
    subject.program.settle().await?;
    let before = subject.program.cpu_seconds()?;
    let all = talks.iter_mut().map(async |talk| {
        for _ in 0..turns {
            talk.turn(Plan::burst(TOKENS)).await?;
        }
        anyhow::Ok(())
    });
    futures::future::try_join_all(all).await?;
    subject.program.settle().await?;
    let cpu_s = subject.program.cpu_seconds()? - before;
    Ok(cpu_s * 1_000.0 / (talks.len() * turns) as f64)
}

/// Measures the cost of a history of fifty messages per turn.
async fn history(sepal: &Path, curves: &mut Curves) -> Result<()> {
    let upstream = Program::part(&["upstream"])?;
    let subject = Subject::start(Kind::Sqlite, upstream.address, sepal)?;
    let mut talks = Vec::new();
    for _ in 0..TALKERS {
        talks.push(subject.connect().await?);
    }
    let first = cpu_of(&subject, &mut talks, SHORT).await?;
    for talk in &mut talks {
        for _ in 0..BETWEEN {
            talk.turn(Plan::burst(TOKENS)).await?;
        }
    }
    let later = cpu_of(&subject, &mut talks, SHORT).await?;
    let at = [SHORT, SHORT + BETWEEN + SHORT / 2].map(|turns| turns * PER_TURN);
    let points = vec![(at[0] / 2, first), (at[1], later)];
    let figure = ("CPU per turn in short sessions (ms)", "messages");
    curves.take(figure, points, CurveBound::Above(0.3));
    Ok(())
}

/// Returns the bytes of the whole data folder, after the gateway has become idle.
async fn stored_bytes(subject: &Subject) -> Result<f64> {
    subject.program.settle().await?;
    let folder = subject.program.folder.as_ref().context("a data folder")?;
    Ok(bytes_below(folder.path())? as f64)
}

fn bytes_below(folder: &Path) -> Result<u64> {
    let mut sum = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let about = entry.metadata()?;
        sum += if about.is_dir() {
            bytes_below(&entry.path())?
        } else {
            about.len()
        };
    }
    Ok(sum)
}
