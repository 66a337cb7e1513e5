//! ChESS corner detection (Bennett and Lasenby: ChESS, A Fast and Accurate Chessboard Corner
//! Detector, 2013): a thin port of the dense response of `chess-corners-core` 2.1.0 (Vitaly
//! Vorobyev, MIT licence), which needs the standard library for what is not used here.

use crate::picture::Picture;

/// Sixteen samples on a ring of radius 5, clockwise from the top.
const RING: [(isize, isize); 16] = [
    (0, -5),
    (2, -5),
    (3, -3),
    (5, -2),
    (5, 0),
    (5, 2),
    (3, 3),
    (2, 5),
    (0, 5),
    (-2, 5),
    (-3, 3),
    (-5, 2),
    (-5, 0),
    (-5, -2),
    (-3, -3),
    (-2, -5),
];
const RADIUS: usize = 5;
/// A response above this is a corner's.
const THRESHOLD: f32 = 200.0;

/// The number of pixels whose response is that of a corner.
pub fn detect(picture: &Picture) -> usize {
    let columns = RADIUS..picture.width - RADIUS;
    let rows = RADIUS..picture.height.saturating_sub(RADIUS);
    let corners = |y: usize| {
        let row = columns.clone();
        row.filter(|&x| response(picture, x, y) > THRESHOLD).count()
    };
    rows.map(corners).sum()
}

/// The ChESS response at a pixel around which the ring fits.
fn response(picture: &Picture, x: usize, y: usize) -> f32 {
    let at = |dx: isize, dy: isize| {
        let (x, y) = (x.wrapping_add_signed(dx), y.wrapping_add_signed(dy));
        i32::from(picture.pixels[y * picture.width + x])
    };
    let ring = RING.map(|(dx, dy)| at(dx, dy));
    let sum_response: i32 = (0..4)
        .map(|k| (ring[k] + ring[k + 8] - ring[k + 4] - ring[k + 12]).abs())
        .sum();
    let difference: i32 = (0..8).map(|k| (ring[k] - ring[k + 8]).abs()).sum();
    let mean_of_ring = ring.iter().sum::<i32>() as f32 / 16.0;
    let cross = at(0, 0) + at(0, -1) + at(0, 1) + at(1, 0) + at(-1, 0);
    let difference_of_means = magnitude(mean_of_ring - cross as f32 / 5.0);
    sum_response as f32 - difference as f32 - 16.0 * difference_of_means
}

fn magnitude(value: f32) -> f32 {
    if value < 0.0 {
        -value
    } else {
        value
    }
}
