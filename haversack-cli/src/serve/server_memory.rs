//! The graph of a home as `@modelcontextprotocol/server-memory` serves one: nine tools with its names, arguments and answers, and its resource.
//!
//! A client that is set up for `server-memory` changes the command that it starts, and nothing else. Each answer is there twice, as text and as structured
//! content, as that server gives it.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use haversack::Writer;
use haversack::graph::GraphError;
use haversack::graph::server_memory::{Entity, Observations, Relation, ServerMemory};
use haversack::store::block_on;
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, Implementation,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, Resource, ResourceContents, ResourceUpdatedNotificationParam,
    ServerCapabilities, ServerConfig, SubscribeRequestParams, Tool, ToolAnnotations,
    UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, RoleServer};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::app::graph::graph_of;
use crate::error::CommandError;
use crate::serve::mcp::tool_handler::{FactsScope, ToolHandler};
use crate::serve::mcp::{aside, client_name, serve_lines};
use crate::settings::Settings;

/// The address of the whole graph.
const RESOURCE: &str = "memory://knowledge-graph";

/// A tool: its name, its title, what a model is told about it, what it takes, and how it changes things.
struct Described {
    name: &'static str,
    title: &'static str,
    about: &'static str,
    takes: Takes,
    changes: Changes,
}

#[derive(Clone, Copy)]
enum Takes {
    Nothing,
    Entities,
    Relations,
    DeletedRelations,
    Added,
    Deleted,
    EntityNames,
    Query,
    Names,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Changes {
    Nothing,
    Adds,
    Deletes,
}

const TOOLS: [Described; 9] = [
    Described {
        name: "create_entities",
        title: "Create Entities",
        about: "Create multiple new entities in the knowledge graph",
        takes: Takes::Entities,
        changes: Changes::Adds,
    },
    Described {
        name: "create_relations",
        title: "Create Relations",
        about: "Create multiple new relations between entities in the knowledge graph. Relations should be in active voice",
        takes: Takes::Relations,
        changes: Changes::Adds,
    },
    Described {
        name: "add_observations",
        title: "Add Observations",
        about: "Add new observations to existing entities in the knowledge graph",
        takes: Takes::Added,
        changes: Changes::Adds,
    },
    Described {
        name: "delete_entities",
        title: "Delete Entities",
        about: "Delete multiple entities and their associated relations from the knowledge graph",
        takes: Takes::EntityNames,
        changes: Changes::Deletes,
    },
    Described {
        name: "delete_observations",
        title: "Delete Observations",
        about: "Delete specific observations from entities in the knowledge graph",
        takes: Takes::Deleted,
        changes: Changes::Deletes,
    },
    Described {
        name: "delete_relations",
        title: "Delete Relations",
        about: "Delete multiple relations from the knowledge graph",
        takes: Takes::DeletedRelations,
        changes: Changes::Deletes,
    },
    Described {
        name: "read_graph",
        title: "Read Graph",
        about: "Read the entire knowledge graph",
        takes: Takes::Nothing,
        changes: Changes::Nothing,
    },
    Described {
        name: "search_nodes",
        title: "Search Nodes",
        about: "Search for nodes in the knowledge graph based on a query",
        takes: Takes::Query,
        changes: Changes::Nothing,
    },
    Described {
        name: "open_nodes",
        title: "Open Nodes",
        about: "Open specific nodes in the knowledge graph by their names",
        takes: Takes::Names,
        changes: Changes::Nothing,
    },
];

/// Serves one client over stdin and stdout, until the input ends.
pub(crate) fn serve_stdio(settings: &Settings) -> Result<(), CommandError> {
    let handler = ToolHandler::new(settings, FactsScope::CurrentProject);
    let server = Server {
        handler: handler.clone(),
        named: settings.writer.clone(),
        memory: Arc::default(),
        turns: Arc::default(),
        subscribed: Arc::default(),
    };
    serve_lines(server, &handler, "haversack help mcp")
}

#[derive(Clone)]
struct Server {
    handler: Arc<ToolHandler>,
    named: Writer,
    /// The graph, opened by the first call, in the name of the client that made it.
    memory: Arc<OnceLock<ServerMemory>>,
    /// Calls are done in the order in which they were made.
    turns: Arc<tokio::sync::Mutex<()>>,
    subscribed: Arc<Mutex<BTreeSet<String>>>,
}

/// An answer, twice.
struct Answered {
    text: String,
    structured: Value,
}

/// The arguments of a call that cannot be used, or the error of the graph.
enum Refused {
    Arguments(String),
    Graph(GraphError),
    Command(CommandError),
}

impl From<GraphError> for Refused {
    fn from(error: GraphError) -> Refused {
        Refused::Graph(error)
    }
}

impl Refused {
    fn text(&self, tool: &str) -> String {
        match self {
            Refused::Arguments(why) => {
                format!("Input validation error: Invalid arguments for tool {tool}: {why}")
            }
            Refused::Graph(error) => error.message.clone(),
            Refused::Command(error) => error.in_one_line(),
        }
    }
}

#[derive(Deserialize)]
struct EntitiesArgument {
    entities: Vec<EntityArgument>,
}

/// An entity as the tool takes it: all three must be given.
#[derive(Deserialize)]
struct EntityArgument {
    name: String,
    #[serde(rename = "entityType")]
    entity_type: String,
    observations: Vec<String>,
}

#[derive(Deserialize)]
struct RelationsArgument {
    relations: Vec<Relation>,
}

#[derive(Deserialize)]
struct AddedArgument {
    observations: Vec<AddedObservations>,
}

#[derive(Deserialize)]
struct AddedObservations {
    #[serde(rename = "entityName")]
    entity: String,
    contents: Vec<String>,
}

#[derive(Deserialize)]
struct DeletedArgument {
    deletions: Vec<DeletedObservations>,
}

#[derive(Deserialize)]
struct DeletedObservations {
    #[serde(rename = "entityName")]
    entity: String,
    observations: Vec<String>,
}

#[derive(Deserialize)]
struct EntityNamesArgument {
    #[serde(rename = "entityNames")]
    names: Vec<String>,
}

#[derive(Deserialize)]
struct QueryArgument {
    query: String,
}

#[derive(Deserialize)]
struct NamesArgument {
    names: Vec<String>,
}

/// The additions to an entity.
#[derive(Serialize)]
struct AddedResult {
    #[serde(rename = "entityName")]
    entity: String,
    #[serde(rename = "addedObservations")]
    added: Vec<String>,
}

fn arguments<T: for<'a> Deserialize<'a>>(given: Map<String, Value>) -> Result<T, Refused> {
    serde_json::from_value(Value::Object(given)).map_err(|error| Refused::Arguments(error.to_string()))
}

fn answered(text: &impl Serialize, structured: Value) -> Result<Answered, Refused> {
    let text = serde_json::to_string_pretty(text).map_err(|error| Refused::Arguments(error.to_string()))?;
    Ok(Answered { text, structured })
}

fn done(message: &str) -> Answered {
    Answered { text: message.to_owned(), structured: json!({ "success": true, "message": message }) }
}

async fn call(memory: &ServerMemory, tool: &str, given: Map<String, Value>) -> Result<Answered, Refused> {
    match tool {
        "create_entities" => {
            let given: EntitiesArgument = arguments(given)?;
            let entity = |one: EntityArgument| Entity {
                name: one.name,
                entity_type: one.entity_type,
                observations: one.observations,
            };
            let entities: Vec<Entity> = given.entities.into_iter().map(entity).collect();
            let created = memory.create_entities(&entities).await?;
            answered(&created, json!({ "entities": created }))
        }
        "create_relations" => {
            let given: RelationsArgument = arguments(given)?;
            let created = memory.create_relations(&given.relations).await?;
            answered(&created, json!({ "relations": created }))
        }
        "add_observations" => {
            let given: AddedArgument = arguments(given)?;
            let observations =
                |one: AddedObservations| Observations { entity: one.entity, contents: one.contents };
            let added: Vec<Observations> = given.observations.into_iter().map(observations).collect();
            let results = memory.add_observations(&added).await?.into_iter();
            let results: Vec<AddedResult> =
                results.map(|one| AddedResult { entity: one.entity, added: one.contents }).collect();
            answered(&results, json!({ "results": results }))
        }
        "delete_entities" => {
            let given: EntityNamesArgument = arguments(given)?;
            memory.delete_entities(&given.names).await?;
            Ok(done("Entities deleted successfully"))
        }
        "delete_observations" => {
            let given: DeletedArgument = arguments(given)?;
            let observations =
                |one: DeletedObservations| Observations { entity: one.entity, contents: one.observations };
            let deleted: Vec<Observations> = given.deletions.into_iter().map(observations).collect();
            memory.delete_observations(&deleted).await?;
            Ok(done("Observations deleted successfully"))
        }
        "delete_relations" => {
            let given: RelationsArgument = arguments(given)?;
            memory.delete_relations(&given.relations).await?;
            Ok(done("Relations deleted successfully"))
        }
        "search_nodes" => {
            let given: QueryArgument = arguments(given)?;
            let found = memory.search_nodes(&given.query).await?;
            answered(&found, json!(found))
        }
        "open_nodes" => {
            let given: NamesArgument = arguments(given)?;
            let found = memory.open_nodes(&given.names).await?;
            answered(&found, json!(found))
        }
        _ => {
            let all = memory.read_graph().await?;
            answered(&all, json!(all))
        }
    }
}

impl Server {
    /// Returns the graph, in the name of the client that asked first.
    fn memory(&self, client: Option<String>) -> Result<&ServerMemory, CommandError> {
        if let Some(memory) = self.memory.get() {
            return Ok(memory);
        }
        let agent = self.named.agent.clone().or(client);
        let writer = Writer { agent, session: self.named.session.clone(), cause: None };
        let graph = graph_of(self.handler.memory()?.with_writer(writer));
        Ok(self.memory.get_or_init(|| ServerMemory::new(Arc::new(graph))))
    }

    fn answer(
        &self,
        tool: &Described,
        given: Map<String, Value>,
        client: Option<String>,
    ) -> Result<Answered, Refused> {
        let writes = tool.changes != Changes::Nothing;
        if writes && let Some(refusal) = self.handler.refusal() {
            return Err(Refused::Arguments(refusal));
        }
        let memory = self.memory(client).map_err(Refused::Command)?;
        let answered = block_on(call(memory, tool.name, given));
        match writes && answered.is_ok() {
            true => self.handler.scheduler().wrote(),
            false => self.handler.scheduler().asked(),
        }
        answered
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let implementation = Implementation::new("haversack", env!("CARGO_PKG_VERSION"))
            .with_title("Haversack, as server-memory");
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_resources_subscribe()
            .build();
        ServerConfig::new(capabilities).with_server_info(implementation)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(TOOLS.iter().map(described).collect()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        TOOLS.iter().find(|tool| tool.name == name).map(described)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = TOOLS.iter().find(|tool| tool.name == request.name) else {
            return Err(ErrorData::invalid_params(format!("Tool {} not found", request.name), None));
        };
        let client = client_name(&context);
        let given = request.arguments.unwrap_or_default();
        let _turn = self.turns.lock().await;
        let answered =
            aside(Arc::new(self.clone()), move |server: &Server| server.answer(tool, given, client)).await?;
        let is_told = tool.changes != Changes::Nothing
            && answered.is_ok()
            && self.subscribed.lock().unwrap_or_else(PoisonError::into_inner).contains(RESOURCE);
        if is_told {
            // A client that is gone hears nothing.
            drop(context.peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(RESOURCE)).await);
        }
        let result = match answered {
            Ok(Answered { text, structured }) => {
                let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
                result.structured_content = Some(structured);
                result
            }
            Err(refused) => CallToolResult::error(vec![ContentBlock::text(refused.text(tool.name))]),
        };
        Ok(result.into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let resource = Resource::new(RESOURCE, "knowledge-graph")
            .with_title("Knowledge Graph")
            .with_description("The full knowledge graph with all entities and relations")
            .with_mime_type("application/json");
        Ok(ListResourcesResult::with_all_items(vec![resource]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        if request.uri != RESOURCE {
            let data = Some(json!({ "uri": request.uri }));
            return Err(ErrorData::resource_not_found(format!("Resource {} not found", request.uri), data));
        }
        let read = aside(Arc::new(self.clone()), |server: &Server| {
            let memory = server.memory(None).map_err(Refused::Command)?;
            block_on(call(memory, "read_graph", Map::new()))
        });
        match read.await? {
            Ok(Answered { text, .. }) => {
                let contents = ResourceContents::text(text, RESOURCE).with_mime_type("application/json");
                Ok(ReadResourceResult::new(vec![contents]).into())
            }
            Err(refused) => Err(ErrorData::internal_error(refused.text("read_graph"), None)),
        }
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.subscribed.lock().unwrap_or_else(PoisonError::into_inner).insert(request.uri);
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.subscribed.lock().unwrap_or_else(PoisonError::into_inner).remove(&request.uri);
        Ok(())
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [rmcp::model::ProtocolVersion]> {
        Cow::Borrowed(rmcp::model::ProtocolVersion::KNOWN_VERSIONS)
    }
}

fn described(tool: &Described) -> Tool {
    let mut annotations =
        ToolAnnotations::new().open_world(false).read_only(tool.changes == Changes::Nothing);
    annotations = annotations.destructive(tool.changes == Changes::Deletes);
    annotations = annotations.idempotent(tool.changes != Changes::Adds);
    let described = Tool::new(tool.name, tool.about, Arc::new(schema(tool.takes)));
    described.with_title(tool.title).with_annotations(annotations)
}

fn schema(takes: Takes) -> Map<String, Value> {
    let text = |about: &str| json!({ "type": "string", "description": about });
    let texts = |about: &str| json!({ "type": "array", "items": { "type": "string" }, "description": about });
    let object = |properties: Value| {
        let required: Vec<String> =
            properties.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
        match required.is_empty() {
            true => json!({ "type": "object", "properties": properties }),
            false => json!({ "type": "object", "properties": properties, "required": required }),
        }
    };
    let list = |items: Value| json!({ "type": "array", "items": items });
    let relation = object(json!({
        "from": text("The name of the entity where the relation starts"),
        "to": text("The name of the entity where the relation ends"),
        "relationType": text("The type of the relation"),
    }));
    let properties = match takes {
        Takes::Nothing => json!({}),
        Takes::Entities => json!({ "entities": list(object(json!({
            "name": text("The name of the entity"),
            "entityType": text("The type of the entity"),
            "observations": texts("An array of observation contents associated with the entity"),
        }))) }),
        Takes::Relations => json!({ "relations": list(relation) }),
        Takes::DeletedRelations => {
            let mut relations = list(relation);
            relations["description"] = json!("An array of relations to delete");
            json!({ "relations": relations })
        }
        Takes::Added => json!({ "observations": list(object(json!({
            "entityName": text("The name of the entity to add the observations to"),
            "contents": texts("An array of observation contents to add"),
        }))) }),
        Takes::Deleted => json!({ "deletions": list(object(json!({
            "entityName": text("The name of the entity containing the observations"),
            "observations": texts("An array of observations to delete"),
        }))) }),
        Takes::EntityNames => json!({ "entityNames": texts("An array of entity names to delete") }),
        Takes::Query => json!({
            "query": text("The search query to match against entity names, types, and observation content"),
        }),
        Takes::Names => json!({ "names": texts("An array of entity names to retrieve") }),
    };
    match object(properties) {
        Value::Object(schema) => schema,
        _ => Map::new(),
    }
}
