//! One session that grows: turn, join, reload and disk at every length.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result};

use super::curve::{Bound, Curves};
use super::rest::{Rest, median_ms};
use crate::plan::Plan;
use crate::process::Program;
use crate::subject::{Kind, Subject, Talk};

/// Messages of the session where it is measured; the longest is an option.
const LENGTHS: [usize; 2] = [100, 1_000];
/// Turns whose processor time is measured together: its clock has steps of 10 ms.
const TURNS: usize = 300;
/// Tokens of an answer.
const TOKENS: usize = 20;
/// Joins and pages that are timed.
const READS: usize = 40;
/// Messages of a turn.
const PER_TURN: usize = 2;
/// Sessions of fifty messages, whose history is what a turn costs more.
const TALKERS: usize = 40;
/// Turns of each, twice.
const SHORT: usize = 10;
/// Turns between the first and the second time: 50 messages with the first.
const BETWEEN: usize = 15;

/// What was measured at one length.
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
    curves.take(cpu, curve(|point| point.cpu_ms), Bound::Times(1.3));
    let join = ("join (ms)", "messages");
    curves.take(join, curve(|point| point.join_ms), Bound::Times(1.5));
    let page = ("newest page of the transcript (ms)", "messages");
    curves.take(page, curve(|point| point.page_ms), Bound::Times(1.5));
    let disk = ("disk per message (bytes)", "messages");
    curves.take(disk, curve(|point| point.bytes), Bound::None);
    drop(talk);
    history(sepal, curves).await
}

/// Turns in the same session go on while it is measured.
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

/// Processor milliseconds of a turn, of many by all of them at once.
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

/// What the past costs a turn of a session of fifty messages.
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
    curves.take(figure, points, Bound::Above(0.3));
    Ok(())
}

/// Bytes of the whole data folder, once the gateway has come to rest.
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
