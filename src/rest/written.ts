import { Kind, type OperationDefinitionNode, type SelectionNode, type SelectionSetNode } from 'graphql';
import { andThen, type Maybe } from '../core/maybe.ts';
import type { Plan, Variables } from '../graphql/plan.ts';
import { responseKey } from './selection.ts';

/** What stands around the body in the text of the data. */
export type Around = { readonly before: string; readonly after: string };

/** Null where something else is selected beside the body, or the body's place depends on conditions. */
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

/** The body of a good answer as JSON text; null: it is to be made of the plan's result, for it may be no good answer. */
export function writtenBody(
  { plan, around }: { readonly plan: Pick<Plan, 'write'>; readonly around: Around | null },
  context: unknown,
  variables: Variables,
): Maybe<string | null> {
  if (around === null) return null;
  return andThen(plan.write(context, variables), (data) => (data === null ? null : bodyIn(data, around)));
}

function bodyIn(data: string, { before, after }: Around): string | null {
  if (!data.startsWith(before)) return null;
  const body = data.slice(before.length, data.length - after.length);
  return body === 'null' ? null : body;
}
