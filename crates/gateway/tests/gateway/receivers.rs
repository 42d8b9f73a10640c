//! Receivers of notifications: the other end of a webhook and of e-mail, which fail as a test says.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// Behaviour of a receiver towards the next message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mood {
    /// Takes it.
    Accept,
    /// Says that it cannot.
    Fail,
    /// Closes the connection when it has the message.
    Close,
    /// Never answers.
    Silent,
}

/// A message that arrived.
#[derive(Debug, Clone)]
pub(crate) struct Arrived {
    /// Headers, in lower case, or the lines of the envelope.
    pub(crate) head: Vec<String>,
    pub(crate) body: String,
    pub(crate) mood: Mood,
}

impl Arrived {
    pub(crate) fn header(&self, name: &str) -> &str {
        let mut found = self
            .head
            .iter()
            .filter_map(|line| line.split_once(": "))
            .filter(|(known, _)| *known == name);
        found.next().map_or("", |(_, value)| value)
    }
}

/// A receiver that listens.
#[derive(Clone)]
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    arrived: Arc<Mutex<Vec<Arrived>>>,
    moods: Arc<Mutex<VecDeque<Mood>>>,
}

impl Receiver {
    /// Receives webhooks, with these moods in this order; then it accepts.
    pub(crate) async fn of_webhooks(moods: &[Mood]) -> Self {
        Self::listening(moods, |receiver, stream| async move {
            receiver.webhook(stream).await.ok();
        })
        .await
    }

    /// Receives e-mail.
    pub(crate) async fn of_mail(moods: &[Mood]) -> Self {
        Self::listening(moods, |receiver, stream| async move {
            receiver.mail(stream).await.ok();
        })
        .await
    }

    pub(crate) fn arrived(&self) -> Vec<Arrived> {
        self.arrived.lock().unwrap().clone()
    }

    async fn listening<F>(
        moods: &[Mood],
        serve: impl Fn(Self, TcpStream) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let receiver = Self {
            address: listener.local_addr().unwrap(),
            arrived: Arc::default(),
            moods: Arc::new(Mutex::new(moods.iter().copied().collect())),
        };
        let own = receiver.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(own.clone(), stream));
            }
        });
        receiver
    }

    fn next_mood(&self) -> Mood {
        let mut moods = self.moods.lock().unwrap();
        moods.pop_front().unwrap_or(Mood::Accept)
    }

    fn keep(&self, head: Vec<String>, body: String, mood: Mood) {
        let arrived = Arrived { head, body, mood };
        self.arrived.lock().unwrap().push(arrived);
    }

    async fn webhook(self, stream: TcpStream) -> std::io::Result<()> {
        let mut stream = BufReader::new(stream);
        loop {
            let (mut head, mut length) = (Vec::new(), 0);
            loop {
                let mut line = String::new();
                if stream.read_line(&mut line).await? == 0 {
                    return Ok(());
                }
                let line = line.trim_end().to_owned();
                if line.is_empty() {
                    break;
                }
                if let Some((name, value)) = line.split_once(": ") {
                    let name = name.to_ascii_lowercase();
                    if name == "content-length" {
                        length = value.parse().unwrap();
                    }
                    head.push(format!("{name}: {value}"));
                }
            }
            let mut body = vec![0; length];
            stream.read_exact(&mut body).await?;
            let mood = self.next_mood();
            self.keep(head, String::from_utf8(body).unwrap(), mood);
            let status = match mood {
                Mood::Accept => "204 No Content",
                Mood::Fail => "500 Internal Server Error",
                Mood::Close => return Ok(()),
                Mood::Silent => return std::future::pending().await,
            };
            let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
            stream.write_all(answer.as_bytes()).await?;
        }
    }

    async fn mail(self, stream: TcpStream) -> std::io::Result<()> {
        let mut stream = BufReader::new(stream);
        stream.write_all(b"220 mail.example ESMTP\r\n").await?;
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).await? == 0 {
                return Ok(());
            }
            let line = line.trim_end().to_owned();
            let verb = line.split([' ', ':']).next().unwrap().to_ascii_uppercase();
            let answer: &[u8] = match verb.as_str() {
                "EHLO" => b"250-mail.example\r\n250 8BITMIME\r\n",
                "DATA" => b"354 go on\r\n",
                "QUIT" => b"221 bye\r\n",
                _ => b"250 ok\r\n",
            };
            head.push(line);
            stream.write_all(answer).await?;
            if verb == "QUIT" {
                return Ok(());
            }
            if verb != "DATA" {
                continue;
            }
            let mut body = String::new();
            loop {
                let mut line = String::new();
                stream.read_line(&mut line).await?;
                if line == ".\r\n" {
                    break;
                }
                body.push_str(&line);
            }
            let mood = self.next_mood();
            self.keep(std::mem::take(&mut head), body, mood);
            match mood {
                Mood::Accept => stream.write_all(b"250 taken\r\n").await?,
                Mood::Fail => stream.write_all(b"451 full, try later\r\n").await?,
                Mood::Close => return Ok(()),
                Mood::Silent => return std::future::pending().await,
            }
        }
    }
}
