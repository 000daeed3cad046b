//! Sends one message of the outbox.

use super::attachments;
use crate::ErrorCode;
use crate::app::App;
use crate::config::{AllowPrivate, MailSection, MailSecurity, read_secret};
use crate::model::error::{Error, Result};
use crate::model::id::MessageId;
use crate::pipeline::Stage;
use crate::registry::messages::{self, Kept, Message};
use crate::registry::reports;
use crate::report;
use crate::transfer::callback::Callback;
use crate::transfer::mail::{self, Mail, MailSettings, Security};
use queue::runtime::{Context, Handler};
use queue::{BatchId, Catalog, Claimed, JobId, Outcome, StageSettings};
use std::sync::Arc;

pub struct Sending(Arc<App>);

impl Stage for Sending {
    const NAME: &'static str = "sending";

    /// What is sent to may be down for long.
    fn defaults() -> StageSettings {
        StageSettings { max_attempts: 10, ..StageSettings::default() }
    }

    fn handler(app: &Arc<App>) -> impl Handler {
        Sending(app.clone())
    }
}

impl Handler for Sending {
    async fn run(&self, job: &Claimed, context: &Context) -> Outcome {
        match send(&self.0, job, context).await {
            Ok(outcome) => outcome,
            Err(error) => error.into(),
        }
    }
}

async fn send(app: &Arc<App>, job: &Claimed, context: &Context) -> Result<Outcome> {
    let text = String::from_utf8_lossy(job.payload.as_deref().unwrap_or_default()).into_owned();
    let wrong = || Error::permanent(ErrorCode::BadPayload, "the job does not name its message");
    let id: MessageId = text.parse().map_err(|_| wrong())?;
    let kept = app.db.read(move |tx| messages::find(tx, id)).await?.ok_or_else(wrong)?;
    if kept.sent_at.is_some() {
        return Ok(Outcome::Skip("it was sent before".to_string()));
    }
    match &kept.message {
        Message::Report { batch, version, to, formats } => {
            let report = bounded_report(app, *batch).await?;
            let name = format!("batch-{batch}-report-{version}");
            let (attachments, attached) = attachments::of(&report, formats, &name)?;
            for address in to {
                let mail = Mail {
                    to: address.clone(),
                    subject: report::mail_subject(&report.head),
                    text: report::mail_text(&report, &attached),
                    message_id: format!("{name}-message-{id}"),
                    attachments: attachments.clone(),
                };
                mail::send(&settings(app)?, &mail).await?;
            }
        }
        Message::Reviews { jobs, total, to } => {
            let text = review_text(app, jobs.clone(), *total).await?;
            for address in to {
                let mail = Mail {
                    to: address.clone(),
                    subject: report::reviews_subject(*total),
                    text: text.clone(),
                    message_id: format!("reviews-message-{id}"),
                    attachments: Vec::new(),
                };
                mail::send(&settings(app)?, &mail).await?;
            }
        }
        Message::Callback { collection, body } => call(app, id, &kept, collection, body).await?,
    }
    context.record(move |tx| messages::sent(tx, id));
    Ok(Outcome::success())
}

/// Lines of each kind that the files of a mail may have; the report says how many more there are.
const LISTED_MAX: i64 = 2000;

async fn bounded_report(app: &Arc<App>, batch: BatchId) -> Result<report::BatchReport> {
    app.db
        .read(move |tx| {
            let catalog = Catalog::load(tx)?;
            reports::short(tx, &catalog, batch, LISTED_MAX)
        })
        .await
}

async fn review_text(app: &Arc<App>, jobs: Vec<JobId>, total: i64) -> Result<String> {
    app.db
        .read(move |tx| {
            let mut lines = Vec::new();
            for job in &jobs {
                lines.extend(reports::review(tx, *job)?);
            }
            Ok(report::reviews_text(total, &lines))
        })
        .await
}

fn settings(app: &App) -> Result<MailSettings> {
    let section: &MailSection = app.settings.mail.as_ref().ok_or_else(|| {
        Error::permanent(
            ErrorCode::MailNotConfigured,
            "there is no [mail] in the configuration; add it, then requeue the job",
        )
    })?;
    Ok(mail_settings(section))
}

/// The mail settings of a configuration.
pub fn mail_settings(section: &MailSection) -> MailSettings {
    MailSettings {
        host: section.host.clone(),
        port: section.port,
        security: match section.security {
            MailSecurity::None => Security::None,
            MailSecurity::Starttls => Security::Starttls,
            MailSecurity::Tls => Security::Tls,
        },
        user: section.user.clone(),
        password_file: section.password_file.clone(),
        from: section.from.clone(),
        ca_file: section.ca_file.clone(),
        timeout_seconds: section.timeout_seconds,
    }
}

async fn call(
    app: &Arc<App>,
    id: MessageId,
    kept: &Kept,
    collection: &str,
    body: &serde_json::Value,
) -> Result<()> {
    let profile = app.profile(collection).await?;
    let Some(callback) = profile.callback else {
        // The collection wants none any more.
        return Ok(());
    };
    let secret = match (&callback.secret, &callback.secret_file) {
        (Some(secret), _) => secret.clone(),
        (None, Some(file)) => read_secret(file)?,
        (None, None) => String::new(),
    };
    let mut to = Callback::new(&callback.url, secret.as_bytes());
    to.allow_private = match &app.settings.allow_private {
        AllowPrivate::All(allowed) => *allowed,
        AllowPrivate::Only(hosts) => {
            let host = url::Url::parse(&callback.url).ok();
            let host = host.as_ref().and_then(|u| u.host_str());
            host.is_some_and(|host| hosts.iter().any(|h| h == host))
        }
    };
    let now = app.db.read(|tx| Ok::<_, Error>(tx.now())).await? / 1_000_000;
    let fields = body.as_object().cloned().unwrap_or_default();
    to.send(&format!("{}-{id}", kept.created_at), &fields, now).await
}
