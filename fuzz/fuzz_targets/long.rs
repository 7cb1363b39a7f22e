#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::long::check(data, fuzz::Pace::FUZZER));
