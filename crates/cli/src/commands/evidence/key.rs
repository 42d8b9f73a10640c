//! `countersign evidence key`: the public key of the log, as others need it.

use std::io::Write as _;

use countersign_evidence::hex;
use countersign_evidence::receipt::{key_id, public_key_pem};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::answer::write_json;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::operations::Operation;
use crate::place::Place;
use crate::terminal::Terminal;

/// Show the public key of the log
///
/// Send it to verifiers through another channel than the evidence.
#[derive(Debug, clap::Args, Serialize, Deserialize)]
#[command(after_long_help = "\
Examples:
  countersign evidence key > log.pub
  countersign evidence key --pem > log.pem")]
pub(crate) struct Key {
    /// As PEM, for tools that verify COSE receipts
    #[arg(long)]
    pem: bool,
}

impl Operation for Key {
    const NAME: &'static str = "evidence.key";

    fn perform(&self, place: &Place, terminal: &mut Terminal) -> Result<Exit, Failure> {
        let key = &place.log_key;
        let pem = public_key_pem(key);
        if terminal.is_for_programs() {
            let value =
                json!({"key": key.to_string(), "pem": pem, "kid": hex::encode(&key_id(key))});
            write_json(terminal, &value)?;
        } else if self.pem {
            write!(terminal.data(), "{pem}")?;
        } else {
            writeln!(terminal.data(), "{key}")?;
        }
        Ok(Exit::Ok)
    }
}
