/** Lists the first words of the operators' commands. Every start loads this file, so it imports nothing. */

/** The description of each first word, by the word. */
export const NOUNS: Readonly<Record<string, string>> = {
  status: 'State of the deployment',
  top: 'Rates and the busiest clients, again and again',
  clients: 'Connected clients',
  users: 'Users',
  actions: 'Actions that clients advertise',
  places: 'Execution contexts and browser windows',
  sites: 'Cooperative sites',
  call: 'Invoke an action',
  preflight: 'What would refuse a call',
  calls: 'Calls and their ends',
  waits: 'Callers that wait',
  streams: 'Streams of retained messages',
  messages: 'Retained messages',
  audit: 'What administrators did',
  nodes: 'Nodes of the deployment',
  capacity: 'Admission scopes',
  context: 'Relays, and where their tokens come from',
  doctor: 'Checks of settings, token and relay',
  completion: 'Completion for shells',
};
