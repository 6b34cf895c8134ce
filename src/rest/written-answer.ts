/** Builds a response from the JSON text of the data, without parsing it, if the response cannot be a problem. */
import { Kind, type OperationDefinitionNode, type SelectionNode, type SelectionSetNode } from 'graphql';
import type { Chosen, TextInfo } from '../graphql/writer/texts.ts';
import { type Answering, statusOfOutcome } from './answer.ts';
import { responseKey } from './selection-shape.ts';
import type { Answer } from './problem.ts';
import type { Variant } from './response-body.ts';

/** The fixed JSON text before and after the body in the data. */
export type Around = { readonly before: string; readonly after: string };

/**
 * Returns the JSON text around the value at this path. Null if the operation selects anything outside this path, or if
 * a field on the path has a directive.
 */
export function aroundBody({ selectionSet }: OperationDefinitionNode, path: readonly string[]): Around | null {
  let set: SelectionSetNode | undefined = selectionSet;
  for (const name of path) {
    const selections: readonly SelectionNode[] = set?.selections ?? [];
    const [only] = selections;
    if (only?.kind !== Kind.FIELD || selections.length > 1 || responseKey(only) !== name) return null;
    if ((only.directives?.length ?? 0) > 0) return null;
    set = only.selectionSet;
  }
  return { before: path.map((name) => `{${JSON.stringify(name)}:`).join(''), after: '}'.repeat(path.length) };
}

/** What a route needs to answer with JSON text. `around` null: the answer must be built from a parsed result. */
type Writing = Omit<Answering, 'inputs'> & { readonly around: Around | null };

/**
 * Returns the response for data that is JSON text; null if the response may be a problem, so that the data must be
 * parsed.
 */
export function writtenAnswer(
  { around, body, onlyItem, reads }: Writing,
  data: string,
  { nonAscii, chosen, inserts: given }: TextInfo,
): Answer | null {
  const inserts = given ?? [];
  if (onlyItem || around === null || !data.startsWith(around.before)) return null;
  const text = data.slice(around.before.length, data.length - around.after.length);
  if (body.variants.length === 0) return text === 'null' ? null : { status: 200, body: null, text, nonAscii, inserts };
  const variant = chosen && body.variants.find(({ name }) => name === chosen.type);
  const status = variant ? statusOfVariant(variant, chosen, reads) : null;
  if (!variant || status === null) return null;
  return { status, body: null, text: withoutTypename(text, variant.name), nonAscii, inserts };
}

/** Returns the status for an object type of the body; null if the response may be a problem. */
function statusOfVariant({ kind }: Variant, chosen: Chosen, reads: boolean): 200 | 201 | 202 | null {
  if (kind === 'refusal') return null;
  if (kind === 'created') return 201;
  return kind === 'plain' ? 200 : statusOfOutcome(chosen.member('outcome') ?? null, reads);
}

/**
 * Removes `__typename` from the JSON text of the body. It is the first member, because `withTypename` selects it first.
 */
function withoutTypename(text: string, name: string): string {
  return `{${text.slice(`{"__typename":"${name}",`.length)}`;
}
