//! A second reader, for the text that plans are launched as and nothing else: it shares no code with the one it judges.

use policy::shell::Join;

/// A command of such a text.
#[derive(Debug, PartialEq, Eq)]
pub struct Command {
    pub join: Join,
    pub negated: bool,
    /// Name and value.
    pub assignments: Vec<(String, String)>,
    pub words: Vec<String>,
}

const JOINS: [(&str, Join); 5] = [
    (" 2>&1 | ", Join::PipeBoth),
    (" && ", Join::And),
    (" || ", Join::Or),
    (" | ", Join::Pipe),
    ("; ", Join::Then),
];

/// Reads a text in which every word is in single quotes. None: it is not such a text.
pub fn read(text: &str) -> Option<Vec<Command>> {
    let mut commands = Vec::new();
    let mut join = Join::Start;
    let mut rest = text;
    loop {
        let mut command = Command { join, negated: false, assignments: Vec::new(), words: Vec::new() };
        if let Some(after) = rest.strip_prefix("! ") {
            command.negated = true;
            rest = after;
        }
        let next = loop {
            rest = part(rest, &mut command)?;
            if rest.is_empty() {
                break None;
            }
            let next = JOINS.iter().find_map(|(operator, join)| Some((rest.strip_prefix(operator)?, *join)));
            if next.is_some() {
                break next;
            }
            rest = rest.strip_prefix(' ')?;
        };
        commands.push(command);
        let Some((after, next)) = next else { return Some(commands) };
        (rest, join) = (after, next);
    }
}

/// Reads one assignment or word, and yields what follows.
fn part<'a>(text: &'a str, command: &mut Command) -> Option<&'a str> {
    if text.starts_with('\'') {
        let (word, rest) = quoted(text)?;
        command.words.push(word);
        return Some(rest);
    }
    let (name, rest) = text.split_once('=')?;
    let (value, rest) = quoted(rest)?;
    let letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    if !command.words.is_empty() || !name.starts_with(|first: char| letter(first) && !first.is_ascii_digit())
    {
        return None;
    }
    command.assignments.push((name.chars().all(letter).then(|| name.to_owned())?, value));
    Some(rest)
}

fn quoted(text: &str) -> Option<(String, &str)> {
    let mut word = String::new();
    let mut rest = text.strip_prefix('\'')?;
    loop {
        let (inside, after) = rest.split_once('\'')?;
        word.push_str(inside);
        let Some(more) = after.strip_prefix(r"\''") else { return Some((word, after)) };
        word.push('\'');
        rest = more;
    }
}
