//! Refusals: faults of a document as a whole, and faults of one operation.

use crate::manifest::TemplateError;

/// The text is not an OpenAPI document. Nothing of it was imported.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// The document is larger than any known one. Usually the address leads to something else.
    #[error(
        "the document has {bytes} bytes, and at most {} are read",
        super::DOCUMENT_BYTES_MAX
    )]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
    /// The document starts like JSON and is not valid JSON, usually because it is cut off.
    #[error("line {line}: the document is not JSON: {source}")]
    NotJson {
        /// The line, from 1.
        line: usize,
        /// The cause.
        source: serde_json::Error,
    },
    /// The document is not valid YAML. Usually the file is a web page, such as a sign-in form.
    #[error("line {line}: the document is not YAML: {source}")]
    NotYaml {
        /// The line, from 1.
        line: usize,
        /// The cause.
        source: Box<serde_saphyr::Error>,
    },
    /// The document has neither `openapi` nor `swagger` at its root, usually because another file was given.
    #[error(
        "this is not an OpenAPI document: it has neither \"openapi\" nor \"swagger\" at its root"
    )]
    NotOpenApi,
    /// The document's version of OpenAPI is not supported.
    /// Usually it is a draft of the next version, or another kind of document.
    #[error("version {version:?} is not known; 2.0, 3.0 and 3.1 are")]
    Version {
        /// The version in the document.
        version: String,
    },
}

/// The reason for which one operation is refused. The others are not affected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// A reference leads to another file, because the document was not bundled.
    #[error("{reference:?} leads out of the document; bundle the document into one file first")]
    OutsideReference {
        /// The reference.
        reference: String,
    },
    /// A reference names something that the document does not have, usually because of a typing error.
    #[error("{reference:?} names nothing in the document")]
    BrokenReference {
        /// The reference.
        reference: String,
    },
    /// A reference leads to itself. Usually a generator has lost the definition itself.
    #[error("{reference:?} leads to itself")]
    EndlessReference {
        /// The reference.
        reference: String,
    },
    /// The operation is not an object. Usually a key that isn't a method stands beside the methods.
    #[error("the operation is not an object")]
    NotAnOperation,
    /// The body is XML only. Usually the service is an older one, such as SOAP.
    #[error("the body is {media} only; bodies are sent as JSON, forms, parts, text or bytes")]
    XmlBody {
        /// Its media type.
        media: String,
    },
    /// The body has a media type for which this schema cannot be written. Usually it is a format of one vendor.
    #[error("a body of {media} with this schema cannot be written")]
    UnknownBody {
        /// Its media type.
        media: String,
    },
    /// The body is a form and its schema declares no members. Usually the document only says that there is a form.
    #[error("the form {media} declares no members")]
    FormWithoutMembers {
        /// Its media type.
        media: String,
    },
    /// The path cannot be used. Usually a brace is missing, or its parameter is not declared.
    #[error("the path cannot be used: {source}")]
    Path {
        /// The cause.
        source: TemplateError,
    },
    /// A parameter is in a place that no request has. Usually `in` is misspelt.
    #[error("the parameter {name:?} is in {place:?}, which no request has")]
    Place {
        /// Name of the parameter.
        name: String,
        /// Its place.
        place: String,
    },
    /// A header cannot have such a name. Usually it has a space or a colon in it.
    #[error("the required header {name:?} has a name that no header can have")]
    Header {
        /// Its name.
        name: String,
    },
    /// Values are separated by tabs. Only documents of version 2.0 can ask for that, and usually by mistake.
    #[error(
        "the values of {name:?} are separated by tabs (collectionFormat tsv), which is not supported"
    )]
    Tabs {
        /// Name of the parameter.
        name: String,
    },
    /// Two arguments would write the same name into the query, so that the service cannot tell them apart.
    /// Usually they are objects whose members become parameters (`explode`).
    #[error("two arguments write {name:?} into the query: the service could not tell them apart")]
    SameName {
        /// The name.
        name: String,
    },
    /// The schema of the arguments cannot be checked.
    /// Usually it uses a keyword, a pattern or a reference that the binder does not support.
    #[error("the schema of the arguments cannot be checked at {path:?}: {message}")]
    Schema {
        /// JSON pointer into the schema of the arguments.
        path: String,
        /// The mistake there.
        message: String,
    },
    /// The arguments have more parts than a tool may have, even with everything optional left out.
    /// Usually it is a whole resource with all its nested objects.
    #[error("the arguments have more than {most} parts even with everything optional left out")]
    TooLarge {
        /// The most.
        most: usize,
    },
    /// The operation has a server of its own, and the document has more servers than one file of upstreams should have.
    /// Usually a generator has written the server of each tenant.
    #[error("it has a server of its own, and the document has more than {most} servers")]
    Servers {
        /// The most.
        most: usize,
    },
    /// The name of the operation says that it takes money. Usually it captures or confirms a payment.
    #[error(
        "its name {name:?} says that it takes a payment, which no agent may do; a person pays, or declare a tool by hand"
    )]
    Payment {
        /// The name that it would have.
        name: String,
    },
    /// The entry is not accepted for another reason. Usually two operations of the document contradict each other.
    #[error("{at}: {message}")]
    Entry {
        /// Key of the entry.
        at: String,
        /// The mistake there.
        message: String,
    },
}

impl Reason {
    /// A short name of the kind of reason, to count by.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::OutsideReference { .. } => "reference out of the document",
            Self::BrokenReference { .. } => "reference to nothing",
            Self::EndlessReference { .. } => "reference to itself",
            Self::NotAnOperation => "no operation",
            Self::XmlBody { .. } => "XML body",
            Self::UnknownBody { .. } => "unknown body",
            Self::FormWithoutMembers { .. } => "form without members",
            Self::Path { .. } => "path",
            Self::Place { .. } => "place of a parameter",
            Self::Header { .. } => "name of a header",
            Self::Tabs { .. } => "tab-separated values",
            Self::SameName { .. } => "one name twice",
            Self::Schema { .. } => "schema",
            Self::TooLarge { .. } => "too large",
            Self::Servers { .. } => "too many servers",
            Self::Payment { .. } => "takes a payment",
            Self::Entry { .. } => "entry",
        }
    }
}
