//! One step of a sequence. Nothing here depends on a reply: ids are chosen by counting back from the newest ones at
//! that time, so that a sequence can be shortened.

use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::sample::select;

/// The actor of a step, and the action.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    /// The position of the buyer in [`USERS`].
    pub(crate) user: usize,
    pub(crate) act: Act,
}

/// The buyers.
pub(crate) const USERS: [&str; 2] = ["ann", "bob"];

/// An action.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Act {
    /// One call.
    Call(Call),
    /// The first `calls` calls of the way to a payment, with a pause before one of them.
    Way {
        basket: usize,
        calls: usize,
        late: usize,
        pause: u64,
    },
    /// A repeat of a call, counted back from the newest by `which`.
    Repeat { which: usize, change: Change },
    /// An answer to a question, counted back from the newest by `which`.
    Answer { which: usize, answer: Answer },
    /// Seconds pass.
    Wait(u64),
    /// An operator holds the buyer's records, or one of them, counted back from the newest.
    Hold(Option<usize>),
    /// An operator lifts every hold of the buyer.
    Release,
    /// An operator erases the buyer.
    Erase,
    /// The program restarts, with another set of rules.
    Restart { rules: usize, is_unclean: bool },
    /// Maintenance: payloads are pruned, claims are swept.
    Maintain,
}

/// One call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    /// The position of the tool in the catalog, modulo its size.
    pub(crate) tool: usize,
    pub(crate) pick: Pick,
    pub(crate) how: How,
    pub(crate) fault: Fault,
}

/// The choice among several things that an argument can name.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Pick {
    /// The number of newer ones that are skipped.
    pub(crate) which: usize,
    /// The basket, and other free choices.
    pub(crate) basket: usize,
}

/// The envelope of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    Plain,
    DryRun,
    Key(u8),
}

/// A fault of the arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    Nothing,
    /// The ids are those of the other buyer.
    Foreign,
    /// The ids are unknown.
    Unknown,
    /// The arguments are prose.
    Prose,
    /// No argument is given.
    Empty,
    /// Every argument has another type.
    Types,
}

/// The difference of a repeat.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Change {
    Nothing,
    DryRun,
    OtherKey,
    /// The same key, and the arguments of the call before it of the same tool.
    OtherArguments,
    OtherUser,
}

/// The answer to a question.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Answer {
    Yes,
    No,
    /// The other buyer answers.
    Foreign,
}

/// The ends of the TTLs, and a second before and after them.
const PAUSES: [u64; 20] = [
    1, 30, 59, 60, 61, 121, 240, 299, 300, 301, 899, 900, 901, 1_800, 3_599, 3_600, 7_201, 86_400,
    100_000, 260_000,
];

/// A step, the likelier ones first.
pub(crate) fn step() -> impl Strategy<Value = Step> {
    let user = prop_oneof![4 => Just(0), 1 => Just(1)];
    (user, act()).prop_map(|(user, act)| Step { user, act })
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        24 => call().prop_map(Act::Call),
        10 => way(),
        8 => (0_usize..12, change()).prop_map(|(which, change)| Act::Repeat { which, change }),
        5 => (0_usize..3, answer()).prop_map(|(which, answer)| Act::Answer { which, answer }),
        8 => select(&PAUSES[..]).prop_map(Act::Wait),
        1 => (any::<bool>(), 0_usize..9).prop_map(|(one, which)| Act::Hold(one.then_some(which))),
        1 => Just(Act::Release),
        1 => Just(Act::Erase),
        2 => (0_usize..3, any::<bool>()).prop_map(|(rules, is_unclean)| Act::Restart { rules, is_unclean }),
        2 => Just(Act::Maintain),
    ]
}

fn call() -> impl Strategy<Value = Call> {
    let which = prop_oneof![6 => Just(0_usize), 2 => 0_usize..3, 1 => 0_usize..20];
    let how = prop_oneof![
        5 => Just(How::Plain),
        1 => Just(How::DryRun),
        2 => (0_u8..3).prop_map(How::Key),
    ];
    let faults = vec![
        Fault::Foreign,
        Fault::Unknown,
        Fault::Prose,
        Fault::Empty,
        Fault::Types,
    ];
    let fault = prop_oneof![8 => Just(Fault::Nothing), 1 => select(faults)];
    (0_usize..64, which, 0_usize..12, how, fault).prop_map(|(tool, which, basket, how, fault)| {
        Call {
            tool,
            pick: Pick { which, basket },
            how,
            fault,
        }
    })
}

fn way() -> impl Strategy<Value = Act> {
    let pause = prop_oneof![1 => Just(0), 2 => select(&PAUSES[..10])];
    let calls = prop_oneof![1 => 1_usize..12, 2 => Just(12_usize)];
    (0_usize..7, calls, 0_usize..12, pause).prop_map(|(basket, calls, late, pause)| Act::Way {
        basket,
        calls,
        late,
        pause,
    })
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        3 => Just(Change::Nothing),
        1 => Just(Change::DryRun),
        1 => Just(Change::OtherKey),
        1 => Just(Change::OtherArguments),
        1 => Just(Change::OtherUser),
    ]
}

fn answer() -> impl Strategy<Value = Answer> {
    prop_oneof![4 => Just(Answer::Yes), 1 => Just(Answer::No), 1 => Just(Answer::Foreign)]
}
