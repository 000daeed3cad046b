//! Connecting to the first server of an address that answers and has the role that was asked for.
//!
//! Hides from its callers that an address can name several servers, that a name can have several
//! addresses, and what a server can refuse.

use crate::address::Server;
use crate::error::{Error, Result};
use crate::postgres::tls::{Connector, Encrypted};
use std::net::{IpAddr, ToSocketAddrs};
use tokio_postgres::config::{Host, LoadBalanceHosts, SslMode};
use tokio_postgres::{Client, Config, Connection, Socket};

pub(super) type Link = (Client, Connection<Socket, Encrypted>);

const OLDEST_VERSION: u32 = 13;

/// Connects to a server of the address. If none can be used, the error is that of the last one.
pub(super) async fn connect(server: &Server) -> Result<Link> {
    let connector = Connector::new(server)?;
    let none = "it names no server".to_string();
    let mut failed = Error::BadAddress(server.shown().to_string(), none);
    for (host, port) in hosts(server)? {
        // A name is resolved when its turn comes, so that one that is unknown does not stop others.
        let configs = match configs(&server.config, &host, port) {
            Ok(configs) => configs,
            Err(error) => {
                failed = Error::Unavailable(server.shown().to_string(), error.to_string());
                continue;
            }
        };
        for config in configs {
            match connect_once(server, &config, connector.clone()).await {
                Ok(link) => return Ok(link),
                Err(error) => failed = error,
            }
        }
    }
    Err(failed)
}

/// A host of an address: what its certificate is for, and where it is if the address says that too.
type NamedHost = (Host, Option<IpAddr>);

/// The servers to try, in their order.
fn hosts(server: &Server) -> Result<Vec<(NamedHost, u16)>> {
    let config = &server.config;
    let (hosts, addresses, ports) =
        (config.get_hosts(), config.get_hostaddrs(), config.get_ports());
    let count = hosts.len().max(addresses.len());
    let differs = |length: usize| length > 1 && length != count;
    if differs(hosts.len()) || differs(addresses.len()) || differs(ports.len()) {
        let why = "it does not have as many ports and addresses as hosts; name one for each";
        return Err(Error::BadAddress(server.shown().to_string(), why.to_string()));
    }
    let mut named: Vec<(NamedHost, u16)> = (0..count)
        .filter_map(|index| {
            let address = addresses.get(index).copied();
            let host = match hosts.get(index) {
                Some(host) => host.clone(),
                None => Host::Tcp(address?.to_string()),
            };
            let port = ports.get(index).or(ports.first()).copied().unwrap_or(5432);
            Some(((host, address), port))
        })
        .collect();
    if config.get_load_balance_hosts() == LoadBalanceHosts::Random {
        fastrand::shuffle(&mut named);
    }
    Ok(named)
}

/// The settings for one host, once for each of its addresses: `connect_timeout` is for each, as in
/// libpq.
fn configs(all: &Config, (host, address): &NamedHost, port: u16) -> std::io::Result<Vec<Config>> {
    let mut config = without_hosts(all);
    config.port(port);
    let name = match host {
        Host::Unix(directory) => {
            // As in libpq, a socket of this machine is never encrypted, whatever the mode.
            config.host_path(directory).ssl_mode(SslMode::Disable);
            return Ok(vec![config]);
        }
        Host::Tcp(name) => name,
    };
    let mut addresses: Vec<IpAddr> = match address {
        Some(address) => vec![*address],
        None => (name.as_str(), port).to_socket_addrs()?.map(|socket| socket.ip()).collect(),
    };
    if all.get_load_balance_hosts() == LoadBalanceHosts::Random {
        fastrand::shuffle(&mut addresses);
    }
    config.host(name);
    let with_address = |address| {
        let mut config = config.clone();
        config.hostaddr(address);
        config
    };
    Ok(addresses.into_iter().map(with_address).collect())
}

/// All settings but the hosts and their ports, which a `Config` can only gain.
fn without_hosts(all: &Config) -> Config {
    let mut config = Config::new();
    config
        .ssl_mode(all.get_ssl_mode())
        .ssl_negotiation(all.get_ssl_negotiation())
        .keepalives(all.get_keepalives())
        .keepalives_idle(all.get_keepalives_idle())
        .target_session_attrs(all.get_target_session_attrs())
        .channel_binding(all.get_channel_binding());
    all.get_user().map(|user| config.user(user));
    all.get_password().map(|password| config.password(password));
    all.get_dbname().map(|name| config.dbname(name));
    all.get_options().map(|options| config.options(options));
    all.get_application_name().map(|name| config.application_name(name));
    all.get_connect_timeout().map(|time| config.connect_timeout(*time));
    all.get_tcp_user_timeout().map(|time| config.tcp_user_timeout(*time));
    all.get_keepalives_interval().map(|time| config.keepalives_interval(time));
    all.get_keepalives_retries().map(|retries| config.keepalives_retries(retries));
    config
}

async fn connect_once(server: &Server, config: &Config, connector: Connector) -> Result<Link> {
    let unavailable = |why: String| Error::Unavailable(server.shown().to_string(), why);
    // The library applies the timeout to the TCP connection only; a server can accept that and then
    // send nothing.
    let connecting = config.connect(connector);
    let connected = match config.get_connect_timeout() {
        None => connecting.await,
        Some(time) => tokio::time::timeout(*time, connecting)
            .await
            .map_err(|_| unavailable("it does not answer".to_string()))?,
    };
    let (client, connection) =
        connected.map_err(|error| match Error::from_postgres_client(server.shown(), &error) {
            // Only a refusal by the server is final before the connection is established.
            Error::Other(_, why) => unavailable(why),
            error => error,
        })?;
    let version = connection.parameter("server_version").unwrap_or_default();
    let major = version.split(|c: char| !c.is_ascii_digit()).next();
    match major.and_then(|major| major.parse::<u32>().ok()) {
        Some(major) if major >= OLDEST_VERSION => Ok((client, connection)),
        _ => Err(Error::CannotOpen(
            server.shown().to_string(),
            format!("PostgreSQL {OLDEST_VERSION} or newer is needed, and this is {version}"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Address;

    fn server(text: &str) -> Server {
        match Address::parse(text).unwrap() {
            Address::Postgres(server) => *server,
            Address::Sqlite(_) => panic!("{text}"),
        }
    }

    #[test]
    fn every_host_keeps_its_port_and_all_other_settings() {
        let server = server(
            "postgres://ann:pw@127.0.0.1:7,[::1]:8/x?application_name=a&options=-c%20jit%3Doff\
             &connect_timeout=3&keepalives_idle=9&channel_binding=require&sslmode=require",
        );
        let found = hosts(&server).unwrap();
        let ports: Vec<u16> = found.iter().map(|(_, port)| *port).collect();
        assert_eq!(ports, [7, 8]);
        let (host, port) = &found[1];
        let config = configs(&server.config, host, *port).unwrap().remove(0);
        let mut whole = server.config.clone();
        // What remains different are the hosts.
        whole.hostaddr("::1".parse().unwrap());
        assert_eq!((config.get_hosts().len(), config.get_ports()), (1, &[8][..]));
        assert_eq!(config.get_hostaddrs(), whole.get_hostaddrs());
        assert_eq!(without_hosts(&config), without_hosts(&server.config));
        assert_eq!(config.get_options(), Some("-c jit=off"));
        assert_eq!((config.get_user(), config.get_password()), (Some("ann"), Some(&b"pw"[..])));
    }

    #[test]
    fn as_many_ports_as_hosts_are_needed() {
        let refused = hosts(&server("postgres://u@/x?host=a,b,c&port=1,2")).unwrap_err();
        assert!(matches!(refused, Error::BadAddress(..)), "{refused}");
    }
}
