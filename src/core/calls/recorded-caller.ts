/** Makes the caller object that the records of a command and of its waits contain. */
import { callerLabel, type CallerLabel } from '../auth/caller-label.ts';
import type { CallingPrincipal } from '../auth/principal.ts';
import { BoundedMap } from '../collections.ts';
import type { CommandCaller } from '../commands/command.ts';

const CALLERS = new WeakMap<CallingPrincipal, CommandCaller>();

/** The most recently made callers with a label. */
const LABELLED = new BoundedMap<string, CommandCaller>({ most: 1_000 });

/**
 * Returns the caller object for records. Equal arguments give the same object, because the records of ended commands
 * stay in memory and share it.
 */
export function callerOf(caller: CallingPrincipal, given?: CallerLabel): CommandCaller {
  if (given) return labelled(callerOf(caller), callerLabel(given));
  const known = CALLERS.get(caller);
  if (known) return known;
  const { kind, token } = caller;
  const made: CommandCaller = { kind, name: kind === 'admin' ? caller.name : caller.userId, ...(token && { token }) };
  CALLERS.set(caller, made);
  return made;
}

function labelled(caller: CommandCaller, label: CallerLabel): CommandCaller {
  const made = { ...caller, label };
  const key = JSON.stringify(made);
  const known = LABELLED.get(key);
  if (known) return known;
  LABELLED.set(key, made);
  return made;
}
