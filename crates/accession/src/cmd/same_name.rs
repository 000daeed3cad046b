//! Which object is meant, where only the name of a package says so: asked on a terminal, refused
//! elsewhere, and told after the first ingest.

use super::app;
use crate::exit::Failure;
use crate::output;
use archive::app::App;
use archive::intake::early;
use archive::model::deposit_kind::DepositKind;
use archive::model::item::{Mode, Source};
use archive::model::place::place_of;
use archive::registry::deposit::Options;
use archive::registry::derived::{self, Meeting};
use archive::registry::resolve::Found;
use queue::BatchId;
use std::io::{BufRead, IsTerminal, Write};
use std::sync::Arc;

/// How a deposit is made, for what is asked and advised.
#[derive(Clone, Copy)]
pub struct Asking<'a> {
    /// The command that is advised: `ingest` or `deposit`.
    pub command: &'a str,
    /// Never asks, even on a terminal.
    pub never: bool,
}

/// Makes sure that a deposit takes no files from an object that only its name leads to.
pub fn settle(
    app: &Arc<App>,
    collection: &str,
    source: &Source,
    kind: DepositKind,
    options: &mut Options,
    asking: Asking<'_>,
) -> Result<(), Failure> {
    let (of, name, place) = (collection.to_string(), source.file_name(), place_of(source));
    let said = options.clone();
    let found: archive::Result<Option<Found>> =
        app.db.read_blocking(move |tx| early::candidate(tx, &of, &name, &place, &said));
    let Some(found) = found? else { return Ok(()) };
    let looked = app::block_on(early::look(app, &found, source, kind, options))?;
    let Some(meeting) = looked? else { return Ok(()) };
    let terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    if asking.never || !terminal {
        let profile = app::block_on(app.profile(collection))??;
        return Err(meeting.refusal(asking.command, &profile, false).into());
    }
    let (input, out) = (&mut std::io::stdin().lock(), &mut anstream::stderr().lock());
    ask(&meeting, options, input, out)
}

/// Asks whether it is a new version of that object, or which object it is.
fn ask(
    meeting: &Meeting,
    options: &mut Options,
    input: &mut dyn BufRead,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let mut answer = |question: &str| -> Result<String, Failure> {
        write!(out, "{} ", output::printable(question))?;
        out.flush()?;
        let mut answer = String::new();
        input.read_line(&mut answer)?;
        Ok(answer.trim().to_string())
    };
    let question = format!("{}. Is it a new version of that object? [y/N]", meeting.what());
    let yes = answer(&question)?;
    if matches!(yes.as_str(), "y" | "Y" | "yes") {
        options.mode = Mode::Update;
        return Ok(());
    }
    let local = answer("A local identifier for the new object (nothing: do not deposit it):")?;
    if local.is_empty() || local == meeting.name {
        return Err(Failure::refused(archive::ErrorCode::DerivedIdentity, "nothing was deposited"));
    }
    options.local_ids = vec![local];
    options.mode = Mode::New;
    Ok(())
}

/// Says of new objects that are known by the name of their package how they are updated.
pub fn tell(app: &Arc<App>, batches: &[BatchId]) -> Result<(), Failure> {
    /// Lines that are shown; the report has the local ids of all.
    const SHOWN: usize = 20;
    let ids = batches.to_vec();
    let found: archive::Result<Vec<(String, String)>> = app.db.read_blocking(move |tx| {
        let mut found = Vec::new();
        for batch in &ids {
            found.extend(derived::new_objects(tx, *batch, SHOWN as i64)?);
            if found.len() >= SHOWN {
                break;
            }
        }
        Ok(found)
    });
    for (name, identifier) in found?.iter().take(SHOWN) {
        output::line(&output::printable(&format!(
            "{identifier} is known by its name, `{name}`. To make a new version of it from anywhere: accession ingest PATH --mode update --local-id {}",
            derived::shell_word(name)
        )))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(answers: &str) -> (Result<(), Failure>, Options, String) {
        let meeting = Meeting {
            collection: "default".into(),
            name: "scans".into(),
            identifier: "ark:/99999/fk4x".into(),
            version: 1,
            from: Some("/a/scans".into()),
            place: "/b/scans".into(),
            leaving: 2,
        };
        let (mut options, mut out) = (Options::default(), Vec::new());
        let done = ask(&meeting, &mut options, &mut answers.as_bytes(), &mut out);
        (done, options, String::from_utf8(out).unwrap())
    }

    #[test]
    fn an_answer_says_which_object_is_meant() {
        let (done, options, asked) = answered("y\n");
        assert!(done.is_ok() && asked.contains("from /a/scans"), "{asked}");
        assert_eq!((options.mode, options.local_ids.len()), (Mode::Update, 0));
        let (done, options, _) = answered("n\nbox-b\n");
        assert!(done.is_ok());
        assert_eq!((options.mode, options.local_ids), (Mode::New, vec!["box-b".to_string()]));
        for stopped in ["", "n\n\n", "\nscans\n"] {
            let (done, ..) = answered(stopped);
            assert_eq!(done.unwrap_err().code.as_str(), "derived_identity", "{stopped:?}");
        }
    }
}
