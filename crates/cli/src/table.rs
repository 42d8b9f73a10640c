//! A plain table that knows how wide characters are, and text that cannot steer a terminal.

use std::fmt::{Display, Formatter, Result};

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::paint::{Paint, Tone, tone_of};
use crate::terminal::Terminal;

/// The widest cell but for the last column; longer ones are cut.
const CELL_COLUMNS_MAX: usize = 48;

/// However narrow a terminal is, the last column keeps so much.
const LAST_COLUMNS_MIN: usize = 16;

/// Columns of ids and times. They are never cut, because people copy them.
const WHOLE: &[&str] = &[
    "ASKED AT",
    "AT",
    "CLAIMED AT",
    "EVIDENCE",
    "ID",
    "KEY",
    "PIN",
    "RECORD",
    "REQUEST",
    "SERVICE KEY",
    "VERSION",
];

/// Minimum width of a wrapped last column beside the others; with less room it gets lines of its own.
const WRAPPED_COLUMNS_MIN: usize = 24;

/// Indentation of the second and later lines of a row that is too wide for one line.
const INDENT: usize = 2;

/// Rows under a head. Every column but the last is as wide as its widest cell.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
    paint: Paint,
    /// Width of the terminal; `None` if nothing is to be cut or folded.
    columns: Option<usize>,
}

impl Table {
    pub(crate) fn new<const N: usize>(head: [&str; N]) -> Self {
        Self {
            rows: vec![head.map(str::to_owned).to_vec()],
            paint: Paint::new(false),
            columns: None,
        }
    }

    /// A row; texts in it are made visible and brought to one line.
    pub(crate) fn row<const N: usize>(&mut self, cells: [&str; N]) {
        let last = N.saturating_sub(1);
        let cell = |(column, text): (usize, &str)| {
            let text = visible(text);
            if column == last || self.is_whole(column) {
                text
            } else {
                fit(&text, CELL_COLUMNS_MAX)
            }
        };
        let row = cells.into_iter().enumerate().map(cell).collect();
        self.rows.push(row);
    }

    /// An empty line.
    pub(crate) fn gap(&mut self) {
        self.rows.push(Vec::new());
    }

    /// Fits the table into this number of columns. The last column is cut if it is text. Where that is not enough, each
    /// row is folded into several lines.
    pub(crate) fn within(mut self, columns: Option<usize>) -> Self {
        self.columns = columns;
        self.cut_last();
        self
    }

    /// Fits the table to the terminal of the reader, with the reader's colours. Nothing is cut: a long text in the last
    /// column goes on in the next line.
    pub(crate) fn on(mut self, terminal: &Terminal) -> Self {
        self.paint = terminal.paint();
        self.columns = terminal.columns();
        self.wrap_last();
        self
    }

    /// Takes these colours.
    pub(crate) fn painted(mut self, paint: Paint) -> Self {
        self.paint = paint;
        self
    }

    fn wrap_last(&mut self) {
        let Some(columns) = self.columns else { return };
        let widths = self.widths();
        let Some((last, before)) = widths.split_last() else {
            return;
        };
        let taken: usize = before.iter().map(|width| width + 2).sum();
        if taken + last <= columns || self.is_whole(before.len()) {
            return;
        }
        let beside = columns.saturating_sub(taken);
        let room = if beside >= WRAPPED_COLUMNS_MIN {
            beside
        } else {
            columns.saturating_sub(INDENT)
        };
        let mut rows = Vec::with_capacity(self.rows.len());
        for mut row in std::mem::take(&mut self.rows) {
            let has_last = row.len() == widths.len();
            let Some(cell) = row.pop_if(|_| has_last) else {
                rows.push(row);
                continue;
            };
            let mut lines = wrapped(&cell, room).into_iter();
            row.extend(lines.next());
            rows.push(row);
            let further = lines.map(|line| {
                let mut row = vec![String::new(); before.len()];
                row.push(line);
                row
            });
            rows.extend(further);
        }
        self.rows = rows;
    }

    fn cut_last(&mut self) {
        let Some(columns) = self.columns else { return };
        let widths = self.widths();
        let Some((last, before)) = widths.split_last() else {
            return;
        };
        let taken: usize = before.iter().map(|width| width + 2).sum();
        if taken + last <= columns || self.is_whole(before.len()) {
            return;
        }
        let left = columns.saturating_sub(taken).max(LAST_COLUMNS_MIN);
        for row in &mut self.rows {
            if row.len() == widths.len()
                && let Some(last) = row.last_mut()
            {
                *last = fit(last, left);
            }
        }
    }

    fn is_whole(&self, column: usize) -> bool {
        let head = self.rows.first().and_then(|head| head.get(column));
        head.is_some_and(|head| WHOLE.contains(&head.as_str()))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.len() < 2
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths = Vec::new();
        for row in &self.rows {
            for (column, cell) in row.iter().enumerate() {
                let width = cell.width();
                match widths.get_mut(column) {
                    Some(widest) => *widest = width.max(*widest),
                    None => widths.push(width),
                }
            }
        }
        widths
    }

    /// The columns of each line of a row: all in one line, or as many in each as the terminal has room for.
    fn folded(&self, widths: &[usize]) -> Vec<std::ops::Range<usize>> {
        let whole = 0..widths.len();
        let Some(columns) = self.columns else {
            return vec![whole];
        };
        let mut lines = Vec::new();
        let (mut start, mut taken) = (0, 0);
        for (column, width) in widths.iter().enumerate() {
            if column > start && taken + width > columns {
                lines.push(start..column);
                (start, taken) = (column, INDENT);
            }
            taken += width + 2;
        }
        lines.push(start..widths.len());
        lines
    }

    /// One line of a row.
    fn line(
        &self,
        row: &[String],
        part: std::ops::Range<usize>,
        widths: &[usize],
        is_head: bool,
    ) -> String {
        let mut line = " ".repeat(if part.start == 0 { 0 } else { INDENT });
        let head = self.rows.first().map(Vec::as_slice).unwrap_or_default();
        let end = part.end.min(row.len());
        for column in part.start..end {
            let (Some(cell), Some(width)) = (row.get(column), widths.get(column)) else {
                break;
            };
            let tone = if is_head {
                Some(Tone::Quiet)
            } else {
                head.get(column).and_then(|head| tone_of(head, cell))
            };
            match tone {
                Some(tone) => line.push_str(&self.paint.tone(tone, cell)),
                None => line.push_str(cell),
            }
            // White space at the end of a line is left out.
            let is_last = row.iter().take(end).skip(column + 1).all(String::is_empty);
            if is_last {
                break;
            }
            line.extend(std::iter::repeat_n(' ', width - cell.width() + 2));
        }
        line.trim_end().to_owned()
    }
}

impl Display for Table {
    /// Writes the table without a line break at the end, and without white space at the end of any line.
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let widths = self.widths();
        let parts = self.folded(&widths);
        let mut lines = Vec::new();
        for (index, row) in self.rows.iter().enumerate() {
            if row.is_empty() {
                lines.push(String::new());
                continue;
            }
            let of_row = parts
                .iter()
                .map(|part| self.line(row, part.clone(), &widths, index == 0));
            lines.extend(of_row.filter(|line| !line.is_empty()));
        }
        f.write_str(&lines.join("\n"))
    }
}

/// The text in one line, with everything written out that a terminal would act on or not show:
/// control characters, line and paragraph separators, and marks that turn the direction of writing.
pub(crate) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            hidden if is_hidden(hidden) => shown.extend(hidden.escape_unicode()),
            plain => shown.push(plain),
        }
    }
    shown
}

/// True if a character controls the terminal or reverses the text around it instead of being shown.
pub(crate) fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Cuts a text to this number of columns, with a mark if something is missing.
pub(crate) fn fit(text: &str, columns_max: usize) -> String {
    if text.width() <= columns_max {
        return text.to_owned();
    }
    let mut columns = 1;
    let fits = |character: &char| {
        columns += character.width().unwrap_or(0);
        columns <= columns_max
    };
    let mut short: String = text.chars().take_while(fits).collect();
    short.push('…');
    short
}

/// Wraps a text into lines of at most this number of columns, broken at spaces; a longer word is broken at the end of the line.
pub(crate) fn wrapped(text: &str, columns_max: usize) -> Vec<String> {
    let columns_max = columns_max.max(LAST_COLUMNS_MIN);
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split(' ') {
        let room = columns_max.saturating_sub(line.width() + 1);
        if !line.is_empty() && word.width() > room {
            lines.push(std::mem::take(&mut line));
        } else if !line.is_empty() {
            line.push(' ');
        }
        for character in word.chars() {
            if line.width() + character.width().unwrap_or(0) > columns_max {
                lines.push(std::mem::take(&mut line));
            }
            line.push(character);
        }
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_fits_the_terminal() {
        let mut table = Table::new(["NAME", "SAYS"]);
        table.row(["abc", "one two three four five"]);
        table.gap();
        table.row(["d", "東京都東京都東京都"]);
        let narrow = "NAME  SAYS\nabc   one two three f…\n\nd     東京都東京都東…";
        assert_eq!(table.within(Some(22)).to_string(), narrow);
        let mut table = Table::new(["A", "B"]);
        table.row(["abc", "one two three four five"]);
        let whole = table.to_string();
        assert_eq!(table.within(None).to_string(), whole);
    }

    #[test]
    fn a_row_that_is_too_wide_is_folded_and_ids_stay_whole() {
        let mut table = Table::new(["AT", "USER", "CODE", "EVIDENCE", "REQUEST"]);
        table.row(["2026-11-17", "u_7", "OK", "ev_0123456789", "req_0123456789"]);
        table.row(["2026-11-18", "u_8", "OK", "ev_9876543210", ""]);
        let folded = "\
AT          USER  CODE
  EVIDENCE       REQUEST
2026-11-17  u_7   OK
  ev_0123456789  req_0123456789
2026-11-18  u_8   OK
  ev_9876543210";
        let table = table.within(Some(32));
        assert_eq!(table.to_string(), folded);
        assert!(table.to_string().lines().all(|line| line.width() <= 32));
    }

    #[test]
    fn a_long_text_goes_on_in_the_next_line() {
        let check = |columns: usize, expected: &str| {
            let mut table = Table::new(["STATE", "WHAT", "FOUND"]);
            table.row(["ok", "store", "one two three four five six"]);
            table.row(["ok", "log", "short"]);
            table.columns = Some(columns);
            table.wrap_last();
            assert_eq!(table.to_string(), expected);
        };
        let beside = "\
STATE  WHAT   FOUND
ok     store  one two three four five
              six
ok     log    short";
        check(38, beside);
        let below = "\
STATE  WHAT
  FOUND
ok     store
  one two three four five
  six
ok     log
  short";
        check(26, below);
    }

    #[test]
    fn colours_do_not_move_columns() {
        let mut table = Table::new(["STATE", "WHAT"]);
        table.row(["ok", "store"]);
        table.row(["WRONG", "log"]);
        let plain = table.to_string();
        table.paint = Paint::new(true);
        let coloured = table.to_string();
        assert!(
            coloured.contains("\u{1b}[32mok\u{1b}[0m     store"),
            "{coloured:?}"
        );
        let codes = ["\u{1b}[32m", "\u{1b}[1;31m", "\u{1b}[2m", "\u{1b}[0m"];
        let bare = codes
            .iter()
            .fold(coloured, |text, code| text.replace(code, ""));
        assert_eq!(bare, plain);
    }

    #[test]
    fn texts_are_wrapped_at_spaces_and_long_words_anywhere() {
        let check = |text: &str, expected: &[&str]| assert_eq!(wrapped(text, 16), expected);
        check("", &[""]);
        check("one two three four", &["one two three", "four"]);
        check("0123456789abcdefghij", &["0123456789abcdef", "ghij"]);
        check(
            "a 0123456789abcdefghij b",
            &["a", "0123456789abcdef", "ghij b"],
        );
        check(
            "東京都東京都東京都東京都",
            &["東京都東京都東京", "都東京都"],
        );
    }

    #[test]
    fn columns_line_up_also_with_wide_characters() {
        let mut table = Table::new(["NAME", "SAYS", "END"]);
        table.row(["城市", "a", ""]);
        table.row(["abc", "東京都", "x"]);
        let expected = "NAME  SAYS    END\n城市  a\nabc   東京都  x";
        assert_eq!(table.to_string(), expected);
    }

    #[test]
    fn long_cells_are_cut_but_not_in_the_last_column() {
        let long = "京".repeat(40);
        let mut table = Table::new(["A", "B"]);
        table.row([&long, &long]);
        let text = table.to_string();
        let row = text.lines().nth(1).unwrap();
        assert!(row.starts_with(&format!("{}…  ", "京".repeat(23))), "{row}");
        assert!(row.ends_with(&long), "{row}");
    }

    #[test]
    fn nothing_in_a_cell_steers_the_terminal() {
        assert_eq!(
            visible("a\u{1b}[31m\nb\u{202e}"),
            "a\\u{1b}[31m\\nb\\u{202e}"
        );
        assert_eq!(visible("naïve 城 \\ \""), "naïve 城 \\ \"");
    }
}
