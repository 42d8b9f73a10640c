//! Pictures with a palette: a page has few colours, and its picture is a third of the size with at most 256 of them.
//!
//! The formats are those of PNG (ISO/IEC 15948): what a browser draws is read with 8 bits a channel, and written with one byte a pixel.

use std::collections::HashMap;
use std::io::{Read as _, Write as _};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;

const SIGNATURE: [u8; 8] = [0x89, b'P', b'N', b'G', 0x0D, 0x0A, 0x1A, 0x0A];

/// Maximum number of colours that are kept exactly; the rest of the palette is for the edges of letters.
const EXACT_MAX: usize = 96;

type Colour = [u8; 3];

/// A picture, line by line.
struct Picture {
    width: usize,
    height: usize,
    pixels: Vec<Colour>,
}

/// The same picture with a palette.
pub(crate) fn with_palette(png: &[u8]) -> Vec<u8> {
    let picture = Picture::read(png);
    let palette = palette(&picture.pixels);
    let mut nearest: HashMap<Colour, u8> = HashMap::new();
    let mut lines = Vec::with_capacity((picture.width + 1) * picture.height);
    for line in picture.pixels.chunks(picture.width) {
        lines.push(0);
        lines.extend(line.iter().map(|colour| {
            *nearest
                .entry(*colour)
                .or_insert_with(|| closest(&palette, *colour))
        }));
    }
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::best());
    packed.write_all(&lines).unwrap();
    let mut png = SIGNATURE.to_vec();
    let side = |side: usize| u32::try_from(side).unwrap().to_be_bytes();
    let head = [
        &side(picture.width)[..],
        &side(picture.height),
        &[8, 3, 0, 0, 0],
    ]
    .concat();
    chunk(&mut png, *b"IHDR", &head);
    chunk(&mut png, *b"PLTE", &palette.concat());
    chunk(&mut png, *b"IDAT", &packed.finish().unwrap());
    chunk(&mut png, *b"IEND", &[]);
    png
}

/// The colours that are there most often as they are, and means of what lies close together for the rest.
fn palette(pixels: &[Colour]) -> Vec<Colour> {
    let mut counts: HashMap<Colour, u64> = HashMap::new();
    for pixel in pixels {
        *counts.entry(*pixel).or_default() += 1;
    }
    let mut counts: Vec<(Colour, u64)> = counts.into_iter().collect();
    counts.sort_by_key(|(colour, count)| (std::cmp::Reverse(*count), *colour));
    if counts.len() <= 256 {
        return counts.into_iter().map(|(colour, _)| colour).collect();
    }
    let rest = counts.split_off(EXACT_MAX);
    let mut palette: Vec<Colour> = counts.into_iter().map(|(colour, _)| colour).collect();
    let mut groups: HashMap<[u8; 3], (u64, [u64; 3])> = HashMap::new();
    for (colour, count) in rest {
        let (all, sums) = groups.entry(colour.map(|part| part >> 4)).or_default();
        *all += count;
        for (sum, part) in sums.iter_mut().zip(colour) {
            *sum += u64::from(part) * count;
        }
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(group, (all, _))| (std::cmp::Reverse(*all), *group));
    let means = groups
        .into_iter()
        .map(|(_, (all, sums))| sums.map(|sum| u8::try_from(sum / all).unwrap()));
    palette.extend(means.take(256 - EXACT_MAX));
    palette
}

fn closest(palette: &[Colour], colour: Colour) -> u8 {
    let distance = |other: &Colour| -> u32 {
        let parts = other.iter().zip(colour);
        parts.map(|(a, b)| u32::from(a.abs_diff(b)).pow(2)).sum()
    };
    let found = palette
        .iter()
        .enumerate()
        .min_by_key(|(_, it)| distance(it));
    u8::try_from(found.unwrap().0).unwrap()
}

impl Picture {
    /// Reads a picture of a browser: 8 bits a channel, with or without transparency, not interlaced.
    fn read(png: &[u8]) -> Self {
        assert_eq!(png[..8], SIGNATURE);
        let number = |bytes: &[u8]| u32::from_be_bytes(bytes[..4].try_into().unwrap()) as usize;
        let (mut head, mut packed, mut rest) = (Vec::new(), Vec::new(), &png[8..]);
        while rest.len() >= 12 {
            let (length, name) = (number(rest), &rest[4..8]);
            let data = &rest[8..8 + length];
            match name {
                b"IHDR" => head = data.to_vec(),
                b"IDAT" => packed.extend_from_slice(data),
                _ => {}
            }
            rest = &rest[12 + length..];
        }
        let channels = match (head[8], head[9], head[12]) {
            (8, 2, 0) => 3,
            (8, 6, 0) => 4,
            other => panic!("a picture of another kind: {other:?}"),
        };
        let (width, height) = (number(&head), number(&head[4..]));
        let mut lines = Vec::new();
        ZlibDecoder::new(&packed[..])
            .read_to_end(&mut lines)
            .unwrap();
        let mut before = vec![0; width * channels];
        let mut pixels = Vec::with_capacity(width * height);
        for line in lines.chunks(width * channels + 1) {
            let line = unfiltered(line[0], &line[1..], &before, channels);
            let colours = line.chunks(channels);
            pixels.extend(colours.map(|pixel| -> Colour { pixel[..3].try_into().unwrap() }));
            before = line;
        }
        Self {
            width,
            height,
            pixels,
        }
    }
}

/// A line without the filter that it was written with (ISO/IEC 15948, 9).
fn unfiltered(filter: u8, line: &[u8], above: &[u8], channels: usize) -> Vec<u8> {
    let mut whole: Vec<u8> = Vec::with_capacity(line.len());
    for (at, byte) in line.iter().enumerate() {
        let left = at.checked_sub(channels).map_or(0, |at| whole[at]);
        let corner = at.checked_sub(channels).map_or(0, |at| above[at]);
        let guess = match filter {
            0 => 0,
            1 => left,
            2 => above[at],
            3 => left.midpoint(above[at]),
            4 => paeth(left, above[at], corner),
            other => panic!("no such filter: {other}"),
        };
        whole.push(byte.wrapping_add(guess));
    }
    whole
}

fn paeth(left: u8, above: u8, corner: u8) -> u8 {
    let [a, b, c] = [left, above, corner].map(i32::from);
    let near = |value: i32| (a + b - c - value).abs();
    match (near(a), near(b), near(c)) {
        (by_left, by_above, by_corner) if by_left <= by_above && by_left <= by_corner => left,
        (_, by_above, by_corner) if by_above <= by_corner => above,
        _ => corner,
    }
}

fn chunk(png: &mut Vec<u8>, name: [u8; 4], data: &[u8]) {
    png.extend(u32::try_from(data.len()).unwrap().to_be_bytes());
    let body = [&name[..], data].concat();
    let mut sum = flate2::Crc::new();
    sum.update(&body);
    png.extend(&body);
    png.extend(sum.sum().to_be_bytes());
}

/// A picture with few colours comes back exactly, whatever the filters of its lines are.
#[test]
fn few_colours_stay_as_they_are() {
    let pixels: Vec<Colour> = (0..64_u8).map(|at| [at * 3, 255 - at, at / 2]).collect();
    let (width, channels) = (8, 3);
    let mut lines = Vec::new();
    let mut above = vec![0; width * channels];
    for (at, line) in pixels.chunks(width).enumerate() {
        let filter = u8::try_from(at % 5).unwrap();
        let line = line.concat();
        lines.push(filter);
        for (at, byte) in line.iter().enumerate() {
            let left = at.checked_sub(channels).map_or(0, |at| line[at]);
            let corner = at.checked_sub(channels).map_or(0, |at| above[at]);
            let guess = match filter {
                1 => left,
                2 => above[at],
                3 => left.midpoint(above[at]),
                4 => paeth(left, above[at], corner),
                _ => 0,
            };
            lines.push(byte.wrapping_sub(guess));
        }
        above = line;
    }
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(&lines).unwrap();
    let mut png = SIGNATURE.to_vec();
    chunk(&mut png, *b"IHDR", &[0, 0, 0, 8, 0, 0, 0, 8, 8, 2, 0, 0, 0]);
    chunk(&mut png, *b"IDAT", &packed.finish().unwrap());
    chunk(&mut png, *b"IEND", &[]);
    assert_eq!(Picture::read(&png).pixels, pixels);
    let small = with_palette(&png);
    // One byte a pixel, and every colour of the palette is one of the picture.
    assert_eq!(small[24..26], [8, 3]);
    let palette = small.windows(4).position(|name| name == b"PLTE").unwrap() + 4;
    assert!(
        small[palette..palette + 64 * 3]
            .chunks(3)
            .all(|colour| pixels.iter().any(|it| it == colour))
    );
}
