//! Long cases, page by page.

use countersign::archive::CasePart;
use countersign::contract::Language;

use super::*;
use crate::case::{Look, Question};

fn step(at: usize, details: usize) -> Step {
    let line = |at: usize| Line::new(&format!("Answered › {at}"), "\"<x>\"".repeat(20));
    Step {
        id: format!("ev_{at}"),
        at: String::new(),
        moment: String::new(),
        part: CasePart::Ground,
        tone: "ok",
        title: "Price quote".to_owned(),
        tool: String::new(),
        by: String::new(),
        outcome: String::new(),
        lines: (0..3).map(line).collect(),
        shown: None,
        details: (0..details).map(line).collect(),
        rules: Vec::new(),
        proof: String::new(),
        is_sealed: false,
        is_folded: false,
        is_wanted: false,
    }
}

fn story(steps: usize, details: usize) -> Story {
    let mut story = Story::empty(Language::English);
    story.steps = (0..steps).map(|at| step(at, details)).collect();
    story
}

fn ids(story: &Story) -> Vec<String> {
    story.steps.iter().map(|step| step.id.clone()).collect()
}

/// A short case is one page with everything.
#[test]
fn a_short_case_is_whole() {
    let mut short = story(3, 5);
    let whole = short.clone();
    let window = fold(&mut short, 0, "");
    assert!(window.is_whole() && !window.has_folded);
    assert_eq!(short, whole);
}

/// Every step is on one page, and no page is too long.
#[test]
fn a_long_case_has_pages() {
    let whole = story(200, 30);
    let (mut from, mut seen, mut pages) = (0, Vec::new(), 0);
    loop {
        let mut page = whole.clone();
        let window = fold(&mut page, from, "");
        let size: usize = page
            .steps
            .iter()
            .map(|step| bare(step) + lines(&step.details))
            .sum();
        assert!(size <= STEPS_BYTES_MAX, "{size}");
        assert!(page.steps.iter().any(|step| !step.is_folded));
        seen.extend(ids(&page));
        pages += 1;
        match window.next {
            Some(next) => from = next,
            None => break,
        }
    }
    assert_eq!(seen, ids(&whole));
    assert!(pages > 1);
    // A number that no step has is the first page.
    assert_eq!(fold(&mut whole.clone(), 9_999, "").from, 0);
    let window = fold(&mut whole.clone(), 0, "");
    let last = window.next.unwrap();
    let text = window.text(whole.says());
    assert_eq!(text, format!("Steps 1 to {last} of 200."));
}

/// The details that a person asks for are there, and others make room.
#[test]
fn wanted_details_come_first() {
    let mut folded = story(20, 30);
    assert!(fold(&mut folded, 0, "").has_folded);
    let last = folded.steps.last().unwrap();
    assert!(last.is_folded && last.details.is_empty());
    let wanted = last.id.clone();
    let mut again = story(20, 30);
    fold(&mut again, 0, &wanted);
    let found = again.steps.iter().find(|step| step.id == wanted).unwrap();
    assert!(found.is_wanted && !found.is_folded);
    assert_eq!(found.details.len(), 30);
}

/// A question that is longer than a page says so, and the newest accesses are listed.
#[test]
fn long_questions_and_many_accesses_are_cut() {
    let mut long = story(1, 0);
    let lines = (0..2_000).map(|at| Line::new(&at.to_string(), "x".repeat(30)));
    long.steps[0].shown = Some(Question {
        is_checked: true,
        title: "Pay".to_owned(),
        lines: lines.collect(),
        irreversible: Vec::new(),
    });
    long.looks = (0..150)
        .map(|at| Look {
            id: format!("ev_{at}"),
            moment: String::new(),
            by: String::new(),
            what: String::new(),
        })
        .collect();
    let window = fold(&mut long, 0, "");
    assert!(bare(&long.steps[0]) <= BARE_BYTES_MAX + 100);
    let shown = long.steps[0].shown.as_ref().unwrap();
    let last = shown.lines.last().unwrap();
    assert!(
        last.value.ends_with("more values are in the bundle"),
        "{}",
        last.value
    );
    assert_eq!((window.more_looks, long.looks.len()), (50, LOOKS_MAX));
    assert_eq!(long.looks[0].id, "ev_50");
}
