//! Addresses of databases: `sqlite:///path`, or `postgres://…` as libpq users know it.
//!
//! Hides libpq's environment variables and password files, and keeps passwords out of messages.

use crate::error::{Error, Result};
use crate::tx::Engine;
use percent_encoding::percent_decode_str;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};
use url::Url;

/// The address of a database. It is shown without a password.
#[derive(Clone)]
pub enum Address {
    /// An SQLite file.
    Sqlite(PathBuf),
    /// A PostgreSQL server, or several of which one can be written to.
    Postgres(Box<Server>),
}

/// A PostgreSQL server and how to talk to it.
#[derive(Clone)]
pub struct Server {
    pub(crate) config: tokio_postgres::Config,
    pub(crate) tls: Tls,
    pub(crate) root_certificate: Option<PathBuf>,
    shown: String,
}

/// libpq's `sslmode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tls {
    Disable,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

impl Address {
    /// Reads an address; what it does not say comes from libpq's environment variables
    /// (`PGHOST`, `PGUSER`, `PGPASSWORD`, `PGPASSFILE`, `PGSSLMODE`, …).
    pub fn parse(text: &str) -> Result<Address> {
        let bad = |why: &str| Error::BadAddress(without_password(text), why.to_string());
        if let Some(rest) = text.strip_prefix("sqlite:") {
            let path = rest.strip_prefix("//").unwrap_or(rest);
            let path =
                percent_decode_str(path).decode_utf8().map_err(|_| bad("its path is not UTF-8"))?;
            return match path.as_ref() {
                "" | "/" => Err(bad("it names no file")),
                path => Ok(Address::Sqlite(PathBuf::from(path))),
            };
        }
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Ok(Address::Postgres(Box::new(Server::parse(text, &|name| {
                std::env::var(name).ok()
            })?)));
        }
        Err(bad("it begins with neither sqlite: nor postgres:"))
    }

    /// Returns the engine that the address belongs to.
    pub fn engine(&self) -> Engine {
        match self {
            Address::Sqlite(_) => Engine::Sqlite,
            Address::Postgres(_) => Engine::Postgres,
        }
    }

    /// Returns the address of an SQLite file.
    pub fn sqlite(path: impl AsRef<Path>) -> Address {
        Address::Sqlite(path.as_ref().to_path_buf())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Sqlite(path) => write!(f, "sqlite://{}", path.display()),
            Address::Postgres(server) => write!(f, "{}", server.shown),
        }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Server {
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    fn parse(text: &str, environment: &dyn Fn(&str) -> Option<String>) -> Result<Server> {
        let text = &authority_in_query(text);
        let shown = without_password(text);
        let bad = |why: String| Error::BadAddress(shown.clone(), why);
        let mut url = Url::parse(text).map_err(|e| bad(e.to_string()))?;
        let (mut mode, mut root, mut passfile) =
            (environment("PGSSLMODE"), environment("PGSSLROOTCERT"), environment("PGPASSFILE"));
        let mut kept = Vec::new();
        for (name, value) in url.query_pairs() {
            match name.as_ref() {
                "sslmode" => mode = Some(value.into_owned()),
                "sslrootcert" => root = Some(value.into_owned()),
                "passfile" => passfile = Some(value.into_owned()),
                // The parser takes a list of them for one name.
                "host" => kept.extend(value.split(',').map(|host| (name.to_string(), host.into()))),
                _ => kept.push((name.into_owned(), value.into_owned())),
            }
        }
        url.set_query(None);
        // The parser assumes 5432 for an address with a host and no port; libpq reads PGPORT first.
        if url.host_str().is_some_and(|host| !host.is_empty() && !host.contains(','))
            && url.port().is_none()
            && !kept.iter().any(|(name, _)| name == "port")
            && let Some(port) = environment("PGPORT")
        {
            let port = port.parse().map_err(|_| bad(not_a_port(&port)))?;
            url.set_port(Some(port)).map_err(|()| bad("it cannot have a port".to_string()))?;
        }
        if !kept.is_empty() {
            url.query_pairs_mut().extend_pairs(kept);
            // `tokio-postgres` does not take `+` for a space.
            let query = url.query().map(|query| query.replace('+', "%20"));
            url.set_query(query.as_deref());
        }
        let mut config: tokio_postgres::Config =
            url.as_str().parse().map_err(|e: tokio_postgres::Error| bad(e.to_string()))?;
        if config.get_hosts().len() > 1 && !text.contains("target_session_attrs=") {
            // Of several servers only one can be written to.
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        fill_from_environment(&mut config, environment).map_err(bad)?;
        if config.get_password().is_none()
            && let Some(password) = password_from_file(&config, passfile, environment)
        {
            config.password(password);
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(Duration::from_secs(5));
        }
        if config.get_application_name().is_none() {
            config.application_name("accession");
        }
        let tls = parse_tls(mode.as_deref().unwrap_or("prefer")).map_err(bad)?;
        config.ssl_mode(match tls {
            Tls::Disable => SslMode::Disable,
            Tls::Prefer => SslMode::Prefer,
            _ => SslMode::Require,
        });
        Ok(Server { config, tls, root_certificate: root.map(PathBuf::from), shown })
    }
}

/// libpq accepts `postgres://user:password@/name?host=/run/postgresql` and
/// `postgres://user@db1:5432,db2:5432/name`, which are not valid URLs. This moves the user and the hosts
/// to the query.
fn authority_in_query(text: &str) -> String {
    let moved = || {
        let (scheme, rest) = text.split_once("://")?;
        let (authority, rest) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let (user, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
        if user.is_empty() && hosts.is_empty() || !hosts.is_empty() && !hosts.contains(',') {
            return None;
        }
        let (user, password) = user.split_once(':').unwrap_or((user, ""));
        let (hosts, ports): (Vec<&str>, Vec<&str>) =
            hosts.split(',').map(host_and_port).filter(|(host, _)| !host.is_empty()).unzip();
        // One that is left out is 5432 beside others that are not.
        let ports = if ports.iter().all(|port| port.is_empty()) { Vec::new() } else { ports };
        let said = [
            ("user", user.to_string()),
            ("password", password.to_string()),
            ("host", hosts.join(",")),
            ("port", ports.join(",")),
        ];
        let mut url = Url::parse(&format!("{scheme}://{rest}")).ok()?;
        for (name, value) in said.iter().filter(|(_, value)| !value.is_empty()) {
            let decoded = percent_decode_str(value).decode_utf8_lossy();
            url.query_pairs_mut().append_pair(name, &decoded);
        }
        Some(url.to_string())
    };
    moved().unwrap_or_else(|| text.to_string())
}

/// `db1:5432`, `db1` or `[::1]:5432`.
fn host_and_port(text: &str) -> (&str, &str) {
    match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, port)) => (host, port.trim_start_matches(':')),
        None => text.split_once(':').unwrap_or((text, "")),
    }
}

fn not_a_port(text: &str) -> String {
    format!("PGPORT is `{text}`, which is not a port")
}

fn fill_from_environment(
    config: &mut tokio_postgres::Config,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<(), String> {
    if config.get_hosts().is_empty() {
        config.host(environment("PGHOST").as_deref().unwrap_or("localhost"));
    }
    if config.get_ports().is_empty()
        && let Some(port) = environment("PGPORT")
    {
        config.port(port.parse().map_err(|_| not_a_port(&port))?);
    }
    if config.get_user().is_none() {
        let user = environment("PGUSER")
            .or_else(|| environment("USER"))
            .unwrap_or_else(|| "postgres".to_string());
        config.user(&user);
    }
    if config.get_dbname().is_none()
        && let Some(name) = environment("PGDATABASE")
    {
        config.dbname(&name);
    }
    if config.get_password().is_none()
        && let Some(password) = environment("PGPASSWORD")
    {
        config.password(password);
    }
    Ok(())
}

/// Looks up the password in libpq's password file: `host:port:database:user:password`, `*` for any.
fn password_from_file(
    config: &tokio_postgres::Config,
    passfile: Option<String>,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Option<String> {
    use std::os::unix::fs::PermissionsExt;
    let path = passfile
        .map(PathBuf::from)
        .or_else(|| environment("HOME").map(|h| Path::new(&h).join(".pgpass")))?;
    let mode = std::fs::metadata(&path).ok()?.permissions().mode();
    if mode & 0o077 != 0 {
        tracing::warn!(file = %path.display(), "password file ignored: others can read it; run chmod 600 on it");
        return None;
    }
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(host)) => host.clone(),
        _ => "localhost".to_string(),
    };
    let port = config.get_ports().first().copied().unwrap_or(5432).to_string();
    let user = config.get_user().unwrap_or_default();
    let wanted = [&host, &port, config.get_dbname().unwrap_or(user), user];
    let text = std::fs::read_to_string(&path).ok()?;
    text.lines().filter(|l| !l.starts_with('#')).find_map(|line| {
        let fields = split_passfile_line(line);
        let fits = fields.len() == 5
            && fields.iter().zip(wanted).all(|(field, want)| field == "*" || field == want);
        fits.then(|| fields[4].clone())
    })
}

/// Splits at colons; a backslash takes the next character as it is.
fn split_passfile_line(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(c) = characters.next() {
        match c {
            ':' if fields.len() < 5 => fields.push(String::new()),
            '\\' => fields.last_mut().into_iter().for_each(|f| f.extend(characters.next())),
            c => fields.last_mut().into_iter().for_each(|f| f.push(c)),
        }
    }
    fields
}

fn parse_tls(mode: &str) -> Result<Tls, String> {
    match mode {
        "disable" => Ok(Tls::Disable),
        "allow" | "prefer" => Ok(Tls::Prefer),
        "require" => Ok(Tls::Require),
        "verify-ca" => Ok(Tls::VerifyCa),
        "verify-full" => Ok(Tls::VerifyFull),
        other => Err(format!(
            "sslmode `{other}` is none of disable, allow, prefer, require, verify-ca, verify-full"
        )),
    }
}

/// The address as it may be shown: a password, in the authority or in the query, becomes `***`.
fn without_password(text: &str) -> String {
    if text.starts_with("sqlite:") {
        return text.to_string();
    }
    let Some((scheme, rest)) = text.split_once("://") else {
        // This is not an address: a path can be shown, but `postgres:/user:password@host` or libpq's
        // `host=a password=b` might hold a password anywhere.
        let scheme = text.split_once(':').map(|(scheme, _)| scheme);
        let scheme = scheme.filter(|s| s.chars().all(|c| c.is_ascii_alphanumeric()));
        return match text.contains([':', '@', '=']) {
            true => scheme.map_or("***".to_string(), |scheme| format!("{scheme}:***")),
            false => text.to_string(),
        };
    };
    // In a text that cannot be parsed, everything before the last `@` might be a password.
    let hidden = || match rest.rsplit_once('@') {
        Some((_, after)) => format!("{scheme}://***@{after}"),
        None if rest.contains(':') => format!("{scheme}://***"),
        None => text.to_string(),
    };
    let Ok(mut url) = Url::parse(text) else { return hidden() };
    // A `/`, `?` or `#` in a password that is not encoded ends the part where it belongs.
    let after = [Some(url.path()), url.query(), url.fragment()];
    if after.into_iter().flatten().any(|part| part.contains('@')) {
        return hidden();
    }
    if url.password().is_some() && url.set_password(Some("***")).is_err() {
        return format!("{}:***", url.scheme());
    }
    if url.query().is_some() {
        let pairs: Vec<(String, String)> = url
            .query_pairs()
            .map(|(n, v)| match n.as_ref() {
                "password" => (n.into_owned(), "***".to_string()),
                _ => (n.into_owned(), v.into_owned()),
            })
            .collect();
        url.query_pairs_mut().clear().extend_pairs(pairs);
    }
    url.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(text: &str, environment: &[(&str, &str)]) -> Result<Server> {
        let owned: Vec<(String, String)> =
            environment.iter().map(|(a, b)| ((*a).into(), (*b).into())).collect();
        Server::parse(text, &move |name| {
            owned.iter().find(|(n, _)| n == name).map(|(_, v)| v.clone())
        })
    }

    #[test]
    fn sqlite_addresses_are_paths() {
        assert_eq!(
            Address::parse("sqlite:///var/lib/a.db").unwrap().to_string(),
            "sqlite:///var/lib/a.db"
        );
        assert_eq!(Address::parse("sqlite:a%20b.db").unwrap().to_string(), "sqlite://a b.db");
        assert!(Address::parse("sqlite://").is_err());
        assert!(Address::parse("mysql://x").unwrap_err().to_string().contains("neither"));
    }

    #[test]
    fn passwords_are_never_shown() {
        for text in [
            "postgres://ann:s3cret@db/x",
            "postgres://db/x?user=ann&password=s3cret",
            "postgres://ann:s3cret@db:notaport/x",
            "postgres://ann:s3cret@db/x?sslmode=perhaps",
            "postgres://ann:s3cret@/x?host=/run",
            "postgres://ann@/x?host=/run&password=s3cret",
            "postgres://ann:s3cret@/x?sslmode=perhaps",
            "postgres://ann:s3cret@db1:5433,db2/x",
            "postgres://ann:s3cret@db1:notaport,db2/x",
        ] {
            let shown = match server(text, &[]) {
                Ok(s) => s.shown,
                Err(e) => e.to_string(),
            };
            assert!(!shown.contains("s3cret"), "{shown}");
        }
    }

    #[test]
    fn passwords_of_mistyped_addresses_are_never_shown() {
        for text in [
            "postgres:/ann:s3cret@db/x",
            "postgres:ann:s3cret@db/x",
            "postgresql:///ann:s3cret@db/x",
            "postgres//ann:s3cret@db/x",
            "postgres://ann:s3cret",
            "postgres://ann:12#s3cret@db/x",
            "postgres://ann:12?s3cret@db/x",
            "postgres://ann:12/s3cret@db/x",
            "postgres://ann:s3cret@s3cret@db:notaport/x",
            "pg://ann:s3cret@db/x",
            "host=db user=ann password=s3cret",
            "ann:s3cret@db/x",
        ] {
            let shown = match Address::parse(text) {
                Ok(address) => address.to_string(),
                Err(error) => error.to_string(),
            };
            assert!(!shown.contains("s3cret"), "{text}: {shown}");
        }
        let shown = Address::parse("/var/lib/a.db").unwrap_err().to_string();
        assert!(shown.contains("/var/lib/a.db"), "{shown}");
    }

    #[test]
    fn what_the_address_leaves_out_comes_from_the_environment() {
        let s = server(
            "postgres:///x",
            &[("PGHOST", "h"), ("PGPORT", "99"), ("PGUSER", "u"), ("PGPASSWORD", "p")],
        )
        .unwrap();
        assert_eq!(s.config.get_hosts(), [Host::Tcp("h".into())]);
        assert_eq!(
            (s.config.get_ports(), s.config.get_user(), s.config.get_password()),
            (&[99][..], Some("u"), Some(&b"p"[..]))
        );
    }

    #[test]
    fn a_port_that_is_left_out_comes_from_the_environment_also_beside_a_host() {
        let ports = |text, environment: &[(&str, &str)]| {
            server(text, environment).map(|s| s.config.get_ports().to_vec())
        };
        assert_eq!(ports("postgres://u@h/x", &[("PGPORT", "99")]).unwrap(), [99]);
        assert_eq!(ports("postgres://u@h:7/x", &[("PGPORT", "99")]).unwrap(), [7]);
        assert_eq!(ports("postgres://u@h/x", &[]).unwrap(), [5432]);
        assert!(ports("postgres://u@h/x", &[("PGPORT", "many")]).is_err());
    }

    #[test]
    fn sslmode_is_read_as_libpq_does() {
        assert_eq!(server("postgres://h/x?sslmode=verify-full", &[]).unwrap().tls, Tls::VerifyFull);
        assert_eq!(
            server("postgres://h/x", &[("PGSSLMODE", "require")]).unwrap().tls,
            Tls::Require
        );
        assert_eq!(server("postgres://h/x", &[]).unwrap().tls, Tls::Prefer);
    }

    #[test]
    fn sockets_are_named_as_libpq_users_do() {
        for text in [
            "postgres://ann:p%26w@/x?host=/run/pg&port=7",
            "postgres:///x?host=/run/pg&port=7&user=ann&password=p%26w&sslmode=verify-full",
            "postgres://ann:p%26w@%2Frun%2Fpg:7/x",
        ] {
            let s = server(text, &[]).unwrap();
            assert_eq!(s.config.get_hosts(), [Host::Unix("/run/pg".into())], "{text}");
            let (user, password) = (s.config.get_user(), s.config.get_password());
            assert_eq!((user, password), (Some("ann"), Some(&b"p&w"[..])), "{text}");
            assert_eq!((s.config.get_ports(), s.config.get_dbname()), (&[7][..], Some("x")));
        }
    }

    #[test]
    fn of_several_servers_the_one_that_can_be_written_to_is_meant() {
        let s = server("postgres://ann:p%2Cw@db1:5433,[::1],db3/x?sslmode=require", &[]).unwrap();
        let tcp = |name: &str| Host::Tcp(name.to_string());
        assert_eq!(s.config.get_hosts(), [tcp("db1"), tcp("::1"), tcp("db3")]);
        assert_eq!(s.config.get_ports(), [5433, 5432, 5432]);
        assert_eq!(s.config.get_password(), Some(&b"p,w"[..]));
        assert_eq!(s.config.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
        let ports = |environment| {
            server("postgres://db1,db2/x", environment).unwrap().config.get_ports().to_vec()
        };
        assert_eq!(ports(&[("PGPORT", "99")]), [99]);
        let listed = server("postgres:///x?host=db1,db2", &[]).unwrap();
        assert_eq!(listed.config.get_hosts(), [tcp("db1"), tcp("db2")]);
        let any = server("postgres://db1,db2/x?target_session_attrs=any", &[]).unwrap();
        assert_eq!(any.config.get_target_session_attrs(), TargetSessionAttrs::Any);
    }

    #[test]
    fn a_password_file_is_searched_by_host_port_database_and_user() {
        use std::os::unix::fs::PermissionsExt;
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "# c\nother:*:*:*:no\nh:5432:x:u:pa\\:ss\n").unwrap();
        std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o600)).unwrap();
        let text = format!("postgres://u@h/x?passfile={}", file.path().display());
        assert_eq!(server(&text, &[]).unwrap().config.get_password(), Some(&b"pa:ss"[..]));
        std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(
            server(&text, &[]).unwrap().config.get_password(),
            None,
            "a readable file is ignored"
        );
    }
}
