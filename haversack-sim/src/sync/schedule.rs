//! Decides all actions before the first is played, so that parts can be left out.
//!
//! Every action has a seed of its own, and from it a stream of random numbers for each purpose: leaving actions out does not
//! change what the rest means.

use std::time::Duration;

use haversack::day::Day;
use haversack::planted::Planted;
use haversack::sync::Mirror;

use super::memory::Outside;
use super::sheet::Sheets;
use super::store::Model;
use super::weather::Weather;
use crate::random::Random;

/// The most devices there are, copies included.
const MAX_DEVICES: usize = 5;

/// The most actions of a schedule.
const MAX_ACTIONS: usize = 200;

/// The most steps that a sync in haste has time for.
const MAX_STEPS: usize = 8;

/// The most effects that a process makes before something else happens.
const MAX_EFFECTS: usize = 40;

/// About as many effects as a sync makes that has little to do.
const MANY_EFFECTS: usize = 200;

/// In one of how many schedules users rename files.
const RENAMING: usize = 4;

/// One in how many times that a user does something to a file it is a rename, where users rename files.
const RENAMES: usize = 4;

/// In one of how many schedules devices have bound directories, agents sign, and a gate holds files back.
const HOMES: usize = 4;

/// One in how many edits is signed by an agent, where agents sign.
const SIGNED: usize = 3;

/// One in how many edits writes a secret, where a gate holds files back.
const SECRETS: usize = 8;

/// The purpose of random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    Users,
    Faults,
    Store,
    Disk,
    Ids,
    Clock,
    Folding,
    TimeLimits,
    Renames,
    Homes,
    Ageing,
    Shortening,
}

/// Returns the random numbers for a purpose, from a seed.
pub(crate) fn stream(seed: u64, who: Stream) -> Random {
    let who = who as u64 + 1;
    Random::new(Random::new(seed ^ who.wrapping_mul(0x2545_f491_4f6c_dd1d)).number())
}

/// The storage where the devices meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meeting {
    /// At one log, in a remote.
    Log,
    /// In a folder that a sync client replicates.
    Vault,
    /// At one log, in a remote that is wiped, restored from a backup and replaced by another store.
    Lost,
    /// At one log, while days go by and devices tidy.
    Aged,
    /// At one log whose old commits lose their contents.
    Shortened,
}

/// How days go by in a schedule whose devices tidy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ageing {
    /// The days between two actions.
    pub(crate) days_per_action: usize,
    /// The days between the last action and the end.
    pub(crate) days_at_the_end: i32,
    /// Tells if clocks jump, by up to a year.
    pub(crate) jumps: Jumps,
}

/// Tells if the clocks of devices that tidy jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Jumps {
    Never,
    Sometimes,
}

impl Ageing {
    fn any(random: &mut Random) -> Ageing {
        Ageing {
            days_per_action: random.between(0, 3),
            days_at_the_end: [0, 0, 40, 800][random.between(0, 3)],
            jumps: if random.between(1, 3) == 1 { Jumps::Sometimes } else { Jumps::Never },
        }
    }
}

/// The losses of a remote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// It is backed up.
    BackUp,
    /// Everything in it is gone.
    Wipe,
    /// The backup is put back.
    RollBack,
    /// Another store is in its place; the next time, the first one is back.
    Swap,
}

/// Everything that is going to happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    pub(crate) seed: u64,
    pub(crate) meeting: Meeting,
    pub(crate) devices: Vec<Planned>,
    pub(crate) model: Model,
    pub(crate) weather: Weather,
    pub(crate) ground: DeviceStorage,
    pub(crate) outside: Outside,
    /// The files that users work on.
    pub(crate) sheets: Sheets,
    /// Tells if there are plain objects beside the log.
    pub(crate) mirror: Mirror,
    /// Tells if some syncs have little time.
    pub(crate) haste: TimeLimits,
    /// Tells if users rename files by case.
    pub(crate) renames: Renames,
    /// Returns true if devices have bound directories, agents sign, and a gate holds files back.
    pub(crate) homes: Homes,
    /// How days go by, if devices tidy.
    pub(crate) ageing: Ageing,
    /// The number of actions in a tick of the filesystems' clock.
    pub(crate) actions_per_tick: usize,
    pub(crate) actions: Vec<Action>,
}

/// Tells if some syncs have little time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeLimits {
    Never,
    Sometimes,
}

/// Tells if users rename files by case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Renames {
    Never,
    Sometimes,
}

/// The directories of a device, and who writes into them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Homes {
    /// One memory directory, and users.
    Plain,
    /// Directories bound to prefixes too, agents that sign, and a gate.
    Bound,
}

/// The agents that sign.
pub(crate) const AGENTS: [&str; 2] = ["agent-a", "agent-b"];

/// The time of a sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Time {
    /// All that it takes.
    Enough,
    /// For so many steps.
    Steps(usize),
}

/// The devices' own storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeviceStorage {
    /// In memory: fast.
    Memory,
    /// The real backend on a disk that crashes.
    Crashing,
}

/// A device as it is planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Planned {
    pub(crate) begins: Begins,
    /// The most processes that sync it at once.
    pub(crate) processes: usize,
}

/// How a device comes into being.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begins {
    Empty,
    AsCopy,
    Never,
}

/// Something that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Action {
    /// Its number before other actions were left out: it names the user's units.
    pub(crate) number: usize,
    pub(crate) seed: u64,
    pub(crate) what: What,
}

/// The task of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// It syncs.
    Sync,
    /// And lets positions say which segment has their commit.
    Compact,
    /// And brings the mirror up to date.
    Mirror,
    /// It looks at everything again.
    Reconcile,
    /// It rebuilds the store in a remote that was lost, or follows who did, and syncs.
    Rebuild,
    /// It syncs, tidies, and syncs again.
    Tidy,
}

/// An action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// A user or a program does something to a file.
    Edit {
        device: usize,
    },
    /// A process starts to sync.
    Sync {
        device: usize,
        process: usize,
        task: Task,
    },
    /// A program that does not know of Haversack changes a plain object beside the log.
    Meddle,
    /// An attacker puts a forged checkpoint there.
    Forge,
    /// The remote is lost while no device syncs.
    Lose(Loss),
    /// A process goes on for some effects.
    GoOn {
        device: usize,
        process: usize,
        effects: usize,
    },
    /// A process dies.
    Die {
        device: usize,
        process: usize,
    },
    /// A device stops, with all its processes.
    Stop {
        device: usize,
    },
    GoOffline {
        device: usize,
    },
    ComeOnline {
        device: usize,
    },
    /// A request that was delayed arrives.
    Arrive,
    /// Files and state of a device are copied to a new one.
    Copy {
        from: usize,
        to: usize,
    },
    /// Files and state of a device are copied aside.
    BackUp {
        device: usize,
    },
    /// And put back.
    Restore {
        device: usize,
    },
    /// The working directory is not there any more, as a disk that was taken out.
    Vanish {
        device: usize,
    },
    /// And is back.
    Return {
        device: usize,
    },
    /// A user binds, unbinds or moves a directory, or one goes away or is back.
    Arrange {
        device: usize,
    },
    /// Users allow all secrets that the gate holds back.
    Allow,
    /// There is no space left on a device.
    FillUp {
        device: usize,
    },
    /// And there is again.
    MakeRoom {
        device: usize,
    },
}

impl What {
    /// Returns true if a device has a part in it.
    pub(crate) fn concerns(self, number: usize) -> bool {
        match self {
            What::Arrive | What::Meddle | What::Forge | What::Allow | What::Lose(_) => false,
            What::Copy { from, to } => from == number || to == number,
            What::Edit { device }
            | What::Sync { device, .. }
            | What::GoOn { device, .. }
            | What::Die { device, .. }
            | What::Stop { device }
            | What::GoOffline { device }
            | What::ComeOnline { device }
            | What::BackUp { device }
            | What::Restore { device }
            | What::Vanish { device }
            | What::Return { device }
            | What::Arrange { device }
            | What::FillUp { device }
            | What::MakeRoom { device } => device == number,
        }
    }
}

/// The optional actions of a schedule: each schedule has some of them.
struct Swarm {
    copies: bool,
    backups: bool,
    vanishing: bool,
    full: bool,
    compaction: bool,
    mirror: bool,
    forgery: bool,
}

impl Swarm {
    /// Returns what a process does.
    fn task(&self, random: &mut Random) -> Task {
        match random.between(0, 9) {
            0..=2 if self.compaction => Task::Compact,
            3..=5 if self.mirror => Task::Mirror,
            6 | 7 if self.mirror => Task::Reconcile,
            _ => Task::Sync,
        }
    }
}

/// The state of a device while a schedule is made.
#[derive(Clone, Copy, Default)]
struct DeviceState {
    is_offline: bool,
    is_away: bool,
    is_full: bool,
    has_backup: bool,
}

/// The most seconds that a remote keeps contents where old commits lose them, and those that it keeps positions and objects. Its clock counts a second
/// for every write.
pub(crate) const MAX_KEPT_SECONDS: usize = 20;
pub(crate) const KEPT_POSITIONS: Duration = Duration::from_secs(10);

/// Returns the day of the oldest log that users write.
fn first_day() -> Day {
    "2026-11-04".parse().expect("a day")
}

impl Schedule {
    /// Returns the schedule of a seed.
    pub fn of(seed: u64) -> Schedule {
        Schedule::at(Meeting::Log, seed)
    }

    /// Returns the schedule of a seed, somewhere.
    pub fn at(meeting: Meeting, seed: u64) -> Schedule {
        let mut random = Random::new(seed);
        let count = random.between(1, 4);
        let model = Model::any(&mut random);
        let weather = Weather::swarm(&mut random);
        let outside = if random.coin() { Outside::Ticks } else { Outside::Versions };
        let actions_per_tick = random.between(1, 12);
        let sheets = Sheets::any(&mut random);
        let mut one_in = |most: usize| random.between(1, most) == 1;
        let ground = if one_in(16) { DeviceStorage::Crashing } else { DeviceStorage::Memory };
        let swarm = Swarm {
            copies: one_in(3),
            backups: one_in(3),
            vanishing: one_in(4),
            full: one_in(4),
            compaction: one_in(2),
            mirror: one_in(4),
            forgery: one_in(6),
        };
        // Imports from the mirror are in files that no log names yet: if those vanish, no one could know.
        let swarm = Swarm { vanishing: swarm.vanishing && !swarm.mirror, ..swarm };
        let swarm = match meeting {
            Meeting::Log => swarm,
            // A device's own log is its own, so it is not forged.
            // A machine that is copied with its disk, inode by inode, writes as the same device.
            Meeting::Vault => {
                let copies = swarm.copies && ground == DeviceStorage::Memory;
                Swarm { forgery: false, copies, ..swarm }
            }
            // Changes that were published to a lost remote are only on the devices that had read them: these devices stay.
            // A forged checkpoint keeps late devices out until another device looks at everything: a test of its own shows that.
            Meeting::Shortened => Swarm { compaction: true, forgery: false, ..swarm },
            Meeting::Lost | Meeting::Aged => Swarm {
                copies: false,
                backups: false,
                vanishing: false,
                mirror: false,
                forgery: false,
                ..swarm
            },
        };
        let mut of_homes = stream(seed, Stream::Homes);
        let homes = match of_homes.between(1, HOMES) {
            1 if !matches!(meeting, Meeting::Lost | Meeting::Aged) => Homes::Bound,
            _ => Homes::Plain,
        };
        // Bound directories are in memory, and are neither copied nor backed up with their device.
        let (swarm, ground, sheets) = match homes {
            Homes::Plain => (swarm, ground, sheets),
            Homes::Bound => (
                Swarm { copies: false, backups: false, vanishing: false, ..swarm },
                DeviceStorage::Memory,
                sheets.in_directories(&mut of_homes),
            ),
        };
        let sheets = if meeting == Meeting::Aged { sheets.aged() } else { sheets };
        // Of three devices one can have seen a line that the second has removed and the third, which rebuilds, has never seen: see docs/adr/0029.
        let count = if meeting == Meeting::Lost { 2 } else { count };
        let planned = |begins, random: &mut Random| Planned { begins, processes: random.between(1, 2) };
        let mut schedule = Schedule {
            seed,
            meeting,
            devices: (0..count).map(|_| planned(Begins::Empty, &mut random)).collect(),
            model,
            weather,
            ground,
            outside,
            sheets,
            mirror: if swarm.mirror { Mirror::On } else { Mirror::Off },
            haste: match stream(seed, Stream::TimeLimits).between(1, 4) {
                1 => TimeLimits::Sometimes,
                _ => TimeLimits::Never,
            },
            renames: match stream(seed, Stream::Renames).between(1, RENAMING) {
                // In a folder both names stay: see docs/adr/0031.
                1 if meeting == Meeting::Log && homes == Homes::Plain => Renames::Sometimes,
                _ => Renames::Never,
            },
            homes,
            ageing: Ageing::any(&mut stream(seed, Stream::Ageing)),
            actions_per_tick,
            actions: Vec::new(),
        };
        let mut moods = [DeviceState::default(); MAX_DEVICES];
        let most = random.between(30, MAX_ACTIONS);
        while schedule.actions.len() < most {
            let next = schedule.next(&swarm, &mut moods, &mut random);
            if let What::Copy { .. } = next {
                let copy = planned(Begins::AsCopy, &mut random);
                schedule.devices.push(copy);
            }
            for what in schedule.led_up_to(next, &mut random) {
                let number = schedule.actions.len();
                schedule.actions.push(Action { number, seed: random.number(), what });
            }
        }
        schedule
    }

    /// Returns how much time a sync has that begins with an action.
    pub(crate) fn time(&self, action: Action) -> Time {
        let mut random = stream(action.seed, Stream::TimeLimits);
        match self.haste {
            TimeLimits::Sometimes if random.coin() => Time::Steps(random.between(0, MAX_STEPS)),
            TimeLimits::Sometimes | TimeLimits::Never => Time::Enough,
        }
    }

    /// Returns true if the user of an edit renames the file, if it is there.
    pub(crate) fn is_rename(&self, action: Action) -> bool {
        self.renames == Renames::Sometimes && stream(action.seed, Stream::Renames).between(1, RENAMES) == 1
    }

    /// Returns the agent that signs an edit; `None` if it is a user's.
    pub(crate) fn agent(&self, action: Action) -> Option<&'static str> {
        let mut random = stream(action.seed, Stream::Homes);
        let is_signed = self.homes == Homes::Bound && random.between(1, SIGNED) == 1;
        is_signed.then(|| AGENTS[random.between(0, AGENTS.len() - 1)])
    }

    /// Returns true if an edit writes a secret.
    pub(crate) fn is_secret(&self, action: Action) -> bool {
        let mut random = stream(action.seed.rotate_left(1), Stream::Homes);
        (self.homes == Homes::Bound || self.meeting == Meeting::Aged) && random.between(1, SECRETS) == 1
    }

    /// Returns the day on which an action happens; the last one if there is no such action any more.
    pub(crate) fn day(&self, number: usize) -> Day {
        let days = i32::try_from(number * self.ageing.days_per_action).expect("few actions");
        first_day().plus(days)
    }

    /// Returns the day on which all ends.
    pub(crate) fn last_day(&self) -> Day {
        self.day(self.actions.last().map_or(0, |action| action.number)).plus(self.ageing.days_at_the_end)
    }

    /// Returns the day that a device's clock shows when it begins to tidy.
    pub(crate) fn shown_day(&self, action: Action) -> Day {
        let mut random = stream(action.seed, Stream::Ageing);
        let day = self.day(action.number);
        let is_off = self.ageing.jumps == Jumps::Sometimes && random.between(1, 6) == 1;
        let days = i32::try_from(random.between(0, 800)).expect("small") - 400;
        if is_off { day.plus(days) } else { day }
    }

    /// Returns how many actions there are.
    pub fn len(&self) -> usize {
        self.actions.len()
    }

    /// Returns true if nothing happens.
    pub fn is_empty(&self) -> bool {
        self.actions.is_empty()
    }

    /// Returns true if a mistake can make a difference in it, as far as that can be told beforehand.
    pub fn may_show(&self, planted: Planted) -> bool {
        match planted {
            Planted::StaleStatTrusted => {
                self.outside == Outside::Ticks && self.ground == DeviceStorage::Memory
            }
            Planted::ForeignOverwritten | Planted::MergesAreNotAnnounced | Planted::StrangeIsAnEdit => {
                self.mirror == Mirror::On
            }
            planted if Planted::IN_HOMES.contains(&planted) => self.homes == Homes::Bound,
            _ => true,
        }
    }

    /// Returns an action with what makes it worth while.
    fn led_up_to(&self, next: What, random: &mut Random) -> Vec<What> {
        if self.ground == DeviceStorage::Crashing
            && let What::Stop { device } | What::Die { device, .. } = next
        {
            // A disk matters while a process works on it, and again while the next process continues.
            let mut all = Vec::new();
            for effects in [MANY_EFFECTS / 4, MANY_EFFECTS].into_iter().take(random.between(1, 2)) {
                let effects = random.between(1, effects);
                all.extend([
                    What::Sync { device, process: 0, task: Task::Sync },
                    What::GoOn { device, process: 0, effects },
                    What::Stop { device },
                    What::Edit { device },
                ]);
            }
            return all;
        }
        if let What::Arrange { device } = next
            && random.coin()
        {
            return vec![
                What::GoOn { device, process: 0, effects: MANY_EFFECTS },
                What::Sync { device, process: 0, task: Task::Sync },
                What::GoOn { device, process: 0, effects: 2 * MANY_EFFECTS },
                next,
            ];
        }
        if let What::Sync { device, process, task: Task::Tidy } = next {
            // What runs comes to an end first, and most tidies come to their end.
            let effects = random.between(1, 3 * MANY_EFFECTS);
            return vec![
                What::GoOn { device, process, effects: MANY_EFFECTS },
                next,
                What::GoOn { device, process, effects },
            ];
        }
        let What::Vanish { device } = next else { return vec![next] };
        // A directory vanishes whose files the log knows, perhaps while something of another device is being put into it; and then
        // a sync runs.
        let whole = |device| {
            [
                What::Sync { device, process: 0, task: Task::Sync },
                What::GoOn { device, process: 0, effects: MANY_EFFECTS },
            ]
        };
        let mut all = vec![What::GoOn { device, process: 0, effects: MANY_EFFECTS }];
        all.extend(whole(device));
        let other = random.between(0, self.devices.len() - 1);
        if other != device {
            all.push(What::Edit { device: other });
            all.extend(whole(other));
            let effects = random.between(1, MANY_EFFECTS / 2);
            all.extend([
                What::Sync { device, process: 0, task: Task::Sync },
                What::GoOn { device, process: 0, effects },
            ]);
        }
        all.push(next);
        all.extend(whole(device));
        all
    }

    fn next(&self, swarm: &Swarm, moods: &mut [DeviceState; MAX_DEVICES], random: &mut Random) -> What {
        let device = random.between(0, self.devices.len() - 1);
        let process = random.between(0, self.devices[device].processes - 1);
        let mood = &mut moods[device];
        let flip = |mood: &mut bool| {
            *mood = !*mood;
            *mood
        };
        match random.between(0, 99) {
            0..=22 => What::Edit { device },
            23..=38 => What::Sync { device, process, task: swarm.task(random) },
            39..=41 => What::Die { device, process },
            42 | 43 => What::Stop { device },
            44..=47 if self.meeting == Meeting::Vault => What::Arrive,
            44..=47 if flip(&mut mood.is_offline) => What::GoOffline { device },
            44..=47 => What::ComeOnline { device },
            48..=53 => What::Arrive,
            54..=58 if self.meeting == Meeting::Aged => What::Sync { device, process, task: Task::Tidy },
            59 if self.meeting == Meeting::Aged => What::Allow,
            54..=59 if self.homes == Homes::Bound => What::Arrange { device },
            60 if self.homes == Homes::Bound => What::Allow,
            54 | 55 if swarm.copies && self.devices.len() < MAX_DEVICES => {
                What::Copy { from: device, to: self.devices.len() }
            }
            56..=58 if swarm.backups && mood.has_backup => What::Restore { device },
            56..=58 if swarm.backups => {
                mood.has_backup = true;
                What::BackUp { device }
            }
            59 if swarm.backups => What::BackUp { device },
            60..=63 if swarm.vanishing && flip(&mut mood.is_away) => What::Vanish { device },
            60..=63 if swarm.vanishing => What::Return { device },
            64 | 65 if swarm.full && flip(&mut mood.is_full) => What::FillUp { device },
            64 | 65 if swarm.full => What::MakeRoom { device },
            66 | 67 if swarm.mirror => What::Meddle,
            68 if swarm.forgery => What::Forge,
            69 | 70 if self.meeting == Meeting::Lost => What::Lose(Loss::BackUp),
            71 if self.meeting == Meeting::Lost => What::Lose(Loss::Wipe),
            72 | 73 if self.meeting == Meeting::Lost => What::Lose(Loss::RollBack),
            74 if self.meeting == Meeting::Lost => What::Lose(Loss::Swap),
            75..=80 if self.meeting == Meeting::Lost => What::Sync { device, process, task: Task::Rebuild },
            _ => What::GoOn { device, process, effects: random.between(1, MAX_EFFECTS) },
        }
    }
}
