//! Grounds of a draft order: a price, a shipping option, duties and taxes, and a check that it may be sent there at all. The first call is
//! written as models write, the others name the evidence of those before them.

use serde_json::{Value, json};

use crate::demo::ask::{Answer, Ask};
use crate::demo::stage::Stage;
use crate::demo::world::World;
use crate::demo::{ANNA, DESTINATION, FORBIDDEN, QUANTITY, SKU};
use crate::failure::Failure;
use crate::table::Table;

/// The evidence of four answers.
pub(in crate::demo) struct Grounds {
    pub(in crate::demo) quote: String,
    pub(in crate::demo) shipping: String,
    pub(in crate::demo) option: String,
    pub(in crate::demo) tax: String,
    pub(in crate::demo) compliance: String,
}

/// All four.
pub(in crate::demo) fn play(world: &World, stage: &mut Stage<'_>) -> Result<Grounds, Failure> {
    let quote = quote(world, stage)?;
    let (shipping, option) = shipping(world, stage)?;
    let tax = tax(world, stage, &quote, &shipping, &option)?;
    let compliance = compliance(world, stage)?;
    Ok(Grounds {
        quote: stage.need(quote.evidence(), "evidence of the quote")?,
        shipping: stage.need(shipping.evidence(), "evidence of the shipping options")?,
        option,
        tax,
        compliance,
    })
}

fn quote(world: &World, stage: &mut Stage<'_>) -> Result<Answer, Failure> {
    stage.begin("bind", "A model writes almost JSON")?;
    let tool = "pricing.get_realtime_quote";
    let text = format!(
        "```json\n{{items: [{{sku: '{SKU}', quantity: '{QUANTITY}',}}], currency: \"EUR\",}}\n```"
    );
    let answer = world.ask(Ask::new(ANNA, tool, text));
    stage.call(&answer)?;
    for warning in answer.warnings() {
        let member = |name: &str| {
            warning
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        stage.value(member("code"), member("message"))?;
    }
    show_quote(stage, &answer)?;
    stage.check(
        answer.is_ok(),
        "the text has one safe reading, and was bound to it",
    )?;
    stage.check(
        answer.is_warned("TEXT_TO_INTEGER") && answer.is_warned("TRAILING_COMMA"),
        "every repair is reported",
    )?;
    let unit = answer.money("/lines/0/unit_price");
    let product = unit.and_then(|unit| unit.times(QUANTITY).ok());
    stage.check(
        product.is_some() && product == answer.money("/subtotal"),
        format!("{QUANTITY} is a number now: the subtotal is the price {QUANTITY} times, exact"),
    )?;
    let text = json!({"items": [{"sku": SKU, "quantity": -5}]}).to_string();
    let refused = world.ask(Ask::new(ANNA, tool, text));
    stage.call(&refused)?;
    let field = refused.detail("field").and_then(Value::as_str);
    stage.check(
        refused.code() == Some("INVALID_ARGUMENT") && field == Some("/items/0/quantity"),
        "what has no meaning is refused, with the place",
    )?;
    stage.end()?;
    Ok(answer)
}

fn show_quote(stage: &mut Stage<'_>, answer: &Answer) -> Result<(), Failure> {
    let title = answer.text("/lines/0/title").unwrap_or_default();
    stage.value(&format!("{QUANTITY} × {title}"), &answer.price("/subtotal"))
}

fn shipping(world: &World, stage: &mut Stage<'_>) -> Result<(Answer, String), Failure> {
    stage.begin("ship", "Ways to send it")?;
    let arguments = json!({
        "items": [{"sku": SKU, "quantity": QUANTITY}],
        "destination": destination(),
    });
    let tool = "shipping.quote_options";
    let answer = world.ask(Ask::new(ANNA, tool, arguments.to_string()));
    stage.call(&answer)?;
    let options = answer.data("/options").and_then(Value::as_array);
    let options = options.cloned().unwrap_or_default();
    let mut table = Table::new(["OPTION", "PRICE", "WORKING DAYS", "CHARGED FOR"]);
    let mut prices = Vec::new();
    for (at, option) in options.iter().enumerate() {
        let number = |pointer: &str| {
            let number = option.pointer(pointer).and_then(Value::as_u64);
            number.unwrap_or_default()
        };
        let id = option.get("option_id").and_then(Value::as_str);
        prices.push(
            answer
                .money(&format!("/options/{at}/price"))
                .map(|price| price.amount),
        );
        table.row([
            id.unwrap_or_default(),
            &answer.price(&format!("/options/{at}/price")),
            &format!("{} to {}", number("/sla/days_min"), number("/sla/days_max")),
            &format!("{} g", number("/chargeable_weight_g")),
        ]);
    }
    stage.table(&table)?;
    stage.check(
        !options.is_empty() && prices.is_sorted(),
        "priced by zone and the larger of actual and volumetric weight, the cheapest first",
    )?;
    let is_weighed = |option: &Value| {
        let number = |name: &str| option.get(name).and_then(Value::as_u64);
        let (charged, actual) = (number("chargeable_weight_g"), number("actual_weight_g"));
        charged >= actual && actual > Some(0)
    };
    stage.check(
        !options.is_empty() && options.iter().all(is_weighed),
        "by the weight of these very items",
    )?;
    let option = stage.need(answer.text("/options/0/option_id"), "a shipping option")?;
    stage.end()?;
    Ok((answer, option))
}

fn tax(
    world: &World,
    stage: &mut Stage<'_>,
    quote: &Answer,
    shipping: &Answer,
    option: &str,
) -> Result<String, Failure> {
    stage.begin("tax", "Duties and taxes, by rules that have a version")?;
    let arguments = json!({
        "quote_snapshot_id": quote.evidence(),
        "shipping_snapshot_id": shipping.evidence(),
        "shipping_option_id": option,
        "destination": destination(),
    });
    let tool = "tax.estimate_duties_and_taxes";
    let answer = world.ask(Ask::new(ANNA, tool, arguments.to_string()));
    stage.call(&answer)?;
    for part in [
        "goods_value",
        "shipping_cost",
        "duty",
        "tax",
        "fees",
        "total",
    ] {
        stage.value(&part.replace('_', " "), &answer.price(&format!("/{part}")))?;
    }
    let said = |pointer: &str| answer.text(pointer).unwrap_or_default();
    stage.value("method", &said("/method"))?;
    stage.value("confidence", &said("/confidence"))?;
    stage.check(
        answer.money("/goods_value").is_some()
            && answer.money("/goods_value") == quote.money("/subtotal")
            && answer.money("/shipping_cost") == shipping.money("/options/0/price"),
        "goods and shipping come from evidence, not from what the agent says",
    )?;
    let parts = ["/duty", "/tax", "/fees"].map(|part| answer.money(part));
    let sum = parts.iter().flatten().map(|part| part.amount).sum::<i64>();
    let total = answer.money("/total").map(|total| total.amount);
    stage.check(
        total == Some(sum) && sum > 0,
        "the parts make the total, to the cent",
    )?;
    let version = world
        .rules
        .current("tax")
        .map(|set| set.version.to_string());
    stage.check(
        version.is_some() && rule_version(&answer, "tax") == version.as_deref(),
        format!(
            "the record names the rules: tax {}",
            version
                .as_deref()
                .and_then(|text| text.get(..19))
                .unwrap_or_default()
        ),
    )?;
    let id = stage.need(answer.evidence(), "evidence of the estimate")?;
    stage.end()?;
    Ok(id)
}

fn compliance(world: &World, stage: &mut Stage<'_>) -> Result<String, Failure> {
    stage.begin("comply", "Whether it may go there")?;
    let check = |destination: Value| {
        let arguments = json!({
            "items": [{"sku": SKU, "quantity": QUANTITY}],
            "destination": destination,
        });
        let tool = "compliance.check_item";
        world.ask(Ask::new(ANNA, tool, arguments.to_string()))
    };
    let answer = check(destination());
    stage.call(&answer)?;
    show_decision(stage, &answer)?;
    let decision = answer.text("/decision");
    stage.check(
        matches!(decision.as_deref(), Some("allowed" | "conditional")),
        "it may, and the reply says what has to be done first",
    )?;
    let blocked = check(json!({"country": FORBIDDEN}));
    stage.call(&blocked)?;
    show_decision(stage, &blocked)?;
    stage.check(
        blocked.text("/decision").as_deref() == Some("blocked"),
        "elsewhere it may not: without the certificate the answer is no, not perhaps",
    )?;
    let id = stage.need(answer.evidence(), "evidence of the check")?;
    stage.end()?;
    Ok(id)
}

fn show_decision(stage: &mut Stage<'_>, answer: &Answer) -> Result<(), Failure> {
    stage.value("decision", &answer.text("/decision").unwrap_or_default())?;
    let findings = answer.data("/lines/0/findings").and_then(Value::as_array);
    for finding in findings.into_iter().flatten() {
        let member = |name: &str| finding.get(name).and_then(Value::as_str);
        let rule = member("rule").unwrap_or_default();
        let severity = member("severity").unwrap_or_default();
        let message = member("message").unwrap_or_default();
        stage.value(severity, &format!("{rule}: {message}"))?;
    }
    Ok(())
}

/// The version of a rule set that an answer's evidence names.
fn rule_version<'a>(answer: &'a Answer, name: &str) -> Option<&'a str> {
    let sources = answer.reply.pointer("/evidence/sources")?.as_array()?;
    let is_it = |source: &&Value| {
        source.get("type").and_then(Value::as_str) == Some("rule_set")
            && source.get("name").and_then(Value::as_str) == Some(name)
    };
    sources.iter().find(is_it)?.get("hash")?.as_str()
}

fn destination() -> Value {
    json!({"country": DESTINATION, "postal_code": "10115"})
}
