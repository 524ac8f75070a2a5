//! The actions of a front on a request.

use std::fmt;
use std::time::Duration;

use crate::http::Answer;

/// The fate of one request.
pub enum Act {
    /// The server answers.
    Pass,
    /// The front answers; the server never hears of it.
    Answer(Answer),
    /// The server carries it out, and the front answers something else.
    CommitThenAnswer(Answer),
    /// The server carries it out, and the connection is closed without an answer.
    CommitThenDrop,
    /// The connection is closed without an answer; the server never hears of it.
    Drop,
    /// Nothing happens until the client gives up.
    Hang,
    /// The server answers, and its body comes at most so fast.
    Slow {
        /// How fast.
        bytes_per_second: usize,
    },
    /// The server is asked after a while, and answers.
    Delay(Duration),
    /// The server answers, and the answer is altered on its way.
    Change(Box<dyn FnOnce(&mut Answer) + Send>),
    /// The server answers what is left of the request without these headers.
    WithoutHeaders(Vec<&'static str>),
    /// The server's refusal is passed on, and the write is carried out all the same without these headers.
    RefuseButWrite(Vec<&'static str>),
}

impl Act {
    /// Returns the act of altering the answer on its way.
    pub fn change(change: impl FnOnce(&mut Answer) + Send + 'static) -> Act {
        Act::Change(Box::new(change))
    }

    /// Returns the act of answering with a status and a body, the server never hearing of it.
    pub fn answer(status: u16, body: impl Into<Vec<u8>>) -> Act {
        Act::Answer(Answer::new(status).with_body(body))
    }
}

impl fmt::Debug for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Act::Pass => "Pass",
            Act::Answer(_) => "Answer",
            Act::CommitThenAnswer(_) => "CommitThenAnswer",
            Act::CommitThenDrop => "CommitThenDrop",
            Act::Drop => "Drop",
            Act::Hang => "Hang",
            Act::Slow { .. } => "Slow",
            Act::Delay(_) => "Delay",
            Act::Change(_) => "Change",
            Act::WithoutHeaders(_) => "WithoutHeaders",
            Act::RefuseButWrite(_) => "RefuseButWrite",
        })
    }
}
