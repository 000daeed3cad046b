//! Credentials that a service hands out: roles, containers and machines.

use super::profile::Role;
use super::{Credentials, Environment, Resolver, denied, parse_printed};
use crate::checksum::Sha256Digest;
use crate::error::{Error, ErrorKind, Result};
use crate::s3::config::domain;
use crate::s3::connect::Connecting;
use crate::s3::http::{Http, Watched};
use crate::s3::sign::{ToSign, query_string, sign};
use crate::s3::{clock, xml};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, HeaderValue};
use http::{HeaderMap, Method, Uri};
use std::time::{Duration, SystemTime};

const ANSWER_BYTES_MAX: usize = 256 * 1024;
/// The metadata service is on the machine itself: where it does not answer at once, there is none.
const NEARBY: Duration = Duration::from_secs(2);
/// The addresses at which containers get credentials without TLS.
const CONTAINER_HOSTS: [&str; 5] =
    ["169.254.170.2", "169.254.170.23", "127.0.0.1", "localhost", "[fd00:ec2::23]"];

/// Takes on a role with a token that the platform wrote into a file.
pub(super) async fn assume_with_token(
    resolver: &Resolver<'_>,
    role: &Role,
    token_file: &str,
) -> Result<Credentials> {
    let token = std::fs::read_to_string(token_file)
        .map_err(|error| denied(format!("the web identity token {token_file}: {error}")))?;
    let mut query = role_query("AssumeRoleWithWebIdentity", role);
    query.push(("WebIdentityToken".into(), token.trim().into()));
    let answer = call_sts(resolver, &query, role, None).await?;
    credentials_of(&answer, "AssumeRoleWithWebIdentityResult")
}

/// Takes on a role with the keys of another profile.
pub(super) async fn assume(
    resolver: &Resolver<'_>,
    role: &Role,
    keys: &Credentials,
) -> Result<Credentials> {
    let query = role_query("AssumeRole", role);
    let answer = call_sts(resolver, &query, role, Some(keys)).await?;
    credentials_of(&answer, "AssumeRoleResult")
}

fn role_query(action: &str, role: &Role) -> Vec<(String, String)> {
    let session = role.session.clone().unwrap_or_else(|| "store".into());
    let mut query = vec![
        ("Action".into(), action.into()),
        ("Version".into(), "2011-06-15".into()),
        ("RoleArn".into(), role.arn.clone()),
        ("RoleSessionName".into(), session),
    ];
    if let Some(id) = &role.external_id {
        query.push(("ExternalId".into(), id.clone()));
    }
    query
}

/// Asks the service that hands out keys for roles. By POST: a token is a secret, and addresses end
/// up in logs.
async fn call_sts(
    resolver: &Resolver<'_>,
    query: &[(String, String)],
    role: &Role,
    keys: Option<&Credentials>,
) -> Result<Bytes> {
    let region = resolver.environment.region().or_else(|| role.region.clone());
    let region = region.unwrap_or_else(|| "us-east-1".into());
    let endpoint = resolver.environment.get("AWS_ENDPOINT_URL_STS");
    let endpoint = endpoint.unwrap_or_else(|| format!("https://sts.{region}.{}", domain(&region)));
    let endpoint = endpoint.trim_end_matches('/');
    let body = Bytes::from(query_string(query));
    let mut headers = HeaderMap::new();
    let form = "application/x-www-form-urlencoded; charset=utf-8";
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(form));
    if let Some(keys) = keys {
        let uri: Uri = endpoint.parse().map_err(|_| denied(format!("{endpoint}: not a URL")))?;
        let host = uri.authority().map_or("", |authority| authority.as_str());
        let bad = |_| denied("a header of the request for a role is not allowed");
        headers.insert(HOST, HeaderValue::from_str(host).map_err(bad)?);
        let request = ToSign {
            method: "POST",
            path: "/",
            query: &[],
            payload: Sha256Digest::of(&body),
            region: &region,
            service: "sts",
            now: SystemTime::now(),
        };
        sign(&mut headers, &request, keys).map_err(bad)?;
    }
    call(resolver.http, Method::POST, &format!("{endpoint}/"), headers, body).await
}

fn credentials_of(answer: &[u8], result: &str) -> Result<Credentials> {
    let read = || {
        let document = xml::parse(answer).ok()?;
        let keys = document.children(result).next()?.children("Credentials").next()?;
        let token = keys.text_of("SessionToken").map(str::to_owned);
        let found =
            Credentials::new(keys.text_of("AccessKeyId")?, keys.text_of("SecretAccessKey")?, token);
        Some(Credentials {
            expires: keys.text_of("Expiration").and_then(clock::parse_iso),
            ..found
        })
    };
    read().ok_or_else(|| denied("the answer for a role holds no credentials"))
}

/// The address that a container platform offers.
pub(super) async fn of_container(resolver: &Resolver<'_>) -> Result<Option<Credentials>> {
    let environment = resolver.environment;
    let Some(url) = container_url(environment) else { return Ok(None) };
    let uri: Uri = url.parse().map_err(|_| denied(format!("{url}: not a URL")))?;
    let near = uri.host().is_some_and(|host| CONTAINER_HOSTS.contains(&host));
    if uri.scheme_str() != Some("https") && !near {
        return Err(denied(format!("{url}: credentials are asked for only nearby or by https")));
    }
    let mut headers = HeaderMap::new();
    let token = match environment.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE") {
        Some(path) => {
            let read = std::fs::read_to_string(&path);
            Some(read.map_err(|error| denied(format!("{path}: {error}")))?.trim().to_owned())
        }
        None => environment.get("AWS_CONTAINER_AUTHORIZATION_TOKEN"),
    };
    if let Some(token) = token {
        let token = HeaderValue::from_str(&token);
        headers.insert("authorization", token.map_err(|_| denied("the container's token"))?);
    }
    let answer = call(&nearby()?, Method::GET, &url, headers, Bytes::new()).await?;
    parse_printed("the container's service", &answer).map(Some)
}

/// Where a container asks: ECS gives a path at an address of its own, EKS and others a whole URL.
pub(super) fn container_url(environment: &Environment) -> Option<String> {
    match environment.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") {
        Some(path) => Some(format!("http://169.254.170.2{path}")),
        None => environment.get("AWS_CONTAINER_CREDENTIALS_FULL_URI"),
    }
}

/// The metadata service of a virtual machine; no answer means that there is none.
pub(super) async fn of_machine(resolver: &Resolver<'_>) -> Result<Option<Credentials>> {
    let environment = resolver.environment;
    if environment.get("AWS_EC2_METADATA_DISABLED").is_some_and(|v| v.eq_ignore_ascii_case("true"))
    {
        return Ok(None);
    }
    let endpoint = environment.get("AWS_EC2_METADATA_SERVICE_ENDPOINT");
    let endpoint = endpoint.unwrap_or_else(|| "http://169.254.169.254".into());
    let endpoint = endpoint.trim_end_matches('/');
    let http = nearby()?;
    let mut headers = HeaderMap::new();
    headers.insert("x-aws-ec2-metadata-token-ttl-seconds", HeaderValue::from_static("21600"));
    let token_url = format!("{endpoint}/latest/api/token");
    let token = call(&http, Method::PUT, &token_url, headers, Bytes::new()).await;
    let Some(token) = unless_absent(token)? else { return Ok(None) };
    let token = HeaderValue::from_bytes(&token).map_err(|_| denied("the machine's token"))?;
    let mut headers = HeaderMap::new();
    headers.insert("x-aws-ec2-metadata-token", token);
    let roles_url = format!("{endpoint}/latest/meta-data/iam/security-credentials/");
    let roles = call(&http, Method::GET, &roles_url, headers.clone(), Bytes::new()).await;
    let Some(roles) = unless_absent(roles)? else { return Ok(None) };
    let roles = String::from_utf8_lossy(&roles).into_owned();
    let Some(role) = roles.lines().next().map(str::trim).filter(|role| !role.is_empty()) else {
        return Ok(None);
    };
    let answer =
        call(&http, Method::GET, &format!("{roles_url}{role}"), headers, Bytes::new()).await?;
    parse_printed("the machine's metadata service", &answer).map(Some)
}

/// Nothing, where the service is not there or knows no role. One that is there and cannot answer just
/// now is asked again.
fn unless_absent(answer: Result<Bytes>) -> Result<Option<Bytes>> {
    match answer {
        Err(error) if error.kind() == ErrorKind::Throttled => Err(error),
        answer => Ok(answer.ok()),
    }
}

fn nearby() -> Result<Http> {
    Http::new(NEARBY, NEARBY, &Connecting::default())
}

/// One request for credentials. What went wrong in between is worth another try.
async fn call(
    http: &Http,
    method: Method,
    url: &str,
    headers: HeaderMap,
    content: Bytes,
) -> Result<Bytes> {
    let place = url.split('?').next().unwrap_or_default();
    let lost = |why: String| {
        Error::new(ErrorKind::Transient, "", format!("asking {place} for credentials: {why}"))
    };
    let (body, moment) = Watched::new(content);
    let mut request = http::Request::builder().method(method).uri(url);
    if let Some(map) = request.headers_mut() {
        *map = headers;
    }
    let request = request.body(body).map_err(|error| denied(format!("{place}: {error}")))?;
    let mut answer = match http.send(request, moment).await {
        Ok(answer) => answer,
        Err(error) if error.for_good => return Err(denied(format!("{place}: {error}"))),
        Err(error) => return Err(lost(error.why)),
    };
    let body = answer.read(ANSWER_BYTES_MAX).await.map_err(lost)?;
    match answer.status.as_u16() {
        200..=299 => Ok(body),
        408 | 429 | 500..=599 => {
            let detail = format!("asking {place} for credentials: it answered {}", answer.status);
            Err(Error::new(ErrorKind::Throttled, "", detail))
        }
        _ => Err(denied(format!("{place} answered {}", answer.status))),
    }
}
