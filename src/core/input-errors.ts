/** Collects the faults of a request's inputs, so that one error names all of them. */
import { CallboardError, fail, type InputError } from './errors.ts';

/** A collector of the faults of one request's inputs. */
export type InputErrors = {
  /** Returns the value, or undefined if `read` threw an `invalid_argument`. Any other error propagates. */
  check<T>(read: () => T): T | undefined;
  /** Throws one `invalid_argument` that names every invalid input, if there is any. */
  throwIfAny(): void;
};

export function collectInputErrors(): InputErrors {
  const faults: InputError[] = [];
  return {
    check(read) {
      try {
        return read();
      } catch (error) {
        if (!(error instanceof CallboardError) || error.code !== 'invalid_argument') throw error;
        faults.push(...(error.details.errors ?? []));
        return undefined;
      }
    },
    throwIfAny() {
      if (faults.length === 0) return;
      const text = faults.map(({ parameter, detail }) => `${parameter}: ${detail}`).join('; ');
      fail('invalid_argument', text, { errors: faults });
    },
  };
}

export function optional<T>(value: string | null | undefined, read: (text: string) => T): T | null {
  return value === null || value === undefined ? null : read(value);
}
