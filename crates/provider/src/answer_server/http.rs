//! The server over HTTP on the loopback interface, for agent programs that start no servers themselves.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::Duration,
};

use super::{
    protocol::AnswerProtocol,
    record::append_record,
    server::{RECORDS_FILE, read_schema},
};

/// The largest body of a request, in bytes.
const BODY_MAX: u64 = 32 << 20;
/// How long a connection may say nothing.
const SILENCE_MAX: Duration = Duration::from_secs(300);
/// The longest line of a head, in bytes.
const LINE_MAX: u64 = 16 << 10;

/// A running server. It serves until the process ends.
#[derive(Debug)]
pub(crate) struct HttpAnswerServer {
    address: SocketAddr,
    token: String,
}

struct Shared {
    protocol: AnswerProtocol,
    records: PathBuf,
    token: String,
}

impl HttpAnswerServer {
    /// Serves the schema in a folder on a free port of this machine, for clients that know the token.
    ///
    /// # Errors
    /// When the schema cannot be read or no port can be bound.
    pub(crate) fn start(folder: &Path, token: String) -> io::Result<HttpAnswerServer> {
        let shared = Arc::new(Shared {
            protocol: AnswerProtocol::new(read_schema(folder)?),
            records: folder.join(RECORDS_FILE),
            token: token.clone(),
        });
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = shared.clone();
                // A client that hangs up harms nobody.
                thread::spawn(move || serve_connection(&stream, &shared).ok());
            }
        });
        Ok(HttpAnswerServer { address, token })
    }

    /// The address to send requests to.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// The value of the `Authorization` header.
    pub(crate) fn authorization(&self) -> String {
        format!("Bearer {}", self.token)
    }
}

/// The head of a request, as far as it matters.
#[derive(Default)]
struct RequestHead {
    method: String,
    length: u64,
    authorization: String,
    has_origin: bool,
    closes: bool,
}

fn serve_connection(stream: &TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_read_timeout(Some(SILENCE_MAX))?;
    let mut reader = BufReader::new(stream);
    while let Some(head) = read_head(&mut reader)? {
        let mut body = Vec::new();
        if head.length > BODY_MAX {
            return write_response(stream, "413 Content Too Large", b"");
        }
        reader.by_ref().take(head.length).read_to_end(&mut body)?;
        // Only web pages send an origin, and no agent calls from one.
        if head.has_origin || head.authorization != format!("Bearer {}", shared.token) {
            return write_response(stream, "401 Unauthorized", b"");
        }
        match head.method.as_str() {
            "POST" => {
                let reaction = shared.protocol.receive(&body);
                reaction.records.iter().try_for_each(|record| append_record(&shared.records, record))?;
                match reaction.reply {
                    Some(reply) => write_response(stream, "200 OK", reply.to_string().as_bytes())?,
                    None => write_response(stream, "202 Accepted", b"")?,
                }
            }
            "DELETE" => write_response(stream, "200 OK", b"")?,
            // There is no stream of events.
            _ => write_response(stream, "405 Method Not Allowed", b"")?,
        }
        if head.closes {
            break;
        }
    }
    Ok(())
}

/// The next head of a connection; `None` at its end.
fn read_head(reader: &mut impl BufRead) -> io::Result<Option<RequestHead>> {
    let mut head = RequestHead::default();
    let mut line = String::new();
    if reader.by_ref().take(LINE_MAX).read_line(&mut line)? == 0 {
        return Ok(None);
    }
    head.method = line.split(' ').next().unwrap_or_default().to_owned();
    loop {
        line.clear();
        if reader.by_ref().take(LINE_MAX).read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let Some((name, value)) = line.trim_end().split_once(':') else { return Ok(Some(head)) };
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => head.length = value.parse().map_err(|_| io::ErrorKind::InvalidData)?,
            "authorization" => value.clone_into(&mut head.authorization),
            "origin" => head.has_origin = true,
            "connection" => head.closes = value.eq_ignore_ascii_case("close"),
            _ => {}
        }
    }
}

fn write_response(mut stream: &TcpStream, status: &str, body: &[u8]) -> io::Result<()> {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)?;
    stream.flush()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::answer_server::{
        record::{AnswerRecord, AnswerRecords},
        server::SCHEMA_FILE,
    };

    #[test]
    fn who_knows_the_token_is_answered() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(SCHEMA_FILE), r#"{"type": "object"}"#).unwrap();
        let server = HttpAnswerServer::start(folder.path(), "secret".to_owned()).unwrap();
        let post = |authorization: &str, body: &str| {
            let response = ureq::post(&server.url())
                .config()
                .http_status_as_error(false)
                .build()
                .header("Authorization", authorization)
                .send(body);
            let mut response = response.unwrap();
            (response.status().as_u16(), response.body_mut().read_to_string().unwrap())
        };
        let list = r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}"#;
        assert_eq!(post("Bearer wrong", list).0, 401);
        let (status, body) = post(&server.authorization(), list);
        assert!(status == 200 && body.contains("submit_answer"), "{status} {body}");
        assert_eq!(post(&server.authorization(), r#"{"method": "notifications/initialized"}"#).0, 202);
        let mut records = AnswerRecords::new(folder.path().join(RECORDS_FILE));
        assert_eq!(records.read_new(), [AnswerRecord::Listed]);
    }
}
