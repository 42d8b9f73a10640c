//! Bodies, against what an operation declares.

use serde_json::{Map, Value, json};

use super::decode::{self, Pairs};
use super::{Checked, Leaves, Original, collect, essence, place};
use crate::service::Seen;

impl Original {
    pub(super) fn body(&self, operation: &Value, seen: &Seen, leaves: &mut Leaves) -> Checked<()> {
        let Some(declared) = operation.get("requestBody") else {
            return if seen.body.is_empty() {
                Ok(())
            } else {
                Err("a body is not declared".into())
            };
        };
        let declared = self.follow(declared);
        let sent = seen.header("content-type");
        if sent.is_empty() {
            let is_needed = declared.get("required") == Some(&json!(true));
            return if is_needed {
                Err("the body is missing".into())
            } else {
                Ok(())
            };
        }
        let content = declared
            .get("content")
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        let fits = |media: &str| decode::media_fits(media, sent);
        let media = content
            .iter()
            .find(|(media, _)| essence(media) == essence(sent))
            .or_else(|| content.iter().find(|(it, _)| fits(it)));
        let (_, media) = media.ok_or_else(|| format!("a body of {sent} is not declared"))?;
        let schema = media.get("schema");
        let value = self.body_value(sent, schema, media.get("encoding"), seen)?;
        collect(&value, leaves);
        match schema {
            Some(schema) if !decode::is_raw(sent) => self.accepts(schema, &value),
            Some(_) | None => Ok(()),
        }
    }

    fn body_value(
        &self,
        sent: &str,
        schema: Option<&Value>,
        encoding: Option<&Value>,
        seen: &Seen,
    ) -> Checked<Value> {
        let nothing = json!({});
        match essence(sent).as_str() {
            kind if decode::is_json(kind) => {
                serde_json::from_slice(&seen.body).map_err(|_| "the body is no JSON".into())
            }
            "application/x-www-form-urlencoded" => {
                decode::form(self, schema.unwrap_or(&nothing), encoding, &seen.text())
            }
            "multipart/form-data" => {
                decode::parts(self, schema.unwrap_or(&nothing), sent, &seen.body)
            }
            _ => Ok(decode::bytes(&seen.body)),
        }
    }

    pub(super) fn swagger_body(
        &self,
        operation: &Value,
        parameters: &[&Value],
        seen: &Seen,
        leaves: &mut Leaves,
    ) -> Checked<()> {
        let sent = seen.header("content-type");
        let whole = parameters.iter().find(|it| place(it) == "body");
        let consumes = operation
            .get("consumes")
            .or_else(|| self.document.get("consumes"));
        let consumes = consumes
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        if !sent.is_empty() && !consumes.is_empty() {
            let fits = consumes
                .iter()
                .filter_map(Value::as_str)
                .any(|it| decode::media_fits(it, sent));
            let is_form = parameters.iter().any(|it| place(it) == "formdata");
            if !fits && !is_form {
                return Err(format!("{sent} is not consumed").into());
            }
        }
        if let Some(whole) = whole {
            if sent.is_empty() {
                let is_needed = whole.get("required") == Some(&json!(true));
                return if is_needed {
                    Err("the body is missing".into())
                } else {
                    Ok(())
                };
            }
            let schema = whole.get("schema");
            let value = self.body_value(sent, schema, None, seen)?;
            collect(&value, leaves);
            return match schema {
                Some(schema) if !decode::is_raw(sent) => self.accepts(schema, &value),
                Some(_) | None => Ok(()),
            };
        }
        self.swagger_form(parameters, seen, leaves)
    }

    fn swagger_form(&self, parameters: &[&Value], seen: &Seen, leaves: &mut Leaves) -> Checked<()> {
        let sent = seen.header("content-type");
        let members: Vec<&&Value> = parameters
            .iter()
            .filter(|it| place(it) == "formdata")
            .collect();
        if members.is_empty() {
            return if seen.body.is_empty() {
                Ok(())
            } else {
                Err("a body is not declared".into())
            };
        }
        if essence(sent) == "multipart/form-data" {
            let properties: Map<String, Value> = members
                .iter()
                .map(|it| {
                    (
                        it["name"].as_str().unwrap_or_default().to_owned(),
                        (***it).clone(),
                    )
                })
                .collect();
            let value =
                decode::parts(self, &json!({ "properties": properties }), sent, &seen.body)?;
            for member in members {
                let name = member["name"].as_str().unwrap_or_default();
                if member.get("required") == Some(&json!(true)) && value.get(name).is_none() {
                    return Err(format!("{name:?} is missing").into());
                }
            }
            collect(&value, leaves);
            return Ok(());
        }
        let mut pairs = Pairs::parse(&seen.text(), '&');
        for member in members {
            let own = self.taken(member, &mut pairs);
            self.one(member, &own, leaves)?;
        }
        if pairs.0.is_empty() {
            Ok(())
        } else {
            Err(format!("{:?} is not declared", pairs.0[0]).into())
        }
    }
}
