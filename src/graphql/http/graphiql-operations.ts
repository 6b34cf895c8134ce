/**
 * The operations that the GraphQL editor opens with, one in each tab. The example call goes to the client `kiosk-1`,
 * whose code `callboard serve` prints when it starts.
 */
export const EXAMPLE_OPERATIONS: readonly { readonly query: string; readonly variables?: string }[] = [
  {
    query: `# Press Ctrl-Enter to run this. The other tabs call a client and watch connections.
query WhoIsConnected {
  connections(first: 20) {
    nodes {
      userId
      clientId
      status
      connectedAt
      actions {
        items {
          name
          summary
        }
      }
      pendingRpcs(first: 5) {
        nodes {
          action
          ageMs
          stage
        }
      }
    }
    completeness {
      complete
    }
  }
}
`,
  },
  {
    query: `mutation Call($input: InvokeActionInput!) {
  invokeAction(input: $input) {
    ... on InvokeActionOutcome {
      commandId
      outcome
      result
      error {
        code
        message
      }
    }
    ... on Refusal {
      code
      message
    }
  }
}
`,
    variables: `{
  "input": {
    "userId": "demo",
    "clientId": "kiosk-1",
    "action": "notes.add",
    "params": { "text": "milk" },
    "connectWithinMs": 10000
  }
}
`,
  },
  {
    query: `subscription Connections {
  connectionEvents {
    change
    cause
    at
    connection {
      userId
      clientId
      status
    }
    missed
  }
}
`,
  },
];
