//! A witness between its checks, its writes and its end.

use std::sync::atomic::{AtomicBool, Ordering};

use countersign::clock::SystemClock;
use countersign_evidence::note::{Note, SigningKey};
use countersign_evidence::tree::{Hash, leaf_hash, node_hash};

use super::*;

const ORIGIN: &str = "example.com/log";

/// The disk of a witness: what was kept last, and whether it takes more.
#[derive(Clone, Default)]
struct Disk(Arc<(Mutex<Option<String>>, AtomicBool)>);

impl Disk {
    fn kept(&self) -> Option<String> {
        self.0.0.lock().unwrap().clone()
    }

    /// A witness that starts with what is on the disk.
    fn witness(&self) -> Witness {
        let cosigner = Cosigner::from_seed("witness.example/w1", &[8; 32]).unwrap();
        let disk = self.clone();
        let keep = move |id: &str, note: &str| {
            assert_eq!(id, log_id(ORIGIN));
            if disk.0.1.load(Ordering::Relaxed) {
                return Err(io::ErrorKind::StorageFull.into());
            }
            *disk.0.0.lock().unwrap() = Some(note.to_owned());
            Ok(())
        };
        Witness::new(cosigner, Arc::new(SystemClock::new()), keep)
            .follow(log().verifying_key(), self.kept())
            .unwrap()
    }
}

fn log() -> SigningKey {
    SigningKey::from_seed(ORIGIN, &[7; 32]).unwrap()
}

fn request(old_size: u64, size: u64, root: Hash, proof: &[Hash]) -> String {
    let note = Checkpoint::new(ORIGIN, size, root).sign(&log()).unwrap();
    let request = AddCheckpoint {
        old_size,
        proof: proof.to_vec(),
        note: Note::parse(&note).unwrap(),
    };
    request.to_string()
}

#[track_caller]
fn status(witness: &Witness, request: &str) -> u16 {
    match witness.add_checkpoint(request) {
        Ok(_) => 200,
        Err(Uncosigned::Refused(refusal)) => refusal.status(),
        Err(Uncosigned::NotKept(_)) => 500,
    }
}

/// A checkpoint that could not be kept is not cosigned, and the one before still counts.
#[test]
fn nothing_is_cosigned_before_it_is_kept() {
    let [a, b, c] = ["a", "b", "c"].map(|leaf| leaf_hash(leaf.as_bytes()));
    let disk = Disk::default();
    let witness = disk.witness();
    assert_eq!(status(&witness, &request(0, 1, a, &[])), 200);
    disk.0.1.store(true, Ordering::Relaxed);
    let two = request(1, 2, node_hash(&a, &b), &[b]);
    assert_eq!(status(&witness, &two), 500);
    disk.0.1.store(false, Ordering::Relaxed);
    let other = request(1, 2, node_hash(&a, &c), &[c]);
    assert_eq!(status(&witness, &other), 200);
    assert_eq!(status(&witness, &two), 409);
}

/// A witness that ends between the write and its answer knows what it has kept, so the log that asks again gets its
/// cosignature and a second history gets none.
#[test]
fn a_lost_answer_is_given_again_and_a_fork_is_refused() {
    let [a, b, c] = ["a", "b", "c"].map(|leaf| leaf_hash(leaf.as_bytes()));
    let disk = Disk::default();
    // The answer is lost with the process.
    drop(disk.witness().add_checkpoint(&request(0, 1, a, &[])));
    let witness = disk.witness();
    assert_eq!(status(&witness, &request(0, 1, a, &[])), 409);
    assert_eq!(status(&witness, &request(1, 1, a, &[])), 200);
    assert_eq!(status(&witness, &request(1, 1, b, &[])), 409);
    let fork = request(1, 2, node_hash(&b, &c), &[c]);
    assert_eq!(status(&witness, &fork), 422);
    let two = request(1, 2, node_hash(&a, &b), &[b]);
    assert_eq!(status(&witness, &two), 200);

    // The latest checkpoint has both signatures, and nothing else that was sent with it.
    let note = witness.checkpoint(&log_id(ORIGIN)).unwrap();
    assert_eq!(disk.kept().as_ref(), Some(&note));
    let note = Note::parse(&note).unwrap();
    assert_eq!(
        (note.verify(&log().verifying_key()), note.signatures.len()),
        (Ok(()), 2)
    );
    assert!(witness.cosigner.key().verify(&note).is_ok());
    assert_eq!(witness.checkpoint(&log_id("example.com/other")), None);
}

#[test]
fn only_logs_that_are_followed_are_cosigned() {
    let witness = Disk::default().witness();
    let other = SigningKey::from_seed("example.com/other", &[7; 32]).unwrap();
    let note = Checkpoint::new("example.com/other", 1, [1; 32])
        .sign(&other)
        .unwrap();
    assert_eq!(status(&witness, &format!("old 0\n\n{note}")), 404);
    let same_name = SigningKey::from_seed(ORIGIN, &[9; 32]).unwrap();
    let note = Checkpoint::new(ORIGIN, 1, [1; 32])
        .sign(&same_name)
        .unwrap();
    assert_eq!(status(&witness, &format!("old 0\n\n{note}")), 403);
    assert_eq!(status(&witness, "hello"), 400);
    // A file that was put in the place of the kept checkpoint is noticed at the start.
    let witness = Disk::default().witness();
    assert!(witness.follow(log().verifying_key(), Some(note)).is_err());
}
