#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::reader::check(data, fuzz::Pace::FUZZER));
