//! A memory file: its fields, and its text by the rule of its kind.

use super::note::{self, About, Mark};
use super::{Outcome, Part, fields};
use crate::document::{Document, Frontmatter, begins_with_rule};

/// How the texts below the fields merge; `None` if they cannot.
pub(super) type Body<'b> = &'b dyn Fn(Option<&str>, [Part<'_>; 2]) -> Option<Outcome>;

/// Merges two files; `None` if one cannot be understood.
pub(super) fn merge(base: Option<&str>, sides: [Part<'_>; 2], body: Body<'_>) -> Option<Outcome> {
    let read = |text| {
        let document = Document::read(text);
        // Text that looks like fields and is not valid is merged as text, together with the rest.
        let has_fields =
            |frontmatter: &Frontmatter<'_>| frontmatter.entries.iter().any(|entry| entry.field().is_some());
        let is_odd = begins_with_rule(text) && !document.frontmatter.as_ref().is_some_and(has_fields);
        (!is_odd).then_some(document)
    };
    let base: Option<Document<'_>> = match base {
        Some(text) => Some(read(text)?),
        None => None,
    };
    let [first, second] = [read(sides[0].text)?, read(sides[1].text)?];
    let devices = sides.map(|side| side.device);

    let raw =
        |frontmatter: Option<&Frontmatter<'_>>| frontmatter.map(ToString::to_string).unwrap_or_default();
    let base_fields = base.as_ref().and_then(|base| base.frontmatter.as_ref());
    let side_fields = [first.frontmatter.as_ref(), second.frontmatter.as_ref()];
    let before = base.as_ref().map(|_| raw(base_fields));
    let [first_raw, second_raw] = side_fields.map(raw);
    let fields = if first_raw == second_raw || before.as_ref() == Some(&second_raw) {
        fields::Fields { text: first_raw, others: Vec::new() }
    } else if before.as_ref() == Some(&first_raw) {
        fields::Fields { text: second_raw, others: Vec::new() }
    } else {
        fields::merge(base_fields, side_fields, devices)?
    };

    // The blank lines above a text are not lines of it: both sides begin with as many.
    let split = |body: &str| body.len() - body.trim_start_matches('\n').len();
    let base_body = base.as_ref().map(|base| base.body.split_at(split(base.body)));
    let [(first_lead, first_rest), (second_lead, second_rest)] =
        [first.body, second.body].map(|body| body.split_at(split(body)));
    let lead = match base_body {
        Some((lead, _)) if lead == first_lead => second_lead,
        Some((lead, _)) if lead == second_lead => first_lead,
        _ => first_lead.max(second_lead),
    };
    let bodies = [Part { text: first_rest, ..sides[0] }, Part { text: second_rest, ..sides[1] }];
    let merged = super::three(base_body.map(|(_, rest)| rest), bodies, body)?;
    let (mut below, mut both_kept) = (format!("{lead}{}", merged.text), merged.both_kept);
    for other in &fields.others {
        let quoted: String = other.lines.lines().map(|line| format!("> {line}\n")).collect();
        let is_there = below.contains(&quoted) || below.ends_with(quoted.trim_end());
        if !is_there {
            let start = below.len() - below.trim_start_matches('\n').len();
            let parting = if below.len() > start { "\n" } else { "" };
            let about = About::Field { lines: other.lines.lines().count() };
            let note = note::write(Mark::Quote, &other.device, about);
            below.insert_str(start, &format!("{note}\n{quoted}{parting}"));
            both_kept = true;
        }
    }
    let mut text = fields.text;
    if !text.is_empty() && !text.ends_with('\n') && !below.is_empty() {
        text.push('\n');
    }
    text.push_str(&below);
    Some(Outcome { text, both_kept })
}
