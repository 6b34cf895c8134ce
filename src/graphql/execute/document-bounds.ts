/**
 * Limits the nesting of a document before it is parsed, and the size and shape of the document before it is validated.
 */
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
 * Whether braces, brackets and parentheses nest deeper than `most` within the first `tokens` tokens. This is checked
 * before a document is parsed, because the parser recurses for each of them and could overflow the stack. If the text
 * stops being GraphQL, returns false: the parser stops at the same place and reports the error.
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

// Limits the size and shape of a parsed document before it is validated.

/**
 * Returns the limits that a document exceeds, each as a `too_complex` error. A fragment counts each time it is spread.
 * The check is cheap. It runs before validation because some validation rules take quadratic time.
 */
export function shapeFaults(document: DocumentNode): readonly CallboardError[] {
  const measure = createMeasure(document);
  const faults = document.definitions.flatMap((node) =>
    node.kind === Kind.OPERATION_DEFINITION ? crossed(measure(node.selectionSet), node.directives?.length ?? 0) : [],
  );
  return [...faults, ...definitionFaults(document)];
}

/**
 * Limits the number of operations and fragments: rules of graphql-js compare each fragment with every other one, and
 * walk through all fragments for each operation. Then limits the number of steps in which mergeable fields are
 * compared.
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
  /** The number of fields at the top level of this selection set, including those of its fragments. */
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
      // A fragment that contains itself counts as empty here. Validation refuses it later.
      known.set(name, EMPTY);
      known.set(name, measure(fragment.selectionSet));
    }
    return known.get(name) ?? EMPTY;
  };
  const ofSelection = (selection: SelectionSetNode['selections'][number]): Shape => {
    if (selection.kind === Kind.FRAGMENT_SPREAD) return ofFragment(selection.name.value);
    if (selection.kind === Kind.INLINE_FRAGMENT) return measure(selection.selectionSet);
    const below = selection.selectionSet ? measure(selection.selectionSet) : EMPTY;
    // Introspection counts no depth here, because graphql-js has its own depth rule for it.
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
