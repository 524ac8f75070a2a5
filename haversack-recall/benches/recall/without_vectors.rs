//! Stands for vectors in a build without the feature `semantic`: there is never a model.

use std::path::PathBuf;

use haversack_recall::{MemorySearch, Place};

use crate::data::{Memory, Question};

/// A model; there is none.
pub(crate) enum Model {}

impl Model {
    pub(crate) fn find(directory: Option<PathBuf>) -> Option<Model> {
        if directory.is_some() {
            println!("This build has no feature `semantic`: the model is left out.");
        }
        None
    }
}

pub(crate) fn search(_memory: &Memory, _model: &Model) -> MemorySearch {
    MemorySearch::new(Place::Memory)
}

pub(crate) fn turns<'m>(_memory: &'m Memory, _model: &'m Model) -> impl FnMut(&Question) -> Vec<String> + 'm {
    |_| Vec::new()
}

pub(crate) fn files<'m>(_memory: &'m Memory, _model: &'m Model) -> impl FnMut(&Question) -> Vec<String> + 'm {
    |_| Vec::new()
}
