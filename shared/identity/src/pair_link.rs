//! The pairing link: one line that carries everything a new node needs to find the gateway and to know it again.
//!
//! Owns the form and the check of the text. Whether a token is still good is the gateway's business.

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom, SystemRandom};

use crate::error::IdentityError;
use crate::fingerprint::{Fingerprint, ParseFingerprintError};

const SCHEME: &str = "farrun://";
const TOKEN_BYTES: usize = 24;
const MAX_LINK_BYTES: usize = 512;
const MAX_HOST_BYTES: usize = 253;

/// `farrun://HOST:PORT/pair/<token>/<fingerprint>`.
///
/// The token is a secret: whoever has it may ask for a certificate once. `Display` writes it, `Debug` does not.
#[derive(Clone, PartialEq, Eq)]
pub struct PairLink {
    /// Where the gateway listens: `HOST:PORT`, an IPv6 address in brackets.
    pub address: String,
    /// The pin: the key of the gateway's authority.
    pub gateway: Fingerprint,
    /// 24 random bytes in base64url without padding, 32 characters.
    pub token: String,
}

/// What is wrong with a pairing link.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PairLinkError {
    /// Longer than any link that this crate writes.
    #[error("the pairing link has {found} bytes, the limit is {MAX_LINK_BYTES}")]
    TooLong {
        /// Bytes found.
        found: usize,
    },
    /// Another scheme, or none.
    #[error("a pairing link starts with farrun://")]
    Scheme,
    /// Parts are missing, superfluous or in another order.
    #[error("a pairing link has the form farrun://HOST:PORT/pair/TOKEN/FINGERPRINT")]
    Form,
    /// No port, or not a number from 1 to 65535 in plain digits.
    #[error("the address of a pairing link ends with :PORT, a number from 1 to 65535")]
    Port,
    /// Not a host name, an IPv4 address, or an IPv6 address in brackets.
    #[error("the host of a pairing link is a name, an IPv4 address or an IPv6 address in brackets")]
    Host,
    /// Not a token: cut, or changed on the way.
    #[error("the token of a pairing link is 32 characters of base64url; was the link cut?")]
    Token,
    /// Not a fingerprint: cut, or changed on the way.
    #[error("the fingerprint of a pairing link is malformed; was the link cut?")]
    Fingerprint(#[source] ParseFingerprintError),
}

impl PairLink {
    /// A link from its checked parts.
    ///
    /// # Errors
    /// When the address or the token has another form than the fields say.
    pub fn new(address: &str, gateway: Fingerprint, token: &str) -> Result<Self, PairLinkError> {
        check_address(address)?;
        check_token(token)?;
        Ok(Self { address: address.to_owned(), gateway, token: token.to_owned() })
    }

    /// A new secret token from the system's random source.
    ///
    /// # Errors
    /// When that source fails.
    pub fn new_token() -> Result<String, IdentityError> {
        let mut bytes = [0; TOKEN_BYTES];
        SystemRandom::new().fill(&mut bytes).map_err(|_| IdentityError::Random)?;
        Ok(URL_SAFE_NO_PAD.encode(bytes))
    }
}

impl fmt::Display for PairLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}/pair/{}/{}", self.address, self.token, self.gateway)
    }
}

impl fmt::Debug for PairLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PairLink")
            .field("address", &self.address)
            .field("gateway", &self.gateway)
            .finish_non_exhaustive()
    }
}

impl FromStr for PairLink {
    type Err = PairLinkError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() > MAX_LINK_BYTES {
            return Err(PairLinkError::TooLong { found: text.len() });
        }
        let rest = text.strip_prefix(SCHEME).ok_or(PairLinkError::Scheme)?;
        let parts: Vec<&str> = rest.split('/').collect();
        let [address, "pair", token, fingerprint] = parts.as_slice() else {
            return Err(PairLinkError::Form);
        };
        let gateway = fingerprint.parse().map_err(PairLinkError::Fingerprint)?;
        Self::new(address, gateway, token)
    }
}

fn check_address(address: &str) -> Result<(), PairLinkError> {
    let (host, port) = address.rsplit_once(':').ok_or(PairLinkError::Port)?;
    // Digits only: the standard parser also takes a sign.
    let digits = port.bytes().all(|byte| byte.is_ascii_digit()) && !port.starts_with('0');
    if !digits || port.parse::<u16>().is_err() {
        return Err(PairLinkError::Port);
    }
    let good = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(inner) => inner.parse::<Ipv6Addr>().is_ok(),
        None => host.len() <= MAX_HOST_BYTES && host.split('.').all(is_label),
    };
    if good { Ok(()) } else { Err(PairLinkError::Host) }
}

/// One part of a host name. The underscore is no letter of host names, but private networks use it.
fn is_label(label: &str) -> bool {
    (1..=63).contains(&label.len())
        && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
        && !label.starts_with('-')
        && !label.ends_with('-')
}

fn check_token(token: &str) -> Result<(), PairLinkError> {
    match URL_SAFE_NO_PAD.decode(token) {
        Ok(bytes) if bytes.len() == TOKEN_BYTES => Ok(()),
        _ => Err(PairLinkError::Token),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TOKEN: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYX";
    const HEX: &str = "00112233445566778899aabbccddeeff0123456789abcdef0123456789abcdef";

    #[test]
    fn wrong_links_are_refused_with_the_reason() {
        let good = format!("farrun://gw.example:8443/pair/{TOKEN}/{HEX}");
        assert!(good.parse::<PairLink>().is_ok());
        let host = |host: &str| good.replace("gw.example", host);
        let port = |port: &str| good.replace("8443", port);
        for (text, expected) in [
            ("x".repeat(513), PairLinkError::TooLong { found: 513 }),
            (format!(" {good}"), PairLinkError::Scheme),
            (good.replace("farrun", "https"), PairLinkError::Scheme),
            (good.replace("farrun", "FARRUN"), PairLinkError::Scheme),
            (good.replace("/pair/", "/join/"), PairLinkError::Form),
            (good.replace("/pair/", "/"), PairLinkError::Form),
            (format!("{good}/"), PairLinkError::Form),
            (host("").replace(":8443", ""), PairLinkError::Port),
            (port("0"), PairLinkError::Port),
            (port("08443"), PairLinkError::Port),
            (port("65536"), PairLinkError::Port),
            (port("+1"), PairLinkError::Port),
            (port(""), PairLinkError::Port),
            (host(""), PairLinkError::Host),
            (host("a b"), PairLinkError::Host),
            (host("user@gw"), PairLinkError::Host),
            (host("-gw"), PairLinkError::Host),
            (host("gw..example"), PairLinkError::Host),
            (host("::1"), PairLinkError::Host),
            (host("[::1"), PairLinkError::Host),
            (host("[10.0.0.1]"), PairLinkError::Host),
            (host(&"a".repeat(64)), PairLinkError::Host),
            (good.replace(TOKEN, &TOKEN[1..]), PairLinkError::Token),
            (good.replace(TOKEN, &TOKEN.replace('A', "+")), PairLinkError::Token),
            (good.replace(HEX, ""), PairLinkError::Fingerprint(ParseFingerprintError::Length { found: 0 })),
            (format!("{good}\n"), PairLinkError::Fingerprint(ParseFingerprintError::Digit { found: '\n' })),
        ] {
            assert_eq!(text.parse::<PairLink>(), Err(expected), "{text}");
        }
    }

    #[test]
    fn tokens_are_random_and_hidden_from_debug() {
        let (one, two) = (PairLink::new_token().unwrap(), PairLink::new_token().unwrap());
        assert_ne!(one, two);
        let link = PairLink::new("[2001:db8::1]:443", HEX.parse().unwrap(), &one).unwrap();
        assert!(!format!("{link:?}").contains(&one));
        assert_eq!(link.to_string(), format!("farrun://[2001:db8::1]:443/pair/{one}/{HEX}"));
    }

    fn host() -> impl Strategy<Value = String> {
        prop_oneof![
            "[a-z0-9]{1,20}(\\.[a-z0-9]([a-z0-9-]{0,10}[a-z0-9])?){0,3}",
            any::<std::net::Ipv4Addr>().prop_map(|address| address.to_string()),
            any::<Ipv6Addr>().prop_map(|address| format!("[{address}]")),
        ]
    }

    proptest! {
        #[test]
        fn links_round_trip(host in host(), port in 1_u16.., bytes: [u8; 24], pin: [u8; 32]) {
            let token = URL_SAFE_NO_PAD.encode(bytes);
            let link = PairLink::new(&format!("{host}:{port}"), Fingerprint(pin), &token).unwrap();
            prop_assert_eq!(link.to_string().parse(), Ok(link));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "(farrun://)?.{0,80}(/pair/)?.{0,200}") {
            let _ = text.parse::<PairLink>();
        }
    }
}
