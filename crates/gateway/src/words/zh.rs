//! The gateway's messages in Chinese.

countersign::contract::translation! {
    super::Say {
        // Credentials and the policy.
        CredentialMissing => "需要凭证",
        SendCredential => "请以 `Authorization: Bearer …` 发送 API 密钥或令牌",
        CredentialMalformed => "Authorization 标头中没有凭证",
        SendCredentialOnce => "请以 `Authorization: Bearer …` 发送一次",
        CredentialNotAccepted => "凭证未被接受",
        GetNewCredential => "凭证可能有误、已撤销、已过期或用于其他服务器，请获取新的凭证",
        CredentialUnchecked => "暂时无法校验凭证",
        NoRule => "策略中没有规则提到此工具，请为它添加 [[tools]] 条目",
        AgentDenied => "策略不允许该智能体调用此工具",
        AgentEffect { effects } => "策略只允许该智能体调用效果为 {effects} 的工具",
        WritesNeedUser => "此工具会更改数据，请使用指明用户的凭证",
        RuleDenies { rule } => "策略规则 {rule} 拒绝了此次调用：换用其他参数、时间或调用方可能会被允许",
        RuleFailed { rule } => "策略规则 {rule} 无法对此次调用作出判断，因此调用被拒绝",

        // Calls that do not reach the executor, or do not return from it.
        DidYouMean { name } => "您是否想写 {name}？",
        Overloaded => "网关已满，无法接收更多调用",
        CallerHasItsShare => "该调用方同时进行的请求已达单个调用方的上限",
        WaitThenSame => "请等待 retry_after_ms 毫秒后，重新发送同一调用",
        CallLost => "网关未能完成调用",
        SameLaterWithKey => "请稍后重新发送同一调用；如有 idempotency_key，请保持不变",
        NoSuchTool { name } => "没有工具 {name:?}",
        SearchFirst => "请用 search_tools 查找",
        CallsItself => "call_tool 不能调用自身",
        NameFoundTool => "请填写 search_tools 找到的工具名称",
        SearchOtherwise => "没有工具包含这些词：请换用其他词，或使用领域名称搜索",
        AnswerCut { places, handle } => "结果过长，已被截断：{places}；其余部分请用句柄 {handle:?} 调用 fetch_rest 获取",
        CutItems { path, kept, of } => "{path} 保留 {of} 项中的 {kept} 项",
        CutMembers { path, kept, of } => "{path} 保留 {of} 个成员中的 {kept} 个",
        CutCharacters { path, kept, of } => "{path} 保留 {of} 个字符中的 {kept} 个",
        NoRest => "此句柄下没有剩余的结果",
        HandleAsGiven => "请原样发送上一部分给出的句柄，并使用发起该调用的凭证",
        RestGone => "此结果的其余部分已不再保留",
        CallAgain => "请重新调用",
        WaitThenSameRequest => "请等待 retry_after_ms 毫秒后，重新发送同一请求",
        SameRequestLater => "请稍后重新发送同一请求",

        // Questions to a user over MCP.
        AtMost { amount } => "最高 {amount}",
        Lower => "可以调低；调用将以较低的值执行",
        NarrowElsewhere { pointers, id } => "此表单无法缩减 {pointers}：如需去掉一部分，请不要在此确认，而是通过接口 /v1/approvals/{id} 的 `narrowed` 成员或命令行选项 `--narrow` 答复",
        TwoApprovers => "须由两位不同的批准人同意",
        CannotBeUndone { what } => "无法撤销：{what}",
        WouldAnswer { answer } => "将返回：{answer}",
        Confirm => "确认",
        StateRefused => "requestState 不属于此调用或已过期：请去掉它后重新发送调用",
        MalformedForm => "表单答复中缺少 `confirm`（应为 true 或 false）",
        ConfirmOnce => "是否允许进行一次此调用",
    }
}
