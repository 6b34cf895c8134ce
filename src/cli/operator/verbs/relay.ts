/** Declares the verbs about the relay itself: its state, its nodes and its capacity. */
import type { Verb } from '../verb.ts';
import { COUNT_FLAG, PAGE_FLAGS, YES_FLAG } from './shared.ts';

export const RELAY_VERBS: readonly Verb[] = [
  {
    name: 'status',
    brief: 'Show the state of the deployment; exits with 1 if something needs a person',
    load: async () => (await import('../run/status.ts')).status,
  },
  {
    name: 'top',
    brief: 'Show rates and the busiest clients, again and again',
    flags: {
      sort: { help: 'Which clients come first (default inflight)', values: ['inflight', 'queued', 'wait'] },
      interval: 'How often (default 2s)',
      ...COUNT_FLAG,
    },
    load: async () => (await import('../run/top.ts')).top,
  },
  {
    name: 'nodes ls',
    brief: 'List nodes of the deployment',
    flags: PAGE_FLAGS,
    load: async () => (await import('../run/nodes.ts')).nodesLs,
  },
  {
    name: 'nodes drain',
    brief: 'Make a node take no new work and close its links',
    args: ['node'],
    flags: { within: 'How long live commands may take to end (default 10s)', ...YES_FLAG },
    examples: ['nodes drain node-a --within 60s --yes'],
    load: async () => (await import('../run/nodes.ts')).nodesDrain,
  },
  {
    name: 'capacity ls',
    brief: 'List admission scopes that hold reservations',
    flags: PAGE_FLAGS,
    load: async () => (await import('../run/nodes.ts')).capacityLs,
  },
  {
    name: 'doctor',
    brief: 'Check settings, contexts, token and relay, one line each',
    load: async () => (await import('../run/doctor.ts')).doctor,
  },
];
