//! Arguments of a call, read leniently in form and strictly in meaning: a number may come as text, an unknown name is
//! refused with the nearest known one.

use std::collections::BTreeSet;

use fault::{ErrorCode, Fault};
use parking_lot::Mutex;
use serde_json::{Map, Value};

/// How far a name may be from a known one to be taken for a slip.
const SLIP_MAX: usize = 3;

/// The arguments of one call. Which ones were read is remembered.
#[derive(Debug)]
pub(super) struct Args<'a> {
    map: &'a Map<String, Value>,
    read: Mutex<BTreeSet<&'static str>>,
}

impl<'a> Args<'a> {
    pub(super) fn new(map: &'a Map<String, Value>) -> Self {
        Self { map, read: Mutex::default() }
    }

    /// The value, unless it is missing or null.
    pub(super) fn value(&self, name: &'static str) -> Option<&'a Value> {
        self.read.lock().insert(name);
        self.map.get(name).filter(|value| !value.is_null())
    }

    pub(super) fn text(&self, name: &'static str) -> Result<Option<&'a str>, Fault> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(wrong(name, "text")),
        }
    }

    pub(super) fn flag(&self, name: &'static str) -> Result<Option<bool>, Fault> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(Value::String(text)) if text == "true" || text == "false" => Ok(Some(text == "true")),
            Some(_) => Err(wrong(name, "true or false")),
        }
    }

    /// Any number.
    pub(super) fn number(&self, name: &'static str) -> Result<Option<f64>, Fault> {
        let number = match self.value(name) {
            None => return Ok(None),
            Some(Value::Number(number)) => number.as_f64(),
            Some(Value::String(text)) => text.trim().parse().ok(),
            Some(_) => None,
        };
        number.filter(|number| number.is_finite()).map(Some).ok_or_else(|| wrong(name, "a number"))
    }

    /// A whole number from 0 on; parts are cut off.
    pub(super) fn whole(&self, name: &'static str) -> Result<Option<u64>, Fault> {
        match self.number(name)? {
            None => Ok(None),
            // Above 2^53 a float skips numbers; no offset here comes near it.
            Some(number) if (0.0..9e15).contains(&number) => Ok(Some(number as u64)),
            Some(_) => Err(wrong(name, "a number from 0 on")),
        }
    }

    pub(super) fn texts(&self, name: &'static str) -> Result<Vec<String>, Fault> {
        match self.value(name) {
            None => Ok(Vec::new()),
            Some(Value::String(text)) => Ok(vec![text.clone()]),
            Some(Value::Array(items)) => items
                .iter()
                .map(|item| item.as_str().map(str::to_owned).ok_or_else(|| wrong(name, "a list of texts")))
                .collect(),
            Some(_) => Err(wrong(name, "a list of texts")),
        }
    }

    pub(super) fn object(&self, name: &'static str) -> Result<Option<&'a Map<String, Value>>, Fault> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::Object(map)) => Ok(Some(map)),
            Some(_) => Err(wrong(name, "an object")),
        }
    }

    /// Refuses what is none of these: a slip is told before anything that is missing because of it.
    pub(super) fn only(&self, names: &[&'static str]) -> Result<(), Fault> {
        self.read.lock().extend(names);
        self.finish()
    }

    /// Refuses what nobody asked for: a slip must not change what a call does.
    pub(super) fn finish(&self) -> Result<(), Fault> {
        let read = self.read.lock();
        let Some(unknown) = self.map.keys().find(|key| !read.contains(key.as_str()) && *key != "tool") else {
            return Ok(());
        };
        let nearest = read.iter().map(|known| (distance(unknown, known), known)).min();
        let fault = Fault::new(ErrorCode::InvalidRequest, format!("unknown parameter `{unknown}`"));
        Err(match nearest {
            Some((far, known)) if far <= SLIP_MAX => fault.hint(format!("did you mean `{known}`?")),
            _ => fault.hint(format!("known: {}", read.iter().copied().collect::<Vec<_>>().join(", "))),
        })
    }
}

fn wrong(name: &str, want: &str) -> Fault {
    Fault::new(ErrorCode::InvalidRequest, format!("`{name}` must be {want}"))
}

/// Edits from one name to another, without regard to case.
fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.to_lowercase(), b.to_lowercase());
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().take(64).enumerate() {
        let mut corner = i;
        let mut left = i + 1;
        for (cell, to) in row.iter_mut().skip(1).zip(&b) {
            let above = *cell;
            left = (corner + usize::from(from != *to)).min(above + 1).min(left + 1);
            (*cell, corner) = (left, above);
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_may_be_text_and_nulls_are_absent() {
        let value = serde_json::json!({ "a": "12", "b": 7.9, "c": null, "d": -1, "e": "x", "f": "false", "k": "C-c" });
        let Value::Object(map) = value else { panic!() };
        let args = Args::new(&map);
        assert_eq!(
            (args.whole("a"), args.whole("b"), args.whole("c")),
            (Ok(Some(12)), Ok(Some(7)), Ok(None))
        );
        assert_eq!(args.number("d"), Ok(Some(-1.0)));
        assert_eq!(args.whole("d").unwrap_err().message, "`d` must be a number from 0 on");
        assert_eq!(args.number("e").unwrap_err().message, "`e` must be a number");
        assert_eq!(args.flag("f"), Ok(Some(false)));
        assert_eq!(args.texts("k"), Ok(vec!["C-c".to_owned()]));
        assert_eq!(args.finish(), Ok(()));
    }

    #[test]
    fn a_slip_is_named() {
        let value = serde_json::json!({ "tool": "exec", "comand": "ls" });
        let Value::Object(map) = value else { panic!() };
        let args = Args::new(&map);
        assert_eq!((args.text("command"), args.text("workdir")), (Ok(None), Ok(None)));
        let fault = args.finish().unwrap_err();
        assert_eq!(fault.message, "unknown parameter `comand`");
        assert_eq!(fault.hint.as_deref(), Some("did you mean `command`?"));
        assert_eq!((distance("", "abc"), distance("kitten", "Sitting"), distance("a", "a")), (3, 3, 0));
    }
}
