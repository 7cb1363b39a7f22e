//! One interpreter's arguments, option by option.

use super::{
    Unbindable,
    files::shown,
    interpreter::{check_script, option_refused, with},
    shape::no_code,
    syntax::{First, Syntax},
};
use crate::{
    inline_eval::{Input, find_inline_eval},
    resolve::Lookup,
};

/// The words of an interpreter whose options are known.
pub(super) struct Words<'a> {
    pub(super) word: &'a str,
    pub(super) syntax: &'static Syntax,
    pub(super) lookup: Lookup<'a>,
    pub(super) input: Input,
}

/// What was found so far.
#[derive(Default)]
struct Found {
    script: Option<usize>,
    code: bool,
    /// A word that is no option came.
    operand: bool,
    /// It changes its directory.
    moved: bool,
    /// The words from here on are read by nobody.
    over: bool,
}

impl Words<'_> {
    /// The argument that names the file to run. None where the words hold the code, or there is nothing to run.
    pub(super) fn script(&self, args: &[String]) -> Result<Option<usize>, Unbindable> {
        if let [only] = args
            && self.syntax.information.contains(&only.as_str())
        {
            return Ok(None);
        }
        let mut found = Found::default();
        let mut at = 0;
        let mut ended = false;
        while let Some(arg) = args.get(at).filter(|_| !found.over) {
            at += 1;
            if ended || arg == "-" || !arg.starts_with('-') {
                self.operand(&mut found, at - 1, arg)?;
            } else if arg == "--" {
                ended = true;
            } else {
                at += usize::from(self.option(&mut found, at, arg, args.get(at))?);
            }
        }
        if let Some(script) = found.script {
            let file = args.get(script).map(String::as_str).unwrap_or_default();
            check_script(file, self.lookup)?;
            // Then a relative name means another file.
            if found.moved {
                return Err(option_refused(self.word, "-C"));
            }
        } else if !found.code && self.syntax.first != First::Other {
            return Err(no_code(Some(&self.word.to_owned()), self.input));
        }
        Ok(found.script)
    }

    fn operand(&self, found: &mut Found, at: usize, arg: &str) -> Result<(), Unbindable> {
        let syntax = self.syntax;
        if syntax.assigns && find_inline_eval(&with(self.word, &[arg]), Input::Other).is_some() {
            return Err(Unbindable::new(
                "assignment",
                format!("{} sets a variable of {}", shown(arg), shown(self.word)),
                "Set it in the file that is read, or by the request's variables.",
            ));
        }
        let first = !std::mem::replace(&mut found.operand, true);
        if first && found.script.is_none() && !found.code {
            match syntax.first {
                First::Script if syntax.verbs.contains(&arg) => return Err(option_refused(self.word, arg)),
                First::Script => found.script = Some(at),
                First::Code => found.code = true,
                First::Other => {}
            }
        }
        found.over = !syntax.permutes;
        Ok(())
    }

    /// Reads one option. Says whether it took the next word, which is at `next`.
    fn option(
        &self,
        found: &mut Found,
        next: usize,
        arg: &str,
        value: Option<&String>,
    ) -> Result<bool, Unbindable> {
        let syntax = self.syntax;
        let refused = || option_refused(self.word, arg);
        let (key, attached) = arg.split_once('=').map_or((arg, None), |(key, value)| (key, Some(value)));
        if syntax.code_words.contains(&key) && (attached.is_none() || arg.starts_with("--")) {
            found.code = true;
            found.over = syntax.code_ends;
            return if attached.is_some() || value.is_some() {
                Ok(attached.is_none())
            } else {
                Err(refused())
            };
        }
        if syntax.words.contains(&arg) || (attached.is_some() && syntax.equals.contains(&key)) {
            return Ok(false);
        }
        let mut letters =
            arg.strip_prefix('-').filter(|letters| !letters.starts_with('-')).ok_or_else(refused)?;
        while let Some(letter) = letters.chars().next() {
            let rest = letters.get(letter.len_utf8()..).unwrap_or_default();
            let given = if rest.is_empty() { value.map(String::as_str) } else { Some(rest) };
            let takes_next = rest.is_empty();
            if syntax.flags.contains(letter) {
                letters = rest;
            } else if syntax.digits.contains(letter) {
                letters = rest.trim_start_matches(|digit| matches!(digit, '0'..='7'));
            } else if syntax.attached.contains(letter) {
                return Ok(false);
            } else if syntax.values.contains(letter) {
                found.moved |= letter == 'C';
                return given.map(|_| takes_next).ok_or_else(refused);
            } else if syntax.checked.contains(letter) {
                return given
                    .filter(|given| syntax.checked_values.contains(given))
                    .map(|_| takes_next)
                    .ok_or_else(refused);
            } else if syntax.code.contains(letter) {
                found.code = true;
                found.over = syntax.code_ends;
                return given.map(|_| takes_next).ok_or_else(refused);
            } else if syntax.files.contains(letter) {
                // The word is replaced by what was verified, so it must hold nothing but the file's name.
                if !takes_next || value.is_none() || found.script.is_some() {
                    return Err(Unbindable::new(
                        "two-scripts",
                        format!("{} does not name one file in a word of its own", shown(arg)),
                        "Give one file, in the word after the option.",
                    ));
                }
                found.script = Some(next);
                return Ok(true);
            } else {
                return Err(refused());
            }
        }
        Ok(false)
    }
}
