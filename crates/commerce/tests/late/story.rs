//! One long sequence that is always the same, on every store: everything that can happen late happens.

use countersign_testkit::postgres::shared_postgres;

use crate::block_on;
use crate::place::{Kind, Place};
use crate::play::{Play, Tally};
use crate::shop::{PAYMENT, WAY};
use crate::step::{Act, Answer, Call, Change, Fault, How, Pick, Step};

/// More than the number of tools.
const TOOLS: usize = 40;

/// The number of steps between two checks of the log; the sequences of `main` check after each step.
const LOOKS: usize = 8;

/// The last call before the question is answered.
const ASKED: usize = 11;

/// The whole way.
const PAID: usize = 12;

/// A8, A13, A15: the story on a store; every tool works in it at least once, and everything below happens.
fn tell(kind: Kind) {
    // A server has a clock of its own, so keys are not forgotten when ours jumps.
    let forgets_keys = !matches!(kind, Kind::Postgres(_));
    let tally = block_on(async {
        let mut play = Play::new(Place::open(kind).await).looking_every(LOOKS);
        for step in story() {
            play.step(&step).await;
        }
        play.end().await
    });
    tally.check_worked();
    check_ends(&tally, forgets_keys);
}

#[test]
fn the_story_in_memory() {
    tell(Kind::memory());
}

#[test]
fn the_story_in_a_file() {
    tell(Kind::file());
}

#[test]
fn the_story_in_postgres() {
    tell(Kind::Postgres(shared_postgres().fresh_database()));
}

fn check_ends(tally: &Tally, forgets_keys: bool) {
    let ends = [
        (PAYMENT, "NEEDS_USER_CONFIRMATION"),
        (PAYMENT, "PRICE_CHANGED"),
        (PAYMENT, "CONFLICT"),
        (PAYMENT, "INVALID_ARGUMENT"),
        (PAYMENT, "NOT_FOUND"),
        ("checkout.compute_total", "PRICE_CHANGED"),
        ("checkout.compute_total", "COMPLIANCE_BLOCKED"),
        ("checkout.create_draft_order", "PRICE_CHANGED"),
        ("checkout.create_draft_order", "OUT_OF_STOCK"),
        ("checkout.create_draft_order", "NOT_FOUND"),
        ("checkout.select_shipping_option", "PRICE_CHANGED"),
        ("checkout.lock_price_and_stock", "PRICE_CHANGED"),
        ("tax.estimate_duties_and_taxes", "PRICE_CHANGED"),
        ("approval", "Yes to pending"),
        ("approval", "No to pending"),
        ("approval", "Foreign to pending"),
        ("approval", "Yes to expired"),
        ("approval", "Yes to used"),
        ("erase", "under hold"),
        ("erase", "done"),
        ("hold", "released"),
        ("restart", "done"),
    ];
    let forgotten = forgets_keys.then_some(("checkout.lock_price_and_stock", "CONFLICT"));
    for (what, end) in ends.into_iter().chain(forgotten) {
        assert!(
            tally.has(what, end),
            "{what} never ended with {end}: {tally}"
        );
    }
}

fn story() -> Vec<Step> {
    let mut story = Story::default();
    story.way(0, PAID, (0, 0));
    story.all_tools(How::Plain, Fault::Nothing);
    story.late_everywhere();
    story.baskets();
    story.questions();
    story.operators();
    story.keys_and_faults();
    story.steps
}

#[derive(Default)]
struct Story {
    steps: Vec<Step>,
    user: usize,
}

impl Story {
    fn add(&mut self, act: Act) {
        let user = self.user;
        self.steps.push(Step { user, act });
    }

    fn way(&mut self, basket: usize, calls: usize, (late, pause): (usize, u64)) {
        self.add(Act::Way {
            basket,
            calls,
            late,
            pause,
        });
    }

    fn all_tools(&mut self, how: How, fault: Fault) {
        for tool in 0..TOOLS {
            self.call(tool, 0, how, fault);
        }
    }

    fn call(&mut self, tool: usize, basket: usize, how: How, fault: Fault) {
        let pick = Pick { which: 0, basket };
        self.add(Act::Call(Call {
            tool,
            pick,
            how,
            fault,
        }));
    }

    fn repeat(&mut self, which: usize, change: Change) {
        self.add(Act::Repeat { which, change });
    }

    /// A pause before each call of the way, too long for a total, for a quote, and for everything.
    fn late_everywhere(&mut self) {
        for late in 4..WAY.len() {
            self.way(0, PAID, (late, 301));
        }
        self.way(0, PAID, (9, 61));
        self.way(0, PAID, (9, 3_601));
        self.way(0, PAID, (10, 1_801));
        // Everything that was answered so far, bundled for a dispute, days later.
        self.add(Act::Wait(86_400));
        for tool in 0..TOOLS {
            self.call(tool, 8, How::Plain, Fault::Nothing);
        }
    }

    /// A sale that has ended, the last item for two buyers, and items that are sold out, forbidden and unknown.
    fn baskets(&mut self) {
        self.way(1, PAID, (9, 121));
        self.way(2, ASKED, (0, 0));
        self.user = 1;
        self.way(2, PAID, (10, 0));
        self.user = 0;
        for basket in 3..7 {
            self.way(basket, PAID, (0, 0));
        }
    }

    fn questions(&mut self) {
        let answer = |answer| Act::Answer { which: 0, answer };
        self.way(0, ASKED, (0, 0));
        self.add(answer(Answer::Foreign));
        self.add(answer(Answer::No));
        self.repeat(0, Change::Nothing);
        self.add(Act::Wait(901));
        self.way(0, ASKED, (0, 0));
        self.add(Act::Wait(901));
        self.add(answer(Answer::Yes));
        self.repeat(0, Change::Nothing);
        self.way(0, PAID, (12, 301));
        self.add(answer(Answer::Yes));
        self.repeat(0, Change::Nothing);
        self.repeat(0, Change::DryRun);
    }

    fn operators(&mut self) {
        self.add(Act::Restart {
            rules: 1,
            is_unclean: true,
        });
        self.repeat(1, Change::Nothing);
        self.way(1, PAID, (9, 30));
        self.user = 1;
        self.add(Act::Hold(None));
        self.add(Act::Hold(Some(3)));
        self.add(Act::Erase);
        self.add(Act::Release);
        self.add(Act::Erase);
        self.way(0, PAID, (0, 0));
        self.user = 0;
        // Rules that change between the answers of one total.
        self.way(0, 6, (0, 0));
        self.add(Act::Restart {
            rules: 2,
            is_unclean: false,
        });
        for tool in 0..TOOLS {
            self.call(tool, 0, How::Plain, Fault::Nothing);
        }
        self.add(Act::Wait(300_000));
        self.add(Act::Maintain);
        self.all_tools(How::Plain, Fault::Nothing);
    }

    fn keys_and_faults(&mut self) {
        self.way(0, ASKED, (0, 0));
        for how in [How::DryRun, How::Key(0), How::Key(0)] {
            self.all_tools(how, Fault::Nothing);
        }
        self.add(Act::Wait(100_000));
        self.repeat(0, Change::Nothing);
        for tool in 0..TOOLS {
            self.call(tool, 1, How::Key(0), Fault::Nothing);
        }
        for change in [Change::OtherKey, Change::OtherArguments, Change::OtherUser] {
            self.repeat(5, change);
        }
        for fault in [
            Fault::Foreign,
            Fault::Unknown,
            Fault::Prose,
            Fault::Empty,
            Fault::Types,
        ] {
            self.all_tools(How::Plain, fault);
        }
    }
}
