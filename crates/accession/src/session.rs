//! What most commands begin with: the database, open, and who is asking.

use crate::cli::Global;
use crate::error_code::ErrorCode;
use crate::exit::{Code, Failure};
use db::{Address, Db, Micros, Options, Tx};
use queue::{Catalog, Result};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub struct Session {
    pub db: Db,
    pub json: bool,
    pub quiet: bool,
}

impl From<queue::Error> for Failure {
    fn from(error: queue::Error) -> Failure {
        let status = match &error {
            queue::Error::Db(db::Error::BadAddress(..)) => 2,
            queue::Error::Db(_) | queue::Error::LeaseLost(_) => 3,
            // Not found is an answer. A queue or setting by a wrong name is a wrong request.
            queue::Error::Unknown { what: queue::Entity::Batch | queue::Entity::Job, .. } => 1,
            _ => 2,
        };
        Failure { status, code: error.code().into(), message: error.to_string() }
    }
}

impl From<archive::Error> for Failure {
    fn from(error: archive::Error) -> Failure {
        use archive::ErrorCode::{UnknownDeposit, UnknownObject, UnknownVersion};
        match error {
            archive::Error::Queue(error) => error.into(),
            archive::Error::Output(error) => error.into(),
            other => {
                let status = match other.own_code() {
                    Some(UnknownObject | UnknownVersion | UnknownDeposit) => 1,
                    _ if other.is_transient() => 3,
                    _ => 2,
                };
                Failure { status, code: Code::from(&other), message: other.to_string() }
            }
        }
    }
}

impl From<db::Error> for Failure {
    fn from(error: db::Error) -> Failure {
        queue::Error::from(error).into()
    }
}

impl Session {
    /// Opens the database for a short command: one connection, and a short timeout.
    pub fn open(global: &Global) -> Result<Session, Failure> {
        Session::open_with(
            global,
            Options {
                connections: 2,
                readers: 1,
                timeout: Duration::from_secs(15),
                ..Options::default()
            },
        )
    }

    pub fn open_with(global: &Global, options: Options) -> Result<Session, Failure> {
        let address = address(global)?;
        let db = Db::open(&address, archive::MIGRATIONS, &options)?;
        Ok(Session { db, json: global.json, quiet: global.quiet })
    }

    /// Reads with the catalog at hand.
    pub fn read<T: Send + 'static>(
        &self,
        work: impl Fn(&mut Tx<'_>, Micros, &Catalog) -> Result<T> + Send + 'static,
    ) -> Result<T, Failure> {
        let done: Result<T> = self.db.read_blocking(move |tx| {
            let catalog = Catalog::load(tx)?;
            work(tx, tx.now(), &catalog)
        });
        Ok(done?)
    }

    /// Writes with the catalog at hand.
    pub fn write<T: Send + 'static>(
        &self,
        work: impl Fn(&mut Tx<'_>, Micros, &Catalog) -> Result<T> + Send + 'static,
    ) -> Result<T, Failure> {
        let done: Result<T> = self.db.write_blocking(move |tx| {
            let catalog = Catalog::load(tx)?;
            work(tx, tx.now(), &catalog)
        });
        Ok(done?)
    }
}

/// The database, if there is one and it answers soon: for commands that can do without.
pub fn existing(global: &Global) -> Option<Session> {
    let address = match &global.database {
        Some(text) => Address::parse(text).ok()?,
        None => Address::sqlite(data_directory(global).ok()?.join("accession.db")),
    };
    if matches!(&address, Address::Sqlite(path) if !path.exists()) {
        return None;
    }
    let options = Options {
        connections: 1,
        readers: 1,
        timeout: Duration::from_secs(2),
        ..Options::default()
    };
    let db = Db::open(&address, archive::MIGRATIONS, &options).ok()?;
    Some(Session { db, json: global.json, quiet: global.quiet })
}

/// `--database`, or a file in the data directory.
pub fn address(global: &Global) -> Result<Address, Failure> {
    match &global.database {
        Some(text) => Ok(Address::parse(text)?),
        None => {
            let dir = data_directory(global)?;
            make_private(&dir).map_err(|e| {
                Failure::unable(ErrorCode::DataDirectory, format!("the data directory {} cannot be made: {e}; choose another with --data or ACCESSION_DATA", dir.display()))
            })?;
            Ok(Address::sqlite(dir.join("accession.db")))
        }
    }
}

/// Creates the data directory if it does not exist, readable by this user only.
pub fn make_private(dir: &Path) -> std::io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

/// `--data`, or the platform's place for such data.
pub fn data_directory(global: &Global) -> Result<PathBuf, Failure> {
    let from = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let platform = || {
        from("XDG_DATA_HOME")
            .or_else(|| from("HOME").map(|home| home.join(".local/share")))
            .map(|d| d.join("accession"))
    };
    global.data.clone().or_else(platform).ok_or_else(|| {
        Failure::refused(
            ErrorCode::DataDirectory,
            "there is no home directory to keep data in; say where with --data or ACCESSION_DATA",
        )
    })
}

/// Who acts, and why: options of every command that changes something.
#[derive(clap::Args, Clone, Debug)]
pub struct Act {
    /// Why; kept in the history
    #[arg(long, default_value = "no reason given", value_name = "TEXT")]
    pub reason: String,
    /// Who acts (default: the operating system's user)
    #[arg(long = "as", value_name = "NAME")]
    pub actor: Option<String>,
}

impl Act {
    pub fn who(&self) -> String {
        self.actor.clone().unwrap_or_else(os_user)
    }
}

/// The name of the user this process runs as.
pub fn os_user() -> String {
    let user = nix::unistd::User::from_uid(nix::unistd::getuid());
    user.ok().flatten().map_or_else(|| format!("uid {}", nix::unistd::getuid()), |u| u.name)
}

/// `10m`, `2h 30m`, `2026-11-16T10:00:00Z` as a time.
pub fn parse_time(text: &str, now: Micros) -> Result<Micros, Failure> {
    if let Ok(duration) = text.parse::<jiff::SignedDuration>() {
        return Ok(
            now.saturating_add(Micros::try_from(duration.as_micros()).unwrap_or(Micros::MAX))
        );
    }
    text.parse::<jiff::Timestamp>().map(|t| t.as_microsecond()).map_err(|_| {
        Failure::refused(queue::ErrorCode::BadInput, format!("`{text}` is neither a time to wait (10m, 2h, 1h 30m) nor a time (2026-11-16T10:00:00Z)"))
    })
}

/// Which end of a year, a month or a day is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    From,
    Until,
}

/// `2026`, `2026-11`, `2026-11-18` or a time, in UTC: when it begins, or when it is over.
pub fn parse_moment(text: &str, edge: Edge) -> Result<Micros, Failure> {
    let wrong = || {
        Failure::refused(
            queue::ErrorCode::BadInput,
            format!(
                "`{text}` is neither a date (2026, 2026-11, 2026-11-18) nor a time (2026-11-18T10:00:00Z)"
            ),
        )
    };
    if let Ok(time) = text.parse::<jiff::Timestamp>() {
        return Ok(time.as_microsecond());
    }
    let digits =
        |part: &str, count| part.len() == count && part.bytes().all(|b| b.is_ascii_digit());
    let parts: Vec<&str> = text.split('-').collect();
    let (date, span) = match parts.as_slice() {
        [year] if digits(year, 4) => (format!("{year}-01-01"), jiff::Span::new().years(1)),
        [year, month] if digits(year, 4) && digits(month, 2) => {
            (format!("{year}-{month}-01"), jiff::Span::new().months(1))
        }
        [year, month, day] if digits(year, 4) && digits(month, 2) && digits(day, 2) => {
            (text.to_string(), jiff::Span::new().days(1))
        }
        _ => return Err(wrong()),
    };
    let first: jiff::civil::Date = date.parse().map_err(|_| wrong())?;
    let day = match edge {
        Edge::From => first,
        Edge::Until => first.checked_add(span).map_err(|_| wrong())?,
    };
    let at = day.to_zoned(jiff::tz::TimeZone::UTC).map_err(|_| wrong())?;
    Ok(at.timestamp().as_microsecond())
}

/// `90` (seconds), `10m`, `2h` or `30d` as a duration.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    if let Ok(seconds) = text.parse::<u64>() {
        return Ok(Duration::from_secs(seconds));
    }
    let wrong = || format!("`{text}` is not a duration; write 90 (seconds), 10m, 2h or 30d");
    if let Some(days) = text.strip_suffix('d') {
        let seconds = days.parse::<u64>().ok().and_then(|days| days.checked_mul(86_400));
        return seconds.map(Duration::from_secs).ok_or_else(wrong);
    }
    text.parse::<jiff::SignedDuration>()
        .ok()
        .and_then(|d| Duration::try_from(d).ok())
        .ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_seconds_or_have_a_unit() {
        let seconds = |text: &str| parse_duration(text).map(|duration| duration.as_secs());
        for (text, wanted) in
            [("0", 0), ("90", 90), ("90s", 90), ("10m", 600), ("24h", 86_400), ("14d", 1_209_600)]
        {
            assert_eq!(seconds(text), Ok(wanted), "{text}");
        }
        for wrong in ["", "-1", "soon", "d", "1.5d", "999999999999999999d", "-5m"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn dates_are_meant_as_a_whole() {
        let shown = |text: &str, edge| {
            parse_moment(text, edge).map(queue::view::show_time).map_err(|failure| failure.message)
        };
        for (text, from, until) in [
            ("2026", "2026-01-01 00:00:00Z", "2027-01-01 00:00:00Z"),
            ("2026-11", "2026-11-01 00:00:00Z", "2026-12-01 00:00:00Z"),
            ("2026-12-31", "2026-12-31 00:00:00Z", "2027-01-01 00:00:00Z"),
            ("2026-11-18T10:00:00Z", "2026-11-18 10:00:00Z", "2026-11-18 10:00:00Z"),
            ("2026-11-18T10:00:00+02:00", "2026-11-18 08:00:00Z", "2026-11-18 08:00:00Z"),
        ] {
            assert_eq!(shown(text, Edge::From).as_deref(), Ok(from), "{text}");
            assert_eq!(shown(text, Edge::Until).as_deref(), Ok(until), "{text}");
        }
        for wrong in
            ["", "yesterday", "18.11.2026", "2026-13", "2026-02-30", "20261118", "2026-1-1"]
        {
            assert!(parse_moment(wrong, Edge::From).is_err(), "{wrong}");
        }
    }
}
