//! The graph of a home: its nodes and connections, and the links between memories as edges that are only read.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use haversack::check::Finding;
use haversack::file_storage::{FileStorage, MemoryStorage};
use haversack::graph::draw::{Arrow, MAX_BOXES, Picture, PictureBox};
use haversack::graph::links::{self, WrittenLinks};
use haversack::graph::repair::{self, Defect};
use haversack::graph::search::{ContentSearch, Scan};
use haversack::graph::{Graph, GraphError, Node, Property};
use haversack::kind::Kinds;
use haversack::store::{BackendExt, Locator, block_on};
use haversack::{MAX_TEXT_BYTES, Memory};
use haversack_recall::{MemorySearch, Query};
use haversack_system::{RandomIds, SystemClock};
use jiff::civil::Date;

use crate::app::recall;
use crate::error::{CommandError, Fault};
use crate::home::kinds;
use crate::home::store::{open, open_to_look};
use crate::settings::Settings;

/// Opens the graph of a home to change it.
pub(crate) fn graph(settings: &Settings) -> Result<Graph, CommandError> {
    Ok(graph_of(open(settings)?))
}

/// Opens the graph of a home to look at it; makes nothing.
pub(crate) fn graph_to_look(settings: &Settings) -> Result<Graph, CommandError> {
    Ok(graph_of(open_to_look(settings)?))
}

/// Returns the graph in a memory.
pub(crate) fn graph_of(memory: Memory) -> Graph {
    let storage: Arc<dyn FileStorage> = Arc::new(MemoryStorage::new(memory));
    Graph::new(storage, Arc::new(SystemClock), Arc::new(RandomIds))
}

impl From<GraphError> for CommandError {
    fn from(error: GraphError) -> CommandError {
        use haversack::graph::Code;
        let hint = match error.code {
            Code::OntologyNotFound => "haversack ontology add-node-type NAME",
            Code::OntologyAlreadyExists
            | Code::TypeAlreadyExists
            | Code::InvalidNodeType
            | Code::InvalidConnectionType
            | Code::InvalidTopology
            | Code::RequiredPropertyMissing => "See the types: haversack ontology show",
            Code::NodeNotFound => "See which nodes there are: haversack node list",
            Code::ConnectionNotFound => "See which connections there are: haversack connection list",
            Code::ContentReadFailed => "Look at it: haversack doctor",
            _ => "See the commands: haversack help node",
        };
        CommandError::caused(Fault::User, &error, Some(hint.to_owned()))
    }
}

/// How the contents of nodes are searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SearchMode {
    /// By words, in the index of recall.
    Words,
    /// For a text as it is, whatever its case, in every content.
    Exact,
}

/// The nodes that a search found.
pub(crate) struct FoundNodes {
    /// Their ids, best first.
    pub(crate) ids: Vec<String>,
    /// The reason why every content was read, if the index could not be used.
    pub(crate) without_index: Option<String>,
}

/// Returns at most `limit` nodes by their content.
pub(crate) fn search(
    settings: &Settings,
    mode: SearchMode,
    query: &str,
    node_type: Option<&str>,
    limit: usize,
) -> Result<FoundNodes, CommandError> {
    let memory = open_to_look(settings)?;
    let graph = graph_of(memory.clone());
    let scan = Scan::new(graph.storage().clone());
    if mode == SearchMode::Exact {
        let ids = block_on(graph.search_content(&scan, query, node_type, limit))?;
        return Ok(FoundNodes { ids, without_index: None });
    }
    let words = RecallSearch {
        memory,
        search: recall::search(settings),
        kinds: kinds::load(settings)?,
        today: recall::today(settings),
        scan,
        without_index: Mutex::default(),
    };
    let ids = block_on(graph.search_content(&words, query, node_type, limit))?;
    let without_index = words.without_index.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(FoundNodes { ids, without_index })
}

/// Finds nodes by the words of their contents, in the index of recall. If the index cannot be used, every content is read, and
/// [`without_index`](Self::without_index) says why.
struct RecallSearch {
    memory: Memory,
    search: MemorySearch,
    kinds: Kinds,
    today: Date,
    scan: Scan,
    without_index: Mutex<Option<String>>,
}

#[async_trait]
impl ContentSearch for RecallSearch {
    async fn find(&self, query: &str, nodes: &[Arc<Node>], limit: usize) -> Result<Vec<String>, GraphError> {
        let ids: HashMap<&str, &str> =
            nodes.iter().map(|node| (node.content.path.as_str(), node.id.as_str())).collect();
        let within = Locator::parse(CONTENTS).unwrap_or_else(|_| Locator::root());
        let mut asked = limit;
        loop {
            let query =
                Query { within: within.clone(), limit: asked, ..Query::new(query.to_owned(), self.today) };
            let recalled = match self.search.recall(self.memory.files(), &self.kinds, &query).await {
                Ok(recalled) => recalled,
                Err(error) => {
                    self.note(error.to_string());
                    return self.scan.find(&query.text, nodes, limit).await;
                }
            };
            if let Some(kind) = recalled.without_index {
                self.note(recall::without_index(kind).to_owned());
            }
            let found = recalled.hits.iter().filter_map(|hit| ids.get(hit.locator.as_str()));
            let found: Vec<String> = found.take(limit).map(|id| (*id).to_owned()).collect();
            // Nodes of other types take places in the answer of the index.
            if found.len() == limit || recalled.hits.len() < asked {
                return Ok(found);
            }
            asked = asked.saturating_mul(4);
        }
    }
}

impl RecallSearch {
    fn note(&self, why: String) {
        *self.without_index.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
    }
}

/// The directory with the contents of nodes.
const CONTENTS: &str = "_content/nodes";

/// Returns all that there is: nodes, memories, and everything that leads from one to another.
///
/// A node is called by its id, a memory by its place without `.md`.
pub(crate) fn everything(settings: &Settings) -> Result<Picture, CommandError> {
    let memory = open_to_look(settings)?;
    let kinds = kinds::load(settings)?;
    let memories = block_on(texts(&memory))?.into_iter().map(|(place, text)| {
        let kind = kinds.of(&place, text.as_bytes()).name.clone();
        let written = WrittenLinks::of(&kind, &text);
        (place, kind, written)
    });
    let memories: Vec<(Locator, String, WrittenLinks)> = memories.collect();
    everything_among(settings, memories.iter().map(|(place, kind, written)| (place, kind.as_str(), written)))
}

/// Returns the picture of some memories and all nodes. Each memory comes with its kind and the links that it writes.
pub(crate) fn everything_among<'a>(
    settings: &Settings,
    memories: impl Iterator<Item = (&'a Locator, &'a str, &'a WrittenLinks)>,
) -> Result<Picture, CommandError> {
    let mut picture = Picture::default();
    let (nodes, connections) = block_on(graph_of(open_to_look(settings)?).everything())?;
    picture.boxes.extend(nodes.iter().map(|node| PictureBox {
        id: node.id.clone(),
        label: label(node),
        kind: node.node_type.clone(),
        is_missing: false,
    }));
    picture.arrows.extend(connections.iter().map(|one| Arrow {
        from: one.from.clone(),
        to: one.to.clone(),
        label: one.connection_type.clone(),
    }));
    let mut directories: BTreeMap<String, Vec<(&str, &str, &WrittenLinks)>> = BTreeMap::new();
    for (locator, kind, written) in memories.filter(|(locator, ..)| can_link(locator)) {
        let directory = locator.parent().map(|parent| parent.to_string()).unwrap_or_default();
        directories.entry(directory).or_default().push((locator.as_str(), kind, written));
    }
    for (directory, memories) in directories {
        let found = links::connect(memories);
        let place =
            |name: &str| if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") };
        let missing: BTreeSet<&String> =
            found.links.iter().filter(|link| !link.is_there).map(|link| &link.to).collect();
        let there = found.memories.iter().map(|(name, kind)| (name, kind.as_str(), false));
        let boxes = there.chain(missing.into_iter().map(|name| (name, "missing", true)));
        picture.boxes.extend(boxes.map(|(name, kind, is_missing)| PictureBox {
            id: place(name),
            label: name.clone(),
            kind: kind.to_owned(),
            is_missing,
        }));
        picture.arrows.extend(found.links.iter().map(|link| Arrow {
            from: place(&link.from),
            to: place(&link.to),
            label: link.link_type.to_owned(),
        }));
    }
    Ok(picture)
}

/// Returns what a node is called in a picture: its name, else its id.
fn label(node: &Node) -> String {
    match node.properties.get("name").or_else(|| node.properties.get("title")) {
        Some(Property::Text(name)) => name.clone(),
        _ => node.id.clone(),
    }
}

/// Returns true if a file is a memory with links: no content of a node, and Markdown.
fn can_link(locator: &Locator) -> bool {
    let is_content = locator.as_str().starts_with("_content/") || locator.as_str().starts_with("_system/");
    !is_content && locator.as_str().ends_with(".md")
}

/// Returns the texts of all memories that can have links.
async fn texts(memory: &Memory) -> Result<Vec<(Locator, String)>, CommandError> {
    let mut texts = Vec::new();
    for locator in memory.files().list_all(&Locator::root()).await? {
        if !can_link(&locator) {
            continue;
        }
        let Ok(object) = memory.files().read(&locator).await else { continue };
        let is_small = object.bytes.len() as u64 <= MAX_TEXT_BYTES;
        let Some(text) = std::str::from_utf8(&object.bytes).ok().filter(|_| is_small) else { continue };
        texts.push((locator, text.to_owned()));
    }
    Ok(texts)
}

/// Returns the box that a user means: by its id, its place, its name, or the short name of its file.
pub(crate) fn find<'p>(picture: &'p Picture, named: &str) -> Result<&'p PictureBox, CommandError> {
    let named = named.strip_prefix("/memories/").unwrap_or(named);
    let named = named.strip_suffix(".md").unwrap_or(named);
    let exact = picture.boxes.iter().find(|one| one.id == named);
    let alike: Vec<&PictureBox> = picture
        .boxes
        .iter()
        .filter(|one| one.label == named || one.id.rsplit('/').next() == Some(named))
        .collect();
    match (exact, alike.as_slice()) {
        (Some(one), _) => Ok(one),
        (None, [one]) => Ok(*one),
        (None, []) => {
            let message = format!("there is no node and no memory {named}");
            Err(CommandError::user(
                message,
                "See the nodes and the memories: haversack node list, haversack ls",
            ))
        }
        (None, several) => {
            let places: Vec<&str> = several.iter().map(|one| one.id.as_str()).collect();
            let message = format!("{named} can be {} things: {}", several.len(), places.join(", "));
            Err(CommandError::user(
                message,
                format!("Name one of them: haversack graph neighbours {}", places[0]),
            ))
        }
    }
}

/// A step from a box to one beside it.
pub(crate) struct Neighbour {
    /// Its distance in steps.
    pub(crate) steps: usize,
    /// The arrow that led there.
    pub(crate) arrow: Arrow,
    /// True if the arrow points to the box that it led to.
    pub(crate) is_forward: bool,
    pub(crate) there: PictureBox,
}

/// Returns what is within some steps of a box, nearest first.
pub(crate) fn neighbours(picture: &Picture, from: &str, depth: usize) -> Vec<Neighbour> {
    let boxes: BTreeMap<&str, &PictureBox> = picture.boxes.iter().map(|one| (one.id.as_str(), one)).collect();
    let mut near: BTreeMap<&str, Vec<(&Arrow, bool, &str)>> = BTreeMap::new();
    for arrow in &picture.arrows {
        near.entry(&arrow.from).or_default().push((arrow, true, &arrow.to));
        if arrow.from != arrow.to {
            near.entry(&arrow.to).or_default().push((arrow, false, &arrow.from));
        }
    }
    for arrows in near.values_mut() {
        // Arrows from a box come before arrows to it.
        arrows.sort_by_key(|(_, is_forward, _)| !is_forward);
    }
    let mut seen: BTreeMap<&str, usize> = BTreeMap::from([(from, 0)]);
    let mut shown = BTreeSet::new();
    let mut queue = VecDeque::from([from]);
    let mut found = Vec::new();
    while let Some(at) = queue.pop_front() {
        let steps = seen.get(at).copied().unwrap_or(0) + 1;
        if steps > depth {
            break;
        }
        for (arrow, is_forward, other) in near.get(at).into_iter().flatten() {
            let Some(there) = boxes.get(other) else { continue };
            if !seen.contains_key(other) {
                seen.insert(other, steps);
                queue.push_back(other);
            }
            // An arrow is shown from the box that is nearer.
            if shown.insert((&arrow.from, &arrow.to, &arrow.label)) {
                let (arrow, is_forward) = ((*arrow).clone(), *is_forward);
                found.push(Neighbour { steps, arrow, is_forward, there: (*there).clone() });
            }
        }
    }
    found
}

/// The parts that a picture left out.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LeftOut {
    pub(crate) boxes: usize,
}

/// Returns the part of a picture around a box, or what has arrows; and how many boxes did not fit in.
pub(crate) fn around(picture: &Picture, center: Option<&str>, depth: usize) -> (Picture, LeftOut) {
    around_at_most(picture, center, depth, MAX_BOXES)
}

/// Returns the same with at most so many boxes: those that are near, or have the most arrows.
pub(crate) fn around_at_most(
    picture: &Picture,
    center: Option<&str>,
    depth: usize,
    most: usize,
) -> (Picture, LeftOut) {
    let mut wanted: Vec<String> = match center {
        Some(center) => {
            let near = neighbours(picture, center, depth).into_iter().map(|one| one.there.id);
            std::iter::once(center.to_owned()).chain(near).collect()
        }
        None => {
            let mut arrows: BTreeMap<&str, usize> = BTreeMap::new();
            for arrow in &picture.arrows {
                *arrows.entry(&arrow.from).or_default() += 1;
                *arrows.entry(&arrow.to).or_default() += 1;
            }
            let mut ids: Vec<&PictureBox> =
                picture.boxes.iter().filter(|one| !is_loose(one, &arrows)).collect();
            ids.sort_by_key(|one| std::cmp::Reverse(arrows.get(one.id.as_str()).copied().unwrap_or(0)));
            ids.into_iter().map(|one| one.id.clone()).collect()
        }
    };
    let mut seen = BTreeSet::new();
    wanted.retain(|id| seen.insert(id.clone()));
    let left_out = LeftOut { boxes: wanted.len().saturating_sub(most) };
    let wanted: BTreeSet<String> = wanted.into_iter().take(most).collect();
    let boxes = picture.boxes.iter().filter(|one| wanted.contains(&one.id)).cloned().collect();
    let arrows =
        picture.arrows.iter().filter(|arrow| wanted.contains(&arrow.from) && wanted.contains(&arrow.to));
    (Picture { boxes, arrows: arrows.cloned().collect() }, left_out)
}

/// Tells whether a memory has no link at all; a node is always drawn.
fn is_loose(one: &PictureBox, arrows: &BTreeMap<&str, usize>) -> bool {
    !one.id.starts_with("mem_") && !arrows.contains_key(one.id.as_str())
}

/// Looks for what is wrong with the graph's files; nothing if there is no graph.
pub(crate) fn examine(settings: &Settings) -> Vec<Finding> {
    let looked = (|| {
        let memory = open_to_look(settings)?;
        let storage = MemoryStorage::new(memory);
        if !block_on(repair::is_there(&storage))? {
            return Ok::<_, CommandError>(None);
        }
        Ok(Some(block_on(repair::examine(&storage))?))
    })();
    match looked {
        Ok(None) => Vec::new(),
        Ok(Some(defects)) if defects.is_empty() => {
            vec![Finding::ok("graph", "every record has its content")]
        }
        Ok(Some(defects)) => defects.iter().map(found).collect(),
        Err(error) => vec![Finding::fail("graph", error.in_one_line(), "haversack doctor --fix")],
    }
}

fn found(defect: &Defect) -> Finding {
    match defect {
        Defect::Damaged { .. } => Finding::fail("graph", defect.to_string(), "haversack doctor --fix"),
        Defect::OntologyDamaged { .. } => {
            Finding::fail("graph", defect.to_string(), "haversack edit /memories/_system/ontology.yaml")
        }
        Defect::OrphanContent { .. } | Defect::LostContent { .. } | Defect::Dangling { .. } => {
            Finding::warn("graph", defect.to_string(), "haversack doctor --fix")
        }
    }
}

/// Repairs the graph's files, and returns what was repaired.
pub(crate) fn fix(settings: &Settings) -> Result<Vec<Defect>, CommandError> {
    let storage = MemoryStorage::new(open_to_look(settings)?);
    if !block_on(repair::is_there(&storage))? || block_on(repair::examine(&storage))?.is_empty() {
        return Ok(Vec::new());
    }
    Ok(block_on(repair::repair(&graph(settings)?))?.0)
}
