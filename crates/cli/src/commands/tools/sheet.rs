//! One tool for a person at a terminal: the content of its Markdown page, without the markup.

use std::io::Write as _;

use countersign::contract::parameter::Cardinality;
use countersign::contract::{Input, Parameter, ToolSpec, markdown, schema};

use crate::failure::Failure;
use crate::table::{visible, wrapped};
use crate::terminal::Terminal;

/// Line width if the width of the terminal is not known.
const COLUMNS_USUAL: usize = 100;

/// Writes name, description, behaviour and parameters, no wider than the terminal.
pub(super) fn write(terminal: &mut Terminal, spec: &ToolSpec) -> Result<(), Failure> {
    let columns = terminal.columns().unwrap_or(COLUMNS_USUAL);
    let mut sheet = Sheet {
        columns,
        text: String::new(),
    };
    sheet.line(0, &format!("{} (version {})", spec.name, spec.version));
    sheet.line(0, &spec.description);
    sheet.line(0, "");
    for sentence in markdown::behaviour(&spec.behaviour) {
        sheet.line(0, &sentence.replace("**", ""));
    }
    sheet.line(0, "");
    match &spec.input {
        Input::Parameters(parameters) => sheet.parameters(parameters),
        Input::Schema(declared) => sheet.parameters(&schema::to_parameters(declared)),
        Input::Undeclared => sheet.line(0, "No parameters are declared: any object is passed on."),
    }
    Ok(write!(terminal.data(), "{}", sheet.text)?)
}

/// Lines that have been written so far.
struct Sheet {
    columns: usize,
    text: String,
}

impl Sheet {
    fn parameters(&mut self, parameters: &[Parameter]) {
        if parameters.is_empty() {
            return self.line(0, "No arguments.");
        }
        self.line(0, "Parameters:");
        self.rows(parameters, "", 1);
    }

    /// Each parameter with its fields below it.
    fn rows(&mut self, parameters: &[Parameter], prefix: &str, depth: usize) {
        for parameter in parameters {
            let path = format!("{prefix}{}", parameter.name);
            let required = if parameter.is_required() {
                "required"
            } else {
                "optional"
            };
            let kind = markdown::type_of(parameter);
            self.line(depth * 2, &format!("{path}: {kind}, {required}"));
            self.line(depth * 2 + 4, &parameter.description);
            self.particulars(parameter, depth * 2 + 4);
            let step = match parameter.cardinality {
                Cardinality::One | Cardinality::Optional => ".",
                Cardinality::List { .. } => "[].",
                Cardinality::Map { .. } => ".*.",
            };
            self.rows(&parameter.fields, &format!("{path}{step}"), depth + 1);
        }
    }

    fn particulars(&mut self, parameter: &Parameter, indent: usize) {
        let allowed = parameter.allowed.as_ref();
        let allowed = allowed.map(|allowed| allowed.values.join(", "));
        let bounds = Some(markdown::bounds(&parameter.bounds));
        let told = [
            ("one of", allowed),
            ("bounds", bounds.filter(|bounds| !bounds.is_empty())),
            (
                "default",
                parameter.default.as_ref().map(ToString::to_string),
            ),
            (
                "example",
                parameter.example.as_ref().map(ToString::to_string),
            ),
        ];
        for (name, value) in told {
            if let Some(value) = value {
                self.line(indent, &format!("{name}: {value}"));
            }
        }
    }

    /// Adds a wrapped line. The text is made safe for a terminal, because another party may have written the declaration.
    fn line(&mut self, indent: usize, text: &str) {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for line in wrapped(&visible(&text), self.columns.saturating_sub(indent)) {
            let line = format!("{}{line}", " ".repeat(indent));
            self.text.push_str(line.trim_end());
            self.text.push('\n');
        }
    }
}
