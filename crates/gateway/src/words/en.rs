//! What the gateway says, in English.

countersign::contract::messages! {
    /// A message or a hint of a reply, or a part of a question to the user.
    pub(crate) enum Say {
        // Credentials and the policy.
        CredentialMissing => "a credential is needed",
        SendCredential => "send an API key or a token as `Authorization: Bearer …`",
        CredentialMalformed => "the Authorization header holds no credential",
        SendCredentialOnce => "send it once, as `Authorization: Bearer …`",
        CredentialNotAccepted => "the credential is not accepted",
        GetNewCredential => "it may be mistyped, revoked, expired or meant for another server; get a new one",
        CredentialUnchecked => "the credential cannot be checked now",
        NoRule => "no rule of the policy names this tool; add a [[tools]] entry for it",
        AgentDenied => "the policy does not let this agent call this tool",
        AgentEffect { effects } => "the policy lets this agent call only tools with the effect {effects}",
        WritesNeedUser => "this tool changes something: use a credential that names a user",

        // Calls that do not reach the executor, or do not come back from it.
        DidYouMean { name } => "did you mean {name}?",
        Overloaded => "the gateway has no room for more calls",
        CallerHasItsShare => "this caller has as much open at once as one caller may have",
        WaitThenSame => "wait for retry_after_ms, then send the same call again",
        CallLost => "the gateway could not complete the call",
        SameLaterWithKey => "send the same call again later, with the same idempotency_key if it has one",
        WaitThenSameRequest => "wait for retry_after_ms, then send the same request again",
        SameRequestLater => "send the same request again later",

        // What a user is asked over MCP.
        AtMost { amount } => "at most {amount}",
        Lower => "It may be lowered; the call then runs with the lower value",
        TwoApprovers => "two different approvers have to say yes",
        CannotBeUndone { what } => "cannot be undone: {what}",
        WouldAnswer { answer } => "would answer: {answer}",
        Confirm => "Confirm",
        MalformedForm => "the form came back without `confirm`, which is true or false",
        ConfirmOnce => "Whether this call may be made, once",
    }
}
