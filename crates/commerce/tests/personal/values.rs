//! Personal values of many kinds, each once: names, words, numbers, ids of six countries, Chinese.

use serde_json::{Value, json};

/// Makes values, and remembers them.
pub(crate) struct Values {
    made: Vec<String>,
    users: Vec<String>,
    state: u64,
}

const FIRST: [&str; 12] = [
    "Erika",
    "Zacharias",
    "Aoife",
    "Siobhan",
    "Jürgen",
    "Björk",
    "Nguyễn",
    "Łukasz",
    "Priya",
    "Oluwaseun",
    "Malik",
    "Chiara",
];

const LAST: [&str; 12] = [
    "Mustermann",
    "Quuxington",
    "OSullivan",
    "Grünwald",
    "Kowalczyk",
    "Adebayo",
    "Venkatesan",
    "Rossi",
    "Delacroix",
    "Haddad",
    "Lindqvist",
    "Tanaka",
];

const FAMILY: [&str; 8] = [
    "欧阳", "司马", "诸葛", "上官", "夏侯", "东方", "慕容", "尉迟",
];

const GIVEN: [&str; 8] = [
    "建国", "晓明", "淑芬", "志强", "雅婷", "俊杰", "美玲", "浩然",
];

impl Values {
    pub(crate) fn new(users: usize) -> Self {
        let mut values = Self {
            made: Vec::new(),
            users: Vec::new(),
            state: 0x9e37_79b9_7f4a_7c15,
        };
        for user in 0..users {
            let name = format!(
                "{}.{}{}",
                FIRST[user % 4],
                LAST[user % 12],
                values.number(10_000)
            );
            let id = if user % 2 == 0 {
                format!("{name}@example.com").to_lowercase()
            } else {
                name
            };
            values.made.push(id.clone());
            values.users.push(id);
        }
        values
    }

    pub(crate) fn made(&self) -> usize {
        self.made.len()
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.made.clone()
    }

    pub(crate) fn user(&self, at: usize) -> String {
        self.users[at % self.users.len()].clone()
    }

    /// The next value, of the next kind.
    pub(crate) fn next(&mut self) -> String {
        let kind = self.made.len() % 14;
        let value = self.of_kind(kind);
        self.made.push(value.clone());
        value
    }

    /// The next value that a request id can be.
    pub(crate) fn next_graphic(&mut self) -> String {
        loop {
            let value = self.next();
            if value.bytes().all(|byte| byte.is_ascii_graphic()) {
                return value;
            }
        }
    }

    /// The next value that is a number: an identity number without its dashes.
    pub(crate) fn next_number(&mut self) -> Value {
        let number = 100_000_000_000 + self.number(900_000_000_000);
        self.made.push(number.to_string());
        json!(number)
    }

    fn of_kind(&mut self, kind: usize) -> String {
        let n = self.number(1_000_000_000);
        let digits =
            |count: usize, n: u64| format!("{:0>count$}", n * 7 % 10_u64.pow(count as u32));
        let (first, last) = (FIRST[n as usize % 12], LAST[n as usize / 12 % 12]);
        match kind {
            // A name; a name as one word; a word; a diagnosis.
            0 => format!("{first} {last} {n}"),
            1 => format!("{first}{last}{n}"),
            2 => format!("hunter{n}"),
            3 => format!("HIV-positive-{n}"),
            // Mail, telephone, street.
            4 => format!("{}.{n}@example.org", last.to_lowercase()),
            5 => format!("+49 171 {}", digits(9, n)),
            6 => format!("{last} Street {n}, Springfield"),
            // Ids: the United States, Germany, China, France, the United Kingdom, India.
            7 => {
                let text = digits(9, n);
                format!("ssn {}-{}-{}/{n}", &text[..3], &text[3..5], &text[5..])
            }
            8 => format!("{}{}", digits(9, n), n % 97),
            9 => format!("110105{}{}", 19_490_000 + n % 9_999, digits(4, n)) + &format!("{n}"),
            10 => format!("1850578006{}{}", digits(9, n), n % 97),
            11 => format!("QQ{}C{n}", digits(6, n)),
            12 => format!("{} {} {n}", digits(4, n), digits(4, n / 10_000)),
            // Chinese.
            _ => format!("{}{}{n}", FAMILY[n as usize % 8], GIVEN[n as usize / 8 % 8]),
        }
    }

    /// A number below a bound (`SplitMix64`).
    fn number(&mut self, below: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below
    }
}
