//! A directory on some filesystem in which all sides work, each with a tree of its own under the same keys.

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haversack::Memory;
use haversack::memory_tool::MemoryTool;
use haversack::store::DeviceLocal;
use haversack_bench::bare::Bare;
use haversack_bench::measure::{Contender, Race};
use haversack_bench::scratch::Scratch;
use haversack_bench::{Outcome, machine};

use crate::sdk::Sdk;
use crate::sides::{Bridge, VIEW_CHARACTERS, contender};
use crate::steps::Step;

/// The directories of the sides, below the site.
const FILES: [&str; 4] = ["ours/memory", "bridge/memory", "bare", "sdk/memories"];

/// The programs that take part.
pub(crate) struct Programs {
    pub(crate) haversack: PathBuf,
    pub(crate) bare: PathBuf,
    /// A Python that has the SDK, if there is one.
    pub(crate) python: Option<PathBuf>,
}

/// The directory where the sides work.
pub(crate) struct Site {
    pub(crate) filesystem: String,
    /// Ours in process; `haversack --home` finds it at `../ours` from where the bare loop works.
    pub(crate) memory: Memory,
    pub(crate) tool: RefCell<MemoryTool>,
    pub(crate) bridge: RefCell<Bridge>,
    pub(crate) bare: Bare,
    pub(crate) sdk: Option<RefCell<Sdk>>,
    pub(crate) sdk_version: Option<String>,
    // Last, so that the children have ended when their directory goes.
    scratch: Scratch,
}

/// The order of the contenders in a race of all sides; the SDK is not always there.
pub(crate) const OURS: usize = 0;
pub(crate) const BRIDGE: usize = 1;
pub(crate) const BARE: usize = 2;
pub(crate) const SDK: usize = 3;

impl Site {
    pub(crate) fn open(scratch: Scratch, filesystem: String, programs: &Programs) -> Outcome<Site> {
        let path = scratch.path();
        for files in FILES {
            fs::create_dir_all(path.join(files))?;
        }
        let Programs { haversack, bare, python } = programs;
        // The bare loop starts them under names without spaces, wherever they come from.
        fs::copy(haversack, path.join("bare/haversack"))?;
        fs::copy(bare, path.join("bare/nothing"))?;
        let memory = open_memory(&path.join("ours"))?;
        let tool = MemoryTool::new(memory.clone()).with_view_characters(VIEW_CHARACTERS);
        let bridge = Bridge::start(haversack, &path.join("bridge"))?;
        let bare = Bare::start(bare, &path.join("bare"))?;
        let sdk = python.as_ref().map(|python| Sdk::start(python, &path.join("sdk"))).transpose()?;
        Ok(Site {
            filesystem,
            memory,
            tool: RefCell::new(tool),
            bridge: RefCell::new(bridge),
            bare,
            sdk_version: sdk.as_ref().map(|sdk| sdk.version.clone()),
            sdk: sdk.map(RefCell::new),
            scratch,
        })
    }

    /// Returns a place below the site.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// Makes a directory for all sides, past them.
    pub(crate) fn make_dir(&self, key: &str) -> Outcome<()> {
        self.each(key).try_for_each(|path| Ok(fs::create_dir_all(path)?))
    }

    /// Makes a file for all sides, past them, in a directory that is there.
    pub(crate) fn fill(&self, key: &str, text: &str) -> Outcome<()> {
        self.each(key).try_for_each(|path| Ok(fs::write(path, text)?))
    }

    /// Makes a file for ours in process alone, past it, in a directory that is there.
    pub(crate) fn fill_ours(&self, key: &str, text: &str) -> Outcome<()> {
        Ok(fs::write(self.path(FILES[OURS]).join(key), text)?)
    }

    /// Waits until what was filled in has reached the disk and does not disturb what is measured.
    pub(crate) fn calm(&self) {
        machine::calm(self.scratch.path());
    }

    /// Lets all sides carry out the same steps, and the bare loop do `bare`.
    pub(crate) fn race<'a, S: Fn(usize) -> Vec<Step> + 'a>(
        &'a self,
        rounds: usize,
        steps: impl Fn() -> S,
        bare: Contender<'a>,
    ) -> Outcome<Race> {
        let mut contenders = vec![contender(&self.tool, steps()), contender(&self.bridge, steps()), bare];
        if let Some(sdk) = &self.sdk {
            contenders.push(contender(sdk, steps()));
        }
        Race::run(rounds, contenders)
    }

    fn each(&self, key: &str) -> impl Iterator<Item = PathBuf> {
        FILES.into_iter().map(move |files| self.path(files).join(key))
    }
}

/// Opens the memory of `home` as the binary does.
fn open_memory(home: &Path) -> Outcome<Memory> {
    let locks = home.join("state/locks");
    let files = DeviceLocal::open(home.join("memory"), &locks)?;
    let state = DeviceLocal::open(home.join("state/default"), &locks)?;
    Ok(Memory::new(Arc::new(files), Arc::new(state)))
}
