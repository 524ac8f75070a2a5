//! The ontology: which types of nodes there are, and which types of connections between them.
//!
//! It is the file `_system/ontology.yaml`, which a person can read and write:
//!
//! ```yaml
//! node_types:
//!   - Person
//!   - Project
//! connection_types:
//!   - name: WorksOn
//!     from_types: [Person]
//!     to_types: [Project]
//!     required_properties: [since]
//! ```
//!
//! Two machines that each added a type have both after a sync: lists in YAML merge by what their members say or are called.

use super::error::{Code, GraphError};
use super::record::Properties;

/// Node types, and connection types between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ontology {
    /// The names of node types, in the order in which they were added.
    pub node_types: Vec<String>,
    /// Connection types, in the order in which they were added.
    pub connection_types: Vec<ConnectionType>,
}

/// A type of connections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectionType {
    /// Its name.
    pub name: String,
    /// The types of nodes where it can begin.
    pub from_types: Vec<String>,
    /// The types of nodes where it can end.
    pub to_types: Vec<String>,
    /// The properties that each such connection must have.
    pub required_properties: Vec<String>,
}

impl Ontology {
    /// Refuses a node type that is not there.
    pub fn check_node(&self, node_type: &str) -> Result<(), GraphError> {
        if self.node_types.iter().any(|known| known == node_type) {
            return Ok(());
        }
        let known =
            if self.node_types.is_empty() { "none yet".to_owned() } else { self.node_types.join(", ") };
        let message = format!("there is no node type {node_type:?}; the ontology has: {known}");
        Err(GraphError::new(Code::InvalidNodeType, message))
    }

    /// Refuses a connection that its type does not allow.
    pub fn check_connection(
        &self,
        connection_type: &str,
        from_type: &str,
        to_type: &str,
        properties: &Properties,
    ) -> Result<(), GraphError> {
        let Some(known) = self.connection_types.iter().find(|known| known.name == connection_type) else {
            let names: Vec<&str> = self.connection_types.iter().map(|known| known.name.as_str()).collect();
            let names = if names.is_empty() { "none yet".to_owned() } else { names.join(", ") };
            let message =
                format!("there is no connection type {connection_type:?}; the ontology has: {names}");
            return Err(GraphError::new(Code::InvalidConnectionType, message));
        };
        let fits = |types: &[String], node_type: &str| types.iter().any(|known| known == node_type);
        if !fits(&known.from_types, from_type) || !fits(&known.to_types, to_type) {
            let (from, to) = (known.from_types.join(" or "), known.to_types.join(" or "));
            let message =
                format!("{connection_type} goes from {from} to {to}, not from {from_type} to {to_type}");
            return Err(GraphError::new(Code::InvalidTopology, message));
        }
        match known.required_properties.iter().find(|name| !properties.contains_key(*name)) {
            None => Ok(()),
            Some(missing) => {
                let message = format!("{connection_type} requires the property {missing:?}");
                Err(GraphError::new(Code::RequiredPropertyMissing, message))
            }
        }
    }

    /// Adds a node type.
    pub fn add_node_type(&mut self, name: &str) -> Result<(), GraphError> {
        check_name(name)?;
        if self.node_types.iter().any(|known| known == name) {
            let message = format!("the ontology has the node type {name:?} already");
            return Err(GraphError::new(Code::TypeAlreadyExists, message));
        }
        self.node_types.push(name.to_owned());
        Ok(())
    }

    /// Adds a connection type between node types that are there.
    pub fn add_connection_type(&mut self, added: ConnectionType) -> Result<(), GraphError> {
        check_name(&added.name)?;
        if self.connection_types.iter().any(|known| known.name == added.name) {
            let message = format!("the ontology has the connection type {:?} already", added.name);
            return Err(GraphError::new(Code::TypeAlreadyExists, message));
        }
        if added.from_types.is_empty() || added.to_types.is_empty() {
            let message =
                format!("{:?} names no node type where it begins, or none where it ends", added.name);
            return Err(GraphError::new(Code::InvalidArgument, message));
        }
        for node_type in added.from_types.iter().chain(&added.to_types) {
            self.check_node(node_type)?;
        }
        added.required_properties.iter().try_for_each(|name| check_name(name))?;
        self.connection_types.push(added);
        Ok(())
    }

    /// Refuses an ontology that contradicts itself.
    pub fn check(&self) -> Result<(), GraphError> {
        let mut again = Ontology::default();
        self.node_types.iter().try_for_each(|name| again.add_node_type(name))?;
        self.connection_types.iter().try_for_each(|known| again.add_connection_type(known.clone()))
    }

    /// Returns the ontology as YAML.
    pub fn to_yaml(&self) -> String {
        let list = |names: &[String]| {
            let names: Vec<String> = names.iter().map(|name| scalar(name)).collect();
            format!("[{}]", names.join(", "))
        };
        let mut yaml =
            String::from(if self.node_types.is_empty() { "node_types: []\n" } else { "node_types:\n" });
        for name in &self.node_types {
            yaml.push_str(&format!("  - {}\n", scalar(name)));
        }
        yaml.push_str(match self.connection_types.is_empty() {
            true => "connection_types: []\n",
            false => "connection_types:\n",
        });
        for known in &self.connection_types {
            yaml.push_str(&format!("  - name: {}\n", scalar(&known.name)));
            yaml.push_str(&format!("    from_types: {}\n", list(&known.from_types)));
            yaml.push_str(&format!("    to_types: {}\n", list(&known.to_types)));
            if !known.required_properties.is_empty() {
                yaml.push_str(&format!("    required_properties: {}\n", list(&known.required_properties)));
            }
        }
        yaml
    }

    /// Reads an ontology from YAML; the error names the line.
    pub fn from_yaml(text: &str) -> Result<Ontology, GraphError> {
        let mut reader = Reader::default();
        for (number, line) in text.lines().enumerate() {
            reader.line(line).map_err(|why| {
                let message = format!("line {} of the ontology: {why}", number + 1);
                GraphError::new(Code::ContentReadFailed, message)
            })?;
        }
        Ok(reader.ontology)
    }
}

/// Refuses a name that would not survive in a file of lines.
fn check_name(name: &str) -> Result<(), GraphError> {
    if name.trim().is_empty() || name.trim() != name || name.chars().any(char::is_control) {
        let message =
            format!("{name:?} cannot be a name: it is empty, or has control characters or outer spaces");
        return Err(GraphError::new(Code::InvalidArgument, message));
    }
    Ok(())
}

/// Returns a name as YAML reads it: plain where that is safe, else in quotes.
fn scalar(name: &str) -> String {
    let is_plain = name.starts_with(|c: char| c.is_alphabetic())
        && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-')
        && !["true", "false", "null", "yes", "no", "on", "off"].contains(&name.to_ascii_lowercase().as_str());
    if is_plain { name.to_owned() } else { serde_json::Value::from(name).to_string() }
}

/// The list that the next item belongs to.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Within {
    #[default]
    Nothing,
    NodeTypes,
    ConnectionTypes,
    From,
    To,
    Required,
}

#[derive(Default)]
struct Reader {
    ontology: Ontology,
    /// The key of the top level.
    section: Within,
    /// The list of the connection type that is open.
    list: Within,
    /// How deep the dash of the open connection type stands.
    item_indent: usize,
}

impl Reader {
    fn line(&mut self, raw: &str) -> Result<(), String> {
        let line = without_comment(raw);
        let content = line.trim();
        if content.is_empty() || content == "---" {
            return Ok(());
        }
        let indent = line.len() - line.trim_start().len();
        let (dashes, rest) = match content.strip_prefix('-') {
            Some(rest) if rest.is_empty() || rest.starts_with(' ') => (true, rest.trim_start()),
            _ => (false, content),
        };
        if indent == 0 && !dashes {
            return self.top(rest);
        }
        match self.section {
            Within::NodeTypes if dashes => {
                let name = self.named(rest)?;
                self.ontology.node_types.push(name);
                Ok(())
            }
            Within::ConnectionTypes
                if dashes && (self.list == Within::Nothing || indent <= self.item_indent) =>
            {
                self.item_indent = indent;
                self.list = Within::Nothing;
                self.ontology.connection_types.push(ConnectionType::default());
                self.field(rest)
            }
            Within::ConnectionTypes if dashes => {
                let name = plain(rest)?;
                self.open_list()?.push(name);
                Ok(())
            }
            Within::ConnectionTypes => self.field(rest),
            _ => Err(format!("{content:?} has no place here")),
        }
    }

    fn top(&mut self, content: &str) -> Result<(), String> {
        let (key, value) = pair(content)?;
        self.list = Within::Nothing;
        self.section = match key {
            "node_types" => Within::NodeTypes,
            "connection_types" => Within::ConnectionTypes,
            // Additions of a later version or of a person are left alone.
            _ => return Err(format!("{key:?} is neither node_types nor connection_types")),
        };
        if self.section == Within::NodeTypes && !value.is_empty() {
            self.ontology.node_types.extend(flow(value)?);
        } else if !value.is_empty() && value != "[]" {
            return Err("connection types are written one below the other".to_owned());
        }
        Ok(())
    }

    /// Takes a node type, plain or as `name: …`.
    fn named(&self, rest: &str) -> Result<String, String> {
        match pair(rest) {
            Ok(("name", value)) => plain(value),
            _ => plain(rest),
        }
    }

    fn field(&mut self, content: &str) -> Result<(), String> {
        let (key, value) = pair(content)?;
        if key == "name" {
            self.open()?.name = plain(value)?;
            return Ok(());
        }
        self.list = match key {
            "from_types" => Within::From,
            "to_types" => Within::To,
            "required_properties" => Within::Required,
            _ => return Err(format!("{key:?} is no field of a connection type")),
        };
        if !value.is_empty() {
            let names = flow(value)?;
            self.open_list()?.extend(names);
            self.list = Within::Nothing;
        }
        Ok(())
    }

    fn open(&mut self) -> Result<&mut ConnectionType, String> {
        self.ontology.connection_types.last_mut().ok_or_else(|| "no connection type is begun".to_owned())
    }

    fn open_list(&mut self) -> Result<&mut Vec<String>, String> {
        let list = self.list;
        let open = self.open()?;
        match list {
            Within::From => Ok(&mut open.from_types),
            Within::To => Ok(&mut open.to_types),
            Within::Required => Ok(&mut open.required_properties),
            Within::Nothing | Within::NodeTypes | Within::ConnectionTypes => {
                Err("the item belongs to no list".to_owned())
            }
        }
    }
}

/// Returns a line without its comment, which begins with `#` after a space or at the start, outside of quotes.
fn without_comment(line: &str) -> &str {
    let mut quote = None;
    let mut before = ' ';
    for (at, c) in line.char_indices() {
        match quote {
            Some(open) if c == open && before != '\\' => quote = None,
            Some(_) => {}
            None if c == '"' || c == '\'' => quote = Some(c),
            None if c == '#' && before.is_whitespace() => return &line[..at],
            None => {}
        }
        before = c;
    }
    line
}

fn pair(content: &str) -> Result<(&str, &str), String> {
    let (key, value) = content.split_once(':').ok_or_else(|| format!("{content:?} is no field"))?;
    Ok((key.trim(), value.trim()))
}

/// Reads a list in one line, or a single name.
fn flow(value: &str) -> Result<Vec<String>, String> {
    let Some(inner) = value.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) else {
        return plain(value).map(|name| vec![name]);
    };
    let mut names = Vec::new();
    let mut rest = inner.trim();
    while !rest.is_empty() {
        let end = match rest.chars().next() {
            Some('"') => closing(rest, '"')?,
            Some('\'') => closing(rest, '\'')?,
            _ => rest.find(',').unwrap_or(rest.len()),
        };
        names.push(plain(&rest[..end])?);
        rest = rest[end..].trim_start();
        rest = match rest.strip_prefix(',') {
            Some(rest) => rest.trim_start(),
            None if rest.is_empty() => rest,
            None => return Err(format!("{value:?} is no list")),
        };
    }
    Ok(names)
}

/// Returns where the quoted text at the start of `rest` ends.
fn closing(rest: &str, quote: char) -> Result<usize, String> {
    let mut is_escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            '\\' if quote == '"' && !is_escaped => is_escaped = true,
            c if c == quote && !is_escaped => return Ok(at + 1),
            _ => is_escaped = false,
        }
    }
    Err(format!("{rest:?} has no closing quote"))
}

fn plain(value: &str) -> Result<String, String> {
    let value = value.trim();
    if value.starts_with('"') {
        return serde_json::from_str(value).map_err(|_| format!("{value} is no quoted text"));
    }
    if let Some(inner) = value.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
        return Ok(inner.replace("''", "'"));
    }
    if value.is_empty() || value.starts_with(['[', '{', '&', '*', '!', '|', '>']) {
        return Err(format!("{value:?} is no name"));
    }
    Ok(value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Ontology {
        Ontology {
            node_types: ["Person", "Project", "with space", "yes"].map(str::to_owned).to_vec(),
            connection_types: vec![
                ConnectionType {
                    name: "WorksOn".to_owned(),
                    from_types: vec!["Person".to_owned()],
                    to_types: vec!["Project".to_owned(), "with space".to_owned()],
                    required_properties: vec!["since, or: \"until\" # not".to_owned()],
                },
                ConnectionType {
                    name: "Knows".to_owned(),
                    from_types: vec!["Person".to_owned()],
                    to_types: vec!["Person".to_owned()],
                    required_properties: Vec::new(),
                },
            ],
        }
    }

    #[test]
    fn ontology_is_read_as_it_was_written() {
        for ontology in [Ontology::default(), example()] {
            assert_eq!(Ontology::from_yaml(&ontology.to_yaml()).expect("valid"), ontology);
        }
    }

    #[test]
    fn ontology_of_another_hand_is_read() {
        let yaml = "# ours\n---\nnode_types: # all\n- Person\n- name: 'It''s'\n- \"a: b\"\nconnection_types:\n- name: Knows\n  \
                    from_types:\n  - Person\n  - \"a: b\"\n  to_types: Person\n  required_properties:\n    - since\n- name: Next\n  \
                    from_types: ['a, b', Person]\n  to_types: []\n";
        let read = Ontology::from_yaml(yaml).expect("valid");
        assert_eq!(read.node_types, ["Person", "It's", "a: b"]);
        let knows = &read.connection_types[0];
        assert_eq!(knows.from_types, ["Person", "a: b"]);
        assert_eq!(
            (knows.to_types.as_slice(), knows.required_properties.as_slice()),
            (&["Person".to_owned()][..], &["since".to_owned()][..])
        );
        assert_eq!(read.connection_types[1].from_types, ["a, b", "Person"]);
    }

    #[test]
    fn nonsense_names_its_line() {
        for (yaml, line) in [
            ("node_types:\n  - A\nwhat: 1\n", "line 3"),
            ("- A\n", "line 1"),
            ("connection_types:\n  from_types: [A]\n", "line 2"),
            ("connection_types:\n  - name: \"A\n", "line 2"),
            ("node_types: [A\n", "line 1"),
        ] {
            let error = Ontology::from_yaml(yaml).expect_err(yaml);
            assert_eq!(error.code, Code::ContentReadFailed);
            assert!(error.message.contains(line), "{yaml:?}: {error}");
        }
    }

    #[test]
    fn every_violation_has_its_code() {
        let ontology = example();
        let code = |result: Result<(), GraphError>| result.expect_err("refused").code;
        let none = Properties::new();
        assert_eq!(code(ontology.check_node("Ghost")), Code::InvalidNodeType);
        assert_eq!(
            code(ontology.check_connection("Ghost", "Person", "Person", &none)),
            Code::InvalidConnectionType
        );
        assert_eq!(
            code(ontology.check_connection("Knows", "Person", "Project", &none)),
            Code::InvalidTopology
        );
        assert_eq!(
            code(ontology.check_connection("WorksOn", "Person", "Project", &none)),
            Code::RequiredPropertyMissing
        );
        let mut ontology = ontology;
        assert_eq!(code(ontology.add_node_type("Person")), Code::TypeAlreadyExists);
        assert_eq!(code(ontology.add_node_type(" ")), Code::InvalidArgument);
        let again = ConnectionType { name: "Knows".to_owned(), ..ConnectionType::default() };
        assert_eq!(code(ontology.add_connection_type(again)), Code::TypeAlreadyExists);
        let ghosts = ConnectionType {
            name: "Haunts".to_owned(),
            from_types: vec!["Ghost".to_owned()],
            to_types: vec!["Person".to_owned()],
            required_properties: Vec::new(),
        };
        assert_eq!(code(ontology.add_connection_type(ghosts)), Code::InvalidNodeType);
    }
}
