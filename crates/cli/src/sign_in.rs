//! The issuer at which people sign in to the console, from the configuration.

use countersign::principal::BearerToken;
use countersign_config::sections::SignIn;
use countersign_gateway::identity::IssuerClient;
use countersign_gateway::policy::Policy;

use crate::config::secret;
use crate::failure::Failure;

/// Returns the fault of the section, with the key of the setting; it is checked against the policy.
pub(crate) fn mistake(sign_in: &SignIn, policy: &Policy) -> Option<(&'static str, String)> {
    let (issuer, client_id) = match (&sign_in.issuer, sign_in.client_id.as_deref()) {
        (None, None) => {
            let is_set = sign_in.client_secret.is_some()
                || sign_in.audience.is_some()
                || sign_in.resource.is_some();
            let message = "without an issuer, people cannot sign in that way".to_owned();
            return is_set.then_some(("sign_in.issuer", message));
        }
        (Some(_), None | Some("")) => {
            let message = "an issuer wants to know who asks: it has no client_id".to_owned();
            return Some(("sign_in.client_id", message));
        }
        (None, Some(_)) => {
            return Some((
                "sign_in.issuer",
                "a client_id belongs to an issuer".to_owned(),
            ));
        }
        (Some(issuer), Some(client_id)) => (issuer.to_string(), client_id),
    };
    let rules = || {
        let rules = policy.file().issuers.iter();
        rules.filter(|rule| rule.issuer == issuer)
    };
    if rules().next().is_none() {
        let message = format!(
            "the policy has no [[issuers]] entry of {issuer:?}, so none of its tokens would be accepted"
        );
        return Some(("sign_in.issuer", message));
    }
    let is_person = rules().any(|rule| rule.user_clients.iter().any(|known| known == client_id));
    (!is_person).then(|| {
        let message = format!(
            "the policy does not have {client_id:?} in user_clients of {issuer:?}, so a person who signs in would count as an agent"
        );
        ("sign_in.client_id", message)
    })
}

/// The client, where one is configured.
pub(crate) fn client(sign_in: &SignIn, policy: &Policy) -> Result<Option<IssuerClient>, Failure> {
    if let Some((key, message)) = mistake(sign_in, policy) {
        return Err(
            Failure::new(format!("{key}: {message}")).hint("docs/console.md has an example")
        );
    }
    let SignIn {
        issuer,
        client_id,
        client_secret,
        scopes,
        audience,
        resource,
    } = sign_in;
    let (Some(issuer), Some(client_id)) = (issuer, client_id) else {
        return Ok(None);
    };
    let client_secret = match client_secret {
        Some(named) => {
            let secret = secret::read("sign_in.client_secret", named)?;
            Some(BearerToken::new(secret.as_str()))
        }
        None => None,
    };
    Ok(Some(IssuerClient {
        issuer: issuer.to_string(),
        client_id: client_id.clone(),
        client_secret,
        scopes: scopes.clone(),
        audience: audience.clone(),
        resource: resource.clone(),
    }))
}
