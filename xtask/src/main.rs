//! The developers' commands: `cargo xtask test`, `check-modules`, `check-crates`, `tools`, `packages`, `dist`, `release`, `bench NAME`, `sim`, `soak`.

mod bench;
mod crates;
mod dist;
mod durations;
mod modules;
mod packages;
mod pictures;
mod planted;
mod release;
mod run;
mod screenshots;
mod sim;
mod soak;
mod source;
mod test;
mod tools;

use std::process::ExitCode;

const USAGE: &str = "\
Usage: cargo xtask COMMAND

  test          Everything that must be green: format, lints, tests, docs, dependencies
  check-modules  No cycle between sibling modules (a second or two)
  check-crates  Only permitted dependencies, features and parts of std in each crate (a second or two)
  tools         Installs the servers that the tests talk to into .tools; `tools all`: those of benchmarks too
  pictures      Makes the pictures of the README from the demo's real output
  dist          The packages that users install, into dist/ [--reuse] [--target TRIPLE]... [PART...]; `dist --check [PART...]` installs and uses them in clean roots
  release       --dry-run [--reuse]: everything that belongs to a release, into dist/; --assemble: installers and checksums for packages that are there
  screenshots   Makes the pictures of the page from a sample memory, with a real browser
  packages      The packages for Python and TypeScript: types, builds, tests with the real SDKs
  bench --plot  Draws the charts of docs/benchmarks.md from its tables
  bench NAME --program FILE  Measures a built program, such as dist/bin/TARGET/haversack, instead of one that is built now
  bench store   Speed of the local store, compared with bare C loops in the same run [--quick]
  bench hooks   Time that an agent waits for a hook, compared with a program that does nothing [--quick]
  bench clouds  Waiting time of a user with two machines and a bucket, compared with rclone on the same server [--quick]
  bench machines  Waiting time of a user with two machines, compared with git on the same files [--quick]
  bench mcp     Time that an agent waits for the MCP server, compared with server-memory on the same memories [--quick]
  bench days    Time of events, summaries, digests, contexts and tidying [--quick]
  bench graph   Time that an agent waits for the graph, compared with server-memory on the same entities [--quick]
  bench merge   Duration of a merge of a file of 1 MB, by rule [--quick]
  bench page    Waiting time of a user for the page, with 50 and 10,000 memories [--quick]
  bench recall  Quality and speed of recall, compared with plain FTS5 and server-memory [--data DIR] [--quick]
  bench secrets  Speed of the search for secrets [--quick]
  bench sync    Cost of a sync in time and requests, over memory and over directories [--quick]
  bench vault   Cost of a synced folder, compared with one directory as a remote [--quick]
  bench verbs   Speed of the verbs, compared with the Anthropic SDK's memory tool and bare C loops [--quick]
  recall score  Scores a ranking: QRELS.jsonl (a question and its answers a line) and RUN.jsonl (a question and its hits a line, best first)
  sim           Schedules of devices, crashes and bad links [--vault | --weave | --lost | --tidy] [--from SEED] [--seeds N | --minutes M], --explain SEED, --shrink SEED, --mutants
  soak          The long versions of the tests that race, crash and attack
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["test"] => test::run(),
        ["check-modules"] => modules::run(),
        ["check-crates"] => crates::run().and_then(|()| planted::check_features()),
        ["tools", options @ ..] => tools::run(options),
        ["packages"] => packages::run(),
        ["pictures"] => pictures::run(),
        ["dist", options @ ..] => dist::run(options),
        ["release", options @ ..] => release::run(options),
        ["bench", "--plot"] => pictures::charts::run(),
        ["screenshots"] => screenshots::run(),
        ["bench", "store", options @ ..] => bench::store(options),
        ["bench", "hooks", options @ ..] => bench::hooks(options),
        ["bench", "clouds", options @ ..] => bench::clouds(options),
        ["bench", "machines", options @ ..] => bench::machines(options),
        ["bench", "mcp", options @ ..] => bench::mcp(options),
        ["bench", "days", options @ ..] => bench::days(options),
        ["bench", "graph", options @ ..] => bench::graph(options),
        ["bench", "page", options @ ..] => bench::page(options),
        ["bench", "merge", options @ ..] => bench::merge(options),
        ["bench", "secrets", options @ ..] => bench::secrets(options),
        ["bench", "recall", options @ ..] => bench::recall(options),
        ["recall", "score", options @ ..] => bench::score_recall(options),
        ["bench", "sync", options @ ..] => bench::sync(options),
        ["bench", "vault", options @ ..] => bench::vault(options),
        ["bench", "verbs", options @ ..] => bench::verbs(options),
        ["sim", options @ ..] => sim::run(options),
        ["soak"] => soak::run(),
        ["help" | "--help" | "-h"] => {
            run::say(USAGE);
            Ok(())
        }
        _ => {
            run::say(USAGE);
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            run::say(&format!("\n{why}\n"));
            ExitCode::FAILURE
        }
    }
}
