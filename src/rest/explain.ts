import type { Fault } from '../core/errors.ts';
import { callboardErrorOf, type Mask } from '../graphql/mask.ts';
import { isCode } from '../protocol/codes.ts';
import { explainError, type Explained } from './problem.ts';

/** Says what an error of execution tells the asker; anything that is not meant for askers becomes `internal` and is logged. */
export type Explain = (error: unknown) => Explained;

/** The mask decides what may be shown; this says it in the words of problems. */
export function createExplain(mask: Mask): Explain {
  return (error) => {
    const shown = mask(error);
    const known = callboardErrorOf(shown);
    if (known) return explainError(known);
    const { code, id, errors } = shown.extensions;
    // GraphQL's own words on a document of ours can only be about what the asker sent.
    if (!isCode(code)) return { code: 'invalid_argument', detail: shown.message };
    return {
      code,
      detail: shown.message,
      ...(typeof id === 'string' && { id }),
      ...(isFaults(errors) && { errors }),
    };
  };
}

function isFaults(value: unknown): value is readonly Fault[] {
  return Array.isArray(value) && value.every((one: Partial<Fault>) => typeof one?.parameter === 'string');
}
