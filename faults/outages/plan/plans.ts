/** Lists the plans of fault runs by name: which faults, which load, and what must hold. */
import { LARGE_BYTES, NARROW_PLANS } from './narrow-plans.ts';
import type { Plan, PlanRow, Range } from './plan.ts';

const EVERYSEC = ['--appendonly', 'yes', '--appendfsync', 'everysec', '--save', ''];
const ALWAYS = ['--appendonly', 'yes', '--appendfsync', 'always', '--save', ''];
const NONE = ['--appendonly', 'no', '--save', ''];
const SHORT: Range = [0, 0];
/**
 * The arguments of a Redis that never rewrites its log. If it did, cutting the log's end would lose more than the last
 * second.
 */
const ONE_LOG = [...EVERYSEC, '--auto-aof-rewrite-percentage', '0'];

const base = {
  gap: [3_000, 10_000],
  hold: SHORT,
  faults: 3,
  redis: EVERYSEC,
  durability: 'aof_everysec',
  loss: false,
  callersOnly: false,
  doubled: 0.1,
  workMs: 20,
  respondMs: 30_000,
  promises: [],
  rolling: false,
  sentinel: false,
  form: null,
  bytes: 0,
  again: false,
  clients: Infinity,
} as const;

/** The connections from each relay pass a proxy that counts commands, and one break follows the other. */
const BREAKS: Pick<Plan, 'gap' | 'form'> = { gap: [200, 500], form: 'single' };

const rows: readonly PlanRow[] = [
  ...NARROW_PLANS,
  { name: 'F0', says: 'no fault', kinds: [], faults: 0 },
  { name: 'F1', says: 'kill -9 of a relay', kinds: ['relay-kill'], faults: 20, promises: ['recovery'] },
  {
    name: 'F2',
    says: "kill -9 of the callers' relay",
    kinds: ['relay-kill'],
    callersOnly: true,
    again: true,
    promises: ['recovery', 'reattached'],
  },
  { name: 'F3', says: 'kill -9 of Redis, AOF every second', kinds: ['redis-kill'] },
  {
    name: 'F3a',
    says: 'kill -9 of Redis, AOF always',
    kinds: ['redis-kill'],
    redis: ALWAYS,
    durability: 'aof_always',
  },
  {
    name: 'F4',
    says: 'restart of a Redis that keeps nothing',
    kinds: ['redis-kill'],
    redis: NONE,
    durability: 'memory',
    loss: true,
    promises: ['noticed', 'answered'],
  },
  {
    name: 'F5',
    says: "the last second of Redis' log lost",
    kinds: ['redis-cut'],
    redis: ONE_LOG,
    loss: true,
    promises: ['noticed', 'answered'],
  },
  {
    name: 'F6',
    says: 'Redis paused for 30 s',
    kinds: ['redis-pause'],
    gap: [35_000, 40_000],
    hold: [30_000, 30_000],
    promises: ['amnesty'],
  },
  {
    name: 'F7',
    says: 'a relay paused for 30 s',
    kinds: ['relay-pause'],
    gap: [35_000, 40_000],
    hold: [30_000, 30_000],
  },
  {
    name: 'F8',
    says: 'the connection to Redis: lost, reset, half open, replies dropped, slow',
    kinds: ['hole', 'reset', 'half-open', 'drop-reply', 'slow', 'slices'],
    gap: [4_000, 8_000],
    hold: [2_000, 5_000],
    faults: 6,
  },
  {
    name: 'sentinel',
    says: 'kill -9 of the master under a sentinel',
    kinds: ['redis-failover'],
    gap: [8_000, 12_000],
    sentinel: true,
    loss: true,
    promises: ['answered'],
  },
  { name: 'F12', says: 'every command from two callers at once', kinds: [], faults: 0, doubled: 1 },
  { name: 'F13', says: 'clients killed, back as new instances', kinds: ['clients-kill'], workMs: 500 },
  { name: 'F14', says: "clients' connections reset", kinds: ['links-reset'], gap: [1_000, 3_000], faults: 10 },
  {
    name: 'F15',
    says: 'two processes of one node: one after the other, at once, and one that was believed dead',
    kinds: ['relay-kill', 'relay-twin', 'relay-swap'],
    gap: [4_000, 8_000],
    faults: 6,
    promises: ['single'],
  },
  {
    name: 'F17',
    says: 'spilled payloads: removed, damaged, replaced, no room',
    kinds: ['spill-remove', 'spill-flip', 'spill-link', 'spill-shut', 'spill-full'],
    gap: [1_500, 3_000],
    hold: [1_000, 2_500],
    faults: 8,
    bytes: LARGE_BYTES,
    promises: ['payloads'],
  },
  {
    name: 'F19',
    says: 'relays drained and started again, one after the other',
    kinds: ['relay-drain'],
    gap: [4_000, 8_000],
    faults: 6,
    workMs: 3_000,
    rolling: true,
    promises: ['drained'],
  },
  {
    name: 'F20',
    says: 'each connection to Redis broken twice at SUBSCRIBE and at each command of its reconnection',
    kinds: ['redis-break'],
    faults: 13,
    ...BREAKS,
  },
  {
    name: 'F20r',
    says: 'a relay whose connection to Redis breaks at each command of its start',
    kinds: ['relay-break'],
    faults: 40,
    ...BREAKS,
  },
  { name: 'F20t', says: 'F20 over TLS', kinds: ['redis-break'], faults: 11, ...BREAKS, form: 'tls' },
  { name: 'F20s', says: 'F20 under a sentinel', kinds: ['redis-break'], faults: 11, ...BREAKS, form: 'sentinel' },
  {
    name: 'F20c',
    says: 'F20 over a cluster',
    kinds: ['redis-break'],
    faults: 11,
    ...BREAKS,
    form: 'cluster',
    durability: 'memory',
  },
  {
    name: 'F21',
    says: 'the connections of a relay to Redis broken 300 times a minute',
    kinds: ['redis-flap'],
    hold: [20_000, 20_000],
  },
  {
    name: 'F22',
    says: 'kill -9 of Redis 60 times a minute, AOF always',
    kinds: ['redis-kills'],
    hold: [20_000, 20_000],
    redis: ALWAYS,
    durability: 'aof_always',
  },
];

export const PLANS: readonly Plan[] = rows.map((row) => ({ ...base, ...row }));

export function planOf(name: string): Plan {
  const plan = PLANS.find((one) => one.name.toLowerCase() === name.toLowerCase());
  if (!plan) throw new Error(`there is no plan ${name}: ${PLANS.map((one) => one.name).join(', ')}`);
  return plan;
}
