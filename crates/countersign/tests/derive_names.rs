//! The names that `#[derive(ToolArgs)]` declares are the names that serde reads.

use countersign::ToolArgs;
use countersign::contract::Parameter;
use countersign::contract::schema::of_parameters;
use serde::Deserialize;
use serde_json::json;

#[expect(dead_code, reason = "the fields are declared here, and read by nobody")]
#[derive(Deserialize, ToolArgs)]
#[serde(rename_all = "camelCase")]
struct Names {
    /// By the rule of the struct.
    order_id: String,
    /// By its own name.
    #[serde(rename(deserialize = "SKU", serialize = "sku"))]
    #[arg(alias = "item", alias = "article", strict, sensitive = "secret")]
    stock_keeping_unit: String,
    /// A raw name.
    r#type: Option<String>,
    #[serde(skip)]
    cache: Option<usize>,
    /// May be cut.
    #[arg(truncate, lenient)]
    #[serde(alias = "n")]
    count: i64,
}

/// B2: names are the ones that serde reads.
#[test]
fn names_are_those_of_the_wire() {
    let schema = of_parameters(&Names::parameters());
    let expected = json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["orderId", "SKU", "count"],
        "properties": {
            "orderId": {"type": "string", "x-kind": "string",
                        "description": "By the rule of the struct."},
            "SKU": {"type": "string", "x-kind": "string", "description": "By its own name.",
                    "x-aliases": ["item", "article"], "x-leniency": "strict",
                    "x-sensitivity": "secret"},
            "type": {"type": "string", "x-kind": "string", "description": "A raw name."},
            "count": {"type": "integer", "x-kind": "integer", "description": "May be cut.",
                      "x-truncate": true, "x-leniency": "lenient", "x-aliases": ["n"]},
        },
    });
    assert_eq!(schema, expected);
}

/// Declares one variant and one field under every rule of serde's, and asks serde which name it reads.
macro_rules! rename_rules {
    ($($test:ident: $rule:literal;)*) => {$(
        #[test]
        fn $test() {
            #[derive(Debug, PartialEq, Deserialize, ToolArgs)]
            #[serde(rename_all = $rule)]
            enum Token {
                InTransitB2b,
            }

            #[derive(Debug, Deserialize, ToolArgs)]
            #[serde(rename_all = $rule)]
            struct Args {
                /// -
                unit_price_2b: Token,
            }

            let [parameter] = <[Parameter; 1]>::try_from(Args::parameters()).unwrap();
            let token = &parameter.allowed.unwrap().values[0];
            let arguments = json!({ parameter.name: token }).to_string();
            let args = Args::from_json(&arguments).unwrap();
            assert_eq!(args.unit_price_2b, Token::InTransitB2b);
        }
    )*};
}

rename_rules! {
    lowercase_is_what_serde_reads: "lowercase";
    uppercase_is_what_serde_reads: "UPPERCASE";
    pascal_case_is_what_serde_reads: "PascalCase";
    camel_case_is_what_serde_reads: "camelCase";
    snake_case_is_what_serde_reads: "snake_case";
    screaming_snake_case_is_what_serde_reads: "SCREAMING_SNAKE_CASE";
    kebab_case_is_what_serde_reads: "kebab-case";
    screaming_kebab_case_is_what_serde_reads: "SCREAMING-KEBAB-CASE";
}
