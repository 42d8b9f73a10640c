//! Messages of upstream tools, in Chinese.

use super::en::Say;

countersign_contract::translation! {
    Say {
        // Arguments.
        HiddenArgument { argument } => "参数 {argument:?} 由运维人员设定，不能发送",
        OwnedName { argument, name } => "参数 {argument:?} 会发送 {name:?}，而它由运维人员设定，不能发送",
        NotAnObject { argument, name } => "{argument:?} 处的值必须是对象，因为运维人员在其中设定 {name:?}",
        LeaveOut { name } => "去掉 {name:?} 后再次调用",
        NotInPath { argument } => "参数 {argument:?} 是路径的一部分：不能缺少或为空，也不能含有 \".\" 或 \"..\" 这样的路径段",
        NotInHeader { argument } => "参数 {argument:?} 作为请求头发送，不能有换行、控制字符，首尾也不能有空格",
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
        SameWithKey => "该调用可能已经生效。请再次发送同一调用，如有幂等键请保持不变：不会执行两次，结果确定后会答复该结果",
        SameLater => "请稍后再发送同一调用",
        OperatorMends => "更改参数没有用：需要运维人员更正该上游的配置",

        // Credentials.
        CredentialRefused { upstream, status } => "上游 {upstream} 以状态 {status} 拒绝了网关的凭据",
        UserTokenRefused { upstream, status } => "上游 {upstream} 以状态 {status} 拒绝了用户的令牌",
        NoCallerToken { upstream } => "上游 {upstream} 需要调用者自己的令牌，而此调用没有带令牌",
        CallWithToken => "请用签发方的令牌调用，不要用 API 密钥",
        NoUserToken { upstream } => "用户没有为上游 {upstream} 保存令牌",
        StoreToken => "请用户通过 upstream.store_token 保存一个",
        NotByAgent => "令牌只能由其用户本人保存，不能由代理保存",
        NotAToken => "这不是令牌",
        NoToken { upstream } => "无法从签发方取得上游 {upstream} 的令牌；没有发送任何内容",
        TokenRefused { upstream, status } => "上游 {upstream} 的签发方以状态 {status} 拒绝签发令牌；没有发送任何内容",

        // The answer.
        Answered { upstream, status } => "上游 {upstream} 以状态 {status} 回答",
        TooLarge { upstream, most } => "上游 {upstream} 的回答超过 {most} 字节",
        AskForLess => "请求少一些：更窄的查询，更小的页",
        Garbled { upstream } => "上游 {upstream} 的回答无法解压",
        DamagedText { upstream } => "上游 {upstream} 的回答中有些字节在其字符集中无效，已被替换",
        NotJson { upstream } => "上游 {upstream} 的回答不是 JSON",
        NoData { upstream, pointer } => "上游 {upstream} 的回答在 {pointer:?} 处没有内容",
        FilterFailed { why } => "过滤器不适合该回答：{why}",
        CorrectFilter => "请更正过滤器，或不使用它",
        NotAsDeclared { upstream, why } => "上游 {upstream} 的回答与声明不符：{why}",
        NotChecked { upstream, why } => "上游 {upstream} 的回答没有按其声明的模式检查：{why}",
        LargeIntegers { upstream } => "上游 {upstream} 的应答中超出双精度范围的整数已写成文本",
        Rounded { upstream } => "上游 {upstream} 的回答中有些数字的位数超出双精度浮点数，已被舍入",
        MorePages { pages } => "还有更多：已取 {pages} 页，达到上限",
        PagesElsewhere { pages } => "还有更多：获取 {pages} 页之后，列表在另一个地址继续，该地址不会被访问",
        PagesRepeat { pages } => "可能还有更多：获取 {pages} 页之后，服务再次指向已经给出的一页",
        ToolFailed { upstream } => "上游 {upstream} 的工具以错误回答，details 中有引用",
        ProtocolError { upstream, code } => "上游 {upstream} 以协议错误 {code} 回答",
        NotAnAnswer { upstream, why } => "上游 {upstream} 的回答无法读取：{why}",
        BlocksLeftOut { upstream } => "上游 {upstream} 的结构化回答不是对象，因此其旁边的图片、链接等内容块被略去",
        TooManyDigits { tool, digits } => "无法把数字 {digits} 发送给工具 {tool}：其协议会丢失数位",
        AsksUser { upstream } => "上游 {upstream} 想询问用户，而此调用方无法被询问；没有执行任何操作",

        // Definitions.
        Quarantined { tool, upstream } => "{tool} 的定义在上游 {upstream} 处已改变，尚未有人批准；没有发送任何内容",
        Unlisted { tool, upstream } => "上游 {upstream} 不再有工具 {tool}；没有发送任何内容",
        Approve { upstream } => "更改参数没有用：需要运维人员查看上游 {upstream} 的变化并批准",
    }
}
