//! Identifiers from EZID, once per job however often it is asked for.
//!
//! EZID's own minting is not idempotent: when the answer is lost, so is an identifier. So the name
//! is derived from the job here, and EZID is asked to *create* exactly that one, marked as this
//! job's. Asked again it says that it exists, and the mark says that it is ours.

use crate::ErrorCode;
use crate::identifier::{Ark, Minter};
use crate::metadata::Metadata;
use crate::transfer::http::{self, Answer, Failure, Request};
use crate::{Error, Result};
use base64::Engine;
use digest::Sha256;
use std::fmt;
use std::time::Duration;

/// The name that errors and breakers give to EZID.
const TARGET: &str = "ezid";
/// The element in which the job's key stands at EZID.
const MARK: &str = "accession.job";
/// Two jobs get the same name about once in 10^11; several times in a row they do not.
const NAMES_MAX: u64 = 4;

/// An account at EZID, and the shoulder that names are made under (`ark:/99999/fk4`).
#[derive(Clone)]
pub struct Ezid {
    pub base_url: String,
    pub user: String,
    pub password: String,
    pub shoulder: String,
    /// For each request.
    pub timeout: Duration,
}

/// Never shows the password.
impl fmt::Debug for Ezid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Ezid");
        shown.field("base_url", &self.base_url).field("user", &self.user);
        shown.field("shoulder", &self.shoulder).finish_non_exhaustive()
    }
}

impl Ezid {
    pub fn new(base_url: &str, user: &str, password: &str, shoulder: &str) -> Ezid {
        Ezid {
            base_url: base_url.trim_end_matches('/').to_owned(),
            user: user.to_owned(),
            password: password.to_owned(),
            shoulder: shoulder.to_owned(),
            timeout: Duration::from_secs(60),
        }
    }

    /// The identifier of a job, made on the first call and found again on every later one. The
    /// key is the job's for ever and no other's: an installation's name and the job's number.
    pub async fn mint(&self, job_key: &str, metadata: &Metadata) -> Result<String> {
        let minter = self.minter()?;
        self.check_address()?;
        for nth in 0..NAMES_MAX {
            let ark = minter.mint(number_of(job_key, nth));
            if self.create(&ark, job_key, metadata).await? || self.is_ours(&ark, job_key).await? {
                return Ok(ark);
            }
        }
        let message = format!(
            "the first {NAMES_MAX} names under {} belong to others; give the collection another shoulder",
            self.shoulder
        );
        Err(Error::permanent(ErrorCode::EzidTaken, message))
    }

    fn minter(&self) -> Result<Minter> {
        let shoulder = Ark::parse(&self.shoulder)?;
        Minter::new(shoulder.naan(), shoulder.name(), "reeeeeeeek")
    }

    /// A password goes over TLS, or stays on this machine.
    fn check_address(&self) -> Result<()> {
        let (scheme, host) = http::scheme_and_host(&self.base_url).map_err(|why| {
            Error::permanent(
                ErrorCode::EzidAddress,
                format!("the address of EZID: {why}; correct the setting"),
            )
        })?;
        if scheme != "https" && !["localhost", "127.0.0.1", "[::1]"].contains(&host.as_str()) {
            let message =
                format!("{} would get the password unprotected; use https", self.base_url);
            return Err(Error::permanent(ErrorCode::EzidAddress, message));
        }
        Ok(())
    }

    /// Whether it is created; `false` says that somebody created it before.
    async fn create(&self, ark: &str, job_key: &str, metadata: &Metadata) -> Result<bool> {
        let answer = self.ask("PUT", ark, anvl(job_key, metadata)).await?;
        let said = answer.body.lines().next().unwrap_or_default().trim();
        match answer.status {
            200 | 201 if said.starts_with("success:") => Ok(true),
            400 if said.contains("already exists") => Ok(false),
            status => Err(refusal(status, said)),
        }
    }

    async fn is_ours(&self, ark: &str, job_key: &str) -> Result<bool> {
        let answer = self.ask("GET", ark, String::new()).await?;
        let said = answer.body.lines().next().unwrap_or_default().trim();
        if answer.status != 200 || !said.starts_with("success:") {
            return Err(refusal(answer.status, said));
        }
        let mark = format!("{MARK}: {}", encode(job_key));
        Ok(answer.body.lines().any(|line| line.trim_end() == mark))
    }

    async fn ask(&self, method: &'static str, ark: &str, body: String) -> Result<Answer> {
        let secret = format!("{}:{}", self.user, self.password);
        let basic = base64::engine::general_purpose::STANDARD.encode(secret);
        let request = Request {
            method,
            url: format!("{}/id/{ark}", self.base_url),
            headers: vec![
                ("Authorization", format!("Basic {basic}")),
                ("Content-Type", "text/plain; charset=UTF-8".to_owned()),
                ("Accept", "text/plain".to_owned()),
            ],
            body: body.into_bytes(),
            timeout: self.timeout,
            // The address is the operator's setting, not a depositor's.
            allow_private: true,
        };
        http::call(request).await.map_err(|failure| match failure {
            Failure::Refused(why) => {
                let message =
                    format!("{} cannot be asked: {why}; correct its address", self.base_url);
                Error::permanent(ErrorCode::EzidAddress, message)
            }
            Failure::Unreachable(why) => {
                let message = format!("EZID at {} did not answer: {why}", self.base_url);
                Error::transient(ErrorCode::EzidUnreachable, message).at(TARGET)
            }
        })
    }
}

fn refusal(status: u16, said: &str) -> Error {
    let said: String = said.chars().filter(|c| !c.is_control()).take(300).collect();
    let (code, advice) = match status {
        401 => {
            (ErrorCode::EzidUnauthorized, "correct the user and password of EZID in the settings")
        }
        403 => (
            ErrorCode::EzidForbidden,
            "have EZID allow this user the shoulder, or change the shoulder",
        ),
        408 | 425 | 429 | 500.. => {
            let message = format!("EZID answered {status}: {said}");
            return Error::transient(ErrorCode::EzidUnavailable, message).at(TARGET);
        }
        200..=399 => (ErrorCode::EzidAnswer, "check that the address of EZID is right"),
        _ => (ErrorCode::EzidRefused, "check the shoulder and the metadata of the deposit"),
    };
    Error::permanent(code, format!("EZID answered {status}: {said}; {advice}"))
}

/// A number below 29^8 that is the job's own.
fn number_of(job_key: &str, nth: u64) -> u64 {
    let mut hasher = Sha256::new();
    hasher.update(&nth.to_be_bytes());
    hasher.update(job_key.as_bytes());
    let first =
        hasher.finish().iter().take(8).fold(0, |number: u64, byte| number << 8 | u64::from(*byte));
    first % 29u64.pow(8)
}

fn anvl(job_key: &str, metadata: &Metadata) -> String {
    let fields = [
        (MARK, Some(job_key)),
        ("_profile", Some("erc")),
        ("erc.who", metadata.who.as_deref()),
        ("erc.what", metadata.what.as_deref()),
        ("erc.when", metadata.when.as_deref()),
    ];
    let line = |(name, value): (&str, Option<&str>)| {
        let missing = name.starts_with("erc.").then_some("(:unas)");
        value.or(missing).map(|value| format!("{name}: {}\n", encode(value)))
    };
    fields.into_iter().filter_map(line).collect()
}

/// As EZID wants values: percent signs and line ends encoded, nothing else.
fn encode(value: &str) -> String {
    value.replace('%', "%25").replace('\n', "%0A").replace('\r', "%0D")
}

#[cfg(test)]
mod tests;
