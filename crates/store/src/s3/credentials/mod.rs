//! Who we are: keys from the places where the tools of Amazon look for them, in the same order.

mod profile;
mod remote;

use super::clock;
use super::config::env;
use super::http::Http;
use crate::error::{Error, ErrorKind, Result};
use serde::Deserialize;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};
use tokio::sync::Mutex;

/// Keys that end are renewed when they have less than this left.
const RENEW_BEFORE: Duration = Duration::from_secs(300);

/// An access key. It does not print its secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    pub access_key: String,
    pub secret_key: String,
    pub session_token: Option<String>,
    /// When they end; `None` for those that do not.
    pub expires: Option<SystemTime>,
}

impl Credentials {
    pub fn new(
        access_key: impl Into<String>,
        secret_key: impl Into<String>,
        session_token: Option<String>,
    ) -> Credentials {
        let (access_key, secret_key) = (access_key.into(), secret_key.into());
        Credentials { access_key, secret_key, session_token, expires: None }
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("access_key", &self.access_key).finish_non_exhaustive()
    }
}

/// Where credentials come from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum CredentialSource {
    /// The usual chain: environment variables, the profile of `AWS_PROFILE` or `default`, a web
    /// identity token, the container's address, the machine's metadata service.
    #[default]
    Chain,
    /// The profile of this name in `~/.aws/config` and `~/.aws/credentials`.
    Profile(String),
    /// These.
    Static(Credentials),
    /// None; requests are not signed.
    Anonymous,
}

impl CredentialSource {
    /// The region that the profile names, if any.
    pub(super) fn region_of_profile(&self) -> Option<String> {
        let environment = Environment::of_process();
        let profile = match self {
            CredentialSource::Chain => environment.profile(),
            CredentialSource::Profile(name) => name.clone(),
            CredentialSource::Static(_) | CredentialSource::Anonymous => return None,
        };
        let profiles = profile::Profiles::read(&environment).ok()?;
        profiles.get(&profile)?.get("region").cloned()
    }
}

type Variable = dyn Fn(&str) -> Option<String> + Send + Sync;

/// The environment variables, or what a test says they are.
#[derive(Clone)]
struct Environment(Arc<Variable>);

impl Environment {
    fn of_process() -> Environment {
        Environment(Arc::new(env))
    }

    fn get(&self, name: &str) -> Option<String> {
        (self.0)(name)
    }

    fn profile(&self) -> String {
        self.get("AWS_PROFILE").unwrap_or_else(|| "default".into())
    }

    fn region(&self) -> String {
        let region = self.get("AWS_REGION").or_else(|| self.get("AWS_DEFAULT_REGION"));
        region.unwrap_or_else(|| "us-east-1".into())
    }

    /// A file of the user, or the one that a variable names.
    fn file(&self, variable: &str, default: &str) -> Option<PathBuf> {
        let named = self.get(variable).map(PathBuf::from);
        named.or_else(|| Some(PathBuf::from(self.get("HOME")?).join(".aws").join(default)))
    }
}

/// Credentials, asked for again when they end.
pub(super) struct CachedCredentials {
    source: CredentialSource,
    environment: Environment,
    http: Http,
    cached: Mutex<Option<Credentials>>,
    forgotten: AtomicBool,
}

impl CachedCredentials {
    pub(super) fn new(source: CredentialSource, http: Http) -> CachedCredentials {
        CachedCredentials {
            source,
            environment: Environment::of_process(),
            http,
            cached: Mutex::new(None),
            forgotten: AtomicBool::new(false),
        }
    }

    /// The credentials to sign with; `None` to not sign at all.
    pub(super) async fn get(&self) -> Result<Option<Credentials>> {
        let resolver = Resolver { environment: &self.environment, http: &self.http };
        let mut cached = self.cached.lock().await;
        if self.forgotten.swap(false, Ordering::Relaxed) {
            *cached = None;
        }
        let fresh = |keys: &&Credentials| match keys.expires {
            Some(expires) => SystemTime::now() + RENEW_BEFORE < expires,
            None => true,
        };
        if let Some(keys) = cached.as_ref().filter(fresh) {
            return Ok(Some(keys.clone()));
        }
        let found = match &self.source {
            CredentialSource::Anonymous => return Ok(None),
            CredentialSource::Static(keys) => Ok(keys.clone()),
            CredentialSource::Profile(name) => match resolver.of_profile(name).await {
                Ok(Some(keys)) => Ok(keys),
                Ok(None) => Err(denied(format!("the profile {name} has no credentials"))),
                Err(error) => Err(error),
            },
            CredentialSource::Chain => resolver.of_chain().await,
        };
        // Keys that could not be renewed may still have a while to go.
        let keys = match (found, cached.take()) {
            (Ok(keys), _) => keys,
            (Err(_), Some(old)) if old.expires.is_some_and(|e| e > SystemTime::now()) => old,
            (Err(error), _) => return Err(error),
        };
        *cached = Some(keys.clone());
        Ok(Some(keys))
    }

    /// Asks again next time: the server says they have ended.
    pub(super) fn forget(&self) {
        self.forgotten.store(true, Ordering::Relaxed);
    }
}

/// One search for credentials.
struct Resolver<'a> {
    environment: &'a Environment,
    http: &'a Http,
}

impl Resolver<'_> {
    async fn of_chain(&self) -> Result<Credentials> {
        if let Some(keys) = self.of_environment() {
            return Ok(keys);
        }
        if let Some(keys) = self.of_profile(&self.environment.profile()).await? {
            return Ok(keys);
        }
        if let Some(keys) = self.of_web_identity().await? {
            return Ok(keys);
        }
        if let Some(keys) = remote::of_container(self).await? {
            return Ok(keys);
        }
        if let Some(keys) = remote::of_machine(self).await? {
            return Ok(keys);
        }
        Err(denied(
            "no credentials in the environment, ~/.aws, a container or the machine; \
             set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or a profile",
        ))
    }

    fn of_environment(&self) -> Option<Credentials> {
        let access_key = self.environment.get("AWS_ACCESS_KEY_ID")?;
        let secret_key = self.environment.get("AWS_SECRET_ACCESS_KEY")?;
        let token = self.environment.get("AWS_SESSION_TOKEN");
        Some(Credentials::new(access_key, secret_key, token))
    }

    async fn of_profile(&self, name: &str) -> Result<Option<Credentials>> {
        let profiles = profile::Profiles::read(self.environment)?;
        match profiles.plan(name)? {
            profile::Plan::Nothing => Ok(None),
            profile::Plan::Keys(keys) => Ok(Some(keys)),
            profile::Plan::Process(command) => run_process(&command).await.map(Some),
            profile::Plan::WebIdentity { role, token_file } => {
                remote::assume_with_token(self, &role, &token_file).await.map(Some)
            }
            profile::Plan::Role { role, with } => {
                let keys = match *with {
                    profile::Plan::Keys(keys) => keys,
                    profile::Plan::Process(command) => run_process(&command).await?,
                    _ => return Err(denied(format!("the source of profile {name} has no keys"))),
                };
                remote::assume(self, &role, &keys).await.map(Some)
            }
        }
    }

    async fn of_web_identity(&self) -> Result<Option<Credentials>> {
        let token_file = self.environment.get("AWS_WEB_IDENTITY_TOKEN_FILE");
        let arn = self.environment.get("AWS_ROLE_ARN");
        let (Some(token_file), Some(arn)) = (token_file, arn) else { return Ok(None) };
        let session = self.environment.get("AWS_ROLE_SESSION_NAME");
        let role = profile::Role { arn, session, external_id: None };
        remote::assume_with_token(self, &role, &token_file).await.map(Some)
    }
}

/// What processes, containers and machines print.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Printed {
    access_key_id: String,
    secret_access_key: String,
    #[serde(alias = "Token")]
    session_token: Option<String>,
    expiration: Option<String>,
}

fn parse_printed(from: &str, bytes: &[u8]) -> Result<Credentials> {
    // The text may hold secrets, so the message does not quote it.
    let printed: Printed = serde_json::from_slice(bytes)
        .map_err(|_| denied(format!("{from} did not print credentials as JSON")))?;
    let expires = printed.expiration.as_deref().and_then(clock::parse_iso);
    let keys = Credentials::new(
        printed.access_key_id,
        printed.secret_access_key,
        printed.session_token.filter(|token| !token.is_empty()),
    );
    Ok(Credentials { expires, ..keys })
}

async fn run_process(command: &str) -> Result<Credentials> {
    let output = tokio::process::Command::new("sh")
        .args(["-c", command])
        .stdin(std::process::Stdio::null())
        .stderr(std::process::Stdio::inherit())
        .kill_on_drop(true)
        .output()
        .await
        .map_err(|error| denied(format!("credential_process: {error}")))?;
    if !output.status.success() {
        return Err(denied(format!("credential_process ended with {}", output.status)));
    }
    parse_printed("credential_process", &output.stdout)
}

fn denied(detail: impl Into<String>) -> Error {
    Error::new(ErrorKind::Denied, "", detail)
}

#[cfg(test)]
mod tests;
