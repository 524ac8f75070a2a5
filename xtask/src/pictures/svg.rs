//! Small pieces of SVG.

use std::fmt::Write;

/// The font of labels.
pub(crate) const SANS: &str = "-apple-system, 'Segoe UI', 'DejaVu Sans', Helvetica, Arial, sans-serif";

/// The font of terminals.
pub(crate) const MONOSPACE: &str =
    "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace";

/// A picture that is drawn from the back to the front.
pub(crate) struct Picture {
    width: f64,
    height: f64,
    title: String,
    body: String,
}

impl Picture {
    /// Starts a picture of this size. Screen readers speak the title.
    pub(crate) fn new(width: f64, height: f64, title: &str) -> Picture {
        Picture { width, height, title: escaped(title), body: String::new() }
    }

    /// Draws a rectangle with round corners.
    pub(crate) fn rectangle(&mut self, corner: (f64, f64), size: (f64, f64), style: &str) {
        let ((x, y), (width, height)) = (corner, size);
        let _ = writeln!(self.body, r#"<rect x="{x}" y="{y}" width="{width}" height="{height}" {style}/>"#);
    }

    /// Draws a circle.
    pub(crate) fn circle(&mut self, center: (f64, f64), radius: f64, style: &str) {
        let (x, y) = center;
        let _ = writeln!(self.body, r#"<circle cx="{x}" cy="{y}" r="{radius}" {style}/>"#);
    }

    /// Draws a path.
    pub(crate) fn path(&mut self, data: &str, style: &str) {
        let _ = writeln!(self.body, r#"<path d="{data}" {style}/>"#);
    }

    /// Writes one line of text. `at` is the start of its baseline, or its middle or end if the style says so.
    pub(crate) fn text(&mut self, at: (f64, f64), text: &str, style: &str) {
        let (x, y) = at;
        let _ = writeln!(self.body, r#"<text x="{x}" y="{y}" {style}>{}</text>"#, escaped(text));
    }

    /// Returns the file.
    pub(crate) fn finish(self) -> String {
        let Picture { width, height, title, body } = self;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" role=\"img\">\n\
             <title>{title}</title>\n{body}</svg>\n"
        )
    }
}

/// Returns a text with the characters escaped that mean something in SVG.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
