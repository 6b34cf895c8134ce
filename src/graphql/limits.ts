import { Kind, type DocumentNode, type FragmentDefinitionNode, type SelectionSetNode } from 'graphql';
import type { Clock } from '../core/clock.ts';
import { CallboardError } from '../core/errors.ts';
import {
  QUERY_ALIASES,
  QUERY_COST_ADMIN,
  QUERY_COST_USER,
  QUERY_DEPTH,
  QUERY_DIRECTIVES,
  QUERY_ROOT_FIELDS,
} from '../core/limits.ts';
import type { Principal } from '../core/auth/principal.ts';
import type { Maybe } from '../core/maybe.ts';
import type { Plan, Variables } from './plan.ts';

/** Who may read the schema through a query. */
export type Introspection = 'admin' | 'all' | 'off';

/**
 * Which bounds a document crosses, each as `too_complex`. Fragments count wherever they are spread. Cheap, so it is asked before the
 * document is validated, some of whose rules are quadratic.
 */
export function shapeFaults(document: DocumentNode): readonly CallboardError[] {
  const measure = createMeasure(document);
  return document.definitions.flatMap((node) =>
    node.kind === Kind.OPERATION_DEFINITION ? crossed(measure(node.selectionSet), node.directives?.length ?? 0) : [],
  );
}

type Shape = {
  readonly depth: number;
  readonly aliases: number;
  readonly directives: number;
  /** Fields at the top of this set, those of its fragments included. */
  readonly fields: number;
};
const EMPTY: Shape = { depth: 0, aliases: 0, directives: 0, fields: 0 };

function crossed(shape: Shape, ownDirectives: number): readonly CallboardError[] {
  const bounds: readonly [string, number, number][] = [
    ['depth', shape.depth, QUERY_DEPTH],
    ['aliases', shape.aliases, QUERY_ALIASES],
    ['directives', shape.directives + ownDirectives, QUERY_DIRECTIVES],
    ['root fields', shape.fields, QUERY_ROOT_FIELDS],
  ];
  return bounds.flatMap(([what, found, most]) =>
    found > most ? [new CallboardError('too_complex', `The document has ${what}: ${found}; at most ${most}.`)] : [],
  );
}

function createMeasure(document: DocumentNode): (set: SelectionSetNode) => Shape {
  const fragments = new Map<string, FragmentDefinitionNode>();
  for (const node of document.definitions) {
    if (node.kind === Kind.FRAGMENT_DEFINITION) fragments.set(node.name.value, node);
  }
  const known = new Map<string, Shape>();
  const ofFragment = (name: string): Shape => {
    const fragment = fragments.get(name);
    if (!fragment) return EMPTY;
    if (!known.has(name)) {
      // A cycle counts nothing here: validation refuses it.
      known.set(name, EMPTY);
      known.set(name, measure(fragment.selectionSet));
    }
    return known.get(name) ?? EMPTY;
  };
  const ofSelection = (selection: SelectionSetNode['selections'][number]): Shape => {
    if (selection.kind === Kind.FRAGMENT_SPREAD) return ofFragment(selection.name.value);
    if (selection.kind === Kind.INLINE_FRAGMENT) return measure(selection.selectionSet);
    const below = selection.selectionSet ? measure(selection.selectionSet) : EMPTY;
    // Reading the schema has a depth rule of its own in graphql-js.
    const depth = selection.name.value.startsWith('__') ? 0 : below.depth + 1;
    return { ...below, depth, aliases: below.aliases + (selection.alias ? 1 : 0), fields: 1 };
  };
  const measure = (set: SelectionSetNode): Shape =>
    set.selections.reduce((sum, selection) => {
      const shape = ofSelection(selection);
      return {
        depth: Math.max(sum.depth, shape.depth),
        aliases: sum.aliases + shape.aliases,
        directives: sum.directives + shape.directives + (selection.directives?.length ?? 0),
        fields: sum.fields + shape.fields,
      };
    }, EMPTY);
  return measure;
}

export type Admission = {
  readonly who: Principal | null;
  readonly variables: Variables;
  readonly introspection: Introspection;
};

/** Why this asker may not run this operation, before anything of it ran; null when they may. */
export function refusalOf(plan: Plan, { who, variables, introspection }: Admission): CallboardError | null {
  if (!who && !plan.onlyMeta) return new CallboardError('unauthenticated', 'A bearer token is needed.');
  if (plan.introspects) {
    const refused = introspectionRefusal(who, introspection);
    if (refused) return refused;
  }
  const most = who?.kind === 'admin' ? QUERY_COST_ADMIN : QUERY_COST_USER;
  const cost = plan.cost(variables);
  if (cost <= most) return null;
  return new CallboardError('too_complex', `The operation may cost ${cost}; at most ${most}. Ask for shorter lists.`);
}

function introspectionRefusal(who: Principal | null, introspection: Introspection): CallboardError | null {
  if (introspection === 'all') return null;
  if (introspection === 'off') return new CallboardError('forbidden', 'Introspection is switched off.');
  if (!who) return new CallboardError('unauthenticated', 'Introspection needs the token of an administrator.');
  return who.kind === 'admin' ? null : new CallboardError('forbidden', 'Only an administrator may read the schema.');
}

/**
 * The answer, or `store_unavailable` when it takes longer: what a query may cost is bounded before it runs, so only a slow store is left
 * to blame. The late answer is dropped.
 */
export function withinTime<T>(answer: Maybe<T>, { clock, ms }: { clock: Clock; ms: number }): Maybe<T> {
  if (!(answer instanceof Promise)) return answer;
  return new Promise((resolve, reject) => {
    const late = (): CallboardError =>
      new CallboardError('store_unavailable', `The query was not answered within ${ms} ms.`);
    const cancel = clock.after(ms, () => reject(late()));
    const settled = <V>(settle: (value: V) => void) => {
      return (value: V): void => (cancel(), settle(value));
    };
    answer.then(settled(resolve), settled(reject));
  });
}
