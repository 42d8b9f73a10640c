//! Whole pages, and texts that try to leave their cell.

use serde_json::json;

use super::*;
use crate::id::ToolName;

fn quote_parameters() -> Vec<Parameter> {
    let mut items = Parameter::new("items", ValueKind::Object, "What to price.")
        .list()
        .fields(vec![
            Parameter::new("quantity", ValueKind::Integer, "How many.")
                .default_value(1)
                .range(Some(1.into()), Some(99.into())),
            Parameter::new("sku", ValueKind::String, "Stock keeping unit.").example("SKU-1042"),
        ]);
    items.bounds.max_items = Some(50);
    let mut speed = Parameter::one_of("speed", ["standard", "express"], "How fast.").optional();
    speed.allowed.as_mut().unwrap().case = CaseRule::Exact;
    let mut city = Parameter::new("city", ValueKind::String, "").sensitivity(Sensitivity::Personal);
    city.bounds.min_length = Some(2);
    city.bounds.pattern = Some("^[a|b]".into());
    vec![
        Parameter::new("address", ValueKind::Object, "Where to.").fields(vec![city]),
        items,
        Parameter::new("limits", ValueKind::Number, "Per carrier.")
            .map()
            .optional(),
        Parameter::new("max_price", ValueKind::String, "As a decimal.")
            .strict()
            .optional(),
        speed,
    ]
}

fn quote(input: Input) -> ToolSpec {
    let mut spec = ToolSpec::new(
        ToolName::new("shipping.quote_options").unwrap(),
        "Prices of the ways to ship.",
    )
    .version("3f2a")
    .input(input);
    spec.title = Some("Shipping options".into());
    spec.behaviour.effect = Effect::External;
    spec.behaviour.evidence = EvidenceRule::Required;
    spec.behaviour.confirmation = Confirmation::Always;
    spec.behaviour.ttl_seconds = Some(90);
    spec
}

/// B18: the page of a tool, whole.
#[test]
fn the_page_of_a_tool() {
    let expected = r#"# Shipping options

`shipping.quote_options` · version `3f2a`

Prices of the ways to ship.

## Behaviour

- **Acts elsewhere**: what it changes lies outside this system.
- **Confirmation**: the user confirms every call.
- **Key**: optional; with one, a call has its effect at most once; a repeat gets the first answer for 1 day.
- **Evidence**: the reply waits until its evidence is durable.
- **Freshness**: an answer holds for 90 seconds.
- **Deadline**: 30000 ms.
- **Arguments**: repaired where nothing is lost; unknown ones are refused.

## Parameters

| name | type | required | description | allowed | default | example | bounds |
|---|---|---|---|---|---|---|---|
| `address` | object | yes | Where to. |  |  |  |  |
| &emsp;`address.city` | string, personal | yes |  |  |  |  | at least 2 characters, matches `^[a\|b]` |
| `items` | list of object | yes | What to price. |  |  |  | at most 50 items |
| &emsp;`items[].quantity` | integer | no | How many. |  | `1` |  | 1 to 99 |
| &emsp;`items[].sku` | string | yes | Stock keeping unit. |  |  | `"SKU-1042"` |  |
| `limits` | map of number | no | Per carrier. |  |  |  |  |
| `max_price` | string, strict | no | As a decimal. |  |  |  |  |
| `speed` | enum token | no | How fast. | `standard`, `express` (exact spelling) |  |  |  |

## Example

```json
{
  "arguments": {
    "address": {
      "city": "text"
    },
    "items": [
      {
        "quantity": 1,
        "sku": "SKU-1042"
      }
    ]
  },
  "idempotency_key": "k_1"
}
```
"#;
    assert_eq!(
        tool_page(&quote(Input::Parameters(quote_parameters()))),
        expected
    );
}

/// B18: a tool that brings a schema gets the same page, but for the order of members.
#[test]
fn a_schema_gives_the_same_page() {
    let lines = |input| {
        let mut lines: Vec<_> = tool_page(&quote(input))
            .lines()
            .map(str::to_owned)
            .collect();
        lines.sort();
        lines
    };
    let parameters = quote_parameters();
    let schema = schema::of_parameters(&parameters);
    assert_eq!(
        lines(Input::Schema(schema)),
        lines(Input::Parameters(parameters))
    );
}

#[test]
fn tools_that_take_nothing_or_anything() {
    let spec = |input| ToolSpec::new(ToolName::new("a").unwrap(), "x").input(input);
    let nothing = tool_page(&spec(Input::Parameters(Vec::new())));
    assert!(nothing.contains("## Parameters\n\nNone.\n"), "{nothing}");
    assert!(
        nothing.contains("**Reads only**") && !nothing.contains("idempotency_key"),
        "{nothing}"
    );
    let anything = tool_page(&spec(Input::Undeclared));
    assert!(anything.ends_with("None are declared: any object is passed on as it was parsed.\n"));
}

/// A text from a third party's manifest stays in its cell.
#[test]
fn no_text_leaves_its_cell() {
    let mut parameter = Parameter::new("a|b", ValueKind::String, "one |\ntwo <script>\r\n# three");
    parameter.example = Some(json!("x`|`y"));
    let spec = ToolSpec::new(ToolName::new("t").unwrap(), "<img src=x>")
        .input(Input::parameters([parameter]));
    let page = tool_page(&spec);
    let row =
        r#"| `a\|b` | string | yes | one \| two &lt;script> # three |  |  | `` "x`\|`y" `` |  |"#;
    assert!(page.lines().any(|line| line == row), "{page}");
    assert!(
        !page.contains("<script") && !page.contains("<img"),
        "{page}"
    );
}

#[test]
fn spans_are_told_in_whole_units() {
    for (span, told) in [
        (0, "0 seconds"),
        (1, "1 second"),
        (90, "90 seconds"),
        (300, "5 minutes"),
        (3_600, "1 hour"),
        (172_800, "2 days"),
    ] {
        assert_eq!(seconds(span), told);
    }
}
