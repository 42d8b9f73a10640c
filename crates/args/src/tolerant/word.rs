//! Strings without quotes: words, paths, addresses and colours. Anything that looks like code is not one.

/// Endings of file and host names. In any other `a.b` the point may select a member of an object.
const ENDINGS: [&str; 72] = [
    "ai", "app", "bak", "c", "cfg", "cn", "co", "com", "conf", "cpp", "cs", "css", "csv", "db",
    "de", "dev", "doc", "docx", "edu", "eu", "exe", "fr", "gif", "go", "gov", "gz", "h", "htm",
    "html", "info", "ini", "io", "ipynb", "java", "jp", "jpeg", "jpg", "js", "json", "jsx", "kt",
    "lock", "log", "md", "mp3", "mp4", "net", "org", "pdf", "php", "png", "pptx", "py", "rb", "rs",
    "sh", "sql", "svg", "tar", "toml", "ts", "tsv", "tsx", "txt", "uk", "wav", "webp", "xlsx",
    "xml", "yaml", "yml", "zip",
];

/// Objects of programs: what stands behind their point is a member, whatever it is called.
const OBJECTS: [&str; 10] = [
    "deno.env",
    "globalthis",
    "import.meta",
    "os.environ",
    "process.argv",
    "process.env",
    "self",
    "sys.argv",
    "system.env",
    "this",
];

/// Numbers that JSON does not have, in the spellings of other languages.
const NOT_NUMBERS: [&str; 6] = ["nan", "inf", "infinity", "infinite", "nat", "n/a"];

/// True if a token without quotes can be meant as a string.
pub(super) fn is_text(token: &str) -> bool {
    // JavaScript prints `[object Object]` for an object.
    if token.contains(['\n', '\r']) || is_no_number(token) || token.starts_with("object ") {
        return false;
    }
    if is_address(token) {
        return true;
    }
    if token.contains('\\') {
        return is_windows_path(token)
            && token.chars().all(|c| c == '\\' || is_word(c, "._-: ~+&'"));
    }
    is_words(token) && !selects_a_member(token) && !is_expression(token)
}

/// True for `a if b else c` and `x for x in y`, expressions that are made of words.
fn is_expression(token: &str) -> bool {
    let follows = |first: &str, second: &str| {
        let behind = token.split_once(first).map(|(_, behind)| behind);
        behind.is_some_and(|behind| behind.contains(second))
    };
    follows(" if ", " else ") || follows(" for ", " in ")
}

/// True for `NaN` and similar words, with or without a sign.
fn is_no_number(token: &str) -> bool {
    let unsigned = token.trim_start_matches(['-', '+']);
    NOT_NUMBERS
        .iter()
        .any(|word| unsigned.eq_ignore_ascii_case(word))
}

/// True for an absolute URI without spaces and without characters that must be encoded.
fn is_address(token: &str) -> bool {
    let Some((scheme, rest)) = token.split_once("://") else {
        return false;
    };
    !scheme.is_empty()
        && scheme
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"+.-".contains(&b))
        && !rest.is_empty()
        && rest.chars().all(|c| is_word(c, "._-~:/?#@!&'*+,;=%"))
}

/// True for `C:\…`, `\\server\…` or `.\…`: without quotes a backslash is not an escape, so none is doubled.
fn is_windows_path(token: &str) -> bool {
    let path = match token.as_bytes() {
        [drive, b':', b'\\', ..] if drive.is_ascii_alphabetic() => token.get(2..),
        [b'\\', b'\\', ..] => token.get(2..).filter(|path| path.contains('\\')),
        [b'.', b'\\', ..] | [b'.', b'.', b'\\', ..] => Some(token),
        _ => None,
    };
    path.is_some_and(|path| !path.contains("\\\\"))
}

fn is_word(c: char, punctuation: &str) -> bool {
    c.is_alphanumeric() || punctuation.contains(c) || (!c.is_ascii() && !is_odd(c))
}

/// True for punctuation beyond ASCII that may be structure: full-width forms, quotes and ellipses.
fn is_odd(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || matches!(
            c,
            '\u{2018}'..='\u{201f}' | '\u{2026}' | '«' | '»' | '‹' | '›' | '「'..='』' | '，' | '：'
                | '；' | '｛' | '｝' | '［' | '］' | '（' | '）' | '＂' | '＇' | '＝' | '＜' | '＞' | '\u{fffd}'
        )
}

/// True for words with the punctuation of running text, without operators.
fn is_words(token: &str) -> bool {
    let letters = token.chars().any(char::is_alphabetic);
    let mut before = None;
    let mut rest = token.chars();
    while let Some(c) = rest.next() {
        let after = rest.clone().next();
        let spaced =
            before.is_none_or(char::is_whitespace) && after.is_none_or(char::is_whitespace);
        let fits = match c {
            ' ' | '_' | '.' | ',' | '@' | '#' | '~' | '-' => true,
            // A colon and a space make a member of another object.
            ':' => after.is_some_and(|c| !c.is_whitespace()) && before.is_some(),
            '&' => before != Some('&') && after != Some('&'),
            '/' => !spaced || token == "/",
            '+' => !spaced && (letters || before.is_none()),
            '!' | '?' => {
                before.is_some_and(char::is_alphanumeric)
                    && !after.is_some_and(char::is_alphanumeric)
            }
            '%' => before.is_some_and(|c| c.is_ascii_digit()),
            '\'' => {
                before.is_some_and(char::is_alphanumeric)
                    && after.is_some_and(char::is_alphanumeric)
            }
            c => is_word(c, ""),
        };
        if !fits {
            return false;
        }
        before = Some(c);
    }
    !token.ends_with("...") && !token.starts_with(',') && !token.ends_with(',')
}

/// True for one word that can be the name of a member.
pub(super) fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || matches!(c, '_' | '$'))
        && text
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '_' | '$'))
}

/// True for `process.env.HOME`, `Status.OPEN`, `user.name`: identifiers joined by points that are not the name
/// of a file or a host.
fn selects_a_member(token: &str) -> bool {
    let mut parts = token.split('.');
    let is_name = |part: &str| {
        part.starts_with(|c: char| c.is_alphabetic() || c == '_')
            && part.chars().all(|c| c.is_alphanumeric() || c == '_')
    };
    let Some(last) = token
        .rsplit('.')
        .next()
        .filter(|last| last.len() < token.len())
    else {
        return false;
    };
    parts.all(is_name) && (!ENDINGS.contains(&last) || is_of_an_object(token))
}

/// True for a member of an object that every program of its language has.
fn is_of_an_object(token: &str) -> bool {
    OBJECTS.iter().any(|object| {
        let head = token.get(..object.len());
        head.is_some_and(|head| head.eq_ignore_ascii_case(object))
            && token
                .get(object.len()..)
                .is_some_and(|rest| rest.starts_with('.'))
    })
}

#[cfg(test)]
mod tests {
    use super::is_text;

    /// The endings stay sorted and in lower case, because people look them up too.
    #[test]
    fn endings_are_sorted() {
        assert!(super::ENDINGS.is_sorted());
    }

    #[test]
    fn members_of_objects_are_no_names_of_files() {
        for (token, expected) in [
            ("main.rs", true),
            ("a.tar.gz", true),
            ("www.example.com", true),
            ("v1.2", true),
            ("1.2.3", true),
            ("Dr. No", true),
            ("a.b", false),
            ("self.city", false),
            ("Enum.A.B", false),
            ("process.env.io", false),
            ("this.md", false),
            ("os.environ.app", false),
            ("process.py", true),
            ("selfie.jpg", true),
        ] {
            assert_eq!(is_text(token), expected, "{token}");
        }
    }
}
