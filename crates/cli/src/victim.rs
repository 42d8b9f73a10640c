//! A process of this program that is killed on purpose, by the demo and the drill: it says on stdout what it does, line by line, until it
//! is killed.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Command, ExitStatus, Stdio};

use crate::failure::Failure;

/// Starts a process, passes its lines on, and kills it when `hear` returns true. Lines that it wrote before it died are passed on too.
pub(crate) fn kill_when(
    command: &mut Command,
    mut hear: impl FnMut(&str) -> bool,
) -> Result<ExitStatus, Failure> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let Some(said) = child.stdout.take() else {
        return Err(Failure::new("the process cannot be heard"));
    };
    let mut lines = BufReader::new(said).lines();
    for line in lines.by_ref() {
        if hear(&line?) {
            break;
        }
    }
    child.kill()?;
    let ended = child.wait()?;
    for line in lines {
        hear(&line?);
    }
    Ok(ended)
}

/// Writes a line at once, because nothing can be written after the signal.
pub(crate) fn say(line: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("{line}\n").as_bytes())?;
    Ok(out.flush()?)
}

/// Ends this process when its parent has ended: the pipe to stdin closes then.
pub(crate) fn end_with_parent() {
    std::thread::spawn(|| {
        let mut nothing = [0; 1];
        // Whatever ends the reading, nobody is there.
        let _ = std::io::stdin().read(&mut nothing);
        std::process::exit(0);
    });
}
