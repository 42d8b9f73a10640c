//! An order as a `CheckoutSession` of ACP 2026-04-17.

use serde_json::{Value, json};

use super::totals::rows;
use super::{Charges, Reader, Session, SessionState, Unbalanced};

/// The version that is written.
pub const VERSION: &str = "2026-04-17";

/// The session of an order.
pub fn session(session: &Session, reader: &Reader<'_>) -> Result<Value, Unbalanced> {
    let charges = Charges::of(session)?;
    let mut page = json!({
        "id": session.id,
        "protocol": {"version": VERSION},
        // Nothing is paid here, so there is nothing to pay with.
        "capabilities": {"payment": {"handlers": []}},
        "status": status(session.state),
        // Lower case, as ACP writes currencies.
        "currency": session.total.currency.to_ascii_lowercase(),
        "line_items": lines(session, reader),
        "fulfillment_options": [{
            "type": "shipping",
            "id": session.shipping.option_id,
            "title": session.way(),
            "description": session.duration(reader),
            "carrier": session.shipping.carrier,
            "totals": [{
                "type": "total",
                "display_text": reader.say("Shipping", "运费"),
                "amount": charges.fulfillment.amount,
            }],
        }],
        "selected_fulfillment_options": [{
            "type": "shipping",
            "option_id": session.shipping.option_id,
            "item_ids": session.line_ids(),
        }],
        "totals": totals(&charges, reader),
        "messages": messages(session, reader),
        "links": [],
        "created_at": session.created_at,
        "expires_at": session.expires_at,
        "quote_id": session.quote_snapshot_id,
        "quote_expires_at": session.held_until.unwrap_or(session.expires_at),
        "metadata": {
            "evidence_snapshot_id": session.evidence_snapshot_id,
            "due_on_delivery": session.due_on_delivery.amount,
        },
    });
    if let (Value::Object(members), Some(url)) = (&mut page, reader.continue_url) {
        members.insert("continue_url".to_owned(), url.into());
    }
    Ok(page)
}

const fn status(state: SessionState) -> &'static str {
    match state {
        SessionState::Open | SessionState::Locked => "requires_escalation",
        SessionState::Payable => "ready_for_payment",
        SessionState::Expired => "expired",
    }
}

fn lines(session: &Session, reader: &Reader<'_>) -> Vec<Value> {
    let text = reader.say("Items", "商品");
    let line = |line: &super::SessionLine| {
        let total = |kind: &str| json!({"type": kind, "display_text": text, "amount": line.line_total.amount});
        json!({
            "id": line.sku,
            "item": {"id": line.sku, "name": line.title, "unit_amount": line.unit_price.amount},
            "quantity": line.quantity,
            "name": line.title,
            "unit_amount": line.unit_price.amount,
            "product_id": line.offer_id,
            "sku": line.sku,
            "totals": [total("items_base_amount"), total("subtotal"), total("total")],
        })
    };
    session.lines.iter().map(line).collect()
}

fn totals(charges: &Charges, reader: &Reader<'_>) -> Vec<Value> {
    let base = (
        "items_base_amount",
        reader.say("Items", "商品"),
        charges.subtotal.clone(),
    );
    // Before any discount, of which there is none here: the same amount again.
    let rows = std::iter::once(base).chain(rows(charges, reader));
    rows.map(|(kind, text, amount)| {
        let mut total = json!({"type": kind, "display_text": text, "amount": amount.amount});
        let parts = charges.tax_lines.iter();
        let parts = parts.filter(|(_, amount)| kind == "tax" && amount.amount != 0);
        let parts: Vec<String> = parts
            .map(|(kind, amount)| format!("{} {amount}", kind.text(reader)))
            .collect();
        if let (Value::Object(members), false) = (&mut total, parts.is_empty()) {
            members.insert("description".to_owned(), parts.join(", ").into());
        }
        total
    })
    .collect()
}

fn messages(session: &Session, reader: &Reader<'_>) -> Vec<Value> {
    let info = |text: &str, resolution: Option<&str>| {
        let mut info =
            json!({"type": "info", "severity": "info", "content_type": "plain", "content": text});
        if let (Value::Object(members), Some(resolution)) = (&mut info, resolution) {
            members.insert("resolution".to_owned(), resolution.into());
        }
        info
    };
    let error = |code: &str, severity: &str, resolution: &str, text: &str| {
        json!({
            "type": "error",
            "code": code,
            "severity": severity,
            "resolution": resolution,
            "content_type": "plain",
            "content": text,
        })
    };
    let review = "requires_buyer_review";
    let mut messages = Vec::new();
    let resolution = match session.state {
        SessionState::Open | SessionState::Locked => {
            let asked = session.question(reader);
            messages.push(error("approval_required", "high", review, &asked));
            for text in &session.acknowledge {
                messages.push(error("approval_required", "high", review, text));
            }
            Some(review)
        }
        SessionState::Payable => None,
        SessionState::Expired => {
            let over = reader.is_over();
            messages.push(error("expired", "critical", "recoverable", &over));
            None
        }
    };
    let texts = session.confirm.iter().map(|(_, text)| text.clone());
    let texts = texts.chain(session.at_the_door(reader));
    messages.extend(texts.map(|text| info(&text, resolution)));
    messages
}
