//! What the tests of all views share.

use proptest::prelude::*;

use super::*;
use crate::offset::StreamTag;

/// Bytes that make up sequences and characters, whole and torn.
pub(super) fn output() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        4 => "[a-c \\n\\r\\x08\\t]{0,6}".prop_map(String::into_bytes),
        2 => prop::sample::select(vec!["日", "é", "e\u{301}", "👩\u{200d}🚀", "🇫🇷", "🏴\u{e0067}\u{e007f}", "🏴", "\u{e0067}", "\u{202e}", "\u{9b}"])
            .prop_map(|text| text.as_bytes().to_vec()),
        2 => prop::sample::select(vec!["\x1b[31m", "\x1b[", "\x1b]0;t\x07", "\x1b]0;", "\x1b\\", "\x1b", "\x18", "\x1bP", "\x1b(B"])
            .prop_map(|text| text.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..4),
    ];
    prop::collection::vec(part, 0..24).prop_map(|parts| parts.concat())
}

/// The glyphs of one stream.
pub(super) fn glyphs(bytes: &[u8]) -> Vec<Glyph> {
    let (mut cleaner, mut glyphs) = (Cleaner::default(), Vec::new());
    cleaner.push(StreamTag::Stdout, 0, bytes, &mut |glyph| glyphs.push(glyph));
    cleaner.finish(&mut |glyph| glyphs.push(glyph));
    glyphs
}
