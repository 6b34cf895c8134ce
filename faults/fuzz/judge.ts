/** Judges the relay's answers to hostile inputs. */
import { z } from 'zod';
import { CODES, isCode } from '../../src/protocol/codes.ts';

/** The parts of an answer that are judged. `text` is its body. */
export type Answer = { readonly status: number; readonly text: string };

const PROBLEM = z.object({ code: z.string() });
const INSIDE = z.object({ error: z.object({ code: z.string() }) });
const ERRORS = z.object({ errors: z.array(z.object({ extensions: z.object({ code: z.string() }) })).min(1) });
const TRACE = /\bat [\w.<>]+ \((?:file|node):|node:internal|\/src\/\w+\/[\w-]+\.ts/;

/**
 * Returns the fault of an answer; null if it has none. Each refusal must state its cause by a documented code, and a
 * failure of the relay (5xx) must have the status that belongs to its code. The code `internal` states no cause, so it
 * is always a fault.
 */
export function problemOf({ status, text }: Answer): string | null {
  if (status === 0) return null;
  if (TRACE.test(text)) return 'the answer shows a stack trace';
  const codes = codesOf(status, text);
  if (text.startsWith('{"errors"') && codes.length === 0) return `${status} with an error without a code`;
  if (codes.includes('internal')) return `${status} with the code internal`;
  const strange = codes.find((code) => !isCode(code));
  if (strange !== undefined) return `${status} with a code that is not in the table: ${strange}`;
  if (status < 400) return null;
  if (codes.length === 0) return `${status} without a code`;
  if (status >= 500 && !codes.some((code) => isCode(code) && CODES[code] === status))
    return `${status} with the code ${codes.join(', ')}`;
  return null;
}

/** Returns the codes in an answer: from a problem document, from the error in an outcome, or from GraphQL errors. */
function codesOf(status: number, text: string): readonly string[] {
  const isErrors = text.startsWith('{"errors"');
  if (!isErrors && status < 400) return [];
  const json = parse(text);
  const errors = ERRORS.safeParse(json);
  if (errors.success) return errors.data.errors.map(({ extensions }) => extensions.code);
  const problem = PROBLEM.safeParse(json);
  if (problem.success) return [problem.data.code];
  const inside = INSIDE.safeParse(json);
  return inside.success ? [inside.data.error.code] : [];
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

// Describes the relay's answer in a few characters.

/**
 * Returns `forbidden` if the sender may not send such inputs at all; otherwise the code of a refusal, or the status.
 */
export function answerOf({ status, text }: Answer): string {
  const code = /"code":"(\w+)"/.exec(text.slice(0, 2_000))?.[1];
  if (code === 'forbidden') return 'forbidden';
  const isRefusal = status >= 400 || text.startsWith('{"errors"');
  return isRefusal && code !== undefined ? code : `${status}, ${text.length} characters`;
}
