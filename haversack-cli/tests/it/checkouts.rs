//! Checkouts of repositories, made without git.

use std::path::{Path, PathBuf};

/// Makes a directory with a `.git` that names the address of a repository.
pub(crate) fn checkout(root: &Path, url: &str) {
    std::fs::create_dir_all(root.join(".git/objects")).expect("made");
    std::fs::write(root.join(".git/HEAD"), "ref: refs/heads/main\n").expect("written");
    let config = format!("[core]\n\tbare = false\n[remote \"origin\"]\n\turl = {url}\n");
    std::fs::write(root.join(".git/config"), config).expect("written");
    // As most people have it: git says nothing about the settings of agents.
    std::fs::create_dir_all(root.join(".git/info")).expect("made");
    std::fs::write(root.join(".git/info/exclude"), ".claude/\n").expect("written");
}

/// Makes a clone of a repository. All clones of a repository have the same first commit, however its address is written.
pub(crate) fn clone(root: &Path, url: &str) {
    checkout(root, url);
    let name = url.rsplit(['/', ':']).next().unwrap_or(url).trim_end_matches(".git");
    add_commit(root, &format!("Begin {name}\n"));
}

/// Makes another checkout of a repository, beside it.
pub(crate) fn worktree(root: &Path, name: &str) -> PathBuf {
    let worktree = root.with_file_name(name);
    let state = root.join(".git/worktrees").join(name);
    std::fs::create_dir_all(&state).expect("made");
    std::fs::create_dir_all(&worktree).expect("made");
    for (file, text) in [
        (state.join("commondir"), "../..\n".to_owned()),
        (state.join("HEAD"), format!("ref: refs/heads/{name}\n")),
        (state.join("gitdir"), format!("{}\n", worktree.join(".git").display())),
        (worktree.join(".git"), format!("gitdir: {}\n", state.display())),
    ] {
        std::fs::write(file, text).expect("written");
    }
    worktree
}

/// Adds a commit without parents to a checkout, as the tip of `origin/main`; returns its name.
pub(crate) fn add_commit(root: &Path, message: &str) -> String {
    add_commit_after(root, None, message)
}

/// Adds a commit to a checkout, as the tip of `origin/main`; returns its name.
pub(crate) fn add_commit_after(root: &Path, parent: Option<&str>, message: &str) -> String {
    let parent = parent.map(|parent| format!("parent {parent}\n")).unwrap_or_default();
    let text = format!("tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\n{parent}\n{message}");
    let object = format!("commit {}\0{text}", text.len());
    let hash = ring::digest::digest(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, object.as_bytes());
    let name: String = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let directory = root.join(".git/objects").join(&name[..2]);
    std::fs::create_dir_all(&directory).expect("made");
    let packed = miniz_oxide::deflate::compress_to_vec_zlib(object.as_bytes(), 6);
    std::fs::write(directory.join(&name[2..]), packed).expect("written");
    let refs = root.join(".git/refs/remotes/origin");
    std::fs::create_dir_all(&refs).expect("made");
    std::fs::write(refs.join("main"), format!("{name}\n")).expect("written");
    name
}
