/** Bounds the nesting of a document before it is parsed, and its size and shape before it is validated. */
import { GraphQLError, Kind, Lexer, Source, TokenKind, type DocumentNode, type SelectionSetNode } from 'graphql';
import { CallboardError } from '../../core/errors.ts';
import {
  QUERY_ALIASES,
  QUERY_DEPTH,
  QUERY_DIRECTIVES,
  QUERY_FRAGMENTS,
  QUERY_MERGES,
  QUERY_OPERATIONS,
  QUERY_ROOT_FIELDS,
} from '../../core/limits.ts';
import { fragmentsOf } from '../selection.ts';
import { mergeSteps } from './merge-cost.ts';

const OPENS: ReadonlySet<string> = new Set([TokenKind.BRACE_L, TokenKind.BRACKET_L, TokenKind.PAREN_L]);
const CLOSES: ReadonlySet<string> = new Set([TokenKind.BRACE_R, TokenKind.BRACKET_R, TokenKind.PAREN_R]);

/**
 * Whether braces, brackets and parentheses nest deeper than `most` within the first `tokens` tokens. Called before a
 * document is parsed, because the parser recurses into each of them and could overflow the stack. Returns false when
 * the text stops being GraphQL earlier: the parser stops at the same place and reports the error.
 */
export function isNestedDeeper(source: string | Source, most: number, tokens: number): boolean {
  const lexer = new Lexer(typeof source === 'string' ? new Source(source) : source);
  let depth = 0;
  try {
    for (let seen = 0; seen <= tokens; seen++) {
      const { kind } = lexer.advance();
      if (kind === TokenKind.EOF) return false;
      if (OPENS.has(kind)) depth++;
      else if (CLOSES.has(kind)) depth--;
      if (depth > most) return true;
    }
    return false;
  } catch (error) {
    if (error instanceof GraphQLError) return false;
    throw error;
  }
}

// Bounds the size and shape of a parsed document before it is validated.

/**
 * Returns the bounds that a document exceeds, each as a `too_complex` error. Fragments count wherever they are spread.
 * The check is cheap and runs before validation, because some validation rules are quadratic.
 */
export function shapeFaults(document: DocumentNode): readonly CallboardError[] {
  const measure = createMeasure(document);
  const faults = document.definitions.flatMap((node) =>
    node.kind === Kind.OPERATION_DEFINITION ? crossed(measure(node.selectionSet), node.directives?.length ?? 0) : [],
  );
  return [...faults, ...definitionFaults(document)];
}

/**
 * Bounds the number of operations and fragments, because rules of graphql-js compare each fragment with every other and
 * walk through all fragments for each operation. Then bounds the steps of comparing fields that are merged.
 */
function definitionFaults(document: DocumentNode): readonly CallboardError[] {
  const count = (kind: Kind): number => document.definitions.filter((node) => node.kind === kind).length;
  const faults = boundsFaults([
    ['operations', count(Kind.OPERATION_DEFINITION), QUERY_OPERATIONS],
    ['fragments', count(Kind.FRAGMENT_DEFINITION), QUERY_FRAGMENTS],
  ]);
  if (faults.length > 0 || mergeSteps(document, QUERY_MERGES) <= QUERY_MERGES) return faults;
  return [new CallboardError('too_complex', 'The document asks for the same fields too often in one place.')];
}

type Shape = {
  readonly depth: number;
  readonly aliases: number;
  readonly directives: number;
  /** The number of fields at the top of this selection set, including those of its fragments. */
  readonly fields: number;
};
const EMPTY: Shape = { depth: 0, aliases: 0, directives: 0, fields: 0 };

function crossed(shape: Shape, ownDirectives: number): readonly CallboardError[] {
  return boundsFaults([
    ['depth', shape.depth, QUERY_DEPTH],
    ['aliases', shape.aliases, QUERY_ALIASES],
    ['directives', shape.directives + ownDirectives, QUERY_DIRECTIVES],
    ['root fields', shape.fields, QUERY_ROOT_FIELDS],
  ]);
}

function boundsFaults(bounds: readonly (readonly [string, number, number])[]): readonly CallboardError[] {
  return bounds.flatMap(([what, found, most]) =>
    found > most ? [new CallboardError('too_complex', `The document has ${what}: ${found}; at most ${most}.`)] : [],
  );
}

function createMeasure(document: DocumentNode): (set: SelectionSetNode) => Shape {
  const fragments = fragmentsOf(document);
  const known = new Map<string, Shape>();
  const ofFragment = (name: string): Shape => {
    const fragment = fragments.get(name);
    if (!fragment) return EMPTY;
    if (!known.has(name)) {
      // A fragment cycle counts as empty here; validation refuses it.
      known.set(name, EMPTY);
      known.set(name, measure(fragment.selectionSet));
    }
    return known.get(name) ?? EMPTY;
  };
  const ofSelection = (selection: SelectionSetNode['selections'][number]): Shape => {
    if (selection.kind === Kind.FRAGMENT_SPREAD) return ofFragment(selection.name.value);
    if (selection.kind === Kind.INLINE_FRAGMENT) return measure(selection.selectionSet);
    const below = selection.selectionSet ? measure(selection.selectionSet) : EMPTY;
    // graphql-js has its own depth rule for introspection.
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
