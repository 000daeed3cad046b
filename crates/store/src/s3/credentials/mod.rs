//! Who we are: keys from the places where the tools of Amazon look for them, in the same order.

mod profile;
mod remote;

use super::clock;
use super::config::env;
use super::http::Http;
use crate::error::{Error, ErrorKind, Result};
use futures_util::future::BoxFuture;
use profile::Plan;
use serde::Deserialize;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};
use tokio::sync::Mutex;
use tokio::time::Instant;

/// Keys that end are renewed when they have less than this left.
const RENEW_BEFORE: Duration = Duration::from_secs(300);
/// So long after a renewal failed, the next is tried.
const RENEW_PAUSE: Duration = Duration::from_secs(20);
/// A process that has not printed keys by then is ended: requests wait for it.
const PROCESS_TIMEOUT: Duration = Duration::from_secs(60);

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
    /// What the profile says beside credentials: `region`, `endpoint_url`, `ca_bundle`.
    pub(super) fn setting_of_profile(&self, name: &str) -> Option<String> {
        let environment = Environment::of_process();
        let profile = match self {
            CredentialSource::Chain => environment.profile(),
            CredentialSource::Profile(name) => name.clone(),
            CredentialSource::Static(_) | CredentialSource::Anonymous => return None,
        };
        let profiles = profile::Profiles::read(&environment).ok()?;
        let value = match name {
            "endpoint_url" => profiles.endpoint(&profile),
            _ => profiles.get(&profile)?.get(name).cloned(),
        };
        value.filter(|value| !value.is_empty())
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

    fn region(&self) -> Option<String> {
        self.get("AWS_REGION").or_else(|| self.get("AWS_DEFAULT_REGION"))
    }

    /// A file of the user, or the one that a variable names.
    fn file(&self, variable: &str, default: &str) -> Option<PathBuf> {
        let named = self.get(variable).map(PathBuf::from);
        named.or_else(|| Some(PathBuf::from(self.get("HOME")?).join(".aws").join(default)))
    }
}

/// Credentials, asked for again before they end.
pub(super) struct CachedCredentials(Arc<Cache>);

struct Cache {
    source: CredentialSource,
    environment: Environment,
    http: Http,
    state: Mutex<State>,
    /// The server says that they have ended.
    forgotten: AtomicBool,
    /// They are being renewed while the old ones are still good.
    renewing: AtomicBool,
}

#[derive(Default)]
struct State {
    keys: Option<Credentials>,
    /// After a renewal that failed, the next is tried no sooner than this.
    renew_after: Option<Instant>,
}

impl CachedCredentials {
    pub(super) fn new(source: CredentialSource, http: Http) -> CachedCredentials {
        CachedCredentials::within(Environment::of_process(), source, http)
    }

    fn within(environment: Environment, source: CredentialSource, http: Http) -> CachedCredentials {
        CachedCredentials(Arc::new(Cache {
            source,
            environment,
            http,
            state: Mutex::default(),
            forgotten: AtomicBool::new(false),
            renewing: AtomicBool::new(false),
        }))
    }

    /// The credentials to sign with; `None` to not sign at all. Only the first request, and those
    /// after the end of all keys, wait for new ones.
    pub(super) async fn get(&self) -> Result<Option<Credentials>> {
        if self.0.source == CredentialSource::Anonymous {
            return Ok(None);
        }
        let mut state = self.0.state.lock().await;
        if self.0.forgotten.swap(false, Ordering::Relaxed) {
            *state = State::default();
        }
        let now = SystemTime::now();
        if let Some(keys) = state.keys.clone() {
            let left = keys.expires.map(|end| end.duration_since(now).unwrap_or_default());
            let rests = state.renew_after.is_some_and(|after| Instant::now() < after);
            match left {
                Some(left) if left.is_zero() => {}
                Some(left) if left < RENEW_BEFORE && !rests => {
                    self.0.clone().renew();
                    return Ok(Some(keys));
                }
                _ => return Ok(Some(keys)),
            }
        }
        let keys = self.0.find().await?;
        *state = State { keys: Some(keys.clone()), renew_after: None };
        Ok(Some(keys))
    }

    /// Asks again next time: the server says they have ended.
    pub(super) fn forget(&self) {
        self.0.forgotten.store(true, Ordering::Relaxed);
    }
}

impl Cache {
    async fn find(&self) -> Result<Credentials> {
        let resolver = Resolver { environment: &self.environment, http: &self.http };
        match &self.source {
            CredentialSource::Anonymous => Err(denied("no credentials are asked for")),
            CredentialSource::Static(keys) => Ok(keys.clone()),
            CredentialSource::Profile(name) => match resolver.of_profile(name).await {
                Ok(Some(keys)) => Ok(keys),
                Ok(None) => Err(denied(format!("the profile {name} has no credentials"))),
                Err(error) => Err(error),
            },
            CredentialSource::Chain => resolver.of_chain().await,
        }
    }

    /// Renews keys that are still good, in the background and once.
    fn renew(self: Arc<Cache>) {
        if self.renewing.swap(true, Ordering::AcqRel) {
            return;
        }
        tokio::spawn(async move {
            let found = self.find().await;
            let mut state = self.state.lock().await;
            match found {
                Ok(keys) => *state = State { keys: Some(keys), renew_after: None },
                Err(error) => {
                    tracing::warn!("credentials could not be renewed yet: {error}");
                    state.renew_after = Some(Instant::now() + RENEW_PAUSE);
                }
            }
            drop(state);
            self.renewing.store(false, Ordering::Release);
        });
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
        self.of_plan(profiles.plan(name)?).await
    }

    /// Follows a plan, through as many roles as it chains.
    fn of_plan(&self, plan: Plan) -> BoxFuture<'_, Result<Option<Credentials>>> {
        Box::pin(async move {
            match plan {
                Plan::Nothing => Ok(None),
                Plan::Keys(keys) => Ok(Some(keys)),
                Plan::Process(command) => run_process(&command).await.map(Some),
                Plan::Environment => Ok(self.of_environment()),
                Plan::Container => remote::of_container(self).await,
                Plan::Machine => remote::of_machine(self).await,
                Plan::WebIdentity { role, token_file } => {
                    remote::assume_with_token(self, &role, &token_file).await.map(Some)
                }
                Plan::Role { role, with, source } => {
                    let keys = self.of_plan(*with).await?.ok_or_else(|| {
                        denied(format!("{source}, the source of {}, has no keys", role.arn))
                    })?;
                    remote::assume(self, &role, &keys).await.map(Some)
                }
            }
        })
    }

    async fn of_web_identity(&self) -> Result<Option<Credentials>> {
        let token_file = self.environment.get("AWS_WEB_IDENTITY_TOKEN_FILE");
        let arn = self.environment.get("AWS_ROLE_ARN");
        let (Some(token_file), Some(arn)) = (token_file, arn) else { return Ok(None) };
        let session = self.environment.get("AWS_ROLE_SESSION_NAME");
        let role = profile::Role { arn, session, external_id: None, region: None };
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
    // Keys whose end is not known would be used for ever.
    let expires = match printed.expiration.as_deref() {
        None => None,
        Some(text) => Some(clock::parse_iso(text).ok_or_else(|| {
            denied(format!("{from} printed an expiration that is no time in UTC: {text:?}"))
        })?),
    };
    let keys = Credentials::new(
        printed.access_key_id,
        printed.secret_access_key,
        printed.session_token.filter(|token| !token.is_empty()),
    );
    Ok(Credentials { expires, ..keys })
}

async fn run_process(command: &str) -> Result<Credentials> {
    let printing = tokio::process::Command::new("sh")
        .args(["-c", command])
        .stdin(std::process::Stdio::null())
        .stderr(std::process::Stdio::inherit())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(PROCESS_TIMEOUT, printing).await.map_err(|_| {
        let detail = format!("credential_process did not end in {} s", PROCESS_TIMEOUT.as_secs());
        Error::new(ErrorKind::Transient, "", detail)
    })?;
    let output = output.map_err(|error| denied(format!("credential_process: {error}")))?;
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
