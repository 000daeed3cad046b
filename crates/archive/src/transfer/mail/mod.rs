//! Mail by SMTP.

use crate::ErrorCode;
use crate::model::mail_address::mailbox;
use crate::{Error, Result};
use lettre::message::header::{ContentType, HeaderName, HeaderValue};
use lettre::message::{Mailbox, MultiPart, SinglePart};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Certificate, Tls, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use lettre::{AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// The name that errors and breakers give to the mail server.
pub const TARGET: &str = "mail";
const SUBJECT_CHARS_MAX: usize = 200;
const TEXT_BYTES_MAX: usize = 1 << 20;

/// Where mail is handed in, and from whom it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MailSettings {
    pub host: String,
    /// 587 with STARTTLS, 465 with TLS, 25 without, unless another is given.
    #[serde(default)]
    pub port: Option<u16>,
    #[serde(default)]
    pub security: Security,
    #[serde(default)]
    pub user: Option<String>,
    /// The file whose first line is the password. It is read for each mail, so that a new password
    /// needs no restart.
    #[serde(default)]
    pub password_file: Option<PathBuf>,
    /// `Archive <archive@example.org>`
    pub from: String,
    /// A certificate (PEM) to trust besides those of the system.
    #[serde(default)]
    pub ca_file: Option<PathBuf>,
    /// For the whole of one mail.
    #[serde(default = "timeout_default")]
    pub timeout_seconds: u64,
}

fn timeout_default() -> u64 {
    60
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Security {
    /// Starts in the clear and refuses to go on without TLS.
    #[default]
    Starttls,
    Tls,
    /// In the clear: for a server on this machine or in a trusted network.
    None,
}

/// One mail to one address, so that a wrong address does not affect the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mail {
    pub to: String,
    pub subject: String,
    pub text: String,
    /// The part before the `@` of the message's id: letters, digits, `.`, `-` and `_`. Derived from
    /// what the mail is about (`batch-12-report-2-job-77`), so that a mail sent twice, because the
    /// answer to the first was lost, can be recognised as the same.
    pub message_id: String,
    pub attachments: Vec<Attachment>,
}

/// A file that goes with a mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    pub name: String,
    pub media_type: &'static str,
    pub content: Vec<u8>,
}

/// Sends a mail. A server that is down, slow or busy is worth another try; an address or settings
/// that it refuses are not.
pub async fn send(settings: &MailSettings, mail: &Mail) -> Result<()> {
    let from = mailbox(&settings.from, "sender")?;
    let message = compose(&from, mail)?;
    let transport = transport(settings, &from)?;
    let patience = Duration::from_secs(settings.timeout_seconds);
    match tokio::time::timeout(patience, transport.send(message)).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(classified(settings, mail, &error)),
        Err(_) => {
            let message = format!(
                "the mail server {} did not finish within {} s",
                settings.host, settings.timeout_seconds
            );
            Err(Error::transient(ErrorCode::MailTimeout, message).at(TARGET))
        }
    }
}

/// Connects, says hello, logs in, and sends nothing: whether mail could be sent.
pub async fn probe(settings: &MailSettings) -> Result<()> {
    let from = mailbox(&settings.from, "sender")?;
    let transport = transport(settings, &from)?;
    let patience = Duration::from_secs(settings.timeout_seconds);
    let nobody = Mail {
        to: settings.from.clone(),
        subject: String::new(),
        text: String::new(),
        message_id: String::new(),
        attachments: Vec::new(),
    };
    match tokio::time::timeout(patience, transport.test_connection()).await {
        Ok(Ok(true)) => Ok(()),
        Ok(Err(error)) => Err(classified(settings, &nobody, &error)),
        Ok(Ok(false)) | Err(_) => {
            let message = format!("the mail server {} does not answer", settings.host);
            Err(Error::transient(ErrorCode::MailTimeout, message).at(TARGET))
        }
    }
}

fn compose(from: &Mailbox, mail: &Mail) -> Result<Message> {
    let id = &mail.message_id;
    let plain = |b: u8| b.is_ascii_alphanumeric() || b".-_".contains(&b);
    if id.is_empty() || id.len() > 200 || !id.bytes().all(plain) {
        let message = format!("the id {id:?} of a mail has characters that are not for ids");
        return Err(Error::permanent(ErrorCode::MailId, message));
    }
    let wrong = |error: String| {
        Error::permanent(ErrorCode::MailMessage, format!("a mail cannot be written: {error}"))
    };
    let automatic = HeaderName::new_from_ascii_str("Auto-Submitted");
    let message = Message::builder()
        .from(from.clone())
        .to(mailbox(&mail.to, "recipient")?)
        .subject(one_line(&mail.subject))
        .message_id(Some(format!("<{id}@{}>", from.email.domain())))
        // So that no holiday notice answers it.
        .raw_header(HeaderValue::new(automatic, "auto-generated".to_owned()))
        .date_now();
    let text = SinglePart::plain(body(&mail.text));
    let composed = match mail.attachments.is_empty() {
        true => message.singlepart(text),
        false => {
            let mut parts = MultiPart::mixed().singlepart(text);
            for file in &mail.attachments {
                let media_type = ContentType::parse(file.media_type);
                let media_type = media_type.map_err(|error| wrong(error.to_string()))?;
                let attached = lettre::message::Attachment::new(file.name.clone());
                parts = parts.singlepart(attached.body(file.content.clone(), media_type));
            }
            message.multipart(parts)
        }
    };
    composed.map_err(|error| wrong(error.to_string()))
}

/// A subject is one line: what follows a line end would be headers.
fn one_line(subject: &str) -> String {
    let clean = |c: char| if c.is_control() { ' ' } else { c };
    let line: String = subject.chars().take(SUBJECT_CHARS_MAX).map(clean).collect();
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn body(text: &str) -> String {
    let kept = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
    let mut bytes = 0;
    let short = |c: &char| {
        bytes += c.len_utf8();
        bytes <= TEXT_BYTES_MAX
    };
    text.chars().filter(kept).take_while(short).collect()
}

fn transport(
    settings: &MailSettings,
    from: &Mailbox,
) -> Result<AsyncSmtpTransport<Tokio1Executor>> {
    let (tls, port) = match settings.security {
        Security::Starttls => (Tls::Required(tls(settings)?), 587),
        Security::Tls => (Tls::Wrapper(tls(settings)?), 465),
        Security::None => (Tls::None, 25),
    };
    let mut builder = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(&settings.host)
        .port(settings.port.unwrap_or(port))
        .tls(tls)
        .hello_name(ClientId::Domain(from.email.domain().to_owned()))
        .timeout(Some(Duration::from_secs(settings.timeout_seconds)));
    if let Some(user) = &settings.user {
        builder = builder.credentials(Credentials::new(user.clone(), password(settings)?));
    }
    Ok(builder.build())
}

fn tls(settings: &MailSettings) -> Result<TlsParameters> {
    let mut builder = TlsParameters::builder(settings.host.clone());
    if let Some(path) = &settings.ca_file {
        let pem = std::fs::read(path)
            .map_err(|error| wrong_settings(format!("ca_file {}: {error}", path.display())))?;
        let certificate = Certificate::from_pem(&pem)
            .map_err(|error| wrong_settings(format!("ca_file {}: {error}", path.display())))?;
        builder = builder.add_root_certificate(certificate);
    }
    builder.build().map_err(|error| wrong_settings(format!("TLS to {}: {error}", settings.host)))
}

fn password(settings: &MailSettings) -> Result<String> {
    let near = ["localhost", "127.0.0.1", "::1"].contains(&settings.host.as_str());
    if settings.security == Security::None && !near {
        let why =
            format!("{} would get the password in the clear; use starttls or tls", settings.host);
        return Err(wrong_settings(why));
    }
    let Some(path) = &settings.password_file else {
        return Err(wrong_settings("a user is set but no password_file; set both".to_owned()));
    };
    let text = std::fs::read_to_string(path)
        .map_err(|error| wrong_settings(format!("password_file {}: {error}", path.display())))?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

fn wrong_settings(why: String) -> Error {
    Error::permanent(ErrorCode::MailSettings, format!("the mail settings are wrong: {why}"))
}

/// What a failure means: for this address, for the settings, or for the server as it is now.
fn classified(
    settings: &MailSettings,
    mail: &Mail,
    error: &lettre::transport::smtp::Error,
) -> Error {
    let host = &settings.host;
    let said: String =
        told(error).chars().map(|c| if c.is_control() { ' ' } else { c }).take(500).collect();
    let Some(status) = error.status().map(u16::from) else {
        if error.is_client() {
            return wrong_settings(format!("{host}: {said}; check user, password and security"));
        }
        let code =
            if error.is_timeout() { ErrorCode::MailTimeout } else { ErrorCode::MailUnreachable };
        let message = format!("the mail server {host} cannot be reached: {said}");
        return Error::transient(code, message).at(TARGET);
    };
    match status {
        // The mailbox is busy, which says nothing about the server.
        450 => Error::transient(
            ErrorCode::MailBusy,
            format!("{host} cannot take mail for {} now: {said}", mail.to),
        ),
        400..=499 => {
            let message = format!("the mail server {host} asked to come back later: {said}");
            Error::transient(ErrorCode::MailLater, message).at(TARGET)
        }
        530 | 534 | 535 | 538 => {
            let message = format!(
                "the mail server {host} did not accept the login: {said}; correct user and password_file, then retry the failed mails"
            );
            Error::permanent(ErrorCode::MailLogin, message)
        }
        _ => {
            let message = format!(
                "the mail server {host} refused mail for {}: {said}; correct the address, or ask the operator of the server",
                mail.to
            );
            Error::permanent(ErrorCode::MailRefused, message)
        }
    }
}

/// The error and what caused it, in one line.
fn told(error: &dyn std::error::Error) -> String {
    let mut told = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_told = inner.to_string();
        if !told.contains(&inner_told) {
            told = format!("{told}: {inner_told}");
        }
        cause = inner.source();
    }
    told
}

#[cfg(test)]
mod tests;
