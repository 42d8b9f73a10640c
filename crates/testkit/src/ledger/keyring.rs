//! The users' wrapped keys.

use std::collections::BTreeSet;

use countersign::ledger::WrappedKey;

use super::{Checked, Fresh};

pub(super) async fn the_first_key_of_a_user_counts(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    assert_eq!(store.user_key("u_1").await?, None);
    let first = key("m_1", 1);
    let added = store.add_user_key("u_1", first.clone()).await?;
    assert_eq!(added, first);
    let counts = fresh.handle(1).add_user_key("u_1", key("m_1", 2)).await?;
    assert_eq!(counts, first);
    assert_eq!(store.user_key("u_1").await?, Some(first));
    assert_eq!(store.user_key("u_2").await?, None);
    Ok(())
}

/// A record under an id that its caller chose is found by asking for each user in turn.
pub(super) async fn users_are_listed_in_portions(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    for (n, user) in ["u_b", "\u{e4}", "", "U_a", "u_a"].into_iter().enumerate() {
        store.add_user_key(user, key("m_1", n as u8)).await?;
    }
    let mut seen = Vec::new();
    let mut after = String::new();
    loop {
        let users = store.user_keys(&after, 2).await?;
        let Some((last, _)) = users.last() else { break };
        after.clone_from(last);
        seen.extend(users);
    }
    let expected = [("U_a", 3), ("u_a", 4), ("u_b", 0), ("\u{e4}", 1)];
    let expected = expected.map(|(user, n)| (user.to_owned(), key("m_1", n)));
    assert_eq!(seen, expected);
    Ok(())
}

/// All processes that race to make a user's key go on with the same one.
pub(super) async fn racing_keys_of_a_user_agree(fresh: &Fresh) -> Checked {
    let keys = super::race(16, |n| {
        let store = fresh.handle(n);
        async move { store.add_user_key("u_1", key("m_1", n as u8)).await }
    })
    .await?;
    let kept = fresh.store.user_key("u_1").await?;
    assert!(kept.is_some());
    assert!(keys.iter().all(|key| Some(key) == kept.as_ref()));
    Ok(())
}

pub(super) async fn a_key_is_rewrapped_only_from_what_it_was(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let (old, new) = (key("m_1", 1), key("m_2", 2));
    assert!(!store.rewrap("u_1", &old, new.clone()).await?);
    assert_eq!(store.user_key("u_1").await?, None);
    store.add_user_key("u_1", old.clone()).await?;
    for wrong in [key("m_1", 9), key("m_9", 1)] {
        assert!(!store.rewrap("u_1", &wrong, new.clone()).await?);
        assert_eq!(store.user_key("u_1").await?, Some(old.clone()));
    }
    assert!(store.rewrap("u_1", &old, new.clone()).await?);
    assert!(!store.rewrap("u_1", &old, key("m_3", 3)).await?);
    assert_eq!(store.user_key("u_1").await?, Some(new));
    Ok(())
}

/// A rotation goes on until there is nothing left that the new master key does not wrap.
pub(super) async fn keys_under_another_master_are_found_in_portions(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    for n in 0..5 {
        store.add_user_key(&format!("u_{n}"), key("m_1", n)).await?;
    }
    store.add_user_key("u_new", key("m_2", 9)).await?;
    let mut seen = BTreeSet::new();
    for portion in [2, 2, 1, 0] {
        let others = store.user_keys_not_under("m_2", 2).await?;
        assert_eq!(others.len(), portion);
        for (user_id, old) in others {
            assert_eq!(old.master, "m_1");
            let new = WrappedKey {
                id: None,
                master: "m_2".to_owned(),
                ..old.clone()
            };
            assert!(store.rewrap(&user_id, &old, new).await?);
            assert!(seen.insert(user_id));
        }
    }
    assert_eq!(seen.len(), 5);
    assert_eq!(store.user_keys_not_under("m_1", 10).await?.len(), 6);
    Ok(())
}

fn key(master: &str, byte: u8) -> WrappedKey {
    WrappedKey {
        id: None,
        master: master.to_owned(),
        bytes: vec![byte, 0, 255],
    }
}
