//! `$'…'`, whose escapes bash decodes.

use super::{Lexer, RawWord};
use crate::shell::{Label, Unreadable};

impl Lexer<'_> {
    /// Reads `$'…'` into the word. Only escapes that stand for the same character in every version of bash are
    /// decoded; NUL (which would cut the word) and bytes that are no UTF-8 are refused.
    pub(super) fn ansi_c_quoted(&mut self, word: &mut RawWord) -> Result<(), Unreadable> {
        let opening = self.refused(Label::SyntaxError);
        word.quoted = true;
        self.at += 2;
        let mut bytes = Vec::new();
        loop {
            bytes.extend_from_slice(self.skip(|byte| !matches!(byte, b'\'' | b'\\')).as_bytes());
            match self.peek(0).ok_or(opening)? {
                b'\\' => self.ansi_c_escape(&mut bytes)?,
                _ => break,
            }
        }
        self.at += 1;
        word.text.push_str(&String::from_utf8(bytes).map_err(|_| opening)?);
        Ok(())
    }

    fn ansi_c_escape(&mut self, bytes: &mut Vec<u8>) -> Result<(), Unreadable> {
        if self.newline_at(1) {
            return Err(self.refused(Label::LineContinuation));
        }
        let opening = self.refused(Label::SyntaxError);
        self.at += 1;
        let byte = match self.peek(0).ok_or(opening)? {
            b'0'..=b'7' => {
                let value = self.digits(8, 3).and_then(|value| u8::try_from(value).ok());
                bytes.push(value.filter(|&byte| byte != 0).ok_or(opening)?);
                return Ok(());
            }
            b'x' => {
                self.at += 1;
                let value = self.digits(16, 2).and_then(|value| u8::try_from(value).ok());
                bytes.push(value.filter(|&byte| byte != 0).ok_or(opening)?);
                return Ok(());
            }
            size @ (b'u' | b'U') => {
                self.at += 1;
                let value = self.digits(16, if size == b'u' { 4 } else { 8 }).and_then(char::from_u32);
                let character = value.filter(|&character| character != '\0').ok_or(opening)?;
                bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                return Ok(());
            }
            b'a' => 0x07,
            b'b' => 0x08,
            b'e' | b'E' => 0x1b,
            b'f' => 0x0c,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'v' => 0x0b,
            same @ (b'\\' | b'\'' | b'"' | b'?') => same,
            _ => return Err(opening),
        };
        bytes.push(byte);
        self.at += 1;
        Ok(())
    }

    /// The number that the next one to `most` digits make.
    fn digits(&mut self, radix: u32, most: usize) -> Option<u32> {
        let mut value = None;
        for _ in 0..most {
            let Some(digit) = self.peek(0).and_then(|byte| char::from(byte).to_digit(radix)) else { break };
            value = Some(value.unwrap_or(0_u32).wrapping_mul(radix) + digit);
            self.at += 1;
        }
        value
    }
}
