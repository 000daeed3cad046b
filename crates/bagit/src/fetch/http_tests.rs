//! Redirects, without a network: names resolve to chosen addresses, and every connection ends at
//! a server of the test.

use super::*;
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use ureq::unversioned::transport::{ConnectionDetails, Connector, TcpConnector, Transport};

/// Names and the addresses they are said to have.
#[derive(Debug)]
struct Names(HashMap<&'static str, &'static str>);

impl Resolver for Names {
    fn resolve(
        &self,
        uri: &Uri,
        _: &Config,
        _: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let address = self.0.get(uri.host().unwrap()).ok_or(ureq::Error::HostNotFound)?;
        let mut addresses = self.empty();
        addresses.push(SocketAddr::new(address.parse().unwrap(), 80));
        Ok(addresses)
    }
}

/// Connects to the test's server, whatever the address.
#[derive(Debug)]
struct Detour(SocketAddr, TcpConnector);

impl<In: Transport> Connector<In> for Detour {
    type Out = <TcpConnector as Connector<In>>::Out;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        chained: Option<In>,
    ) -> Result<Option<Self::Out>, ureq::Error> {
        let mut addrs = details.resolver.empty();
        addrs.push(self.0);
        let details = ConnectionDetails {
            addrs,
            uri: details.uri,
            config: details.config,
            request_level: details.request_level,
            resolver: details.resolver,
            now: details.now,
            timeout: details.timeout,
            current_time: details.current_time.clone(),
            run_connector: details.run_connector.clone(),
            register_shutdown: details.register_shutdown.clone(),
        };
        self.1.connect(&details, chained)
    }
}

/// A server that answers every request with a redirect or a body, by the path; gives its address
/// and the hosts that were asked for.
fn serve(
    answers: &'static [(&'static str, &'static str)],
) -> (SocketAddr, std::sync::mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (asked, hosts) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = vec![0; 4096];
            let read = stream.read(&mut request).unwrap();
            let request = String::from_utf8_lossy(&request[..read]).into_owned();
            let path = request.split(' ').nth(1).unwrap_or_default();
            let host = request.lines().find_map(|l| l.strip_prefix("host: ")).unwrap_or_default();
            let _ = asked.send(host.to_owned());
            let answer = answers.iter().find(|(p, _)| *p == path).unwrap().1;
            let head = match answer.strip_prefix("to ") {
                Some(target) => {
                    format!("HTTP/1.1 302 Found\r\nLocation: {target}\r\nContent-Length: 0")
                }
                None => format!("HTTP/1.1 200 OK\r\nContent-Length: {}", answer.len()),
            };
            let body = if answer.starts_with("to ") { "" } else { answer };
            let _ = write!(stream, "{head}\r\nConnection: close\r\n\r\n{body}");
        }
    });
    (address, hosts)
}

const ANSWERS: &[(&str, &str)] = &[
    ("/plain", "content"),
    ("/public", "to http://other.example/plain"),
    ("/private", "to http://inside.example/plain"),
    ("/literal", "to http://169.254.169.254/latest/meta-data"),
    ("/twice", "to http://other.example/private"),
    ("/file", "to file:///etc/passwd"),
    ("/loop", "to http://public.example/loop"),
];

fn fetcher(allow_private: bool) -> (HttpFetcher, std::sync::mpsc::Receiver<String>) {
    let names = Names(HashMap::from([
        ("public.example", "93.184.216.34"),
        ("other.example", "2606:4700::1111"),
        ("inside.example", "10.0.0.7"),
        ("169.254.169.254", "169.254.169.254"),
    ]));
    let (address, hosts) = serve(ANSWERS);
    let connector = Detour(address, TcpConnector::default());
    (HttpFetcher::with_parts(allow_private, names, connector), hosts)
}

fn get(fetcher: &HttpFetcher, path: &str) -> Result<String, String> {
    let fetched =
        fetcher.get(&format!("http://public.example{path}")).map_err(|e| e.to_string())?;
    let mut text = String::new();
    { fetched.body }.read_to_string(&mut text).map_err(|e| e.to_string())?;
    Ok(text)
}

#[test]
fn redirects_to_public_addresses_are_followed() {
    let (fetcher, hosts) = fetcher(false);
    assert_eq!(get(&fetcher, "/plain").as_deref(), Ok("content"));
    assert_eq!(get(&fetcher, "/public").as_deref(), Ok("content"));
    let asked: Vec<String> = hosts.try_iter().collect();
    assert_eq!(asked, ["public.example", "public.example", "other.example"]);
}

#[test]
fn redirects_to_private_addresses_are_refused_and_nothing_connects_there() {
    for (path, asked) in [("/private", 1), ("/literal", 1), ("/twice", 2)] {
        let (fetcher, hosts) = fetcher(false);
        let message = get(&fetcher, path).unwrap_err();
        assert!(message.contains("not a public address"), "{path}: {message}");
        let hosts: Vec<String> = hosts.try_iter().collect();
        assert_eq!(hosts.len(), asked, "{path}: {hosts:?}");
        assert!(!hosts.iter().any(|h| h == "inside.example" || h.starts_with("169.")));
    }
    let (open, _) = fetcher(true);
    assert_eq!(get(&open, "/private").as_deref(), Ok("content"));
}

#[test]
fn redirects_to_other_schemes_or_without_end_are_refused() {
    let (fetcher, hosts) = fetcher(false);
    assert!(get(&fetcher, "/file").is_err());
    assert!(get(&fetcher, "/loop").is_err());
    assert!(hosts.try_iter().count() <= 2 + REDIRECTS_MAX as usize);
}
