//! `accession bench identify`: how fast formats are identified, beside reading alone and beside
//! siegfried (the Python package `pygfried`) if that is installed.

mod peer;

use crate::cli::Global;
use crate::cmd::formats;
use crate::exit::{Exit, Failure};
use crate::output;
use peer::Peer;
use pronom::{Identifier, Scope};
use serde::Serialize;
use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

const SMALL_BYTES: usize = 4096;
const PIECE_BYTES: usize = 256 * 1024;

#[derive(clap::Args)]
#[command(after_help = "Examples:\n  accession bench identify\n  \
accession bench identify --skeletons test-skeletons --jobs 2 --json\n\n\
For the comparison: pip install pygfried")]
pub struct Args {
    /// A directory of files to identify as well, such as DROID's test skeletons
    #[arg(long, value_name = "DIR")]
    skeletons: Option<PathBuf>,
    /// How many files of 4 KiB that match nothing
    #[arg(long, default_value_t = 20_000, value_name = "N")]
    files: usize,
    /// The size of the text that is scanned whole
    #[arg(long, default_value_t = 256, value_name = "MIB")]
    text: usize,
    /// How often each is measured; the median counts
    #[arg(long, default_value_t = 5, value_name = "N")]
    rounds: usize,
    /// Threads, for both
    #[arg(long, default_value_t = 1, value_name = "N")]
    jobs: usize,
    /// The set of signatures to use instead of the one in use
    #[arg(long, value_name = "NAME")]
    set: Option<String>,
    /// The Python that has pygfried
    #[arg(long, default_value = "python3", value_name = "PROGRAM")]
    python: PathBuf,
    /// Where the files are made (default: the system's temporary directory)
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// One line of the result. Times are medians.
#[derive(Serialize)]
struct Line {
    case: &'static str,
    files: usize,
    bytes: u64,
    /// Only reading all the bytes.
    reading_ms: f64,
    accession_ms: f64,
    siegfried_ms: Option<f64>,
    /// How many times faster than siegfried.
    times_faster: Option<f64>,
    identified: usize,
}

pub fn run(args: Args, global: &Global) -> Result<Exit, Failure> {
    let library = formats::library(global)?;
    let mut loads = Vec::new();
    for _ in 0..args.rounds.max(1) {
        let start = Instant::now();
        let set = library.load(args.set.as_deref()).map_err(formats::failure)?;
        std::hint::black_box(Identifier::new(set));
        loads.push(start.elapsed().as_secs_f64());
    }
    let load_ms = 1e3 * median(&mut loads);
    let set = library.load(args.set.as_deref()).map_err(formats::failure)?;
    let name = set.origin().name.clone();
    let ends = Identifier::new(set.clone());
    let whole = Identifier::new(set).with_scope(Scope::Whole);

    let place = Temporary::new(args.dir.clone().unwrap_or_else(std::env::temp_dir))?;
    let mut cases: Vec<(&'static str, &Identifier, Vec<PathBuf>)> = Vec::new();
    if let Some(dir) = &args.skeletons {
        cases.push(("skeletons", &ends, files_in(dir)?));
    }
    cases.push(("4 KiB, no match", &ends, make_small(&place.0, args.files, &ends)?));
    cases.push(("text, whole", &whole, vec![make_text(&place.0, "large.text", "", args.text)?]));
    // Many signatures begin like this and go on anywhere, so the whole file has to be read.
    let xml = make_text(&place.0, "large.xml", "<?xml version=\"1.0\"?>\n", args.text)?;
    cases.push(("XML, whole", &whole, vec![xml]));

    let mut peer = Peer::start(&args.python);
    let mut lines = Vec::new();
    for (case, identifier, paths) in cases {
        lines.push(measure(case, identifier, &paths, &args, peer.as_mut())?);
    }
    let memory_mib = peak_mib();
    print(&args, global, &name, load_ms, memory_mib, &lines, peer.as_ref())?;
    Ok(Exit::Yes)
}

fn measure(
    case: &'static str,
    identifier: &Identifier,
    paths: &[PathBuf],
    args: &Args,
    mut peer: Option<&mut Peer>,
) -> Result<Line, Failure> {
    let (mut reading, mut ours, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
    let (mut bytes, mut identified) = (0, 0);
    // The three take turns, so that whatever else the machine does hits all of them.
    for _ in 0..args.rounds.max(1) {
        let start = Instant::now();
        bytes = paths.iter().map(|path| read_all(path)).sum::<Result<u64, _>>()?;
        reading.push(start.elapsed().as_secs_f64());
        let start = Instant::now();
        identified = identify_all(identifier, paths, args.jobs)?;
        ours.push(start.elapsed().as_secs_f64());
        if let Some(peer) = &mut peer {
            theirs.extend(peer.identify(paths, args.jobs));
        }
    }
    let accession_ms = 1e3 * median(&mut ours);
    let siegfried_ms = (!theirs.is_empty()).then(|| 1e3 * median(&mut theirs));
    Ok(Line {
        case,
        files: paths.len(),
        bytes,
        reading_ms: 1e3 * median(&mut reading),
        accession_ms,
        siegfried_ms,
        times_faster: siegfried_ms.map(|theirs| theirs / accession_ms),
        identified,
    })
}

fn identify_all(identifier: &Identifier, paths: &[PathBuf], jobs: usize) -> Result<usize, Failure> {
    let next = AtomicUsize::new(0);
    let work = || -> Result<usize, Failure> {
        let mut known = 0;
        while let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed)) {
            let found = identifier.identify_path(path).map_err(formats::failure)?;
            known += usize::from(found.by_content());
        }
        Ok(known)
    };
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..jobs.max(1)).map(|_| scope.spawn(work)).collect();
        let mut known = work()?;
        for other in others {
            known += other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        }
        Ok(known)
    })
}

fn read_all(path: &Path) -> Result<u64, std::io::Error> {
    let mut file = File::open(path)?;
    let mut piece = [0; PIECE_BYTES];
    let mut bytes = 0;
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(bytes),
            count => bytes += count as u64,
        }
    }
}

fn print(
    args: &Args,
    global: &Global,
    set: &str,
    load_ms: f64,
    memory_mib: Option<f64>,
    lines: &[Line],
    peer: Option<&Peer>,
) -> Result<(), Failure> {
    let version = peer.map(|peer| peer.version.as_str());
    if global.json {
        let peer_mib = peer.map(|peer| peer.memory_mib);
        return Ok(output::json(&serde_json::json!({
            "set": set, "jobs": args.jobs, "rounds": args.rounds, "load_ms": load_ms,
            "peak_memory_mib": memory_mib, "siegfried": version,
            "siegfried_peak_memory_mib": peer_mib, "cases": lines,
        }))?);
    }
    let time = |ms: f64| format!("{ms:.1} ms");
    let row = |line: &Line| {
        vec![
            line.case.to_owned(),
            line.files.to_string(),
            output::size(line.bytes),
            time(line.reading_ms),
            time(line.accession_ms),
            line.siegfried_ms.map(time).unwrap_or_default(),
            line.times_faster.map(|times| format!("{times:.1} ×")).unwrap_or_default(),
            line.identified.to_string(),
        ]
    };
    let headers = [
        "case",
        "files",
        "bytes",
        "only reading",
        "accession",
        "siegfried",
        "faster",
        "identified",
    ];
    output::table(&headers, lines.iter().map(row))?;
    let memory = memory_mib.map_or("unknown".to_owned(), |mib| format!("{mib:.1} MiB"));
    output::line(&format!(
        "signatures {set} load in {load_ms:.1} ms; {} thread(s); peak memory {memory}; medians of {}",
        args.jobs, args.rounds
    ))?;
    output::line(&match peer {
        Some(peer) => format!("siegfried {}: peak memory {:.1} MiB", peer.version, peer.memory_mib),
        None => "siegfried was not measured: pip install pygfried".to_owned(),
    })?;
    Ok(())
}

/// A directory that goes away with the measurement.
struct Temporary(PathBuf);

impl Temporary {
    fn new(base: PathBuf) -> Result<Temporary, Failure> {
        let dir = base.join(format!("accession-bench-identify-{}", std::process::id()));
        std::fs::create_dir_all(&dir)?;
        Ok(Temporary(dir))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // What is left behind is in the temporary directory; there is nobody to tell.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Numbers that look random and are the same each time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// Random bytes; those few that happen to look like something are drawn again.
fn make_small(dir: &Path, count: usize, with: &Identifier) -> Result<Vec<PathBuf>, Failure> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let dir = dir.join("small");
    std::fs::create_dir_all(&dir)?;
    let mut paths = Vec::with_capacity(count);
    while paths.len() < count {
        let bytes: Vec<u8> =
            (0..SMALL_BYTES / 8).flat_map(|_| random.next().to_le_bytes()).collect();
        let found = with.identify(&mut bytes.as_slice(), None).map_err(formats::failure)?;
        if found.matches.is_empty() {
            let path = dir.join(format!("{}.nothing", paths.len()));
            std::fs::write(&path, bytes)?;
            paths.push(path);
        }
    }
    Ok(paths)
}

fn make_text(dir: &Path, name: &str, begin: &str, mib: usize) -> Result<PathBuf, Failure> {
    const WORDS: [&str; 16] = [
        "the", "archive", "keeps", "what", "was", "given", "to", "it", "and", "says", "so",
        "record", "deposit", "object", "of", "year",
    ];
    let path = dir.join(name);
    let mut file = BufWriter::new(File::create(&path)?);
    file.write_all(begin.as_bytes())?;
    let (mut random, mut written) = (Random(88_172_645_463_325_252), 0);
    while written < mib * 1024 * 1024 {
        let word = WORDS[(random.next() % 16) as usize];
        let end = if random.next() % 12 == 0 { "\n" } else { " " };
        file.write_all(word.as_bytes())?;
        file.write_all(end.as_bytes())?;
        written += word.len() + 1;
    }
    file.flush()?;
    Ok(path)
}

/// The files in a directory and below.
fn files_in(dir: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    let mut waiting = vec![dir.to_owned()];
    while let Some(dir) = waiting.pop() {
        for entry in std::fs::read_dir(&dir)? {
            let entry = entry?;
            match entry.file_type()? {
                kind if kind.is_dir() => waiting.push(entry.path()),
                kind if kind.is_file() => files.push(entry.path()),
                _ => {}
            }
        }
    }
    files.sort();
    Ok(files)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The most memory this process has had, where the system says.
fn peak_mib() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib / 1024.0)
}
