//! Plays scripts of verbs on a store and on a plain list of parents.

#![no_main]

libfuzzer_sys::fuzz_target!(|script: &[u8]| {
    if let Err(what) = talktree_torture::addresses::play(script) {
        panic!("{what}");
    }
});
