#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::document::check(data, fuzz::Pace::FUZZER));
