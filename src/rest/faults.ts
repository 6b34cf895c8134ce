/** Collects what is wrong with the inputs of one request. */
import type { InputError } from '../core/errors.ts';

/**
 * The greatest number of faults that one answer lists: a request with thousands of faults is explained well enough by
 * the first 32.
 */
const MOST = 32;
/** The greatest number of characters of an unknown name that a message shows. */
const NAME_CHARS = 64;

/** The faults of one request, bounded in number and length. */
export type Faults = { readonly list: readonly InputError[]; add(parameter: string, detail: string): void };

export function collectFaults(): Faults {
  const list: InputError[] = [];
  return {
    list,
    add(parameter, detail) {
      if (list.length < MOST) list.push({ parameter: shorten(parameter) || 'body', detail });
    },
  };
}

function shorten(name: string): string {
  return name.length > NAME_CHARS ? `${name.slice(0, NAME_CHARS).toWellFormed()}...` : name.toWellFormed();
}
