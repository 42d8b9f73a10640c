//! Compiler errors for wrong declarations: `ui/*.rs` must not compile, `ui/*.stderr` is the expected output.

#[test]
fn wrong_declarations_say_what_to_do() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
