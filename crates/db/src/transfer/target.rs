//! Where a database is moved to: nothing of it is seen before it is complete.

use super::catalog::{Tables, cannot};
use super::{Move, mark};
use crate::address::Address;
use crate::clock::system_now;
use crate::error::{Error, Result};
use crate::postgres::PostgresTables;
use crate::sqlite::{NewFile, SqliteTables};

pub(super) enum Target {
    Sqlite(NewFile),
    Postgres(PostgresTables),
}

impl Target {
    pub fn open(moved: &Move<'_>) -> Result<Target> {
        match moved.to {
            Address::Sqlite(path) => Ok(Target::Sqlite(NewFile::begin(path, &moved.options)?)),
            Address::Postgres(server) => {
                let tables = PostgresTables::open_new(server, moved.migrations, &moved.options)?;
                Ok(Target::Postgres(tables))
            }
        }
    }

    /// True if it was filled by the move of this id, to its end.
    pub fn is_copy(&mut self, id: &str) -> Result<bool> {
        let versions = match self {
            Target::Sqlite(file) if !file.exists() => return Ok(false),
            Target::Sqlite(file) => {
                match SqliteTables::open(file.path()).and_then(|mut tables| tables.versions()) {
                    // A file of something else, which `prepare` refuses.
                    Err(Error::Other(..) | Error::NotOurs(..)) => return Ok(false),
                    versions => versions?,
                }
            }
            Target::Postgres(tables) => tables.versions()?,
        };
        Ok(mark::is_copy(&versions, id))
    }

    /// Refuses it if there is anything in it, and keeps others from writing to it.
    pub fn prepare(&mut self, moved: &Move<'_>, names: &[String]) -> Result<()> {
        match self {
            Target::Sqlite(file) => file.make(moved.migrations, &moved.options),
            Target::Postgres(tables) => {
                let mut ours = tables.catalog()?;
                // The server may keep tables of others beside them.
                ours.retain(|table| names.contains(&table.name));
                tables.begin_filling(&ours)?;
                for table in &ours {
                    let found = tables.count(table)?;
                    if found > 0 {
                        return Err(Error::NotEmpty(
                            moved.to.to_string(),
                            format!("its table {} has {found} rows", table.name),
                        ));
                    }
                }
                Ok(())
            }
        }
    }

    pub fn tables(&mut self) -> Result<&mut dyn Tables> {
        match self {
            Target::Sqlite(file) => {
                Ok(file.tables().ok_or_else(|| cannot("the new file is not open".to_string()))?)
            }
            Target::Postgres(tables) => Ok(tables),
        }
    }

    /// Makes it visible and durable, with the mark that says that it is complete.
    pub fn commit(&mut self, id: &str, from: &str) -> Result<()> {
        let origin = mark::origin(id, from, system_now());
        self.tables()?.run(&origin)?;
        match self {
            Target::Sqlite(file) => match file.finish() {
                // It has its name, and may have lost it after a crash.
                Err(error) if file.exists() => Err(Error::UnknownOutcome(format!(
                    "the new database may not be on disk ({error}); run the same command again, which looks whether it is complete"
                ))),
                ended => ended,
            },
            Target::Postgres(tables) => match tables.run("COMMIT") {
                Err(Error::Unavailable(shown, why)) => Err(Error::UnknownOutcome(format!(
                    "{shown} went away while the move was committed ({why}); run the same command again, which looks whether it is complete"
                ))),
                ended => ended,
            },
        }
    }
}
