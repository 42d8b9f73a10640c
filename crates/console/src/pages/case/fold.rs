//! The part of a story that fits on one page: a number of steps, and the details of as many of them as there is room for.

use crate::case::{Line, Says, Step, Story};
use crate::shown::escaped_len;

/// Room for all steps, in bytes of HTML: a page with them stays below 100 KB.
const STEPS_BYTES_MAX: usize = 60_000;

/// Room for the steps without their details.
const BARE_BYTES_MAX: usize = 45_000;

/// Maximum number of listed accesses.
const LOOKS_MAX: usize = 100;

/// Size of the elements around a step, in bytes.
const AROUND_STEP: usize = 450;

/// Size of the elements around a line.
const AROUND_LINE: usize = 20;

/// The steps on a page.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Window {
    /// Number of steps before the first one on the page.
    pub(super) from: usize,
    /// Number of the first step on the next page; `None` if this is the last page.
    pub(super) next: Option<usize>,
    /// Number of all steps.
    pub(super) all: usize,
    /// True if a step is shown without its details.
    pub(super) has_folded: bool,
    /// Number of accesses that are not listed.
    pub(super) more_looks: usize,
}

impl Window {
    /// A page with everything.
    pub(super) const fn whole() -> Self {
        Self {
            from: 0,
            next: None,
            all: 0,
            has_folded: false,
            more_looks: 0,
        }
    }

    /// Number of the last step on the page.
    fn last(&self) -> usize {
        self.next.unwrap_or(self.all)
    }

    /// True if the page has every step.
    pub(super) fn is_whole(&self) -> bool {
        self.from == 0 && self.next.is_none()
    }

    /// The accesses that are not listed, in words.
    pub(super) fn looks_text(&self, says: &Says) -> String {
        says.more_looks.replace("{}", &self.more_looks.to_string())
    }

    /// The page in words.
    pub(super) fn text(&self, says: &Says) -> String {
        says.steps_shown
            .replace("{from}", &(self.from + 1).to_string())
            .replace("{to}", &self.last().to_string())
            .replace("{}", &self.all.to_string())
    }
}

/// Leaves the steps from a number on that fit on a page. The details of the wanted step come first.
pub(super) fn fold(story: &mut Story, from: usize, wanted: &str) -> Window {
    let says = story.says();
    let all = story.steps.len();
    let from = if from < all { from } else { 0 };
    let mut left = BARE_BYTES_MAX;
    let mut kept = Vec::new();
    for mut step in story.steps.drain(..).skip(from) {
        if kept.is_empty() {
            shorten(&mut step, says);
        }
        let size = bare(&step);
        if size > left && !kept.is_empty() {
            break;
        }
        left = left.saturating_sub(size);
        kept.push(step);
    }
    let mut room = STEPS_BYTES_MAX.saturating_sub(kept.iter().map(bare).sum());
    let (first, others): (Vec<&mut Step>, Vec<&mut Step>) =
        kept.iter_mut().partition(|step| step.id == wanted);
    let mut has_folded = false;
    for step in first.into_iter().chain(others) {
        step.is_wanted = step.id == wanted;
        let size = lines(&step.details);
        if size <= room {
            room -= size;
        } else {
            step.details.clear();
            step.is_folded = true;
            has_folded = true;
        }
    }
    let end = from + kept.len();
    story.steps = kept;
    // The newest accesses stay.
    let more_looks = story.looks.len().saturating_sub(LOOKS_MAX);
    story.looks.drain(..more_looks);
    Window {
        from,
        next: (end < all).then_some(end),
        all,
        has_folded,
        more_looks,
    }
}

fn lines(lines: &[Line]) -> usize {
    let sizes = lines
        .iter()
        .map(|line| escaped_len(&line.label) + escaped_len(&line.value) + AROUND_LINE);
    sizes.sum()
}

/// Size of a step without its details.
fn bare(step: &Step) -> usize {
    let Step {
        id,
        at,
        moment,
        part: _,
        tone: _,
        title,
        tool,
        by,
        outcome,
        lines: own,
        shown,
        details: _,
        rules,
        proof,
        is_sealed: _,
        is_folded: _,
        is_wanted: _,
    } = step;
    let texts = [id, id, id, at, moment, title, tool, by, outcome, proof];
    let texts = texts.into_iter().chain(rules);
    let texts: usize = texts.map(|text| escaped_len(text) + 2).sum();
    let shown = shown.as_ref().map_or(0, |shown| {
        let irreversible = shown.irreversible.iter();
        let irreversible = irreversible.map(|text| escaped_len(text) + 3 * AROUND_LINE);
        escaped_len(&shown.title) + lines(&shown.lines) + irreversible.sum::<usize>()
    });
    AROUND_STEP + texts + lines(own) + shown
}

/// Cuts a question that is longer than a page; it says how many lines it had.
fn shorten(step: &mut Step, says: &'static Says) {
    let mut over = bare(step).saturating_sub(BARE_BYTES_MAX);
    let Some(shown) = &mut step.shown else { return };
    let mut left_out = 0_usize;
    while over > 0
        && let Some(line) = shown.lines.pop()
    {
        over = over.saturating_sub(lines(&[line]));
        left_out += 1;
    }
    if left_out > 0 {
        let text = says.more_lines.replace("{}", &left_out.to_string());
        shown.lines.push(Line::new("…", text));
    }
}

#[cfg(test)]
mod tests;
