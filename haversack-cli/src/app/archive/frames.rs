//! Zstandard as a sequence of frames, each compressed on its own. A write that fails is an error, and memory is bounded by one frame.

use std::io::{self, BufRead, Read, Write};

use ruzstd::decoding::StreamingDecoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

/// The bytes of one frame, before compression.
const FRAME_BYTES: usize = 4 * 1024 * 1024;

/// Compresses everything that is written to it.
pub(super) struct FrameWriter<W> {
    out: W,
    frame: Vec<u8>,
}

impl<W: Write> FrameWriter<W> {
    pub(super) fn new(out: W) -> FrameWriter<W> {
        FrameWriter { out, frame: Vec::new() }
    }

    /// Writes the last frame.
    pub(super) fn finish(mut self) -> io::Result<W> {
        self.write_frame()?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn write_frame(&mut self) -> io::Result<()> {
        if !self.frame.is_empty() {
            self.out.write_all(&compress_to_vec(&self.frame[..], CompressionLevel::Fastest))?;
            self.frame.clear();
        }
        Ok(())
    }
}

impl<W: Write> Write for FrameWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = FRAME_BYTES - self.frame.len();
        let taken = &bytes[..bytes.len().min(room)];
        self.frame.extend_from_slice(taken);
        if self.frame.len() == FRAME_BYTES {
            self.write_frame()?;
        }
        Ok(taken.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads what a [`FrameWriter`] or `zstd` wrote.
pub(super) struct FrameReader<R: BufRead> {
    state: State<R>,
}

enum State<R: BufRead> {
    Between(R),
    Inside(Box<StreamingDecoder<R, ruzstd::decoding::FrameDecoder>>),
    Ended,
}

impl<R: BufRead> FrameReader<R> {
    pub(super) fn new(source: R) -> FrameReader<R> {
        FrameReader { state: State::Between(source) }
    }
}

impl<R: BufRead> Read for FrameReader<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            match std::mem::replace(&mut self.state, State::Ended) {
                State::Ended => return Ok(0),
                State::Between(mut source) => {
                    if source.fill_buf()?.is_empty() {
                        return Ok(0);
                    }
                    let decoder = StreamingDecoder::new(source).map_err(io::Error::other)?;
                    self.state = State::Inside(Box::new(decoder));
                }
                State::Inside(mut decoder) => match decoder.read(out)? {
                    0 => self.state = State::Between(decoder.into_inner()),
                    read => {
                        self.state = State::Inside(decoder);
                        return Ok(read);
                    }
                },
            }
        }
    }
}
