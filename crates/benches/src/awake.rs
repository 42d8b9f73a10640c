//! Processors that are kept awake while something is measured.
//!
//! A processor without work halts. On a virtual machine its host has to start it again, which takes longer than a call: a gateway that
//! keeps evidence, and so always has some work, measured *faster* than the same gateway without it.

use std::io::{Error, Result};
use std::process::{Child, Command, Stdio};

/// A loop that ends with the program that started it.
const LOOP: &str =
    "while kill -0 $PPID 2> /dev/null; do i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; done";

/// Loops that run where nothing else wants to, one for each processor. They end when this is dropped.
pub struct Awake(Vec<Child>);

impl Awake {
    /// Starts the loops, at the priority that yields to everything (`chrt --idle`, of the package util-linux).
    pub fn keep() -> Result<Self> {
        let count = std::thread::available_parallelism()?.get();
        let mut loops = Self(Vec::new());
        for _ in 0..count {
            let mut command = Command::new("chrt");
            command.args(["--idle", "0", "sh", "-c", LOOP]);
            command.stdin(Stdio::null());
            let child = command.spawn().map_err(|error| {
                let why = format!("`chrt`, of the package util-linux, cannot be started: {error}");
                Error::new(error.kind(), why)
            })?;
            loops.0.push(child);
        }
        Ok(loops)
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // It may have ended by itself.
            let _ended = child.kill();
            let _ended = child.wait();
        }
    }
}
