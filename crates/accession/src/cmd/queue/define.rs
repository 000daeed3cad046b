//! Making, changing, emptying and deleting queues.

use super::confirm;
use crate::cli::Global;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::session::{Act, Session};
use archive::model::text::plural;
use queue::StageId;
use queue::rules::operator::{Actor, cancel};
use queue::rules::{budget, pipelines};

#[derive(clap::Args)]
#[command(after_help = "Examples:
  accession queue create files
  accession queue create files workers=4 max_attempts=5
  accession queue create intake --stages fetch,check,store --no-coalesce history=full")]
pub struct Create {
    /// The queue's name
    name: String,
    /// Settings, as in `accession queue set`
    #[arg(value_name = "SETTING=VALUE")]
    settings: Vec<String>,
    /// Several stages, one after the other (default: one, of the queue's name)
    #[arg(long, value_delimiter = ',', value_name = "A,B,…")]
    stages: Vec<String>,
    /// Every add is a job of its own, even if the subject waits already
    #[arg(long)]
    no_coalesce: bool,
    /// The stage at which a requeued job resumes if another job has used its lock (default: the first)
    #[arg(long, value_name = "STAGE")]
    restart: Option<String>,
    #[command(flatten)]
    act: Act,
}

/// `name=value` pairs.
fn pairs(settings: &[String]) -> Result<Vec<(String, String)>, Failure> {
    settings
        .iter()
        .map(|setting| match setting.split_once('=') {
            Some((name, value)) if !name.is_empty() => Ok((name.to_string(), value.to_string())),
            _ => Err(Failure::refused(
                queue::ErrorCode::BadInput,
                format!("`{setting}` is not SETTING=VALUE, as in workers=4"),
            )),
        })
        .collect()
}

pub fn create(args: Create, global: &Global) -> Result<Exit, Failure> {
    if archive::setup::is_taken(&args.name) {
        return Err(Failure::refused(
            archive::ErrorCode::NameTaken,
            format!(
                "`{}` is a pipeline of the archive itself; choose another name for the queue",
                args.name
            ),
        ));
    }
    let changes = pairs(&args.settings)?;
    let mut spec = pipelines::PipelineSpec::queue(&args.name);
    if !args.stages.is_empty() {
        spec.stages =
            args.stages.iter().map(|s| (s.clone(), queue::StageSettings::default())).collect();
    }
    spec.coalesces = !args.no_coalesce;
    spec.restart = args.restart.clone();
    let who = args.act.who();
    let session = Session::open(global)?;
    let (pipeline, existed) = session.write(move |tx, now, catalog| {
        let existed = catalog.named(&spec.name).is_ok();
        let spec = pipelines::with_settings(&spec, &changes)?;
        Ok((pipelines::create(tx, now, &who, &spec)?, existed))
    })?;
    if session.json {
        let stages: Vec<&str> = pipeline.stages.iter().map(|s| s.name.as_str()).collect();
        output::json(
            &serde_json::json!({"queue": pipeline.name, "stages": stages, "existed": existed}),
        )?;
    } else {
        let word = if existed { "is there already" } else { "made" };
        output::line(&format!("queue {} {word}", pipeline.name))?;
    }
    Ok(Exit::Yes)
}

#[derive(clap::Args)]
#[command(
    after_help = "Settings of a stage: workers, buffer, max_attempts, max_interruptions, backoff_seconds,
backoff_seconds_max, timeout_seconds, needs.RESOURCE. Of the queue: history (full, outcomes),
payload_bytes_max, state_bytes_max, retention_seconds. Running workers take them over within seconds.

Example:
  accession queue set files workers=8 buffer=16"
)]
pub struct Set {
    /// The queue's name
    name: String,
    #[arg(required = true, value_name = "SETTING=VALUE")]
    settings: Vec<String>,
    /// Which stage, where there are several
    #[arg(long)]
    stage: Option<String>,
}

pub fn set(args: Set, global: &Global) -> Result<Exit, Failure> {
    let changes = pairs(&args.settings)?;
    let session = Session::open(global)?;
    let pipeline = session.write(move |tx, _, catalog| {
        pipelines::set(tx, catalog, &args.name, args.stage.as_deref(), &changes)
    })?;
    if session.json {
        let stages: Vec<_> = pipeline
            .stages
            .iter()
            .map(|s| serde_json::json!({"name": s.name, "settings": s.settings}))
            .collect();
        output::json(&serde_json::json!({
            "queue": pipeline.name,
            "history": if pipeline.full_history { "full" } else { "outcomes" },
            "settings": pipeline.settings,
            "stages": stages,
        }))?;
    } else {
        let rows = pipeline.stages.iter().map(|s| {
            let t = &s.settings;
            vec![
                s.name.clone(),
                t.workers.to_string(),
                t.buffer.to_string(),
                t.max_attempts.to_string(),
                format!("{} s", t.backoff_seconds),
            ]
        });
        output::table(&["stage", "workers", "buffer", "max attempts", "back-off"], rows)?;
    }
    Ok(Exit::Yes)
}

#[derive(clap::Args)]
pub struct Empty {
    /// The queue's name
    name: String,
    /// Only this stage
    #[arg(long)]
    stage: Option<String>,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    act: Act,
}

pub fn empty(args: Empty, global: &Global) -> Result<Exit, Failure> {
    let session = Session::open(global)?;
    let (name, stage) = (args.name.clone(), args.stage.clone());
    let (stages, waiting) = session.read(move |tx, _, catalog| {
        let pipeline = catalog.named(&name)?;
        let stages: Vec<StageId> = match &stage {
            Some(stage) => vec![pipeline.stage_named(stage)?.id],
            None => pipeline.stages.iter().map(|s| s.id).collect(),
        };
        let mut waiting = 0;
        for stage in &stages {
            waiting += pipelines::waiting(tx, *stage)?;
        }
        Ok((stages, waiting))
    })?;
    let counted = plural(waiting.unsigned_abs(), "waiting job");
    confirm(args.yes, &format!("{counted} of {} would be cancelled.", args.name))?;
    let mut cancelled = 0;
    for stage in stages {
        loop {
            let act = args.act.clone();
            let done = session.write(move |tx, now, catalog| {
                cancel::empty(
                    tx,
                    now,
                    catalog,
                    Actor { who: &act.who(), reason: &act.reason },
                    stage,
                    500,
                )
            })?;
            cancelled += done;
            if done == 0 {
                break;
            }
        }
    }
    told(
        &session,
        &serde_json::json!({"cancelled": cancelled}),
        &format!("{} cancelled", plural(cancelled.unsigned_abs(), "job")),
    )
}

#[derive(clap::Args)]
pub struct Delete {
    /// The queue's name
    name: String,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    act: Act,
}

pub fn delete(args: Delete, global: &Global) -> Result<Exit, Failure> {
    let session = Session::open(global)?;
    let name = args.name.clone();
    let (waiting, running, failed) =
        session.read(move |tx, _, catalog| pipelines::depth(tx, catalog.named(&name)?))?;
    if running == 0 {
        confirm(
            args.yes,
            &format!(
                "queue {} would be deleted, and its {waiting} waiting and {failed} failed jobs cancelled.",
                args.name
            ),
        )?;
    }
    loop {
        let (act, name) = (args.act.clone(), args.name.clone());
        let gone = session.write(move |tx, now, catalog| {
            pipelines::delete(
                tx,
                now,
                catalog,
                Actor { who: &act.who(), reason: &act.reason },
                &name,
                500,
            )
        })?;
        if gone {
            break;
        }
    }
    let message = format!(
        "queue {} deleted; {waiting} waiting and {failed} failed jobs cancelled",
        args.name
    );
    told(
        &session,
        &serde_json::json!({"deleted": args.name, "waiting": waiting, "failed": failed}),
        &message,
    )
}

#[derive(clap::Args)]
#[command(after_help = "Examples:
  accession queue budget memory_bytes 8000000000
  accession queue set files needs.memory_bytes=1000000000
  accession queue budget memory_bytes none")]
pub struct Budget {
    /// The resource: memory_bytes, space_bytes, or any name
    resource: String,
    /// How much there is, or `none` for no limit
    amount: String,
}

pub fn budget(args: Budget, global: &Global) -> Result<Exit, Failure> {
    let total = match args.amount.as_str() {
        "none" => None,
        text => Some(text.parse::<i64>().map_err(|_| {
            Failure::refused(
                queue::ErrorCode::BadInput,
                format!("`{text}` is not a whole number; give an amount, or `none` for no limit"),
            )
        })?),
    };
    let session = Session::open(global)?;
    let resource = args.resource.clone();
    session.write(move |tx, now, _| budget::set_total(tx, now, &resource, total))?;
    told(
        &session,
        &serde_json::json!({"resource": args.resource, "total": total}),
        &format!("{}: {}", args.resource, args.amount),
    )
}

/// Says what was done: a sentence, or JSON.
pub fn told(session: &Session, json: &serde_json::Value, sentence: &str) -> Result<Exit, Failure> {
    match session.json {
        true => output::json(json)?,
        false => output::line(&output::printable_lines(sentence))?,
    }
    Ok(Exit::Yes)
}
