//! The gateway's messages in English.

countersign::contract::messages! {
    /// A message or a hint of a reply, or a part of a question to the user.
    pub(crate) enum Say {
        // Credentials and the policy.
        CredentialMissing => "a credential is needed",
        SendCredential => "send an API key or a token as `Authorization: Bearer …`",
        CredentialMalformed => "the Authorization header is malformed",
        SendCredentialOnce => "send it once, as `Authorization: Bearer …`",
        CredentialNotAccepted => "the credential is not accepted",
        GetNewCredential => "it may be mistyped, revoked, expired or meant for another server; get a new one",
        CredentialUnchecked => "the credential cannot be checked now",
        NoRule => "no rule of the policy names this tool; add a [[tools]] entry for it",
        AgentDenied => "the policy does not let this agent call this tool",
        AgentEffect { effects } => "the policy lets this agent call only tools with the effect {effects}",
        WritesNeedUser => "this tool changes something: use a credential that names a user",
        RuleDenies { rule } => "the rule {rule} of the policy denies this call: other arguments, another time or another caller may be allowed",
        RuleFailed { rule } => "the rule {rule} of the policy cannot be decided for this call, so the call is refused",

        // Calls that do not reach the executor, or do not return from it.
        DidYouMean { name } => "did you mean {name}?",
        Overloaded => "the gateway has no room for more calls",
        CallerHasItsShare => "this caller has reached its limit of requests at the same time",
        WaitThenSame => "wait for retry_after_ms, then send the same call again",
        CallLost => "the gateway could not complete the call",
        SameLaterWithKey => "send the same call again later, with the same idempotency_key if it has one",
        NoSuchTool { name } => "there is no tool {name:?}",
        SearchFirst => "find it with search_tools",
        CallsItself => "call_tool cannot call itself",
        NameFoundTool => "name a tool that search_tools has found",
        SearchOtherwise => "no tool matches: search with other words, or with the name of an area",
        AnswerCut { places, handle } => "the answer was too long and was cut: {places}; call fetch_rest with the handle {handle:?} for the rest",
        CutItems { path, kept, of } => "{path} has {kept} of {of} items",
        CutMembers { path, kept, of } => "{path} has {kept} of {of} members",
        CutCharacters { path, kept, of } => "{path} has {kept} of {of} characters",
        NoRest => "no cut answer is stored under this handle",
        HandleAsGiven => "send the handle exactly as the last part gave it, with the credential that made the call",
        RestGone => "the rest of this answer is no longer stored",
        CallAgain => "make the call again",
        WaitThenSameRequest => "wait for retry_after_ms, then send the same request again",
        SameRequestLater => "send the same request again later",

        // Questions to a user over MCP.
        AtMost { amount } => "at most {amount}",
        Lower => "It may be lowered; the call then runs with the lower value",
        NarrowElsewhere { pointers, id } => "this form has no field to make {pointers} smaller: to leave something out, do not confirm here, but answer with `narrowed` at POST /v1/approvals/{id} or with `countersign approvals approve {id} --narrow POINTER=VALUE`",
        TwoApprovers => "two different approvers have to say yes",
        CannotBeUndone { what } => "cannot be undone: {what}",
        WouldAnswer { answer } => "would answer: {answer}",
        Confirm => "Confirm",
        StateRefused => "the requestState does not belong to this call, or has expired: send the call without it",
        MalformedForm => "the form came back without `confirm`, which is true or false",
        ConfirmOnce => "Allow this call once",
    }
}
