//! Checks the writing of numbers against a file of `bits,text` lines from a JavaScript engine.
//!
//! `node crates/contract/tests/es6/generate.mjs 1000000 > FILE`, then run this with `FILE`.

use std::fs::File;
use std::io::{BufRead, BufReader, Error, Write, stdout};

use countersign_contract::canonical::number_to_string;

fn main() -> Result<(), Error> {
    let usage = || Error::other("usage: check_es6 FILE");
    let file = std::env::args().nth(1).ok_or_else(usage)?;
    let mut lines = 0_u64;
    for line in BufReader::new(File::open(file)?).lines() {
        let line = line?;
        lines += 1;
        let malformed = || Error::other(format!("line {lines} is not `bits,text`: {line}"));
        let (bits, text) = line.split_once(',').ok_or_else(malformed)?;
        let bits = u64::from_str_radix(bits, 16).map_err(|_| malformed())?;
        let ours = number_to_string(f64::from_bits(bits));
        if ours.as_deref() != Some(text) {
            let report = format!("line {lines}: {bits:x} is {text}, not {ours:?}");
            return Err(Error::other(report));
        }
    }
    writeln!(stdout(), "{lines} numbers, all as the engine wrote them")
}
