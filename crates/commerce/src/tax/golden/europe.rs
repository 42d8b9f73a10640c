//! The European Union, the United Kingdom, Switzerland and Norway; agreements, and parcels from several countries.

use super::{Example, NEW, OLD, TaxRules, check};

/// The European Union: parcels of low value, duty on CIF, VAT on CIF and duty, clearance by the post.
const EUROPEAN_UNION: &[Example] = &[
    // Power bank, 79.98 + 8.00 shipping, below 150: flat duty 3.00.
    // VAT 19 % of 79.98 + 8.00 + 3.00 = 90.98: 17.2862.
    Example {
        rules: NEW,
        to: "DE",
        currency: "EUR",
        goods: &[("850760", "CN", "CN", 2, 7998)],
        shipping: Some(800),
        carrier: "unipost",
        expected: "low_value_flat_duty: duty 300, tax 1729, fees 0; at sale 1729; high",
    },
    // The same before July 2026: no duty. VAT 19 % of 87.98: 16.7162.
    Example {
        rules: OLD,
        to: "DE",
        currency: "EUR",
        goods: &[("850760", "CN", "CN", 2, 7998)],
        shipping: Some(800),
        carrier: "unipost",
        expected: "low_value_tax_at_sale: duty 0, tax 1672, fees 0; at sale 1672; high",
    },
    // Exactly 150.00 is still of low value; shipping does not count for the limit.
    // VAT 19 % of 150.00 + 10.00 + 3.00 = 163.00: 30.97.
    Example {
        rules: NEW,
        to: "DE",
        currency: "EUR",
        goods: &[("850760", "CN", "CN", 1, 15000)],
        shipping: Some(1000),
        carrier: "unipost",
        expected: "low_value_flat_duty: duty 300, tax 3097, fees 0; at sale 3097; high",
    },
    // One cent more: duty 2.7 % of 150.01 + 10.00 = 160.01: 4.32027.
    // VAT 19 % of 160.01 + 4.32 = 164.33: 31.2227. The post takes 6.00.
    Example {
        rules: NEW,
        to: "DE",
        currency: "EUR",
        goods: &[("850760", "CN", "CN", 1, 15001)],
        shipping: Some(1000),
        carrier: "unipost",
        expected: "import_vat_on_cif_plus_duty: duty 432, tax 3122, fees 600; at sale 0; high",
    },
    // The same by courier: duty and VAT as above. The fee of the post is not that of the courier, which is not known.
    Example {
        rules: NEW,
        to: "DE",
        currency: "EUR",
        goods: &[("850760", "CN", "CN", 1, 15001)],
        shipping: Some(1000),
        carrier: "meridian",
        expected: "import_vat_on_cif_plus_duty: duty 432, tax 3122, fees 0; at sale 0; medium",
    },
    // Five T-shirts (60.00) and a watch (80.00): two codes, so 2 × 3.00. Shipping 14.00 by value: 6.00 and 8.00.
    // VAT 20 % of 60 + 6 + 3 = 69.00: 13.80, of 80 + 8 + 3 = 91.00: 18.20; together 32.00.
    Example {
        rules: NEW,
        to: "FR",
        currency: "EUR",
        goods: &[
            ("610910", "CN", "CN", 5, 6000),
            ("851762", "CN", "CN", 1, 8000),
        ],
        shipping: Some(1400),
        carrier: "unipost",
        expected: "low_value_flat_duty: duty 600, tax 3200, fees 0; at sale 3200; high",
    },
    // Two lines of one code share the 3.00: by 20.00 and 40.00 it is 1.00 and 2.00.
    // VAT 20 % of 20 + 1 = 21.00: 4.20, of 40 + 2 = 42.00: 8.40.
    Example {
        rules: NEW,
        to: "FR",
        currency: "EUR",
        goods: &[
            ("610910", "CN", "CN", 1, 2000),
            ("610910", "BD", "CN", 1, 4000),
        ],
        shipping: Some(0),
        carrier: "unipost",
        expected: "low_value_flat_duty: duty 300, tax 1260, fees 0; at sale 1260; high",
    },
];

/// The cascade of a known example: 70,000 rupees of cotton cloth from India to the Netherlands.
const THE_CASCADE_FROM_INDIA: &[Example] = &[
    // Elsewhere the same is said to be duty 6,143, VAT 17,416 and a fee of 1,982 of the carrier. With shipping of
    // 6,790 rupees: CIF 76,790.00, duty 8 % (heading 5208) 6,143.20, VAT 21 % of 82,933.20: 17,415.972. Our
    // rules have no fee of a Dutch carrier. The limit: 70,000 / 88.9335 = 787.10 euros, above 150.
    Example {
        rules: OLD,
        to: "NL",
        currency: "INR",
        goods: &[("520811", "IN", "IN", 20, 7_000_000)],
        shipping: Some(679_000),
        carrier: "unipost",
        expected: "import_vat_on_cif_plus_duty: duty 614320, tax 1741597, fees 0; at sale 0; high",
    },
];

/// Rates that differ by goods and by year.
const EUROPEAN_RATES: &[Example] = &[
    // Children's clothes to Ireland: duty 12 % of 200.00 + 20.00: 26.40. VAT 0 %. Ireland's post has no fee here.
    Example {
        rules: NEW,
        to: "IE",
        currency: "EUR",
        goods: &[("611120", "CN", "CN", 10, 20000)],
        shipping: Some(2000),
        carrier: "unipost",
        expected: "import_vat_on_cif_plus_duty: duty 2640, tax 0, fees 0; at sale 0; high",
    },
    // Books to Germany: no duty, VAT 7 % of 210.00: 14.70; the post collects it for 6.00.
    Example {
        rules: NEW,
        to: "DE",
        currency: "EUR",
        goods: &[("490199", "US", "US", 8, 20000)],
        shipping: Some(1000),
        carrier: "unipost",
        expected: "import_vat_on_cif_plus_duty: duty 0, tax 1470, fees 600; at sale 0; high",
    },
    // Green tea to Sweden, 2,000 + 100 kronor; 2,000 / 10.978 = 182.18 euros, above 150. Duty 3.2 % of 2,100: 67.20.
    // VAT on food 6 % (since April 2026) of 2,167.20: 130.032.
    Example {
        rules: NEW,
        to: "SE",
        currency: "SEK",
        goods: &[("090210", "CN", "CN", 10, 200_000)],
        shipping: Some(10_000),
        carrier: "unipost",
        expected: "import_vat_on_cif_plus_duty: duty 6720, tax 13003, fees 0; at sale 0; medium",
    },
    // The same before: VAT 12 % of 2,167.20: 260.064. (2,000 / 11.459 = 174.54 euros.)
    Example {
        rules: OLD,
        to: "SE",
        currency: "SEK",
        goods: &[("090210", "CN", "CN", 10, 200_000)],
        shipping: Some(10_000),
        carrier: "unipost",
        expected: "import_vat_on_cif_plus_duty: duty 6720, tax 26006, fees 0; at sale 0; medium",
    },
    // A fan to Estonia, known by its chapter only: duty 2.2 % of 330.00: 7.26. VAT 24 % of 337.26: 80.9424.
    Example {
        rules: NEW,
        to: "EE",
        currency: "EUR",
        goods: &[("841451", "CN", "CN", 1, 30000)],
        shipping: Some(3000),
        carrier: "unipost",
        expected: "import_vat_on_cif_plus_duty: duty 726, tax 8094, fees 0; at sale 0; medium",
    },
    // A chapter that the rules do not know, and no shipping: duty 4.2 % of 500.00: 21.00. VAT 19 % of 521.00: 98.99.
    Example {
        rules: NEW,
        to: "DE",
        currency: "EUR",
        goods: &[("930400", "CN", "CN", 1, 50000)],
        shipping: None,
        carrier: "unipost",
        expected: "import_vat_on_cif_plus_duty: duty 2100, tax 9899, fees 600; at sale 0; low",
    },
    // From Portugal to Germany nothing crosses a border of the union: VAT 19 % of 49.80 + 5.00 = 54.80: 10.412.
    Example {
        rules: NEW,
        to: "DE",
        currency: "EUR",
        goods: &[("610910", "PT", "PT", 2, 4980)],
        shipping: Some(500),
        carrier: "unipost",
        expected: "intra_union_tax_on_price: duty 0, tax 1041, fees 0; at sale 1041; high",
    },
    // Within Germany, whatever it was made of and where: VAT 19 % of 49.50 + 4.90 = 54.40: 10.336.
    Example {
        rules: NEW,
        to: "DE",
        currency: "EUR",
        goods: &[("950300", "CN", "DE", 1, 4950)],
        shipping: Some(490),
        carrier: "unipost",
        expected: "domestic_tax_on_price: duty 0, tax 1034, fees 0; at sale 1034; high",
    },
];

/// Agreements: origin and way have to fit.
const PREFERENCES: &[Example] = &[
    // Tea cups made in Japan and sent from there: no duty. VAT 19 % of 220.00: 41.80. The post: 6.00.
    Example {
        rules: NEW,
        to: "DE",
        currency: "EUR",
        goods: &[("691200", "JP", "JP", 10, 20000)],
        shipping: Some(2000),
        carrier: "unipost",
        expected: "import_vat_on_cif_plus_duty: duty 0, tax 4180, fees 600; at sale 0; medium",
    },
    // The same cups sent from China: duty 9 % of 220.00: 19.80. VAT 19 % of 239.80: 45.562.
    Example {
        rules: NEW,
        to: "DE",
        currency: "EUR",
        goods: &[("691200", "JP", "CN", 10, 20000)],
        shipping: Some(2000),
        carrier: "unipost",
        expected: "import_vat_on_cif_plus_duty: duty 1980, tax 4556, fees 600; at sale 0; medium",
    },
    // A bag from Italy to the United Kingdom: no duty by the agreement. VAT 20 % of 189.00 + 11.00: 40.00. Post: 8.00.
    Example {
        rules: NEW,
        to: "GB",
        currency: "GBP",
        goods: &[("420221", "IT", "IT", 1, 18900)],
        shipping: Some(1100),
        carrier: "unipost",
        expected: "import_vat_on_cif_plus_duty: duty 0, tax 4000, fees 800; at sale 0; medium",
    },
    // Trousers made in Canada, to Michigan: no duty by USMCA, and no processing fee with it. Sales tax 6 % of 120.00.
    Example {
        rules: NEW,
        to: "US-MI",
        currency: "USD",
        goods: &[("620342", "CA", "CA", 2, 12000)],
        shipping: Some(1500),
        carrier: "unipost",
        expected: "import_duty_and_sales_tax_on_price: duty 0, tax 720, fees 0; at sale 720; low",
    },
    // The same sent from Canada but made in China: duty 16.6 % + 7.5 % of 120.00: 28.92. Fee 2.69.
    Example {
        rules: NEW,
        to: "US-MI",
        currency: "USD",
        goods: &[("620342", "CN", "CA", 2, 12000)],
        shipping: Some(1500),
        carrier: "unipost",
        expected: "import_duty_and_sales_tax_on_price: duty 2892, tax 720, fees 269; at sale 720; low",
    },
];

/// The United Kingdom: VAT at the sale up to 135 pounds.
const UNITED_KINGDOM: &[Example] = &[
    // 135.00 + 5.00: VAT 20 % of 140.00: 28.00.
    Example {
        rules: NEW,
        to: "GB",
        currency: "GBP",
        goods: &[("610910", "CN", "CN", 5, 13500)],
        shipping: Some(500),
        carrier: "unipost",
        expected: "low_value_tax_at_sale: duty 0, tax 2800, fees 0; at sale 2800; high",
    },
    // 135.01 + 9.99: duty 12 % of 145.00: 17.40. VAT 20 % of 162.40: 32.48. Royal Mail: 8.00.
    Example {
        rules: NEW,
        to: "GB",
        currency: "GBP",
        goods: &[("610910", "CN", "CN", 5, 13501)],
        shipping: Some(999),
        carrier: "unipost",
        expected: "import_vat_on_cif_plus_duty: duty 1740, tax 3248, fees 800; at sale 0; high",
    },
    // Wine is never of low value: no duty by the agreement, VAT 20 % of 50.00 + 10.00: 12.00, Royal Mail 8.00. Excise
    // on it is not in the rules, so the estimate is not sure.
    Example {
        rules: NEW,
        to: "GB",
        currency: "GBP",
        goods: &[("220421", "FR", "FR", 4, 5000)],
        shipping: Some(1000),
        carrier: "unipost",
        expected: "import_vat_on_cif_plus_duty: duty 0, tax 1200, fees 800; at sale 0; low",
    },
    // Books for 150.00 + 10.00: neither duty nor VAT, so there is nothing to collect and no fee for it.
    Example {
        rules: NEW,
        to: "GB",
        currency: "GBP",
        goods: &[("490199", "US", "US", 9, 15000)],
        shipping: Some(1000),
        carrier: "unipost",
        expected: "import_vat_on_cif_plus_duty: duty 0, tax 0, fees 0; at sale 0; high",
    },
];

/// Switzerland: no industrial duties; tax of up to 5 francs is left; the post's clearance is taxed as well.
const SWITZERLAND: &[Example] = &[
    // 55.00 + 5.00 = 60.00: 8.1 % is 4.86, not above 5: nothing.
    Example {
        rules: NEW,
        to: "CH",
        currency: "CHF",
        goods: &[("610910", "CN", "CN", 3, 5500)],
        shipping: Some(500),
        carrier: "unipost",
        expected: "below_de_minimis: duty 0, tax 0, fees 0; at sale 0; high",
    },
    // 60.00 + 2.00 = 62.00: 5.022, above 5. Post: 16.00 + 3 % of 62.00 = 17.86. VAT 8.1 % of 79.86: 6.46866.
    Example {
        rules: NEW,
        to: "CH",
        currency: "CHF",
        goods: &[("610910", "CN", "CN", 3, 6000)],
        shipping: Some(200),
        carrier: "unipost",
        expected: "import_vat_on_cif_plus_duty: duty 0, tax 647, fees 1786; at sale 0; high",
    },
    // From Germany 190.00 + 10.00: post 11.50 + 6.00 = 17.50. VAT 8.1 % of 217.50: 17.6175.
    Example {
        rules: NEW,
        to: "CH",
        currency: "CHF",
        goods: &[("950300", "DE", "DE", 4, 19000)],
        shipping: Some(1000),
        carrier: "unipost",
        expected: "import_vat_on_cif_plus_duty: duty 0, tax 1762, fees 1750; at sale 0; high",
    },
    // 2,950.00 + 50.00: post 16.00 + 90.00, at most 70.00. VAT 8.1 % of 3,070.00: 248.67.
    Example {
        rules: NEW,
        to: "CH",
        currency: "CHF",
        goods: &[("851762", "CN", "CN", 20, 295_000)],
        shipping: Some(5000),
        carrier: "unipost",
        expected: "import_vat_on_cif_plus_duty: duty 0, tax 24867, fees 7000; at sale 0; high",
    },
];

/// Norway counts by piece, not by parcel.
const NORWAY: &[Example] = &[
    // Two jackets at 2,999.00: VOEC although together they are 5,998.00. VAT 25 % of 5,998 + 100 = 6,098.00: 1,524.50.
    Example {
        rules: NEW,
        to: "NO",
        currency: "NOK",
        goods: &[("620240", "VN", "CN", 2, 599_800)],
        shipping: Some(10_000),
        carrier: "unipost",
        expected: "low_value_tax_at_sale: duty 0, tax 152450, fees 0; at sale 152450; high",
    },
    // One at 3,000.00: duty 10.7 % of 3,100.00: 331.70. VAT 25 % of 3,431.70: 857.925, rounded away from zero.
    Example {
        rules: NEW,
        to: "NO",
        currency: "NOK",
        goods: &[("620240", "VN", "CN", 1, 300_000)],
        shipping: Some(10_000),
        carrier: "unipost",
        expected: "import_vat_on_cif_plus_duty: duty 33170, tax 85793, fees 0; at sale 0; medium",
    },
];

/// Goods from several countries are several consignments, each with its own threshold.
const SEVERAL_CONSIGNMENTS: &[Example] = &[
    // To Germany, shipping 30.00 by value of 100 + 100 + 100: 10.00 each.
    // From China 100.00: flat duty 3.00, VAT 19 % of 113.00: 21.47.
    // From Germany 100.00: VAT 19 % of 110.00: 20.90.
    // From Japan 100.00: flat duty 3.00 (no preference is asked for), VAT 21.47.
    // Together 300.00 would be above 150, but no consignment is.
    Example {
        rules: NEW,
        to: "DE",
        currency: "EUR",
        goods: &[
            ("851762", "CN", "CN", 1, 10_000),
            ("950300", "DE", "DE", 2, 10_000),
            ("691200", "JP", "JP", 5, 10_000),
        ],
        shipping: Some(3000),
        carrier: "unipost",
        expected: "several: duty 600, tax 6384, fees 0; at sale 6384; high",
    },
    // Shipping that cannot be divided: 0.10 by 1 : 1 : 1 is 0.04, 0.03, 0.03. All from China, one code: 3.00 as 1.00 each.
    // VAT 19 % of 10.00 + 0.04 + 1.00 = 11.04: 2.0976; of 11.03: 2.0957, twice. 2.10 + 2.10 + 2.10.
    Example {
        rules: NEW,
        to: "DE",
        currency: "EUR",
        goods: &[
            ("610910", "CN", "CN", 1, 1000),
            ("610910", "CN", "CN", 1, 1000),
            ("610910", "CN", "CN", 1, 1000),
        ],
        shipping: Some(10),
        carrier: "unipost",
        expected: "low_value_flat_duty: duty 300, tax 630, fees 0; at sale 630; high",
    },
];

/// Food, drink and agreements of the United Kingdom.
const FOOD_AND_AGREEMENTS: &[Example] = &[
    // Chocolate within the EU to Ireland: 23 % of 40.00 + 5.00: 10.35.
    Example {
        rules: NEW,
        to: "IE",
        currency: "EUR",
        goods: &[("180690", "BE", "BE", 2, 4000)],
        shipping: Some(500),
        carrier: "unipost",
        expected: "intra_union_tax_on_price: duty 0, tax 1035, fees 0; at sale 1035; medium",
    },
    // Roasted nuts within the United Kingdom: 20 % of 10.00 + 3.00: 2.60.
    Example {
        rules: NEW,
        to: "GB",
        currency: "GBP",
        goods: &[("200819", "GB", "GB", 1, 1000)],
        shipping: Some(300),
        carrier: "unipost",
        expected: "domestic_tax_on_price: duty 0, tax 260, fees 0; at sale 260; medium",
    },
    // Honey from Turkey to France: duty 17.3 % of 200.00 + 20.00: 38.06. VAT on food 5.5 % of 258.06: 14.1933.
    Example {
        rules: NEW,
        to: "FR",
        currency: "EUR",
        goods: &[("040900", "TR", "TR", 10, 20000)],
        shipping: Some(2000),
        carrier: "unipost",
        expected: "import_vat_on_cif_plus_duty: duty 3806, tax 1419, fees 0; at sale 0; medium",
    },
    // Wine from Australia to France, though below 150: excise goods pay duty and VAT at the border. Duty 5 % of
    // 80.00 + 20.00: 5.00. VAT 20 % of 105.00: 21.00. Excise is not part of it.
    Example {
        rules: NEW,
        to: "FR",
        currency: "EUR",
        goods: &[("220421", "AU", "AU", 4, 8000)],
        shipping: Some(2000),
        carrier: "unipost",
        expected: "import_vat_on_cif_plus_duty: duty 500, tax 2100, fees 0; at sale 0; low",
    },
    // A jumper made in and sent from Australia: no duty by the agreement. VAT 20 % of 200.00 + 20.00: 44.00. Royal
    // Mail: 8.00.
    Example {
        rules: NEW,
        to: "GB",
        currency: "GBP",
        goods: &[("611011", "AU", "AU", 1, 20000)],
        shipping: Some(2000),
        carrier: "unipost",
        expected: "import_vat_on_cif_plus_duty: duty 0, tax 4400, fees 800; at sale 0; medium",
    },
];

/// Parts of countries with rates of their own: the amounts are those of the country, and the confidence is lower.
const SPECIAL_TERRITORIES: &[Example] = &[
    // Within Spain to Madrid: VAT 21 % of 100.00 + 5.00: 22.05.
    Example {
        rules: NEW,
        to: "ES 28001",
        currency: "EUR",
        goods: &[("610910", "CN", "ES", 1, 10000)],
        shipping: Some(500),
        carrier: "unipost",
        expected: "domestic_tax_on_price: duty 0, tax 2205, fees 0; at sale 2205; high",
    },
    // To Las Palmas the same, but there is no VAT there.
    Example {
        rules: NEW,
        to: "ES E-35001",
        currency: "EUR",
        goods: &[("610910", "CN", "ES", 1, 10000)],
        shipping: Some(500),
        carrier: "unipost",
        expected: "domestic_tax_on_price: duty 0, tax 2205, fees 0; at sale 2205; low",
    },
    // To Jersey: VAT 20 % of 50.00 + 10.00: 12.00, though Jersey has its own GST.
    Example {
        rules: NEW,
        to: "GB je2 3ab",
        currency: "GBP",
        goods: &[("610910", "CN", "CN", 1, 5000)],
        shipping: Some(1000),
        carrier: "unipost",
        expected: "low_value_tax_at_sale: duty 0, tax 1200, fees 0; at sale 1200; low",
    },
];

/// Every special part is found by a postal code of its own, and the mainland beside it is not.
#[test]
fn special_territories_by_postal_code() {
    let rules: TaxRules = toml::from_str(NEW.0).unwrap();
    let cases = [
        ("ES", "38001", Some("the Canary Islands")),
        ("ES", "51001", Some("Ceuta and Melilla")),
        ("ES", "08035", None),
        ("IT", "23041", Some("Livigno and Campione d'Italia")),
        ("IT", "23032", None),
        ("FI", "22100", Some("Åland")),
        ("FI", "00220", None),
        ("FR", "97400", Some("overseas France")),
        // Monaco is taxed like France.
        ("FR", "98000", None),
        ("DE", "D-78266", Some("Büsingen")),
        ("DE", "27498", Some("Heligoland")),
        ("DE", "27499", None),
        ("PT", "9000-001", Some("Madeira and the Azores")),
        ("PT", "1990-001", None),
        (
            "GB",
            "GY1 1AA",
            Some("the Channel Islands and the Isle of Man"),
        ),
        (
            "GB",
            "IM1 1AA",
            Some("the Channel Islands and the Isle of Man"),
        ),
        ("GB", "BT1 5GS", Some("Northern Ireland")),
        ("GB", "B1 1AA", None),
        ("GB", "", None),
    ];
    for (country, postal_code, expected) in cases {
        let found = rules.countries[country].special(postal_code);
        let found = found.map(|part| part.name.en.as_str());
        assert_eq!(found, expected, "{country} {postal_code}");
    }
}

#[test]
fn examples() {
    let all = [
        EUROPEAN_UNION,
        THE_CASCADE_FROM_INDIA,
        EUROPEAN_RATES,
        PREFERENCES,
        UNITED_KINGDOM,
        SWITZERLAND,
        NORWAY,
        SEVERAL_CONSIGNMENTS,
        SPECIAL_TERRITORIES,
        FOOD_AND_AGREEMENTS,
    ];
    all.concat().iter().for_each(check);
}
