//! Messages of upstream tools, in English.

countersign_contract::messages! {
    /// A message or a hint of a reply.
    pub(crate) enum Say {
        // Arguments.
        HiddenArgument { argument } => "the argument {argument:?} is set by the operator and cannot be sent",
        OwnedName { argument, name } => "the argument {argument:?} would send {name:?}, which is set by the operator and cannot be sent",
        NotAnObject { argument, name } => "the value at {argument:?} has to be an object, because the operator sets {name:?} in it",
        LeaveOut { name } => "leave {name:?} out, and send the call again",
        NotInPath { argument } => "the argument {argument:?} is part of the path: it cannot be missing or empty, or have a segment \".\" or \"..\"",
        NotInHeader { argument } => "the argument {argument:?} is sent as a header and cannot have line breaks, control characters or spaces around it",
        NotBase64 { argument } => "the argument {argument:?} is not base64",
        NotAFilter { why } => "the filter cannot be used: {why}",
        CorrectArguments => "correct the arguments as the upstream says in details",

        // The way to the upstream.
        Unreachable { upstream } => "the upstream {upstream} could not be reached; nothing was sent",
        NotDeclared { upstream } => "the upstream {upstream} is at an address that its configuration does not allow; nothing was sent",
        BreakerOpen { upstream } => "the upstream {upstream} failed several times and is paused for a while; nothing was sent",
        NoSlot { upstream } => "too many requests to the upstream {upstream} are in progress; nothing was sent",
        Unwritable { upstream } => "the request to the upstream {upstream} could not be written; nothing was sent",
        Redirected { upstream } => "the upstream {upstream} answered with a redirect to another address, which is not followed",
        Lost { upstream } => "the connection to the upstream {upstream} was lost before its answer was complete",
        Late { upstream } => "the upstream {upstream} did not answer in time",
        SameWithKey => "the effect may have happened. Send the same call again with the same idempotency key (if any): it does not run twice, and returns the outcome when it is known",
        SameLater => "send the same call again later",
        OperatorMends => "no argument helps: the operator has to correct the configuration of the upstream",

        // Credentials.
        CredentialRefused { upstream, status } => "the upstream {upstream} refused the gateway's credential with status {status}",
        UserTokenRefused { upstream, status } => "the upstream {upstream} refused the user's token with status {status}",
        NoCallerToken { upstream } => "the upstream {upstream} needs the caller's own token, and the call came without one",
        CallWithToken => "call with a token of the issuer instead of an API key",
        NoUserToken { upstream } => "the user has not stored a token for the upstream {upstream}",
        StoreToken => "ask the user to store one with upstream.store_token",
        NotByAgent => "a token is stored by its user, not by an agent",
        NotAToken => "this is not a valid token",
        NoToken { upstream } => "the issuer of the upstream {upstream} gave no token; nothing was sent",
        TokenRefused { upstream, status } => "the issuer of the upstream {upstream} refused a token with status {status}; nothing was sent",

        // The answer.
        Answered { upstream, status } => "the upstream {upstream} answered with status {status}",
        TooLarge { upstream, most } => "the answer of the upstream {upstream} is too large: more than {most} bytes",
        AskForLess => "ask for less: a narrower search, a smaller page",
        Garbled { upstream } => "the answer of the upstream {upstream} cannot be decompressed",
        DamagedText { upstream } => "bytes of the answer of the upstream {upstream} that are not valid in its charset are replaced",
        NotJson { upstream } => "the answer of the upstream {upstream} is not valid JSON",
        NoData { upstream, pointer } => "the answer of the upstream {upstream} has nothing at {pointer:?}",
        FilterFailed { why } => "the filter does not fit the answer: {why}",
        CorrectFilter => "correct the filter, or leave it out",
        NotAsDeclared { upstream, why } => "the answer of the upstream {upstream} is not as declared: {why}",
        NotChecked { upstream, why } => "the answer of the upstream {upstream} was not checked against its declared schema: {why}",
        LargeIntegers { upstream } => "integers in the answer of the upstream {upstream} that are too large for a number are written as strings",
        Rounded { upstream } => "numbers of the answer of the upstream {upstream} have more digits than a double keeps, and are rounded",
        MorePages { pages } => "there are more results: the limit of {pages} pages was reached",
        PagesElsewhere { pages } => "there are more results: after {pages} pages the list continues at another address, which is not followed",
        PagesRepeat { pages } => "there may be more results: after {pages} pages the service named a page again that it had given already",
        ToolFailed { upstream } => "the tool of the upstream {upstream} answered with an error; details quotes it",
        ProtocolError { upstream, code } => "the upstream {upstream} answered with the protocol error {code}",
        NotAnAnswer { upstream, why } => "the answer of the upstream {upstream} cannot be read: {why}",
        BlocksLeftOut { upstream } => "images, links and other blocks beside the structured answer of the upstream {upstream} are left out, because the answer is not an object",
        TooManyDigits { tool, digits } => "the number {digits} cannot be sent to the tool {tool}: its protocol would lose digits",
        AsksUser { upstream } => "the upstream {upstream} wants to ask the user a question, but this caller cannot show one; nothing was done",

        // Definitions.
        Quarantined { tool, upstream } => "the definition of {tool} has changed at the upstream {upstream} and waits for approval; nothing was sent",
        Unlisted { tool, upstream } => "the upstream {upstream} no longer has the tool {tool}; nothing was sent",
        Approve { upstream } => "no argument helps: an operator has to review what changed at the upstream {upstream}, and approve it",
    }
}
