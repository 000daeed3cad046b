//! The end of a process that works: mail and callbacks are sent first, within bounds, and what is
//! left is said.

use crate::exit::Failure;
use crate::output::{self, count};
use crate::session::parse_duration;
use archive::app::App;
use archive::model::pipelines;
use archive::scheduler::unsent::{self, Left};
use queue::BatchId;
use queue::runtime::Stop;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// How long a process that would end otherwise goes on sending.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct Timeout {
    /// How long to go on sending mail and callbacks when everything else is done
    #[arg(long, value_parser = parse_duration, default_value = "60", value_name = "DURATION")]
    pub notify_timeout: Duration,
}

/// The same where no option says it.
pub const TIMEOUT: Duration = Duration::from_secs(60);
/// Sending that takes longer is worth a word.
const WORTH_A_WORD: Duration = Duration::from_secs(2);

/// Waits until the mail and callbacks of these batches are sent, cannot be sent, or wait for
/// something that is down; for no longer than `timeout`, and not beyond a stop. Says what is left.
pub async fn send(
    app: &Arc<App>,
    batches: &[BatchId],
    since: db::Micros,
    timeout: Duration,
    stop: &mut watch::Receiver<Stop>,
    quiet: bool,
) -> Result<(), Failure> {
    let deadline = Instant::now() + timeout;
    let word = async {
        tokio::time::sleep(WORTH_A_WORD).await;
        if !quiet {
            anstream::eprintln!("sending mail and callbacks, for {} s at most", timeout.as_secs());
        }
        std::future::pending::<()>().await;
    };
    let left = tokio::select! {
        left = unsent::wait(app, batches, since, deadline) => left?,
        () = word => Vec::new(),
        _ = stop.wait_for(|stop| *stop != Stop::No) => {
            unsent::wait(app, batches, since, Instant::now()).await?
        }
    };
    if !quiet {
        left.iter().for_each(say);
    }
    Ok(())
}

/// Ends the worker when nothing but mail and callbacks is left, and none of them was sent for
/// `timeout`.
pub async fn end_when_stalled(
    app: Arc<App>,
    timeout: Duration,
    wanted: impl Fn(&str, &str) -> bool + Send + Sync + 'static,
    stop: watch::Sender<Stop>,
    quiet: bool,
) {
    let other = |pipeline: &str, stage: &str| {
        pipeline != pipelines::REPORT && pipeline != pipelines::CALLBACK && wanted(pipeline, stage)
    };
    let (app, other) = (&app, &other);
    loop {
        let busy = move || async move {
            archive::worker::more_to_do(app, other).await.map_err(archive::Error::from)
        };
        match unsent::stalled(app, timeout, busy).await {
            Ok(left) => {
                if !quiet {
                    anstream::eprintln!(
                        "{} not sent; `accession jobs list report` and `accession jobs list callback` show them, and `accession work` goes on with them",
                        are(usize::try_from(left).unwrap_or(usize::MAX), "message")
                    );
                }
                stop.send_replace(Stop::Shutdown);
                return;
            }
            // The database; the worker itself says so.
            Err(error) => tracing::debug!(%error, "what is left to send is not known"),
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// What is left, why, and how it goes on.
fn say(left: &Left) {
    anstream::eprintln!("{}", sentence(left));
}

fn sentence(left: &Left) -> String {
    let what = are(left.count, if left.kind == pipelines::REPORT { "mail" } else { "callback" });
    let why = output::printable(&left.why);
    match left.failed {
        true => format!(
            "{what} not sent: {why}; remove the cause, then `accession jobs requeue {}` sends it",
            left.job
        ),
        false => format!("{what} not sent yet: {why}; `accession work` goes on with it"),
    }
}

fn are(number: usize, what: &str) -> String {
    format!("{} {}", count(number, what), if number == 1 { "is" } else { "are" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use queue::JobId;

    #[test]
    fn what_is_left_is_said_with_what_to_do() {
        let left = |kind: &str, count: usize, failed: bool| Left {
            kind: kind.to_string(),
            count,
            job: JobId::new(7),
            failed,
            why: "no such user\u{1b} [mail.refused]".to_string(),
        };
        assert_eq!(
            sentence(&left("report", 1, true)),
            "1 mail is not sent: no such user\\u{1b} [mail.refused]; remove the cause, then `accession jobs requeue 7` sends it"
        );
        assert_eq!(
            sentence(&left("callback", 2, false)),
            "2 callbacks are not sent yet: no such user\\u{1b} [mail.refused]; `accession work` goes on with it"
        );
    }
}
