//! The words that name sessions: short, plain, from the sea, none of them a reproach.

/// 42 adjectives.
pub(crate) const ADJECTIVES: [&str; 42] = [
    "amber", "blue", "brave", "brisk", "bright", "calm", "clear", "cool", "coral", "deep", "drifting",
    "fair", "fleet", "foamy", "gentle", "glassy", "golden", "green", "grey", "high", "keen", "lively",
    "long", "low", "mellow", "misty", "northern", "pale", "quiet", "rolling", "salty", "sandy", "silver",
    "slow", "smooth", "southern", "steady", "still", "swift", "tidal", "warm", "wide",
];

/// 54 nouns.
pub(crate) const NOUNS: [&str; 54] = [
    "anchor",
    "atoll",
    "bay",
    "beacon",
    "bell",
    "breeze",
    "brine",
    "buoy",
    "cape",
    "channel",
    "cliff",
    "cod",
    "cove",
    "crab",
    "current",
    "delta",
    "dolphin",
    "dune",
    "eel",
    "ferry",
    "fjord",
    "gull",
    "harbor",
    "heron",
    "inlet",
    "island",
    "keel",
    "kelp",
    "lagoon",
    "lantern",
    "lighthouse",
    "mast",
    "mussel",
    "oar",
    "osprey",
    "otter",
    "oyster",
    "pearl",
    "pelican",
    "pier",
    "puffin",
    "reef",
    "rudder",
    "sail",
    "seal",
    "shell",
    "shoal",
    "shore",
    "sloop",
    "squid",
    "tern",
    "tide",
    "wave",
    "whale",
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn words_are_distinct_and_safe_in_a_file_name() {
        let all: BTreeSet<_> = ADJECTIVES.iter().chain(&NOUNS).collect();
        assert_eq!(all.len(), ADJECTIVES.len() + NOUNS.len());
        for word in all {
            assert!(word.len() <= 12 && word.bytes().all(|b| b.is_ascii_lowercase()), "{word}");
        }
    }
}
