//! Credentials from every link of the chain, in its order.

use super::*;
use crate::s3::connect::Connecting;
use std::collections::BTreeMap;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn resolver(variables: &[(&str, &str)]) -> CachedCredentials {
    let variables: BTreeMap<String, String> =
        variables.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let five = Duration::from_secs(5);
    let http = Http::new(five, five, &Connecting::default()).unwrap();
    let environment = Environment(Arc::new(move |name| variables.get(name).cloned()));
    CachedCredentials::within(environment, CredentialSource::Chain, http)
}

async fn found(variables: &[(&str, &str)]) -> Result<Credentials> {
    // No test may ask the machine it runs on.
    let mut all = vec![("AWS_EC2_METADATA_DISABLED", "true")];
    all.extend_from_slice(variables);
    resolver(&all).get().await.map(|keys| keys.unwrap())
}

/// Answers each request by what its first line starts with; returns the address.
async fn service(answers: &'static [(&'static str, &'static str)]) -> String {
    service_that_wants("", answers).await
}

/// The same of a service that refuses requests without this line in their head.
async fn service_that_wants(
    line: &'static str,
    answers: &'static [(&'static str, &'static str)],
) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                request.push(socket.read_u8().await.unwrap());
            }
            let mut request = String::from_utf8_lossy(&request).into_owned();
            let is_let_in = line.is_empty() || request.lines().any(|found| found == line);
            let lines = request.to_lowercase();
            let length = lines.lines().find_map(|line| line.strip_prefix("content-length: "));
            let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
            socket.read_exact(&mut body).await.unwrap();
            // What is asked for by POST is answered as if it stood in the first line.
            if let Some(rest) = request.strip_prefix("POST / ") {
                request = format!("POST /?{} {rest}", String::from_utf8_lossy(&body));
            }
            let answer = answers.iter().find(|(start, _)| request.starts_with(start));
            let (status, body) = match answer {
                _ if !is_let_in => ("401 Unauthorized", ""),
                None => ("404 Not Found", ""),
                Some((_, "busy")) => ("503 Service Unavailable", ""),
                Some((_, body)) => ("200 OK", *body),
            };
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
        ("POST /?Action=AssumeRoleWithWebIdentity&RoleArn=arn%3Ax&RoleSessionName=store&Version=2011-06-15&WebIdentityToken=tok ", WEB),
        ("POST /?Action=AssumeRole&ExternalId=id&RoleArn=arn%3Ay&", ROLE),
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
    let expires = |left: u64| {
        let cached = &cached;
        async move {
            let mut state = cached.0.state.lock().await;
            state.keys.as_mut().unwrap().expires =
                Some(SystemTime::now() + Duration::from_secs(left));
        }
    };
    expires(0).await;
    cached.get().await.unwrap();
    assert_eq!(asked(), 3);
    // Shortly before the end they are renewed once, and no request waits for that.
    expires(100).await;
    for _ in 0..5 {
        cached.get().await.unwrap();
    }
    let deadline = std::time::Instant::now() + Duration::from_secs(10);
    while cached.0.renewing.load(Ordering::Acquire) {
        assert!(std::time::Instant::now() < deadline);
        tokio::task::yield_now().await;
    }
    cached.get().await.unwrap();
    assert_eq!(asked(), 4);
}

#[tokio::test]
async fn a_renewal_that_fails_is_not_tried_with_every_request() {
    let dir = tempfile::tempdir().unwrap();
    let (config, count) = (dir.path().join("config"), dir.path().join("count"));
    let text = format!("[default]\ncredential_process = echo x >> '{}'; false\n", count.display());
    std::fs::write(&config, text).unwrap();
    let cached = resolver(&[("AWS_CONFIG_FILE", config.to_str().unwrap())]);
    let old = Credentials::new("OLD", "s", None);
    let expires = Some(SystemTime::now() + Duration::from_secs(100));
    cached.0.state.lock().await.keys = Some(Credentials { expires, ..old });
    for _ in 0..20 {
        assert_eq!(cached.get().await.unwrap().unwrap().access_key, "OLD");
        while cached.0.renewing.load(Ordering::Acquire) {
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(std::fs::read_to_string(&count).unwrap().lines().count(), 1);
}

#[tokio::test]
async fn roles_are_chained_and_take_their_keys_from_where_the_profile_says() {
    fn role(key: &str) -> String {
        format!(
            "<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>{key}</AccessKeyId>\
             <SecretAccessKey>s</SecretAccessKey></Credentials></AssumeRoleResult>\
             </AssumeRoleResponse>"
        )
    }
    let answers: Vec<(&'static str, &'static str)> = vec![
        ("POST /?Action=AssumeRole&RoleArn=arn%3Afirst&", role("FIRST").leak()),
        ("POST /?Action=AssumeRole&RoleArn=arn%3Asecond&", role("SECOND").leak()),
        ("POST /?Action=AssumeRole&RoleArn=arn%3Atask&", role("TASK").leak()),
        ("GET /container", JSON),
    ];
    let address = service(answers.leak()).await;
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("config");
    std::fs::write(
        &config,
        "[profile base]\naws_access_key_id=B\naws_secret_access_key=s\n\
         [profile first]\nrole_arn=arn:first\nsource_profile=base\n\
         [profile second]\nrole_arn=arn:second\nsource_profile=first\n\
         [profile task]\nrole_arn=arn:task\ncredential_source=EcsContainer\n\
         [profile keys]\nrole_arn=arn:task\ncredential_source=Environment\n\
         [profile odd]\nrole_arn=arn:task\ncredential_source=Elsewhere\n\
         [profile none]\nrole_arn=arn:task\n",
    )
    .unwrap();
    let container = format!("{address}/container");
    let common = [
        ("AWS_CONFIG_FILE", config.to_str().unwrap()),
        ("AWS_ENDPOINT_URL_STS", address.as_str()),
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", container.as_str()),
    ];
    let of = |profile: &'static str| {
        let variables = [&common[..], &[("AWS_PROFILE", profile)]].concat();
        async move { found(&variables).await.map(|keys| keys.access_key) }
    };
    assert_eq!(of("second").await.unwrap(), "SECOND");
    assert_eq!(of("task").await.unwrap(), "TASK");
    let error = of("keys").await.unwrap_err().to_string();
    assert!(error.contains("Environment"), "{error}");
    let error = of("odd").await.unwrap_err().to_string();
    assert!(error.contains("EcsContainer"), "{error}");
    let error = of("none").await.unwrap_err().to_string();
    assert!(error.contains("source_profile"), "{error}");
}

#[tokio::test]
async fn a_pod_shows_its_token_and_the_token_is_read_anew() {
    let answers: &[(&str, &str)] = &[("GET /v1/credentials", JSON)];
    let address = service_that_wants("authorization: secret-of-the-pod", answers).await;
    let dir = tempfile::tempdir().unwrap();
    let token = dir.path().join("token");
    std::fs::write(&token, "secret-of-the-pod\n").unwrap();
    let url = format!("{address}/v1/credentials");
    let pod = [
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", url.as_str()),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", token.to_str().unwrap()),
    ];
    assert_eq!(found(&pod).await.unwrap().access_key, "J");
    std::fs::write(&token, "an-older-one").unwrap();
    let error = found(&pod).await.unwrap_err().to_string();
    assert!(error.contains("401") && !error.contains("an-older-one"), "{error}");
    std::fs::write(&token, "secret-of-the-pod").unwrap();
    assert_eq!(found(&pod).await.unwrap().access_key, "J");
    // ECS gives the token itself.
    let ecs = [pod[0], ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "secret-of-the-pod")];
    assert_eq!(found(&ecs).await.unwrap().access_key, "J");
    std::fs::remove_file(&token).unwrap();
    let error = found(&pod).await.unwrap_err().to_string();
    assert!(error.contains("token") && !error.contains("secret-of"), "{error}");
}

#[test]
fn a_profile_gives_the_address_of_s3_by_its_services_or_for_all() {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("config");
    std::fs::write(
        &config,
        "[profile a]\nendpoint_url = https://all.example\nservices = mine\n\
         [services mine]\ns3 =\n  endpoint_url = https://s3.example\n\
         [profile b]\nendpoint_url = https://all.example\ns3 =\n  region = nowhere\n",
    )
    .unwrap();
    let config = config.to_str().unwrap().to_owned();
    let environment =
        Environment(Arc::new(move |name| (name == "AWS_CONFIG_FILE").then(|| config.clone())));
    let profiles = profile::Profiles::read(&environment).unwrap();
    assert_eq!(profiles.endpoint("a").as_deref(), Some("https://s3.example"));
    assert_eq!(profiles.endpoint("b").as_deref(), Some("https://all.example"));
    assert_eq!(profiles.get("b").unwrap().get("region"), None);
}

#[test]
fn a_container_of_ecs_asks_at_the_address_of_its_platform() {
    let of = |variables: &'static [(&'static str, &'static str)]| {
        let find = move |name: &str| {
            variables.iter().find(|(n, _)| *n == name).map(|(_, value)| value.to_string())
        };
        remote::container_url(&Environment(Arc::new(find)))
    };
    let relative = ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/credentials/x");
    let full = ("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://169.254.170.23/v1/credentials");
    let both: &'static [_] = Box::leak(Box::new([relative, full]));
    assert_eq!(of(both).as_deref(), Some("http://169.254.170.2/v2/credentials/x"));
    assert_eq!(of(&both[1..]).as_deref(), Some(full.1));
    assert_eq!(of(&[]), None);
}

#[tokio::test]
async fn a_machine_whose_service_is_busy_is_asked_again() {
    let address = service(&[("PUT /latest/api/token", "busy")]).await;
    let machine = resolver(&[("AWS_EC2_METADATA_SERVICE_ENDPOINT", &address)]);
    assert!(machine.get().await.unwrap_err().is_retryable());
    let absent = resolver(&[("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1:9")]);
    assert_eq!(absent.get().await.unwrap_err().kind(), ErrorKind::Denied);
}

#[tokio::test]
async fn an_expiration_that_is_no_time_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("config");
    let json = JSON.replace("2999-01-01T00:00:00Z", "tomorrow").replace('"', "\\\"");
    let text = format!("[default]\ncredential_process = printf '%s' \"{json}\"\n");
    std::fs::write(&config, text).unwrap();
    let error = found(&[("AWS_CONFIG_FILE", config.to_str().unwrap())]).await.unwrap_err();
    assert!(error.to_string().contains("tomorrow"), "{error}");
}

#[test]
fn secrets_are_not_printed() {
    let keys = Credentials::new("AK", "very secret", Some("token".into()));
    let shown = format!("{keys:?}");
    assert!(shown.contains("AK") && !shown.contains("secret") && !shown.contains("token"));
}
