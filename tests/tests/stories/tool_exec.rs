//! `exec` as agents call it, with the real programs: parameters, ends, output, windows, what is left behind.

mod arguments;
mod ends;
mod left_behind;
mod output;
mod window;
