/** The workloads and stores of simulations by name, and how a plan is run with them. */
import { Calls } from './calls.ts';
import { Deployment, OWNED_FAULTS, type DeploymentOptions } from './deployment.ts';
import { DIRECTORY_FAULTS, DirectoryDeployment } from './directory.ts';
import { Events } from './events.ts';
import { Pauses } from './pauses.ts';
import type { FaultKind, Plan } from './plan.ts';
import type { Relays, SimulatedDeployment } from './relays.ts';
import { Revocations } from './revocations.ts';
import { Sites } from './sites.ts';
import { StoreCommands } from './store-commands.ts';
import { simulate, type Verdict, type Workload } from './world.ts';

export const WORKLOADS = {
  calls: (relays: Relays): Workload => new Calls(relays),
  events: (relays: Relays): Workload => new Events(relays),
  pauses: (relays: Relays): Workload => new Pauses(relays),
  revocations: (relays: Relays): Workload => new Revocations(relays),
  sites: (relays: Relays): Workload => new Sites(relays),
  store: (relays: Relays): Workload => new StoreCommands(relays),
} as const;

export type WorkloadName = keyof typeof WORKLOADS;

export function isWorkload(name: string): name is WorkloadName {
  return Object.hasOwn(WORKLOADS, name);
}

/** Where relays keep what they know, and the faults that it can have. */
type Store = {
  readonly deploy: (options: DeploymentOptions) => SimulatedDeployment;
  readonly faults: readonly FaultKind[];
  /** The files of the store whose branches runs should reach, below `src`. */
  readonly files: readonly string[];
};

const OWNED_FILES = ['fence', 'lease', 'owner', 'partition', 'partition-log', 'slot-group', 'tail', 'turns'];
const DIRECTORY_FILES = ['batches', 'disk-space', 'files', 'gate', 'journal', 'open', 'room', 'snapshot'];

export const STORES = {
  owned: {
    deploy: (options) => new Deployment(options),
    faults: OWNED_FAULTS,
    files: OWNED_FILES.map((name) => `backends/owned/${name}.ts`),
  },
  directory: {
    deploy: (options) => new DirectoryDeployment(options),
    faults: DIRECTORY_FAULTS,
    files: DIRECTORY_FILES.map((name) => `backends/journal/${name}.ts`),
  },
} as const satisfies Readonly<Record<string, Store>>;

export type StoreName = keyof typeof STORES;

export function isStore(name: string): name is StoreName {
  return Object.hasOwn(STORES, name);
}

/** What a run simulates. */
export type Setting = { readonly acts: WorkloadName; readonly store: StoreName };

/** Runs a plan. Rejects with whatever a relay throws beyond its callers. */
export function runPlan(plan: Plan, { acts, store }: Setting, trace?: (line: string) => void): Promise<Verdict> {
  return simulate({ plan, trace, deploy: STORES[store].deploy, make: WORKLOADS[acts] });
}
