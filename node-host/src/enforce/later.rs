//! Stands for parts that are being written.
#![allow(missing_docs, dead_code, missing_debug_implementations)]
use std::sync::Arc;
#[derive(Debug)]
pub struct Log;
impl Log {
    pub fn append(&self, _: &str, _: serde_json::Value) -> Result<(), std::io::Error> {
        Ok(())
    }
}
#[derive(Debug)]
pub struct ApproversFile;
#[derive(Debug)]
pub struct Key;
impl Key {
    pub fn as_bytes(&self) -> &[u8; 32] {
        &[0; 32]
    }
    pub fn verify(&self, _: &[u8], _: &[u8]) -> bool {
        false
    }
}
#[derive(Debug)]
pub struct Approver {
    pub name: String,
    pub key: Key,
}
impl ApproversFile {
    pub fn new(_: std::path::PathBuf) -> Self {
        Self
    }
    pub fn load(&self) -> Result<Arc<Vec<Approver>>, fault::Fault> {
        Ok(Arc::default())
    }
}
pub mod starter {
    pub const WORD: &str = "__farrun-start";
    pub fn words(k: usize, path: &str) -> Vec<String> {
        vec!["/proc/self/fd/99".to_owned(), WORD.to_owned(), (k + 100).to_string(), path.to_owned()]
    }
}
