//! The charts of the last hour, in the units of their box.

use countersign_gateway::pulse::Minute;

use crate::shown;

/// Box of a chart: the foot of the highest bar, its height, the first minute and the width of one.
const FOOT: u64 = 150;
const HEIGHT: u64 = 130;
const LEFT: usize = 52;
const STEP: usize = 7;

/// Calls of every minute, and those with an error.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) bars: Vec<Bar>,
    pub(super) axis: Axis,
}

/// Lines and times behind a chart.
#[derive(Default)]
pub(super) struct Axis {
    /// Height and text of each line.
    pub(super) lines: Vec<(u64, String)>,
    /// Place and text of each time.
    pub(super) times: Vec<(usize, String)>,
}

pub(super) struct Bar {
    pub(super) x: usize,
    pub(super) y: u64,
    pub(super) height: u64,
    pub(super) errors_y: u64,
    pub(super) errors_height: u64,
    pub(super) title: String,
}

/// The time that calls took in every minute: half of them, and all but one in a hundred.
#[derive(Default)]
pub(super) struct Times {
    /// Steps as the path of SVG has them; a minute without a call is a gap.
    pub(super) p50: String,
    pub(super) p99: String,
    pub(super) axis: Axis,
    /// Place and text of each minute with calls.
    pub(super) titles: Vec<(usize, String)>,
}

/// The bars; empty if nothing was called.
pub(super) fn counts(minutes: &[Minute], calls: &str, errors: &str) -> Counts {
    let most = minutes.iter().map(|minute| minute.calls).max().unwrap_or(0);
    if most == 0 {
        return Counts::default();
    }
    let top = round_up(most);
    let high = |count: u64| (count * HEIGHT).div_ceil(top);
    let bars = minutes.iter().enumerate().map(|(at, minute)| {
        let (height, errors_height) = (high(minute.calls), high(minute.errors));
        let time = clock(minute.minute);
        Bar {
            x: LEFT + at * STEP,
            y: FOOT - height,
            height,
            errors_y: FOOT - errors_height,
            errors_height,
            title: format!(
                "{time} · {calls} {} · {errors} {}",
                minute.calls, minute.errors
            ),
        }
    });
    Counts {
        bars: bars.collect(),
        axis: Axis::new(minutes, top, high, shown::number),
    }
}

/// The steps; empty if nothing was called.
pub(super) fn times(minutes: &[Minute], p50: &str, p99: &str) -> Times {
    let most = minutes
        .iter()
        .map(|minute| minute.p99_us)
        .max()
        .unwrap_or(0);
    if most == 0 {
        return Times::default();
    }
    let top = round_up(most);
    let high = |us: u64| us.saturating_mul(HEIGHT).div_ceil(top);
    let path = |of: fn(&Minute) -> u64| {
        let mut path = String::new();
        let mut before: Option<u64> = None;
        for (at, minute) in minutes.iter().enumerate() {
            if minute.calls == 0 {
                before = None;
                continue;
            }
            let (x, y) = (LEFT + at * STEP, FOOT - high(of(minute)));
            let lead = match before {
                None => format!("M{x} {y}"),
                Some(before) if before == y => String::new(),
                Some(_) => format!("V{y}"),
            };
            path = format!("{path}{lead}H{}", x + STEP);
            before = Some(y);
        }
        path
    };
    let there = minutes.iter().enumerate();
    let there = there.filter(|(_, minute)| minute.calls > 0);
    let titles = there.map(|(at, minute)| {
        let (half, most) = (shown::took(minute.p50_us), shown::took(minute.p99_us));
        let time = clock(minute.minute);
        let text = format!("{time} · {p50} {half} · {p99} {most}");
        (LEFT + at * STEP, text)
    });
    Times {
        p50: path(|minute| minute.p50_us),
        p99: path(|minute| minute.p99_us),
        titles: titles.collect(),
        axis: Axis::new(minutes, top, high, shown::took),
    }
}

impl Axis {
    fn new(
        minutes: &[Minute],
        top: u64,
        high: impl Fn(u64) -> u64,
        text: fn(u64) -> String,
    ) -> Self {
        let line = |value: u64| (FOOT - high(value), text(value));
        let times = minutes.iter().enumerate();
        let times = times.filter(|(_, minute)| minute.minute.rem_euclid(15) == 0);
        Self {
            lines: [0, top / 2, top].map(line).to_vec(),
            times: times
                .map(|(at, minute)| (LEFT + at * STEP, clock(minute.minute)))
                .collect(),
        }
    }
}

/// An even number with one leading digit that is not below.
fn round_up(count: u64) -> u64 {
    let unit = 10_u64.pow(count.max(1).ilog10());
    let top = count.div_ceil(unit) * unit;
    top + top % 2
}

fn clock(minute: i64) -> String {
    let of_day = minute.rem_euclid(24 * 60);
    format!("{:02}:{:02}", of_day / 60, of_day % 60)
}

#[cfg(test)]
mod tests {
    use super::super::hour;
    use super::*;

    fn minutes() -> Vec<Minute> {
        let minute = |minute, calls, p50_us, p99_us| Minute {
            minute,
            calls,
            errors: 5,
            questions: 0,
            repaired: 1,
            p50_us,
            p99_us,
        };
        hour(
            &[
                minute(1_000, 37, 1_000, 80_000),
                minute(1_001, 20, 1_000, 40_000),
                minute(1_005, 20, 2_000, 20_000),
            ],
            1_010,
        )
    }

    #[test]
    fn every_minute_has_a_bar_within_the_box() {
        let minutes = minutes();
        let chart = counts(&minutes, "calls", "errors");
        assert_eq!((minutes.len(), chart.bars.len()), (60, 60));
        assert!(
            chart
                .bars
                .iter()
                .all(|bar| bar.y >= FOOT - HEIGHT && bar.y <= FOOT)
        );
        let highest = chart.bars.iter().max_by_key(|bar| bar.height).unwrap();
        assert_eq!(highest.title, "16:40 · calls 37 · errors 5");
        assert_eq!(
            (round_up(37), round_up(1), round_up(100), round_up(7)),
            (40, 2, 100, 8)
        );
    }

    /// B17: the steps are those of the minutes, and a minute without a call is a gap.
    #[test]
    fn times_are_steps_with_gaps() {
        let chart = times(&minutes(), "p50", "p99");
        let first = LEFT + 49 * STEP;
        let (second, third, gone) = (first + STEP, first + 2 * STEP, first + 5 * STEP);
        let top = FOOT - HEIGHT;
        let middle = FOOT - HEIGHT / 2;
        let expected = format!(
            "M{first} {top}H{second}V{middle}H{third}M{gone} {}H{}",
            FOOT - HEIGHT.div_ceil(4),
            gone + STEP
        );
        assert_eq!(chart.p99, expected);
        assert_eq!(chart.p50.matches('M').count(), 2, "{}", chart.p50);
        assert_eq!(
            chart.titles[0].1,
            "16:40 · p50 1.0\u{a0}ms · p99 80\u{a0}ms"
        );
        assert!(times(&[], "", "").p50.is_empty());
    }
}
