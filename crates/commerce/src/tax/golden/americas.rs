//! The United States and Canada.

use super::{Example, NEW, OLD, check};

/// The United States: no duty up to 800 dollars until 2025; sales tax by state, on the price alone.
const UNITED_STATES: &[Example] = &[
    // T-shirts for 100.00, California. Until 2025: no duty. Sales tax 7.25 % of 100.00, shipping is not taxed.
    Example {
        rules: OLD,
        to: "US-CA",
        currency: "USD",
        goods: &[("610910", "CN", "CN", 4, 10000)],
        shipping: Some(1000),
        carrier: "unipost",
        expected: "sales_tax_on_price: duty 0, tax 725, fees 0; at sale 725; medium",
    },
    // Now: duty 16.5 % + 7.5 % (section 301) of 100.00 (FOB): 24.00. Processing fee 2.69.
    Example {
        rules: NEW,
        to: "US-CA",
        currency: "USD",
        goods: &[("610910", "CN", "CN", 4, 10000)],
        shipping: Some(1000),
        carrier: "unipost",
        expected: "import_duty_and_sales_tax_on_price: duty 2400, tax 725, fees 269; at sale 725; low",
    },
    // Until 2025, exactly 800.00: nothing but sales tax, New York 4 %: 32.00.
    Example {
        rules: OLD,
        to: "US-NY",
        currency: "USD",
        goods: &[("420221", "IT", "IT", 4, 80000)],
        shipping: Some(2000),
        carrier: "unipost",
        expected: "sales_tax_on_price: duty 0, tax 3200, fees 0; at sale 3200; medium",
    },
    // Until 2025, 800.01: duty 9 %: 72.0009. Tax 4 %: 32.0004. Fee 2.62.
    Example {
        rules: OLD,
        to: "US-NY",
        currency: "USD",
        goods: &[("420221", "IT", "IT", 4, 80001)],
        shipping: Some(2000),
        carrier: "unipost",
        expected: "import_duty_and_sales_tax_on_price: duty 7200, tax 3200, fees 262; at sale 3200; medium",
    },
    // A power bank for 200.00, Washington: duty 3.4 % + 25 % (batteries since 2026): 56.80. Tax 6.5 %: 13.00.
    Example {
        rules: NEW,
        to: "US-WA",
        currency: "USD",
        goods: &[("850760", "CN", "CN", 5, 20000)],
        shipping: Some(1200),
        carrier: "unipost",
        expected: "import_duty_and_sales_tax_on_price: duty 5680, tax 1300, fees 269; at sale 1300; low",
    },
    // Formal entry: watches for 3,000.00 to Oregon, which has no sales tax. No duty. 0.3464 % is 10.392: at least 33.58.
    Example {
        rules: NEW,
        to: "US-OR",
        currency: "USD",
        goods: &[("851762", "VN", "VN", 20, 300_000)],
        shipping: Some(5000),
        carrier: "unipost",
        expected: "import_duty_and_sales_tax_on_price: duty 0, tax 0, fees 3358; at sale 0; low",
    },
    // For 10,000.00 to Texas: 0.3464 % is 34.64. Tax 6.25 %: 625.00.
    Example {
        rules: NEW,
        to: "US-TX",
        currency: "USD",
        goods: &[("851762", "VN", "VN", 80, 1_000_000)],
        shipping: Some(5000),
        carrier: "unipost",
        expected: "import_duty_and_sales_tax_on_price: duty 0, tax 62500, fees 3464; at sale 62500; low",
    },
    // Clothes are not taxed in Pennsylvania: duty 16.5 % of 50.00: 8.25; fee 2.69.
    Example {
        rules: NEW,
        to: "US-PA",
        currency: "USD",
        goods: &[("610910", "VN", "VN", 2, 5000)],
        shipping: Some(500),
        carrier: "unipost",
        expected: "import_duty_and_sales_tax_on_price: duty 825, tax 0, fees 269; at sale 0; low",
    },
    // Masks from China: duty 9 % (chapter 63) + 50 % (since 2026) of 20.00: 11.80. California 7.25 %: 1.45.
    Example {
        rules: NEW,
        to: "US-CA",
        currency: "USD",
        goods: &[("630790", "CN", "CN", 1, 2000)],
        shipping: Some(500),
        carrier: "unipost",
        expected: "import_duty_and_sales_tax_on_price: duty 1180, tax 145, fees 269; at sale 145; low",
    },
    // Bed linen from China is on list 4A: 9 % + 7.5 % of 100.00: 16.50. Texas 6.25 %: 6.25.
    Example {
        rules: NEW,
        to: "US-TX",
        currency: "USD",
        goods: &[("630231", "CN", "CN", 1, 10000)],
        shipping: Some(500),
        carrier: "unipost",
        expected: "import_duty_and_sales_tax_on_price: duty 1650, tax 625, fees 269; at sale 625; low",
    },
    // Perfume from China is on list 3: 0 % + 25 % of 40.00: 10.00. Washington 6.5 %: 2.60.
    Example {
        rules: NEW,
        to: "US-WA",
        currency: "USD",
        goods: &[("330300", "CN", "CN", 1, 4000)],
        shipping: Some(500),
        carrier: "unipost",
        expected: "import_duty_and_sales_tax_on_price: duty 1000, tax 260, fees 269; at sale 260; low",
    },
    // Coffee within the United States: food is not taxed in California.
    Example {
        rules: NEW,
        to: "US-CA",
        currency: "USD",
        goods: &[("090121", "CO", "US", 1, 2000)],
        shipping: Some(500),
        carrier: "unipost",
        expected: "domestic_tax_on_price: duty 0, tax 0, fees 0; at sale 0; medium",
    },
    // Tennessee taxes food, though less than the 7 % of 20.00: 1.40.
    Example {
        rules: NEW,
        to: "US-TN",
        currency: "USD",
        goods: &[("090121", "CO", "US", 1, 2000)],
        shipping: Some(500),
        carrier: "unipost",
        expected: "domestic_tax_on_price: duty 0, tax 140, fees 0; at sale 140; low",
    },
    // No state is named: the highest rate, 7.25 %, of 100.00. Sent within the country.
    Example {
        rules: NEW,
        to: "US",
        currency: "USD",
        goods: &[("610910", "CN", "US", 4, 10000)],
        shipping: Some(1000),
        carrier: "unipost",
        expected: "domestic_tax_on_price: duty 0, tax 725, fees 0; at sale 725; low",
    },
    // Asked in euros: 750.00 euros are 750.00 × 1.0389 = 779.175 dollars, below 800. Texas 6.25 % of 750.00: 46.875.
    Example {
        rules: OLD,
        to: "US-TX",
        currency: "EUR",
        goods: &[("420221", "IT", "IT", 4, 75000)],
        shipping: Some(2000),
        carrier: "unipost",
        expected: "sales_tax_on_price: duty 0, tax 4688, fees 0; at sale 4688; medium",
    },
    // 780.00 euros are 810.342 dollars, above. Duty 9 %: 70.20. Tax: 48.75. Fee 2.62 / 1.0389 = 2.5219 euros.
    Example {
        rules: OLD,
        to: "US-TX",
        currency: "EUR",
        goods: &[("420221", "IT", "IT", 4, 78000)],
        shipping: Some(2000),
        carrier: "unipost",
        expected: "import_duty_and_sales_tax_on_price: duty 7020, tax 4875, fees 252; at sale 4875; medium",
    },
];

/// Canada: duty on the goods alone, GST, HST or GST with PST on goods and duty.
const CANADA: &[Example] = &[
    // 20.00 from China: nothing.
    Example {
        rules: NEW,
        to: "CA-ON",
        currency: "CAD",
        goods: &[("610910", "CN", "CN", 1, 2000)],
        shipping: Some(500),
        carrier: "unipost",
        expected: "below_de_minimis: duty 0, tax 0, fees 0; at sale 0; high",
    },
    // 20.01: duty 18 %: 3.6018. HST 13 % of 20.01 + 3.60 = 23.61: 3.0693. Canada Post: 9.95.
    Example {
        rules: NEW,
        to: "CA-ON",
        currency: "CAD",
        goods: &[("610910", "CN", "CN", 1, 2001)],
        shipping: Some(500),
        carrier: "unipost",
        expected: "import_tax_on_fob_plus_duty: duty 360, tax 307, fees 995; at sale 0; high",
    },
    // By courier from the United States, 40.00: nothing.
    Example {
        rules: NEW,
        to: "CA-QC",
        currency: "CAD",
        goods: &[("610910", "CN", "US", 1, 4000)],
        shipping: Some(500),
        carrier: "meridian",
        expected: "below_de_minimis: duty 0, tax 0, fees 0; at sale 0; high",
    },
    // The same by post, where 20.00 is the most wherever it comes from. Made in China: duty 18 % of 40.00: 7.20.
    // Quebec 14.975 % of 40.00 + 7.20 = 47.20: 7.0682. Canada Post: 9.95.
    Example {
        rules: NEW,
        to: "CA-QC",
        currency: "CAD",
        goods: &[("610910", "CN", "US", 1, 4000)],
        shipping: Some(500),
        carrier: "unipost",
        expected: "import_tax_on_fob_plus_duty: duty 720, tax 707, fees 995; at sale 0; high",
    },
    // By courier 150.00: only the tax, Quebec 14.975 %: 22.4625. What the courier takes for it is not known.
    Example {
        rules: NEW,
        to: "CA-QC",
        currency: "CAD",
        goods: &[("610910", "CN", "US", 5, 15000)],
        shipping: Some(500),
        carrier: "meridian",
        expected: "low_value_tax_at_border: duty 0, tax 2246, fees 0; at sale 0; medium",
    },
    // By courier 150.01, made in China: duty 18 %: 27.0018. Nova Scotia 14 % of 177.01: 24.7814.
    Example {
        rules: NEW,
        to: "CA-NS",
        currency: "CAD",
        goods: &[("610910", "CN", "US", 5, 15001)],
        shipping: Some(500),
        carrier: "meridian",
        expected: "import_tax_on_fob_plus_duty: duty 2700, tax 2478, fees 0; at sale 0; medium",
    },
    // The same by post and made in the United States, before April 2025: no duty by CUSMA. Nova Scotia 15 % of
    // 150.01: 22.5015. Canada Post: 9.95.
    Example {
        rules: OLD,
        to: "CA-NS",
        currency: "CAD",
        goods: &[("610910", "US", "US", 5, 15001)],
        shipping: Some(500),
        carrier: "unipost",
        expected: "import_tax_on_fob_plus_duty: duty 0, tax 2250, fees 995; at sale 0; medium",
    },
];

#[test]
fn examples() {
    let all = [UNITED_STATES, CANADA];
    all.concat().iter().for_each(check);
}
