/** Builds the answer from the JSON text of the data, without parsing it, where the answer cannot be a problem. */
import { Kind, type OperationDefinitionNode, type SelectionNode, type SelectionSetNode } from 'graphql';
import type { Chosen, TextInfo } from '../graphql/writer/values.ts';
import { statusOfOutcome, type Answering } from './answer.ts';
import type { Variant } from './body.ts';
import type { Answer } from './problem.ts';
import { responseKey } from './selection.ts';

/** The JSON text before and after the body in the text of the data. */
export type Around = { readonly before: string; readonly after: string };

/**
 * Returns the JSON text around the body. Null when the operation selects anything beside the body, or when directives
 * decide whether the body is present.
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

/** What a route needs to answer with JSON text. `around` null: the route is answered from a parsed result. */
export type Writing = Pick<Answering, 'onlyItem' | 'reads'> & {
  readonly around: Around | null;
  readonly body: { readonly variants: readonly Variant[] };
};

/**
 * Returns the answer for data that was written as this text; null if the answer may be a problem and must be made from
 * the parsed data.
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
  const status = variant ? statusOf(variant, chosen, reads) : null;
  if (!variant || status === null) return null;
  return { status, body: null, text: withoutTypename(text, variant.name), nonAscii, inserts };
}

/** Returns the status of an answer. Null for every variant that may be a problem. */
function statusOf({ kind }: Variant, chosen: Chosen, reads: boolean): 200 | 202 | null {
  if (kind === 'refusal') return null;
  return kind === 'plain' ? 200 : statusOfOutcome(chosen.member('outcome') ?? null, reads);
}

/** Removes `__typename` from the text of the body. The document selects it first (`withTypename`). */
function withoutTypename(text: string, name: string): string {
  return `{${text.slice(`{"__typename":"${name}",`.length)}`;
}
