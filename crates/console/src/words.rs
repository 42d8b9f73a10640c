//! The words of the console: one table a language, the same keys in both. A key that one language lacks does not compile.

use countersign::contract::Language;

mod en;
mod zh;

macro_rules! words {
    ($($key:ident),* $(,)?) => {
        /// The words of one language.
        #[derive(Debug)]
        pub(crate) struct Words {
            /// BCP 47.
            pub(crate) tag: &'static str,
            $(pub(crate) $key: &'static str,)*
        }

        #[cfg(test)]
        impl Words {
            /// Every key with its words.
            fn all(&self) -> Vec<(&'static str, &'static str)> {
                vec![$((stringify!($key), self.$key)),*]
            }
        }
    };
}

words![
    overview,
    approvals,
    in_doubt_page,
    calls,
    tools,
    upstreams,
    evidence_log,
    policy,
    errors,
    settings,
    docs,
    search,
    search_hint,
    pages,
    skip,
    sign_in,
    sign_out,
    this_machine,
    proof_open,
    proof_key,
    proof_token,
    proof_operator,
    open_note,
    keys_title,
    keys_search,
    keys_rows,
    keys_open,
    keys_approve,
    keys_json,
    keys_help,
    keys_go,
    close,
    as_json,
    other_language,
    not_shown,
    no_such_page,
    for_operators,
    for_operators_hint,
    back_home,
    form_too_old,
    key_not_accepted,
    key_is_an_agents,
    link_is_over,
    link_ready,
    go_on,
    api_key,
    key_hint,
    or_link,
    sign_in_at,
    or_key,
    signed_in_now,
    token_not_accepted,
    token_is_an_agents,
    issuer_not_configured,
    issuer_not_asked,
    issuer_declined,
    issuer_unusable,
    tagline,
    needs_you,
    wait_one,
    wait_many,
    open_inbox,
    doubt_one,
    doubt_many,
    settle_them,
    nothing_waits,
    log_signed,
    log_signed_end,
    log_stopped,
    last_hour,
    calls_a_minute,
    of_them_errors,
    answered,
    with_error,
    repaired_calls,
    since_start,
    busiest_tools,
    latest_calls,
    all_calls,
    empty_title,
    empty_try,
    empty_curl,
    empty_demo,
    tool,
    behaviour,
    errors_share,
    when,
    user,
    result,
    p50,
    p99,
    manner_dry_run,
    manner_replay,
    filter,
    any,
    since,
    until,
    time_hint,
    clear,
    older,
    live,
    live_hint,
    no_calls,
    no_calls_hint,
    no_match,
    too_many_streams,
    read,
    write,
    external,
    confirm,
    evidence,
    evidence_card,
    valid_for,
    find_tool,
    no_tools,
    no_tools_hint,
    call_it,
    fields,
    raw_json,
    raw_hint,
    dry_run_hint,
    on_behalf,
    idempotency,
    key_optional,
    required,
    add_item,
    reply,
    replied_ok,
    replied_dry,
    see_call,
    see_approval,
    what_changed,
    place,
    before,
    after,
    meaning,
    copy,
    copied,
    copy_as,
    declaration,
    model_sees,
    tokens,
    no_reply,
    error_page,
    dry_run,
    replayed,
    in_doubt,
    repaired,
    said_ok,
    said_dry_run,
    said_replayed,
    said_in_doubt,
    said_waits,
    said_failed,
    said_refused,
    said_approval,
    said_access,
    said_erasure,
    said_config,
    said_intent,
    said_resolution,
    said_checkpoint,
    where_time,
    phase_queued,
    phase_waited,
    phase_ran,
    phase_settled,
    three_panes,
    pane_raw,
    pane_bound,
    pane_data,
    sealed_note,
    reason,
    open_it,
    opened_note,
    public_values,
    no_public,
    content_erased,
    content_pruned,
    content_nothing,
    once,
    no_key,
    key_digest,
    attempt,
    state,
    history,
    proof_signed,
    proof_waiting,
    proof_not_included,
    snapshot,
    place_in_log,
    rules,
    version,
    build,
    valid_until,
    rests_on,
    looked_at,
    links,
    verify,
    recompute,
    export_proof,
    whole_case,
    check_intact,
    check_broken,
    check_same,
    check_differs,
    check_not_computed,
    a_person,
    an_agent,
    a_program,
    by,
    act,
    state_pending,
    state_approved,
    state_denied,
    state_used,
    state_expired,
    asked,
    expires,
    asks,
    amount,
    question,
    no_approvals,
    no_approvals_hint,
    exactly_this,
    would_answer,
    irreversible,
    four_eyes,
    first_yes,
    together,
    session,
    see_session,
    tree_and_time,
    after_start,
    took,
    line_of_time,
    lasted,
    session_is_cut,
    session_note,
    edit_and_try,
    tried_again,
    same_answer,
    then_and_now,
    recorded_then,
    computed_now,
    dry_run_again,
    dry_run_note,
    upstream_up,
    upstream_down,
    tools_listed,
    tools_approved,
    tools_changed,
    pin,
    test_now,
    what_fails,
    since_when,
    last_time,
    all_codes,
    saved_views,
    view_name,
    save_view,
    drop_view,
    errors_grouped,
    together_note,
    same_shape,
    answer_together,
    one_record_each,
    nothing_chosen,
    other_shape,
    narrow,
    narrow_lower,
    narrow_fewer,
    narrow_subset,
    approve,
    deny,
    reason_optional,
    shown_digest,
    digest_note,
    answered_by,
    may_not_answer,
    the_call,
    no_doubts,
    no_doubts_hint,
    doubt_note,
    happened,
    did_not_happen,
    answer_json,
    settled,
    not_in_doubt,
    answer_no_json,
    checkpoint,
    checkpoint_note,
    no_checkpoint,
    unsigned_records,
    who_did_what,
    kind,
    no_acts,
    no_upstreams,
    no_upstreams_hint,
    config_file,
    revision,
    callable,
    not_callable,
    needs_scopes,
    agents,
    policy_file,
    no_policy,
    looks_wrong,
    code,
    http_status,
    retry,
    summary,
    count,
    latest_with_code,
    no_call_with_code,
    setting,
    value,
    origin,
    fact_version,
    fact_started,
    fact_build,
    fact_store,
    fact_records,
    fact_size,
    fact_free,
    no_settings,
    guides_tutorials,
    guides_how_tos,
    guides_reference,
    guides_explanation,
    find_guide,
    no_guide,
    nothing_found,
    nothing_found_hint,
    authority,
    who_may_answer,
    or_with_scope,
    never_an_agent,
    two_people,
    asked_for_by,
    rule_unknown,
    line,
    model_wrote,
    more_of_shape,
    older_questions,
    newest_questions,
    older_than,
    chosen,
    no_doubt_chosen,
    no_outcome_chosen,
    settle_chosen,
    settled_one_by_one,
    oldest_doubts,
    newer_doubts,
    no_witness,
    witnessed_by,
    checkpoints,
    root_hash,
    tile,
    smaller_trees,
    who,
    event,
    done_to,
    why,
    sealed,
    reasons_note,
    show_reasons,
    older_acts,
    why_decided,
    ruled_allow,
    ruled_confirm,
    ruled_four_eyes,
    ruled_deny,
    policy_not_kept,
    entry,
    what_it_says,
    in_time,
    time_ago,
    seconds,
    minutes,
    hours,
    days,
];

impl Words {
    /// The language that these are.
    pub(crate) fn language(&self) -> Language {
        if self.tag == of(Language::Chinese).tag {
            Language::Chinese
        } else {
            Language::English
        }
    }
}

/// The words of a language.
pub(crate) fn of(language: Language) -> &'static Words {
    match language {
        Language::English => &en::WORDS,
        Language::Chinese => &zh::WORDS,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Words that are the same in both languages: signs, names and forms.
    const SAME: [&str; 5] = ["as_json", "p50", "p99", "time_hint", "http_status"];

    /// Every key is said in both languages, in its own words, with the same places to fill in, and is used by a page.
    #[test]
    fn both_languages_say_everything() {
        let (english, chinese) = (of(Language::English).all(), of(Language::Chinese).all());
        assert!(english.len() > 200);
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut used = String::new();
        let mut folders = vec![folder.join("templates"), folder.join("src")];
        while let Some(folder) = folders.pop() {
            for file in std::fs::read_dir(folder).unwrap() {
                let path = file.unwrap().path();
                let is_table = path.ends_with("src/words") || path.ends_with("src/words.rs");
                if path.is_dir() && !is_table {
                    folders.push(path);
                } else if !is_table {
                    used.push_str(&std::fs::read_to_string(path).unwrap());
                }
            }
        }
        // A longer key does not use a shorter one.
        let members: BTreeSet<&str> = used
            .split('.')
            .skip(1)
            .map(|rest| {
                let is_end = |sign: char| sign != '_' && !sign.is_ascii_alphanumeric();
                rest.split(is_end).next().unwrap_or_default()
            })
            .collect();
        for ((key, en), (_, zh)) in english.into_iter().zip(chinese) {
            assert!(!en.trim().is_empty() && !zh.trim().is_empty(), "{key}");
            let is_latin = zh.is_ascii() && zh == en;
            assert!(
                !is_latin || SAME.contains(&key) || key == "log_signed_end" || key == "tokens",
                "{key}"
            );
            for place in ["{}", "{tool}", "{code}", "{took}"] {
                assert!(en.contains(place) || !zh.contains(place), "{key} {place}");
            }
            assert!(members.contains(key), "no page says {key}");
        }
    }
}
