//! Measures the start of `haversack` for one view.

use haversack_bench::Outcome;
use haversack_bench::bare::Spent;
use haversack_bench::measure::{Nanoseconds, median};
use haversack_bench::table::{Goal, Table};

use crate::site::Site;
use crate::steps::text;

/// The number of starts of each process.
const STARTS: usize = 50;

/// How the bare loop starts `haversack` on the memory of ours in process.
pub(crate) const HAVERSACK: [&str; 3] = ["./haversack", "--home", "../ours"];

/// Measures a look at a file by a process that ends afterwards, beside one that does nothing at all.
pub(crate) fn processes(site: &Site) -> Outcome<Table> {
    let title = format!("A process for one look on {}, warm", site.filesystem);
    let mut table = Table::new(title, &["what", "CPU p50 ms", "elapsed p50 ms"]);
    site.make_dir("cold")?;
    site.fill("cold/10.md", &text(10 * 1024))?;
    site.calm();
    let looks = [HAVERSACK.as_slice(), &["view", "cold/10.md"]].concat();
    let processes = [
        ("`haversack view`, 10 KB", looks.as_slice(), Goal::Within(10.0)),
        ("a C program that ends at once", &["./nothing"], Goal::Reported),
    ];
    let mut spent = processes.map(|_| Vec::new());
    for start in 0..=STARTS {
        for ((_, words, _), spent) in processes.iter().zip(&mut spent) {
            let once = site.bare.spawn(words)?;
            if start > 0 {
                spent.push(once);
            }
        }
    }
    for ((what, _, goal), spent) in processes.iter().zip(&spent) {
        let of = |field: fn(&Spent) -> Nanoseconds| median(spent.iter().map(|spent| field(spent) as f64));
        let (cpu, elapsed) = (of(|spent| spent.cpu), of(|spent| spent.elapsed));
        let shown = [cpu, elapsed].map(|nanoseconds| format!("{:.2}", nanoseconds / 1e6));
        let cells = [(*what).to_owned()].into_iter().chain(shown);
        table.row(cells.collect(), *goal, cpu / 1e6);
    }
    Ok(table)
}
