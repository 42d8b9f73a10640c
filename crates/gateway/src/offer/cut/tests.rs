//! The parts of a cut answer make the whole.

use proptest::prelude::*;

use super::*;

/// The answer of a reader who fetches everything that is missing.
fn fetched(data: &Value, bytes_max: usize) -> Value {
    let Some(cut) = cut(data, bytes_max) else {
        return data.clone();
    };
    let mut whole = cut.data;
    let first = cut.places.first().unwrap();
    let mut next = Some(Position {
        place: 0,
        from: first.kept,
        within: 0,
    });
    let mut text = String::new();
    let mut parts = 0;
    while let Some(at) = next {
        parts += 1;
        assert!(parts < 100_000, "it does not end");
        let part = part(data, bytes_max, at).unwrap();
        let path = part.data["path"].as_str().unwrap().to_owned();
        if part.data.contains_key("form") {
            text.push_str(part.data["text"].as_str().unwrap());
            let is_over = part.next.is_none_or(|next| next.within == 0);
            if is_over {
                let value: Value = serde_json::from_str(&std::mem::take(&mut text)).unwrap();
                let (parent, name) = path.rsplit_once('/').unwrap();
                let name = name.replace("~1", "/").replace("~0", "~");
                match whole.pointer_mut(parent).unwrap() {
                    Value::Array(items) => items.push(value),
                    Value::Object(members) => drop(members.insert(name, value)),
                    other => panic!("{other}"),
                }
            }
        } else {
            match whole.pointer_mut(&path).unwrap() {
                Value::Array(items) => {
                    assert_eq!(part.data["from"], items.len());
                    items.extend(part.data["items"].as_array().unwrap().iter().cloned());
                }
                Value::Object(members) => {
                    let more = part.data["members"].as_object().unwrap().clone();
                    members.extend(more);
                }
                Value::String(text) => {
                    assert_eq!(part.data["from"], text.chars().count());
                    text.push_str(part.data["text"].as_str().unwrap());
                }
                other => panic!("{other}"),
            }
        }
        next = part.next;
    }
    whole
}

#[track_caller]
fn check(data: &Value, bytes_max: usize, paths: &[&str]) {
    let cut = cut(data, bytes_max).unwrap();
    let found: Vec<&str> = cut.places.iter().map(|place| place.path.as_str()).collect();
    assert_eq!(found, paths);
    assert!(size_of(&cut.data) <= bytes_max, "{}", cut.data);
    assert_eq!(fetched(data, bytes_max), *data);
}

#[test]
fn the_largest_list_or_text_is_cut() {
    let rows: Vec<Value> = (0..200).map(|n| json!({"id": n, "name": "row"})).collect();
    check(&json!({"items": rows, "total": 200}), 1_000, &["/items"]);
    check(&json!(rows), 1_000, &[""]);
    check(
        &json!({"text": "长".repeat(2_000), "id": 7}),
        1_000,
        &["/text"],
    );
    check(&json!([{"text": "x\n".repeat(2_000)}]), 1_000, &["/0/text"]);
    let members: Map<String, Value> = (0..500).map(|n| (format!("k{n}"), json!(n))).collect();
    check(&Value::Object(members), 1_000, &[""]);
    let two = json!({"a": "x".repeat(3_000), "b": "y".repeat(3_000), "c": 1});
    check(&two, 1_000, &["/a", "/b"]);
    // Items that are too large by themselves come as text.
    let large = json!({"items": ["small", "z".repeat(3_000), "w".repeat(3_000), 5]});
    check(&large, 600, &["/items"]);
    assert_eq!(cut(&json!({"a": 1}), 256), None);
}

/// An image is kept whole or left out whole, and comes with the rest; a text beside it is cut.
#[test]
fn a_block_is_not_cut_inside() {
    let image = |letter: &str, length: usize| {
        let data = letter.repeat(length);
        json!({"type": "image", "data": data, "mimeType": "image/png"})
    };
    let small = image("s", 200);
    let text = json!({"type": "text", "text": "x".repeat(3_000)});
    let resource =
        json!({"type": "resource", "resource": {"uri": "a:b", "blob": "b".repeat(3_000)}});
    let data = json!({"content": [small, image("l", 3_000)]});
    check(&data, 1_000, &["/content"]);
    assert_eq!(cut(&data, 1_000).unwrap().data, json!({"content": [small]}));
    check(&json!({"content": [small, resource]}), 1_000, &["/content"]);
    let only = json!({"content": [image("l", 3_000)]});
    check(&only, 1_000, &["/content"]);
    assert_eq!(cut(&only, 1_000).unwrap().data, json!({"content": []}));
    check(
        &json!({"content": [small, text]}),
        1_000,
        &["/content/1/text"],
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Nothing is lost, nothing is doubled, and every part has about the size that was asked for.
    #[test]
    fn the_parts_make_the_whole(
        texts in proptest::collection::vec("\\PC{0,60}", 0..12),
        numbers in proptest::collection::vec(any::<i32>(), 0..80),
        long in "[a-z\\n\"长]{0,800}",
        bytes_max in 256_usize..1_500,
    ) {
        let data = json!({
            "texts": texts,
            "numbers": numbers,
            "nested": {"long": long, "more": [{"inner": texts}, numbers]},
        });
        prop_assert_eq!(fetched(&data, bytes_max), data);
    }
}
