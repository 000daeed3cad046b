//! `accession queue add`: subjects from the command line or from a file of any length, checked
//! before any of it is added.

use super::define::told;
use crate::cli::Global;
use crate::error_code::ErrorCode;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::session::{Act, Session, parse_time};
use clap::ValueEnum;
use queue::rules::batch::{self, Entry, NewBatch};
use queue::{Added, NewJob, subject};
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const CHUNK: usize = 1000;
/// A line of input is at most this long: a JSON line holds a subject and a payload.
const LINE_BYTES_MAX: u64 = 32 * 1024 * 1024;

#[derive(clap::Args)]
#[command(after_help = "Examples:
  accession queue add files a.fits b.fits --priority 10
  accession queue add files --payload '{\"size\": 3}' --after 10m a.fits
  find . -type f -print0 | accession queue add files --from - --format nul
  accession queue add files --from list.txt --batch 'Box 17'

A JSON line is {\"subject\": \"a\", \"payload\": …, \"priority\": 10, \"after\": \"10m\", \"lock\": \"…\", \"targets\": [\"…\"]}.")]
pub struct Add {
    /// The queue's name
    name: String,
    /// What the jobs are about; any bytes
    subjects: Vec<OsString>,
    /// Read subjects from a file, or from standard input with `-`
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// How the file is written
    #[arg(long, value_enum, default_value = "lines", requires = "from")]
    format: Format,
    /// 0 (first) to 99 (last); default 50
    #[arg(long)]
    priority: Option<i64>,
    /// What the program gets on its standard input
    #[arg(long)]
    payload: Option<String>,
    /// Not before: 10m, 2h, 2026-11-16T10:00:00Z
    #[arg(long, value_name = "TIME")]
    after: Option<String>,
    /// The collection they belong to
    #[arg(long)]
    collection: Option<String>,
    /// Something outside that they need; when it is down they wait together
    #[arg(long = "target", value_name = "NAME")]
    targets: Vec<String>,
    /// Add them as one batch with this label, all or nothing
    #[arg(long, value_name = "LABEL")]
    batch: Option<String>,
    #[command(flatten)]
    act: Act,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// One subject a line
    Lines,
    /// Subjects separated by NUL bytes, as from `find -print0`
    Nul,
    /// One JSON object a line
    Json,
}

/// One line of JSON input.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonLine {
    subject: String,
    payload: Option<serde_json::Value>,
    priority: Option<i64>,
    after: Option<String>,
    lock: Option<String>,
    #[serde(default)]
    targets: Vec<String>,
}

pub fn run(args: Add, global: &Global) -> Result<Exit, Failure> {
    if args.subjects.is_empty() && args.from.is_none() {
        return Err(Failure::refused(
            queue::ErrorCode::BadInput,
            "nothing to add: name subjects, or a file of them with --from",
        ));
    }
    let given: Vec<NewJob> = args
        .subjects
        .iter()
        .map(|s| Ok(template(&args, subject::encode(s.as_bytes())?)))
        .collect::<Result<_, Failure>>()?;
    let session = Session::open(global)?;
    let now = session.read(|_, now, _| Ok(now))?;
    let due = args.after.as_deref().map(|text| parse_time(text, now)).transpose()?;
    let input = args.from.as_deref().map(|from| Input::open(from, args.format)).transpose()?;
    let name = args.name.clone();
    let most =
        session.read(move |_, _, catalog| Ok(catalog.named(&name)?.settings.payload_bytes_max))?;

    // Everything is looked at before anything is added.
    let mut total = given.len() as u64;
    if let Some(input) = &input {
        total +=
            input.each(&mut |line, bytes| read_line(&args, now, line, bytes, most).map(|_| ()))?;
    }
    if args.batch.is_some() {
        return add_batch(&args, &session, now, given, input.as_ref());
    }
    let bar = output::count_bar(Some(total), "adding");
    let mut adder = Adder {
        args: &args,
        session: &session,
        chunk: Vec::with_capacity(CHUNK),
        added: Vec::new(),
        counts: (0, 0),
        keep: total <= 10_000,
    };
    for mut job in given {
        job.due = due;
        adder.push(job)?;
    }
    if let Some(input) = &input {
        input.each(&mut |line, bytes| {
            let mut job = read_line(&args, now, line, bytes, most)?;
            job.due = job.due.or(due);
            bar.inc(1);
            adder.push(job)
        })?;
    }
    adder.flush()?;
    bar.finish_and_clear();
    let (new, coalesced) = adder.counts;
    let ids: Vec<_> = adder
        .added
        .iter()
        .map(|a| serde_json::json!({"id": a.job, "coalesced": a.coalesced}))
        .collect();
    let json = serde_json::json!({"added": new, "coalesced": coalesced, "jobs": ids});
    let sentence = match (new, coalesced, adder.added.as_slice()) {
        (1, 0, [one]) => format!("job {} added to {}", one.job, args.name),
        (0, 1, [one]) => format!("job {} waited already; it has the newer payload now", one.job),
        (new, 0, _) => format!("{new} jobs added to {}", args.name),
        (new, coalesced, _) => {
            format!("{new} jobs added to {}, and {coalesced} waited already", args.name)
        }
    };
    told(&session, &json, &sentence)
}

fn template(args: &Add, subject: String) -> NewJob {
    NewJob {
        subject,
        priority: args.priority,
        payload: args.payload.clone().map(String::into_bytes),
        collection: args.collection.clone(),
        targets: args.targets.clone(),
        ..NewJob::default()
    }
}

/// One line of the input as a job; errors name the line.
fn read_line(
    args: &Add,
    now: db::Micros,
    line: u64,
    bytes: &[u8],
    payload_max: i64,
) -> Result<NewJob, Failure> {
    let bad = |why: String| {
        Failure::refused(ErrorCode::BadLine, format!("line {line}: {why}; nothing was added"))
    };
    let encode = |bytes: &[u8]| subject::encode(bytes).map_err(|e| bad(e.to_string()));
    let job = match args.format {
        Format::Lines | Format::Nul => template(args, encode(bytes)?),
        Format::Json => {
            let parsed: JsonLine = serde_json::from_slice(bytes)
                .map_err(|e| bad(format!("not a job in JSON: {e}")))?;
            let mut job = template(args, encode(parsed.subject.as_bytes())?);
            job.priority = parsed.priority.or(job.priority);
            job.lock = parsed.lock;
            job.payload = parsed.payload.map(payload_bytes).or(job.payload);
            job.targets.extend(parsed.targets);
            if let Some(after) = &parsed.after {
                job.due = Some(parse_time(after, now).map_err(|e| bad(e.message))?);
            }
            job
        }
    };
    if job.priority.is_some_and(|p| !(0..=99).contains(&p)) {
        return Err(bad("its priority must be from 0 (first) to 99 (last)".to_string()));
    }
    let size = job.payload.as_ref().map_or(0, Vec::len);
    if i64::try_from(size).is_ok_and(|size| size > payload_max) {
        return Err(bad(format!(
            "its payload has {size} bytes, and the queue takes at most {payload_max}"
        )));
    }
    Ok(job)
}

/// A JSON string is the payload itself; anything else is the payload as JSON.
fn payload_bytes(value: serde_json::Value) -> Vec<u8> {
    match value {
        serde_json::Value::String(text) => text.into_bytes(),
        other => other.to_string().into_bytes(),
    }
}

/// Adds in chunks, each a transaction.
struct Adder<'a> {
    args: &'a Add,
    session: &'a Session,
    chunk: Vec<NewJob>,
    added: Vec<Added>,
    counts: (u64, u64),
    /// Ids are told for adds of a size that someone may read.
    keep: bool,
}

impl Adder<'_> {
    fn push(&mut self, job: NewJob) -> Result<(), Failure> {
        self.chunk.push(job);
        if self.chunk.len() == CHUNK { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Failure> {
        let jobs = std::mem::take(&mut self.chunk);
        let (name, who) = (self.args.name.clone(), self.args.act.who());
        let added = self.session.write(move |tx, now, catalog| {
            queue::rules::add::add(tx, now, catalog.named(&name)?, &who, &jobs)
        })?;
        let merged = added.iter().filter(|a| a.coalesced).count() as u64;
        self.counts = (self.counts.0 + added.len() as u64 - merged, self.counts.1 + merged);
        if self.keep {
            self.added.extend(added);
        }
        Ok(())
    }
}

/// Fills a batch entry by entry and accepts it whole.
fn add_batch(
    args: &Add,
    session: &Session,
    now: db::Micros,
    given: Vec<NewJob>,
    input: Option<&Input>,
) -> Result<Exit, Failure> {
    let label = args.batch.clone().unwrap_or_default();
    let (name, who, collection, priority) =
        (args.name.clone(), args.act.who(), args.collection.clone(), args.priority);
    let batch = session.write(move |tx, now, catalog| {
        let pipeline = catalog.named(&name)?.id;
        let new = NewBatch {
            label: &label,
            pipeline,
            collection: collection.as_deref(),
            submitter: &who,
            mode: "either",
            priority,
        };
        batch::create(tx, now, &new)
    })?;
    let mut number = 0;
    let mut chunk: Vec<Entry> = Vec::with_capacity(CHUNK);
    let fill = |chunk: &mut Vec<Entry>| {
        let entries = std::mem::take(chunk);
        session.write(move |tx, _, catalog| batch::fill(tx, catalog, batch, &entries))
    };
    let mut push = |job: NewJob| -> Result<(), Failure> {
        number += 1;
        chunk.push(Entry { number, subject: job.subject, lock: job.lock, payload: job.payload });
        if chunk.len() == CHUNK { fill(&mut chunk) } else { Ok(()) }
    };
    given.into_iter().try_for_each(&mut push)?;
    if let Some(input) = input {
        input.each(&mut |line, bytes| push(read_line(args, now, line, bytes, i64::MAX)?))?;
    }
    fill(&mut chunk)?;
    let accepted = session.write(move |tx, now, _| batch::accept(tx, now, batch))?;
    // Some worker would do this too; doing it here means the jobs are there when we say so.
    while session.write(|tx, now, catalog| batch::move_entries(tx, now, catalog, 1000))? > 0 {}
    let json = serde_json::json!({"id": batch, "submitted": accepted.total});
    told(
        session,
        &json,
        &format!("batch {batch} accepted with {} jobs for {}", accepted.total, args.name),
    )
}

/// Input that can be read twice.
struct Input {
    file: File,
    format: Format,
    shown: String,
}

impl Input {
    fn open(from: &Path, format: Format) -> Result<Input, Failure> {
        let shown = from.display().to_string();
        let unable = |e: std::io::Error| {
            Failure::unable(archive::ErrorCode::Io, format!("{shown} cannot be read: {e}"))
        };
        if from != Path::new("-") {
            return Ok(Input { file: File::open(from).map_err(unable)?, format, shown });
        }
        let mut file = tempfile::tempfile().map_err(unable)?;
        std::io::copy(&mut std::io::stdin().lock(), &mut file).map_err(unable)?;
        Ok(Input { file, format, shown: "standard input".to_string() })
    }

    /// Calls `each` with the number and the bytes of every line; how many there were.
    fn each(
        &self,
        each: &mut dyn FnMut(u64, &[u8]) -> Result<(), Failure>,
    ) -> Result<u64, Failure> {
        let unable = |e: std::io::Error| {
            Failure::unable(archive::ErrorCode::Io, format!("{} cannot be read: {e}", self.shown))
        };
        let mut file = &self.file;
        file.seek(SeekFrom::Start(0)).map_err(unable)?;
        let mut reader = BufReader::with_capacity(1 << 16, file);
        let end = if self.format == Format::Nul { 0 } else { b'\n' };
        let (mut line, mut number) = (Vec::new(), 0);
        loop {
            line.clear();
            let read =
                (&mut reader).take(LINE_BYTES_MAX).read_until(end, &mut line).map_err(unable)?;
            if read == 0 {
                return Ok(number);
            }
            number += 1;
            if read as u64 == LINE_BYTES_MAX {
                return Err(Failure::refused(
                    ErrorCode::BadLine,
                    format!("line {number}: longer than {LINE_BYTES_MAX} bytes; nothing was added"),
                ));
            }
            if line.last() == Some(&end) {
                line.pop();
            }
            if end == b'\n' && line.last() == Some(&b'\r') {
                line.pop();
            }
            each(number, &line)?;
        }
    }
}
