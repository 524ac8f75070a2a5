//! Syncs a directory through a bucket: `sync_directory DIRECTORY STATE URL DEVICE`.

use std::sync::Arc;

use haversack::home::{self, Home, HomeReport, Meeting, Round, Work};
use haversack::store::{Capabilities, DeviceLocal, OpenOptions, Registry, Settings, block_on};
use haversack::sync::{Author, Context};
use haversack_system::{Backoff, RandomIds, SystemClock};

type Error = Box<dyn std::error::Error>;

/// Sends the directory's changes to the bucket, and merges in those of other machines.
pub(crate) fn sync(
    [directory, state, url, device]: [&str; 4],
    settings: Settings,
) -> Result<HomeReport, Error> {
    let locks = format!("{state}/locks");
    let files = Arc::new(DeviceLocal::open(directory, &locks)?);
    let records = Arc::new(DeviceLocal::open(format!("{state}/records"), &locks)?);
    let options = OpenOptions { address: url.to_owned(), settings, ..OpenOptions::default() };
    let required = Capabilities { create_if_absent: true, ..Capabilities::default() };
    let kind = if url.starts_with("gs://") { "gcs" } else { "s3" };
    let bucket = Registry::standard().select(kind, &options, &required)?;
    let author = Author { device: device.to_owned(), ..Author::default() };
    let patience = Backoff::new();
    let context = Context { patience: &patience, ..Context::new(&SystemClock, &RandomIds, &author) };
    let home = Home::new(directory, files, records, Vec::new());
    Ok(block_on(home::sync(&home, &Meeting::log(bucket), context, &Round::new(Work::Sync)))?)
}

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, state, url, device] = &arguments[..] else {
        return Err("usage: sync_directory DIRECTORY STATE URL DEVICE".into());
    };
    // The region, the endpoint and the keys, as the tools of the cloud name them: AWS_REGION, AWS_ACCESS_KEY_ID …
    let settings = std::env::vars().collect();
    sync([directory, state, url, device], settings).map(drop)
}
