//! A plain table that knows how wide characters are, and text that cannot steer a terminal.

use std::fmt::{Display, Formatter, Result};

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The widest cell but for the last column; longer ones are cut.
const CELL_COLUMNS_MAX: usize = 48;

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
    /// Without a line break at the end, and without white space at the end of any line.
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

/// Whether a character steers a terminal or turns the text around it instead of being seen.
pub(crate) fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// At most so many columns, with a mark where something is missing.
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

#[cfg(test)]
mod tests {
    use super::*;

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
