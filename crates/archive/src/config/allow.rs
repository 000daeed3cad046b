//! Which addresses a depositor's URL may make this machine connect to.

use super::AllowPrivate;
use bagit::is_public;
use std::net::IpAddr;
use std::str::FromStr;

/// A host or a network that may be fetched from although it is not public.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Allowed {
    Host(String),
    Network { address: IpAddr, bits: u8 },
}

impl FromStr for Allowed {
    type Err = String;

    fn from_str(text: &str) -> Result<Allowed, String> {
        let wrong = || {
            format!("`{text}` is neither a host name, an address nor a network such as 10.1.0.0/16")
        };
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u8>().map_err(|_| wrong())?)),
            None => (text, None),
        };
        if let Ok(address) = address.trim_matches(['[', ']']).parse::<IpAddr>() {
            let all = if address.is_ipv4() { 32 } else { 128 };
            let bits = bits.unwrap_or(all);
            return if bits <= all { Ok(Allowed::Network { address, bits }) } else { Err(wrong()) };
        }
        let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
        if bits.is_some() || text.is_empty() || !text.chars().all(good) {
            return Err(wrong());
        }
        Ok(Allowed::Host(text.trim_end_matches('.').to_ascii_lowercase()))
    }
}

/// What may be connected to.
#[derive(Debug, Clone, Default)]
pub struct AllowList {
    everything: bool,
    only: Vec<Allowed>,
}

impl AllowList {
    pub fn new(setting: &AllowPrivate) -> Result<AllowList, String> {
        match setting {
            AllowPrivate::All(everything) => {
                Ok(AllowList { everything: *everything, only: Vec::new() })
            }
            AllowPrivate::Only(list) => {
                let only = list.iter().map(|text| text.parse()).collect::<Result<_, _>>()?;
                Ok(AllowList { everything: false, only })
            }
        }
    }

    /// Whether `address`, which is what `host` stands for, may be connected to.
    pub fn permits(&self, host: &str, address: IpAddr) -> bool {
        if self.everything || is_public(address) {
            return true;
        }
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        self.only.iter().any(|allowed| match allowed {
            Allowed::Host(name) => *name == host,
            Allowed::Network { address: network, bits } => within(address, *network, *bits),
        })
    }
}

fn within(address: IpAddr, network: IpAddr, bits: u8) -> bool {
    // An IPv4 address can be written as an IPv6 one; it is the same place.
    match (address.to_canonical(), network.to_canonical()) {
        (IpAddr::V4(a), IpAddr::V4(n)) => same(a.to_bits().into(), n.to_bits().into(), 32, bits),
        (IpAddr::V6(a), IpAddr::V6(n)) => same(a.to_bits(), n.to_bits(), 128, bits),
        _ => false,
    }
}

fn same(address: u128, network: u128, width: u32, bits: u8) -> bool {
    let rest = width.saturating_sub(u32::from(bits));
    address.checked_shr(rest).unwrap_or(0) == network.checked_shr(rest).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permits(list: &[&str], host: &str, address: &str) -> bool {
        let setting = AllowPrivate::Only(list.iter().map(|s| s.to_string()).collect());
        AllowList::new(&setting).unwrap().permits(host, address.parse().unwrap())
    }

    #[test]
    fn private_addresses_need_permission() {
        assert!(permits(&[], "example.org", "8.8.8.8"));
        assert!(!permits(&[], "example.org", "10.1.2.3"));
        assert!(permits(&["10.1.0.0/16"], "x", "10.1.2.3"));
        assert!(permits(&["10.1.0.0/16"], "x", "::ffff:10.1.2.3"));
        assert!(!permits(&["10.1.0.0/16"], "x", "10.2.2.3"));
        assert!(permits(&["Files.Local"], "files.local.", "192.168.0.1"));
        assert!(!permits(&["files.local"], "other.local", "192.168.0.1"));
        assert!(permits(&["::1"], "localhost", "::1"));
        assert!(!permits(&["127.0.0.1"], "localhost", "127.0.0.2"));
        assert!(permits(&["fd00::/8"], "x", "fd12::1"));
        assert!(permits(&["0.0.0.0/0"], "x", "127.0.0.1"));
    }

    #[test]
    fn what_is_no_host_or_network_is_refused() {
        for wrong in ["", "10.0.0.0/33", "a b", "host/8", "fd00::/129", "http://x"] {
            assert!(wrong.parse::<Allowed>().is_err(), "{wrong}");
        }
    }
}
