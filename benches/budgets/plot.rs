//! Draws the cost of the verbs against the size of the session, with logarithmic axes.

use std::fmt::Write;
use std::path::Path;

use talktree::Durability;

use crate::compacted_history::with_compacted;
use crate::growth::VERBS;
use crate::measure::{Rounds, repeat, timed, timed_each};
use crate::messages::{Length, Speaker};
use crate::table::{Unit, show};
use crate::{Bench, Result, floor, short};

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 460.0;
/// Left, top, right, bottom of the drawing area.
const FRAME: (f64, f64, f64, f64) = (70.0, 50.0, 560.0, 400.0);
const COLOURS: [&str; 8] =
    ["#4269d0", "#efb118", "#ff725c", "#6cc5b0", "#3ca951", "#a463f2", "#97bbf5", "#9c6b4e"];

/// A line: its name and its points (messages, seconds).
struct Line {
    name: String,
    points: Vec<(f64, f64)>,
}

pub(crate) fn draw(bench: &mut Bench, folder: &Path) -> Result<()> {
    let mut lines: Vec<Line> = Vec::new();
    let mut add = |name: &str, size: usize, seconds: f64| {
        println!("{name} at {}: {}", short(size), show(Unit::Seconds, seconds));
        let point = (size as f64, seconds);
        match lines.iter_mut().find(|line| line.name == name) {
            Some(line) => line.points.push(point),
            None => lines.push(Line { name: name.to_owned(), points: vec![point] }),
        }
    };
    let mut size = 1_000;
    while size <= bench.million {
        let sized = bench.stores.sized(size)?;
        let rounds = Rounds { most: 300, ..Rounds::default() };
        let compacted = with_compacted(&sized, || {
            repeat(rounds, || timed_each(10, || Ok(sized.long.history()?)))
        })?;
        add("history, 20 messages visible", size, compacted.median());
        let mut speaker = Speaker::new(17, Length::Short);
        for (name, verb) in VERBS {
            add(name, size, repeat(rounds, || verb(&sized, &mut speaker))?.median());
        }
        sized.long.checkout(&sized.last)?;
        let conn = floor::open(&sized.path, Durability::Normal)?;
        let leaf = (1_i64 << 32) + size as i64;
        let rounds = Rounds { least: 3, most: 30, ..Rounds::default() };
        let query = repeat(rounds, || timed(|| floor::read(&conn, floor::PATH_BY_PARENT, [leaf])))?;
        add("recursive query by parent", size, query.median());
        size *= 10;
    }
    std::fs::create_dir_all(folder)?;
    let file = folder.join("cost.svg");
    std::fs::write(&file, picture(&lines)?)?;
    println!("wrote {}", file.display());
    Ok(())
}

fn picture(lines: &[Line]) -> Result<String> {
    let points = || lines.iter().flat_map(|line| &line.points);
    let (min_x, max_x) = bounds(points().map(|point| point.0));
    let (min_y, max_y) = bounds(points().map(|point| point.1));
    let (left, top, right, bottom) = FRAME;
    let x = |size: f64| left + (size.log10() - min_x) / (max_x - min_x) * (right - left);
    let y = |time: f64| bottom - (time.log10() - min_y) / (max_y - min_y) * (bottom - top);
    let mut svg = String::new();
    writeln!(
        svg,
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="system-ui, sans-serif" font-size="12" fill="#555">
<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>
<text x="{left}" y="26" font-size="15" fill="#222">Cost of a verb by session size</text>"##
    )?;
    for power in min_y as i32..=max_y as i32 {
        let (at, label) = (y(10_f64.powi(power)), show(Unit::Seconds, 10_f64.powi(power)));
        writeln!(
            svg,
            r##"<line x1="{left}" x2="{right}" y1="{at:.1}" y2="{at:.1}" stroke="#ddd"/>
<text x="{:.1}" y="{:.1}" text-anchor="end">{label}</text>"##,
            left - 8.0,
            at + 4.0
        )?;
    }
    for power in min_x as i32..=max_x as i32 {
        let (at, label) = (x(10_f64.powi(power)), short(10_usize.pow(power as u32)));
        writeln!(
            svg,
            r##"<line x1="{at:.1}" x2="{at:.1}" y1="{top}" y2="{bottom}" stroke="#eee"/>
<text x="{at:.1}" y="{:.1}" text-anchor="middle">{label}</text>"##,
            bottom + 20.0
        )?;
    }
    let ends = spread(lines.iter().map(|line| line.points.last().map_or(0.0, |last| y(last.1))));
    for ((line, colour), end) in lines.iter().zip(COLOURS).zip(ends) {
        let path: Vec<String> = line
            .points
            .iter()
            .map(|(size, time)| format!("{:.1},{:.1}", x(*size), y(*time)))
            .collect();
        let last = line.points.last().map_or(0.0, |last| last.1);
        writeln!(
            svg,
            r##"<polyline points="{}" fill="none" stroke="{colour}" stroke-width="2"/>
<text x="{:.1}" y="{:.1}" fill="{colour}">{}, {}</text>"##,
            path.join(" "),
            right + 10.0,
            end + 4.0,
            line.name,
            show(Unit::Seconds, last)
        )?;
    }
    writeln!(
        svg,
        r##"<text x="{:.1}" y="{:.1}" text-anchor="middle">messages in the session</text>
</svg>"##,
        f64::midpoint(left, right),
        HEIGHT - 16.0
    )?;
    Ok(svg)
}

/// Returns the exponents of the powers of ten around the figures.
fn bounds(figures: impl Iterator<Item = f64>) -> (f64, f64) {
    let (min, max) = figures.fold((f64::MAX, 0.0_f64), |(min, max), it| (min.min(it), max.max(it)));
    (min.log10().floor(), max.log10().ceil())
}

/// Moves labels apart that would overlap.
fn spread(ys: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut ys: Vec<(usize, f64)> = ys.enumerate().collect();
    ys.sort_by(|a, b| b.1.total_cmp(&a.1));
    for at in 1..ys.len() {
        ys[at].1 = ys[at].1.min(ys[at - 1].1 - 16.0);
    }
    ys.sort_by_key(|y| y.0);
    ys.into_iter().map(|y| y.1).collect()
}
