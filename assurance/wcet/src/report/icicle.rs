//! A tree of calls as a picture: a row for each depth, as wide as what is executed.

use maud::{html, Markup};

use crate::tree::Frame;

/// In pixels, of the whole; the page scales it.
const WIDTH: f64 = 1600.0;
const ROW: f64 = 18.0;
/// What is narrower is not drawn.
const LEAST: f64 = 2.5;
/// Of a letter, at the size of the text.
const LETTER: f64 = 6.4;

/// The picture. Each frame says what it is where the pointer rests on it.
pub fn picture(root: &Frame) -> Markup {
    let mut frames = Vec::new();
    let scale = WIDTH / root.cost.max(1) as f64;
    place(root, 0.0, 0, scale, &mut frames);
    let rows = frames
        .iter()
        .map(|placed| placed.row + 1)
        .max()
        .unwrap_or(1);
    let height = rows as f64 * ROW;
    html! {
        svg viewBox=(format!("0 0 {WIDTH} {height}")) role="img" {
            @for each in &frames { (draw(each, root.cost)) }
        }
    }
}

struct Placed<'f> {
    frame: &'f Frame,
    left: f64,
    width: f64,
    row: usize,
}

/// Places what is called by a frame in the row below it.
fn place<'f>(frame: &'f Frame, left: f64, row: usize, scale: f64, placed: &mut Vec<Placed<'f>>) {
    let mut left = left;
    for call in &frame.calls {
        let width = call.cost as f64 * scale;
        if width >= LEAST {
            placed.push(Placed {
                frame: call,
                left,
                width,
                row,
            });
            place(call, left, row + 1, scale, placed);
        }
        left += width;
    }
}

fn draw(placed: &Placed, all: i64) -> Markup {
    let Placed {
        frame,
        left,
        width,
        row,
    } = placed;
    let top = *row as f64 * ROW;
    let letters = ((width - 6.0) / LETTER).max(0.0) as usize;
    // The last part of the path, without what it is generic over.
    let plain = match frame.name.find("::<") {
        Some(generic) if generic > 0 => &frame.name[..generic],
        _ => &frame.name,
    };
    let last = plain.rsplit("::").next().unwrap_or_default();
    let name = match () {
        () if frame.name.len() <= letters => &frame.name,
        () if last.len() <= letters => last,
        () => "",
    };
    let share = frame.cost as f64 * 100.0 / all.max(1) as f64;
    let from = frame.from.as_ref();
    let from = from.map_or(String::new(), |line| format!(", called in {line}"));
    let title = format!(
        "{}: {} instructions ({share:.1} %), {} of its own{from}",
        frame.name,
        frame.cost,
        frame.own()
    );
    html! {
        g {
            title { (title) }
            rect x=(format!("{left:.2}")) y=(top) width=(format!("{:.2}", (width - 0.5).max(0.5))) height=(ROW - 1.0)
                fill=(colour(&frame.name)) {}
            @if !name.is_empty() {
                text x=(format!("{:.2}", left + 3.0)) y=(top + ROW - 5.0) { (name) }
            }
        }
    }
}

/// The same for the same module wherever it is called.
fn colour(name: &str) -> String {
    let module = name
        .trim_start_matches('<')
        .split("::")
        .next()
        .unwrap_or_default();
    let hue = module.bytes().fold(7_u32, |hash, byte| {
        hash.wrapping_mul(31).wrapping_add(byte.into())
    });
    format!("hsl({} 55% 80%)", hue % 360)
}
