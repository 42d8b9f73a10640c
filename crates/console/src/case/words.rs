//! The words of a case, one table a language. They are apart from the console's words because the command and the file for a
//! dispute say them too.

use countersign::contract::Language;

macro_rules! says {
    ($($key:ident: $english:literal, $chinese:literal;)*) => {
        /// The words of one language.
        #[derive(Debug)]
        pub(crate) struct Says {
            pub(crate) language: Language,
            $(pub(crate) $key: &'static str,)*
        }

        static ENGLISH: Says = Says { language: Language::English, $($key: $english,)* };
        static CHINESE: Says = Says { language: Language::Chinese, $($key: $chinese,)* };

        #[cfg(test)]
        const ALL: &[(&str, &str, &str)] = &[$((stringify!($key), $english, $chinese)),*];
    };
}

/// The words of a language.
pub(crate) const fn of(language: Language) -> &'static Says {
    match language {
        Language::English => &ENGLISH,
        Language::Chinese => &CHINESE,
    }
}

says! {
    tag: "en", "zh";
    moment: "%-d %b %Y, %H:%M:%S UTC", "%Y-%m-%d %H:%M:%S UTC";
    title: "Case {}", "案卷 {}";
    what: "What was asked, quoted, shown and confirmed, in the order in which it happened. Every step is a record of a signed log.",
        "按发生的先后列出：请求了什么、报价多少、向用户展示并由其确认了什么。每一步都是已签名日志中的一条记录。";
    facts: "At a glance", "概要";
    timeline: "What happened", "经过";
    rules: "Rules that were applied", "所适用的规则";
    rules_note: "A version is the SHA-256 of the file with the rules; the date is its label.", "版本是规则文件的 SHA-256；日期是其标签。";
    rule: "Rules", "规则";
    rule_label: "Version of", "版本日期";
    rule_version: "SHA-256 of the file", "文件的 SHA-256";
    no_rules: "No rules were applied.", "没有适用任何规则。";
    looks: "Who looked at sealed content", "谁查看过密封内容";
    no_looks: "No person has opened sealed content of this case.", "没有人打开过本案卷的密封内容。";
    look_open: "opened one record", "打开了一条记录";
    look_export: "opened records, to read or to export them", "为查看或导出打开了记录";
    look_replay: "computed a call again", "重新计算了一次调用";
    shown: "What the person was shown", "向用户展示的内容";
    question: "The question (no proof that the user saw it on a screen)", "提出的问题；未证明其显示在屏幕上";
    irreversible: "Cannot be undone", "不可撤销";
    details: "All values", "全部数值";
    sealed: "The content is sealed.", "内容已密封。";
    by: "By", "操作者";
    asked: "Asked", "请求";
    answered: "Answered", "答复";
    to_confirm: "To confirm", "需确认";
    condition: "Condition", "条件";
    yes: "yes", "是";
    no: "no", "否";
    more_lines: "{} more values are in the bundle", "其余 {} 项见证据包";
    called: "Call of the tool {tool}", "调用工具 {tool}";
    dry_run: "A trial only: nothing was changed.", "仅试运行，没有任何更改。";
    waits: "It waited for the user's confirmation.", "等待用户确认。";
    refused: "It was not done: {code}.", "未执行：{code}。";
    event_asked: "The user was asked to confirm", "请用户确认";
    event_confirmed: "The first of two people confirmed", "两人中的第一人已确认";
    event_approved: "The question was answered: yes", "已答复：同意";
    event_denied: "The question was answered: no", "已答复：拒绝";
    event_used: "The confirmation was used", "确认已被使用";
    event_refused: "An attempt to answer was refused", "一次答复被拒绝";
    event_other: "The question was closed", "询问已关闭";
    looked: "A person opened sealed content", "有人打开了密封内容";
    erased: "The user was erased", "用户数据被删除";
    config: "The operator changed something", "运营方做了变更";
    intent: "{tool} was about to change something elsewhere", "{tool} 即将在别处产生变更";
    resolved: "An operator settled the call of {tool}", "运营方说明了 {tool} 的结果";
    checkpoint: "Another server process started to sign the log", "另一个服务器进程开始签署日志";
    the_user: "the user", "用户本人";
    the_user_named: "the user {}", "用户 {}";
    a_person: "the person {}", "人员 {}";
    an_agent: "the agent {}", "代理 {}";
    a_program: "the program {}", "程序 {}";
    an_operator: "the operator {}", "操作员 {}";
    fact_about: "About", "关于";
    fact_user: "User", "用户";
    fact_time: "Time", "时间";
    fact_total: "Total", "总额";
    fact_yes: "Confirmed by", "确认人";
    fact_erased: "User erased by", "用户数据删除人";
    fact_no: "Refused by", "拒绝人";
    fact_proof: "Proof", "证明";
    proof_all: "{count} records are in the signed log of {size} records", "{count} 条记录在共 {size} 条记录的已签名日志中";
    proof_signed: "Record {} of the signed log", "已签名日志的第 {} 条记录";
    proof_waiting: "Waits for the next signature", "等待下一次签名";
    proof_wrong: "WRONG: the signed log has another record here", "错误：已签名的日志在此处是另一条记录";
    note_tampered: "A record is not the one that the signed log has. Do not rely on this case; tell the operator.",
        "有一条记录与已签名的日志不符。请勿采信本案卷，并告知运营方。";
    note_sealed: "Amounts, items and texts are sealed. A person who may open them gives a reason, which is recorded.",
        "金额、商品和文字已密封。有权打开的人须说明理由，理由会被记录。";
    note_waiting: "Some records wait for the next signature of the log; ask again in a second.", "部分记录在等待日志的下一次签名；请稍后再试。";
    note_erased: "The user was erased: what was asked, answered, shown and confirmed can no longer be read, and steps that only named the order, such as questions and the payment, may be missing. The records below still prove that they happened, and when.", "该用户的数据已被删除：询问、答复、展示和确认的内容已无法读取，仅以订单号关联的步骤（如询问和付款）可能缺失。下列记录仍能证明其发生及时间。";
    note_cut: "There were more records than are looked through; some may be missing here.", "记录过多，未能全部检查；部分记录可能未列出。";
    file_note: "This page is for reading. The proof is bundle.json: open verify.html in a browser and drop bundle.json on it.",
        "本页仅供阅读。证明是 bundle.json：请在浏览器中打开 verify.html，并把 bundle.json 拖入。";
    open_note: "Opening needs the right to do so and a reason. Who opened what, and why, is recorded before anything is shown.",
        "打开需要相应权限并说明理由。谁在何时因何打开，会先被记录，然后才显示内容。";
    open: "Open and show", "打开并显示";
    zip_opened: "ZIP with content", "下载 ZIP（含内容）";
    zip_sealed: "ZIP without content", "下载 ZIP（不含内容）";
    zip_note: "One file for a bank, a court or the buyer: this page, the evidence, and a page that verifies it without a network.",
        "一个文件，可交给银行、法院或买家：本页、证据，以及无需联网即可核验的页面。";
    print: "Print", "打印";
    steps_shown: "Steps {from} to {to} of {}.", "第 {from} 至 {to} 步，共 {} 步。";
    first_steps: "First steps", "最前的步骤";
    later_steps: "Later steps", "后面的步骤";
    fold_note: "Not all values fit on this page. “All values” and “Later steps” open the case again, which is recorded. The ZIP has everything.",
        "本页放不下全部数值。“全部数值”和“后面的步骤”会再次打开案卷，并被记录。ZIP 包含全部内容。";
    values_in_zip: "All values of this step are in the ZIP.", "本步骤的全部数值见 ZIP。";
    more_looks: "{} earlier accesses are not listed here; the log has them.", "此前的 {} 次查看未在此列出；日志中均有记录。";
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both languages say everything, each in its own words and with the same places to fill in.
    #[test]
    fn both_languages_say_everything() {
        assert!(ALL.len() > 60);
        for (key, english, chinese) in ALL {
            assert!(!english.is_empty() && !chinese.is_empty(), "{key}");
            assert!(english != chinese, "{key}");
            let is_code = matches!(*key, "tag" | "moment");
            assert!(is_code || !chinese.is_ascii(), "{key}");
            for place in ["{}", "{tool}", "{code}", "{count}", "{size}"] {
                assert_eq!(
                    english.contains(place),
                    chinese.contains(place),
                    "{key} {place}"
                );
            }
        }
        assert_eq!(of(Language::Chinese).tag, "zh");
    }
}
