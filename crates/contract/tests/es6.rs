//! A sample of the ES6 number stream, made by `tests/es6/generate.mjs` with a JavaScript engine as
//! the oracle. The whole stream is checked with `examples/check_es6.rs`.

use countersign_contract::canonical::number_to_string;

#[test]
fn the_sample_is_written_as_a_javascript_engine_writes_it() {
    let sample = include_str!("es6/sample.csv");
    let mut lines = 0;
    for line in sample.lines() {
        let (bits, text) = line.split_once(',').unwrap();
        let number = f64::from_bits(u64::from_str_radix(bits, 16).unwrap());
        assert_eq!(number_to_string(number).as_deref(), Some(text), "{bits}");
        let read: f64 = text.parse().unwrap();
        let same_bits = read.to_bits() == number.to_bits() || text == "0";
        assert!(same_bits, "{bits} is not read back");
        lines += 1;
    }
    assert_eq!(lines, 2_500);
}
