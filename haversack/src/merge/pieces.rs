//! A text of Markdown, cut into headings, list items and the text between them, and the blank lines that part them.

/// The sort of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Class {
    /// Before the first piece.
    Start,
    Heading,
    /// A list item, with everything that is indented below it.
    Item,
    /// Lines that are neither.
    Text,
    /// Everything below a heading, up to the next.
    Body,
    /// Behind the last piece.
    End,
}

/// How a text is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// Into items and the text between them.
    Blocks,
    /// At the headings: one piece for each heading, and one for the text below it.
    Bodies,
}

/// A piece of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece<'a> {
    pub(super) class: Class,
    /// Its lines, without the last ending.
    pub(super) text: &'a str,
    /// The start of its lines.
    pub(super) start: usize,
    /// The number of blank lines above it.
    pub(super) gap: u32,
}

/// Cuts a text, piece by piece.
pub(super) struct Pieces<'a> {
    text: &'a str,
    cut: Cut,
    /// The start of the next line.
    at: usize,
    /// The piece that is being read: where it begins and ends, and the blank lines above it.
    open: Option<(Class, usize, usize, u32)>,
    fence: Option<&'a str>,
    /// The number of blank lines since the last line.
    gap: u32,
}

/// How a text ends.
pub(super) struct Ended {
    /// The number of blank lines at the end.
    pub(super) gap: u32,
    /// True if the last line has an ending.
    pub(super) is_ended: bool,
}

impl<'a> Pieces<'a> {
    pub(super) fn of(text: &'a str, cut: Cut) -> Pieces<'a> {
        Pieces { text, cut, at: 0, open: None, fence: None, gap: 0 }
    }

    /// Returns the end of the text, after it was read; `None` if the text ends within a fence, whose end in another text is unknown.
    pub(super) fn ended(self) -> Option<Ended> {
        let ended = Ended { gap: self.gap, is_ended: self.text.ends_with('\n') };
        self.fence.is_none().then_some(ended)
    }

    /// Returns the piece that was being read.
    fn close(&mut self) -> Option<Piece<'a>> {
        let (class, start, end, gap) = self.open.take()?;
        Some(Piece { class, text: &self.text[start..end], start, gap })
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        while self.at < self.text.len() {
            let start = self.at;
            let rest = &self.text.as_bytes()[start..];
            let end = memchr::memchr(b'\n', rest).map_or(self.text.len(), |length| start + length);
            let content = &self.text[start..end];
            self.at = end + 1;
            if let (Some(mark), Some(open)) = (self.fence, &mut self.open) {
                open.2 = end;
                if content.trim() == mark {
                    self.fence = None;
                }
                continue;
            }
            if content.trim().is_empty() {
                self.gap = self.gap.saturating_add(1);
                continue;
            }
            let gap = std::mem::take(&mut self.gap);
            self.fence = fence_mark(content);
            let class = class(content, self.cut, self.open.map(|open| open.0), gap);
            match (&mut self.open, class) {
                (Some(open), None) => open.2 = end,
                (_, class) => {
                    let closed = self.close();
                    self.open = Some((class.unwrap_or(Class::Text), start, end, gap));
                    if closed.is_some() {
                        return closed;
                    }
                }
            }
        }
        self.close()
    }
}

/// Returns the sort of piece that begins with a line; `None` if the line belongs to the open piece.
fn class(content: &str, cut: Cut, open: Option<Class>, gap: u32) -> Option<Class> {
    if heading_level(content) > 0 {
        return Some(Class::Heading);
    }
    match (cut, open) {
        (Cut::Bodies, Some(Class::Body)) => None,
        (Cut::Bodies, _) => Some(Class::Body),
        (Cut::Blocks, _) if is_item(content) => Some(Class::Item),
        (Cut::Blocks, Some(Class::Item)) if is_indented(content) || (gap == 0 && goes_on(content)) => None,
        (Cut::Blocks, Some(Class::Text)) if gap == 0 => None,
        (Cut::Blocks, _) => Some(Class::Text),
    }
}

/// Returns how many blank lines must part two pieces, for them to be two.
pub(super) fn least_gap(above: Class, below: Class, text: &str) -> u32 {
    match (above, below) {
        (Class::Text, Class::Text) => 1,
        (Class::Item, Class::Text) if goes_on(text) => 1,
        _ => 0,
    }
}

/// Returns how many blank lines usually part two pieces, if the text does not tell.
pub(super) fn usual_gap(above: Class, below: Class) -> u32 {
    match (above, below) {
        (Class::Start, _) | (_, Class::End) | (Class::Item, Class::Item) => 0,
        (Class::Heading, Class::Item | Class::Text | Class::Body) => 0,
        _ => 1,
    }
}

/// Returns the level of a heading; 0 if the line is not a heading.
pub(super) fn heading_level(content: &str) -> usize {
    let level = content.bytes().take_while(|byte| *byte == b'#').count();
    let rest = &content[level..];
    if level <= 6 && (rest.is_empty() || rest.starts_with([' ', '\t'])) { level } else { 0 }
}

/// Returns true if a line begins a list item.
pub(super) fn is_item(content: &str) -> bool {
    let digits = content.bytes().take_while(u8::is_ascii_digit).count();
    match &content.as_bytes()[digits..] {
        [b'-' | b'*' | b'+', b' ', ..] => digits == 0,
        [b'.' | b')', b' ', ..] => digits > 0,
        _ => false,
    }
}

fn is_indented(content: &str) -> bool {
    content.starts_with("  ") || content.starts_with('\t')
}

/// Returns true if a line right below an item continues it.
fn goes_on(content: &str) -> bool {
    !content.starts_with(['>', '#', '`', '~', '|', '<', '-', '*', '_', '='])
}

fn fence_mark(content: &str) -> Option<&str> {
    if !content.bytes().any(|byte| matches!(byte, b'`' | b'~')) {
        return None;
    }
    let content = content.trim_start();
    let after_bullet = content.strip_prefix("- ").unwrap_or(content).trim_start();
    let mark = after_bullet.as_bytes().first().filter(|byte| matches!(byte, b'`' | b'~'))?;
    let length = after_bullet.bytes().take_while(|byte| byte == mark).count();
    let is_closed = after_bullet[length..].contains(char::from(*mark));
    (length >= 3 && !is_closed).then(|| &after_bullet[..length])
}
