//! A change that fails at each of its writes, in every combination of old and new values.

use std::cell::{Cell, RefCell};
use std::fs;
use std::path::Path;

use config::ApprovalsFile;
use fault::ErrorCode;
use policy::{Ask, AskFallback, Security};
use proptest::prelude::*;
use proptest::sample::select;

use super::super::files::{ConfigFile, DocumentFile};
use super::*;

/// Two files in memory whose writes fail from a certain one on, once or for ever.
struct Disk {
    writes: Cell<usize>,
    fails_at: usize,
    fails_after: bool,
    config: RefCell<Values>,
    document: RefCell<Values>,
    /// Both after each write.
    history: RefCell<Vec<[Values; 2]>>,
}

struct Fake<'a> {
    disk: &'a Disk,
    is_config: bool,
}

impl Disk {
    fn new(config: Values, document: Values, fails_at: usize, fails_after: bool) -> Self {
        Self {
            writes: Cell::new(0),
            fails_at,
            fails_after,
            config: RefCell::new(config),
            document: RefCell::new(document),
            history: RefCell::default(),
        }
    }

    fn both(&self) -> [Values; 2] {
        [self.config.borrow().clone(), self.document.borrow().clone()]
    }

    fn apply(&self, wanted: &Values) -> Result<Vec<String>, Fault> {
        apply(&Fake { disk: self, is_config: true }, &Fake { disk: self, is_config: false }, wanted)
    }
}

impl Fake<'_> {
    fn cell(&self) -> &RefCell<Values> {
        if self.is_config { &self.disk.config } else { &self.disk.document }
    }
}

impl PolicyFile for Fake<'_> {
    fn name(&self) -> String {
        if self.is_config { "config" } else { "document" }.to_owned()
    }

    fn part_of(&self, values: &Values) -> Values {
        if self.is_config { values.without_fallback() } else { values.without_host() }
    }

    fn read(&self) -> Result<Values, Fault> {
        Ok(self.cell().borrow().clone())
    }

    fn swap(&self, old: &Values, new: &Values) -> Result<(), Fault> {
        assert_eq!(*self.cell().borrow(), *old);
        let write = self.disk.writes.get();
        self.disk.writes.set(write + 1);
        if write == self.disk.fails_at || (self.disk.fails_after && write > self.disk.fails_at) {
            return Err(Fault::new(ErrorCode::StoreUnreadable, "the disk is full"));
        }
        *self.cell().borrow_mut() = new.clone();
        self.disk.history.borrow_mut().push(self.disk.both());
        Ok(())
    }
}

/// What holds on this machine.
fn in_force([config, document]: &[Values; 2]) -> (Security, Ask) {
    let of = |values: &Values| (values.security.unwrap_or(Security::Full), values.ask.unwrap_or(Ask::Off));
    let ((security, ask), (other_security, other_ask)) = (of(config), of(document));
    (security.stricter(other_security), ask.stricter(other_ask))
}

fn maybe<T: Copy + std::fmt::Debug>(all: &'static [T]) -> impl Strategy<Value = Option<T>> {
    prop_oneof![Just(None), select(all).prop_map(Some)]
}

fn values() -> impl Strategy<Value = Values> {
    let host = maybe(&["auto", "gateway"]).prop_map(|host| host.map(str::to_owned));
    (host, maybe(Security::ALL), maybe(Ask::ALL), maybe(AskFallback::ALL))
        .prop_map(|(host, security, ask, ask_fallback)| Values { host, security, ask, ask_fallback })
}

proptest! {
    #[test]
    fn half_a_change_never_leaves_a_looser_policy(
        config in values().prop_map(|values| values.without_fallback()),
        document in values().prop_map(|values| values.without_host()),
        wanted in values(),
        fails_at in 0_usize..5,
        fails_after in any::<bool>(),
    ) {
        let old = [config.clone(), document.clone()];
        let new = [config.with(&wanted.without_fallback()), document.with(&wanted.without_host())];
        let disk = Disk::new(config, document, fails_at, fails_after);
        let outcome = disk.apply(&wanted);
        let found = disk.both();

        // Wherever it is killed.
        let ((old_security, old_ask), (new_security, new_ask)) = (in_force(&old), in_force(&new));
        for state in disk.history.borrow().iter() {
            let (security, ask) = in_force(state);
            prop_assert!(security >= old_security.min(new_security) && ask >= old_ask.min(new_ask));
        }
        match outcome {
            Ok(_) => prop_assert_eq!(found, new),
            Err(fault) => for (found, old) in found.iter().zip(&old) {
                // What could not be put back is said.
                let said = fails_after && fault.message.contains("COULD NOT");
                prop_assert!(said || !found.is_looser_than(old), "{} than {}: {}", found, old, fault.message);
            },
        }
    }
}

/// The real files, one of which cannot be replaced: it has a second name.
fn on_disk(
    dir: &Path,
    config: &str,
    document: &str,
    stuck: &str,
    wanted: &Values,
) -> Result<Vec<String>, Fault> {
    let at = |name: &str| dir.join(name);
    fs::write(at("openclaw.json"), config).unwrap();
    fs::write(at("exec-approvals.json"), document).unwrap();
    if !stuck.is_empty() {
        fs::hard_link(at(stuck), at("second name")).unwrap();
    }
    apply(
        &ConfigFile::new(at("openclaw.json")),
        &DocumentFile::new(ApprovalsFile::new(at("exec-approvals.json"))),
        wanted,
    )
}

#[test]
fn a_file_that_cannot_be_written_stops_the_change_on_the_strict_side() {
    let wide = r#"{"version":1,"defaults":{"security":"full","askFallback":"full"}}"#;
    let narrow = r#"{"version":1,"defaults":{"security":"deny"}}"#;
    let wide_config = "{tools:{exec:{security:'full'}}}";
    let narrow_config = "{tools:{exec:{security:'deny'}}}";
    let deny = Values { security: Some(Security::Deny), ..Values::default() };
    let full = Values { security: Some(Security::Full), ..Values::default() };
    // What the configuration and the document say afterwards.
    let table = [
        (wide_config, wide, "exec-approvals.json", &deny, "deny", "full"),
        (wide_config, wide, "openclaw.json", &deny, "full", "full"),
        (narrow_config, narrow, "exec-approvals.json", &full, "deny", "deny"),
        (narrow_config, narrow, "openclaw.json", &full, "deny", "deny"),
        (narrow_config, wide, "openclaw.json", &full, "deny", "full"),
        (wide_config, narrow, "exec-approvals.json", &full, "full", "deny"),
    ];
    for (config, document, stuck, wanted, config_after, document_after) in table {
        let dir = tempfile::tempdir().unwrap();
        let fault = on_disk(dir.path(), config, document, stuck, wanted).unwrap_err();
        assert!(fault.message.contains("not completed"), "{}", fault.message);
        let said = |file: &dyn PolicyFile| file.read().unwrap().security.map(Security::as_str);
        let config_file = ConfigFile::new(dir.path().join("openclaw.json"));
        let document_file = DocumentFile::new(ApprovalsFile::new(dir.path().join("exec-approvals.json")));
        assert_eq!(
            (said(&config_file), said(&document_file)),
            (Some(config_after), Some(document_after)),
            "{config} {document} {stuck} {wanted}"
        );
    }
}

#[test]
fn a_change_keeps_all_else() {
    let dir = tempfile::tempdir().unwrap();
    let config = "{\n  // mine\n  \"tools\": { \"exec\": { \"mode\": \"ask\", \"node\": \"a\" } },\n}\n";
    let document = r#"{"version":1,"socket":{"token":"t"},"agents":{"*":{"allowlist":["git"]}}}"#;
    let always = Values { ask: Some(Ask::Always), ..Values::default() };
    let written = on_disk(dir.path(), config, document, "", &always).unwrap();
    assert_eq!(written.len(), 2);
    let text = fs::read_to_string(dir.path().join("openclaw.json")).unwrap();
    assert!(text.contains("// mine") && !text.contains("mode"), "{text}");
    let exec = config::Config::parse(&text).unwrap().exec(None);
    // The mode's other half stays: without it the change would allow everything.
    assert_eq!((exec.security, exec.ask), (Some(Security::Allowlist), Some(Ask::Always)));
    assert_eq!(exec.node.as_deref(), Some("a"));
    let text = fs::read_to_string(dir.path().join("exec-approvals.json")).unwrap();
    assert!(text.contains(r#""token": "t""#) && text.contains(r#""git""#), "{text}");

    let again = on_disk_again(dir.path(), &always);
    assert_eq!(again, Vec::<String>::new(), "nothing to write");
}

fn on_disk_again(dir: &Path, wanted: &Values) -> Vec<String> {
    let config = ConfigFile::new(dir.join("openclaw.json"));
    let document = DocumentFile::new(ApprovalsFile::new(dir.join("exec-approvals.json")));
    apply(&config, &document, wanted).unwrap()
}

#[test]
fn files_that_are_missing_are_made() {
    let dir = tempfile::tempdir().unwrap();
    let deny = Values { host: Some("gateway".into()), security: Some(Security::Deny), ..Values::default() };
    assert_eq!(on_disk_again(dir.path(), &deny).len(), 2);
    let config = ConfigFile::new(dir.path().join("openclaw.json")).read().unwrap();
    let document =
        DocumentFile::new(ApprovalsFile::new(dir.path().join("exec-approvals.json"))).read().unwrap();
    assert_eq!((config, document), (deny.clone(), deny.without_host()));
}

#[test]
fn an_agents_own_layer_is_not_taken_for_the_global_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("openclaw.json");
    fs::write(&path, "{agents:{entries:{main:{tools:{exec:{mode:'deny'}}}}}}").unwrap();
    assert_eq!(ConfigFile::new(path).read().unwrap(), Values::default());
}

#[test]
fn a_file_that_changed_meanwhile_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let file = ConfigFile::new(dir.path().join("openclaw.json"));
    fs::write(dir.path().join("openclaw.json"), "{tools:{exec:{security:'deny'}}}").unwrap();
    let full = Values { security: Some(Security::Full), ..Values::default() };
    let fault = file.swap(&Values::default(), &full).unwrap_err();
    assert_eq!(fault.code, ErrorCode::ApprovalsConflict);
    assert_eq!(file.read().unwrap().security, Some(Security::Deny));
}
