//! Tells public addresses from private ones.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether an address is public: not of this machine or a private network, not multicast and not reserved. An
/// attacker can make a name resolve to any address.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let own = address.is_private() || address.is_loopback() || address.is_link_local() || a == 0;
    // RFC 6598: carrier-grade NAT; some clouds run their services there.
    let shared = a == 100 && (64..128).contains(&b);
    // RFC 6890: protocol assignments; RFC 2544: benchmarks; RFC 1112: reserved.
    let special = (a, b, c) == (192, 0, 0) || (a == 198 && (18..20).contains(&b)) || a >= 240;
    !(own
        || shared
        || special
        || address.is_multicast()
        || address.is_broadcast()
        || address.is_documentation())
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    if let Some(inner) = inner_v4(address) {
        return is_public_v4(inner);
    }
    // Only global unicast (RFC 4291), without the documentation prefix.
    let [first, second, ..] = address.segments();
    first & 0xe000 == 0x2000 && (first, second) != (0x2001, 0x0db8)
}

/// The IPv4 address embedded in an IPv6 address: mapped, compatible, NAT64 or 6to4.
fn inner_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let ipv4 = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match (a, b, c, d, e, f) {
        (0, 0, 0, 0, 0, 0xffff | 0) | (0x64, 0xff9b, 0, 0, 0, 0) => Some(ipv4(g, h)),
        (0x2002, high, low, ..) => Some(ipv4(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_and_special_addresses_are_not_public() {
        for address in ["8.8.8.8", "140.82.112.3", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "192.0.0.1",
            "192.0.2.1",
            "192.168.1.1",
            "198.18.0.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2001:db8::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "ff02::1",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
    }
}
