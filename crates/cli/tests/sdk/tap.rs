//! A tap on the wire between a server and a service: everything passes, and the requests are kept.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A port that leads to a service.
pub(crate) struct Tap {
    pub(crate) port: u16,
    seen: Arc<Mutex<Vec<u8>>>,
}

impl Tap {
    pub(crate) fn start(service: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let kept = seen.clone();
        // The threads end with the connections, and with the test's process.
        std::thread::spawn(move || {
            while let Ok((mut near, _)) = listener.accept() {
                let mut far = TcpStream::connect(("127.0.0.1", service)).unwrap();
                let (mut back, mut to) = (far.try_clone().unwrap(), near.try_clone().unwrap());
                std::thread::spawn(move || std::io::copy(&mut back, &mut to));
                let kept = kept.clone();
                std::thread::spawn(move || {
                    let mut bytes = [0; 4096];
                    while let Ok(read @ 1..) = near.read(&mut bytes) {
                        kept.lock().unwrap().extend(&bytes[..read]);
                        far.write_all(&bytes[..read]).unwrap();
                    }
                });
            }
        });
        Self { port, seen }
    }

    /// The last request that was sent to a path, as it was.
    pub(crate) fn last(&self, path: &str) -> String {
        let seen = String::from_utf8(self.seen.lock().unwrap().clone()).unwrap();
        let at = seen.rfind(&format!("POST {path} HTTP/1.1\r\n")).unwrap();
        seen[at..].to_owned()
    }
}
