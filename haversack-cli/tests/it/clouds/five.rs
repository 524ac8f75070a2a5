//! Five devices whose users do anything at any moment, over each cloud: nothing is lost, nothing comes back.

use super::devices::{Device, settle};
use super::{Place, in_each_cloud, times};
use crate::random_machines::{Chance, FILES, NAMES, Oracle, line};

in_each_cloud!(five_devices_lose_nothing);

fn act(device: &Device, oracle: &mut Oracle, chance: &mut Chance) {
    let file = FILES[chance.below(FILES.len())];
    let there = device.read(file);
    match chance.below(10) {
        0..=4 => {
            let token = oracle.token(&device.name, file);
            device.append(file, &line(file, &token));
        }
        // A user removes a line.
        5 => {
            let text = there.unwrap_or_default();
            let tokens = oracle.tokens(&text);
            if tokens.is_empty() {
                return;
            }
            let token = tokens[chance.below(tokens.len())].clone();
            let rest: String = text.split_inclusive('\n').filter(|line| !line.contains(&token)).collect();
            device.write(file, rest);
            oracle.removed.insert(token);
        }
        6 if chance.below(4) == 0 => {
            let Some(text) = there else { return };
            oracle.delete(file, &text);
            device.delete(file);
        }
        // A user moves a file.
        7 if chance.below(4) == 0 => {
            let Some(text) = there else { return };
            let to = format!("moved-{}-{}.md", device.name, chance.below(1000));
            if device.read(&to).is_none() {
                oracle.delete(file, &text);
                device.delete(file);
                device.write(&to, text);
            }
        }
        _ => drop(device.synced()),
    }
}

fn five_devices_lose_nothing(place: &Place) {
    for round in 0..times(1, 30) {
        let seed = 7000 + round as u64;
        // Each schedule has a prefix of its own.
        let devices = NAMES.iter().map(|name| Device::below(*name, place, &format!("/{round}")));
        let devices: Vec<Device> = devices.collect();
        devices[0].write("notes.md", "begin\n\n");
        for device in &devices {
            device.synced();
        }
        let mut oracle = Oracle::default();
        let mut chance = Chance::new(seed);
        for _ in 0..150 {
            act(&devices[chance.below(devices.len())], &mut oracle, &mut chance);
        }
        oracle.check(seed, &settle(&devices));
    }
}
