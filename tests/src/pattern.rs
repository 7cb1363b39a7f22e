//! Output whose every byte says where it belongs.

/// `len` bytes of numbered lines, 16 bytes each: a lost, repeated or moved
/// piece shows as a jump in the numbers.
pub fn pattern(len: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len + 16);
    let mut line = *b"000000000000000\n";
    while bytes.len() < len {
        bytes.extend_from_slice(&line);
        count_up(&mut line[..15]);
    }
    bytes.truncate(len);
    bytes
}

/// The next hexadecimal number, in place: patterns of many megabytes must not
/// take seconds to make.
fn count_up(digits: &mut [u8]) {
    for digit in digits.iter_mut().rev() {
        *digit = match *digit {
            b'9' => b'a',
            b'f' => b'0',
            other => other + 1,
        };
        if *digit != b'0' {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_numbered_and_cut() {
        assert_eq!(pattern(20), b"000000000000000\n0000");
        assert_eq!(pattern(0), b"");
        let lines = String::from_utf8(pattern(16 * 300)).unwrap();
        for (number, line) in lines.lines().enumerate() {
            assert_eq!(line, format!("{number:015x}"));
        }
    }
}
