//! The story as a file of its own: one page without script that can be read and printed anywhere.

use askama::Template;

use super::Story;
use super::words::Says;

#[derive(Template)]
#[template(path = "case_file.html")]
struct File<'a> {
    s: &'static Says,
    story: &'a Story,
    /// Links lead nowhere in a file.
    link: &'static str,
}

/// The story as HTML that needs nothing else.
pub fn html(story: &Story) -> Result<String, askama::Error> {
    let file = File {
        s: story.says(),
        story,
        link: "",
    };
    file.render()
}
