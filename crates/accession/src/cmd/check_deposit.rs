//! `accession deposit --check`: everything that would be wrong with a deposit; nothing is
//! deposited.

use super::deposit::How;
use crate::cli::Global;
use crate::exit::{Exit, Failure};
use crate::output;
use archive::app::App;
use archive::intake::precheck::{self, Verdict};
use std::ffi::OsString;
use std::sync::Arc;

pub fn run(
    app: &Arc<App>,
    sources: &[OsString],
    how: &How,
    global: &Global,
) -> Result<Exit, Failure> {
    let options = how.options()?;
    let mut good = true;
    for text in sources {
        let source = archive::model::item::Source::parse(text)?;
        let verdict: Verdict =
            super::app::block_on(precheck::check(app, &how.collection, &source, &options))?
                .map_err(|e| super::deposit::refused(&source, e))?;
        good &= !verdict.problems.has_errors();
        if global.json {
            output::json(&verdict)?;
            continue;
        }
        let shown = output::printable(&source.to_string());
        output::line(&match verdict.problems.has_errors() {
            true => format!(
                "{shown}: {}; it would fail",
                output::count(verdict.problems.errors, "problem")
            ),
            false => format!(
                "{shown}: {}, {}, {}, {}; nothing is wrong with it",
                verdict.kind,
                output::count(verdict.objects, "object"),
                output::count(verdict.files, "file"),
                output::size(verdict.bytes)
            ),
        })?;
        for problem in &verdict.problems.listed {
            let word = if problem.is_error { "error" } else { "warning" };
            output::line(&format!(
                "  {word} [{}] {}",
                problem.code,
                output::printable(&problem.message)
            ))?;
        }
    }
    Ok(if good { Exit::Yes } else { Exit::No })
}
