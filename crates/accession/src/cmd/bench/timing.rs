//! Medians of repeated runs, by the clock and of the processors.

use crate::exit::Failure;
use std::time::Instant;

/// What a run took: by the clock, and of the processors. On a machine that also does other work
/// only the second is comparable.
#[derive(Clone, Copy)]
pub struct Time {
    pub seconds: f64,
    pub cpu_seconds: Option<f64>,
}

impl Time {
    pub fn cpu_text(self) -> String {
        self.cpu_seconds.map_or("-".to_owned(), |s| format!("{s:.2} s"))
    }
}

/// Runs once to warm the cache, then takes the medians.
pub fn median(runs: usize, mut work: impl FnMut() -> Result<(), Failure>) -> Result<Time, Failure> {
    work()?;
    let (mut times, mut cpu_times) = (Vec::new(), Vec::new());
    for _ in 0..runs.max(1) {
        let (start, cpu_start) = (Instant::now(), cpu_seconds());
        work()?;
        times.push(start.elapsed().as_secs_f64());
        if let (Some(before), Some(after)) = (cpu_start, cpu_seconds()) {
            cpu_times.push(after - before);
        }
    }
    let middle = |times: &mut Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times.get(times.len() / 2).copied()
    };
    let cpu_seconds = middle(&mut cpu_times);
    Ok(Time { seconds: middle(&mut times).unwrap_or_default(), cpu_seconds })
}

/// What this process and the programs it ran have used of the processors; only Linux tells it in
/// a file. Counted in hundredths of a second.
fn cpu_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name in parentheses may hold anything; what follows are numbers.
    let (_, fields) = stat.rsplit_once(')')?;
    let ticks: Option<Vec<f64>> =
        fields.split_whitespace().skip(11).take(4).map(|field| field.parse().ok()).collect();
    Some(ticks?.iter().sum::<f64>() / 100.0)
}
