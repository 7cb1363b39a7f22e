//! Plans as a node makes them.

use policy::command::{Form, ShellUse, Subject, read_command};
use policy::shell::{self, Dialect};
use proto::v1::{self as pb, bound_file::Role};

/// The plan of a text under `mode=auto` that no rule covers. Programs lie in `/usr/bin`.
pub(in crate::review) fn plan(text: &str) -> pb::Plan {
    let script = shell::read(text, Dialect::Bash).unwrap_or_else(|error| panic!("{text}: {error}"));
    let segments: Vec<_> = script
        .commands
        .iter()
        .map(|command| pb::PlanSegment {
            join: command.join.canonical().to_owned(),
            files: files(&command.words.iter().map(|word| word.text.clone()).collect::<Vec<_>>()),
            argv: command.words.iter().map(|word| word.text.clone()).collect(),
            nested: false,
        })
        .collect();
    pb::Plan {
        argv: vec!["/bin/sh".to_owned(), "-c".to_owned(), text.to_owned()],
        workdir: "/srv/app".to_owned(),
        command_text: text.to_owned(),
        security: pb::Security::Allowlist.into(),
        ask: pb::Ask::OnMiss.into(),
        needs_approval: true,
        segments,
        reasons: vec!["allowlist-miss".to_owned()],
        ..pb::Plan::default()
    }
}

fn files(argv: &[String]) -> Vec<pb::BoundFile> {
    if argv.is_empty() {
        return Vec::new();
    }
    let found = read_command(argv, Form::Shell, &|_| true);
    let file = |word: usize, role: Role| {
        let name = argv[word].rsplit('/').next().unwrap();
        let path = format!("/usr/bin/{name}");
        pb::BoundFile {
            role: role.into(),
            word: u32::try_from(word).unwrap(),
            real_path: path.clone(),
            path,
            ..pb::BoundFile::default()
        }
    };
    let programs = found.wrappers.iter().map(|wrapper| wrapper.at).chain([found.program]);
    let mut files: Vec<_> = programs.map(|word| file(word, Role::Program)).collect();
    if let Subject::Shell(ShellUse::Script { at }) = found.subject {
        files.push(file(at, Role::Script));
    }
    files
}
