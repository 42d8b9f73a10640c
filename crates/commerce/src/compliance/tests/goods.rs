//! Worked examples by kind of goods. Each comment goes through the rules by hand: the rules that apply to the category
//! and the country, the result of their conditions, and the worst finding.

use super::case;

/// Known failure: a power bank to Germany without CE was allowed, because the category hierarchy was ignored.
///
/// `electronics/power/power_bank` is below `electronics`, which is of the family ELECTRICAL, and DE is in the EEA:
/// `eu.electrical.ce` speaks, CE is not there: block. There is a battery, so `eu.battery.ce` too: block.
/// From CN: `eu.battery.epr` and `eu.gpsr.responsible_person` warn; packed alone across a border:
/// `battery.alone_by_air` warns. UN38.3 is there. The worst is block.
#[test]
fn a_power_bank_without_ce_to_germany() {
    case("electronics/power/power_bank", "CN>DE")
        .lithium_ion("alone", 74)
        .certified("UN38.3 RoHS FCC")
        .blocked(
            "block eu.electrical.ce, block eu.battery.ce, warning eu.battery.epr, \
             warning eu.gpsr.responsible_person, warning battery.alone_by_air",
        );
}

/// The same with all certificates that a seller can have: only the transport is left, a warning.
#[test]
fn a_power_bank_with_all_papers_to_germany() {
    case("electronics/power/power_bank", "CN>DE")
        .lithium_ion("alone", 74)
        .certified("CE UN38.3 EU-RP EPR-BATTERY")
        .conditional("warning battery.alone_by_air");
}

/// From a warehouse in Germany nothing crosses a border, and `ships_from` is in the EEA and in the EU: no
/// warning is left. CE and UN38.3 are there.
#[test]
fn a_power_bank_within_germany() {
    case("electronics/power/power_bank", "DE>DE")
        .lithium_ion("alone", 74)
        .certified("CE UN38.3")
        .allowed("");
}

/// To the US with FCC: `us.electronics.fcc` is content. Without UN38.3 `battery.un383` blocks; alone across a
/// border warns.
#[test]
fn a_power_bank_without_transport_test_to_the_us() {
    case("electronics/power/power_bank", "CN>US")
        .lithium_ion("alone", 74)
        .certified("FCC")
        .blocked("block battery.un383, warning battery.alone_by_air");
}

/// A power bank whose battery is not given: `battery.declared` blocks. The rules about batteries ask for
/// `battery.present` first, which is false, so they have no finding. To DE: CE is there; responsible person.
#[test]
fn a_power_bank_without_a_battery() {
    case("electronics/power/power_bank", "CN>DE")
        .certified("CE")
        .blocked("block battery.declared, warning eu.gpsr.responsible_person");
}

/// 100 Wh are not more than 100 Wh; 101 are. In equipment, so not alone. FCC and UN38.3 are there.
/// A laptop is of `electronics`; nothing else speaks in the US.
#[test]
fn a_battery_of_more_than_100_watt_hours() {
    let laptop = case("electronics/computers/laptop", "CN>US").certified("FCC UN38.3");
    laptop.clone().lithium_ion("in_equipment", 100).allowed("");
    laptop
        .clone()
        .lithium_ion("in_equipment", 101)
        .conditional("warning battery.over_100wh");
    // The energy is not given: the rule cannot be decided, and so it blocks.
    laptop
        .lithium_ion("in_equipment", 0)
        .blocked("block battery.over_100wh");
}

/// An electric scooter, 460 Wh in equipment, with radio. DE: CE and UN38.3 are there; more than 100 Wh, no
/// producer registered, no responsible person: three warnings. The type approval (ABE) decides between
/// conditional and blocked. US: it is not of `electronics`, but has radio: `us.radio.fcc` blocks without FCC.
#[test]
fn an_electric_scooter() {
    let scooter = |way| {
        case("sports/mobility/e_scooter", way)
            .lithium_ion("in_equipment", 460)
            .with("radio", true)
            .certified("CE UN38.3")
    };
    let warnings = "warning battery.over_100wh, warning eu.battery.epr, \
                    warning eu.gpsr.responsible_person";
    scooter("CN>DE").certified("ABE").conditional(warnings);
    scooter("CN>DE").blocked(&format!("{warnings}, block de.e_scooter.abe"));
    // France has no such rule here.
    scooter("CN>FR").conditional(warnings);
    scooter("CN>US").blocked("block us.radio.fcc, warning battery.over_100wh");
    scooter("CN>US")
        .certified("FCC")
        .conditional("warning battery.over_100wh");
}

/// A drone to the US with FCC and UN38.3, the battery beside it. 249 g: nothing. 250 g: registration, a warning. Not
/// given: `drone.registration` cannot be decided and blocks.
#[test]
fn a_drone_around_250_grams() {
    let drone = case("electronics/cameras/drone", "CN>US")
        .lithium_ion("with_equipment", 27)
        .certified("FCC UN38.3");
    drone.clone().with("take_off_g", 249).allowed("");
    drone
        .clone()
        .with("take_off_g", 250)
        .conditional("warning drone.registration");
    // A text is not a number: said in a way that cannot be used, it is not said.
    drone
        .clone()
        .with("take_off_g", "light")
        .blocked("block drone.registration");
    drone.blocked("block drone.registration");
}

/// A laser pointer of class 3 within the EU with CE, no battery: `laser.class_3` blocks in Europe; a class 2 one
/// may go. In the US the FDA wants a report of both.
#[test]
fn a_laser_pointer() {
    let pointer = |class: u32, way| {
        case("electronics/optics/laser_pointer", way)
            .with("laser_class", class)
            .certified("CE")
    };
    pointer(2, "DE>FR").allowed("");
    pointer(3, "DE>FR").blocked("block laser.class_3");
    pointer(2, "DE>US").blocked("block us.laser.fda");
    pointer(2, "DE>US").certified("FDA").allowed("");
}

/// A smartwatch to Korea without KC. One piece: `kr.electronics.kc` asks for more than one piece or for
/// `electronics/power`, so only `kr.electronics.personal` informs. Two pieces: block. With KC: nothing.
#[test]
fn a_smartwatch_for_oneself_in_korea() {
    let watch = case("electronics/wearables/smartwatch", "CN>KR")
        .lithium_ion("in_equipment", 1)
        .certified("UN38.3");
    watch.allowed("info kr.electronics.personal");
    watch
        .clone()
        .quantity(2)
        .blocked("block kr.electronics.kc, info kr.electronics.personal");
    watch.certified("KC").quantity(2).allowed("");
}

/// A kettle for 230 V. US: no FCC is asked for, because a kettle is not of `electronics`; HS 8516 is no
/// ceramics; the voltage warns. JP: PSE is missing, and the voltage warns. CN: CCC is missing.
#[test]
fn a_kettle() {
    let kettle = |way| {
        case("home/kitchen/kettle", way)
            .with("volts", 230)
            .with("food_contact", true)
            .certified("CE FOOD-CONTACT")
    };
    kettle("DE>US").conditional("warning mains.voltage");
    kettle("DE>JP").blocked("block jp.pse, warning mains.voltage");
    kettle("DE>CN").blocked("block cn.electrical.ccc");
    kettle("DE>FR").allowed("");
    // CH has the CE that it asks for; CA besides the voltage wants a mark of its own, SG its SAFETY mark.
    kettle("DE>CH").allowed("");
    kettle("DE>CA").conditional("warning mains.voltage, warning ca.mains.mark");
    kettle("DE>SG").blocked("block sg.safety_mark");
}

/// A plush bear from birth on. AU: under three, so EN71 or a CPC has to be there. US: a CPC is needed, and since
/// July 2026 it is filed electronically; DE: CE and EN71; the seller is in SE, so no responsible person.
#[test]
fn a_plush_bear() {
    let bear = |way| case("toys/plush/bear", way).with("age_from", 0);
    bear("SE>AU").certified("CE EN71").allowed("");
    bear("SE>AU")
        .certified("CE")
        .blocked("block anz.toys.under_3");
    bear("SE>DE").certified("CE EN71").allowed("");
    bear("SE>DE").certified("CE").blocked("block eu.toys.ce");
    bear("SE>US").certified("EN71").blocked("block us.toys.cpc");
    bear("SE>US")
        .certified("CPC")
        .conditional("warning us.toys.efiling");
    // Before that day it was not required.
    bear("SE>US").certified("CPC").before().allowed("");
    // CH takes CE for toys; KR wants KC, but not of what is for the buyer's own use.
    bear("SE>CH").blocked("block ch.conformity");
    bear("SE>CH").certified("CE").allowed("");
    bear("SE>KR").conditional("warning kr.children.kc");
    // For 13 and older it is no children's product.
    case("toys/games/board_game", "SE>US")
        .with("age_from", 13)
        .allowed("");
}

/// Perfume to the US, listed there. 24 % alcohol are not more than 24 %; 25 % are: dangerous goods, a warning. Not
/// given: blocked. Within the EU it goes by road: the exception holds.
#[test]
fn perfume_and_its_alcohol() {
    let perfume = |way| case("beauty/fragrance/perfume", way).certified("CPNP MOCRA");
    perfume("IT>US").with("alcohol_percent", 24).allowed("");
    perfume("IT>US")
        .with("alcohol_percent", 25)
        .conditional("warning dangerous.perfume");
    // A decimal as text is a number.
    perfume("IT>US")
        .with("alcohol_percent", "24.5")
        .conditional("warning dangerous.perfume");
    perfume("IT>US").blocked("block dangerous.perfume");
    perfume("IT>DE").with("alcohol_percent", 80).allowed("");
}

/// Cream from Korea to Japan: 24 pieces are personal use, 25 are not.
/// To DE without CPNP: blocked; cosmetics are not of the family CONSUMER, so no other rule speaks.
#[test]
fn cream_and_how_many() {
    let cream = |way| case("beauty/skincare/face_cream", way);
    cream("KR>JP").quantity(24).allowed("");
    cream("KR>JP")
        .quantity(25)
        .blocked("block jp.cosmetics.personal");
    cream("KR>DE").blocked("block eu.cosmetics.cpnp");
    cream("KR>CN").conditional("warning cn.cosmetics.nmpa");
    cream("KR>CN").certified("NMPA").allowed("");
    cream("KR>AU").allowed("");
    // A hair dryer is of beauty, but no cosmetic: for the EU it is an electrical product.
    case("beauty/devices/hair_dryer", "FR>DE")
        .certified("CE")
        .allowed("");
}

/// A knife of the kitchen, 210 mm, to GB: of age, a warning. A folding knife is exempt up to 76 mm (3 inches):
/// 76 is, 77 is not. A butterfly knife goes nowhere.
#[test]
fn knives() {
    case("home/kitchen/knife", "DE>GB")
        .with("blade_mm", 210)
        .conditional("warning gb.knife.age");
    let folding = |blade_mm: u32, way| {
        case("sports/camping/pocket_knife", way)
            .with("blade_mm", blade_mm)
            .with("folding", true)
    };
    folding(76, "DE>GB").allowed("");
    folding(77, "DE>GB").conditional("warning gb.knife.age");
    folding(76, "DE>US")
        .with("knife_type", "butterfly")
        .blocked("block knife.forbidden_types, info knife.carry");
    // The length is not given, and it does not fold: GB cannot be decided.
    case("home/kitchen/knife", "DE>GB").blocked("block gb.knife.age");
}

/// A bag of python leather from Italy to the US. Without CITES: blocked. With it: the import is declared too, a
/// warning. A leather bag whose animal is not given: blocked. One of cattle: allowed.
#[test]
fn leather() {
    let bag = |category| case(category, "IT>US");
    let exotic = "accessories/bags/exotic_leather_bag";
    bag(exotic)
        .with("leather", "python")
        .with("cites_appendix", "II")
        .blocked("block species.leather");
    bag(exotic)
        .with("leather", "python")
        .with("cites_appendix", "II")
        .certified("CITES")
        .conditional("warning species.import_permit");
    bag("accessories/bags/leather_bag").blocked("block species.leather");
    bag("accessories/bags/leather_bag")
        .with("leather", "bovine")
        .allowed("");
    // A shoe is not asked, unless it says it by itself.
    bag("apparel/footwear/leather_shoe").allowed("info us.textile.label");
    bag("apparel/footwear/leather_shoe")
        .with("leather", "crocodile")
        .blocked("block species.leather, info us.textile.label");
    // Ivory is blocked with papers as well.
    bag("art/antiques/porcelain")
        .with("species", "Loxodonta africana")
        .certified("CITES")
        .blocked("block species.ivory");
}

/// Ceramics from Japan to DE without a declaration: blocked, and no responsible person. The US asks the same of
/// HS chapter 69 only.
#[test]
fn ceramics_for_food() {
    let mut cup = case("home/kitchen/tableware", "JP>DE").with("food_contact", true);
    cup.blocked("block eu.food_contact, warning eu.gpsr.responsible_person");
    "US".clone_into(&mut cup.to.country);
    cup.allowed("");
    "691200".clone_into(&mut cup.offer.hs_code);
    cup.blocked("block us.food_contact.ceramics");
    cup.certified("food-contact").allowed("");
}

/// Silver to GB needs a hallmark, fashion jewellery tests for nickel. From FR: not within the UK, and the GPSR
/// is not asked for there.
#[test]
fn jewellery() {
    case("jewellery/precious/silver_ring", "FR>GB").blocked("block gb.hallmark");
    case("jewellery/precious/silver_ring", "FR>GB")
        .certified("HALLMARK")
        .allowed("");
    case("jewellery/fashion/necklace", "FR>DE").blocked("block eu.jewellery.reach");
    case("jewellery/fashion/necklace", "FR>DE")
        .certified("REACH")
        .allowed("");
}
