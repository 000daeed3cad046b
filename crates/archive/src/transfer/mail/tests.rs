use super::*;
use crate::transfer::http::stand_in::nobody;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// How the server answers; what is not named is answered well.
#[derive(Clone, Copy, Default)]
struct Mood {
    greeting: Option<&'static str>,
    recipient: Option<&'static str>,
    login: Option<&'static str>,
    after_data: Option<&'static str>,
    /// Takes the mail and never says so.
    silent_after_data: bool,
}

struct Server {
    address: SocketAddr,
    /// Each mail as it arrived.
    mails: Arc<Mutex<Vec<String>>>,
}

fn server(mood: Mood) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mails = Arc::new(Mutex::new(Vec::new()));
    let kept = mails.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let kept = kept.clone();
            std::thread::spawn(move || conversation(stream, mood, &kept));
        }
    });
    Server { address, mails }
}

fn conversation(mut out: TcpStream, mood: Mood, mails: &Mutex<Vec<String>>) -> Option<()> {
    let mut lines = BufReader::new(out.try_clone().ok()?).lines();
    let mut say = |text: &str| write!(out, "{text}\r\n").ok();
    say(mood.greeting.unwrap_or("220 here"))?;
    loop {
        let line = lines.next()?.ok()?;
        match line.get(..4).unwrap_or_default() {
            "EHLO" => say("250-here\r\n250-8BITMIME\r\n250 AUTH PLAIN")?,
            "AUTH" => say(mood.login.unwrap_or("235 welcome"))?,
            "RCPT" => say(mood.recipient.unwrap_or("250 fine"))?,
            "DATA" => {
                say("354 go on")?;
                let mut mail = String::new();
                loop {
                    let line = lines.next()?.ok()?;
                    if line == "." {
                        break;
                    }
                    mail.push_str(&line);
                    mail.push('\n');
                }
                mails.lock().unwrap().push(mail);
                if mood.silent_after_data {
                    return lines.next().map(|_| ());
                }
                say(mood.after_data.unwrap_or("250 taken"))?;
            }
            "QUIT" => return say("221 bye"),
            _ => say("250 fine")?,
        }
    }
}

fn settings(address: SocketAddr) -> MailSettings {
    MailSettings {
        host: address.ip().to_string(),
        port: Some(address.port()),
        security: Security::None,
        user: None,
        password_file: None,
        from: "The Archive <archive@example.org>".into(),
        ca_file: None,
        timeout_seconds: 600,
    }
}

fn mail() -> Mail {
    Mail {
        to: "Ada <ada@example.net>".into(),
        subject: "OK: 3 objects – é".into(),
        text: "Line one\n.\nLine \u{0}three é\n".into(),
        message_id: "batch-12-report-1".into(),
        attachments: Vec::new(),
    }
}

#[tokio::test]
async fn a_mail_arrives_as_it_was_meant() {
    let server = server(Mood::default());
    send(&settings(server.address), &mail()).await.unwrap();
    let mails = server.mails.lock().unwrap();
    let [mail] = mails.as_slice() else { panic!("{mails:?}") };
    for header in [
        "From: \"The Archive\" <archive@example.org>\n",
        "To: Ada <ada@example.net>\n",
        "Message-ID: <batch-12-report-1@example.org>\n",
        "Auto-Submitted: auto-generated\n",
        "Date: ",
    ] {
        assert!(mail.contains(header), "{header:?} in {mail}");
    }
    assert!(
        mail.contains("Subject: OK: 3 objects ") && mail.contains("Line one\n..\nLine three"),
        "{mail}"
    );
}

#[tokio::test]
async fn headers_cannot_be_injected() {
    let server = server(Mood::default());
    let settings = settings(server.address);
    let sneaky = Mail { subject: "Hi\r\nBcc: eve@example.com\r\n\r\nbody".into(), ..mail() };
    send(&settings, &sneaky).await.unwrap();
    let arrived = server.mails.lock().unwrap()[0].clone();
    assert!(arrived.contains("Subject: Hi Bcc: eve@example.com body\n"), "{arrived}");
    assert!(!arrived.contains("\nBcc"), "{arrived}");
    let bad: [(&str, &str, &str); 5] = [
        ("ada@example.net\r\nBcc: eve@example.com", "ok", "mail.address"),
        ("ada@example.net, eve@example.com", "ok", "mail.address"),
        ("nonsense", "ok", "mail.address"),
        ("ada@example.net", "a>\r\nBcc: x", "mail.id"),
        ("ada@example.net", "", "mail.id"),
    ];
    for (to, id, code) in bad {
        let wrong = Mail { to: to.into(), message_id: id.into(), ..mail() };
        assert_eq!(send(&settings, &wrong).await.unwrap_err().code(), code, "{to:?} {id:?}");
    }
    assert_eq!(server.mails.lock().unwrap().len(), 1);
    let wrong = MailSettings { from: "x\r\ny@z".into(), ..settings };
    assert_eq!(send(&wrong, &mail()).await.unwrap_err().code(), "mail.address");
}

#[tokio::test]
async fn what_may_pass_is_tried_again_and_what_will_not_is_said() {
    let mood = Mood::default;
    let cases = [
        (Mood { greeting: Some("421 shutting down"), ..mood() }, "mail.later", Some("mail")),
        (Mood { greeting: Some("554 not you"), ..mood() }, "mail.refused", None),
        (Mood { recipient: Some("451 try later"), ..mood() }, "mail.later", Some("mail")),
        (Mood { recipient: Some("450 mailbox busy"), ..mood() }, "mail.busy", None),
        (Mood { recipient: Some("550 no such user"), ..mood() }, "mail.refused", None),
        (Mood { after_data: Some("452 disk full"), ..mood() }, "mail.later", Some("mail")),
        (Mood { after_data: Some("552 too large\u{7}"), ..mood() }, "mail.refused", None),
        (Mood { silent_after_data: true, ..mood() }, "mail.timeout", Some("mail")),
    ];
    for (mood, code, target) in cases {
        let server = server(mood);
        let timeout_seconds = if code == "mail.timeout" { 1 } else { 600 };
        let settings = MailSettings { timeout_seconds, ..settings(server.address) };
        let error = send(&settings, &mail()).await.unwrap_err();
        assert_eq!(error.code(), code, "{error}");
        assert!(!error.to_string().contains('\u{7}'));
        let transient = ["mail.later", "mail.busy", "mail.timeout"].contains(&code);
        assert_eq!(error.is_transient(), transient, "{error}");
        if let Error::Transient { target: named, .. } = &error {
            assert_eq!(named.as_deref(), target, "{error}");
        }
        assert!(code != "mail.refused" || error.to_string().contains("ada@example.net"), "{error}");
    }
}

#[tokio::test]
async fn a_server_that_is_down_is_the_target() {
    let error = send(&settings(nobody()), &mail()).await.unwrap_err();
    assert_eq!(error.code(), "mail.unreachable");
    assert!(matches!(&error, Error::Transient { target: Some(target), .. } if target == "mail"));
    let slow = TcpListener::bind("127.0.0.1:0").unwrap();
    let settings = MailSettings { timeout_seconds: 1, ..settings(slow.local_addr().unwrap()) };
    let error = send(&settings, &mail()).await.unwrap_err();
    assert_eq!((error.code(), error.is_transient()), ("mail.timeout", true), "{error}");
    assert!(probe(&settings).await.unwrap_err().is_transient());
}

#[tokio::test]
async fn logins_are_checked_and_passwords_kept() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "se%cret word\n").unwrap();
    let with_login = |settings: MailSettings| MailSettings {
        user: Some("archive".into()),
        password_file: Some(file.path().to_owned()),
        ..settings
    };
    let fine = server(Mood::default());
    send(&with_login(settings(fine.address)), &mail()).await.unwrap();
    probe(&with_login(settings(fine.address))).await.unwrap();
    let refusing = server(Mood { login: Some("535 wrong"), ..Mood::default() });
    let error = send(&with_login(settings(refusing.address)), &mail()).await.unwrap_err();
    assert_eq!((error.code(), error.is_transient()), ("mail.login", false));
    assert!(error.to_string().contains("password_file") && !error.to_string().contains("cret"));
    let far =
        MailSettings { host: "mail.example.org".into(), ..with_login(settings(fine.address)) };
    assert_eq!(send(&far, &mail()).await.unwrap_err().code(), "mail.settings");
    let lost = MailSettings {
        password_file: Some("/nonexistent".into()),
        ..with_login(settings(fine.address))
    };
    assert_eq!(send(&lost, &mail()).await.unwrap_err().code(), "mail.settings");
}

/// A server that offers no TLS gets no mail by a setting that asks for it.
#[tokio::test]
async fn no_downgrade() {
    let server = server(Mood::default());
    for security in [Security::Starttls, Security::Tls] {
        let settings = MailSettings { security, timeout_seconds: 2, ..settings(server.address) };
        assert!(send(&settings, &mail()).await.is_err());
    }
    assert!(server.mails.lock().unwrap().is_empty());
}

#[test]
fn settings_are_read_and_checked() {
    let given = r#"{"host":"h","from":"a@b.c"}"#;
    let settings: MailSettings = serde_json::from_str(given).unwrap();
    assert_eq!((settings.security, settings.timeout_seconds), (Security::Starttls, 60));
    assert!(
        serde_json::from_str::<MailSettings>(r#"{"host":"h","from":"a@b.c","pasword":"x"}"#)
            .is_err()
    );
    crate::model::mail_address::check_address("Ada <ada@example.org>").unwrap();
    assert!(crate::model::mail_address::check_address("ada at example").is_err());
}
