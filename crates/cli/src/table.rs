//! A plain table that knows how wide characters are, and text that cannot steer a terminal.

use std::fmt::{Display, Formatter, Result};

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The widest cell but for the last column; longer ones are cut.
const CELL_COLUMNS_MAX: usize = 48;

/// However narrow a terminal is, the last column keeps so much.
const LAST_COLUMNS_MIN: usize = 16;

/// Rows under a head. Every column but the last is as wide as its widest cell.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new<const N: usize>(head: [&str; N]) -> Self {
        Self {
            rows: vec![head.map(str::to_owned).to_vec()],
        }
    }

    /// A row; texts in it are made visible and brought to one line.
    pub(crate) fn row<const N: usize>(&mut self, cells: [&str; N]) {
        let last = N.saturating_sub(1);
        let cell = |(column, text): (usize, &str)| {
            let text = visible(text);
            if column == last {
                text
            } else {
                fit(&text, CELL_COLUMNS_MAX)
            }
        };
        self.rows
            .push(cells.into_iter().enumerate().map(cell).collect());
    }

    /// An empty line.
    pub(crate) fn gap(&mut self) {
        self.rows.push(Vec::new());
    }

    /// Fits the table into this number of columns: the last column is cut, but stays wide enough to be read.
    pub(crate) fn within(mut self, columns: Option<usize>) -> Self {
        let Some(columns) = columns else { return self };
        let widths = self.widths();
        let Some((_, before)) = widths.split_last() else {
            return self;
        };
        let taken: usize = before.iter().map(|width| width + 2).sum();
        let left = columns.saturating_sub(taken).max(LAST_COLUMNS_MIN);
        for row in &mut self.rows {
            if row.len() == widths.len()
                && let Some(last) = row.last_mut()
            {
                *last = fit(last, left);
            }
        }
        self
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.len() < 2
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths = Vec::new();
        for row in &self.rows {
            for (column, cell) in row.iter().enumerate() {
                match widths.get_mut(column) {
                    Some(width) => *width = cell.width().max(*width),
                    None => widths.push(cell.width()),
                }
            }
        }
        widths
    }
}

impl Display for Table {
    /// Writes the table without a line break at the end, and without white space at the end of any line.
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let widths = self.widths();
        for (index, row) in self.rows.iter().enumerate() {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                line.push_str(cell);
                line.extend(std::iter::repeat_n(' ', width - cell.width() + 2));
            }
            let end = if index + 1 < self.rows.len() {
                "\n"
            } else {
                ""
            };
            write!(f, "{}{end}", line.trim_end())?;
        }
        Ok(())
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
