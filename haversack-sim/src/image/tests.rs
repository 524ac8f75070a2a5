//! Tests of the names that survive when the machine stops.

use super::*;

/// Returns the paths that may be found after the machine stopped, over many seeds.
fn outcomes(image: &Image) -> BTreeSet<Vec<String>> {
    let found = |seed| {
        let mut image = image.clone();
        image.lose_power(&mut Random::new(seed));
        image.tree().into_keys().collect()
    };
    (0..200).map(found).collect()
}

fn paths(all: &[&[&str]]) -> BTreeSet<Vec<String>> {
    all.iter().map(|paths| paths.iter().map(|path| (*path).to_owned()).collect()).collect()
}

fn make(image: &mut Image, dir: InodeId, name: &str) {
    let file = image.new_file(0o600);
    image.change(vec![(dir, name.to_owned(), Some(file))]);
}

#[test]
fn names_of_one_directory_survive_in_order() {
    let mut image = Image::new();
    make(&mut image, ROOT, "a");
    make(&mut image, ROOT, "b");
    assert_eq!(outcomes(&image), paths(&[&[], &["a"], &["a", "b"]]));
    image.sync_dir(ROOT).expect("the root is there");
    make(&mut image, ROOT, "c");
    assert_eq!(outcomes(&image), paths(&[&["a", "b"], &["a", "b", "c"]]));
}

#[test]
fn a_synced_directory_may_still_lose_its_own_name() {
    let mut image = Image::new();
    let dir = image.new_directory();
    image.change(vec![(ROOT, "dir".to_owned(), Some(dir))]);
    make(&mut image, dir, "a");
    image.sync_dir(dir).expect("the directory is there");
    assert_eq!(outcomes(&image), paths(&[&[], &["dir", "dir/a"]]));
}

#[test]
fn a_sync_takes_along_what_came_before_in_the_other_directory() {
    let mut image = Image::new();
    let dir = image.new_directory();
    image.change(vec![(ROOT, "dir".to_owned(), Some(dir))]);
    make(&mut image, ROOT, "a");
    image.rename((ROOT, "a"), (dir, "b"), Target::Free).expect("the name is free");
    image.sync_dir(dir).expect("the directory is there");
    assert_eq!(outcomes(&image), paths(&[&["dir", "dir/b"]]));
}

#[test]
fn an_exchange_is_one_change() {
    let mut image = Image::new();
    for (name, content) in [("a", b"1"), ("b", b"2")] {
        make(&mut image, ROOT, name);
        let file = image.child(ROOT, name).expect("just made");
        image.append(file, content).expect("it is a file");
    }
    image.sync_all();
    image.rename((ROOT, "a"), (ROOT, "b"), Target::Exchanged).expect("both are there");
    for seed in 0..50 {
        let mut image = image.clone();
        image.lose_power(&mut Random::new(seed));
        assert_ne!(image.look("a"), image.look("b"), "seed {seed}");
    }
}
