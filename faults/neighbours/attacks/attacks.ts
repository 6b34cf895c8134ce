/** Joins the lists of attacks, and finds an attack by its name. */
import { AGENT_ATTACKS } from './agents.ts';
import type { Attack } from './attack.ts';
import { COMPUTING } from './computing.ts';
import { READING } from './reading.ts';
import { TOKENS } from './tokens.ts';
import { STOPPING } from './stopping.ts';
import { HOLDING } from './holding.ts';
import { CROWDING, STORING } from './crowding.ts';

export const ATTACKS: readonly Attack[] = [
  ...COMPUTING,
  ...HOLDING,
  ...STORING,
  ...TOKENS,
  ...READING,
  ...CROWDING,
  ...AGENT_ATTACKS,
  ...STOPPING,
];

/** Returns the attack with this name. Throws if there is none. */
export function attackOf(name: string): Attack {
  const found = ATTACKS.find((attack) => attack.name === name);
  if (!found) throw new Error(`There is no attack ${name}: ${ATTACKS.map((attack) => attack.name).join(', ')}.`);
  return found;
}
