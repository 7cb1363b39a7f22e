//! Certificates that end while a link is up.

use std::time::Duration;

use e2e::{GatewayOptions, Reading, TestBed, eventually};

/// Two renewals at two thirds of two minutes, and the first certificate is
/// past its end. The command counts through all of it.
#[test]
fn two_minute_certificates() {
    let args = vec!["--node-certificate-lifetime".to_owned(), "2m".to_owned()];
    let bed = TestBed::with(GatewayOptions { args, ..GatewayOptions::default() });
    let node = bed.node("n");
    let text = "i=0; while [ $i -lt 168 ]; do echo $i; i=$((i+1)); sleep 1; done";
    let counter = bed.spawn_cli(["exec", "--shell", "--", text], Reading::Now);
    eventually(Duration::from_secs(170), || {
        let renewed = node.log().matches("certificate renewed").count();
        if renewed >= 2 { Ok(()) } else { Err(format!("{renewed} renewals: {}", node.log())) }
    });
    let outcome = counter.finish(Duration::from_secs(120));
    outcome.ok();
    let wanted: String = (0..168).map(|i| format!("{i}\n")).collect();
    assert_eq!((outcome.stdout_text(), outcome.stderr.as_str()), (wanted, ""));
    assert_eq!(node.connections(), 1, "{}", node.log());
    // The newest certificate is on disk: a new process needs no pairing.
    node.stop(e2e::Sig::Term);
    node.restart();
    node.wait_connected(1);
}
