//! Pause and unpause: an administrative stop on a stage, a pipeline or everything. Nothing is
//! handed out, adding goes on, running work finishes.

use super::{Actor, stop_claims};
use crate::catalog::Catalog;
use crate::error::{Error, Result};
use crate::id::{PipelineId, StageId};
use db::{FromRow, Micros, Row, Statement, Tx, statement};

/// What a pause applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// All pipelines.
    Everything,
    /// One pipeline.
    Pipeline(PipelineId),
    /// One stage.
    Stage(StageId),
}

impl Scope {
    /// Returns what it applies to in one word: all, pipeline or stage.
    pub fn kind(self) -> &'static str {
        self.parts().0
    }

    fn parts(self) -> (&'static str, i64) {
        match self {
            Scope::Everything => ("all", 0),
            Scope::Pipeline(id) => ("pipeline", id.number()),
            Scope::Stage(id) => ("stage", id.number()),
        }
    }

    fn shown(self, catalog: &Catalog) -> String {
        match self {
            Scope::Everything => "everything".to_string(),
            Scope::Pipeline(id) => {
                catalog.pipeline(id).map_or_else(|_| id.to_string(), |p| format!("`{}`", p.name))
            }
            Scope::Stage(id) => format!("stage `{}`", catalog.stage_name(id)),
        }
    }
}

/// A pause in force.
#[derive(Debug, Clone)]
pub struct Pause {
    /// What it applies to.
    pub scope: Scope,
    /// Who paused it.
    pub who: String,
    /// Since when.
    pub at: Micros,
    /// Why.
    pub reason: String,
}

impl FromRow for Pause {
    fn from_row(row: &Row<'_>) -> db::Result<Pause> {
        let kind: String = row.get(0)?;
        Ok(Pause {
            scope: match kind.as_str() {
                "pipeline" => Scope::Pipeline(row.get(1)?),
                "stage" => Scope::Stage(row.get(1)?),
                _ => Scope::Everything,
            },
            who: row.get(2)?,
            at: row.get(3)?,
            reason: row.get(4)?,
        })
    }
}

/// Pauses a scope: nothing in it is claimed (I10).
pub fn pause(
    tx: &mut Tx<'_>,
    now: Micros,
    catalog: &Catalog,
    actor: Actor<'_>,
    scope: Scope,
) -> Result<()> {
    const INSERT: Statement = statement!(pause::insert_pause);
    stop_claims(tx)?;
    let (kind, id) = scope.parts();
    match tx.execute(&INSERT, &db::params![kind, id, actor.who, now, actor.reason])? {
        0 => Err(Error::Refused(format!("{} is paused already", scope.shown(catalog)))),
        _ => Ok(()),
    }
}

/// Ends a pause.
pub fn unpause(tx: &mut Tx<'_>, catalog: &Catalog, scope: Scope) -> Result<()> {
    const DELETE: Statement = statement!(pause::delete_pause);
    let (kind, id) = scope.parts();
    if tx.execute(&DELETE, &db::params![kind, id])? == 0 {
        return Err(Error::Refused(format!("{} is not paused", scope.shown(catalog))));
    }
    for stage in catalog.pipelines().flat_map(|p| &p.stages) {
        tx.wake(stage.id);
    }
    Ok(())
}

/// Returns all pauses, oldest first.
pub fn all(tx: &mut Tx<'_>) -> Result<Vec<Pause>> {
    const ALL: Statement = statement!(pause::all_pauses);
    Ok(tx.query(&ALL, &[])?)
}
