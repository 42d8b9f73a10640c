//! Test cases that every store has to pass, over the traits of [`countersign::ledger`].
//!
//! A store's own tests say how a store is opened ([`Fixture`]) and call [`ledger_contract!`](crate::ledger_contract), which makes a test of
//! every case. [`lockstep`] compares a store with the model in memory.
//!
//! No case waits for time to pass. A lease or a retention that has to be over is zero, because a database has a clock of its own; a case
//! that needs more time to pass runs in full only if the fixture lends its clock.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use countersign::BoxFuture;
use countersign::clock::ManualClock;
use countersign::ledger::{ClaimQuery, ClaimRow, ClaimState, Error, LogQuery, LogRow, Store};
use tokio::runtime::Runtime;
use tokio::sync::Barrier;

mod approvals;
pub mod build;
mod claims;
mod documents;
mod erased;
mod erasure;
pub mod forged;
mod grants;
mod holds;
mod installation;
mod keyring;
mod lockstep;
mod log;
mod outbox;
mod paces;
mod pots;
mod queries;
mod races;
mod recovery;
mod retention;
mod takes;
mod texts;
mod timekeeping;
mod vitals;

pub use lockstep::lockstep;

/// Opens stores for the cases.
pub trait Fixture: Send + Sync {
    /// A store with nothing in it.
    fn fresh(&self) -> BoxFuture<'_, Fresh>;
}

/// A store with nothing in it, and what belongs to it.
pub struct Fresh {
    store: Arc<dyn Store>,
    replica: Option<Arc<dyn Store>>,
    clock: Option<Arc<ManualClock>>,
    kept: Option<Box<dyn Any + Send + Sync>>,
}

impl Fresh {
    /// Wraps a store, without replica and clock.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            replica: None,
            clock: None,
            kept: None,
        }
    }

    /// The clock that the store goes by.
    pub fn by(mut self, clock: Arc<ManualClock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// A second handle onto the same data, as another process has one; races go through both.
    pub fn with_replica(mut self, replica: Arc<dyn Store>) -> Self {
        self.replica = Some(replica);
        self
    }

    /// Keeps something alive as long as the store, such as its folder; it is dropped after the store.
    pub fn keeping(mut self, kept: impl Any + Send + Sync) -> Self {
        self.kept = Some(Box::new(kept));
        self
    }

    /// The handle for the `n`th of several racing tasks.
    fn handle(&self, n: usize) -> Arc<dyn Store> {
        match &self.replica {
            Some(replica) if n % 2 == 1 => replica.clone(),
            Some(_) | None => self.store.clone(),
        }
    }
}

impl fmt::Debug for Fresh {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fresh")
            .field("replica", &self.replica.is_some())
            .field("clock", &self.clock)
            .field("kept", &self.kept.is_some())
            .finish_non_exhaustive()
    }
}

/// One test case that every store has to pass.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// Its name, after that of its group.
    pub name: &'static str,
    run: for<'a> fn(&'a Fresh) -> BoxFuture<'a, Checked>,
}

/// A case fails by an assertion, or because the store did not answer.
type Checked = Result<(), Error>;

/// Every case.
pub const CASES: &[Case] = crate::ledger_contract!(@list cases ());

/// Runs one case on a store that the fixture opens.
///
/// # Panics
///
/// If the store does not do what the case says.
pub fn run(fixture: &impl Fixture, name: &str) {
    let case = CASES.iter().find(|case| case.name == name);
    let case = case.expect("the name of a case");
    runtime().block_on(async {
        let fresh = fixture.fresh().await;
        let checked = (case.run)(&fresh).await;
        assert!(checked.is_ok(), "{name}: {checked:?}");
    });
}

/// Runs this number of tasks at once, and returns their results in order.
async fn race<T, F>(tasks: usize, task: impl Fn(usize) -> F) -> Result<Vec<T>, Error>
where
    T: Send + 'static,
    F: Future<Output = Result<T, Error>> + Send + 'static,
{
    let start = Arc::new(Barrier::new(tasks));
    let mut racing = Vec::new();
    for n in 0..tasks {
        let (start, task) = (start.clone(), task(n));
        racing.push(tokio::spawn(async move {
            start.wait().await;
            task.await
        }));
    }
    let mut done = Vec::new();
    for task in racing {
        done.push(task.await.expect("no task panics")?);
    }
    Ok(done)
}

/// The claims in a state.
async fn rows(store: &dyn Store, state: ClaimState) -> Result<Vec<ClaimRow>, Error> {
    let query = ClaimQuery {
        state: Some(state),
        limit: 1_000,
        ..ClaimQuery::default()
    };
    store.claims(&query).await
}

/// Every record, newest first.
async fn all_records(store: &dyn Store) -> Result<Vec<LogRow>, Error> {
    let query = LogQuery {
        limit: 10_000,
        ..LogQuery::default()
    };
    store.records(&query).await
}

/// Two threads, so that what races really does.
fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("threads can be started")
}

/// Makes a test of every case, with a fixture of its own for each: `ledger_contract!(Memory::new());`.
#[macro_export]
macro_rules! ledger_contract {
    (@list $then:ident $with:tt) => {
        $crate::ledger_contract! { @$then $with
            claims {
                nothing_is_known_of_a_new_scope
                a_claim_is_running_and_held_for_everybody_else
                a_claim_for_other_arguments_is_told_and_changes_nothing
                the_same_key_of_another_user_or_tool_is_another_key
                success_is_kept_with_its_answer
                a_final_failure_is_kept_with_its_answer
                a_release_lets_the_same_call_take_it_again
                a_release_lets_other_arguments_take_it
                an_abandoned_claim_is_taken_over_by_the_same_call_alone
                doubt_is_kept_until_it_is_resolved
                attempts_rise_with_every_claim
                attempts_are_used_up
                a_settled_claim_cannot_be_settled_again
                a_claim_that_was_never_made_cannot_be_settled
                operators_see_claims_oldest_first_and_filtered
                claims_are_found_by_the_keys_of_users
                operators_see_the_newest_attempt
                racing_claims_have_one_owner
            }
            recovery {
                retry_takes_over_when_the_lease_is_over
                a_downstream_key_takes_over_within_its_window
                a_downstream_key_is_in_doubt_after_its_window
                four_fifths_of_the_window_count_from_the_first_claim
                the_others_are_in_doubt_when_the_lease_is_over
                the_lost_owner_says_what_it_leaves_behind
                a_lease_that_is_not_over_is_nobody_elses
                an_overtaken_owner_is_fenced_and_its_record_kept
                a_late_owner_that_nobody_overtook_settles
                a_paused_owner_in_doubt_settles_itself
                an_operator_settles_what_is_in_doubt
                an_abandoned_scope_of_other_arguments_stays_as_it_is
                racing_takeovers_have_one_owner
            }
            takes {
                a_take_settles_in_one_piece
                a_take_after_a_release_is_the_next_attempt
                a_take_by_an_older_look_is_held
                a_take_after_a_release_may_have_other_arguments
                a_take_of_what_is_settled_for_other_arguments_is_held
                a_take_of_what_is_settled_gets_its_answer
                a_take_of_what_runs_is_held
                a_take_may_release
                the_same_record_commits_once
                the_same_settlement_commits_once
                a_fenced_commit_is_fenced_again
                racing_takes_commit_once_and_share_the_answer
                racing_repeats_of_one_commit_all_hear_it_was_done
            }
            retention {
                what_is_past_its_retention_is_refused_for_ever
                a_sweep_keeps_refusing_what_it_drops
                a_tombstone_stays_until_it_is_forgotten
                a_sweep_marks_lost_owners_in_doubt
                a_sweep_leaves_doubt_and_releases_alone
                a_sweep_does_not_do_more_than_its_limit
                an_answer_is_kept_until_its_time
            }
            timekeeping {
                a_clock_that_agrees_is_believed
                a_jump_removes_nothing
                a_jump_is_recorded_once_and_so_is_its_end
                an_operator_may_trust_the_clock
                every_removal_has_its_record
            }
            documents {
                a_document_that_never_was_has_version_zero
                versions_rise_with_every_write
                bodies_come_back_byte_for_byte
                a_deleted_document_keeps_its_version
                a_read_that_is_out_of_date_stops_a_commit
                reads_that_still_hold_stop_nothing
                nothing_of_a_stopped_commit_is_done
                users_and_collections_are_apart
                a_scan_goes_by_bytes
                a_scan_passes_over_what_is_deleted
                an_insert_and_a_delete_move_a_scanner
                documents_are_found_by_their_entries
                a_change_of_entries_moves_a_searcher
                what_is_open_is_counted_for_all_users
                all_documents_are_listed
                an_untracked_collection_has_no_shape
            }
            races {
                write_skew_is_stopped
                write_skew_on_absent_documents_is_stopped
                racing_inserts_of_scanners_are_stopped
                a_scan_and_an_insert_do_not_both_come_first
                increments_are_all_counted
                transfers_in_both_directions_get_through
                a_key_is_not_spent_on_a_commit_that_was_stopped
            }
            log {
                an_empty_log_has_an_empty_tree
                batched_records_are_there_after_a_flush
                a_committed_record_is_there_at_once
                a_record_comes_back_as_it_was
                a_record_is_kept_once
                integration_goes_in_portions
                leaves_come_in_order_and_in_portions
                leaves_come_in_the_order_in_which_they_were_kept
                tiles_prove_every_leaf_and_every_growth
                records_that_commit_late_are_not_skipped
                racing_sequencers_share_the_work
                a_sequencing_lease_is_kept
                a_lease_of_nothing_is_free_at_once
                a_second_root_for_a_size_is_a_fork
            }
            queries {
                records_are_found_by_every_column
                records_are_read_page_by_page
            }
            holds {
                a_payload_goes_when_its_time_is_over
                pruning_goes_in_portions
                a_payload_is_kept_until_its_time
                a_hold_keeps_payloads
                a_hold_does_not_use_up_the_limit
                holds_are_listed_and_lifted_once
            }
            erasure {
                a_user_is_forgotten
                other_users_stay
                an_erasure_does_not_touch_the_tree
                a_hold_forbids_an_erasure
                nobody_is_forgotten_too
                a_user_may_come_back
                nothing_of_a_user_comes_back_under_a_destroyed_key
                a_record_under_a_destroyed_key_is_kept_without_its_user
                what_is_shared_is_written_without_the_user
                a_commit_sent_again_after_an_erasure_brings_nothing_back
                a_key_without_a_name_is_the_only_one
                whoever_holds_a_destroyed_key_is_told
                racing_calls_of_an_erased_user_leave_nothing
            }
            erased {
                a_write_of_a_user_erased_meanwhile_is_not_made
                an_effect_of_a_user_erased_meanwhile_is_recorded
                a_read_of_a_user_erased_meanwhile_leaves_no_name
                a_process_that_has_not_heard_writes_nothing
                racing_calls_and_erasures_leave_a_valid_log
                a_named_record_without_a_key_is_found
            }
            pots {
                what_is_reserved_is_spent_by_the_commit
                what_is_released_can_be_spent_again
                all_pots_or_none
                the_pot_that_takes_longest_is_named
                the_real_amount_counts
                a_refund_is_credited_once_and_fills_no_pot_beyond_its_limit
                a_check_changes_nothing
                asking_again_for_the_same_reserves_once
                currency_and_window_make_another_pot
                a_claim_reserves_with_it
                a_claim_without_money_is_not_taken
                a_takeover_takes_over_the_money
                doubt_keeps_the_money_until_it_is_resolved
                a_fenced_owner_spends_nothing
                a_lost_owner_leaves_what_it_said
                a_claim_that_runs_keeps_its_money
                a_commit_without_its_reservation_does_nothing
                a_repeated_commit_spends_once
                pots_of_an_erased_user_go_and_open_calls_count
                a_new_window_is_a_new_pot
                a_clock_that_jumps_opens_no_window
                racing_calls_never_spend_more_than_the_limit
                racing_claims_never_spend_more_than_the_limit
            }
            paces {
                a_burst_is_let_in_and_then_an_even_pace
                another_rule_keeps_the_count
                a_window_lets_so_many_in_and_starts_anew
                all_paces_or_none
                the_pace_that_takes_longest_is_named
                racing_calls_are_let_in_as_often_as_they_may
                racing_calls_of_one_pace_are_let_in_as_often_as_they_may
                racing_calls_that_cross_are_all_counted
            }
            vitals {
                a_new_store_is_empty_and_takes_writes
                what_waits_for_the_tree_is_counted
                calls_in_doubt_are_counted
                a_pace_is_looked_at_without_counting
            }
            texts {
                nothing_is_found_before_a_corpus_is_kept
                words_of_both_languages_are_found
                a_language_can_be_asked_for
                hits_are_those_of_the_model
                chunks_are_read_back
                hostile_questions_are_only_questions
                hits_are_bounded
                a_large_corpus_is_kept_and_searched
                a_version_is_kept_once_and_never_changes
                the_newest_versions_stay
                racing_keepers_and_readers_see_whole_versions
                a_keeper_that_is_dropped_leaves_nothing_behind
            }
            outbox {
                a_finding_has_one_notice
                a_finding_that_comes_back_has_a_new_notice
                a_finding_that_another_process_sees_stays
                a_look_that_is_not_complete_ends_nothing
                a_new_target_gets_what_is_open
                a_delivery_is_leased_until_its_time
                a_lost_sender_is_followed_by_the_same_message
                a_delivery_that_was_made_stays_made
                a_failure_waits_and_is_given_up_in_the_end
                what_was_given_up_is_sent_again_when_asked
                a_late_failure_changes_nothing
                the_newest_notices_stay
                racing_keepers_keep_one_notice
                racing_senders_take_each_delivery_once
            }
            keyring {
                the_first_key_of_a_user_counts
                users_are_listed_in_portions
                racing_keys_of_a_user_agree
                a_key_is_rewrapped_only_from_what_it_was
                keys_under_another_master_are_found_in_portions
            }
            installation {
                a_store_names_its_keys
                other_keys_come_with_their_record
                racing_keys_have_one_winner
                another_log_begins_over_the_same_records
            }
            approvals {
                unkeyed_writes_of_a_model_happen_once
                racing_writes_use_an_approval_once
                racing_keyed_writes_use_an_approval_once
                racing_effects_elsewhere_use_an_approval_once
                racing_keyed_effects_elsewhere_use_an_approval_once
                racing_questions_are_one
                racing_answers_count_once
                racing_approvers_are_two
                a_no_holds_new_questions_back_everywhere
                racing_refusals_leave_one_record
                questions_and_answers_survive_a_restart
                an_erased_user_leaves_no_question
            }
            grants {
                racing_writes_never_overspend_a_grant
                racing_effects_elsewhere_never_overspend_a_grant
                a_revocation_ends_a_grant_everywhere
                grants_survive_a_restart_and_go_with_their_user
            }
        }
    };
    (@tests ($fixture:expr) $($group:ident { $($case:ident)* })*) => {
        $(
            mod $group {
                use super::*;

                $(
                    #[test]
                    fn $case() {
                        let name = concat!(stringify!($group), "::", stringify!($case));
                        $crate::ledger::run(&$fixture, name);
                    }
                )*
            }
        )*
    };
    (@cases () $($group:ident { $($case:ident)* })*) => {
        &[$($(
            Case {
                name: concat!(stringify!($group), "::", stringify!($case)),
                run: |fresh| Box::pin($group::$case(fresh)),
            },
        )*)*]
    };
    ($fixture:expr) => {
        $crate::ledger_contract!(@list tests ($fixture));
    };
}
