//! The proxy outside of the room: whom somebody may talk to, and carrying what they say.

use std::{io, net::SocketAddr, time::Duration};

use cuegate_flow::model::sandbox::Host;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::{TcpStream, UnixStream, lookup_host},
    time::timeout,
};

use super::{
    address::is_public,
    egress::Teller,
    request,
    request::{HEAD_MAX, Request},
};

/// How long somebody may take to say what they want.
const HEAD_WITHIN: Duration = Duration::from_secs(30);
/// How long a host may take to take a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(30);

/// Why a name that may be talked to is not.
const TO_US: &str = "its name leads to an address of this machine or its network";

/// Who may be talked to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Guests {
    /// The agent's own services, wherever they are.
    pub(crate) services: Vec<Host>,
    /// The hosts of the definition.
    pub(crate) hosts: Vec<Host>,
}

/// Why a connection was not made.
enum No {
    /// It may not be.
    Refused { to: String, why: &'static str },
    /// It could not be.
    Failed { to: String, why: String },
    /// Nobody knows what was wanted.
    Unreadable,
}

impl Guests {
    /// Whether a host may be talked to, and whether wherever it is.
    fn admit(&self, host: &str, port: u16) -> Option<Anywhere> {
        let meant = |guest: &&Host| guest.covers(host, port);
        if self.services.iter().any(|service| meant(&service)) {
            return Some(Anywhere(true));
        }
        let named = self.hosts.iter().find(meant)?;
        // Whoever lists an address means that one; a name may be made to lead anywhere.
        Some(Anywhere(named.is_address() || named.is_local()))
    }
}

/// Whether a host may be at an address that is not public.
struct Anywhere(bool);

/// Serves one connection out of the room.
pub(super) async fn serve(mut inside: UnixStream, guests: &Guests, teller: &Teller) {
    let Ok(Ok((head, rest))) = timeout(HEAD_WITHIN, read_head(&mut inside)).await else { return };
    let met = match request::read(&head) {
        Some(request) => meet(&request, guests).await.map(|outside| (request, outside)),
        None => Err(No::Unreadable),
    };
    // Either end may break off at any time; the other one notices.
    let _ = match met {
        Ok((request, outside)) => carry(inside, outside, request.head, &rest).await,
        Err(no) => {
            if let No::Refused { to, why } = &no {
                teller.refused(to, why).await;
            }
            decline(inside, &no).await
        }
    };
}

async fn decline(mut inside: UnixStream, no: &No) -> io::Result<()> {
    inside.write_all(answer(no).as_bytes()).await?;
    inside.shutdown().await
}

/// Reads up to the empty line; returns what came after it as well.
async fn read_head(inside: &mut UnixStream) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let mut read = Vec::new();
    loop {
        if inside.read_buf(&mut read).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if let Some(at) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            let rest = read.split_off(at + 4);
            return Ok((read, rest));
        }
        if read.len() > HEAD_MAX {
            return Ok((read, Vec::new()));
        }
    }
}

/// Connects to whom a request is for, if that may be.
///
/// The name is looked up here and once: the address that was judged is the one that is connected to.
async fn meet(request: &Request, guests: &Guests) -> Result<TcpStream, No> {
    let Request { host, port, .. } = request;
    let to = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
    let refused = |why| No::Refused { to: to.clone(), why };
    let failed = |why: String| No::Failed { to: to.clone(), why };
    let Some(Anywhere(anywhere)) = guests.admit(host, *port) else {
        return Err(refused("it is none of the allowed hosts"));
    };
    let Ok(found) = timeout(CONNECT_WITHIN, lookup_host((host.as_str(), *port))).await else {
        return Err(failed("its name was not found in time".to_owned()));
    };
    let found = found.map_err(|error| failed(error.to_string()))?.collect();
    let fit = fit(found, anywhere).ok_or_else(|| refused(TO_US))?;
    let mut last = "its name leads nowhere".to_owned();
    for address in fit {
        match timeout(CONNECT_WITHIN, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => last = error.to_string(),
            Err(_) => last = "it does not answer".to_owned(),
        }
    }
    Err(failed(last))
}

/// The addresses that may be connected to; `None` when a name leads to none of those and to others.
fn fit(found: Vec<SocketAddr>, anywhere: bool) -> Option<Vec<SocketAddr>> {
    let fit: Vec<SocketAddr> =
        found.iter().copied().filter(|address| anywhere || is_public(address.ip())).collect();
    (found.is_empty() || !fit.is_empty()).then_some(fit)
}

async fn carry(
    mut inside: UnixStream,
    mut outside: TcpStream,
    head: Option<Vec<u8>>,
    rest: &[u8],
) -> io::Result<()> {
    // Answers come in small pieces.
    let _ = outside.set_nodelay(true);
    match head {
        Some(head) => outside.write_all(&head).await?,
        None => inside.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?,
    }
    outside.write_all(rest).await?;
    copy_bidirectional(&mut inside, &mut outside).await.map(drop)
}

/// What the program in the room is told: it may well show it to its agent.
fn answer(no: &No) -> String {
    let (status, said) = match no {
        No::Refused { to, why } => {
            ("403 Forbidden", format!("the sandbox of this run keeps you from {to}: {why}"))
        }
        No::Failed { to, why } => ("502 Bad Gateway", format!("{to} cannot be reached: {why}")),
        No::Unreadable => {
            ("400 Bad Request", "a proxy is asked by CONNECT or by a whole `http://` address".to_owned())
        }
    };
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{said}\n",
        said.len() + 1
    )
}

#[cfg(test)]
mod tests;
