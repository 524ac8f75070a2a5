//! all-MiniLM-L6-v2: turns a text into a vector whose direction says what the text is about.
//!
//! 1. The text becomes pieces of words ([`wordpiece`]), each piece a row of 384 numbers.
//! 2. Six layers mix the rows of a text: attention between its pieces, then two matrices for each piece.
//! 3. The mean of the rows, of length 1, is the vector.
//!
//! This is the forward pass of a BERT, over safe matrix products of `ndarray` (docs/adr/0037-vectors-by-a-forward-pass-of-our-own.md). Texts are worked
//! on together, without padding. The rows of pieces, half of the weights, are read from the file when a text needs them.

mod wordpiece;

use std::collections::HashMap;
use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ndarray::{Array1, Array2, ArrayView2, Axis, Slice, Zip};
use serde_json::Value;

use self::wordpiece::Vocabulary;
use crate::vectors::{DIMENSIONS, Embedder, VOCABULARY_FILE, Vector, WEIGHTS_FILE};

/// The directions of a matrix.
const ROWS: Axis = Axis(0);
const COLUMNS: Axis = Axis(1);

const LAYERS: usize = 6;
const HEADS: usize = 12;
const INNER: usize = 1536;

/// The most pieces of a text that are looked at.
const MAX_PIECES: usize = 128;

/// About how many pieces are worked on together.
const BATCH_PIECES: usize = 512;

/// The largest head of a file of weights.
const MAX_HEAD_BYTES: u64 = 1024 * 1024;

/// A model with its weights.
pub struct Model {
    vocabulary: Vocabulary,
    rows: Mutex<Rows>,
    positions: Array2<f32>,
    first_norm: Norm,
    layers: Vec<Layer>,
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model").field("layers", &self.layers.len()).finish_non_exhaustive()
    }
}

/// The rows of pieces that were needed so far.
struct Rows {
    file: File,
    start: u64,
    read: HashMap<u32, Vec<f32>>,
}

struct Layer {
    /// Query, key and value beside each other.
    attention: Linear,
    mixed: Linear,
    mixed_norm: Norm,
    inner: Linear,
    outer: Linear,
    outer_norm: Norm,
}

struct Linear {
    /// In the order of the file: an output in each row.
    weights: Array2<f32>,
    bias: Array1<f32>,
}

struct Norm {
    weights: Array1<f32>,
    bias: Array1<f32>,
}

impl Model {
    /// Opens the model in a directory.
    pub fn open(directory: &Path) -> Result<Model> {
        let vocabulary = std::fs::read_to_string(directory.join(VOCABULARY_FILE))?;
        let vocabulary = Vocabulary::read(&vocabulary).ok_or_else(|| damaged("its vocabulary"))?;
        let mut weights = Weights::open(&directory.join(WEIGHTS_FILE))?;
        let (start, shape) = weights.place("embeddings.word_embeddings.weight")?;
        if shape != [vocabulary.len(), DIMENSIONS] {
            return Err(damaged("the rows of its pieces"));
        }
        let positions = weights.matrix("embeddings.position_embeddings.weight", MAX_PIECES, DIMENSIONS)?;
        let kind = weights.vector("embeddings.token_type_embeddings.weight", DIMENSIONS)?;
        let first_norm = weights.norm("embeddings.LayerNorm")?;
        let layers = (0..LAYERS).map(|layer| weights.layer(layer)).collect::<Result<_>>()?;
        let rows = Mutex::new(Rows { file: weights.file, start, read: HashMap::new() });
        Ok(Model { vocabulary, rows, positions: positions + &kind, first_norm, layers })
    }

    /// Returns the vectors of some texts, of length 1 each.
    pub fn embed_exactly(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
        let pieces: Vec<Vec<u32>> =
            texts.iter().map(|text| self.vocabulary.pieces(text, MAX_PIECES)).collect();
        // Texts of one length beside each other fill the batches best.
        let mut order: Vec<usize> = (0..texts.len()).collect();
        order.sort_by_key(|at| pieces[*at].len());
        let mut batches: Vec<Vec<usize>> = Vec::new();
        let mut room = 0;
        for at in order {
            match batches.last_mut() {
                Some(batch) if pieces[at].len() <= room => batch.push(at),
                _ => {
                    batches.push(vec![at]);
                    room = BATCH_PIECES;
                }
            }
            room = room.saturating_sub(pieces[at].len());
        }
        let mut vectors = vec![Vec::new(); texts.len()];
        for batch in batches {
            let of_batch: Vec<&[u32]> = batch.iter().map(|at| pieces[*at].as_slice()).collect();
            for (at, vector) in batch.iter().zip(self.forward(&of_batch)?) {
                vectors[*at] = vector;
            }
        }
        Ok(vectors)
    }

    fn forward(&self, texts: &[&[u32]]) -> Result<Vec<Vec<f32>>> {
        let count = texts.iter().map(|text| text.len()).sum();
        let mut x = Array2::<f32>::zeros((count, DIMENSIONS));
        let mut spans = Vec::new();
        let mut at = 0;
        {
            let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
            for text in texts {
                spans.push(at..at + text.len());
                for (place, piece) in text.iter().enumerate() {
                    let row = rows.row(*piece)?;
                    let position = self.positions.row(place);
                    let sum = row.iter().zip(position).map(|(one, other)| one + other);
                    x.row_mut(at).iter_mut().zip(sum).for_each(|(into, sum)| *into = sum);
                    at += 1;
                }
            }
        }
        self.first_norm.apply(&mut x);
        for layer in &self.layers {
            let attention = layer.attention.apply(&x.view());
            let mut mixed = Array2::zeros((count, DIMENSIONS));
            for span in &spans {
                attend(attention.slice_axis(ROWS, Slice::from(span.clone())), &mut mixed, span.start);
            }
            x += &layer.mixed.apply(&mixed.view());
            layer.mixed_norm.apply(&mut x);
            let mut inner = layer.inner.apply(&x.view());
            inner.mapv_inplace(gelu);
            x += &layer.outer.apply(&inner.view());
            layer.outer_norm.apply(&mut x);
        }
        let mean = |span: std::ops::Range<usize>| {
            let mean = x.slice_axis(ROWS, Slice::from(span)).sum_axis(ROWS);
            let length = mean.dot(&mean).sqrt().max(f32::MIN_POSITIVE);
            (mean / length).to_vec()
        };
        Ok(spans.into_iter().map(mean).collect())
    }
}

/// A model in a directory, which is opened when the first text comes.
#[derive(Debug)]
pub struct LazyModel {
    directory: PathBuf,
    model: Mutex<Option<Arc<Model>>>,
}

impl LazyModel {
    /// Returns the model of a directory; opens nothing.
    pub fn new(directory: impl Into<PathBuf>) -> LazyModel {
        LazyModel { directory: directory.into(), model: Mutex::new(None) }
    }
}

impl Embedder for LazyModel {
    fn embed(&self, texts: &[&str]) -> Result<Vec<Vector>> {
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        let model = {
            let mut opened = self.model.lock().unwrap_or_else(PoisonError::into_inner);
            match opened.as_ref() {
                Some(model) => Arc::clone(model),
                None => {
                    let model = Arc::new(Model::open(&self.directory)?);
                    *opened = Some(Arc::clone(&model));
                    model
                }
            }
        };
        model.embed(texts)
    }
}

impl Embedder for Model {
    fn embed(&self, texts: &[&str]) -> Result<Vec<Vector>> {
        // Two threads at most: a user works on the same machine.
        let shares: Vec<&[&str]> = texts.chunks(texts.len().div_ceil(2).max(1)).collect();
        let vectors = in_shares_of(&shares, |share| self.embed_exactly(share))?;
        Ok(vectors.iter().map(|vector| Vector::of(vector)).collect())
    }
}

/// Works on shares of texts in threads of their own.
fn in_shares_of(
    shares: &[&[&str]],
    work: impl Fn(&[&str]) -> Result<Vec<Vec<f32>>> + Sync,
) -> Result<Vec<Vec<f32>>> {
    let work = &work;
    if shares.len() < 2 || shares[0].len() < 8 {
        return Ok(shares.iter().map(|share| work(share)).collect::<Result<Vec<_>>>()?.concat());
    }
    std::thread::scope(|scope| {
        let threads: Vec<_> = shares.iter().map(|share| scope.spawn(move || work(share))).collect();
        let done: Vec<Vec<Vec<f32>>> = threads
            .into_iter()
            .map(|thread| thread.join().expect("the work does not panic"))
            .collect::<Result<_>>()?;
        Ok(done.concat())
    })
}

/// Mixes the values of a text's pieces by how much each piece attends to the others.
fn attend(of_text: ArrayView2<'_, f32>, mixed: &mut Array2<f32>, start: usize) {
    let count = of_text.nrows();
    let width = DIMENSIONS / HEADS;
    let scale = 1.0 / (32.0f32).sqrt();
    for head in 0..HEADS {
        let part = |kind: usize| {
            let first = kind * DIMENSIONS + head * width;
            of_text.slice_axis(COLUMNS, Slice::from(first..first + width))
        };
        let mut weights = part(0).dot(&part(1).t());
        for mut row in weights.rows_mut() {
            let most = row.fold(f32::MIN, |most, weight| most.max(*weight));
            row.mapv_inplace(|weight| ((weight - most) * scale).exp());
            let sum = row.sum();
            row /= sum;
        }
        let values = weights.dot(&part(2));
        let mut of_text = mixed.slice_axis_mut(ROWS, Slice::from(start..start + count));
        of_text.slice_axis_mut(COLUMNS, Slice::from(head * width..(head + 1) * width)).assign(&values);
    }
}

impl Linear {
    fn apply(&self, x: &ArrayView2<'_, f32>) -> Array2<f32> {
        let mut y = x.dot(&self.weights.t());
        y += &self.bias;
        y
    }
}

impl Norm {
    fn apply(&self, x: &mut Array2<f32>) {
        for mut row in x.rows_mut() {
            let count = 384.0;
            let mean = row.sum() / count;
            row -= mean;
            let deviation = (row.fold(0.0, |sum, value| sum + value * value) / count + 1e-12).sqrt();
            Zip::from(&mut row).and(&self.weights).and(&self.bias).for_each(|value, weight, bias| {
                *value = *value / deviation * weight + bias;
            });
        }
    }
}

/// The model's activation: x · Φ(x), with the error function of Abramowitz and Stegun 7.1.26, whose error is below 2·10⁻⁷.
fn gelu(x: f32) -> f32 {
    let z = x.abs() * 0.5f32.sqrt();
    let t = 1.0 / (1.0 + 0.327_591_1 * z);
    let polynomial =
        ((((1.061_405_4 * t - 1.453_152_1) * t + 1.421_413_8) * t - 0.284_496_72) * t + 0.254_829_6) * t;
    let error = 1.0 - polynomial * (-z * z).exp();
    0.5 * x * (1.0 + error.copysign(x))
}

impl Rows {
    fn row(&mut self, piece: u32) -> Result<&[f32]> {
        if !self.read.contains_key(&piece) {
            let bytes = u64::try_from(4 * DIMENSIONS).unwrap_or_default();
            let _ = self.file.seek(SeekFrom::Start(self.start + u64::from(piece) * bytes))?;
            let row = floats(&mut self.file, DIMENSIONS)?;
            self.read.insert(piece, row);
        }
        Ok(&self.read[&piece])
    }
}

/// A file of weights: the length of the head, the head in JSON (names, shapes, places), and the numbers.
struct Weights {
    file: File,
    head: Value,
    body: u64,
}

impl Weights {
    fn open(path: &Path) -> Result<Weights> {
        let mut file = File::open(path)?;
        let mut length = [0; 8];
        file.read_exact(&mut length)?;
        let length = u64::from_le_bytes(length);
        if length > MAX_HEAD_BYTES {
            return Err(damaged("its head"));
        }
        let mut head = vec![0; usize::try_from(length).unwrap_or_default()];
        file.read_exact(&mut head)?;
        let head = serde_json::from_slice(&head).map_err(|_| damaged("its head"))?;
        Ok(Weights { file, head, body: 8 + length })
    }

    /// Returns where the numbers of a name are, and their shape.
    fn place(&self, name: &str) -> Result<(u64, Vec<usize>)> {
        let entry = &self.head[name];
        let start = entry["data_offsets"][0].as_u64();
        let shape: Option<Vec<usize>> = entry["shape"]
            .as_array()
            .and_then(|shape| shape.iter().map(|length| usize::try_from(length.as_u64()?).ok()).collect());
        match (start, shape, entry["dtype"].as_str()) {
            (Some(start), Some(shape), Some("F32")) => Ok((self.body + start, shape)),
            _ => Err(damaged(name)),
        }
    }

    fn matrix(&mut self, name: &str, rows: usize, columns: usize) -> Result<Array2<f32>> {
        let (start, shape) = self.place(name)?;
        if shape.len() != 2 || shape[0] < rows || shape[1] != columns {
            return Err(damaged(name));
        }
        let _ = self.file.seek(SeekFrom::Start(start))?;
        let numbers = floats(&mut self.file, rows * columns)?;
        Array2::from_shape_vec((rows, columns), numbers).map_err(|_| damaged(name))
    }

    /// Reads a vector, or the first row of a matrix.
    fn vector(&mut self, name: &str, length: usize) -> Result<Array1<f32>> {
        let (start, shape) = self.place(name)?;
        if shape.last() != Some(&length) {
            return Err(damaged(name));
        }
        let _ = self.file.seek(SeekFrom::Start(start))?;
        floats(&mut self.file, length).map(Array1::from_vec)
    }

    fn linear(&mut self, name: &str, inputs: usize, outputs: usize) -> Result<Linear> {
        let weights = self.matrix(&format!("{name}.weight"), outputs, inputs)?;
        Ok(Linear { weights, bias: self.vector(&format!("{name}.bias"), outputs)? })
    }

    fn norm(&mut self, name: &str) -> Result<Norm> {
        let weights = self.vector(&format!("{name}.weight"), DIMENSIONS)?;
        Ok(Norm { weights, bias: self.vector(&format!("{name}.bias"), DIMENSIONS)? })
    }

    fn layer(&mut self, number: usize) -> Result<Layer> {
        let of = |name: &str| format!("encoder.layer.{number}.{name}");
        let mut attention = Linear {
            weights: Array2::zeros((3 * DIMENSIONS, DIMENSIONS)),
            bias: Array1::zeros(3 * DIMENSIONS),
        };
        for (kind, first) in ["query", "key", "value"].into_iter().zip((0..).step_by(DIMENSIONS)) {
            let one = self.linear(&of(&format!("attention.self.{kind}")), DIMENSIONS, DIMENSIONS)?;
            let part = Slice::from(first..first + DIMENSIONS);
            attention.weights.slice_axis_mut(ROWS, part).assign(&one.weights);
            attention.bias.slice_axis_mut(ROWS, part).assign(&one.bias);
        }
        Ok(Layer {
            attention,
            mixed: self.linear(&of("attention.output.dense"), DIMENSIONS, DIMENSIONS)?,
            mixed_norm: self.norm(&of("attention.output.LayerNorm"))?,
            inner: self.linear(&of("intermediate.dense"), DIMENSIONS, INNER)?,
            outer: self.linear(&of("output.dense"), INNER, DIMENSIONS)?,
            outer_norm: self.norm(&of("output.LayerNorm"))?,
        })
    }
}

/// Reads numbers of four bytes.
fn floats(file: &mut File, count: usize) -> Result<Vec<f32>> {
    let mut bytes = vec![0; 4 * count];
    file.read_exact(&mut bytes)?;
    Ok(bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
}

fn damaged(what: &str) -> Error {
    Error::new(ErrorKind::InvalidData, format!("the model's files are damaged: {what}"))
}
