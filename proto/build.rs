//! Compiles `relay/v1/*.proto` without a system `protoc`, and leaves the
//! descriptor set for the test that compares it with the committed one.
use std::path::PathBuf;

use prost::Message as _;

const FILES: [&str; 9] = [
    "relay/v1/approval.proto",
    "relay/v1/common.proto",
    "relay/v1/plan.proto",
    "relay/v1/run.proto",
    "relay/v1/view.proto",
    "relay/v1/link.proto",
    "relay/v1/enrolment.proto",
    "relay/v1/tools.proto",
    "relay/v1/operator.proto",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for file in FILES {
        println!("cargo:rerun-if-changed={file}");
    }
    let set = protox::compile(FILES, ["."])?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    // Source locations are left out: a changed comment is no wire change.
    let mut wire = set.clone();
    for file in &mut wire.file {
        file.source_code_info = None;
    }
    std::fs::write(out.join("descriptors.bin"), wire.encode_to_vec())?;
    tonic_prost_build::configure().bytes(".").compile_fds(set)?;
    Ok(())
}
