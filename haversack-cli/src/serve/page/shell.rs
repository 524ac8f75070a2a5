//! The frame around every view: head, navigation, notices. The style and the script are our own files, so that no inline code has to be allowed.

use haversack::store::Locator;
use maud::{DOCTYPE, Markup, html};

use super::form::encoded;
use super::text::visible;

pub(super) const STYLE: &str = include_str!("style.css");
pub(super) const SCRIPT: &str = include_str!("script.js");

/// A view in the navigation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Section {
    Now,
    Memories,
    Conflicts,
    Inbox,
    Tidy,
    Next,
    Time,
    Graph,
    Machines,
    Health,
}

impl Section {
    pub(super) const ALL: [Section; 10] = [
        Section::Now,
        Section::Memories,
        Section::Conflicts,
        Section::Inbox,
        Section::Tidy,
        Section::Next,
        Section::Time,
        Section::Graph,
        Section::Machines,
        Section::Health,
    ];

    pub(super) fn title(self) -> &'static str {
        match self {
            Section::Now => "Now",
            Section::Memories => "Memories",
            Section::Conflicts => "Conflicts",
            Section::Inbox => "Inbox",
            Section::Tidy => "Tidy",
            Section::Next => "Next session",
            Section::Time => "Time",
            Section::Graph => "Graph",
            Section::Machines => "Machines",
            Section::Health => "Health",
        }
    }

    /// Returns its address, relative to every other view.
    pub(super) fn address(self) -> &'static str {
        match self {
            Section::Now => "now",
            Section::Memories => "memories",
            Section::Conflicts => "conflicts",
            Section::Inbox => "inbox",
            Section::Tidy => "tidy",
            Section::Next => "next",
            Section::Time => "time",
            Section::Graph => "graph",
            Section::Machines => "machines",
            Section::Health => "health",
        }
    }
}

/// The content of a view.
pub(super) struct View {
    pub(super) section: Section,
    pub(super) title: String,
    pub(super) body: Markup,
}

impl View {
    /// Returns a view that tells of an error.
    pub(super) fn of_error(told: &str) -> View {
        let body = html! {
            h1 { "This did not work" }
            (notice(&html! { @for line in told.lines() { (visible(line)) br; } }, Mood::Bad))
        };
        View { section: Section::Now, title: "Error".to_owned(), body }
    }
}

/// Returns the address of a memory.
pub(super) fn memory_address(locator: &Locator) -> String {
    format!("memory?path={}", encoded(locator.as_str()))
}

/// Returns the whole document of a view.
pub(super) fn document(view: &View, version: &str) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="same-origin";
                title { (view.title) " · Haversack" }
                link rel="icon" href="data:,";
                link rel="stylesheet" href=(format!("style.css?{version}"));
                script src=(format!("script.js?{version}")) defer {}
            }
            body {
                a.skip href="#main" { "Skip to the content" }
                header {
                    a.brand href="now" { "Haversack" }
                    nav aria-label="Views" {
                        ul {
                            @for section in Section::ALL {
                                li {
                                    @let current = (section == view.section).then_some("page");
                                    a href=(section.address()) aria-current=[current] { (section.title()) }
                                }
                            }
                        }
                    }
                    form.find action="memories" role="search" {
                        label.unseen for="find" { "Search all memories" }
                        input #find type="search" name="q" placeholder="Search  ( / )" autocomplete="off";
                    }
                }
                main #main tabindex="-1" { (view.body) }
            }
        }
    }
}

/// Returns a document for a browser that is let in: it goes on to the first view.
///
/// An answer with a redirect would not do. The browser came from a local file, and it would leave out the cookie that it just got.
pub(super) fn welcome() -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="refresh" content="0;url=now";
                title { "Haversack" }
            }
            body { p { a href="now" { "Go on to the page" } } }
        }
    }
}

/// Returns a document that says why there is nothing to see.
pub(super) fn refusal(title: &str, why: &str) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head { meta charset="utf-8"; meta name="color-scheme" content="light dark"; title { (title) " · Haversack" } }
            body { main { h1 { (title) } p { (why) } } }
        }
    }
}

/// Returns a notice at the top of a view.
pub(super) fn notice(text: &Markup, mood: Mood) -> Markup {
    let class = match mood {
        Mood::Good => "notice good",
        Mood::Bad => "notice bad",
    };
    html! { div class=(class) role="status" { (text) } }
}

/// Tells if a notice reports success or trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mood {
    Good,
    Bad,
}
