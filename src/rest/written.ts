/** Builds the answer from JSON text, without parsing it, where the text alone decides the status. */
import { Kind, type OperationDefinitionNode, type SelectionNode, type SelectionSetNode } from 'graphql';
import type { MaybePromise } from '../core/maybe-promise.ts';
import type { Bound } from '../graphql/execution/bound.ts';
import { statusOfOutcome, type Answering } from './answer.ts';
import type { Variant } from './body.ts';
import type { Answer } from './problem.ts';
import { responseKey } from './selection.ts';

/** The JSON text before and after the body in the text of the data. */
export type Around = { readonly before: string; readonly after: string };

/** Null when the operation selects anything beside the body, or when directives decide whether the body is present. */
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
export type Writing = {
  readonly around: Around | null;
  readonly body: { readonly variants: readonly Variant[] };
};

/** The data as JSON text. Null: call the plan's `run` with the same context. */
export function writtenData(
  { around }: Pick<Writing, 'around'>,
  bound: Bound,
  context: unknown,
): MaybePromise<string | null> {
  return around === null ? null : bound.write(context);
}

/**
 * The answer for this text of the data. Null: the text must be parsed, for example when it may hold the refusal of the
 * only item.
 */
export function writtenAnswer(
  { around, body, onlyItem, reads }: Writing & Pick<Answering, 'onlyItem' | 'reads'>,
  data: string,
): Answer | null {
  if (onlyItem || around === null || !data.startsWith(around.before)) return null;
  const text = data.slice(around.before.length, data.length - around.after.length);
  if (body.variants.length > 0) return variantAnswer(body.variants, text, reads);
  return text === 'null' ? null : { status: 200, body: null, text };
}

/** The answer for one variant; null for every answer that may be a problem. */
function variantAnswer(variants: readonly Variant[], text: string, reads: boolean): Answer | null {
  const variant = variants.find(({ name }) => text.startsWith(`{"__typename":"${name}",`));
  if (!variant || variant.kind === 'refusal') return null;
  const members = `{${text.slice(`{"__typename":"${variant.name}",`.length)}`;
  if (variant.kind === 'plain') return { status: 200, body: null, text: members };
  const outcome = variant.outcomeShows ? OUTCOME.exec(members) : null;
  const status = outcome && statusOfOutcome(outcome[1] ?? null, reads);
  return status === null ? null : { status, body: null, text: members };
}

const OUTCOME = /"outcome":(?:null|"(\w+)")/;
