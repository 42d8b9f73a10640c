//! The terminal while something is redrawn in it: another screen, keys without Enter, and everything as before at the end.

use std::io::{Read as _, Write as _, stdin, stdout};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::failure::Failure;

/// Opens the other screen, and hides the cursor.
const OPEN: &str = "\u{1b}[?1049h\u{1b}[?25l";

/// Closes it, and shows the cursor.
const CLOSE: &str = "\u{1b}[?25h\u{1b}[?1049l";

/// Moves to the beginning.
const HOME: &str = "\u{1b}[H";

/// Clears the rest of the line.
const CLEAR_LINE: &str = "\u{1b}[K";

/// Clears the rest of the screen.
const CLEAR_REST: &str = "\u{1b}[J";

/// A screen that is open; the terminal is as before when this is dropped.
pub(super) struct Screen {
    /// The settings from before; `None` if stdin is not a terminal.
    before: Option<Termios>,
    keys: Receiver<u8>,
}

/// A key that was pressed.
pub(super) enum Key {
    /// The person wants to end.
    Quit,
    /// Anything else: the screen is drawn anew.
    Other,
}

impl Screen {
    pub(super) fn open() -> Result<Self, Failure> {
        let before = tcgetattr(stdin()).ok();
        if let Some(before) = &before {
            let mut raw = before.clone();
            // Ctrl-C comes as a key, so that the terminal is put right again.
            raw.local_modes
                .remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG);
            tcsetattr(stdin(), OptionalActions::Now, &raw).map_err(std::io::Error::from)?;
        }
        let (sender, keys) = channel();
        // It ends with the process: a read of the terminal cannot be taken back.
        std::thread::Builder::new()
            .name("keys".to_owned())
            .spawn(move || {
                let mut byte = [0];
                while matches!(stdin().read(&mut byte), Ok(1)) {
                    let [key] = byte;
                    if sender.send(key).is_err() {
                        break;
                    }
                }
            })?;
        let screen = Self { before, keys };
        write(OPEN)?;
        Ok(screen)
    }

    /// Draws these lines, as many as there is room for.
    pub(super) fn draw(lines: &[String], rows: usize) -> Result<(), Failure> {
        let mut text = String::from(HOME);
        for (number, line) in lines.iter().take(rows).enumerate() {
            if number > 0 {
                text.push_str("\r\n");
            }
            text.push_str(line);
            text.push_str(CLEAR_LINE);
        }
        text.push_str(CLEAR_REST);
        write(&text)
    }

    /// Waits for a key; `None` if none came in time.
    pub(super) fn key_within(&self, wait: Duration) -> Option<Key> {
        match self.keys.recv_timeout(wait) {
            // q, Esc and Ctrl-C.
            Ok(b'q' | b'Q' | 0x1b | 0x03) => Some(Key::Quit),
            Ok(_) => Some(Key::Other),
            Err(RecvTimeoutError::Timeout) => None,
            // Without stdin nobody can end it by a key.
            Err(RecvTimeoutError::Disconnected) => {
                std::thread::sleep(wait);
                None
            }
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Where the terminal is gone there is nothing to put right.
        let _ = write(CLOSE);
        if let Some(before) = &self.before {
            let _ = tcsetattr(stdin(), OptionalActions::Now, before);
        }
    }
}

fn write(text: &str) -> Result<(), Failure> {
    let mut out = stdout();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}
