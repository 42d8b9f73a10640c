//! Summaries of the error codes in the reader's language. The English ones are those of the codes themselves.

use countersign::contract::{ErrorCode, Language};

/// The summary of a code. A new code does not compile without one.
pub(crate) const fn summary(code: ErrorCode, language: Language) -> &'static str {
    match language {
        Language::English => code.summary(),
        Language::Chinese => chinese(code),
    }
}

const fn chinese(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::InvalidArgument => "参数缺失、格式有误、类型不符或超出范围。",
        ErrorCode::Unauthorized => "没有凭证，或凭证无法验证。",
        ErrorCode::Forbidden => "已知调用方，但不允许此操作。",
        ErrorCode::NotFound => "工具或参数所指的对象不存在。",
        ErrorCode::Conflict => {
            "当前状态、幂等键或版本不允许此操作；`details.reason` 说明是哪一种。"
        }
        ErrorCode::RateLimited => "调用限额或预算已用尽。",
        ErrorCode::Timeout => "在截止时间之前没有得到应答。",
        ErrorCode::UpstreamError => "调用背后的环节失败：上游、工具或网关（`details.source`）。",
        ErrorCode::NeedsUserConfirmation => "须先由用户确认。",
        ErrorCode::ComplianceBlocked => "规则不允许该商品、目的地或人员进行此操作。",
        ErrorCode::PriceChanged => "价格已不是此次调用所依据的价格。",
        ErrorCode::OutOfStock => "该数量的商品无货。",
        ErrorCode::AddressInvalid => "按所给地址无法送达；`details.field` 指明有误的部分。",
    }
}
