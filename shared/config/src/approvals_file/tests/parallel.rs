//! Several writers at once, and writers that died.

use std::thread;

use fault::ErrorCode;

use super::*;

const THREADS: usize = 8;
const EDITS: usize = 4;

fn edit_all(file: &ApprovalsFile, thread: usize) {
    for edit in 0..EDITS {
        file.edit(|document| {
            add(document, "main", &format!("p{thread}-{edit}"));
            Ok::<_, ApprovalsError>(true)
        })
        .unwrap();
        file.load().unwrap();
    }
}

fn all() -> Vec<String> {
    let mut names: Vec<String> =
        (0..THREADS).flat_map(|thread| (0..EDITS).map(move |edit| format!("p{thread}-{edit}"))).collect();
    names.sort();
    names
}

/// Field case F068. A second handle is what another process has.
#[test]
fn no_change_is_lost_between_threads_and_handles() {
    let place = Place::empty();
    let other = ApprovalsFile::new(place.file.path());
    thread::scope(|scope| {
        for (number, file) in [&place.file, &other].into_iter().cycle().take(THREADS).enumerate() {
            scope.spawn(move || edit_all(file, number));
        }
    });
    for file in [&place.file, &other] {
        let mut found = patterns(&file.load().unwrap().document, "main");
        found.sort();
        assert_eq!(found, all());
    }
}

#[test]
fn of_many_replacements_of_one_document_one_wins() {
    let place = Place::with(ONE);
    let base = hash_of(Some(ONE));
    let won: usize = thread::scope(|scope| {
        let tries: Vec<_> = (0..THREADS)
            .map(|number| {
                let (path, base) = (place.file.path(), &base);
                let update = format!(r#"{{"version":1,"agents":{{"a{number}":{{}}}}}}"#);
                scope.spawn(move || ApprovalsFile::new(path).replace(&update, Some(base)))
            })
            .collect();
        tries
            .into_iter()
            .map(|one| match one.join().unwrap() {
                Ok(_) => 1,
                Err(error) => {
                    assert_eq!(error.code(), ErrorCode::ApprovalsConflict);
                    0
                }
            })
            .sum()
    });
    assert_eq!(won, 1);
}

#[test]
fn a_reader_sees_whole_documents_while_others_write() {
    let place = Place::empty();
    thread::scope(|scope| {
        let writer = scope.spawn(|| edit_all(&place.file, 0));
        let other = ApprovalsFile::new(place.file.path());
        let mut last = 0;
        while !writer.is_finished() {
            let count = patterns(&other.load().unwrap().document, "main").len();
            assert!(count >= last, "{count} after {last}");
            last = count;
        }
    });
}

#[test]
fn a_lock_that_is_held_ends_the_wait() {
    let mut place = Place::with(ONE);
    place.file.lock.wait = std::time::Duration::from_millis(30);
    let foreign = fs::File::create(place.at("exec-approvals.lock")).unwrap();
    foreign.lock().unwrap();
    let error = place.file.replace(ONE, Some(&hash_of(Some(ONE)))).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Timeout);
    assert!(!error.denies_everything());
    // Readers do not wait for writers.
    assert!(place.file.load().is_ok());
    drop(foreign);
    assert!(place.file.replace(ONE, Some(&hash_of(Some(ONE)))).is_ok());
}

#[test]
fn an_edit_inside_an_edit_ends_too() {
    let mut place = Place::with(ONE);
    place.file.lock.wait = std::time::Duration::from_millis(30);
    let answer = place.file.edit(|_| {
        place.file.edit(|_| Ok::<_, ApprovalsError>(true))?;
        Ok::<_, ApprovalsError>(true)
    });
    assert_eq!(answer.unwrap_err().code(), ErrorCode::Timeout);
    assert_eq!(place.text(), ONE);
}

/// A writer that died leaves its temporary file, and the lock's file without a holder.
#[test]
fn the_rests_of_a_crash_change_nothing() {
    let place = Place::with(ONE);
    let rest = ".exec-approvals.json.1-0123456789abcdef.tmp";
    fs::write(place.at(rest), r#"{"version":1,"defaul"#).unwrap();
    fs::write(place.at("exec-approvals.lock"), "").unwrap();
    fs::write(place.at(".exec-approvals.last-good.json.1-0123456789abcdef.tmp"), "{").unwrap();
    assert_eq!(place.file.load().unwrap().hash, hash_of(Some(ONE)));
    edit_all(&place.file, 0);
    assert_eq!(patterns(&place.file.load().unwrap().document, "main").len(), 1 + EDITS);
    assert_eq!(fs::read_to_string(place.at(rest)).unwrap(), r#"{"version":1,"defaul"#);
}
