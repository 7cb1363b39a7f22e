//! Real programs in a terminal: driven by the keys of an agent, read by the screen that a person would see. And what
//! goes wrong between programs and terminals (field cases F104, F144 to F161).

mod asking;
mod ends;
mod fullscreen;
mod keys;
mod python;
mod seat;
mod shell;
mod terminal;
mod viewer;
mod work;

use seat::{Seat, missing};
use viewer::Viewer;
