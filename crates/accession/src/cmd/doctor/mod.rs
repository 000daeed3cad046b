//! `accession doctor`: tries everything that work depends on, and says what to fix.

mod kept;
mod local;
mod outside;

use crate::cli::Global;
use crate::cmd::app;
use crate::exit::{Exit, Failure};
use crate::{output, session};
use archive::config::{Config, Loaded};
use serde::Serialize;

/// Check database, stores, work space, mail, signatures, clock and permissions
///
/// Each line is ok, a warning or a problem, with what to fix. Writes, reads and deletes a small
/// object in each store and a small file in the work space; sends no mail. Exits with 1 if there
/// is a problem.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  accession doctor
  accession doctor --json
  accession --config /etc/accession.toml --database postgres://archive@db/archive doctor")]
pub struct Args {}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    Ok,
    Warning,
    Problem,
}

/// What was looked at, what was found, and what to do about it.
#[derive(Debug, Serialize)]
pub struct Finding {
    pub what: String,
    pub state: State,
    pub found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl Finding {
    pub fn ok(what: impl Into<String>, found: impl Into<String>) -> Finding {
        Finding { what: what.into(), state: State::Ok, found: found.into(), fix: None }
    }

    pub fn warning(
        what: impl Into<String>,
        found: impl Into<String>,
        fix: impl Into<String>,
    ) -> Finding {
        let fix = Some(fix.into());
        Finding { what: what.into(), state: State::Warning, found: found.into(), fix }
    }

    pub fn problem(
        what: impl Into<String>,
        found: impl Into<String>,
        fix: impl Into<String>,
    ) -> Finding {
        Finding { state: State::Problem, ..Finding::warning(what, found, fix) }
    }
}

pub fn run(_: Args, global: &Global) -> Result<Exit, Failure> {
    let loaded = app::configuration(global);
    let mut findings = vec![configuration(&loaded)];
    findings.extend(local::data_directory(global)?);
    let database = local::database(global);
    let is_reached = database.iter().all(|finding| finding.state != State::Problem);
    findings.extend(database);
    findings.extend(local::signatures(global));
    match &loaded {
        Ok(loaded) => {
            findings.extend(configured(&loaded.config, global)?);
            if is_reached {
                findings.extend(kept::all(&loaded.config, global)?);
            }
        }
        // What it says of stores may be right; but a guess is no examination.
        Err(_) => findings.push(Finding::warning(
            "stores, mail, …",
            "what the configuration names was not looked at",
            "correct the configuration, then run this again",
        )),
    }
    let problems = findings.iter().filter(|f| f.state == State::Problem).count();
    let warnings = findings.iter().filter(|f| f.state == State::Warning).count();
    if global.json {
        output::json(
            &serde_json::json!({"problems": problems, "warnings": warnings, "findings": findings}),
        )?;
    } else {
        for finding in &findings {
            print(finding)?;
        }
        output::line(&format!("\nproblems: {problems}, warnings: {warnings}"))?;
    }
    Ok(if problems == 0 { Exit::Yes } else { Exit::No })
}

fn configuration(loaded: &Result<Loaded, Failure>) -> Finding {
    let what = "configuration";
    match loaded {
        Ok(Loaded { file: Some(file), .. }) => Finding::ok(what, file.display().to_string()),
        Ok(_) => Finding::ok(what, "no file; defaults"),
        Err(failure) => Finding::problem(
            what,
            failure.message.clone(),
            "correct it there; docs/configuration.md lists what can be set",
        ),
    }
}

/// Everything that the configuration names.
fn configured(config: &Config, global: &Global) -> Result<Vec<Finding>, Failure> {
    let mut findings = local::secrets(config);
    findings.extend(local::work_space(config));
    findings.extend(local::identifiers(config));
    let runtime = tokio::runtime::Runtime::new()?;
    let data = session::data_directory(global)?;
    findings.extend(runtime.block_on(outside::all(config, &data)));
    Ok(findings)
}

fn print(finding: &Finding) -> Result<(), Failure> {
    let (word, colour) = match finding.state {
        State::Ok => ("ok", anstyle::AnsiColor::Green),
        State::Warning => ("warning", anstyle::AnsiColor::Yellow),
        State::Problem => ("problem", anstyle::AnsiColor::Red),
    };
    let style = colour.on_default();
    let (what, found) = (output::printable(&finding.what), output::printable_lines(&finding.found));
    output::line(&format!("{style}{word:<8}{style:#} {what:<20} {found}"))?;
    if let Some(fix) = &finding.fix {
        output::line(&format!("{:29} → {}", "", output::printable(fix)))?;
    }
    Ok(())
}
