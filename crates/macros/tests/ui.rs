//! What a wrong declaration tells its author: `ui/*.rs` must not compile, `ui/*.stderr` is the answer.

#[test]
fn wrong_declarations_say_what_to_do() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
