//! An append-only log whose records are chained by hash.
