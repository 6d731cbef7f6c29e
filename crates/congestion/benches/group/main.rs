//! What a weighted group costs a packet that is sent and acknowledged, by its members, beside as many flows
//! without a group: the judging of who shares a bottleneck included.
//!
//! `cargo bench -p anabranch-congestion` runs both by turns, and prints the least of several rounds.
//! `cargo bench -p anabranch-congestion --bench group -- seldom grouped 1000 1` is one course, one of both,
//! so many members and so many rounds.
#![expect(clippy::disallowed_types, clippy::disallowed_methods, reason = "a benchmark has a clock")]

mod course;
mod ways;

use std::time::Instant;

use course::{COURSES, Course};
use ways::{Grouped, Ungrouped};

const MEMBERS: [u64; 4] = [10, 100, 1000, 5000];
const ROUNDS: u64 = 5;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let numbers: Vec<u64> = words.iter().filter_map(|word| word.parse().ok()).collect();
    let is_asked = |name: &str, of: &[&str]| {
        words.iter().any(|word| word == name) || !words.iter().any(|word| of.contains(&word.as_str()))
    };
    let names = COURSES.map(|course| course.name);
    let rounds = numbers.get(1).copied().unwrap_or(ROUNDS);
    println!("ns a packet      members  ungrouped  grouped     more");
    for course in COURSES.iter().filter(|course| is_asked(course.name, &names)) {
        for members in MEMBERS.into_iter().filter(|_| numbers.is_empty()).chain(numbers.first().copied()) {
            let mut least = [f64::INFINITY; 2];
            for _ in 0..rounds {
                if is_asked("ungrouped", &["grouped", "ungrouped"]) {
                    least[0] = least[0].min(nanoseconds(course, members, Ungrouped::new));
                }
                if is_asked("grouped", &["grouped", "ungrouped"]) {
                    least[1] = least[1].min(nanoseconds(course, members, Grouped::new));
                }
            }
            let [ungrouped, grouped] = least;
            let more = grouped - ungrouped;
            println!("{:<15} {members:>8} {ungrouped:>10.0} {grouped:>8.0} {more:>8.0}", course.name);
        }
    }
}

/// What a packet of a course takes.
fn nanoseconds<W: ways::Way>(course: &Course, members: u64, new: impl Fn(&Course, u64) -> W) -> f64 {
    let mut way = new(course, members);
    let began = Instant::now();
    let packets = course.run(members, &mut way);
    began.elapsed().as_nanos() as f64 / packets as f64
}
