//! The documents of the program, in English and Chinese.

/// Each file with its name.
macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../knowledge/", $name)))),*]
    };
}

/// The files, in no particular order.
pub(super) const FILES: &[(&str, &str)] = files![
    "addresses.en.md",
    "addresses.zh.md",
    "agent.en.md",
    "agent.zh.md",
    "batteries.en.md",
    "batteries.zh.md",
    "care.en.md",
    "care.zh.md",
    "customs.en.md",
    "customs.zh.md",
    "duties.en.md",
    "duties.zh.md",
    "evidence.en.md",
    "evidence.zh.md",
    "incoterms.en.md",
    "incoterms.zh.md",
    "orders.en.md",
    "orders.zh.md",
    "payment.en.md",
    "payment.zh.md",
    "privacy.en.md",
    "privacy.zh.md",
    "prohibited.en.md",
    "prohibited.zh.md",
    "returns.en.md",
    "returns.zh.md",
    "shipping.en.md",
    "shipping.zh.md",
    "sizes.en.md",
    "sizes.zh.md",
    "warranty.en.md",
    "warranty.zh.md",
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use super::*;
    use crate::knowledge::Library;

    /// Every file in the folder is part of the program.
    #[test]
    fn every_file_is_named() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/knowledge");
        let found: BTreeSet<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        let named: BTreeSet<String> = FILES.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(found, named);
    }

    /// Every document exists in both languages, and its file name has the language.
    #[test]
    fn every_document_has_its_other_language() {
        let library = Library::embedded().unwrap();
        assert!(library.documents().len() >= 28);
        for document in library.documents() {
            assert_eq!(document.file(), format!("{}.md", document.id));
            let topic = document
                .id
                .strip_suffix(&format!(".{}", document.language))
                .unwrap();
            let other = if document.language == "en" {
                "zh"
            } else {
                "en"
            };
            let other = library.document(&format!("{topic}.{other}")).expect(topic);
            assert_eq!(other.chunks().len(), document.chunks().len(), "{topic}");
            assert_eq!(other.date, document.date);
        }
    }
}
