//! The pages in `tests/cmd/` are the tests of the command: what they show is what happens.

#[test]
fn pages_show_what_the_command_does() {
    trycmd::TestCases::new().case("tests/cmd/*.md").run();
}
