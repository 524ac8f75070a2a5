//! The graph, over every storage: its operations, its codes, and what others do to its files.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use futures_lite::future::block_on;
use haversack::clock::Clock;
use haversack::file_storage::{Content, FileContent, FileStorage, Operation};
use haversack::graph::links;
use haversack::graph::repair::{self, Defect, UNSPECIFIED};
use haversack::graph::search::Scan;
use haversack::graph::server_memory::{Entity, Observations, Relation, ServerMemory};
use haversack::graph::{
    Code, ConnectionQuery, ConnectionType, Direction, Graph, GraphError, NewConnection, NewNode, OnMultiple,
    Ontology, Properties, Property, Traversal, Update,
};
use haversack::ids::{Ids, Timestamp};
use haversack::merge::{Rule, Side, merge};
use haversack::store::{Bytes, ErrorKind, Fault};

use crate::subjects::{Subject, at, on_every_storage, on_memory_store};

on_every_storage!(
    nodes_live,
    connections_live,
    queries_and_walks,
    content_is_searched,
    ontology_lives,
    every_code,
    refused_operations_change_nothing,
    delete_node_cascades,
    singleton_is_made_once,
    foreign_fields_stay,
    registry_of_another_program_is_read,
    many_records_go_to_shards,
    entities_and_relations,
    jsonl_goes_in_and_out,
);

// Nodes of bytes and of 10 MB are left out: such a store refuses them.
on_memory_store!(
    connections_live,
    queries_and_walks,
    content_is_searched,
    ontology_lives,
    every_code,
    refused_operations_change_nothing,
    delete_node_cascades,
    singleton_is_made_once,
    foreign_fields_stay,
    registry_of_another_program_is_read,
    many_records_go_to_shards,
    entities_and_relations,
    jsonl_goes_in_and_out,
);

struct Ticking(AtomicI64);

impl Clock for Ticking {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.fetch_add(1, Ordering::Relaxed))
    }
}

struct Counting(AtomicU64);

impl Ids for Counting {
    fn next(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.0.fetch_add(1, Ordering::Relaxed).to_be_bytes());
        bytes
    }
}

fn storage(subject: &Subject) -> Arc<dyn FileStorage> {
    subject.storage.clone()
}

fn graph_from(subject: &Subject, first_id: u64) -> Graph {
    let clock = Arc::new(Ticking(AtomicI64::new(1_790_000_000_000)));
    Graph::new(storage(subject), clock, Arc::new(Counting(AtomicU64::new(first_id))))
}

/// Returns a graph of people who work on projects and know each other.
fn graph(subject: &Subject) -> Graph {
    let graph = graph_from(subject, 1);
    let connection = |name: &str, from: &str, to: &str, required: &[&str]| ConnectionType {
        name: name.to_owned(),
        from_types: vec![from.to_owned()],
        to_types: vec![to.to_owned()],
        required_properties: required.iter().map(|name| (*name).to_owned()).collect(),
    };
    let ontology = Ontology {
        node_types: vec!["Person".to_owned(), "Project".to_owned()],
        connection_types: vec![
            connection("WorksOn", "Person", "Project", &["since"]),
            connection("Knows", "Person", "Person", &[]),
        ],
    };
    block_on(graph.create_ontology(&ontology)).expect("created");
    graph
}

fn node(graph: &Graph, node_type: &str, text: &str, properties: &[(&str, Property)]) -> String {
    let new = NewNode {
        node_type: node_type.to_owned(),
        content: Content::Text(text.to_owned()),
        format: "markdown".to_owned(),
        properties: self::properties(properties),
    };
    block_on(graph.create_node(new)).expect("created")
}

fn properties(pairs: &[(&str, Property)]) -> Properties {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
}

fn new_connection(connection_type: &str, from: &str, to: &str) -> NewConnection {
    NewConnection {
        connection_type: connection_type.to_owned(),
        from: from.to_owned(),
        to: to.to_owned(),
        properties: properties(&[("since", 2024.into())]),
        ..NewConnection::default()
    }
}

fn connect(graph: &Graph, connection_type: &str, from: &str, to: &str) -> String {
    block_on(graph.create_connection(new_connection(connection_type, from, to))).expect("connected")
}

fn code<T: std::fmt::Debug>(result: Result<T, GraphError>) -> &'static str {
    result.expect_err("refused").code.as_str()
}

/// Returns every file with its content.
fn files(subject: &Subject) -> BTreeMap<String, Bytes> {
    let storage = storage(subject);
    let names = block_on(storage.marks("")).expect("listed").into_keys();
    let content = |name: &str| match block_on(storage.view(name)).expect("there") {
        FileContent::File { content, .. } => Bytes::from(content),
        FileContent::Directory { .. } => panic!("{name} is a directory"),
    };
    names.map(|name| (name.clone(), content(&name))).collect()
}

fn nodes_live(subject: &Subject) {
    let graph = graph(subject);
    let keeper = node(&graph, "Person", "# Keeper\n", &[("rank", 1.into()), ("awake", true.into())]);
    let there = block_on(graph.get_node(&keeper)).expect("there");
    assert_eq!((there.node_type.as_str(), there.content.format.as_str()), ("Person", "markdown"));
    assert_eq!(there.content.path, format!("_content/nodes/{keeper}.md"));
    assert_eq!(
        block_on(graph.get_node_content(&keeper)).expect("read"),
        Content::Text("# Keeper\n".to_owned())
    );

    let update =
        Update { properties: properties(&[("rank", 2.into()), ("name", "K".into())]), ..Update::default() };
    block_on(graph.update_node(&keeper, update)).expect("updated");
    let after = block_on(graph.get_node(&keeper)).expect("there");
    assert_eq!(
        after.properties,
        properties(&[("awake", true.into()), ("name", "K".into()), ("rank", 2.into())])
    );
    assert!(after.modified > there.modified && after.created == there.created);

    // Text becomes bytes, and the file's name with it; 10 MB are no trouble.
    let pdf = Bytes::from([b"%PDF\xff".to_vec(), vec![7; 10 * 1024 * 1024]].concat());
    let content = Some(Content::Bytes(pdf.clone()));
    block_on(
        graph.update_node(&keeper, Update { content, format: Some("pdf".to_owned()), ..Update::default() }),
    )
    .expect("updated");
    assert_eq!(block_on(graph.get_node_content(&keeper)).expect("read"), Content::Bytes(pdf));
    assert_eq!(
        block_on(graph.get_node(&keeper)).expect("there").content.path,
        format!("_content/nodes/{keeper}.pdf")
    );
    assert!(!files(subject).contains_key(&format!("_content/nodes/{keeper}.md")));

    assert_eq!(block_on(graph.delete_node(&keeper)).expect("deleted"), 0);
    assert_eq!(code(block_on(graph.get_node(&keeper))), "NODE_NOT_FOUND");
    assert!(!files(subject).keys().any(|name| name.contains(&keeper)), "{:?}", files(subject).keys());
}

fn connections_live(subject: &Subject) {
    let graph = graph(subject);
    let (keeper, lighthouse) = (node(&graph, "Person", "", &[]), node(&graph, "Project", "", &[]));
    let new = NewConnection {
        content: Some("since the storm\n".to_owned()),
        ..new_connection("WorksOn", &keeper, &lighthouse)
    };
    let works = block_on(graph.create_connection(new)).expect("connected");
    let there = block_on(graph.get_connection(&works)).expect("there");
    assert_eq!((there.from.as_str(), there.to.as_str()), (keeper.as_str(), lighthouse.as_str()));
    assert_eq!(
        block_on(graph.get_connection_content(&works)).expect("read"),
        Some(Content::Text("since the storm\n".to_owned()))
    );
    let content = Some(Content::Text("until winter\n".to_owned()));
    block_on(graph.update_connection(
        &works,
        Update { content, properties: properties(&[("role", "head".into())]), format: None },
    ))
    .expect("updated");
    assert_eq!(
        block_on(graph.get_connection_content(&works)).expect("read"),
        Some(Content::Text("until winter\n".to_owned()))
    );
    assert_eq!(block_on(graph.get_connection(&works)).expect("there").properties.len(), 2);
    block_on(graph.delete_connection(&works)).expect("deleted");
    assert_eq!(code(block_on(graph.get_connection(&works))), "CONNECTION_NOT_FOUND");
    assert!(!files(subject).keys().any(|name| name.contains("connections/")), "{:?}", files(subject).keys());
}

fn queries_and_walks(subject: &Subject) {
    let graph = graph(subject);
    let people: Vec<String> = (0..6)
        .map(|number| {
            node(&graph, "Person", "", &[("rank", number.into()), ("crew", (number % 2 == 0).into())])
        })
        .collect();
    let project = node(&graph, "Project", "", &[]);
    for pair in people.windows(2) {
        connect(&graph, "Knows", &pair[0], &pair[1]);
    }
    // A circle, and a connection of a node with itself.
    connect(&graph, "Knows", &people[5], &people[0]);
    connect(&graph, "Knows", &people[0], &people[0]);
    let works = connect(&graph, "WorksOn", &people[3], &project);

    let all = Properties::new();
    assert_eq!(block_on(graph.query_nodes(Some("Person"), &all)).expect("found"), people);
    assert_eq!(block_on(graph.query_nodes(None, &all)).expect("found").len(), 7);
    let crew = properties(&[("crew", true.into())]);
    assert_eq!(block_on(graph.query_nodes(None, &crew)).expect("found").len(), 3);
    let two = properties(&[("crew", true.into()), ("rank", 2.into())]);
    assert_eq!(block_on(graph.query_nodes(None, &two)).expect("found"), [people[2].clone()]);
    assert!(
        block_on(graph.query_nodes(None, &properties(&[("rank", "2".into())]))).expect("found").is_empty()
    );

    let query = ConnectionQuery { to: Some(project.clone()), ..ConnectionQuery::default() };
    assert_eq!(block_on(graph.query_connections(&query)).expect("found"), [works]);
    let query = ConnectionQuery { connection_type: Some("Knows".to_owned()), ..ConnectionQuery::default() };
    assert_eq!(block_on(graph.query_connections(&query)).expect("found").len(), 7);

    let near = |direction| block_on(graph.get_connected_nodes(&people[3], None, direction)).expect("found");
    assert_eq!(near(Direction::Out), [people[4].clone(), project.clone()]);
    assert_eq!(near(Direction::In), [people[2].clone()]);
    assert_eq!(near(Direction::Both).len(), 3);
    let knows =
        block_on(graph.get_connected_nodes(&people[0], Some("Knows"), Direction::Both)).expect("found");
    assert_eq!(knows.len(), 3, "each once, itself included: {knows:?}");

    let walk = |max_steps, max_nodes| {
        let traversal = Traversal { direction: Direction::Out, connection_type: None, max_steps, max_nodes };
        block_on(graph.traverse(&people[0], &traversal)).expect("walked")
    };
    assert_eq!(walk(2, 100).iter().map(|step| step.steps).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(walk(100, 100).len(), 7, "a circle ends");
    assert_eq!(walk(100, 4).len(), 4);
    let path = |from: &str, to: &str, direction| {
        block_on(graph.shortest_path(from, to, None, direction)).expect("looked")
    };
    assert_eq!(path(&people[0], &project, Direction::Out).expect("a path").len(), 5);
    assert_eq!(path(&people[0], &people[5], Direction::Both).expect("a path").len(), 2);
    assert_eq!(path(&project, &people[0], Direction::Out), None);
    assert_eq!(path(&project, &project, Direction::Out), Some(vec![project.clone()]));
}

fn content_is_searched(subject: &Subject) {
    let graph = graph(subject);
    let scan = Scan::new(graph.storage().clone());
    let one = node(&graph, "Person", "The Lamp is green.", &[]);
    let two = node(&graph, "Project", "the lamp was red", &[]);
    let search = |query: &str, node_type, limit| {
        block_on(graph.search_content(&scan, query, node_type, limit)).expect("searched")
    };
    assert_eq!(search("LAMP", None, 10), [one.clone(), two.clone()]);
    assert_eq!(search("lamp", Some("Project"), 10), std::slice::from_ref(&two));
    assert_eq!(search("lamp", None, 1).len(), 1);
    assert!(search("lamp", None, 0).is_empty());
    let content = Some(Content::Text("dark".to_owned()));
    block_on(graph.update_node(&one, Update { content, ..Update::default() })).expect("updated");
    assert_eq!(search("lamp", None, 10), [two]);
    assert_eq!(search("dark", None, 10), [one]);
}

fn ontology_lives(subject: &Subject) {
    let graph = graph(subject);
    assert_eq!(code(block_on(graph.create_ontology(&Ontology::default()))), "ONTOLOGY_ALREADY_EXISTS");
    block_on(graph.add_node_type("Ship")).expect("added");
    let sails = ConnectionType {
        name: "Sails".to_owned(),
        from_types: vec!["Person".to_owned()],
        to_types: vec!["Ship".to_owned()],
        required_properties: Vec::new(),
    };
    block_on(graph.add_connection_type(sails)).expect("added");
    let ontology = block_on(graph.ontology()).expect("there");
    assert_eq!(ontology.node_types, ["Person", "Project", "Ship"]);
    assert_eq!(ontology.connection_types.len(), 3);
    let keeper = node(&graph, "Person", "", &[]);
    let ship = node(&graph, "Ship", "", &[]);
    block_on(graph.validate_connection(&new_connection("Sails", &keeper, &ship))).expect("valid");
    assert!(block_on(graph.violations()).expect("looked").is_empty());
    let edited = "node_types: [Person]\nconnection_types: []\n";
    let path = "_system/ontology.yaml".to_owned();
    let operations =
        [Operation::Delete { path: path.clone() }, Operation::Create { path, content: edited.into() }];
    block_on(graph.storage().batch(&operations)).expect("written");
    assert_eq!(block_on(graph.violations()).expect("looked").len(), 1, "the ship has no type now");
}

fn every_code(subject: &Subject) {
    let bare = graph_from(subject, 1);
    let new = || NewNode {
        node_type: "Person".to_owned(),
        content: Content::Text(String::new()),
        format: "markdown".to_owned(),
        properties: Properties::new(),
    };
    assert_eq!(code(block_on(bare.create_node(new()))), "ONTOLOGY_NOT_FOUND");
    assert_eq!(code(block_on(bare.add_node_type("Person"))), "ONTOLOGY_NOT_FOUND");
    let graph = graph(subject);
    let (keeper, lighthouse) = (node(&graph, "Person", "", &[]), node(&graph, "Project", "", &[]));
    assert_eq!(code(block_on(graph.create_ontology(&Ontology::default()))), "ONTOLOGY_ALREADY_EXISTS");
    assert_eq!(code(block_on(graph.add_node_type("Person"))), "TYPE_ALREADY_EXISTS");
    let ghost = NewNode { node_type: "Ghost".to_owned(), ..new() };
    assert_eq!(code(block_on(graph.create_node(ghost))), "INVALID_NODE_TYPE");
    let try_connect = |new: NewConnection| code(block_on(graph.create_connection(new)));
    assert_eq!(try_connect(new_connection("Haunts", &keeper, &lighthouse)), "INVALID_CONNECTION_TYPE");
    assert_eq!(try_connect(new_connection("WorksOn", &lighthouse, &keeper)), "INVALID_TOPOLOGY");
    let bare =
        NewConnection { properties: Properties::new(), ..new_connection("WorksOn", &keeper, &lighthouse) };
    assert_eq!(try_connect(bare), "REQUIRED_PROPERTY_MISSING");
    assert_eq!(try_connect(new_connection("WorksOn", "mem_none", &lighthouse)), "NODE_NOT_FOUND");
    assert_eq!(code(block_on(graph.get_node("../../etc/passwd"))), "NODE_NOT_FOUND");
    assert_eq!(code(block_on(graph.delete_connection("conn_none"))), "CONNECTION_NOT_FOUND");
    assert_eq!(code(block_on(graph.update_node(&keeper, Update::default()))), "INVALID_ARGUMENT");
    // The ids of this handle are those of the first one: a file is in the way of its first content.
    let twin = graph_from(subject, 1);
    assert_eq!(code(block_on(twin.create_node(new()))), "FILE_CREATION_FAILED");
    assert_eq!(block_on(graph.get_node(&keeper)).expect("there").id, keeper);
    let knows = connect(&graph, "Knows", &keeper, &keeper);
    let bytes = Update { content: Some(Content::Bytes(Bytes::from_static(b"\xff"))), ..Update::default() };
    assert_eq!(code(block_on(graph.update_connection(&knows, bytes))), "INVALID_ENCODING");
    block_on(graph.storage().delete(&format!("_content/nodes/{keeper}.md"))).expect("deleted");
    assert_eq!(code(block_on(graph.get_node_content(&keeper))), "CONTENT_READ_FAILED");
    assert_eq!(Code::ALL.len(), 13);
}

fn refused_operations_change_nothing(subject: &Subject) {
    let graph = graph(subject);
    let (keeper, lighthouse) = (node(&graph, "Person", "k", &[]), node(&graph, "Project", "l", &[]));
    let before = files(subject);
    for new in [
        new_connection("WorksOn", &lighthouse, &keeper),
        new_connection("WorksOn", &keeper, "mem_none"),
        new_connection("Haunts", &keeper, &lighthouse),
    ] {
        let new = NewConnection { content: Some("text".to_owned()), ..new };
        block_on(graph.create_connection(new)).expect_err("refused");
    }
    block_on(graph.delete_node("mem_none")).expect_err("refused");
    block_on(graph.update_node("mem_none", Update { format: Some("x".to_owned()), ..Update::default() }))
        .expect_err("refused");
    assert_eq!(files(subject), before);
}

fn delete_node_cascades(subject: &Subject) {
    let graph = graph(subject);
    let (one, two, three) =
        (node(&graph, "Person", "", &[]), node(&graph, "Person", "", &[]), node(&graph, "Person", "", &[]));
    let with_content =
        NewConnection { content: Some("text".to_owned()), ..new_connection("Knows", &one, &two) };
    block_on(graph.create_connection(with_content)).expect("connected");
    connect(&graph, "Knows", &three, &one);
    connect(&graph, "Knows", &one, &one);
    let stays = connect(&graph, "Knows", &two, &three);
    assert_eq!(block_on(graph.delete_node(&one)).expect("deleted"), 3);
    assert_eq!(block_on(graph.query_connections(&ConnectionQuery::default())).expect("found"), [stays]);
    assert!(block_on(repair::examine(&**graph.storage())).expect("looked").is_empty());
    let refused = block_on(graph.create_connection(new_connection("Knows", &two, &one)));
    assert_eq!(code(refused), "NODE_NOT_FOUND");
}

fn singleton_is_made_once(subject: &Subject) {
    let graph = graph(subject);
    let new = || NewNode {
        node_type: "Project".to_owned(),
        content: Content::Text("only".to_owned()),
        format: "markdown".to_owned(),
        properties: Properties::new(),
    };
    let (id, is_new) = block_on(graph.ensure_singleton_node(new(), OnMultiple::Oldest)).expect("made");
    assert!(is_new);
    let again =
        block_on(graph_from(subject, 99).ensure_singleton_node(new(), OnMultiple::Oldest)).expect("there");
    assert_eq!(again, (id.clone(), false));
    let second = block_on(graph.create_node(new())).expect("created");
    assert_eq!(
        block_on(graph.ensure_singleton_node(new(), OnMultiple::Newest)).expect("there"),
        (second, false)
    );
    assert_eq!(block_on(graph.ensure_singleton_node(new(), OnMultiple::Oldest)).expect("there"), (id, false));
}

fn foreign_fields_stay(subject: &Subject) {
    let graph = graph(subject);
    let keeper = node(&graph, "Person", "", &[]);
    let path = "_system/registry.json";
    block_on(graph.storage().str_replace(
        path,
        "\"type\": \"Person\"",
        "\"type\": \"Person\", \"colour\": [1]",
    ))
    .expect("edited");
    block_on(graph.storage().str_replace(
        path,
        "\"connections\": {}",
        "\"connections\": {}, \"by\": \"a person\"",
    ))
    .expect("edited");
    block_on(
        graph.update_node(
            &keeper,
            Update { properties: properties(&[("rank", 3.into())]), ..Update::default() },
        ),
    )
    .expect("updated");
    let text = String::from_utf8(files(subject)[path].to_vec()).expect("text");
    assert!(
        text.contains("\"colour\": [")
            && text.contains("\"by\": \"a person\"")
            && text.contains("\"rank\": 3"),
        "{text}"
    );
}

fn registry_of_another_program_is_read(subject: &Subject) {
    let text = "{\n  \"nodes\": {\n    \"mem_k4_p8\": {\"id\": \"mem_k4_p8\", \"type\": \"Person\", \"created\": \"2025-10-31T10:00:00Z\",\n    \"modified\": \
                \"2025-10-31T15:30:00Z\", \"properties\": {\"status\": \"active\"}, \"content\": {\"path\": \"_content/nodes/mem_k4_p8.txt\", \
                \"format\": \"markdown\", \"encoding\": \"utf-8\"}}\n  },\n  \"connections\": {}\n}\n";
    let storage = storage(subject);
    block_on(storage.create("_system/registry.json", text.into())).expect("created");
    block_on(storage.create("_content/nodes/mem_k4_p8.txt", "old".into())).expect("created");
    let graph = graph(subject);
    assert_eq!(
        block_on(graph.query_nodes(Some("Person"), &Properties::new())).expect("found"),
        ["mem_k4_p8"]
    );
    let content = Some(Content::Text("new".to_owned()));
    block_on(graph.update_node("mem_k4_p8", Update { content, ..Update::default() })).expect("updated");
    assert_eq!(block_on(graph.get_node_content("mem_k4_p8")).expect("read"), Content::Text("new".to_owned()));
    assert!(block_on(repair::examine(&*storage)).expect("looked").is_empty());
}

fn many_records_go_to_shards(subject: &Subject) {
    let graph = graph(subject);
    // Long properties fill the first file with few records.
    let about = "x".repeat(1000);
    let create = |number: i64| {
        let properties = [("rank", number.into()), ("about", about.as_str().into())];
        node(&graph, "Person", "x", &properties)
    };
    let ids: Vec<String> = (0..48).map(create).collect();
    for pair in ids.windows(2).step_by(2) {
        connect(&graph, "Knows", &pair[0], &pair[1]);
    }
    let files = files(subject);
    let shards = files.keys().filter(|name| name.starts_with("_system/registry/")).count();
    assert!(shards > 20, "{shards}");
    assert!(files["_system/registry.json"].len() < 35 * 1024, "{}", files["_system/registry.json"].len());
    let other = graph_from(subject, 1000);
    assert_eq!(block_on(other.query_nodes(None, &Properties::new())).expect("found"), ids);
    for (number, id) in ids.iter().enumerate() {
        let rank = i64::try_from(number).expect("small") + 1;
        block_on(other.update_node(
            id,
            Update { properties: properties(&[("rank", rank.into())]), ..Update::default() },
        ))
        .expect("updated");
    }
    assert_eq!(
        block_on(graph.query_nodes(None, &properties(&[("rank", 48.into())]))).expect("found"),
        [ids[47].clone()]
    );
    for id in &ids {
        block_on(graph.delete_node(id)).expect("deleted");
    }
    assert!(block_on(other.query_nodes(None, &Properties::new())).expect("found").is_empty());
    assert!(block_on(repair::examine(&**graph.storage())).expect("looked").is_empty());
}

fn entity(name: &str, observations: &[&str]) -> Entity {
    Entity {
        name: name.to_owned(),
        entity_type: "thing".to_owned(),
        observations: observations.iter().map(|text| (*text).to_owned()).collect(),
    }
}

fn relation(from: &str, to: &str) -> Relation {
    Relation { from: from.to_owned(), to: to.to_owned(), relation_type: "lights".to_owned() }
}

fn observed(entity: &str, contents: &[&str]) -> Observations {
    Observations {
        entity: entity.to_owned(),
        contents: contents.iter().map(|text| (*text).to_owned()).collect(),
    }
}

fn entities_and_relations(subject: &Subject) {
    let server = ServerMemory::new(Arc::new(graph_from(subject, 1)));
    let made = block_on(server.create_entities(&[entity("lamp", &["is green"]), entity("tower", &[])]))
        .expect("created");
    assert_eq!(made.len(), 2);
    let again =
        block_on(server.create_entities(&[entity("lamp", &["is red"]), entity("sea", &["is\nwide"])]))
            .expect("created");
    assert_eq!(again, [entity("sea", &["is\nwide"])]);
    assert_eq!(
        block_on(server.create_relations(&[relation("lamp", "sea"), relation("lamp", "ship")]))
            .expect("related")
            .len(),
        2
    );
    assert!(block_on(server.create_relations(&[relation("lamp", "sea")])).expect("related").is_empty());
    let added =
        block_on(server.add_observations(&[observed("lamp", &["is green", "is old"])])).expect("added");
    assert_eq!(added, [observed("lamp", &["is old"])]);
    let error = block_on(server.add_observations(&[observed("tower", &["x"]), observed("ship", &["y"])]))
        .expect_err("not there");
    assert_eq!(error.message, "Entity with name ship not found");
    let all = block_on(server.read_graph()).expect("read");
    assert_eq!(
        all.entities,
        [entity("lamp", &["is green", "is old"]), entity("tower", &[]), entity("sea", &["is\nwide"])]
    );
    assert_eq!(all.relations, [relation("lamp", "sea"), relation("lamp", "ship")]);
    let found = block_on(server.search_nodes("WIDE")).expect("searched");
    assert_eq!((found.entities.len(), found.relations), (1, vec![relation("lamp", "sea")]));
    assert_eq!(block_on(server.open_nodes(&["ship".to_owned()])).expect("opened").entities, []);
    block_on(server.create_entities(&[entity("ship", &[])])).expect("the placeholder becomes an entity");
    assert_eq!(
        block_on(server.open_nodes(&["ship".to_owned()])).expect("opened").relations,
        [relation("lamp", "ship")]
    );
    block_on(server.delete_observations(&[observed("lamp", &["is green", "never was"])])).expect("deleted");
    block_on(server.delete_relations(&[relation("lamp", "sea"), relation("sea", "lamp")])).expect("deleted");
    block_on(server.delete_entities(&["sea".to_owned(), "none".to_owned()])).expect("deleted");
    let all = block_on(server.read_graph()).expect("read");
    assert_eq!(all.entities, [entity("lamp", &["is old"]), entity("tower", &[]), entity("ship", &[])]);
    assert_eq!(all.relations, [relation("lamp", "ship")]);
    // A node that was made by other means is an entity of its name.
    let other = graph_from(subject, 500);
    block_on(
        other.create_ontology(&Ontology { node_types: vec!["Person".to_owned()], ..Ontology::default() }),
    )
    .expect("created");
    node(&other, "Person", "- keeps the lamp\n", &[("name", "keeper".into())]);
    let opened = block_on(server.open_nodes(&["keeper".to_owned()])).expect("opened");
    assert_eq!(opened.entities[0].observations, ["keeps the lamp"]);
    block_on(server.add_observations(&[observed("keeper", &["sleeps"])])).expect("added");
    assert_eq!(block_on(server.create_entities(&[entity("keeper", &[])])).expect("one more").len(), 1);
}

fn jsonl_goes_in_and_out(subject: &Subject) {
    let server = ServerMemory::new(Arc::new(graph_from(subject, 1)));
    let text = "{\"type\":\"entity\",\"name\":\"lamp\",\"entityType\":\"thing\",\"observations\":[\"a\",\"b \\\"c\\\"\"]}\n\
                {\"type\":\"entity\",\"name\":\"sea\",\"entityType\":\"place\",\"observations\":[]}\n\
                {\"type\":\"relation\",\"from\":\"lamp\",\"to\":\"sea\",\"relationType\":\"lights\"}";
    let imported = block_on(server.import(text)).expect("imported");
    assert_eq!((imported.entities, imported.relations), (2, 1));
    assert_eq!(block_on(server.export()).expect("exported"), text);
    let again = block_on(server.import(&text.replace("\"a\"", "\"a\",\"d\""))).expect("imported");
    assert_eq!((again.entities, again.observations, again.relations), (0, 1, 0));
    assert_eq!(block_on(server.import("{\"type\":\"entity\"")).expect_err("cut").code, Code::InvalidArgument);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the test plays two processes")]
fn two_handles_keep_every_node() {
    let subject = Subject::device_local();
    let first = graph(&subject);
    let second = graph_from(&subject, 10_000);
    std::thread::scope(|scope| {
        for graph in [&first, &second] {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        node(graph, "Person", "x", &[]);
                    }
                });
            }
        }
    });
    assert_eq!(block_on(first.query_nodes(None, &Properties::new())).expect("found").len(), 200);
    assert!(block_on(repair::examine(&**first.storage())).expect("looked").is_empty());
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the test plays two processes")]
fn connection_to_a_node_that_is_being_deleted() {
    let subject = Subject::device_local();
    let graph = graph(&subject);
    let other = graph_from(&subject, 10_000);
    for _ in 0..20 {
        let (one, two) = (node(&graph, "Person", "", &[]), node(&graph, "Person", "", &[]));
        std::thread::scope(|scope| {
            scope.spawn(|| block_on(graph.delete_node(&one)).expect("deleted"));
            scope.spawn(|| drop(block_on(other.create_connection(new_connection("Knows", &two, &one)))));
        });
        assert_eq!(block_on(repair::examine(&**graph.storage())).expect("looked"), []);
    }
}

#[test]
fn killed_between_content_and_record() {
    let subject = Subject::in_memory();
    let graph = graph(&subject);
    let keeper = node(&graph, "Person", "k", &[]);
    // A process that dies there leaves exactly this behind.
    block_on(graph.storage().create("_content/nodes/mem_dead.md", "half".into())).expect("created");
    block_on(graph.storage().delete(&format!("_content/nodes/{keeper}.md"))).expect("deleted");
    let defects = block_on(repair::examine(&**graph.storage())).expect("looked");
    assert_eq!(defects.len(), 2, "{defects:?}");
    let (repaired, left) = block_on(repair::repair(&graph)).expect("repaired");
    assert_eq!((repaired.len(), left.len()), (2, 0), "{repaired:?} {left:?}");
    let adopted = block_on(graph.get_node("mem_dead")).expect("adopted");
    assert_eq!(adopted.node_type, UNSPECIFIED);
    assert_eq!(block_on(graph.get_node_content("mem_dead")).expect("read"), Content::Text("half".to_owned()));
}

/// Everything in a graph but its times: nodes and connections with their contents.
type Everything = BTreeMap<String, (String, Properties, Vec<String>, Option<Content>)>;

fn everything(graph: &Graph) -> Everything {
    let (nodes, connections) = block_on(graph.everything()).expect("read");
    let mut all = Everything::new();
    for node in nodes {
        let content = block_on(graph.get_node_content(&node.id)).expect("read");
        let value = (node.node_type.clone(), node.properties.clone(), Vec::new(), Some(content));
        all.insert(node.id.clone(), value);
    }
    for one in connections {
        let content = block_on(graph.get_connection_content(&one.id)).expect("read");
        let ends = vec![one.from.clone(), one.to.clone()];
        all.insert(one.id.clone(), (one.connection_type.clone(), one.properties.clone(), ends, content));
    }
    all
}

/// Lets every storage operation of a graph's write fail from a certain one on, as when the process dies there, and looks after the repair.
#[test]
fn write_that_dies_anywhere_is_whole_or_undone_after_a_repair() {
    type Write = fn(&Graph, &[String]) -> Result<(), GraphError>;
    let text = |text: &str| Some(Content::Text(text.to_owned()));
    let writes: [(&str, Write); 6] = [
        ("create node", |graph, _| {
            let new = NewNode {
                node_type: "Person".to_owned(),
                content: Content::Text("new".to_owned()),
                format: "markdown".to_owned(),
                properties: Properties::new(),
            };
            block_on(graph.create_node(new)).map(drop)
        }),
        ("update node", |graph, ids| {
            let content = Some(Content::Text("new".to_owned()));
            let properties = properties(&[("rank", 2.into())]);
            block_on(
                graph.update_node(&ids[0], Update { properties, content, format: Some("text".to_owned()) }),
            )
        }),
        ("delete node", |graph, ids| block_on(graph.delete_node(&ids[0])).map(drop)),
        ("create connection", |graph, ids| {
            let content = Some("new".to_owned());
            let new = NewConnection { content, ..new_connection("Knows", &ids[1], &ids[0]) };
            block_on(graph.create_connection(new)).map(drop)
        }),
        ("update connection", |graph, ids| {
            let content = Some(Content::Text("new".to_owned()));
            let properties = properties(&[("rank", 2.into())]);
            block_on(graph.update_connection(&ids[2], Update { properties, content, format: None }))
        }),
        ("delete connection", |graph, ids| block_on(graph.delete_connection(&ids[2]))),
    ];
    let begin = || {
        let (subject, files, state) = Subject::faulty();
        let graph = graph(&subject);
        let (one, two) =
            (node(&graph, "Person", "1", &[("rank", 1.into())]), node(&graph, "Person", "2", &[]));
        let content = Some("since the storm".to_owned());
        let new = NewConnection { content, ..new_connection("Knows", &one, &two) };
        let knows = block_on(graph.create_connection(new)).expect("connected");
        (subject, files, state, graph, [one, two, knows])
    };
    for (name, write) in writes {
        let (_subject, files, state, graph, ids) = begin();
        let before = everything(&graph);
        let (files_before, state_before) = (files.operations(), state.operations());
        write(&graph, &ids).expect("no fault");
        let steps = [files.operations() - files_before, state.operations() - state_before];
        let after = everything(&graph);
        assert_ne!(before, after, "{name}");
        for fault in [Fault::Refused(ErrorKind::Unavailable), Fault::AnswerLost] {
            for (in_state, step) in
                (0..steps[0]).map(|step| (false, step)).chain((0..steps[1]).map(|step| (true, step)))
            {
                let (subject, files, state, graph, ids) = begin();
                let dies = || [fault].into_iter().chain([Fault::Refused(ErrorKind::Unavailable); 1000]);
                match in_state {
                    false => files.plan(std::iter::repeat_n(Fault::None, step).chain(dies())),
                    true => state.plan(std::iter::repeat_n(Fault::None, step).chain(dies())),
                }
                let result = write(&graph, &ids);
                files.plan([]);
                state.plan([]);
                let what = format!("{name}, {fault:?} at {step} (state: {in_state}): {result:?}");
                let next = Subject::over(subject.files.clone(), subject.state.clone(), None);
                let next = graph_from(&next, 10_000);
                let (_, left) = block_on(repair::repair(&next)).expect(&what);
                assert!(left.is_empty(), "{what}: {left:?}");
                let mut now = everything(&next);
                // A content without a record was found again as a node of its own: the new text, or one that was about to be deleted.
                now.retain(|id, (node_type, _, _, content)| {
                    let is_adopted = node_type == UNSPECIFIED;
                    let was_there = before.get(id).map(|(.., content)| content.clone());
                    assert!(
                        !is_adopted || was_there == Some(content.clone()) || *content == text("new"),
                        "{what}"
                    );
                    !is_adopted
                });
                assert!(now == after || now == before && result.is_err(), "{what}: {now:?}");
            }
        }
    }
}

#[test]
fn repair_keeps_connections_of_a_node_that_comes_back() {
    let subject = Subject::in_memory();
    let graph = graph(&subject);
    let (one, two) = (node(&graph, "Person", "1", &[]), node(&graph, "Person", "2", &[]));
    connect(&graph, "Knows", &one, &two);
    let whole = subject.text("_system/registry.json").expect("there");
    let mut data: serde_json::Value = serde_json::from_str(&whole).expect("JSON");
    // The record is gone, or nonsense stands in its place.
    for nonsense in [None, Some(serde_json::json!("text"))] {
        data["nodes"].as_object_mut().expect("nodes").remove(&one);
        if let Some(nonsense) = nonsense {
            data["nodes"][&one] = nonsense;
        }
        subject.put("_system/registry.json", Bytes::from(data.to_string()));
        let (_, left) = block_on(repair::repair(&graph)).expect("repaired");
        assert!(left.is_empty(), "{left:?}");
        assert_eq!(block_on(graph.get_node(&one)).expect("there").node_type, UNSPECIFIED);
        let connected = block_on(graph.get_connected_nodes(&one, Some("Knows"), Direction::Out));
        assert_eq!(connected.expect("found"), std::slice::from_ref(&two));
    }
}

#[test]
fn repair_finds_content_of_a_record_that_names_another_place() {
    for place in ["../../etc/passwd", "_content/nodes/elsewhere.md", "/", ""] {
        let subject = Subject::in_memory();
        let graph = graph(&subject);
        let keeper = node(&graph, "Person", "climbs", &[]);
        let text = subject.text("_system/registry.json").expect("there");
        let edited = text.replace(&format!("_content/nodes/{keeper}.md"), place);
        subject.put("_system/registry.json", Bytes::from(edited.clone()));
        block_on(repair::repair(&graph)).expect("repaired");
        let content = block_on(graph.get_node_content(&keeper)).expect("read");
        assert_eq!(content, Content::Text("climbs".to_owned()), "{place}");
        assert_eq!(block_on(repair::examine(&**graph.storage())).expect("looked"), []);
        // If the content is gone too, the record gets a place where one can be.
        subject.put("_system/registry.json", Bytes::from(edited));
        block_on(graph.storage().delete(&format!("_content/nodes/{keeper}.md"))).expect("deleted");
        block_on(repair::repair(&graph)).expect("repaired");
        let content = block_on(graph.get_node_content(&keeper)).expect("read");
        assert!(matches!(content, Content::Text(note) if note.contains("was lost")), "{place}");
    }
}

#[test]
fn key_of_a_record_counts() {
    let subject = Subject::in_memory();
    let graph = graph(&subject);
    let keeper = node(&graph, "Person", "climbs", &[]);
    let text = subject.text("_system/registry.json").expect("there");
    subject.put(
        "_system/registry.json",
        text.replace(&format!("\"id\": \"{keeper}\""), "\"id\": \"mem_other\""),
    );
    assert_eq!(
        block_on(graph.query_nodes(None, &Properties::new())).expect("found"),
        std::slice::from_ref(&keeper)
    );
    assert_eq!(block_on(graph.get_node(&keeper)).expect("there").id, keeper);
    let update = Update { properties: properties(&[("rank", 1.into())]), ..Update::default() };
    block_on(graph.update_node(&keeper, update)).expect("updated");
    assert!(!subject.text("_system/registry.json").expect("there").contains("mem_other"));
}

#[test]
fn damaged_registry_is_never_replaced() {
    let subject = Subject::in_memory();
    let graph = graph(&subject);
    let (one, two) = (node(&graph, "Person", "1", &[("rank", 1.into())]), node(&graph, "Person", "2", &[]));
    connect(&graph, "Knows", &one, &two);
    let whole = subject.text("_system/registry.json").expect("there");
    let mut most = 0;
    for cut in 0..whole.len() - 2 {
        subject.put("_system/registry.json", Bytes::copy_from_slice(&whole.as_bytes()[..cut]));
        assert_eq!(
            code(block_on(graph.query_nodes(None, &Properties::new()))),
            "CONTENT_READ_FAILED",
            "{cut}"
        );
        assert_eq!(
            code(block_on(
                graph.update_node(&one, Update { format: Some("x".to_owned()), ..Update::default() })
            )),
            "CONTENT_READ_FAILED"
        );
        assert_eq!(subject.text("_system/registry.json").expect("there"), whole[..cut]);
        let (repaired, left) = block_on(repair::repair(&graph)).expect("repaired");
        assert!(
            matches!(repaired[0], Defect::Damaged { .. }) && left.is_empty(),
            "{cut}: {repaired:?} {left:?}"
        );
        let nodes = block_on(graph.query_nodes(None, &Properties::new())).expect("found");
        assert_eq!(nodes.len(), 2, "{cut}: each content has a node again");
        most =
            most.max(block_on(graph.query_nodes(Some("Person"), &Properties::new())).expect("found").len());
    }
    assert_eq!(most, 2, "records that can be read are kept");
    for nonsense in ["[]", "{\"nodes\": []}", "{\"nodes\": {\"a\": 1}}", "\u{feff}{}", "null", ""] {
        subject.put("_system/registry.json", Bytes::from(nonsense));
        assert_eq!(
            code(block_on(graph.query_nodes(None, &Properties::new()))),
            "CONTENT_READ_FAILED",
            "{nonsense:?}"
        );
        let (_, left) = block_on(repair::repair(&graph)).expect("repaired");
        assert!(left.is_empty(), "{nonsense:?}: {left:?}");
    }
}

#[test]
fn connection_to_nowhere_is_not_shown() {
    let subject = Subject::in_memory();
    let graph = graph(&subject);
    let (one, two) = (node(&graph, "Person", "1", &[]), node(&graph, "Person", "2", &[]));
    connect(&graph, "Knows", &one, &two);
    let text = subject.text("_system/registry.json").expect("there");
    // The state after a sync in which one machine deleted the node and another one connected it.
    subject.put("_system/registry.json", text.replace(&format!("\"to\": \"{two}\""), "\"to\": \"mem_gone\""));
    assert!(block_on(graph.get_connected_nodes(&one, None, Direction::Both)).expect("found").is_empty());
    assert!(block_on(graph.query_connections(&ConnectionQuery::default())).expect("found").is_empty());
    let defects = block_on(repair::examine(&**graph.storage())).expect("looked");
    assert!(matches!(defects.as_slice(), [Defect::Dangling { .. }]), "{defects:?}");
    assert!(block_on(repair::repair(&graph)).expect("repaired").1.is_empty());
}

#[test]
fn registries_of_two_machines_merge_by_record_and_field() {
    let base = Subject::in_memory();
    let graph = graph(&base);
    let shared = node(&graph, "Person", "", &[("rank", 1.into()), ("crew", true.into())]);
    let path = "_system/registry.json";
    let text = base.text(path).expect("there");
    let machine = |first_id, property: (&str, Property)| {
        let subject = Subject::in_memory();
        for (name, bytes) in files(&base) {
            subject.put(&name, bytes);
        }
        let graph = graph_from(&subject, first_id);
        let added = node(&graph, "Person", "", &[]);
        connect(&graph, "Knows", &added, &shared);
        block_on(
            graph.update_node(&shared, Update { properties: properties(&[property]), ..Update::default() }),
        )
        .expect("updated");
        subject
    };
    let (one, other) = (machine(100, ("rank", 2.into())), machine(200, ("crew", false.into())));
    let (ours, theirs) = (one.text(path).expect("there"), other.text(path).expect("there"));
    let side = |text: &'static str, device| Side { bytes: text.as_bytes(), device };
    let rule = Rule::of(&at(path), [text.as_bytes()]);
    assert_eq!(
        (rule, Rule::of(&at("_system/registry/ab.json"), [text.as_bytes()])),
        (Rule::Json, Rule::Json)
    );
    let merged = merge(rule, Some(text.as_bytes()), side(ours.leak(), "one"), side(theirs.leak(), "other"));
    assert!(merged.copy.is_none(), "no field was changed by both");
    for subject in [&one, &other] {
        for (name, bytes) in files(&one).into_iter().chain(files(&other)) {
            subject.put(&name, bytes);
        }
        subject.put(path, merged.bytes.clone());
        let graph = graph_from(subject, 900);
        assert_eq!(block_on(graph.query_nodes(None, &Properties::new())).expect("found").len(), 3);
        assert_eq!(block_on(graph.query_connections(&ConnectionQuery::default())).expect("found").len(), 2);
        let shared = block_on(graph.get_node(&shared)).expect("there");
        assert_eq!(shared.properties, properties(&[("rank", 2.into()), ("crew", false.into())]));
        assert!(block_on(repair::examine(&**graph.storage())).expect("looked").is_empty());
    }
}

#[test]
fn same_entity_on_two_machines_is_one_node() {
    let ids = |first_id| {
        let subject = Subject::in_memory();
        let server = ServerMemory::new(Arc::new(graph_from(&subject, first_id)));
        block_on(server.create_entities(&[entity("lamp", &["x"])])).expect("created");
        files(&subject).into_keys().collect::<Vec<_>>()
    };
    assert_eq!(ids(1), ids(777));
}

#[test]
fn links_need_no_import() {
    let found = links::find([
        ("notes/MEMORY.md", "index", "- [Tone](feedback_tone.md) — how\n"),
        ("notes/feedback_tone.md", "feedback", "x [[ports]]\n"),
    ]);
    assert_eq!(found.of("feedback_tone").count(), 2);
}

#[test]
fn node_of_bytes_is_refused_by_a_memory_store() {
    let subject = Subject::memory_store();
    let graph = graph(&subject);
    let before = files(&subject);
    let new = NewNode {
        node_type: "Person".to_owned(),
        content: Content::Bytes(Bytes::from_static(b"\xff")),
        format: "png".to_owned(),
        properties: Properties::new(),
    };
    let error = block_on(graph.create_node(new)).expect_err("refused");
    assert_eq!(error.code, Code::FileCreationFailed);
    assert!(error.message.contains("holds text only"), "{error}");
    assert_eq!(files(&subject), before);
}

#[test]
fn record_of_another_file_takes_nothing_but_itself_away() {
    let subject = Subject::in_memory();
    let graph = graph(&subject);
    let keeper = node(&graph, "Person", "k", &[]);
    subject.put("notes.md", "the user's own");
    let text = subject.text("_system/registry.json").expect("there");
    for path in ["notes.md", "../../etc/passwd"] {
        subject.put("_system/registry.json", text.replace(&format!("_content/nodes/{keeper}.md"), path));
        block_on(graph.delete_node(&keeper)).expect("deleted");
        assert_eq!(subject.text("notes.md").as_deref(), Some("the user's own"));
    }
}
