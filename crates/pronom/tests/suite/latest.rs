//! The newest files, fetched from a server of our own: the real site is not asked by any test.

use pronom::{Error, Http, Library, fetch_latest};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

const PAGE: &str = r#"<p><a href="/files/DROID_SignatureFile_V7.xml">7</a>
<a href="/files/DROID_SignatureFile_V12.xml">12</a>
<a href='files/container-signature-20260101.xml'>c</a>
<a href='files/container-signature-20250101.xml'>older</a></p>"#;

const SIGNATURES: &str = r#"<FFSignatureFile DateCreated="2026-01-01T00:00:00" Version="12">
<InternalSignatureCollection><InternalSignature ID="1"><ByteSequence Reference="BOFoffset">
<SubSequence Position="1" SubSeqMinOffset="0" SubSeqMaxOffset="0"><Sequence>4142</Sequence></SubSequence>
</ByteSequence></InternalSignature></InternalSignatureCollection>
<FileFormatCollection><FileFormat ID="1" Name="Ab" PUID="fmt/1"><InternalSignatureID>1</InternalSignatureID>
</FileFormat></FileFormatCollection></FFSignatureFile>"#;

const CONTAINERS: &str = r#"<ContainerSignatureMapping schemaVersion="1.0" signatureVersion="3">
<ContainerSignatures/><FileFormatMappings/><TriggerPuids/></ContainerSignatureMapping>"#;

/// Serves these paths until the test ends; returns the address.
fn serve(files: HashMap<&'static str, String>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let mut lines = BufReader::new(stream.try_clone().expect("a clone")).lines();
            let request = lines.next().expect("a request").expect("text");
            let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
            while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            let (status, body) = match files.get(path.as_str()) {
                Some(body) => ("200 OK", body.as_str()),
                None => ("404 Not Found", ""),
            };
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            stream
                .write_all(head.as_bytes())
                .and_then(|()| stream.write_all(body.as_bytes()))
                .expect("sent");
        }
    });
    address
}

#[test]
fn the_newest_files_are_found_fetched_and_installed() {
    let address = serve(HashMap::from([
        ("/pronom/page.htm", PAGE.to_owned()),
        ("/files/DROID_SignatureFile_V12.xml", SIGNATURES.to_owned()),
        ("/pronom/files/container-signature-20260101.xml", CONTAINERS.to_owned()),
    ]));
    let files =
        fetch_latest(&Http::default(), &format!("{address}/pronom/page.htm")).expect("fetched");
    let dir = tempfile::tempdir().expect("a directory");
    let installed = Library::new(dir.path()).install(files).expect("installed");
    assert_eq!(installed.origin.name, "v12-20260101");
    assert!(installed.in_use);
}

#[test]
fn what_is_missing_or_wrong_is_said_with_its_address() {
    let address = serve(HashMap::from([
        ("/page.htm", PAGE.to_owned()),
        ("/empty.htm", "<p>moved</p>".to_owned()),
        ("/other.htm", PAGE.replace("V12", "V13")),
        ("/files/DROID_SignatureFile_V13.xml", SIGNATURES.to_owned()),
    ]));
    for (page, url, text) in [
        ("none.htm", "none.htm", "404"),
        ("empty.htm", "empty.htm", "links to no DROID"),
        ("page.htm", "V12.xml", "404"),
        ("other.htm", "V13.xml", "not a DROID signature file of that version"),
    ] {
        let error = fetch_latest(&Http::default(), &format!("{address}/{page}")).expect_err(page);
        assert!(matches!(&error, Error::Fetch { url: at, .. } if at.ends_with(url)), "{error}");
        assert!(error.to_string().contains(text), "{error}");
    }
}
