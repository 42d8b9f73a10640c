//! A load on a server from outside: this number of connections, each sending its next request when the last one was answered. It is the
//! same for every server that is compared, and cheap, because it shares the machine with them.

use std::io::{Error, ErrorKind, Result};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// Makes the request with this number.
pub type MakeRequest = Arc<dyn Fn(u64) -> Vec<u8> + Send + Sync>;

/// A request of HTTP/1.1 with a JSON body.
pub fn post(path: &str, headers: &[(&str, &str)], body: &str) -> Vec<u8> {
    use std::fmt::Write as _;
    let mut text = format!("POST {path} HTTP/1.1\r\nhost: localhost\r\n");
    text.push_str("content-type: application/json\r\n");
    for (name, value) in headers {
        let _ = write!(text, "{name}: {value}\r\n");
    }
    let _ = write!(text, "content-length: {}\r\n\r\n{body}", body.len());
    text.into_bytes()
}

/// Returns the requests a second over this many connections, each of which sends `each`. A request that is not answered with 2xx is an
/// error: a server that is compared has to work.
pub async fn rate(
    server: SocketAddr,
    connections: u64,
    each: u64,
    first: u64,
    make: &MakeRequest,
) -> Result<f64> {
    let mut ready = Vec::new();
    for _ in 0..connections {
        let stream = TcpStream::connect(server).await?;
        stream.set_nodelay(true)?;
        ready.push(Connection::new(stream));
    }
    let begun = Instant::now();
    let mut running = JoinSet::new();
    for (number, mut connection) in ready.into_iter().enumerate() {
        let make = make.clone();
        let first = first + number as u64 * each;
        running.spawn(async move {
            for request in first..first + each {
                connection.ask(&make(request)).await?;
            }
            Result::Ok(())
        });
    }
    while let Some(done) = running.join_next().await {
        done.map_err(Error::other)??;
    }
    Ok(per_second(connections * each, begun.elapsed()))
}

/// The time of every request over this many connections, each of which sends `each`.
pub async fn latencies(
    server: SocketAddr,
    connections: u64,
    each: u64,
    make: &MakeRequest,
) -> Result<Vec<Duration>> {
    let make = make.clone();
    let talk = Talk {
        begin: Vec::new(),
        make: Arc::new(move |number, _| make(number)),
    };
    let bound = Bound {
        each,
        within: Duration::MAX,
    };
    Ok(measure(server, connections, bound, &talk).await?.times)
}

/// Makes the request with this number, in the session that the connection has; the text is empty where there is none.
pub type MakeInSession = Arc<dyn Fn(u64, &str) -> Vec<u8> + Send + Sync>;

/// What a connection says: first the requests that begin it, then one after the other.
#[derive(Clone)]
pub struct Talk {
    /// Requests that begin a session, in the session that the first of them has made.
    pub begin: Vec<MakeInSession>,
    /// The requests that are measured.
    pub make: MakeInSession,
}

/// Requests that were measured.
pub struct Measured {
    /// The time of every request.
    pub times: Vec<Duration>,
    /// The time from the first to the last; sessions were there before.
    pub took: Duration,
}

/// End of a measurement: whichever comes first.
#[derive(Debug, Clone, Copy)]
pub struct Bound {
    /// Requests of each connection.
    pub each: u64,
    /// Time after which a connection sends no further request. Each sends one at least.
    pub within: Duration,
}

/// Measures requests over each of this many connections.
pub async fn measure(
    server: SocketAddr,
    connections: u64,
    bound: Bound,
    talk: &Talk,
) -> Result<Measured> {
    let mut ready = Vec::new();
    for _ in 0..connections {
        let stream = TcpStream::connect(server).await?;
        stream.set_nodelay(true)?;
        let mut connection = Connection::new(stream);
        let session = connection.begin(talk).await?;
        ready.push((connection, session));
    }
    let mut running = JoinSet::new();
    let started = Instant::now();
    for (mut connection, session) in ready {
        let make = talk.make.clone();
        running.spawn(async move {
            let mut times = Vec::new();
            for number in 0..bound.each {
                let request = make(number, &session);
                let begun = Instant::now();
                connection.ask(&request).await?;
                times.push(begun.elapsed());
                if started.elapsed() >= bound.within {
                    break;
                }
            }
            Result::Ok(times)
        });
    }
    let mut times = Vec::new();
    while let Some(done) = running.join_next().await {
        times.extend(done.map_err(Error::other)??);
    }
    let took = started.elapsed();
    Ok(Measured { times, took })
}

/// The answer to one request of a new session.
pub async fn told(server: SocketAddr, talk: &Talk) -> Result<String> {
    let mut connection = Connection::new(TcpStream::connect(server).await?);
    let session = connection.begin(talk).await?;
    connection.ask(&(talk.make)(0, &session)).await?;
    Ok(String::from_utf8_lossy(&connection.answer).into_owned())
}

/// Returns the number a second.
pub fn per_second(count: u64, time: Duration) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX)) / time.as_secs_f64()
}

/// Sends one request, and returns the text of its answer.
pub async fn once(server: SocketAddr, request: &[u8]) -> Result<String> {
    let mut connection = Connection::new(TcpStream::connect(server).await?);
    connection.ask(request).await?;
    Ok(String::from_utf8_lossy(&connection.answer).into_owned())
}

/// A request of HTTP/1.1 without a body.
pub fn get(path: &str, headers: &[(&str, &str)]) -> Vec<u8> {
    use std::fmt::Write as _;
    let mut text = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n");
    for (name, value) in headers {
        let _ = write!(text, "{name}: {value}\r\n");
    }
    text.push_str("\r\n");
    text.into_bytes()
}

/// Sends these requests over this many connections and takes every answer, refusals too.
pub async fn fill(
    server: SocketAddr,
    connections: u64,
    requests: std::ops::Range<u64>,
    make: &MakeRequest,
) -> Result<()> {
    let mut running = JoinSet::new();
    for first in 0..connections {
        let (make, requests) = (make.clone(), requests.clone());
        let stream = TcpStream::connect(server).await?;
        stream.set_nodelay(true)?;
        let mut connection = Connection::new(stream);
        running.spawn(async move {
            let step = usize::try_from(connections).unwrap_or(1);
            let first = usize::try_from(first).unwrap_or_default();
            for number in requests.skip(first).step_by(step) {
                connection.exchange(&make(number)).await?;
            }
            Result::Ok(())
        });
    }
    while let Some(done) = running.join_next().await {
        done.map_err(Error::other)??;
    }
    Ok(())
}

/// A connection that is kept, and the bytes that it has received.
pub struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
    /// The last answer, head and body.
    answer: Vec<u8>,
}

impl Connection {
    /// Connects to a server.
    pub async fn to(server: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(server).await?;
        stream.set_nodelay(true)?;
        Ok(Self::new(stream))
    }

    /// The last answer, head and body.
    pub fn answer(&self) -> String {
        String::from_utf8_lossy(&self.answer).into_owned()
    }

    /// Sends a request whose answer does not end, and waits until this text was received.
    pub async fn listen(&mut self, request: &[u8], until: &str) -> Result<()> {
        self.stream.write_all(request).await?;
        self.hear(until).await
    }

    /// Waits until this text was received; what came before it is forgotten.
    pub async fn hear(&mut self, until: &str) -> Result<()> {
        loop {
            if let Some(place) = find(&self.received, until.as_bytes()) {
                self.received = self.received.split_off(place + until.len());
                return Ok(());
            }
            if self.stream.read_buf(&mut self.received).await? == 0 {
                let why = "the server has hung up";
                return Err(Error::new(ErrorKind::UnexpectedEof, why));
            }
        }
    }

    fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            received: Vec::with_capacity(16 * 1024),
            answer: Vec::new(),
        }
    }

    /// Begins a session; its id, empty where there is none.
    async fn begin(&mut self, talk: &Talk) -> Result<String> {
        let mut session = String::new();
        for make in &talk.begin {
            self.ask(&make(0, &session)).await?;
            if session.is_empty() {
                let answer = String::from_utf8_lossy(&self.answer);
                let id = answer.lines().find_map(|line| {
                    let (name, value) = line.split_once(':')?;
                    let is_it = name.eq_ignore_ascii_case("mcp-session-id");
                    is_it.then(|| value.trim().to_owned())
                });
                session = id.unwrap_or_default();
            }
        }
        Ok(session)
    }

    /// Sends a request, and waits for its answer, which has to be 2xx.
    pub async fn ask(&mut self, request: &[u8]) -> Result<()> {
        self.expect(request, "2").await
    }

    /// Sends a request, and waits for its answer, whose status has to begin so.
    pub async fn expect(&mut self, request: &[u8], status: &str) -> Result<()> {
        self.exchange(request).await?;
        let answered = self.answer.get(9..12).unwrap_or_default();
        if answered.starts_with(status.as_bytes()) {
            return Ok(());
        }
        let answer = String::from_utf8_lossy(&self.answer);
        Err(Error::other(format!("the server answered {answer}")))
    }

    /// Sends a request, and waits for its answer, whatever it is.
    async fn exchange(&mut self, request: &[u8]) -> Result<()> {
        self.stream.write_all(request).await?;
        let end = loop {
            if let Some(end) = answer_end(&self.received)? {
                break end;
            }
            if self.stream.read_buf(&mut self.received).await? == 0 {
                return Err(Error::new(
                    ErrorKind::UnexpectedEof,
                    "the server has hung up",
                ));
            }
        };
        let rest = self.received.split_off(end);
        self.answer = std::mem::replace(&mut self.received, rest);
        Ok(())
    }
}

/// Finds the end of the first answer in the bytes received; `None` until all of it is there.
fn answer_end(received: &[u8]) -> Result<Option<usize>> {
    let Some(head) = find(received, b"\r\n\r\n") else {
        return Ok(None);
    };
    let body = head + 4;
    let text = received.get(..head).unwrap_or_default();
    let text = String::from_utf8_lossy(text).to_ascii_lowercase();
    let value = |name: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
            .map(str::trim)
    };
    if let Some(length) = value("content-length") {
        let length: usize = length.parse().map_err(Error::other)?;
        return Ok(Some(body + length).filter(|end| *end <= received.len()));
    }
    if value("transfer-encoding") == Some("chunked") {
        let rest = received.get(body..).unwrap_or_default();
        return Ok(find(rest, b"\r\n0\r\n\r\n").map(|end| body + end + 7));
    }
    if ["202", "204", "303"]
        .iter()
        .any(|status| text.starts_with(&format!("http/1.1 {status}")))
    {
        return Ok(Some(body));
    }
    Err(Error::other("an answer without a length"))
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}
