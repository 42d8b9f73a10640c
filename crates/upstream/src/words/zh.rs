//! What tools of upstreams say, in Chinese.

use super::en::Say;

countersign_contract::translation! {
    Say {
        // Arguments.
        HiddenArgument { argument } => "参数 {argument:?} 由运维人员设定，不能发送",
        NotInPath { argument } => "参数 {argument:?} 是路径的一部分：不能缺少、为空，也不能是 \".\" 或 \"..\"",
        NotInHeader { argument } => "参数 {argument:?} 作为请求头发送，不能有换行或控制字符",
        NotBase64 { argument } => "参数 {argument:?} 不是 base64",
        NotAFilter { why } => "过滤器无法使用：{why}",
        CorrectArguments => "请按 details 中上游的说明更正参数",

        // The way to the upstream.
        Unreachable { upstream } => "无法连接上游 {upstream}；没有发送任何内容",
        NotDeclared { upstream } => "上游 {upstream} 的地址不在其配置允许的范围内；没有发送任何内容",
        BreakerOpen { upstream } => "上游 {upstream} 多次无法连接，暂时不再调用；没有发送任何内容",
        NoSlot { upstream } => "发往上游 {upstream} 的请求过多；没有发送任何内容",
        Unwritable { upstream } => "发往上游 {upstream} 的请求无法写出；没有发送任何内容",
        Redirected { upstream } => "上游 {upstream} 重定向到别处，未跟随",
        Lost { upstream } => "在回答完整之前，与上游 {upstream} 的连接中断了",
        Late { upstream } => "上游 {upstream} 没有及时回答",
        SameWithKey => "请再次发送同一调用；会改变数据的调用须带同一幂等键：不会执行两次",
        SameLater => "请稍后再发送同一调用",
        OperatorMends => "更改参数没有用：需要运维人员更正该上游的配置",

        // Credentials.
        CredentialRefused { upstream, status } => "上游 {upstream} 以状态 {status} 拒绝了网关的凭据",
        NoCallerToken { upstream } => "上游 {upstream} 需要调用者自己的令牌，而此调用没有带令牌",
        CallWithToken => "请用签发方的令牌调用，不要用 API 密钥",
        NoUserToken { upstream } => "用户没有为上游 {upstream} 保存令牌",
        StoreToken => "请用户通过 upstream.store_token 保存一个",
        NotAToken => "这不是令牌",
        NoToken { upstream } => "无法从签发方取得上游 {upstream} 的令牌；没有发送任何内容",
        TokenRefused { upstream, status } => "上游 {upstream} 的签发方以状态 {status} 拒绝签发令牌；没有发送任何内容",

        // The answer.
        Answered { upstream, status } => "上游 {upstream} 以状态 {status} 回答",
        TooLarge { upstream, most } => "上游 {upstream} 的回答超过 {most} 字节",
        AskForLess => "请求少一些：更窄的查询，更小的页",
        NotJson { upstream } => "上游 {upstream} 的回答不是 JSON",
        NoData { upstream, pointer } => "上游 {upstream} 的回答在 {pointer:?} 处没有内容",
        FilterFailed { why } => "过滤器不适合该回答：{why}",
        CorrectFilter => "请更正过滤器，或不使用它",
        NotAsDeclared { upstream, why } => "上游 {upstream} 的回答与声明不符：{why}",
        MorePages { pages } => "还有更多：已取 {pages} 页，达到上限",
    }
}
