/** Holds the operations that the tests of caching clients run. */

/** Selects rows of every kind that both users have: in lists, and below their users. */
export const EVERYTHING = `
  query Everything {
    users(first: 2) {
      nodes {
        id
        userId
        connections(first: 2) { nodes { id userId clientId contexts { nodes { id userId contextId } } } }
        contexts { nodes { id userId contextId } }
        browserWindows { nodes { id userId windowId } }
        streams(first: 10) { nodes { id userId key messageCount } }
      }
    }
    connections(first: 100) { nodes { id userId clientId status instanceId actions { items { name } } } }
    contexts(first: 100) { edges { node { id userId contextId title status } } }
    browserWindows(first: 100) { nodes { id userId windowId } }
    sites(first: 100) { nodes { id owner siteId title } }
    pendingRpcs(first: 100) { nodes { id userId commandId } }
  }
`;

/** Selects the histories of the same command id of two users. */
export const HISTORIES = `
  query Histories($commandId: ID!) {
    alice: commandHistory(userId: "alice", commandId: $commandId) { nodes { id stream kind } }
    bob: commandHistory(userId: "bob", commandId: $commandId) { nodes { id stream kind } }
  }
`;

export const CONNECTIONS = `
  query Connections {
    connections(first: 100) { nodes { id userId status instanceId } }
  }
`;

export const CONNECTION_EVENTS = `
  subscription ConnectionEvents {
    connectionEvents { change connection { id status instanceId } }
  }
`;

/** Selects one page of a long list. */
export const CONTEXTS_PAGE = `
  query ContextsPage($first: Int!, $after: String) {
    contexts(first: $first, after: $after) {
      edges { cursor node { id userId contextId } }
      pageInfo { hasNextPage endCursor }
    }
  }
`;

export const CONTEXT_TITLES = `
  query ContextTitles {
    contexts(first: 100) { edges { node { id userId contextId title } } }
  }
`;

/** Selects a row by its id, through the interface Node. */
export const CONTEXT_NODE = `
  query ContextNode($id: ID!) {
    node(id: $id) { id ... on ExecutionContext { title } }
  }
`;

export const NODES = `
  query Nodes($ids: [ID!]!) {
    nodes(ids: $ids) { id ... on ConnectionSnapshot { clientId } ... on User { userId } }
  }
`;

export const COMMAND = `
  query OneCommand($userId: ID!, $clientId: ID!, $commandId: ID!) {
    command(userId: $userId, clientId: $clientId, commandId: $commandId) {
      id
      outcome
      delivery { id stage }
    }
  }
`;

export const COMMAND_UPDATES = `
  subscription CommandUpdates($userId: ID!, $clientId: ID!, $commandId: ID!) {
    commandUpdates(userId: $userId, clientId: $clientId, commandId: $commandId) {
      stage
      outcome
      command { id outcome delivery { id stage } }
    }
  }
`;

/** One of two queries that select different members of the same objects, which have no ids. */
export const VIEWER_KIND = 'query ViewerKind { viewer { kind } delivery { summary { trackedCommands } } }';
export const VIEWER_MODE = 'query ViewerMode { viewer { mode } delivery { summary { dueCommands } } }';

export const INVOKE = `
  mutation Invoke($input: InvokeActionInput!) {
    invokeAction(input: $input) {
      ... on Invocation { outcome result command { id outcome } }
      ... on Refusal { code message }
    }
  }
`;

export const USERS_LIST = 'query UsersList { users(first: 10) { nodes { id userId } } }';
