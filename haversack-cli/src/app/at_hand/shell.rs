//! The programs that a line of shell runs. Pure.
//!
//! `cd web && CI=1 sudo npm test | tee out` runs `npm` and `tee`. The words before a program prepare it and are left out: a `cd` to another directory,
//! assignments, and programs that run another one, with their options. Substitutions and loops are not looked into.

/// Programs that run another one, with the letters of the options that take a value.
const RUNNERS: &[(&str, &str)] = &[
    ("sudo", "ughpCrtTD"),
    ("doas", "uC"),
    ("env", "uCS"),
    ("nice", "n"),
    ("timeout", "ks"),
    ("exec", "a"),
    ("command", ""),
    ("nohup", ""),
    ("time", ""),
];

/// Returns the programs of a line.
pub(super) fn programs(line: &str) -> Vec<String> {
    commands(line).into_iter().filter_map(|command| command.into_iter().next()).collect()
}

/// Returns the words of a line without those that only prepare its programs.
pub(super) fn without_preparation(line: &str) -> String {
    commands(line).concat().join(" ")
}

/// Returns the commands of a line that run a program, each as its words. The first is the program without its directory.
fn commands(line: &str) -> Vec<Vec<String>> {
    let mut commands: Vec<Vec<String>> = split(line).into_iter().map(prepared).collect();
    for program in commands.iter_mut().filter_map(|command| command.first_mut()) {
        *program = name_of(program).to_owned();
    }
    commands.retain(|command| command.first().is_some_and(|program| !matches!(program.as_str(), "" | "cd")));
    commands
}

fn name_of(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or_default()
}

/// Cuts a line into commands and words. Quotes hold words together and are removed.
fn split(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut letters = line.chars().peekable();
    let mut before = ' ';
    while let Some(c) = letters.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some('"') | None, '\\') => word.get_or_insert_default().extend(letters.next()),
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            // `2>&1` and `&>file` are redirections.
            (None, '&') if before == '>' || letters.peek() == Some(&'>') => {
                word.get_or_insert_default().push(c);
            }
            (None, '|' | '&' | ';' | '\n') => {
                commands.last_mut().into_iter().for_each(|words| words.extend(word.take()));
                commands.push(Vec::new());
            }
            (None, c) if c.is_whitespace() || matches!(c, '(' | ')' | '{' | '}') => {
                commands.last_mut().into_iter().for_each(|words| words.extend(word.take()));
            }
            (None, c) => word.get_or_insert_default().push(c),
        }
        before = c;
    }
    commands.last_mut().into_iter().for_each(|words| words.extend(word.take()));
    commands
}

/// Takes assignments and runners from the front of a command.
fn prepared(words: Vec<String>) -> Vec<String> {
    let mut words = words.into_iter().peekable();
    while let Some(word) = words.peek() {
        if is_assignment(word) {
            drop(words.next());
            continue;
        }
        let name = name_of(word);
        let Some((runner, with_value)) = RUNNERS.iter().find(|(runner, _)| *runner == name) else { break };
        drop(words.next());
        while let Some(option) = words.next_if(|word| word.starts_with('-')) {
            if option.len() == 2 && option.ends_with(|letter| with_value.contains(letter)) {
                drop(words.next());
            }
        }
        if *runner == "timeout" {
            // The time stands before the program.
            drop(words.next());
        }
    }
    words.collect()
}

fn is_assignment(word: &str) -> bool {
    let is_name = |name: &str| {
        !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    word.split_once('=').is_some_and(|(name, _)| is_name(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_behind_what_prepares_them() {
        for (line, expected) in [
            ("git push --force", vec!["git"]),
            ("cd /w/web && npm test", vec!["npm"]),
            ("CI=1 RUST_LOG=debug cargo test", vec!["cargo"]),
            ("sudo -u deploy systemctl restart lamp", vec!["systemctl"]),
            ("sudo env -i PATH=/bin /usr/bin/make all", vec!["make"]),
            ("timeout -k 5 60 cargo build", vec!["cargo"]),
            ("cat a.log | grep -v 'a | b' | sort -u > out 2>&1", vec!["cat", "grep", "sort"]),
            ("make || echo \"it; failed && so\"; (cd x; ls)", vec!["make", "echo", "ls"]),
            ("sleep 1 & git status &> out", vec!["sleep", "git"]),
            ("a=1", vec![]),
            ("cd /w", vec![]),
            ("sudo", vec![]),
            ("echo it\\'s 'unclosed", vec!["echo"]),
            (" \n\n", vec![]),
        ] {
            assert_eq!(programs(line), expected, "{line}");
        }
        assert_eq!(
            without_preparation("cd /w && CI=1 git push \"--force\" origin"),
            "git push --force origin"
        );
    }
}
