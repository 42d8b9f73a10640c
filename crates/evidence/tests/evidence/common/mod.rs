//! The sample log that tests and vectors share, and the vectors made from it.

pub(crate) mod cases;
pub(crate) mod recent;
pub(crate) mod recent_cases;
pub(crate) mod sample;
pub(crate) mod vectors;
