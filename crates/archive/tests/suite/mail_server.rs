//! Mail to a server that others wrote: `aiosmtpd`, in the clear, by STARTTLS and by TLS from the
//! start, the latter two with a login.

use archive::transfer::mail::{Mail, MailSettings, Security, probe, send};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// Takes mail and prints what it took, one JSON document a line; the first line is the port. It
/// ends when its input does.
const SERVER: &str = r#"
import asyncio, json, ssl, sys
from aiosmtpd.smtp import SMTP, AuthResult

class Handler:
    async def handle_RCPT(self, server, session, envelope, address, options):
        if address.startswith("later"):
            return "451 4.7.1 come back later"
        if address.startswith("nobody"):
            return "550 5.1.1 no such user"
        if address.startswith("slow"):
            await asyncio.sleep(600)
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        print(json.dumps({
            "from": envelope.mail_from, "to": envelope.rcpt_tos, "tls": session.ssl is not None,
            "login": session.authenticated, "mail": envelope.content.decode("utf-8"),
        }), flush=True)
        return "250 taken"

def login(server, session, envelope, mechanism, data):
    right = data.login == b"archive" and data.password == b"open sesame"
    return AuthResult(success=right, handled=False)

context, wrapped = None, len(sys.argv) > 3
if len(sys.argv) > 1:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(sys.argv[1], sys.argv[2])

def protocol():
    if context is None:
        return SMTP(Handler())
    if wrapped:
        return SMTP(Handler(), auth_required=True, auth_require_tls=False, authenticator=login)
    return SMTP(Handler(), tls_context=context, require_starttls=True, auth_required=True, authenticator=login)

async def main():
    server = await asyncio.get_running_loop().create_server(
        protocol, "127.0.0.1", 0, ssl=context if wrapped else None)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)

asyncio.run(main())
"#;

struct Server {
    process: Child,
    lines: Box<dyn Iterator<Item = std::io::Result<String>>>,
    port: u16,
}

impl Server {
    fn start(python: &Path, arguments: &[&Path]) -> Server {
        let mut process = Command::new(python)
            .arg("-c")
            .arg(SERVER)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let port = lines.next().unwrap().unwrap().parse().unwrap();
        Server { process, lines: Box::new(lines), port }
    }

    fn taken(&mut self) -> serde_json::Value {
        serde_json::from_str(&self.lines.next().unwrap().unwrap()).unwrap()
    }

    fn settings(&self) -> MailSettings {
        let settings = serde_json::json!({
            "host": "127.0.0.1", "port": self.port, "security": "none", "from": "Archive <archive@example.org>",
            "timeout_seconds": 600,
        });
        serde_json::from_value(settings).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Both tests need the server, one of them installs it.
static INSTALL: Mutex<()> = Mutex::new(());

/// A Python with `aiosmtpd`, installed where that is possible.
fn python() -> Option<PathBuf> {
    let _installing = INSTALL.lock().unwrap_or_else(PoisonError::into_inner);
    let venv = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("aiosmtpd-venv");
    let python = venv.join("bin/python");
    let ready = |python: &Path| {
        let asked =
            Command::new(python).args(["-c", "import aiosmtpd"]).stderr(Stdio::null()).status();
        asked.is_ok_and(|status| status.success())
    };
    if !ready(&python) {
        let made = Command::new("python3").args(["-m", "venv"]).arg(&venv).output().ok()?;
        made.status.success().then_some(())?;
        let pip = venv.join("bin/pip");
        Command::new(pip).args(["install", "--quiet", "aiosmtpd>=1.4,<2"]).output().ok()?;
    }
    ready(&python).then_some(python)
}

/// A certificate for 127.0.0.1 that vouches for itself, and its key.
fn certificate(directory: &Path) -> Option<(PathBuf, PathBuf)> {
    let (certificate, key) = (directory.join("cert.pem"), directory.join("key.pem"));
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=mail"])
        .args(["-addext", "subjectAltName=IP:127.0.0.1"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .arg("-out")
        .arg(&certificate)
        .arg("-keyout")
        .arg(&key)
        .output()
        .ok()?;
    made.status.success().then_some((certificate, key))
}

fn mail(to: &str) -> Mail {
    Mail {
        to: to.into(),
        subject: "OK: Batch 12 completed: 3 objects preserved – é".into(),
        text: "Batch 12\n.\n.. dots, é, and a line that is longer than what a mail server has to take: "
            .to_owned()
            + &"long ".repeat(400),
        message_id: "batch-12-report-1-job-77".into(),
        attachments: Vec::new(),
    }
}

#[tokio::test]
async fn a_server_that_others_wrote_takes_our_mail() {
    let Some(python) = python() else {
        testing::skip("python3 with aiosmtpd is not there and cannot be installed");
        return;
    };
    let mut server = Server::start(&python, &[]);
    let settings = server.settings();
    send(&settings, &mail("Ada <ada@example.net>")).await.unwrap();
    let taken = server.taken();
    assert_eq!(
        (&taken["from"], &taken["to"][0]),
        (&"archive@example.org".into(), &"ada@example.net".into())
    );
    let text = taken["mail"].as_str().unwrap();
    assert!(text.contains("Message-ID: <batch-12-report-1-job-77@example.org>\r\n"), "{text}");
    assert!(text.contains("Auto-Submitted: auto-generated\r\n"), "{text}");
    assert!(text.lines().all(|line| line.len() <= 998), "a line is too long for SMTP");

    let later = send(&settings, &mail("later@example.net")).await.unwrap_err();
    assert_eq!((later.code(), later.is_transient()), ("mail.later", true), "{later}");
    let nobody = send(&settings, &mail("nobody@example.net")).await.unwrap_err();
    assert_eq!((nobody.code(), nobody.is_transient()), ("mail.refused", false), "{nobody}");
    let hurried = MailSettings { timeout_seconds: 1, ..settings.clone() };
    let slow = send(&hurried, &mail("slow@example.net")).await.unwrap_err();
    assert_eq!((slow.code(), slow.is_transient()), ("mail.timeout", true), "{slow}");
    drop(server);
    let down = send(&settings, &mail("ada@example.net")).await.unwrap_err();
    assert_eq!((down.code(), down.is_transient()), ("mail.unreachable", true), "{down}");
}

#[tokio::test]
async fn starttls_with_a_login() {
    let directory = tempfile::tempdir().unwrap();
    let (Some(python), Some((certificate, key))) = (python(), certificate(directory.path())) else {
        testing::skip("python3 with aiosmtpd or openssl is not there");
        return;
    };
    let password = directory.path().join("password");
    let write = |text: &str| std::fs::File::create(&password).unwrap().write_all(text.as_bytes());
    write("open sesame\n").unwrap();
    let mut server = Server::start(&python, &[&certificate, &key]);
    let settings = MailSettings {
        security: Security::Starttls,
        user: Some("archive".into()),
        password_file: Some(password.clone()),
        ca_file: Some(certificate.clone()),
        ..server.settings()
    };
    probe(&settings).await.unwrap();
    send(&settings, &mail("ada@example.net")).await.unwrap();
    let taken = server.taken();
    assert_eq!((&taken["tls"], &taken["login"]), (&true.into(), &true.into()), "{taken}");

    write("wrong\n").unwrap();
    let refused = send(&settings, &mail("ada@example.net")).await.unwrap_err();
    assert_eq!((refused.code(), refused.is_transient()), ("mail.login", false), "{refused}");
    write("open sesame\n").unwrap();
    // A certificate that nobody vouches for is not trusted.
    let distrusting = MailSettings { ca_file: None, ..settings.clone() };
    let error = send(&distrusting, &mail("ada@example.net")).await.unwrap_err();
    assert!(error.is_transient(), "{error}");
    // Nor does mail go in the clear where the settings ask for TLS.
    let open = MailSettings { security: Security::None, user: None, ..settings };
    assert!(send(&open, &mail("ada@example.net")).await.is_err());
}

/// What port 465 is for: there is no word in the clear, so a server that is not TLS is no server.
#[tokio::test]
async fn tls_from_the_start_with_a_login() {
    let directory = tempfile::tempdir().unwrap();
    let (Some(python), Some((certificate, key))) = (python(), certificate(directory.path())) else {
        testing::skip("python3 with aiosmtpd or openssl is not there");
        return;
    };
    let password = directory.path().join("password");
    std::fs::write(&password, "open sesame\n").unwrap();
    let mut server = Server::start(&python, &[&certificate, &key, Path::new("wrapped")]);
    let settings = MailSettings {
        security: Security::Tls,
        user: Some("archive".into()),
        password_file: Some(password),
        ca_file: Some(certificate.clone()),
        timeout_seconds: 10,
        ..server.settings()
    };
    probe(&settings).await.unwrap();
    send(&settings, &mail("ada@example.net")).await.unwrap();
    assert_eq!(server.taken()["login"], true);
    // A certificate that nobody vouches for is not trusted, nor one for another name.
    let distrusting = MailSettings { ca_file: None, ..settings.clone() };
    assert!(send(&distrusting, &mail("ada@example.net")).await.unwrap_err().is_transient());
    let elsewhere = MailSettings { host: "localhost".into(), ..settings.clone() };
    assert!(send(&elsewhere, &mail("ada@example.net")).await.is_err());
    let plain = Server::start(&python, &[]);
    let wrong = MailSettings { port: Some(plain.port), ..settings };
    assert!(send(&wrong, &mail("ada@example.net")).await.is_err());
}
