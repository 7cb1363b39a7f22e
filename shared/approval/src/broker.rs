//! The life of requests for a person's yes, as a pure state machine (runtime spec §9).
