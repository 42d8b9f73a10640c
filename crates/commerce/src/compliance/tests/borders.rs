//! Worked examples by border: food and plants, embargoes, regions, countries and categories that are not known.

use super::case;

/// Ham from Spain. DE and GB: sent from the EEA, so `eu.food.animal` is silent. US: prior notice warns, meat
/// without a veterinary certificate blocks. From CN to GB: blocked. CN: its maker is not registered either.
#[test]
fn ham() {
    let ham = |way| case("food/meat/cured_ham", way).with("animal_origin", "pig");
    ham("ES>DE").allowed("");
    // Since April 2025 private persons get none from the EU either, in Switzerland a little.
    ham("ES>GB").blocked("block gb.food.animal");
    ham("ES>CH").conditional("warning ch_no.food.animal");
    ham("CN>CH").blocked("block eu.food.animal");
    ham("GB>GB").allowed("");
    ham("ES>US").blocked("block food.meat, warning us.food.prior_notice");
    ham("ES>US")
        .certified("VET")
        .conditional("warning us.food.prior_notice");
    ham("CN>GB").blocked("block eu.food.animal");
    ham("ES>CN").blocked("block food.meat, warning cn.food.gacc");
    ham("ES>AU").blocked("block anz.food.animal, warning anz.food.biosecurity");
}

/// Honey between Australia and New Zealand: it may go to AU, inspected; NZ lets none in.
#[test]
fn honey() {
    let honey = |way| case("food/honey/honey", way).with("animal_origin", "bee");
    honey("NZ>AU").conditional("warning anz.food.biosecurity");
    honey("AU>NZ").blocked("block anz.food.animal, warning anz.food.biosecurity");
    honey("NZ>NZ").allowed("");
    honey("NZ>DE").allowed("");
}

/// Wine from France. DE: across a border it needs an excise licence: blocked; and it is for adults. At home:
/// for adults, a warning. With 0.5 % it is no alcoholic drink, with 0.6 % it is.
#[test]
fn wine() {
    let wine = |way| case("food/alcohol/wine", way);
    wine("FR>DE")
        .with("alcohol_percent", 13)
        .blocked("block alcohol.licence, warning alcohol.age");
    wine("FR>FR")
        .with("alcohol_percent", 13)
        .conditional("warning alcohol.age");
    wine("FR>DE").with("alcohol_percent", "0.5").allowed("");
    wine("FR>FR")
        .with("alcohol_percent", "0.6")
        .conditional("warning alcohol.age");
}

/// Organic green tea of China: EU residues and organic certificate; US prior notice and organic certificate; GB
/// residues; JP for oneself. From a warehouse in NL to DE: the exception holds, and it is inside.
#[test]
fn tea() {
    let tea = |way| case("food/tea/green_tea", way).certified("ORGANIC");
    tea("CN>DE").conditional("warning eu.tea.controls, warning organic.import");
    tea("CN>US").conditional("warning us.food.prior_notice, warning us.organic.import");
    tea("CN>GB").conditional("warning gb.tea.controls");
    tea("CN>JP").allowed("info jp.food.personal");
    tea("NL>DE").origin("CN").allowed("");
}

/// Vitamins to Japan: two bottles are two months, three are more. To Australia they have to be listed.
#[test]
fn vitamins() {
    let vitamins = |way| case("health/supplements/vitamin", way);
    vitamins("NO>JP").quantity(2).allowed("");
    vitamins("NO>JP")
        .quantity(3)
        .conditional("warning jp.supplements.two_months");
    vitamins("NO>AU").conditional("warning au.supplements.tga");
    vitamins("NO>AU").certified("AUST-L").allowed("");
    // Six bottles are personal use in Korea, seven are not; Canada asks for its licence.
    vitamins("NO>KR").quantity(6).allowed("");
    vitamins("NO>KR")
        .quantity(7)
        .blocked("block kr.supplements.six");
    vitamins("NO>CA").conditional("warning ca.supplements.npn");
}

/// Seeds with a phytosanitary certificate: into the US, not into AU and not into CN. Without one: not out at all. At
/// home no rule applies.
#[test]
fn seeds() {
    let seeds = |way| case("garden/seeds/flower_seeds", way);
    seeds("NL>US").certified("PHYTO").allowed("");
    seeds("NL>US").blocked("block plants.phyto");
    seeds("NL>AU")
        .certified("PHYTO")
        .blocked("block anz.plants.forbidden");
    seeds("NL>CN").blocked("block plants.phyto, block cn.plants.forbidden");
    seeds("AU>AU").allowed("");
    // Where it grew is another matter than which border it crosses now.
    seeds("AU>AU").origin("NL").allowed("");
}

/// A T-shirt is sent nowhere under an embargo. `coverage.country` leaves these countries out.
#[test]
fn embargoes() {
    for country in ["CU", "IR", "KP"] {
        case("apparel/tops/t_shirt", &format!("PT>{country}"))
            .blocked("block embargo.comprehensive");
    }
    case("apparel/tops/t_shirt", "PT>RU")
        .blocked("block sanctions.russia_belarus, warning coverage.country");
}

/// Syria: under the rules of June 2025 an embargo; since the end of that month a warning, and the rules do not
/// cover the country.
#[test]
fn an_embargo_that_ended() {
    let shirt = case("apparel/tops/t_shirt", "PT>SY");
    shirt
        .clone()
        .before()
        .blocked("block embargo.comprehensive");
    shirt.conditional("warning sanctions.syria, warning coverage.country");
}

/// Ukraine: the country is not covered, a warning; Crimea is under embargo, in any spelling of its region. A region
/// that is not given, or in a spelling that the rules do not know, may be Crimea.
#[test]
fn a_region_under_embargo() {
    let shirt = case("apparel/tops/t_shirt", "PT>UA");
    for region in ["UA-30", "30", " kyiv ", "Lviv"] {
        let there = shirt.clone().region(region);
        there.conditional("warning coverage.country");
        there.before().conditional("warning coverage.country");
    }
    let blocked = "block embargo.ukraine_regions, warning coverage.country";
    for region in [
        "UA-43",
        "crimea",
        " Donetsk ",
        "AR Krym",
        "Крим",
        "UA43",
        "",
        " ",
    ] {
        let there = shirt.clone().region(region);
        there.blocked(blocked);
        there.before().blocked(blocked);
    }
    shirt.blocked(blocked);
    shirt.check_missing("embargo.ukraine_regions", "destination.region");
    shirt.before().blocked(blocked);
}

/// UKCA alone is enough in London and not in Belfast, in any spelling of its postal code. Without a postal code it may
/// be Belfast. With CE the place does not matter.
#[test]
fn northern_ireland() {
    let train = case("toys/wooden/train", "DE>GB")
        .certified("UKCA")
        .with("age_from", 3);
    let blocked = "block gb.northern_ireland.ce";
    train.clone().postal_code("SW1A 1AA").allowed("");
    for code in ["bt1 5gs", "BT15GS", "ＢＴ１ ５ＧＳ", "GB-BT1 5GS", " "] {
        let there = train.clone().postal_code(code);
        there.blocked(blocked);
        there.before().blocked(blocked);
    }
    train.blocked(blocked);
    train.check_missing("gb.northern_ireland.ce", "destination.postal_code");
    train.clone().before().blocked(blocked);
    train.certified("CE").allowed("");
}

/// Cotton of China to the US: the label informs, the origin of the cotton warns. Cotton of Portugal: the label. Sent
/// from Portugal with the origin China: the origin counts, not the country of dispatch.
#[test]
fn cotton() {
    let shirt = |way| case("apparel/tops/t_shirt", way).with("fibre", "organic cotton");
    let both = "warning us.uflpa.cotton, info us.textile.label";
    shirt("CN>US").conditional(both);
    shirt("PT>US").allowed("info us.textile.label");
    shirt("PT>US").origin("CN").conditional(both);
}

/// An antique of China with its permit: to DE since June 2025 a statement; before, nothing. Without: blocked.
#[test]
fn antiques() {
    let vase = |way| case("art/antiques/porcelain", way).with("cultural_property", true);
    vase("CN>DE")
        .certified("EXPORT-PERMIT")
        .conditional("warning eu.cultural_goods");
    vase("CN>DE")
        .certified("EXPORT-PERMIT")
        .before()
        .allowed("");
    vase("CN>US").blocked("block cn.cultural_relics");
    vase("CN>CN").allowed("");
}

/// Goods that are never sent: nicotine, medicine, sprays, banned magnets.
#[test]
fn what_is_not_sent() {
    case("tobacco/vaping/e_liquid", "CN>US")
        .with("nicotine", true)
        .blocked("block tobacco.mail, block nicotine.any");
    case("health/medicine/pain_relief", "NO>DE").blocked("block medicine.mail");
    case("sports/self_defence/pepper_spray", "US>US")
        .with("weapon", true)
        .blocked("block weapon.spray");
    case("toys/magnets/magnet_set", "CN>JP")
        .with("magnet", true)
        .with("age_from", 14)
        .blocked("block magnets.banned");
    case("toys/magnets/magnet_set", "CN>AU")
        .with("magnet", true)
        .with("age_from", 14)
        .blocked("block magnets.banned");
}

/// It fails closed: a category below a known one is unknown, and an unknown country is refused as the destination, the
/// origin and the country of dispatch.
#[test]
fn what_the_rules_do_not_know() {
    case("electronics/power/solar_bank", "DE>DE").blocked("block closed.unknown_category");
    case("electronics/power", "DE>DE").blocked("block closed.unknown_category");
    case("", "DE>DE").blocked("block closed.unknown_category");
    case("apparel/tops/t_shirt", "PT>XX").blocked("block closed.unknown_country");
    case("apparel/tops/t_shirt", "PT>DE")
        .origin("pt")
        .blocked("block closed.unknown_country");
    case("apparel/tops/t_shirt", "ZZ>DE").blocked("block closed.unknown_country");
}

/// Brazil is a known country, but these rules were not written for it: a warning, and nothing is silently allowed.
#[test]
fn a_country_that_nobody_reviewed() {
    case("apparel/tops/t_shirt", "PT>BR").conditional("warning coverage.country");
}
