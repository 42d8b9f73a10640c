//! The table of formats: which marks open a call, which close it, and what stands between them.

use std::fmt;
use std::str::FromStr;

/// A format in which models write calls as text. Closed: a match over it is exhaustive on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TextFormat {
    /// `<tool_call>{"name": …, "arguments": …}</tool_call>`: Hermes, Qwen, Granite and others.
    Hermes,
    /// `<function=f><parameter=a>1</parameter></function>`: Qwen-Coder; also `<function=f>{…}</function>` of Llama.
    QwenCoder,
    /// `<tool_call>f<arg_key>a</arg_key><arg_value>1</arg_value></tool_call>`.
    Glm,
    /// `<invoke name="f"><parameter name="a">1</parameter></invoke>`: Claude, `MiniMax`, and the DSML of `DeepSeek`.
    Invoke,
    /// `<|python_tag|>` with JSON or `f.call(a=1)`.
    Llama,
    /// `[f(a=1), g(b=2)]`.
    Pythonic,
    /// `[TOOL_CALLS]` with a list, or `f[ARGS]{…}`.
    Mistral,
    /// `<｜tool▁call▁begin｜>f<｜tool▁sep｜>{…}<｜tool▁call▁end｜>`.
    DeepSeek,
    /// `<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{…}<|tool_call_end|>`.
    Kimi,
    /// `<|channel|>commentary to=functions.f<|message|>{…}<|call|>`.
    Harmony,
    /// A code block `tool_code` with `print(default_api.f(a=1))`.
    Gemini,
    /// `<|tool_call>call:f{…}<tool_call|>`.
    Gemma,
    /// `Action: f` and `Action Input: {…}`.
    React,
    /// Nothing but `{"name": …, "arguments": …}`, or a list of such objects.
    Json,
}

impl TextFormat {
    /// Every format.
    pub const ALL: [Self; 14] = [
        Self::Hermes,
        Self::QwenCoder,
        Self::Glm,
        Self::Invoke,
        Self::Llama,
        Self::Pythonic,
        Self::Mistral,
        Self::DeepSeek,
        Self::Kimi,
        Self::Harmony,
        Self::Gemini,
        Self::Gemma,
        Self::React,
        Self::Json,
    ];

    /// The name in options.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hermes => "hermes",
            Self::QwenCoder => "qwen-coder",
            Self::Glm => "glm",
            Self::Invoke => "invoke",
            Self::Llama => "llama",
            Self::Pythonic => "pythonic",
            Self::Mistral => "mistral",
            Self::DeepSeek => "deepseek",
            Self::Kimi => "kimi",
            Self::Harmony => "harmony",
            Self::Gemini => "gemini-code",
            Self::Gemma => "gemma",
            Self::React => "react",
            Self::Json => "json",
        }
    }
}

impl fmt::Display for TextFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The error for a text that is not the name of a format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no format of written calls; use {names}", names = TextFormat::ALL.map(TextFormat::as_str).join(", "))]
pub struct UnknownTextFormat(pub String);

impl FromStr for TextFormat {
    type Err = UnknownTextFormat;

    fn from_str(text: &str) -> Result<Self, UnknownTextFormat> {
        Self::ALL
            .into_iter()
            .find(|format| format.as_str() == text)
            .ok_or_else(|| UnknownTextFormat(text.to_owned()))
    }
}

/// Form of the text behind the mark that opens a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Body {
    /// Call objects, elements, or a name with keys and values.
    Wrapped,
    /// An element that starts with the mark itself.
    Element,
    /// Call objects, or calls as Python writes them.
    Code,
    /// `name` and JSON, or a list of call objects.
    Mistral,
    /// A name, this mark, and JSON.
    Separated(&'static str),
    /// A header with the recipient, then the message.
    Harmony,
    /// `call:name{…}`.
    Gemma,
    /// A line with the name, and one with the arguments.
    React,
}

/// A row of the table.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) formats: &'static [TextFormat],
    pub(super) open: &'static str,
    pub(super) close: &'static [&'static str],
    pub(super) body: Body,
}

const fn row(
    formats: &'static [TextFormat],
    open: &'static str,
    close: &'static [&'static str],
    body: Body,
) -> Row {
    Row {
        formats,
        open,
        close,
        body,
    }
}

/// Marks that open a call. None is the beginning of another, except where the longer one comes first.
pub(super) const TABLE: &[Row] = &[
    row(
        &[TextFormat::Hermes, TextFormat::QwenCoder, TextFormat::Glm],
        "<tool_call>",
        &["</tool_call>"],
        Body::Wrapped,
    ),
    row(
        &[TextFormat::Hermes],
        "<tool_calls>",
        &["</tool_calls>"],
        Body::Wrapped,
    ),
    row(
        &[TextFormat::Hermes],
        "<TOOLCALL>",
        &["</TOOLCALL>"],
        Body::Wrapped,
    ),
    row(
        &[TextFormat::Hermes],
        "<|tool_call|>",
        &["<|/tool_call|>", "<|end_of_text|>", "<|end|>"],
        Body::Wrapped,
    ),
    row(
        &[TextFormat::Hermes],
        "<|action_start|><|plugin|>",
        &["<|action_end|>"],
        Body::Wrapped,
    ),
    row(
        &[TextFormat::Hermes],
        "<|START_ACTION|>",
        &["<|END_ACTION|>"],
        Body::Wrapped,
    ),
    row(&[TextFormat::Hermes], "functools[", &[], Body::Wrapped),
    row(
        &[TextFormat::QwenCoder],
        "<function=",
        &["</function>"],
        Body::Element,
    ),
    row(
        &[TextFormat::Invoke],
        "<invoke name=",
        &["</invoke>"],
        Body::Element,
    ),
    row(
        &[TextFormat::Invoke],
        concat!("<antml", ":invoke name="),
        &[concat!("</antml", ":invoke>")],
        Body::Element,
    ),
    row(
        &[TextFormat::Invoke],
        "<｜DSML｜invoke name=",
        &["</｜DSML｜invoke>"],
        Body::Element,
    ),
    row(
        &[TextFormat::Llama],
        "<|python_tag|>",
        &["<|eom_id|>", "<|eot_id|>"],
        Body::Code,
    ),
    row(
        &[TextFormat::Pythonic],
        "<|tool_call_start|>",
        &["<|tool_call_end|>"],
        Body::Code,
    ),
    row(&[TextFormat::Gemini], "```tool_code", &["```"], Body::Code),
    row(
        &[TextFormat::Mistral],
        "[TOOL_CALLS]",
        &["</s>"],
        Body::Mistral,
    ),
    row(
        &[TextFormat::DeepSeek],
        "<｜tool▁call▁begin｜>",
        &["<｜tool▁call▁end｜>"],
        Body::Separated("<｜tool▁sep｜>"),
    ),
    row(
        &[TextFormat::Kimi],
        "<|tool_call_begin|>",
        &["<|tool_call_end|>"],
        Body::Separated("<|tool_call_argument_begin|>"),
    ),
    row(
        &[TextFormat::Harmony],
        "<|channel|>",
        &["<|call|>", "<|end|>", "<|return|>", "<|start|>"],
        Body::Harmony,
    ),
    row(
        &[TextFormat::Harmony],
        "<|start|>assistant to=",
        &["<|call|>", "<|end|>", "<|return|>", "<|start|>"],
        Body::Harmony,
    ),
    row(
        &[TextFormat::Gemma],
        "<|tool_call>",
        &["<tool_call|>"],
        Body::Gemma,
    ),
    row(
        &[TextFormat::React],
        "Action:",
        &["\nObservation:"],
        Body::React,
    ),
];

/// Marks around calls that say nothing of their own.
pub(super) const SILENT: &[&str] = &[
    "<function_calls>",
    "</function_calls>",
    concat!("<antml", ":function_calls>"),
    concat!("</antml", ":function_calls>"),
    "<minimax:tool_call>",
    "</minimax:tool_call>",
    "<｜DSML｜function_calls>",
    "</｜DSML｜function_calls>",
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁calls▁end｜>",
    "<|tool_calls_section_begin|>",
    "<|tool_calls_section_end|>",
    "</tool_call>",
];

/// Marks with which the model's turn ends: what stands behind one is another's, or invented.
pub(super) const ENDS: &[&str] = &[
    "<｜end▁of▁sentence｜>",
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|return|>",
    "<|end_of_text|>",
    "<|endoftext|>",
    "<|END_OF_TURN_TOKEN|>",
    "<end_of_turn>",
    "</s>",
];

/// True for a mark that closes a call and says more than that, so that it is read once more.
pub(super) fn says_more(close: &str) -> bool {
    ENDS.contains(&close) || close == "<|start|>"
}
