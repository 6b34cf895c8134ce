/**
 * Estimates how much work it is to validate that fields can be merged. The estimate must be cheap for every document.
 */
import { Kind, type DocumentNode, type FieldNode, type FragmentDefinitionNode, type SelectionSetNode } from 'graphql';
import { fragmentsOf } from '../selection.ts';

/**
 * The depth below which nothing is counted. Only introspection can be deeper, because it is exempt from the depth limit
 * of documents; graphql-js has its own depth rule for it.
 */
const DEPTH = 32;

/**
 * Estimates the number of steps of graphql-js's rule `OverlappingFieldsCanBeMerged`, which compares fields in pairs.
 * Each selection counts one, and a fragment counts each time it is spread. For every earlier field of the same response
 * name, a field also counts one plus the number of its own selections. For every fragment spread before it, a fragment
 * also counts the number of its own selections. Counting stops soon after `most`, which limits the work of counting
 * too.
 */
export function mergeSteps(document: DocumentNode, most: number): number {
  return new MergeCount(document, most).count();
}

type Same = { count: number; readonly sets: SelectionSetNode[] };
type Together = { readonly names: Map<string, Same>; readonly spread: Set<string> };

class MergeCount {
  readonly #document: DocumentNode;
  readonly #most: number;
  readonly #fragments: ReadonlyMap<string, FragmentDefinitionNode>;
  #steps = 0;

  constructor(document: DocumentNode, most: number) {
    this.#document = document;
    this.#fragments = fragmentsOf(document);
    this.#most = most;
  }

  count(): number {
    for (const node of this.#document.definitions) {
      const executable = node.kind === Kind.OPERATION_DEFINITION || node.kind === Kind.FRAGMENT_DEFINITION;
      if (executable) this.#merge([node.selectionSet], 0);
    }
    return this.#steps;
  }

  #merge(sets: readonly SelectionSetNode[], depth: number): void {
    if (depth > DEPTH) return;
    const together: Together = { names: new Map(), spread: new Set() };
    for (const set of sets) this.#collect(set, together);
    for (const { sets: below } of together.names.values()) {
      if (below.length > 0 && this.#steps <= this.#most) this.#merge(below, depth + 1);
    }
  }

  #collect(set: SelectionSetNode, together: Together): void {
    for (const selection of set.selections) {
      if (++this.#steps > this.#most) return;
      if (selection.kind === Kind.FIELD) this.#field(selection, together);
      else if (selection.kind === Kind.INLINE_FRAGMENT) this.#collect(selection.selectionSet, together);
      else this.#spread(selection.name.value, together);
    }
  }

  #spread(name: string, together: Together): void {
    const fragment = this.#fragments.get(name);
    if (!fragment || together.spread.has(name)) return;
    this.#steps += together.spread.size * fragment.selectionSet.selections.length;
    together.spread.add(name);
    this.#collect(fragment.selectionSet, together);
  }

  #field({ name, alias, selectionSet }: FieldNode, { names }: Together): void {
    const key = (alias ?? name).value;
    const same = names.get(key) ?? { count: 0, sets: [] };
    names.set(key, same);
    this.#steps += same.count * (1 + (selectionSet?.selections.length ?? 0));
    same.count++;
    if (selectionSet) same.sets.push(selectionSet);
  }
}
