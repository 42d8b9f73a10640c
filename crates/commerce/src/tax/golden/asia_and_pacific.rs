//! Australia, New Zealand, Japan, South Korea, Singapore and China.

use super::{Example, NEW, OLD, check};

/// Australia and New Zealand: duty on the goods alone, GST on goods, shipping and duty.
const AUSTRALIA_AND_NEW_ZEALAND: &[Example] = &[
    // 1,000.00 + 50.00: GST 10 % of 1,050.00 at the sale.
    Example {
        rules: NEW,
        to: "AU",
        currency: "AUD",
        goods: &[("610910", "TR", "TR", 40, 100_000)],
        shipping: Some(5000),
        carrier: "unipost",
        expected: "low_value_tax_at_sale: duty 0, tax 10500, fees 0; at sale 10500; high",
    },
    // 1,200.00 + 60.00: duty 5 % of 1,200.00: 60.00. GST 10 % of 1,320.00: 132.00. Charges 50.00 + 45.00.
    Example {
        rules: NEW,
        to: "AU",
        currency: "AUD",
        goods: &[("610910", "TR", "TR", 48, 120_000)],
        shipping: Some(6000),
        carrier: "unipost",
        expected: "import_vat_on_fob_duty_and_freight: duty 6000, tax 13200, fees 9500; at sale 0; high",
    },
    // 10,000.00 from China: no duty by ChAFTA. GST 10 % of 10,400.00. Charges 152.00 + 45.00.
    Example {
        rules: NEW,
        to: "AU",
        currency: "AUD",
        goods: &[("610910", "CN", "CN", 400, 1_000_000)],
        shipping: Some(40_000),
        carrier: "unipost",
        expected: "import_vat_on_fob_duty_and_freight: duty 0, tax 104000, fees 19700; at sale 0; medium",
    },
    // 500.00 + 20.00 to New Zealand: levy 2.21 since April 2026. GST 15 % of 522.21: 78.3315.
    Example {
        rules: NEW,
        to: "NZ",
        currency: "NZD",
        goods: &[("610910", "TR", "TR", 20, 50_000)],
        shipping: Some(2000),
        carrier: "unipost",
        expected: "low_value_tax_at_sale: duty 0, tax 7833, fees 221; at sale 7833; high",
    },
    // 1,500.00 + 100.00 before: duty 10 % of 1,500.00: 150.00. Entry fee 34.85 without GST.
    // GST 15 % of 1,500 + 100 + 150 + 34.85 = 1,784.85: 267.7275.
    Example {
        rules: OLD,
        to: "NZ",
        currency: "NZD",
        goods: &[("610910", "TR", "TR", 60, 150_000)],
        shipping: Some(10_000),
        carrier: "unipost",
        expected: "import_vat_on_fob_duty_and_freight: duty 15000, tax 26773, fees 3485; at sale 0; high",
    },
];

/// Japan and South Korea: currencies without a smaller unit.
const JAPAN_AND_SOUTH_KOREA: &[Example] = &[
    // 9,000 + 1,000 yen = 10,000: nothing.
    Example {
        rules: NEW,
        to: "JP",
        currency: "JPY",
        goods: &[("851762", "CN", "CN", 1, 9000)],
        shipping: Some(1000),
        carrier: "unipost",
        expected: "below_de_minimis: duty 0, tax 0, fees 0; at sale 0; high",
    },
    // One yen more: no duty on watches of this heading. 10 % of 10,001: 1,000.1. The post: 200.
    Example {
        rules: NEW,
        to: "JP",
        currency: "JPY",
        goods: &[("851762", "CN", "CN", 1, 9000)],
        shipping: Some(1001),
        carrier: "unipost",
        expected: "import_vat_on_cif_plus_duty: duty 0, tax 1000, fees 200; at sale 0; medium",
    },
    // Knitwear is never exempt: duty 10.9 % of 5,500: 599.5, rounded away from zero. 10 % of 6,100: 610.
    Example {
        rules: NEW,
        to: "JP",
        currency: "JPY",
        goods: &[("610910", "CN", "CN", 2, 5000)],
        shipping: Some(500),
        carrier: "unipost",
        expected: "import_vat_on_cif_plus_duty: duty 600, tax 610, fees 200; at sale 0; medium",
    },
    // Green tea: duty 17 % of 22,000: 3,740. Food 8 % of 25,740: 2,059.2.
    Example {
        rules: NEW,
        to: "JP",
        currency: "JPY",
        goods: &[("090210", "CN", "CN", 10, 20_000)],
        shipping: Some(2000),
        carrier: "unipost",
        expected: "import_vat_on_cif_plus_duty: duty 3740, tax 2059, fees 200; at sale 0; medium",
    },
    // 100,000 won are 100,000 × 1.1172 / 1,491.76 = 74.89 dollars, below 150: nothing.
    Example {
        rules: NEW,
        to: "KR",
        currency: "KRW",
        goods: &[("610910", "CN", "CN", 4, 100_000)],
        shipping: Some(10_000),
        carrier: "unipost",
        expected: "below_de_minimis: duty 0, tax 0, fees 0; at sale 0; high",
    },
    // 250,000 won are 187.23 dollars: duty 13 % of 270,000: 35,100. VAT 10 % of 305,100: 30,510.
    Example {
        rules: NEW,
        to: "KR",
        currency: "KRW",
        goods: &[("610910", "CN", "CN", 10, 250_000)],
        shipping: Some(20_000),
        carrier: "unipost",
        expected: "import_vat_on_cif_plus_duty: duty 35100, tax 30510, fees 0; at sale 0; high",
    },
    // The same from the United States is below their 200 dollars: nothing.
    Example {
        rules: NEW,
        to: "KR",
        currency: "KRW",
        goods: &[("610910", "CN", "US", 10, 250_000)],
        shipping: Some(20_000),
        carrier: "unipost",
        expected: "below_de_minimis: duty 0, tax 0, fees 0; at sale 0; high",
    },
];

/// Singapore and China.
const SINGAPORE_AND_CHINA: &[Example] = &[
    // 300.00 + 15.00: GST 9 % at the sale: 28.35.
    Example {
        rules: NEW,
        to: "SG",
        currency: "SGD",
        goods: &[("610910", "CN", "CN", 10, 30_000)],
        shipping: Some(1500),
        carrier: "unipost",
        expected: "low_value_tax_at_sale: duty 0, tax 2835, fees 0; at sale 2835; high",
    },
    // 16 of 31.25 each: below 400 a piece though together above. GST 9 % of 500.00 + 30.00 at the sale: 47.70.
    Example {
        rules: NEW,
        to: "SG",
        currency: "SGD",
        goods: &[("610910", "CN", "CN", 16, 50_000)],
        shipping: Some(3000),
        carrier: "unipost",
        expected: "low_value_tax_at_sale: duty 0, tax 4770, fees 0; at sale 4770; high",
    },
    // One of 500.00 + 30.00, above 400: no duty, GST 9 % at the border: 47.70.
    Example {
        rules: NEW,
        to: "SG",
        currency: "SGD",
        goods: &[("610910", "CN", "CN", 1, 50_000)],
        shipping: Some(3000),
        carrier: "unipost",
        expected: "import_vat_on_cif_plus_duty: duty 0, tax 4770, fees 0; at sale 0; high",
    },
    // 1,000.00 + 50.00 yuan by electronic commerce: no duty, 70 % of VAT 13 %: 9.1 % of 1,050.00: 95.55.
    Example {
        rules: NEW,
        to: "CN",
        currency: "CNY",
        goods: &[("851762", "KR", "KR", 1, 100_000)],
        shipping: Some(5000),
        carrier: "unipost",
        expected: "retail_import_reduced_tax: duty 0, tax 9555, fees 0; at sale 9555; medium",
    },
    // Perfume for 800.00 + 40.00: consumption tax 15 % is part of its own base. 840.00 × (0.15 + 0.13) / 0.85 =
    // 276.70588, of which 70 %: 193.694.
    Example {
        rules: NEW,
        to: "CN",
        currency: "CNY",
        goods: &[("330300", "FR", "IT", 1, 80_000)],
        shipping: Some(4000),
        carrier: "unipost",
        expected: "retail_import_reduced_tax: duty 0, tax 19369, fees 0; at sale 19369; low",
    },
    // A bag for 6,000.00 + 200.00, above 5,000: duty 6 % of 6,200.00: 372.00. VAT 13 % of 6,572.00: 854.36.
    Example {
        rules: NEW,
        to: "CN",
        currency: "CNY",
        goods: &[("420221", "IT", "IT", 1, 600_000)],
        shipping: Some(20_000),
        carrier: "unipost",
        expected: "import_vat_on_cif_plus_duty: duty 37200, tax 85436, fees 0; at sale 0; high",
    },
];

#[test]
fn examples() {
    let all = [
        AUSTRALIA_AND_NEW_ZEALAND,
        JAPAN_AND_SOUTH_KOREA,
        SINGAPORE_AND_CHINA,
    ];
    all.concat().iter().for_each(check);
}
