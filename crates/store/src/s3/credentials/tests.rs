//! Credentials from every link of the chain, in its order.

use super::*;
use std::collections::BTreeMap;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn resolver(variables: &[(&str, &str)]) -> CachedCredentials {
    let variables: BTreeMap<String, String> =
        variables.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let http = Http::new(Duration::from_secs(5), Duration::from_secs(5)).unwrap();
    let mut cached = CachedCredentials::new(CredentialSource::Chain, http);
    cached.environment = Environment(Arc::new(move |name| variables.get(name).cloned()));
    cached
}

async fn found(variables: &[(&str, &str)]) -> Result<Credentials> {
    // No test may ask the machine it runs on.
    let mut all = vec![("AWS_EC2_METADATA_DISABLED", "true")];
    all.extend_from_slice(variables);
    resolver(&all).get().await.map(|keys| keys.unwrap())
}

/// Answers each request by what its first line starts with; returns the address.
async fn service(answers: &'static [(&'static str, &'static str)]) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                request.push(socket.read_u8().await.unwrap());
            }
            let request = String::from_utf8_lossy(&request).into_owned();
            let answer = answers.iter().find(|(start, _)| request.starts_with(start));
            let (status, body) =
                answer.map_or(("404 Not Found", ""), |(_, body)| ("200 OK", *body));
            let length = body.len();
            let head =
                format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}");
            socket.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).await.unwrap();
        }
    });
    format!("http://{address}")
}

const JSON: &str =
    r#"{"AccessKeyId":"J","SecretAccessKey":"s","Token":"t","Expiration":"2999-01-01T00:00:00Z"}"#;

#[tokio::test]
async fn the_environment_comes_first_then_the_profile() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("credentials");
    std::fs::write(&file, "[default]\naws_access_key_id=P\naws_secret_access_key=s\n[other]\naws_access_key_id=O\naws_secret_access_key=s\n").unwrap();
    let file = file.to_str().unwrap();
    let shared = ("AWS_SHARED_CREDENTIALS_FILE", file);
    let keys = [("AWS_ACCESS_KEY_ID", "E"), ("AWS_SECRET_ACCESS_KEY", "s")];
    assert_eq!(found(&[keys[0], keys[1], shared]).await.unwrap().access_key, "E");
    assert_eq!(found(&[shared]).await.unwrap().access_key, "P");
    assert_eq!(found(&[shared, ("AWS_PROFILE", "other")]).await.unwrap().access_key, "O");
    let error = found(&[]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(error.to_string().contains("AWS_ACCESS_KEY_ID"), "{error}");
}

#[tokio::test]
async fn a_process_prints_them() {
    let dir = tempfile::tempdir().unwrap();
    let (config, script) = (dir.path().join("config"), dir.path().join("json"));
    std::fs::write(&script, JSON).unwrap();
    let text = format!(
        "[default]\ncredential_process = cat '{}'\n[profile bad]\ncredential_process = echo secret; false\n",
        script.display()
    );
    std::fs::write(&config, text).unwrap();
    let config = ("AWS_CONFIG_FILE", config.to_str().unwrap());
    let keys = found(&[config]).await.unwrap();
    assert_eq!((&*keys.access_key, keys.session_token.as_deref()), ("J", Some("t")));
    assert!(keys.expires.is_some());
    let error = found(&[config, ("AWS_PROFILE", "bad")]).await.unwrap_err().to_string();
    assert!(error.contains("credential_process") && !error.contains("secret"), "{error}");
}

#[tokio::test]
async fn a_role_is_taken_on_with_a_token_or_with_keys() {
    const WEB: &str = "<AssumeRoleWithWebIdentityResponse xmlns=\"x\"><AssumeRoleWithWebIdentityResult>\
        <Credentials><AccessKeyId>W</AccessKeyId><SecretAccessKey>s</SecretAccessKey>\
        <SessionToken>t</SessionToken><Expiration>2999-01-01T00:00:00Z</Expiration></Credentials>\
        </AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>";
    const ROLE: &str = "<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>R</AccessKeyId>\
        <SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken></Credentials>\
        </AssumeRoleResult></AssumeRoleResponse>";
    let sts = service(&[
        ("GET /?Action=AssumeRoleWithWebIdentity&RoleArn=arn%3Ax&RoleSessionName=store&Version=2011-06-15&WebIdentityToken=tok ", WEB),
        ("GET /?Action=AssumeRole&ExternalId=id&RoleArn=arn%3Ay&", ROLE),
    ])
    .await;
    let dir = tempfile::tempdir().unwrap();
    let (token, config) = (dir.path().join("token"), dir.path().join("config"));
    std::fs::write(&token, "tok\n").unwrap();
    std::fs::write(&config, "[profile base]\naws_access_key_id=B\naws_secret_access_key=s\n[profile r]\nrole_arn=arn:y\nexternal_id=id\nsource_profile=base\n").unwrap();
    let sts = ("AWS_ENDPOINT_URL_STS", sts.as_str());
    let token = ("AWS_WEB_IDENTITY_TOKEN_FILE", token.to_str().unwrap());
    let keys = found(&[sts, token, ("AWS_ROLE_ARN", "arn:x")]).await.unwrap();
    assert_eq!(keys.access_key, "W");
    let config = ("AWS_CONFIG_FILE", config.to_str().unwrap());
    let keys = found(&[sts, config, ("AWS_PROFILE", "r")]).await.unwrap();
    assert_eq!(keys.access_key, "R");
}

#[tokio::test]
async fn containers_and_machines_hand_them_out() {
    let address = service(&[
        ("GET /container", JSON),
        ("PUT /latest/api/token", "token"),
        ("GET /latest/meta-data/iam/security-credentials/role", JSON),
        ("GET /latest/meta-data/iam/security-credentials/", "role\n"),
    ])
    .await;
    let url = format!("{address}/container");
    let full = |url: &'static str| ("AWS_CONTAINER_CREDENTIALS_FULL_URI", url);
    assert_eq!(
        found(&[("AWS_CONTAINER_CREDENTIALS_FULL_URI", &url)]).await.unwrap().access_key,
        "J"
    );
    let error = found(&[full("http://example.org/x")]).await.unwrap_err();
    assert!(error.to_string().contains("nearby"), "{error}");
    let machine = resolver(&[("AWS_EC2_METADATA_SERVICE_ENDPOINT", &address)]);
    assert_eq!(machine.get().await.unwrap().unwrap().access_key, "J");
}

#[tokio::test]
async fn credentials_are_kept_until_they_end_or_are_forgotten() {
    let dir = tempfile::tempdir().unwrap();
    let (config, count) = (dir.path().join("config"), dir.path().join("count"));
    let json = JSON.replace('"', "\\\"");
    let text = format!(
        "[default]\ncredential_process = echo x >> '{}'; printf '%s' \"{json}\"\n",
        count.display()
    );
    std::fs::write(&config, text).unwrap();
    let cached = resolver(&[("AWS_CONFIG_FILE", config.to_str().unwrap())]);
    let asked = || std::fs::read_to_string(&count).unwrap().lines().count();
    for _ in 0..3 {
        cached.get().await.unwrap();
    }
    assert_eq!(asked(), 1);
    cached.forget();
    cached.get().await.unwrap();
    assert_eq!(asked(), 2);
    cached.cached.lock().await.as_mut().unwrap().expires = Some(SystemTime::now());
    cached.get().await.unwrap();
    assert_eq!(asked(), 3);
}

#[test]
fn secrets_are_not_printed() {
    let keys = Credentials::new("AK", "very secret", Some("token".into()));
    let shown = format!("{keys:?}");
    assert!(shown.contains("AK") && !shown.contains("secret") && !shown.contains("token"));
}
