//! Commands on a real terminal: colours, widths, progress bars, and the live screen.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, Command, Output, Stdio};

use countersign_testkit::patience::Watchdog;
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use serde_json::Value;
use tempfile::TempDir;
use unicode_width::UnicodeWidthStr as _;

/// A folder with calls in it, and a terminal in front of it.
struct Place {
    folder: TempDir,
    _watchdog: Watchdog,
}

/// Both ends of a terminal.
struct Terminal {
    person: File,
    screen: File,
}

impl Terminal {
    fn open(columns: u16, rows: u16) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let person = openpt(flags).unwrap();
        grantpt(&person).unwrap();
        unlockpt(&person).unwrap();
        let size = Winsize {
            ws_row: rows,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&person, size).unwrap();
        let name = ptsname(&person, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let screen = rustix::fs::open(name, flags, Mode::empty()).unwrap();
        Self {
            person: person.into(),
            screen: screen.into(),
        }
    }

    fn end(&self) -> Stdio {
        self.screen.try_clone().unwrap().into()
    }

    /// Everything that programs write until the last one of them has ended.
    fn read(self) -> String {
        let Self { mut person, screen } = self;
        drop(screen);
        let (mut text, mut part) = (Vec::new(), [0; 4096]);
        // The end is an error on Linux: no program has the terminal open any more.
        while let Ok(count @ 1..) = person.read(&mut part) {
            text.extend_from_slice(&part[..count]);
        }
        String::from_utf8(text).unwrap().replace("\r\n", "\n")
    }

    /// Reads on until the text has all of these.
    fn until(&mut self, text: &mut String, wanted: &[&str]) {
        let mut part = [0; 4096];
        while !wanted.iter().all(|piece| text.contains(piece)) {
            let count = self.person.read(&mut part).unwrap();
            text.push_str(&String::from_utf8_lossy(&part[..count]));
        }
    }
}

impl Place {
    /// A folder in which calls worked, failed, wait for a person, and have keys.
    fn new() -> Self {
        let place = Self {
            folder: tempfile::tempdir().unwrap(),
            _watchdog: Watchdog::start(),
        };
        for (tool, arguments, key) in [
            ("notes.add", "{\"text\": \"call the bank\"}", "k-1"),
            ("notes.add", "{text: 'renew the passport',}", "k-2"),
            ("notes.add", "{\"text\": 5, \"when\": 7}", "k-3"),
            ("notes.clear", "{}", "k-4"),
        ] {
            place.piped(&["call", tool, "--args", arguments, "--key", key]);
        }
        let grant =
            "grants make --user ann --to agent:shopper --tool notes.clear --calls 3 --until 7d";
        for line in ["keys create --user ann", grant] {
            let words: Vec<&str> = line.split(' ').collect();
            let made = place.piped(&words);
            assert!(made.status.success(), "{made:?}");
        }
        place
    }

    fn path(&self, name: &str) -> String {
        let path = self.folder.path().join(name);
        path.to_str().unwrap().to_owned()
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
        command
            .args(words)
            .current_dir(self.folder.path())
            .env("COUNTERSIGN_DATA", self.folder.path().join("data"))
            .env("COUNTERSIGN_OPERATOR", "tester")
            .env("TERM", "xterm-256color");
        // A machine that builds (`CI`) shows colours on a terminal of any kind.
        for name in [
            "CI",
            "NO_COLOR",
            "CLICOLOR",
            "CLICOLOR_FORCE",
            "COUNTERSIGN_STORE",
            "COUNTERSIGN_MASTER_KEY",
        ] {
            command.env_remove(name);
        }
        command
    }

    /// A command whose output another program reads.
    fn piped(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    /// Everything that a command shows on a terminal.
    fn shown(&self, words: &[&str], columns: u16, variables: &[(&str, &str)]) -> String {
        let terminal = Terminal::open(columns, 40);
        let mut child = self
            .command(words)
            .envs(variables.iter().copied())
            .stdin(terminal.end())
            .stdout(terminal.end())
            .stderr(terminal.end())
            .spawn()
            .unwrap();
        let text = terminal.read();
        child.wait().unwrap();
        text
    }

    /// The newest record.
    fn record(&self) -> String {
        let listed = self.piped(&["calls", "--limit", "1", "--json"]);
        let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
        let first = &listed.get("calls").unwrap_or(&listed)[0];
        first["evidence"].as_str().unwrap().to_owned()
    }

    fn serve(&self) -> Server {
        let mut child = self
            .command(&["serve", "--json", "--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        assert!(line.contains("\"url\""), "{line}");
        Server(child)
    }
}

/// A running server; it ends with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Text without the sequences that steer a terminal, and those that choose a colour or a weight.
fn apart(text: &str) -> (String, Vec<String>) {
    let (mut plain, mut colours) = (String::new(), Vec::new());
    let mut pieces = text.split("\u{1b}[");
    plain.push_str(pieces.next().unwrap());
    for piece in pieces {
        let end = piece.find(|sign: char| sign.is_ascii_alphabetic()).unwrap();
        let (sequence, rest) = piece.split_at(end + 1);
        if sequence.ends_with('m') {
            colours.push(sequence.to_owned());
        }
        plain.push_str(rest);
    }
    (plain, colours)
}

/// B16: a terminal has colours, unless `NO_COLOR` or `TERM=dumb` say otherwise; a pipe has none.
#[test]
fn colours_are_for_terminals_that_want_them() {
    let place = Place::new();
    let lists = [&["calls"][..], &["doctor"], &["call", "nothing.there"]];
    for (variables, is_coloured) in [
        (&[][..], true),
        // An empty variable says nothing (no-color.org).
        (&[("NO_COLOR", "")], true),
        (&[("NO_COLOR", "1")], false),
        (&[("TERM", "dumb")], false),
    ] {
        for words in lists {
            let text = place.shown(words, 80, variables);
            let (plain, colours) = apart(&text);
            assert!(plain.lines().count() > 1, "{words:?}: {plain}");
            assert_eq!(
                !colours.is_empty(),
                is_coloured,
                "{words:?} {variables:?}: {text:?}"
            );
        }
        if !is_coloured {
            let help = place.shown(&["--help"], 80, variables);
            assert_eq!(apart(&help).1, [""; 0]);
        }
    }
    for words in lists {
        let Output { stdout, stderr, .. } = place.piped(words);
        let text = [stdout, stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        assert!(!text.concat().contains('\u{1b}'), "{words:?}: {text:?}");
    }
}

/// B16: no line of a table is wider than the terminal, and ids stay whole.
#[test]
fn tables_fit_the_terminal() {
    let place = Place::new();
    let record = place.record();
    let lists = [
        "calls",
        "tools",
        "evidence list",
        "evidence holds",
        "keys list",
        "approvals list",
        "claims list",
        "grants list",
        "rules",
        "doctor",
        "status",
        "config",
        "upstreams",
        "notify list",
        "policy check",
        "policy report",
        "replay --since 1d",
        "top --once",
    ];
    for columns in [60, 80] {
        for line in lists {
            let words: Vec<&str> = line.split(' ').collect();
            let (text, _) = apart(&place.shown(&words, columns, &[]));
            // A progress bar is drawn over by what comes after it.
            let lines = text.lines().map(|line| line.rsplit('\r').next().unwrap());
            let wide = lines.filter(|line| line.width() > usize::from(columns));
            let wide: Vec<_> = wide.collect();
            assert!(wide.is_empty(), "{columns} columns: {line}: {wide:?}");
        }
        let calls = place.shown(&["calls"], columns, &[]);
        assert!(calls.contains(&record), "{calls}");
    }
}

/// B16: what takes time shows how far it is on a terminal, and writes nothing of it into a pipe.
#[test]
fn progress_is_for_terminals() {
    let place = Place::new();
    let document = place.path("pets.yaml");
    std::fs::write(&document, include_str!("cmd/pets.openapi.yaml")).unwrap();
    let (record, backup) = (place.record(), place.path("seen.db"));
    let (bundle, other) = (place.path("bundle.json"), place.path("piped.db"));
    let verify = ["verify", "--all"];
    let cases: [(&[&str], &str); 6] = [
        (&verify, "records "),
        (&["replay", "--since", "1d"], "calls "),
        (&["replay", "--since", "1d", "--mode", "verify"], "records "),
        (
            &["evidence", "export", &record, "-o", &bundle],
            "collecting records and proofs",
        ),
        (&["import", "openapi", &document], "importing operations"),
        (&["store", "backup", &backup], "rows verified"),
    ];
    for (words, said) in cases {
        let text = place.shown(words, 80, &[]);
        let (plain, _) = apart(&text);
        let drawn: Vec<&str> = plain.split('\r').filter(|line| is_drawn(line)).collect();
        let is_said = drawn.iter().any(|line| line.contains(said));
        assert!(is_said, "{words:?} does not show {said:?}: {text:?}");
        assert!(drawn.iter().all(|line| line.width() <= 80), "{drawn:?}");
        let mut words = words.to_vec();
        if let Some(last) = words.last_mut().filter(|last| **last == backup) {
            *last = &other;
        }
        let Output { stdout, stderr, .. } = place.piped(&words);
        let text = [stdout, stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        assert!(!is_drawn(&text.concat()), "{words:?}: {text:?}");
        assert!(
            !text.concat().contains(['\r', '\u{1b}']),
            "{words:?}: {text:?}"
        );
    }
    // Where only the data goes into a file, people still see how far it is.
    let terminal = Terminal::open(80, 40);
    let file = place.path("export.json");
    let mut child = place
        .command(&["evidence", "export", &record])
        .stdout(File::create(&file).unwrap())
        .stderr(terminal.end())
        .spawn()
        .unwrap();
    let said = terminal.read();
    assert!(child.wait().unwrap().success(), "{said}");
    assert!(said.contains("collecting records and proofs"), "{said:?}");
    let written = std::fs::read(&file).unwrap();
    serde_json::from_slice::<Value>(&written).unwrap();
    // The same with a server, which does the work and tells how far it is.
    let _server = place.serve();
    let text = place.shown(&verify, 80, &[]);
    let (plain, _) = apart(&text);
    let is_said = |line: &str| is_drawn(line) && line.contains("records ");
    assert!(plain.split('\r').any(is_said), "{text:?}");
}

/// True if a text has a part of a bar or a turning spinner.
fn is_drawn(text: &str) -> bool {
    let is_part = |sign: char| matches!(sign, '█' | '░' | '\u{2801}'..='\u{28ff}');
    text.contains(is_part)
}

/// B16: `top` draws the state of the server within the terminal, leaves with `q`, and puts the terminal right again.
#[test]
fn top_draws_and_leaves() {
    let place = Place::new();
    let piped = place.piped(&["top"]);
    assert!(!piped.status.success());
    let _server = place.serve();
    let piped = place.piped(&["top"]);
    let said = String::from_utf8(piped.stderr).unwrap();
    assert!(said.contains("stdout is not a terminal"), "{said}");
    for (columns, rows) in [(60, 20), (100, 40)] {
        let mut terminal = Terminal::open(columns, rows);
        let before = tcgetattr(&terminal.screen).unwrap().local_modes;
        assert!(before.contains(LocalModes::ICANON | LocalModes::ECHO));
        let mut child = place
            .command(&["top"])
            .stdin(terminal.end())
            .stdout(terminal.end())
            .stderr(terminal.end())
            .spawn()
            .unwrap();
        let mut text = String::new();
        let drawn = ["q quits", "calls/min", "notes.add", "\u{1b}[J"];
        terminal.until(&mut text, &drawn);
        let (_, frame) = text.split_once("\u{1b}[H").unwrap();
        let (frame, _) = frame.split_once("\u{1b}[J").unwrap();
        let frame = apart(frame).0.replace('\r', "");
        assert!(frame.lines().count() <= usize::from(rows), "{frame}");
        let is_wide = |line: &&str| line.width() > usize::from(columns);
        assert_eq!(frame.lines().find(is_wide), None, "{columns}: {frame}");
        // Another key draws it anew, `q` ends it.
        terminal.person.write_all(b"xq").unwrap();
        assert!(child.wait().unwrap().success());
        let after = tcgetattr(&terminal.screen).unwrap().local_modes;
        assert_eq!(after, before);
        let rest = terminal.read();
        assert!(rest.ends_with("\u{1b}[?25h\u{1b}[?1049l"), "{rest:?}");
    }
}
