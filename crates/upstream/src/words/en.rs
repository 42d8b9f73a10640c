//! What tools of upstreams say, in English.

countersign_contract::messages! {
    /// A message or a hint of a reply.
    pub(crate) enum Say {
        // Arguments.
        HiddenArgument { argument } => "the argument {argument:?} is set by the operator and cannot be sent",
        NotInPath { argument } => "the argument {argument:?} is part of the path: it cannot be missing, empty, \".\" or \"..\"",
        NotInHeader { argument } => "the argument {argument:?} is sent as a header and cannot have line breaks or control characters",
        NotBase64 { argument } => "the argument {argument:?} is not base64",
        NotAFilter { why } => "the filter cannot be used: {why}",
        CorrectArguments => "correct the arguments as the upstream says in details",

        // The way to the upstream.
        Unreachable { upstream } => "the upstream {upstream} could not be reached; nothing was sent",
        NotDeclared { upstream } => "the upstream {upstream} is at an address that its configuration does not allow; nothing was sent",
        BreakerOpen { upstream } => "the upstream {upstream} could not be reached several times and is left alone for a while; nothing was sent",
        NoSlot { upstream } => "too many requests to the upstream {upstream} were under way; nothing was sent",
        Unwritable { upstream } => "the request to the upstream {upstream} could not be written; nothing was sent",
        Redirected { upstream } => "the upstream {upstream} redirects elsewhere, which is not followed",
        Lost { upstream } => "the connection to the upstream {upstream} was lost before its answer was complete",
        Late { upstream } => "the upstream {upstream} did not answer in time",
        SameWithKey => "send the same call again; one that changes something, with the same idempotency key: it is not made twice",
        SameLater => "send the same call again later",
        OperatorMends => "no argument helps: the operator has to correct the configuration of the upstream",

        // Credentials.
        CredentialRefused { upstream, status } => "the upstream {upstream} refused the gateway's credential with status {status}",
        NoCallerToken { upstream } => "the upstream {upstream} needs the caller's own token, and the call came without one",
        CallWithToken => "call with a token of the issuer instead of an API key",
        NoUserToken { upstream } => "the user has stored no token for the upstream {upstream}",
        StoreToken => "ask the user to store one with upstream.store_token",
        NotAToken => "this is not a token",
        NoToken { upstream } => "no token for the upstream {upstream} could be had from its issuer; nothing was sent",
        TokenRefused { upstream, status } => "the issuer of the upstream {upstream} refused a token with status {status}; nothing was sent",

        // The answer.
        Answered { upstream, status } => "the upstream {upstream} answered with status {status}",
        TooLarge { upstream, most } => "the answer of the upstream {upstream} has more than {most} bytes",
        AskForLess => "ask for less: a narrower search, a smaller page",
        NotJson { upstream } => "the answer of the upstream {upstream} is not JSON",
        NoData { upstream, pointer } => "the answer of the upstream {upstream} has nothing at {pointer:?}",
        FilterFailed { why } => "the filter does not fit the answer: {why}",
        CorrectFilter => "correct the filter, or leave it out",
        NotAsDeclared { upstream, why } => "the answer of the upstream {upstream} is not as declared: {why}",
        MorePages { pages } => "there is more: {pages} pages were fetched, which is the bound",
    }
}
