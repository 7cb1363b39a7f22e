//! What both ends of a connection share: dialling a gateway, the writer that
//! sends control before bulk, the credit window of a reader, and back-off.
//!
//! It knows frames only as a type parameter and nothing of nodes or tools.

pub mod backoff;
pub mod credit;
pub mod dial;
pub mod outbox;
pub mod unix;

pub use backoff::Backoff;
pub use credit::CreditWindow;
pub use dial::{DialError, Dialled};
pub use outbox::{Closed, Outbox, OutboxStream};
