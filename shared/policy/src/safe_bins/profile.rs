//! A profile that is ready for use: which flags a program has and what each takes.

use super::{CustomProfile, table::BuiltIn};

/// What a flag takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    /// Nothing.
    Nothing,
    /// A value, attached or as the next argument.
    Value,
    /// A value that must be a number where it is the next argument.
    Count,
    /// A value that must be a number, with a sign and a unit at most.
    Size,
    /// A value that must be attached.
    Attached,
    /// It is not allowed.
    Denied,
    /// The program may know it, the profile does not accept it.
    Unknown,
}

/// The rules for the arguments of one program.
#[derive(Debug)]
pub(super) struct Profile {
    /// Fewest positional arguments.
    pub(super) min_positional: usize,
    /// Most positional arguments; none: any number.
    pub(super) max_positional: Option<usize>,
    /// Flags of one letter, without the dash.
    short: Vec<(char, Takes)>,
    /// Long flags, without the dashes.
    long: Vec<(String, Takes)>,
    /// Arguments that are refused as they are.
    denied_words: &'static str,
    /// `long` holds all that the program has, so that what is short for one of them is known.
    complete: bool,
}

impl Profile {
    pub(super) fn built_in(data: &BuiltIn) -> Self {
        let mut profile = Self {
            min_positional: data.min_positional,
            max_positional: Some(data.max_positional),
            short: Vec::new(),
            long: Vec::new(),
            denied_words: data.denied_words,
            complete: true,
        };
        let lists = [
            (data.denied, Takes::Denied),
            (data.values, Takes::Value),
            (data.counts, Takes::Count),
            (data.sizes, Takes::Size),
            (data.attached, Takes::Attached),
            (data.switches, Takes::Nothing),
            (data.others, Takes::Unknown),
        ];
        for (flags, takes) in lists {
            for flag in flags.split_ascii_whitespace() {
                profile.add(flag, takes);
            }
        }
        profile
    }

    /// The profile, and the flags in it that are none.
    pub(super) fn custom(data: &CustomProfile) -> (Self, Vec<String>) {
        let min_positional = data.min_positional.unwrap_or(0);
        let mut profile = Self {
            min_positional,
            max_positional: data.max_positional.map(|max| max.max(min_positional)),
            short: Vec::new(),
            long: Vec::new(),
            denied_words: "",
            complete: false,
        };
        let mut malformed = Vec::new();
        // The denied ones first: the first meaning of a flag stays.
        let lists = [(&data.denied_flags, Takes::Denied), (&data.allowed_value_flags, Takes::Value)];
        for (flags, takes) in lists {
            for flag in flags {
                if !profile.add(flag, takes) {
                    malformed.push(flag.clone());
                }
            }
        }
        (profile, malformed)
    }

    /// Adds a flag that is not there yet. False where the text is no flag.
    fn add(&mut self, flag: &str, takes: Takes) -> bool {
        if let Some(name) = flag.strip_prefix("--") {
            if name.is_empty() || name.starts_with('-') || name.contains(['=', ' ']) {
                return false;
            }
            if !self.long.iter().any(|(known, _)| known == name) {
                self.long.push((name.to_owned(), takes));
            }
            return true;
        }
        let mut letters = flag.strip_prefix('-').unwrap_or_default().chars();
        let (Some(letter), None) = (letters.next(), letters.next()) else { return false };
        if self.short(letter) == Takes::Unknown {
            self.short.push((letter, takes));
        }
        true
    }

    /// Whether an argument is refused as it is.
    pub(super) fn denies(&self, word: &str) -> bool {
        self.denied_words.split_ascii_whitespace().any(|denied| denied == word)
    }

    /// What a flag of one letter takes.
    pub(super) fn short(&self, letter: char) -> Takes {
        let found = self.short.iter().find(|(known, _)| *known == letter);
        found.map_or(Takes::Unknown, |(_, takes)| *takes)
    }

    /// What a long flag takes. The beginning of a name will do where no other flag of the program begins so, denied ones
    /// included; a name that is there in full is never short for another.
    pub(super) fn long(&self, name: &str) -> Takes {
        if let Some((_, takes)) = self.long.iter().find(|(known, _)| known == name) {
            return *takes;
        }
        if name.is_empty() || !self.complete {
            return Takes::Unknown;
        }
        let mut matching = self.long.iter().filter(|(known, _)| known.starts_with(name));
        match (matching.next(), matching.next()) {
            (Some((_, takes)), None) => *takes,
            _ => Takes::Unknown,
        }
    }
}
