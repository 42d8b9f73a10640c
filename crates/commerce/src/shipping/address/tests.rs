//! Worked examples of addresses. All people and houses are made up; postal codes and regions are real.

use serde_json::{Value, json};

use super::{Address, AddressRules, Checked, Faults, Problem};

const RULES: &str = include_str!("../../../rules/addresses/2026-10-01.toml");

fn ask(address: &Value) -> Result<Checked, Faults> {
    let rules: AddressRules = toml::from_str(RULES).unwrap();
    let mut address = address.clone();
    // Every address has a recipient and a line; the case gives the rest.
    let fields = address.as_object_mut().unwrap();
    fields.entry("recipient").or_insert(json!("A. Example"));
    fields.entry("lines").or_insert(json!(["1 Test St"]));
    let address: Address = serde_json::from_value(address).unwrap();
    super::check(&rules, &address, "", None)
}

/// Checks a valid address: its region and postal code in normal form, its label, and the codes of its changes.
#[track_caller]
fn check(address: &Value, (region, postal_code): (&str, &str), label: &[&str], changes: &[&str]) {
    let checked = ask(address).unwrap_or_else(|faults| panic!("{faults:#?}"));
    let found = &checked.address;
    assert_eq!(found.region.as_deref().unwrap_or_default(), region);
    assert_eq!(
        found.postal_code.as_deref().unwrap_or_default(),
        postal_code
    );
    assert_eq!(checked.formatted, label);
    let found = checked.changes.iter();
    let found: Vec<String> = found
        .map(|change| format!("{} {}", change.field, change.change))
        .collect();
    assert_eq!(found, changes);
    // Normal form is a fixed point: normalizing it again changes nothing.
    let again = ask(&serde_json::to_value(&checked.address).unwrap()).unwrap();
    assert_eq!(again.address, checked.address);
    assert!(again.changes.is_empty(), "{:?}", again.changes);
}

/// Checks an invalid address: every fault, by field.
#[track_caller]
fn check_faults(address: &Value, expected: &[(&str, Problem)]) {
    let Faults(faults) = ask(address).unwrap_err();
    let found: Vec<_> = faults
        .iter()
        .map(|fault| (fault.field.as_str(), fault.problem))
        .collect();
    assert_eq!(found, expected);
    assert!(faults.iter().all(|fault| !fault.hint.is_empty()));
}

#[test]
fn united_kingdom() {
    // SW1A1AA fits the mask AA9A 9AA, which has a blank before the last three.
    check(
        &json!({"city": "London", "postal_code": "sw1a1aa", "country": "GB"}),
        ("", "SW1A 1AA"),
        &[
            "A. Example",
            "1 Test St",
            "London",
            "SW1A 1AA",
            "UNITED KINGDOM",
        ],
        &["/postal_code POSTAL_CODE_REWRITTEN"],
    );
    // M11AE fits A9 9AA only: M1 1AE.
    check(
        &json!({"city": "Manchester", "postal_code": "M1-1AE", "country": "UK"}),
        ("", "M1 1AE"),
        &[
            "A. Example",
            "1 Test St",
            "Manchester",
            "M1 1AE",
            "UNITED KINGDOM",
        ],
        &[
            "/country COUNTRY_TO_CODE",
            "/postal_code POSTAL_CODE_REWRITTEN",
        ],
    );
}

#[test]
fn united_states() {
    // Nine digits are written with a hyphen after five; 941 is in 900-961, which is California.
    check(
        &json!({"city": "San Francisco", "region": "California", "postal_code": "941051234", "country": "US"}),
        ("CA", "94105-1234"),
        &[
            "A. Example",
            "1 Test St",
            "San Francisco, CA 94105-1234",
            "UNITED STATES",
        ],
        &[
            "/postal_code POSTAL_CODE_REWRITTEN",
            "/region REGION_NAME_TO_CODE",
        ],
    );
    // The state is not given: 100 is in 100-149, which only New York has.
    check(
        &json!({"city": "New York", "postal_code": "10001", "country": "US"}),
        ("NY", "10001"),
        &[
            "A. Example",
            "1 Test St",
            "New York, NY 10001",
            "UNITED STATES",
        ],
        &["/region REGION_FROM_POSTAL_CODE"],
    );
    // 063 is Connecticut, but for Fishers Island, which is New York.
    check(
        &json!({"city": "Fishers Island", "region": "US-NY", "postal_code": "06390", "country": "US"}),
        ("NY", "06390"),
        &[
            "A. Example",
            "1 Test St",
            "Fishers Island, NY 06390",
            "UNITED STATES",
        ],
        &["/region REGION_NAME_TO_CODE"],
    );
}

#[test]
fn canada() {
    // H is Montreal, so the province is Quebec.
    check(
        &json!({"city": "Montréal", "region": "Québec", "postal_code": "h2x1y4", "country": "ca"}),
        ("QC", "H2X 1Y4"),
        &["A. Example", "1 Test St", "Montréal QC H2X 1Y4", "CANADA"],
        &[
            "/country COUNTRY_TO_CODE",
            "/postal_code POSTAL_CODE_REWRITTEN",
            "/region REGION_NAME_TO_CODE",
        ],
    );
}

#[test]
fn australia() {
    // 2600 is in 2600-2618, which is the capital; New South Wales has 2000-2599 and 2619-2899 around it.
    check(
        &json!({"city": "Canberra", "region": "Australian Capital Territory", "postal_code": "2600", "country": "AU"}),
        ("ACT", "2600"),
        &["A. Example", "1 Test St", "Canberra ACT 2600", "AUSTRALIA"],
        &["/region REGION_NAME_TO_CODE"],
    );
    // 0872 is in three states, so it fits South Australia and does not say a state by itself.
    check(
        &json!({"city": "Ernabella", "region": "SA", "postal_code": "0872", "country": "AU"}),
        ("SA", "0872"),
        &["A. Example", "1 Test St", "Ernabella SA 0872", "AUSTRALIA"],
        &[],
    );
    check_faults(
        &json!({"city": "Ernabella", "postal_code": "0872", "country": "AU"}),
        &[("/region", Problem::Missing)],
    );
}

#[test]
fn china_in_chinese() {
    // Wide digits become ASCII, 广东省 is GD, and 51 is in 51-52, which is Guangdong. The label goes from large to small.
    check(
        &json!({
            "recipient": "张三", "lines": ["科技园路１号"], "district": "南山区", "city": "深圳市",
            "region": "广东省", "postal_code": "５１８０５７", "country": "中国",
        }),
        ("GD", "518057"),
        &[
            "中国",
            "518057",
            "广东省深圳市南山区",
            "科技园路1号",
            "张三",
        ],
        &[
            "/country COUNTRY_TO_CODE",
            "/lines/0 TEXT_TIDIED",
            "/postal_code POSTAL_CODE_REWRITTEN",
            "/region REGION_NAME_TO_CODE",
        ],
    );
    // The city is the region: 20 is Shanghai, and it stands on the label once.
    check(
        &json!({
            "recipient": "李四", "lines": ["南京东路100号"], "district": "黄浦区", "city": "上海市",
            "postal_code": "200001", "country": "CN",
        }),
        ("SH", "200001"),
        &["中国", "200001", "上海市黄浦区", "南京东路100号", "李四"],
        &["/region REGION_FROM_POSTAL_CODE"],
    );
}

#[test]
fn china_in_pinyin() {
    check(
        &json!({"city": "Hangzhou", "region": "Zhejiang Province", "postal_code": "310000", "country": "China"}),
        ("ZJ", "310000"),
        &[
            "A. Example",
            "1 Test St",
            "Hangzhou",
            "Zhejiang, 310000",
            "CHINA",
        ],
        &["/country COUNTRY_TO_CODE", "/region REGION_NAME_TO_CODE"],
    );
}

#[test]
fn japan() {
    check(
        &json!({
            "recipient": "山田花子", "lines": ["丸の内1-1"], "city": "千代田区", "region": "東京都",
            "postal_code": "〒100ー0005", "country": "JP",
        }),
        ("13", "100-0005"),
        &[
            "日本",
            "〒100-0005",
            "東京都千代田区",
            "丸の内1-1",
            "山田花子",
        ],
        &[
            "/postal_code POSTAL_CODE_REWRITTEN",
            "/region REGION_NAME_TO_CODE",
        ],
    );
    check(
        &json!({"city": "Kyoto", "region": "Kyoto-fu", "postal_code": "6008216", "country": "Japan"}),
        ("26", "600-8216"),
        // City and prefecture have one name, which stands there once.
        &["A. Example", "1 Test St", "Kyoto", "600-8216", "JAPAN"],
        &[
            "/country COUNTRY_TO_CODE",
            "/postal_code POSTAL_CODE_REWRITTEN",
            "/region REGION_NAME_TO_CODE",
        ],
    );
}

#[test]
fn korea_hong_kong_singapore() {
    check(
        &json!({
            "recipient": "김예시", "lines": ["세종대로 110"], "city": "중구", "region": "서울",
            "postal_code": "04524", "country": "KR",
        }),
        ("11", "04524"),
        &[
            "대한민국",
            "서울특별시 중구",
            "세종대로 110",
            "김예시",
            "04524",
        ],
        &["/region REGION_NAME_TO_CODE"],
    );
    // Hong Kong has no postal codes: what people fill in is left out.
    check(
        &json!({"city": "Mong Kok", "region": "Kowloon", "postal_code": "999077", "country": "HK"}),
        ("KLN", ""),
        &[
            "A. Example",
            "1 Test St",
            "Mong Kok",
            "Kowloon",
            "HONG KONG",
        ],
        &[
            "/postal_code POSTAL_CODE_NOT_USED",
            "/region REGION_NAME_TO_CODE",
        ],
    );
    // Singapore is its own city.
    check(
        &json!({"postal_code": "018956", "country": "SG"}),
        ("", "018956"),
        &["A. Example", "1 Test St", "Singapore 018956", "SINGAPORE"],
        &[],
    );
}

#[test]
fn europe() {
    // The car plate's D in front is left out.
    check(
        &json!({"city": "Berlin", "postal_code": "D-10557", "country": "Deutschland"}),
        ("", "10557"),
        &["A. Example", "1 Test St", "10557 Berlin", "GERMANY"],
        &[
            "/country COUNTRY_TO_CODE",
            "/postal_code POSTAL_CODE_REWRITTEN",
        ],
    );
    check(
        &json!({"city": "Amsterdam", "postal_code": "1012js", "country": "NL"}),
        ("", "1012 JS"),
        &[
            "A. Example",
            "1 Test St",
            "1012 JS Amsterdam",
            "NETHERLANDS",
        ],
        &["/postal_code POSTAL_CODE_REWRITTEN"],
    );
    // Latvia writes the country into the code, also where it was left out.
    check(
        &json!({"city": "Rīga", "postal_code": "1050", "country": "LV"}),
        ("", "LV-1050"),
        &["A. Example", "1 Test St", "Rīga, LV-1050", "LATVIA"],
        &["/postal_code POSTAL_CODE_REWRITTEN"],
    );
    // In Hungary the city stands above the street.
    check(
        &json!({"city": "Budapest", "postal_code": "H-1011", "country": "HU"}),
        ("", "1011"),
        &["A. Example", "Budapest", "1 Test St", "1011", "HUNGARY"],
        &["/postal_code POSTAL_CODE_REWRITTEN"],
    );
    // Ireland can do without a code. Its county is no closed list.
    check(
        &json!({"city": "Galway", "region": "Co. Galway", "country": "IE"}),
        ("Co. Galway", ""),
        &["A. Example", "1 Test St", "Galway", "Co. Galway", "IRELAND"],
        &[],
    );
    check(
        &json!({"city": "Dublin", "postal_code": "d02af30", "country": "IE"}),
        ("", "D02 AF30"),
        &["A. Example", "1 Test St", "Dublin", "D02 AF30", "IRELAND"],
        &["/postal_code POSTAL_CODE_REWRITTEN"],
    );
}

#[test]
fn postal_codes_of_other_regions() {
    // 941 is California, not New York.
    check_faults(
        &json!({"city": "X", "region": "NY", "postal_code": "94105", "country": "US"}),
        &[("/postal_code", Problem::Mismatch)],
    );
    // V is British Columbia, not Ontario.
    check_faults(
        &json!({"city": "X", "region": "Ontario", "postal_code": "V5K 0A1", "country": "CA"}),
        &[("/postal_code", Problem::Mismatch)],
    );
    // 3000 is Victoria, not New South Wales, though 3500 and some others are.
    check_faults(
        &json!({"city": "X", "region": "NSW", "postal_code": "3000", "country": "AU"}),
        &[("/postal_code", Problem::Mismatch)],
    );
    // 20 is Shanghai, not Guangdong.
    check_faults(
        &json!({"city": "X", "region": "广东", "postal_code": "200001", "country": "CN"}),
        &[("/postal_code", Problem::Mismatch)],
    );
}

#[test]
fn faults() {
    check_faults(
        &json!({"country": "Atlantis"}),
        &[("/country", Problem::Unknown)],
    );
    check_faults(
        &json!({"city": "Berlin", "postal_code": "1055", "country": "DE"}),
        &[("/postal_code", Problem::Malformed)],
    );
    check_faults(
        &json!({"city": "London", "postal_code": "SW1A 1A", "country": "GB"}),
        &[("/postal_code", Problem::Malformed)],
    );
    check_faults(
        &json!({"city": "X", "region": "Narnia", "postal_code": "100-0001", "country": "JP"}),
        &[("/region", Problem::Unknown)],
    );
    // Everything at once: blank texts are none, and a name has letters.
    check_faults(
        &json!({"recipient": "4711", "lines": [" ", "-"], "city": "", "country": "US"}),
        &[
            ("/recipient", Problem::Missing),
            ("/lines", Problem::Missing),
            ("/city", Problem::Missing),
            ("/region", Problem::Missing),
            ("/postal_code", Problem::Missing),
        ],
    );
    // A bell rings on no label. The line is malformed, and not missing as well.
    check_faults(
        &json!({"lines": ["Main\u{7} St"], "city": "Berlin", "postal_code": "10115", "country": "DE"}),
        &[("/lines/0", Problem::Malformed)],
    );
    check_faults(
        &json!({"city": "Berlin", "postal_code": "10115", "phone": "12", "country": "DE"}),
        &[("/phone", Problem::Malformed)],
    );
}

/// Every country of the file accepts its own example.
#[test]
fn every_country_takes_its_own_example() {
    let rules: AddressRules = toml::from_str(RULES).unwrap();
    assert_eq!(rules.countries.len(), 39);
    for (code, country) in &rules.countries {
        // The first region that fits the example, where regions and codes go together.
        let example = country.postal.as_ref().map(|postal| postal.example.clone());
        let key = super::postal_key(example.as_deref().unwrap_or_default());
        let mut regions = country.regions.iter();
        let region = regions.find(|region| region.postal.is_empty() || region.has_code(&key));
        let address = json!({
            "city": "X",
            "region": region.map(|region| &region.code),
            "postal_code": example,
            "country": code,
        });
        let checked = ask(&address).unwrap_or_else(|faults| panic!("{code}: {faults:#?}"));
        assert!(checked.changes.is_empty(), "{code}: {:?}", checked.changes);
        assert!(checked.formatted.len() >= 3, "{code}");
    }
}

/// Debug output has no personal data.
#[test]
fn debug_output_has_no_address() {
    let address = json!({"city": "Berlin", "postal_code": "10115", "country": "DE"});
    let checked = ask(&address).unwrap();
    let debug = format!("{checked:?} {:?}", checked.address);
    assert!(
        !debug.contains("Berlin") && !debug.contains("10115"),
        "{debug}"
    );
}
