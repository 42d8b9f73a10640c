//! An order as a `Checkout` of UCP 2026-04-08, with its extension for fulfillment.

use serde_json::{Value, json};

use super::totals::rows;
use super::{Charges, Reader, Session, SessionState, Unbalanced};

/// The version that is written.
pub const VERSION: &str = "2026-04-08";

/// The checkout of an order.
pub fn checkout(session: &Session, reader: &Reader<'_>) -> Result<Value, Unbalanced> {
    let charges = Charges::of(session)?;
    let mut page = json!({
        // The format of the page; the operations that a client may use are at /.well-known/ucp.
        "ucp": {
            "version": VERSION,
            "status": "success",
            "capabilities": {
                "dev.ucp.shopping.checkout": [{"version": VERSION}],
                "dev.ucp.shopping.fulfillment": [
                    {"version": VERSION, "extends": "dev.ucp.shopping.checkout"},
                ],
            },
            // Nothing is paid here.
            "payment_handlers": {},
        },
        "id": session.id,
        "status": status(session.state, reader),
        "currency": session.total.currency,
        "line_items": lines(session),
        "fulfillment": fulfillment(session, &charges, reader),
        "totals": totals(&charges, reader),
        "messages": messages(session, reader),
        "links": [],
        "expires_at": session.expires_at,
    });
    if let (Value::Object(members), Some(url)) = (&mut page, reader.continue_url) {
        members.insert("continue_url".to_owned(), url.into());
    }
    Ok(page)
}

/// The status in UCP. Without a page to send the buyer to, an unconfirmed order is incomplete. UCP has no status for an
/// expired order, so it is canceled.
fn status(state: SessionState, reader: &Reader<'_>) -> &'static str {
    match state {
        SessionState::Open | SessionState::Locked if reader.continue_url.is_some() => {
            "requires_escalation"
        }
        SessionState::Open | SessionState::Locked => "incomplete",
        SessionState::Payable => "ready_for_complete",
        SessionState::Expired => "canceled",
    }
}

fn lines(session: &Session) -> Vec<Value> {
    let line = |line: &super::SessionLine| {
        json!({
            "id": line.sku,
            "item": {"id": line.sku, "title": line.title, "price": line.unit_price.amount},
            "quantity": line.quantity,
            "totals": [
                {"type": "subtotal", "amount": line.line_total.amount},
                {"type": "total", "amount": line.line_total.amount},
            ],
        })
    };
    session.lines.iter().map(line).collect()
}

fn fulfillment(session: &Session, charges: &Charges, reader: &Reader<'_>) -> Value {
    let to = &session.destination;
    let mut destination = json!({"id": "destination", "address_country": to.country()});
    if let Value::Object(members) = &mut destination {
        let region = to
            .region()
            .map(|it| ("address_region".to_owned(), it.into()));
        let postal_code = to.postal_code.as_deref();
        let postal_code = postal_code.map(|it| ("postal_code".to_owned(), it.into()));
        members.extend(region.into_iter().chain(postal_code));
    }
    json!({"methods": [{
        "id": "shipping",
        "type": "shipping",
        "line_item_ids": session.line_ids(),
        "destinations": [destination],
        "selected_destination_id": "destination",
        "groups": [{
            "id": "all",
            "line_item_ids": session.line_ids(),
            "selected_option_id": session.shipping.option_id,
            "options": [{
                "id": session.shipping.option_id,
                "title": session.way(),
                "description": session.duration(reader),
                "carrier": session.shipping.carrier,
                "totals": [{"type": "total", "amount": charges.fulfillment.amount}],
            }],
        }],
    }]})
}

fn totals(charges: &Charges, reader: &Reader<'_>) -> Vec<Value> {
    rows(charges, reader)
        .into_iter()
        .map(|(kind, text, amount)| {
            let mut total = json!({"type": kind, "display_text": text, "amount": amount.amount});
            // Together they make the amount above them.
            let parts = charges.tax_lines.iter();
            let parts: Vec<Value> = parts
                .filter(|_| kind == "tax")
                .map(|(kind, amount)| {
                    json!({"display_text": kind.text(reader), "amount": amount.amount})
                })
                .collect();
            if let (Value::Object(members), false) = (&mut total, parts.is_empty()) {
                members.insert("lines".to_owned(), parts.into());
            }
            total
        })
        .collect()
}

fn messages(session: &Session, reader: &Reader<'_>) -> Vec<Value> {
    let error = |code: &str, severity: &str, text: &str| {
        json!({
            "type": "error",
            "code": code,
            "severity": severity,
            "content_type": "plain",
            "content": text,
        })
    };
    let info = |code: &str, text: &str| json!({"type": "info", "code": code, "content_type": "plain", "content": text});
    let review = "requires_buyer_review";
    let mut messages = Vec::new();
    match session.state {
        SessionState::Open | SessionState::Locked => {
            messages.push(error(
                "approval_required",
                review,
                &session.question(reader),
            ));
            for text in &session.acknowledge {
                messages.push(error("approval_required", review, text));
            }
        }
        SessionState::Payable => {}
        SessionState::Expired => {
            messages.push(error("expired", "unrecoverable", &reader.is_over()));
        }
    }
    let asked = session.confirm.iter();
    messages.extend(asked.map(|(kind, text)| info(kind, text)));
    if let Some(text) = session.at_the_door(reader) {
        messages.push(info("charges_on_delivery", &text));
    }
    messages
}
