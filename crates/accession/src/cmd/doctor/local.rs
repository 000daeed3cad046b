//! What is on this machine: directories, files and the database.

use super::Finding;
use crate::cli::Global;
use crate::cmd::formats;
use crate::exit::Failure;
use crate::{output, session};
use archive::config::{Config, read_secret};
use db::{Address, Db, Options};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A clock that differs by more than this makes times in records hard to compare, or leases wrong.
const CLOCK_WARNING: Duration = Duration::from_secs(2);
const CLOCK_PROBLEM: Duration = Duration::from_secs(20);

pub fn data_directory(global: &Global) -> Result<Vec<Finding>, Failure> {
    let path = session::data_directory(global)?;
    let what = "data directory";
    let shown = path.display().to_string();
    if let Err(error) = session::make_private(&path).and_then(|()| writable(&path)) {
        let fix = format!(
            "make {shown} a directory that this user can write, or choose another with --data"
        );
        return Ok(vec![Finding::problem(what, format!("{shown}: {error}"), fix)]);
    }
    Ok(vec![match mode(&path) {
        Some(mode) if mode & 0o077 != 0 => Finding::warning(
            what,
            format!("{shown} can be read by other users (mode {mode:o})"),
            format!("chmod 700 {shown}"),
        ),
        _ => Finding::ok(what, shown),
    }])
}

/// Makes a directory if need be, and a file in it.
fn writable(path: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(path)?;
    let mut file = tempfile::NamedTempFile::new_in(path)?;
    std::io::Write::write_all(&mut file, b"accession doctor")?;
    file.close()
}

fn mode(path: &Path) -> Option<u32> {
    std::fs::metadata(path).ok().map(|meta| meta.permissions().mode() & 0o777)
}

pub fn database(global: &Global) -> Vec<Finding> {
    let what = "database";
    let fix =
        "check --database or ACCESSION_DATABASE, and that the database runs and lets this user in";
    let address = match session::address(global) {
        Ok(address) => address,
        Err(failure) => return vec![Finding::problem(what, failure.message, fix)],
    };
    let options = Options {
        connections: 2,
        readers: 1,
        timeout: Duration::from_secs(5),
        ..Options::default()
    };
    let opened = Db::open(&address, archive::MIGRATIONS, &options);
    let looked = opened.and_then(|db| {
        let before = db::system_now();
        let now = db.write_blocking(|tx| Ok::<_, db::Error>(tx.now()))?;
        Ok((before, now, db::system_now()))
    });
    let (before, now, after) = match looked {
        Ok(times) => times,
        Err(error) => return vec![Finding::problem(what, error.to_string(), fix)],
    };
    let kind = match address {
        Address::Sqlite(path) => format!("SQLite, {}", path.display()),
        Address::Postgres(_) => "PostgreSQL".to_string(),
    };
    let took = Duration::from_micros((after - before).unsigned_abs());
    let found = format!("{kind}; a write takes {:.1} ms", took.as_secs_f64() * 1e3);
    let apart = Duration::from_micros((before - now).max(now - after).max(0).unsigned_abs());
    vec![Finding::ok(what, found), clock(apart)]
}

fn clock(apart: Duration) -> Finding {
    let found = format!("{:.1} s from the database's", apart.as_secs_f64());
    let fix = "set the clocks of this machine and of the database's by NTP";
    match apart {
        _ if apart > CLOCK_PROBLEM => Finding::problem("clock", found, fix),
        _ if apart > CLOCK_WARNING => Finding::warning("clock", found, fix),
        _ => Finding::ok("clock", "agrees with the database's"),
    }
}

pub fn secrets(config: &Config) -> Vec<Finding> {
    let mail = config.mail.iter().filter_map(|mail| mail.password_file.clone());
    let ezid = config.identifiers.ezid.iter().map(|ezid| ezid.password_file.clone());
    let callbacks =
        config.collections.values().filter_map(|c| c.callback.as_ref()?.secret_file.clone());
    let files: std::collections::BTreeSet<PathBuf> = mail.chain(ezid).chain(callbacks).collect();
    files.iter().map(|path| secret(path)).collect()
}

fn secret(path: &Path) -> Finding {
    let shown = path.display();
    match (read_secret(path), mode(path)) {
        (Err(error), _) => Finding::problem(
            "secret",
            error.to_string(),
            format!("write it to {shown} as one line, and chmod 600 it"),
        ),
        (_, Some(mode)) if mode & 0o077 != 0 => Finding::warning(
            "secret",
            format!("{shown} can be read by other users (mode {mode:o})"),
            format!("chmod 600 {shown}"),
        ),
        _ => Finding::ok("secret", shown.to_string()),
    }
}

pub fn work_space(config: &Config) -> Vec<Finding> {
    let space = &config.work_space;
    let what = format!("work space {}", space.name);
    let shown = space.path.display().to_string();
    if let Err(error) = writable(&space.path) {
        let fix = "make it a directory that this user can write, or set work_space.path";
        return vec![Finding::problem(what, format!("{shown}: {error}"), fix)];
    }
    let stat = match nix::sys::statvfs::statvfs(&space.path) {
        Ok(stat) => stat,
        Err(error) => {
            return vec![Finding::problem(
                what,
                format!("{shown}: {error}"),
                "check its file system",
            )];
        }
    };
    let unit = stat.fragment_size();
    // As `df` counts, and as jobs are admitted.
    let (used, free) =
        ((stat.blocks() - stat.blocks_free()) * unit, stat.blocks_available() * unit);
    let total = used + free;
    let used = (used * 100).checked_div(total).unwrap_or(0);
    let found = format!("{shown}: {} free of {}", output::size(free), output::size(total));
    let fix = "make room, or set work_space.path to a larger file system";
    vec![match used {
        used if used >= u64::from(space.stop_percent) => Finding::problem(
            what,
            format!("{found}; {used} % are used, so no download begins"),
            fix,
        ),
        used if used >= u64::from(space.admit_percent) => Finding::warning(
            what,
            format!("{found}; {used} % are used, so no job is admitted"),
            fix,
        ),
        _ => Finding::ok(what, found),
    }]
}

pub fn signatures(global: &Global) -> Vec<Finding> {
    let loaded = formats::library(global).and_then(|l| l.load(None).map_err(formats::failure));
    vec![match loaded {
        Ok(set) => Finding::ok("signatures", set.origin().name.clone()),
        Err(failure) => Finding::problem(
            "signatures",
            failure.message,
            "choose a set with `accession formats use`, or install one",
        ),
    }]
}

pub fn identifiers(config: &Config) -> Vec<Finding> {
    let (naan, shoulder) = (&config.identifiers.naan, &config.identifiers.shoulder);
    vec![match naan.as_str() {
        "99999" => Finding::warning(
            "identifiers",
            "ark:/99999 is for tests: its names are not registered",
            "set identifiers.naan and identifiers.shoulder to your own before real use",
        ),
        _ => Finding::ok("identifiers", format!("ark:/{naan}/{shoulder}")),
    }]
}
