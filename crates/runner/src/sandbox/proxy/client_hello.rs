//! Reads the name of the server in the first message of a TLS connection (RFC 8446, section 4.1.2; RFC 6066, section 3).

/// The longest first message, in bytes. Those with keys against quantum computers have about 2,000.
pub(super) const HELLO_MAX: usize = 32 << 10;

/// What the first bytes of a connection are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FirstBytes {
    /// More are needed to tell.
    Incomplete,
    /// Not the beginning of TLS.
    Other,
    /// The first message of TLS.
    Hello {
        /// The name of the server, if there is one.
        name: Option<String>,
        /// Whether another name is encrypted (draft-ietf-tls-esni).
        is_encrypted: bool,
    },
}

const RECORD_HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const EXTENSION_NAME: u16 = 0;
const EXTENSION_ENCRYPTED: u16 = 0xfe0d;
/// The extension of an older draft.
const EXTENSION_ENCRYPTED_NAME: u16 = 0xffce;

/// Reads the first bytes of a connection.
pub(super) fn read_first_bytes(bytes: &[u8]) -> FirstBytes {
    match bytes {
        [] => return FirstBytes::Incomplete,
        [RECORD_HANDSHAKE] => return FirstBytes::Incomplete,
        [RECORD_HANDSHAKE, 3, ..] => {}
        _ => return FirstBytes::Other,
    }
    match join_message(bytes) {
        Ok(message) => read_hello(&message).unwrap_or(FirstBytes::Other),
        Err(other) => other,
    }
}

/// Puts the first message together, which may be spread over records.
fn join_message(mut bytes: &[u8]) -> Result<Vec<u8>, FirstBytes> {
    let mut message = Vec::new();
    loop {
        if let [kind, a, b, c, ..] = message[..] {
            let length = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
            if kind != CLIENT_HELLO || length > HELLO_MAX {
                return Err(FirstBytes::Other);
            }
            if message.len() >= 4 + length {
                message.truncate(4 + length);
                message.drain(..4);
                return Ok(message);
            }
        }
        let [kind, major, _, high, low, rest @ ..] = bytes else { return Err(FirstBytes::Incomplete) };
        let length = usize::from(*high) << 8 | usize::from(*low);
        // An empty record would let a client send any number of them.
        if *kind != RECORD_HANDSHAKE || *major != 3 || length == 0 {
            return Err(FirstBytes::Other);
        }
        let Some((body, rest)) = rest.split_at_checked(length) else { return Err(FirstBytes::Incomplete) };
        message.extend_from_slice(body);
        bytes = rest;
    }
}

/// Takes a vector with a length of `width` bytes before it.
fn take_vector<'b>(bytes: &mut &'b [u8], width: usize) -> Option<&'b [u8]> {
    let (length, rest) = bytes.split_at_checked(width)?;
    let length = length.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
    let (taken, rest) = rest.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

fn take_number(bytes: &mut &[u8]) -> Option<u16> {
    let (number, rest) = bytes.split_at_checked(2)?;
    *bytes = rest;
    Some(u16::from_be_bytes([number[0], number[1]]))
}

fn read_hello(message: &[u8]) -> Option<FirstBytes> {
    // The version and the random number.
    let mut rest = message.get(34..)?;
    take_vector(&mut rest, 1)?; // session
    take_vector(&mut rest, 2)?; // cipher suites
    take_vector(&mut rest, 1)?; // compression
    let (mut name, mut is_encrypted) = (None, false);
    if rest.is_empty() {
        return Some(FirstBytes::Hello { name, is_encrypted });
    }
    let mut extensions = take_vector(&mut rest, 2)?;
    if !rest.is_empty() {
        return None;
    }
    while !extensions.is_empty() {
        let kind = take_number(&mut extensions)?;
        let mut body = take_vector(&mut extensions, 2)?;
        match kind {
            EXTENSION_ENCRYPTED | EXTENSION_ENCRYPTED_NAME => is_encrypted = true,
            EXTENSION_NAME => {
                let mut names = take_vector(&mut body, 2)?;
                // A second name could be the one that the server takes.
                if name.is_some() || !body.is_empty() || names.first() != Some(&0) {
                    return None;
                }
                names = &names[1..];
                let host = take_vector(&mut names, 2)?;
                if !names.is_empty() {
                    return None;
                }
                name = Some(String::from_utf8(host.to_vec()).ok()?);
            }
            _ => {}
        }
    }
    Some(FirstBytes::Hello { name, is_encrypted })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A first message with these extensions, in records of `width` bytes.
    pub(in super::super) fn hello(extensions: &[(u16, Vec<u8>)], width: usize) -> Vec<u8> {
        let sized = |bytes: &[u8]| [&u16::try_from(bytes.len()).unwrap().to_be_bytes()[..], bytes].concat();
        let all: Vec<u8> = extensions
            .iter()
            .flat_map(|(kind, body)| [&kind.to_be_bytes()[..], &sized(body)].concat())
            .collect();
        let body = [&[3, 3][..], &[7; 32], &[0], &[0, 2, 0x13, 1], &[1, 0], &sized(&all)].concat();
        let length = u32::try_from(body.len()).unwrap().to_be_bytes();
        let message = [&[1][..], &length[1..], &body].concat();
        message.chunks(width).flat_map(|part| [&[22, 3, 1][..], &sized(part)].concat()).collect()
    }

    pub(in super::super) fn named(name: &str) -> (u16, Vec<u8>) {
        let length = u16::try_from(name.len()).unwrap();
        let entry = [&[0][..], &length.to_be_bytes(), name.as_bytes()].concat();
        (0, [&(length + 3).to_be_bytes()[..], &entry].concat())
    }

    #[test]
    fn the_name_is_read_from_any_number_of_records() {
        let wanted = FirstBytes::Hello { name: Some("a.example".to_owned()), is_encrypted: false };
        for width in [1, 7, 60, 4000] {
            let bytes = hello(&[(10, vec![0; 4]), named("a.example")], width);
            assert_eq!(read_first_bytes(&bytes), wanted, "{width}");
            for end in 0..bytes.len() {
                assert_eq!(read_first_bytes(&bytes[..end]), FirstBytes::Incomplete, "{end} of {width}");
            }
        }
    }

    #[test]
    fn missing_encrypted_and_doubled_names_are_seen() {
        let is = |name: Option<&str>, is_encrypted| FirstBytes::Hello {
            name: name.map(str::to_owned),
            is_encrypted,
        };
        assert_eq!(read_first_bytes(&hello(&[], 100)), is(None, false));
        assert_eq!(read_first_bytes(&hello(&[named("a"), (0xfe0d, vec![0])], 100)), is(Some("a"), true));
        assert_eq!(read_first_bytes(&hello(&[named("a"), named("b")], 100)), FirstBytes::Other);
        for other in [&b"GET / HTTP/1.1\r\n"[..], b"SSH-2.0-x", &[22, 2, 0], &[22, 3, 1, 0, 0]] {
            assert_eq!(read_first_bytes(other), FirstBytes::Other, "{other:?}");
        }
    }

    #[test]
    fn any_bytes_are_read() {
        use cuegate_testkit::fuzz::{Mutator, executions};
        let seeds = [hello(&[named("a.example")], 4000), hello(&[named("b"), (0xfe0d, vec![1; 9])], 11)];
        let seeds: Vec<&[u8]> = seeds.iter().map(Vec::as_slice).collect();
        let mut mutator = Mutator::new(&seeds, &[b"\x16\x03\x01", b"\x00\x00", b"\xff\xff"]);
        for _ in 0..executions(300_000) {
            let _ = read_first_bytes(&mutator.input());
        }
    }
}
