/** Says which mutants the simulator must notice, in which simulation, and why it cannot notice the others. */
import type { StoreName, WorkloadName } from '../simulate/workloads.ts';
import { MUTANTS } from '../outages/mutants/mutants.ts';
import type { Plant } from '../outages/mutants/plant.ts';
import { GUARD_MUTANTS } from './guards.ts';

/** A mutant of any list. Those of fault runs have the mode of their relay in their names. */
export type NamedMutant = Plant & { readonly name: string; readonly says: string };

/** All mutants by their names: those of guards, and those of fault runs. */
export const ALL_MUTANTS: readonly NamedMutant[] = [
  ...GUARD_MUTANTS,
  ...MUTANTS.map((mutant) => ({ ...mutant, name: `${mutant.mode} ${mutant.name}` })),
];

type Simulation = `${StoreName} ${WorkloadName}`;

/** The mutants that simulations must notice, by their store and workload. */
const NOTICED: Readonly<Partial<Record<Simulation, readonly string[]>>> = {};

/** A mutant that a simulation must notice. */
export type SimulatedMutant = NamedMutant & { readonly store: StoreName; readonly acts: WorkloadName };

export const SIMULATED_MUTANTS: readonly SimulatedMutant[] = Object.entries(NOTICED).flatMap(([simulation, names]) => {
  const [store, acts] = simulation.split(' ') as [StoreName, WorkloadName];
  return names.map((name) => ({ ...mutantOf(name), store, acts }));
});

/** Why the simulator does not notice mutants. `files`: the beginnings of their files; `names`: further ones. */
type Reason = { readonly why: string; readonly files?: readonly string[]; readonly names?: readonly string[] };

const REASONS: readonly Reason[] = [];

/** The mutants that the simulator does not notice, by the reasons. Each is in the first list that it fits. */
export const UNNOTICED: readonly { readonly why: string; readonly mutants: readonly NamedMutant[] }[] = REASONS.map(
  ({ why }, i) => ({ why, mutants: ALL_MUTANTS.filter((mutant) => REASONS.findIndex((of) => fits(mutant, of)) === i) }),
);

/** The mutants about which nothing is said. */
export const UNSORTED: readonly NamedMutant[] = ALL_MUTANTS.filter(
  (mutant) => !isSimulated(mutant) && !REASONS.some((reason) => fits(mutant, reason)),
);

function fits(mutant: NamedMutant, { files = [], names = [] }: Reason): boolean {
  if (isSimulated(mutant)) return false;
  return names.includes(mutant.name) || files.some((beginning) => mutant.file.startsWith(beginning));
}

function isSimulated({ name }: NamedMutant): boolean {
  return SIMULATED_MUTANTS.some((simulated) => simulated.name === name);
}

function mutantOf(name: string): NamedMutant {
  const found = ALL_MUTANTS.find((mutant) => mutant.name === name);
  if (!found) throw new Error(`there is no mutant ${name}`);
  return found;
}
