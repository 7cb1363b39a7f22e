//! Names for rules that have none. They tell rules apart; nothing is granted by knowing one.

use std::io;

use policy::ApprovalsDocument;

/// Gives every rule without an id a random one, in the form of a version 4 UUID.
pub(super) fn give(document: &mut ApprovalsDocument) -> io::Result<()> {
    let rules = document.agents.values_mut().flat_map(|agent| &mut agent.allowlist);
    for rule in rules.filter(|rule| rule.id.is_none()) {
        rule.id = Some(random()?);
    }
    Ok(())
}

fn random() -> io::Result<String> {
    let mut bytes = [0; 16];
    let filled = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    if filled != bytes.len() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    // The version (4) and the variant (binary 10) of the standard.
    let bits = u128::from_be_bytes(bytes) & !(0xf << 76) & !(0b11 << 62) | (4 << 76) | (0b10 << 62);
    let hex = format!("{bits:032x}");
    let (mut id, mut rest) = (String::with_capacity(36), hex.as_str());
    for length in [8, 4, 4, 4] {
        let (part, more) = rest.split_at(length);
        id.push_str(part);
        id.push('-');
        rest = more;
    }
    id.push_str(rest);
    Ok(id)
}
