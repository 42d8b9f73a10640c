//! The pages in `tests/cmd/` are the tests of the commands: what they show is what happens.

#[test]
fn pages_show_what_the_commands_do() {
    trycmd::TestCases::new().case("tests/cmd/*.md").run();
}
