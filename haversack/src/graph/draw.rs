//! Pictures of a graph: SVG with a layout of its own, DOT and Mermaid. Pure.
//!
//! The layout in steps:
//!
//! 1. Put the boxes on a spiral, the most connected one in the middle.
//! 2. Let boxes push each other away and edges pull their ends together, less with every round.
//! 3. Push boxes that overlap apart until none does.
//!
//! The same picture comes out of the same graph every time.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

use crate::display;

/// The most boxes in a picture: more cannot be read.
pub const MAX_BOXES: usize = 400;

/// The longest label, in characters.
const MAX_LABEL: usize = 34;

/// The number of rounds in which the boxes move.
const ROUNDS: usize = 220;

/// The most times that overlapping boxes are pushed apart.
const MAX_PUSHES: usize = 400;

/// The height of a box, in pixels.
pub const BOX_HEIGHT: f64 = 30.0;

/// The room around a box, in pixels.
const GAP_X: f64 = 26.0;
const GAP_Y: f64 = 34.0;

/// The width of a character of the labels.
const CHARACTER: f64 = 7.3;

/// The width of a character of the names of arrows, and the height of such a name.
const ARROW_CHARACTER: f64 = 6.4;
const ARROW_NAME_HEIGHT: f64 = 12.0;

/// The places on an arrow where its name can be, from the best one.
const NAME_PLACES: [f64; 7] = [0.5, 0.4, 0.6, 0.3, 0.7, 0.22, 0.78];

/// How far the name of an arrow moves down or up from a place on the arrow, if boxes and names leave no room on it.
const NAME_SHIFTS: [f64; 9] = [0.0, -9.0, 9.0, -18.0, 18.0, -30.0, 30.0, -45.0, 45.0];

/// Colours of boxes, by the order of their types: fill and border.
const COLOURS: [(&str, &str); 8] = [
    ("#e3f0fb", "#2b6cb0"),
    ("#e6f6ec", "#2f855a"),
    ("#fdf0e1", "#b7791f"),
    ("#f3e9fb", "#6b46c1"),
    ("#fde8ec", "#b83280"),
    ("#eceff3", "#4a5568"),
    ("#f6f4d8", "#8a7a14"),
    ("#e4f5f5", "#2c7a7b"),
];

/// A graph to be drawn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Picture {
    /// The boxes.
    pub boxes: Vec<PictureBox>,
    /// The arrows between them.
    pub arrows: Vec<Arrow>,
}

/// A node in a picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PictureBox {
    /// The id by which arrows know it.
    pub id: String,
    /// The text in it.
    pub label: String,
    /// Its type, which gives it a colour.
    pub kind: String,
    /// True if it is only named and not there.
    pub is_missing: bool,
}

/// A connection in a picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrow {
    /// The id of the box where it begins.
    pub from: String,
    /// The id of the box where it ends.
    pub to: String,
    /// The text on it.
    pub label: String,
}

impl Picture {
    /// Returns the picture in the language of Graphviz.
    pub fn dot(&self) -> String {
        let mut text = String::from("digraph memory {\n  rankdir=LR;\n  node [shape=box, style=rounded];\n");
        for (number, one) in self.boxes.iter().enumerate() {
            let style = if one.is_missing { ", style=dashed" } else { "" };
            let label = format!("{}\n{}", shown(&one.label), shown(&one.kind));
            let _ = writeln!(text, "  n{number} [label={}{style}];", quoted(&label));
        }
        for (from, to, arrow) in self.numbered() {
            let _ = writeln!(text, "  n{from} -> n{to} [label={}];", quoted(&shown(&arrow.label)));
        }
        text.push_str("}\n");
        text
    }

    /// Returns the picture in the language of Mermaid.
    pub fn mermaid(&self) -> String {
        let mut text = String::from("graph LR\n");
        // Mermaid has no escape in quotes but entities.
        let plain =
            |label: &str| shown(label).replace('#', "#35;").replace('"', "#quot;").replace(['<', '>'], " ");
        for (number, one) in self.boxes.iter().enumerate() {
            let (open, close) = if one.is_missing { ("([\"", "\"])") } else { ("[\"", "\"]") };
            let _ = writeln!(text, "  n{number}{open}{}{close}", plain(&one.label));
        }
        for (from, to, arrow) in self.numbered() {
            let _ = writeln!(text, "  n{from} -->|\"{}\"| n{to}", plain(&arrow.label));
        }
        text
    }

    /// Returns the picture as SVG.
    pub fn svg(&self) -> String {
        let boxes = lay_out(self);
        let kinds: BTreeMap<&str, usize> = {
            let mut kinds: Vec<&str> = self.boxes.iter().map(|one| one.kind.as_str()).collect();
            kinds.sort_unstable();
            kinds.dedup();
            kinds.into_iter().enumerate().map(|(number, kind)| (kind, number)).collect()
        };
        let (mut arrows, mut names) = (String::new(), ArrowNames::among(&boxes));
        for (from, to, arrow) in self.numbered() {
            draw_arrow(&mut arrows, &mut names, (&boxes[from], &boxes[to]), from == to, &shown(&arrow.label));
        }
        let margin = 30.0;
        let named = names.taken.iter().map(|(x, y, width)| (*x, *y, width / 2.0, ARROW_NAME_HEIGHT / 2.0));
        let (mut left, mut top, mut right, mut bottom) =
            (f64::INFINITY, f64::INFINITY, f64::NEG_INFINITY, f64::NEG_INFINITY);
        for (x, y, half_width, half_height) in
            boxes.iter().map(|one| (one.x, one.y, one.width / 2.0, BOX_HEIGHT / 2.0)).chain(named)
        {
            (left, right) = (left.min(x - half_width - margin), right.max(x + half_width + margin));
            (top, bottom) = (top.min(y - half_height - margin), bottom.max(y + half_height + margin));
        }
        let legend = 24.0 * (kinds.len() as f64) + 20.0;
        let (left, top, width, height) = match boxes.is_empty() {
            true => (0.0, 0.0, 320.0, 80.0),
            false => (left, top, right - left + 190.0, (bottom - top).max(legend)),
        };
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"{left:.0} {top:.0} {width:.0} {height:.0}\" width=\"{width:.0}\" \
             height=\"{height:.0}\" font-family=\"system-ui, sans-serif\" font-size=\"13\">\n<defs><marker id=\"tip\" viewBox=\"0 0 10 10\" \
             refX=\"9\" refY=\"5\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0L10 5L0 10z\" \
             fill=\"#64748b\"/></marker></defs>\n<rect x=\"{left:.0}\" y=\"{top:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" fill=\"#ffffff\"/>\n"
        );
        if boxes.is_empty() {
            svg.push_str("<text x=\"30\" y=\"45\" fill=\"#64748b\">Nothing to draw yet.</text>\n");
        }
        svg.push_str(&arrows);
        // Below the boxes: the name of an arrow must not hide the name of a box.
        svg.push_str(&names.svg);
        for (one, at) in self.boxes.iter().zip(&boxes) {
            let (fill, border) = COLOURS[kinds[one.kind.as_str()] % COLOURS.len()];
            let dash = if one.is_missing { " stroke-dasharray=\"5 4\"" } else { "" };
            let _ = writeln!(
                svg,
                "<g><title>{}</title><rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{BOX_HEIGHT}\" rx=\"7\" fill=\"{fill}\" \
                 stroke=\"{border}\" stroke-width=\"1.4\"{dash}/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#1a202c\">{}</text></g>",
                escaped(&format!("{} ({}) {}", shown(&one.label), shown(&one.kind), shown(&one.id))),
                at.x - at.width / 2.0,
                at.y - BOX_HEIGHT / 2.0,
                at.width,
                at.x,
                at.y + 4.5,
                escaped(&cut(&one.label)),
            );
        }
        for (kind, number) in &kinds {
            let (fill, border) = COLOURS[number % COLOURS.len()];
            let (x, y) = (left + width - 170.0, top + 18.0 + 24.0 * (*number as f64));
            let _ = writeln!(
                svg,
                "<rect x=\"{x:.0}\" y=\"{y:.0}\" width=\"16\" height=\"14\" rx=\"3\" fill=\"{fill}\" stroke=\"{border}\"/><text x=\"{:.0}\" \
                 y=\"{:.0}\" fill=\"#334155\">{}</text>",
                x + 24.0,
                y + 11.5,
                escaped(&cut(kind)),
            );
        }
        svg.push_str("</svg>\n");
        svg
    }

    /// Returns the places of the boxes, in their order: those of [`Picture::svg`]. For programs that draw the picture in their own style.
    pub fn lay_out(&self) -> Vec<Placed> {
        lay_out(self)
    }

    /// Returns the arrows whose ends are in the picture, with the numbers of their boxes.
    pub fn numbered(&self) -> impl Iterator<Item = (usize, usize, &Arrow)> {
        let numbers: HashMap<&str, usize> =
            self.boxes.iter().enumerate().map(|(number, one)| (one.id.as_str(), number)).collect();
        self.arrows.iter().filter_map(move |arrow| {
            Some((*numbers.get(arrow.from.as_str())?, *numbers.get(arrow.to.as_str())?, arrow))
        })
    }
}

/// The place of a box, in pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Placed {
    /// Its middle, from the left.
    pub x: f64,
    /// Its middle, from above.
    pub y: f64,
    /// Its width.
    pub width: f64,
}

impl Placed {
    /// Returns where a line from the middle of the box to `(x, y)` leaves it.
    pub fn border_towards(&self, x: f64, y: f64) -> (f64, f64) {
        let (dx, dy) = (x - self.x, y - self.y);
        let (half_width, half_height) = (self.width / 2.0 + 2.0, BOX_HEIGHT / 2.0 + 2.0);
        let scale = (half_width / dx.abs().max(1e-9)).min(half_height / dy.abs().max(1e-9)).min(1.0);
        (self.x + dx * scale, self.y + dy * scale)
    }
}

/// The names of arrows, each where it covers no box and no other name: on its arrow, else beside it.
struct ArrowNames<'a> {
    boxes: &'a [Placed],
    /// The middle and width of each name that was drawn.
    taken: Vec<(f64, f64, f64)>,
    svg: String,
}

impl ArrowNames<'_> {
    fn among(boxes: &[Placed]) -> ArrowNames<'_> {
        ArrowNames { boxes, taken: Vec::new(), svg: String::new() }
    }

    fn draw(&mut self, name: &str, places: &[(f64, f64)]) {
        if name.is_empty() {
            return;
        }
        let name = cut(name);
        let width = ARROW_CHARACTER * name.chars().count() as f64;
        let is_free = |(x, y): (f64, f64)| {
            let covers = |other_x: f64, other_y: f64, other_width: f64, other_height: f64| {
                (x - other_x).abs() < (width + other_width) / 2.0
                    && (y - other_y).abs() < (ARROW_NAME_HEIGHT + other_height) / 2.0
            };
            !self.boxes.iter().any(|one| covers(one.x, one.y, one.width, BOX_HEIGHT))
                && !self.taken.iter().any(|(x, y, width)| covers(*x, *y, *width, ARROW_NAME_HEIGHT))
        };
        let mut beside =
            NAME_SHIFTS.iter().flat_map(|shift| places.iter().map(move |(x, y)| (*x, y + shift)));
        let free = beside.find(|place| is_free(*place));
        let Some((x, y)) = free.or(places.first().copied()) else { return };
        self.taken.push((x, y, width));
        let _ = writeln!(
            self.svg,
            "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"10.5\" fill=\"#475569\" stroke=\"#ffffff\" \
             stroke-width=\"3\" paint-order=\"stroke\">{}</text>",
            y + 3.0,
            escaped(&name),
        );
    }
}

fn draw_arrow(
    svg: &mut String,
    names: &mut ArrowNames<'_>,
    (from, to): (&Placed, &Placed),
    is_loop: bool,
    name: &str,
) {
    if is_loop {
        let (x, y) = (from.x + from.width / 4.0, from.y - BOX_HEIGHT / 2.0);
        let _ = writeln!(
            svg,
            "<path d=\"M{:.1} {y:.1}c-6 -26 34 -26 28 -2\" fill=\"none\" stroke=\"#94a3b8\" marker-end=\"url(#tip)\"/>",
            x - 14.0
        );
        return names.draw(name, &[(x, y - 20.0)]);
    }
    let (x1, y1) = from.border_towards(to.x, to.y);
    let (x2, y2) = to.border_towards(from.x, from.y);
    // A slight bend keeps the two directions between the same boxes apart.
    let (dx, dy) = (x2 - x1, y2 - y1);
    let (middle_x, middle_y) = ((x1 + x2) / 2.0 - dy * 0.08, (y1 + y2) / 2.0 + dx * 0.08);
    let _ = writeln!(
        svg,
        "<path d=\"M{x1:.1} {y1:.1}Q{middle_x:.1} {middle_y:.1} {x2:.1} {y2:.1}\" fill=\"none\" stroke=\"#94a3b8\" stroke-width=\"1.2\" \
         marker-end=\"url(#tip)\"/>"
    );
    let on_curve = |at: f64| {
        let (start, bend, end) = ((1.0 - at) * (1.0 - at), 2.0 * at * (1.0 - at), at * at);
        (start * x1 + bend * middle_x + end * x2, start * y1 + bend * middle_y + end * y2)
    };
    names.draw(name, &NAME_PLACES.map(on_curve));
}

fn lay_out(picture: &Picture) -> Vec<Placed> {
    let count = picture.boxes.len();
    let mut degree = vec![0_usize; count];
    let edges: Vec<(usize, usize)> =
        picture.numbered().map(|(from, to, _)| (from, to)).filter(|(from, to)| from != to).collect();
    for (from, to) in &edges {
        degree[*from] += 1;
        degree[*to] += 1;
    }
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by_key(|number| (std::cmp::Reverse(degree[*number]), *number));
    let mut places: Vec<Placed> = picture
        .boxes
        .iter()
        .map(|one| Placed {
            x: 0.0,
            y: 0.0,
            width: 22.0 + CHARACTER * cut(&one.label).chars().count() as f64,
        })
        .collect();
    let widest = places.iter().map(|place| place.width).sum::<f64>() / (count.max(1) as f64);
    let ideal = 95.0 + widest * 0.5;
    for (rank, number) in order.into_iter().enumerate() {
        // The golden angle spreads points of a spiral evenly.
        let (angle, radius) = (rank as f64 * 2.399_963, ideal * 0.62 * (rank as f64).sqrt());
        places[number].x = radius * angle.cos();
        places[number].y = radius * angle.sin();
    }
    // The more boxes there are, the more each is pushed outwards.
    let crowd = 1.0 + count as f64 / 25.0;
    for round in 0..ROUNDS {
        let reach = ideal * 1.5 * (1.0 - round as f64 / ROUNDS as f64) + 0.5;
        let mut forces = vec![(0.0_f64, 0.0_f64); count];
        for one in 0..count {
            for other in one + 1..count {
                let (dx, dy) = (places[one].x - places[other].x, places[one].y - places[other].y);
                let square = (dx * dx + dy * dy).max(1.0);
                let force = ideal * ideal / square;
                let (fx, fy) = (dx * force, dy * force);
                forces[one].0 += fx;
                forces[one].1 += fy;
                forces[other].0 -= fx;
                forces[other].1 -= fy;
            }
        }
        for (from, to) in &edges {
            let (dx, dy) = (places[*to].x - places[*from].x, places[*to].y - places[*from].y);
            let force = (dx * dx + dy * dy).sqrt() / ideal;
            forces[*from].0 += dx * force;
            forces[*from].1 += dy * force;
            forces[*to].0 -= dx * force;
            forces[*to].1 -= dy * force;
        }
        for (place, (fx, fy)) in places.iter_mut().zip(forces) {
            // Parts without an edge between them must not drift away.
            let (fx, fy) = (fx - place.x * 0.18 * crowd, fy - place.y * 0.3 * crowd);
            let length = (fx * fx + fy * fy).sqrt().max(1e-9);
            let step = length.min(reach);
            place.x += fx / length * step;
            place.y += fy / length * step;
        }
    }
    push_apart(&mut places);
    places
}

/// Moves boxes that overlap, each pair along the direction that needs less.
fn push_apart(places: &mut [Placed]) {
    for _ in 0..MAX_PUSHES {
        let mut is_moved = false;
        for one in 0..places.len() {
            for other in one + 1..places.len() {
                let (a, b) = (places[one], places[other]);
                let lack_x = (a.width + b.width) / 2.0 + GAP_X - (a.x - b.x).abs();
                let lack_y = BOX_HEIGHT + GAP_Y - (a.y - b.y).abs();
                if lack_x <= 0.0 || lack_y <= 0.0 {
                    continue;
                }
                is_moved = true;
                if lack_y < lack_x {
                    let push = (lack_y / 2.0 + 0.5) * if a.y >= b.y { 1.0 } else { -1.0 };
                    places[one].y += push;
                    places[other].y -= push;
                } else {
                    let push = (lack_x / 2.0 + 0.5) * if a.x >= b.x { 1.0 } else { -1.0 };
                    places[one].x += push;
                    places[other].x -= push;
                }
            }
        }
        if !is_moved {
            return;
        }
    }
}

/// Returns a label as it stands in a box: on one line, and not too long.
pub fn cut(label: &str) -> String {
    let label = shown(label);
    match label.chars().count() > MAX_LABEL {
        true => label.chars().take(MAX_LABEL - 1).chain(['…']).collect(),
        false => label,
    }
}

fn shown(text: &str) -> String {
    display::one_line(text).into_owned()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn many(count: usize) -> Picture {
        let boxes = (0..count).map(|number| PictureBox {
            id: format!("n{number}"),
            label: format!("memory of thing {number}"),
            kind: ["project", "feedback", "user"][number % 3].to_owned(),
            is_missing: number % 17 == 0,
        });
        let arrows = (1..count).map(|number| Arrow {
            from: format!("n{number}"),
            to: format!("n{}", number / 3),
            label: "links".to_owned(),
        });
        Picture { boxes: boxes.collect(), arrows: arrows.collect() }
    }

    #[test]
    fn no_boxes_overlap_in_a_picture_of_two_hundred() {
        let picture = many(200);
        let places = lay_out(&picture);
        for one in 0..places.len() {
            for other in one + 1..places.len() {
                let (a, b) = (places[one], places[other]);
                let is_apart =
                    (a.x - b.x).abs() >= (a.width + b.width) / 2.0 || (a.y - b.y).abs() >= BOX_HEIGHT;
                assert!(is_apart, "{one} and {other} overlap: {a:?} {b:?}");
            }
        }
        assert_eq!(picture.svg(), many(200).svg(), "the same picture every time");
    }

    /// Returns a picture in which most boxes lead to one of twelve, and every second to some other.
    fn hubs(count: usize) -> Picture {
        let id = |number: usize| format!("n{number}");
        let boxes = (0..count).map(|number| PictureBox {
            id: id(number),
            label: if number < 12 {
                format!("project {number} of the harbour")
            } else {
                format!("keeper {number}")
            },
            kind: if number < 12 { "Project" } else { "Person" }.to_owned(),
            is_missing: false,
        });
        let arrow = |from: usize, to: usize, label: &str| Arrow {
            from: id(from),
            to: id(to),
            label: label.to_owned(),
        };
        let works = (12..count).map(|number| arrow(number, number * 7 % 12, "WorksOn"));
        let knows =
            (12..count).step_by(2).map(|number| arrow(number, 12 + number * 31 % (count - 12), "Knows"));
        Picture { boxes: boxes.collect(), arrows: works.chain(knows).collect() }
    }

    #[test]
    fn names_of_arrows_cover_nothing_in_a_picture_of_two_hundred() {
        for picture in [many(200), hubs(200)] {
            let boxes = lay_out(&picture);
            let mut names = ArrowNames::among(&boxes);
            for (from, to, arrow) in picture.numbered() {
                draw_arrow(
                    &mut String::new(),
                    &mut names,
                    (&boxes[from], &boxes[to]),
                    from == to,
                    &arrow.label,
                );
            }
            let covers = |a: (f64, f64, f64), b: (f64, f64, f64), height: f64| {
                (a.0 - b.0).abs() < (a.2 + b.2) / 2.0 && (a.1 - b.1).abs() < height
            };
            for (number, name) in names.taken.iter().enumerate() {
                let is_on_box = |one: &&Placed| {
                    covers(*name, (one.x, one.y, one.width), (ARROW_NAME_HEIGHT + BOX_HEIGHT) / 2.0)
                };
                assert_eq!(boxes.iter().find(is_on_box), None, "{name:?}");
                let is_on_name = |other: &&(f64, f64, f64)| covers(*name, **other, ARROW_NAME_HEIGHT);
                assert_eq!(names.taken[..number].iter().find(is_on_name), None, "{name:?}");
            }
            assert_eq!(names.taken.len(), picture.arrows.len());
        }
    }

    #[test]
    fn names_of_arrows_move_away_from_boxes_and_each_other() {
        let at = |x: f64| Placed { x, y: 0.0, width: 80.0 };
        let boxes = [at(0.0), at(400.0), at(200.0)];
        let mut names = ArrowNames::among(&boxes);
        draw_arrow(&mut String::new(), &mut names, (&boxes[0], &boxes[1]), false, "links");
        draw_arrow(&mut String::new(), &mut names, (&boxes[0], &boxes[1]), false, "links");
        let [(first, ..), (second, ..)] = names.taken[..] else { panic!("two names: {:?}", names.taken) };
        assert!((first - 200.0).abs() > 40.0 && (first - second).abs() > 20.0, "{first} {second}");
    }

    #[test]
    fn hostile_labels_stay_labels() {
        let label = "</text><script>alert(1)</script>\"]\n\u{1b}[31m # & %%{init}";
        let one = PictureBox {
            id: "a".to_owned(),
            label: label.to_owned(),
            kind: "<b>".to_owned(),
            is_missing: false,
        };
        let arrow = Arrow { from: "a".to_owned(), to: "a".to_owned(), label: label.to_owned() };
        let gone = Arrow { from: "a".to_owned(), to: "gone".to_owned(), label: String::new() };
        let picture = Picture { boxes: vec![one], arrows: vec![arrow, gone] };
        assert!(!picture.svg().contains("<script"), "{}", picture.svg());
        assert_eq!(picture.mermaid().lines().count(), 3, "{}", picture.mermaid());
        assert_eq!(picture.dot().lines().count(), 6, "{}", picture.dot());
        assert!(!picture.mermaid().contains("\"]\""), "{}", picture.mermaid());
        for text in [picture.svg(), picture.dot(), picture.mermaid()] {
            assert!(!text.contains('\u{1b}'));
        }
    }

    #[test]
    fn nothing_makes_a_picture_too() {
        assert!(Picture::default().svg().contains("Nothing to draw yet."));
    }
}
