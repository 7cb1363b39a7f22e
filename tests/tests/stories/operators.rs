//! Operators from elsewhere: what each role may do, and the end of one.

use e2e::{Outcome, PATIENCE, Reading, TestBed};

/// An operator's identity file.
fn add(bed: &TestBed, name: &str, roles: &str) -> String {
    let file = bed.path(&format!("{name}.json")).display().to_string();
    bed.gateway_cli(["operators", "add", name, "--roles", roles, "--out", &file]).ok();
    file
}

fn as_operator(bed: &TestBed, file: &str, args: &[&str]) -> Outcome {
    bed.gateway_cli(["--identity", file].into_iter().chain(args.iter().copied()))
}

#[test]
fn each_role_opens_its_own_doors() {
    let bed = TestBed::new();
    let _node = bed.node("n");
    let roles = ["read", "write", "pairing", "admin"].map(|role| (role, add(&bed, role, role)));
    // What each role may do, in the order of `roles`.
    let table: [(&[&str], [bool; 4]); 6] = [
        (&["status"], [true, true, true, true]),
        (&["nodes", "list"], [true, true, true, true]),
        (&["exec", "--", "true"], [false, true, false, true]),
        (&["nodes", "pending"], [false, false, true, true]),
        (&["nodes", "invite"], [false, false, false, true]),
        (&["operators", "list"], [false, false, false, true]),
    ];
    for (args, may) in table {
        for ((role, file), may) in roles.iter().zip(may) {
            let outcome = as_operator(&bed, file, args);
            if may {
                assert_eq!(outcome.code(), 0, "{role} {args:?}: {outcome:?}");
            } else {
                outcome.refused(77, "PERMISSION_DENIED").hinted();
            }
        }
    }
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&roles[0].1).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600, "the identity file is private");
    // One name is one operator.
    let twice =
        bed.gateway_cli(["operators", "add", "read", "--out", &bed.path("x.json").display().to_string()]);
    twice.refused(2, "INVALID_REQUEST").hinted();
}

#[test]
fn a_removed_operator_is_cut_off_mid_stream() {
    let bed = TestBed::new();
    let _node = bed.node("n");
    let file = add(&bed, "temp", "write");
    let mut stream =
        bed.spawn_cli(["--identity", &file, "exec", "--", "sh", "-c", "echo up; sleep 600"], Reading::Now);
    stream.wait_stdout("up\n");
    bed.gateway_cli(["operators", "remove", "temp"]).ok();
    let outcome = stream.finish(PATIENCE);
    assert_eq!(outcome.code(), 74, "{outcome:?}");
    as_operator(&bed, &file, &["status"]).refused(77, "UNAUTHENTICATED");
}

#[test]
fn an_identity_that_others_can_read_is_not_used() {
    let bed = TestBed::new();
    let file = add(&bed, "loose", "read");
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    as_operator(&bed, &file, &["status"]).refused(77, "UNAUTHENTICATED").hinted();
}
