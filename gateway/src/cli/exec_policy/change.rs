//! One change of two files that never leaves a looser policy behind when it fails half-way.
//!
//! There is no step that replaces both files, so the order is the guard. First each file gets the stricter of its old and
//! new values, then its new ones: whenever the process may die in between, what holds is as strict as before or as it
//! should become. After a failure, what was loosened already is put back.

use fault::Fault;

use super::values::Values;

/// A file with a part of the policy.
pub(super) trait PolicyFile {
    /// For people.
    fn name(&self) -> String;
    /// Which of the values this file holds.
    fn part_of(&self, values: &Values) -> Values;
    fn read(&self) -> Result<Values, Fault>;
    /// Writes `new`, if the file still says `old`.
    fn swap(&self, old: &Values, new: &Values) -> Result<(), Fault>;
}

/// A file on its way from what it said to what it shall say.
struct Way<'a> {
    file: &'a dyn PolicyFile,
    old: Values,
    tight: Values,
    new: Values,
    now: Values,
}

impl<'a> Way<'a> {
    fn plan(file: &'a dyn PolicyFile, wanted: &Values) -> Result<Self, Fault> {
        let old = file.read()?;
        let new = old.with(&file.part_of(wanted));
        Ok(Self { file, tight: old.tightened_by(&new), now: old.clone(), old, new })
    }

    fn go(&mut self, to: Values) -> Result<(), Fault> {
        if self.now != to {
            self.file.swap(&self.now, &to)?;
            self.now = to;
        }
        Ok(())
    }

    fn tighten(&mut self) -> Result<(), Fault> {
        self.go(self.tight.clone())
    }

    fn finish(&mut self) -> Result<(), Fault> {
        self.go(self.new.clone())
    }
}

/// Makes both files say what is wanted; yields the names of those that were written.
pub(super) fn apply(
    config: &dyn PolicyFile,
    document: &dyn PolicyFile,
    wanted: &Values,
) -> Result<Vec<String>, Fault> {
    let (mut config, mut document) = (Way::plan(config, wanted)?, Way::plan(document, wanted)?);
    // The configuration holds for nodes too: it is tightened first and loosened last.
    let done = config
        .tighten()
        .and_then(|()| document.tighten())
        .and_then(|()| document.finish())
        .and_then(|()| config.finish());
    if let Err(fault) = done {
        return Err(put_back(fault, &[&config, &document]));
    }
    let written = [&config, &document].into_iter().filter(|way| way.old != way.new);
    Ok(written.map(|way| way.file.name()).collect())
}

/// Takes back what is looser than before, and says what each file holds now. The files are read again: a write that
/// failed may have been made.
fn put_back(fault: Fault, ways: &[&Way<'_>]) -> Fault {
    let mut message = format!("{}; the change was not completed", fault.message);
    for way in ways {
        let outcome = way.file.read().and_then(|found| {
            // Somebody else's values are theirs.
            if found == way.new && found.is_looser_than(&way.old) {
                way.file.swap(&found, &way.tight).map(|()| way.tight.clone())
            } else {
                Ok(found)
            }
        });
        let name = way.file.name();
        match outcome {
            Ok(holds) => message.push_str(&format!("; {name}: {holds}")),
            Err(error) => {
                message.push_str(&format!(
                    "; {name} COULD NOT BE PUT BACK and may hold the new values: {}",
                    error.message
                ));
            }
        }
    }
    let hint = fault.hint.unwrap_or_else(|| "see `gateway exec-policy show`, then try again".to_owned());
    Fault::new(fault.code, message).hint(hint)
}

#[cfg(test)]
mod tests;
