//! The two keys of an installation: the master key, which wraps the keys of the users, and the key
//! that signs the log. Both are files beside the data unless the configuration names another place for the first.

use std::fmt::Write as _;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign::ids::IdSource;
use countersign::ledger::Binding;
use countersign_config::sections::Keys;
use countersign_config::value::SecretRef;
use countersign_evidence::cosignature::Cosigner;
use countersign_evidence::note::{SigningKey, VerifyingKey};
use countersign_evidence::seal::MasterKey;
use zeroize::Zeroizing;

use crate::config::secret;
use crate::failure::Failure;
use crate::folder::Folder;
use crate::journal::{self, CHECKPOINT, SIGNED};

/// File of the master key, which wraps the keys of the users.
pub(crate) const MASTER: &str = "master.key";
/// File of the previous master key, kept during a rotation until all user keys are wrapped anew.
pub(crate) const MASTER_OLD: &str = "master.key.old";
/// File of the key that signs the log.
pub(crate) const LOG: &str = "log.key";
/// The key of a log that a restore begins; there until the store is bound to it.
pub(crate) const LOG_NEXT: &str = "log.key.next";
/// File of the public key that others check the log's signatures with.
pub(crate) const LOG_PUBLIC: &str = "log.pub";

/// File of the key of a witness, in a folder of its own.
pub(crate) const WITNESS: &str = "witness.key";

/// Files that a restore has replaced.
pub(crate) const REPLACED: &str = "replaced";

/// Between the name of a log and the number of the one that goes on from it.
const RESTORED: &str = "/restored-";

/// The bytes of a key.
pub(crate) type Secret = Zeroizing<[u8; 32]>;

/// Source of the master key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MasterSource {
    /// In a variable.
    Environment,
    /// In a file that the configuration names.
    NamedFile,
    /// In the data folder, where a rotation can change it.
    Folder,
}

/// Reads the master key; `None` if there is none yet. A key that the configuration names has to exist.
pub(crate) fn master(
    folder: &Folder,
    named: &Keys,
) -> Result<Option<(Arc<MasterKey>, MasterSource)>, Failure> {
    if let Some(secret) = &named.master {
        let source = match secret {
            SecretRef::Env(_) => MasterSource::Environment,
            SecretRef::File(_) => MasterSource::NamedFile,
        };
        return Ok(Some((self::named("keys.master", secret)?, source)));
    }
    let key = master_in(folder, MASTER)?;
    Ok(key.map(|key| (key, MasterSource::Folder)))
}

/// Reads the previous master key during a rotation; `None` if there is none.
pub(crate) fn master_before(
    folder: &Folder,
    named: &Keys,
    source: MasterSource,
) -> Result<Option<Arc<MasterKey>>, Failure> {
    match source {
        MasterSource::Environment | MasterSource::NamedFile => {
            let old = named.master_old.as_ref();
            old.map(|secret| self::named("keys.master_old", secret))
                .transpose()
        }
        MasterSource::Folder => master_in(folder, MASTER_OLD),
    }
}

/// The master key that a setting names.
pub(crate) fn named(key: &str, secret: &SecretRef) -> Result<Arc<MasterKey>, Failure> {
    let text = secret::read(key, secret)?;
    let place = match secret {
        SecretRef::Env(name) => name.clone(),
        SecretRef::File(path) => path.display().to_string(),
    };
    let secret = parse(&text, &place)?;
    Ok(Arc::new(MasterKey::from_bytes(&secret)))
}

/// A master key in a file.
pub(crate) fn master_in(folder: &Folder, name: &str) -> Result<Option<Arc<MasterKey>>, Failure> {
    let Some(text) = folder.read_secret(name)? else {
        return Ok(None);
    };
    let secret = parse(&text, &folder.file(name).display().to_string())?;
    Ok(Some(Arc::new(MasterKey::from_bytes(&secret))))
}

/// A new master key in this file.
pub(crate) fn make_master(
    folder: &Folder,
    name: &str,
    ids: &dyn IdSource,
) -> Result<Arc<MasterKey>, Failure> {
    let secret = draw(ids);
    folder.write_secret(name, &text_of(&secret))?;
    Ok(Arc::new(MasterKey::from_bytes(&secret)))
}

/// Reads the key of the log; `None` if there is none yet.
pub(crate) fn log(folder: &Folder) -> Result<Option<SigningKey>, Failure> {
    log_in(folder, LOG)
}

/// A key of a log in a file.
pub(crate) fn log_in(folder: &Folder, name: &str) -> Result<Option<SigningKey>, Failure> {
    let Some((origin, secret)) = named_in(folder, name)? else {
        return Ok(None);
    };
    Ok(Some(SigningKey::from_seed(origin, &secret)?))
}

/// A key in a file that begins with the name of its owner.
fn named_in(folder: &Folder, name: &str) -> Result<Option<(String, Secret)>, Failure> {
    let Some(text) = folder.read_secret(name)? else {
        return Ok(None);
    };
    let path = folder.file(name).display().to_string();
    let (owner, secret) = text.split_once('\n').ok_or_else(|| not_a_key(&path))?;
    Ok(Some((owner.to_owned(), parse(secret, &path)?)))
}

/// The key of a witness in its folder, made where it is missing. Only a new one needs a name.
pub(crate) fn witness(
    folder: &Folder,
    name: Option<&str>,
    ids: &dyn IdSource,
) -> Result<Cosigner, Failure> {
    if let Some((owner, secret)) = named_in(folder, WITNESS)? {
        return match name {
            Some(name) if name != owner => {
                let path = folder.file(WITNESS);
                let message = format!("{} is the key of {owner:?}", path.display());
                Err(Failure::new(message).hint("leave --name out, or use another folder"))
            }
            Some(_) | None => Ok(Cosigner::from_seed(owner, &secret)?),
        };
    }
    let hint = "name it such as witness.example.com/w1, without spaces";
    let name = name.ok_or_else(|| Failure::new("a new witness needs a --name").hint(hint))?;
    let secret = draw(ids);
    let cosigner = Cosigner::from_seed(name, &secret);
    let cosigner = cosigner.map_err(|error| Failure::from(error).hint(hint))?;
    folder.write_secret(WITNESS, &named_text(name, &secret))?;
    Ok(cosigner)
}

/// The text of a file with a key and the name of its owner.
fn named_text(owner: &str, secret: &Secret) -> Zeroizing<String> {
    Zeroizing::new(format!("{owner}\n{}", text_of(secret).as_str()))
}

/// A new key of the log: its name is random unless it is given.
pub(crate) fn make_log(
    folder: &Folder,
    origin: Option<&str>,
    ids: &dyn IdSource,
) -> Result<SigningKey, Failure> {
    let mut name = [0; 4];
    ids.fill(&mut name);
    let drawn = || format!("countersign.local/{}", hex(&name));
    let origin = origin.map_or_else(drawn, str::to_owned);
    let key = make_log_in(folder, LOG, &origin, ids)?;
    folder.write(LOG_PUBLIC, &format!("{}\n", key.verifying_key()), 0o644)?;
    Ok(key)
}

fn make_log_in(
    folder: &Folder,
    name: &str,
    origin: &str,
    ids: &dyn IdSource,
) -> Result<SigningKey, Failure> {
    let secret = draw(ids);
    let key = SigningKey::from_seed(origin, &secret).map_err(|error| {
        Failure::from(error).hint("an origin is a name such as example.com/log, without spaces")
    })?;
    folder.write_secret(name, &named_text(origin, &secret))?;
    Ok(key)
}

/// A key for the log that goes on from this one, under a name of its own. It counts when the store is bound to it.
pub(crate) fn make_next_log(
    folder: &Folder,
    before: &VerifyingKey,
    ids: &dyn IdSource,
) -> Result<SigningKey, Failure> {
    let base = before.name();
    let base = base.split_once(RESTORED).map_or(base, |(base, _)| base);
    let mut number = [0; 4];
    ids.fill(&mut number);
    make_log_in(
        folder,
        LOG_NEXT,
        &format!("{base}{RESTORED}{}", hex(&number)),
        ids,
    )
}

/// Puts the key of the next log in its place, if the store is bound to it. The one before and its checkpoint are kept in
/// `replaced`.
pub(crate) fn adopt_next_log(folder: &Folder, bound: &str) -> Result<bool, Failure> {
    let Some(next) = log_in(folder, LOG_NEXT)? else {
        return Ok(false);
    };
    let public = next.verifying_key();
    if public.to_string() != bound {
        return Ok(false);
    }
    let replaced = folder.subfolder(REPLACED)?;
    if let (Some(text), Some(before)) = (folder.read_secret(LOG)?, log(folder)?) {
        let id = hex(&before.verifying_key().key_id());
        replaced.write_secret(&format!("{LOG}.{id}"), &text)?;
        if let Some(note) = journal::held(folder, &before.verifying_key())? {
            replaced.write(&format!("{CHECKPOINT}.{id}"), &note, 0o644)?;
        }
    }
    folder.remove(CHECKPOINT)?;
    folder.remove(SIGNED)?;
    folder.write(LOG_PUBLIC, &format!("{public}\n"), 0o644)?;
    folder.rename(LOG_NEXT, LOG)?;
    Ok(true)
}

/// The keys of a folder, as a store is opened with them. While a rotation is not finished, the key before counts too.
pub(crate) fn binding(
    folder: &Folder,
    named: &Keys,
    (master, source): (&MasterKey, MasterSource),
    log: &SigningKey,
    ids: &dyn IdSource,
) -> Result<Binding, Failure> {
    let before = master_before(folder, named, source)?;
    let mut id = [0; 16];
    ids.fill(&mut id);
    let mut binding = Binding::new(format!("in_{}", hex(&id)), master.id(), log.verifying_key());
    binding.master_before = before.map(|before| before.id().to_owned());
    Ok(binding)
}

/// A public key as `--key` takes it: its text, or a file that holds it.
pub(crate) fn public(text: &str) -> Result<VerifyingKey, Failure> {
    let hint = "use the text in log.pub, or the path of such a file";
    if let Ok(key) = text.parse() {
        return Ok(key);
    }
    let read = std::fs::read_to_string(text);
    let read =
        read.map_err(|_| Failure::new(format!("{text:?} is not a public key")).hint(hint))?;
    read.trim()
        .parse()
        .map_err(|error| Failure::from(anyhow::Error::new(error)).hint(hint))
}

/// Hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// 32 bytes of hexadecimal digits.
pub(crate) fn from_hex(text: &str) -> Option<[u8; 32]> {
    let digits = text.as_bytes();
    if digits.len() != 64 || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        let pair = std::str::from_utf8(pair).ok()?;
        *byte = u8::from_str_radix(pair, 16).ok()?;
    }
    Some(bytes)
}

fn draw(ids: &dyn IdSource) -> Secret {
    let mut secret = Zeroizing::new([0; 32]);
    ids.fill(&mut *secret);
    secret
}

fn text_of(secret: &Secret) -> Zeroizing<String> {
    Zeroizing::new(format!("{}\n", hex(&**secret)))
}

/// 32 bytes in hexadecimal digits or base64.
fn parse(text: &str, place: &str) -> Result<Secret, Failure> {
    let text = text.trim();
    let bytes = from_hex(text).or_else(|| {
        let decoded = Zeroizing::new(STANDARD.decode(text).ok()?);
        decoded.as_slice().try_into().ok()
    });
    bytes.map(Zeroizing::new).ok_or_else(|| not_a_key(place))
}

fn not_a_key(place: &str) -> Failure {
    Failure::new(format!("{place} does not contain a key"))
        .hint("a key is 32 bytes, in 64 hexadecimal digits or in base64")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_in_both_spellings_and_nothing_else_is_one() {
        let hex_text = "00ff".repeat(16);
        let bytes = from_hex(&hex_text).unwrap();
        assert_eq!(hex(&bytes), hex_text);
        for text in [hex_text.clone(), format!(" {}\n", STANDARD.encode(bytes))] {
            assert_eq!(*parse(&text, "here").unwrap(), bytes);
        }
        for text in ["", "00ff", &hex_text[1..], &hex_text.replace('f', "g")] {
            let failure = parse(text, "here").unwrap_err();
            assert_eq!(failure.error.to_string(), "here does not contain a key");
        }
    }
}
