/**
 * Parses, bounds, validates and caches the documents of requests, and decides which may be executed without a token. It
 * executes nothing.
 */
import {
  GraphQLError,
  Kind,
  Lexer,
  OperationTypeNode,
  Source,
  TokenKind,
  parse,
  validate,
  type DefinitionNode,
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLSchema,
  type SelectionSetNode,
} from 'graphql';
import { BoundedMap } from '../../core/collections.ts';
import { CallboardError, fail, type Code } from '../../core/errors.ts';
import {
  ANONYMOUS_INTROSPECTION_CHARS,
  ANONYMOUS_QUERY_CHARS,
  QUERY_ALIASES,
  QUERY_CACHE,
  QUERY_CACHE_CHARS,
  QUERY_CHARS,
  QUERY_DEPTH,
  QUERY_DIRECTIVES,
  QUERY_FAULTS,
  QUERY_FRAGMENTS,
  QUERY_MERGES,
  QUERY_NESTING,
  QUERY_OPERATIONS,
  QUERY_ROOT_FIELDS,
  QUERY_TOKENS,
} from '../../core/limits.ts';
import { fragmentsOf, rootFields } from '../selection.ts';
import { shortened, toGraphQLError } from './mask.ts';

type Parsed = { readonly document: DocumentNode } | { readonly error: unknown };

export type Documents = ReturnType<typeof createDocuments>;

/**
 * Creates the cache of parsed documents, by their text. The last QUERY_CACHE texts of up to QUERY_CACHE_CHARS are kept
 * with their faults, so that a text that is sent again is neither parsed nor validated again.
 */
export function createDocuments(schema: GraphQLSchema) {
  const parsed = new BoundedMap<string, Parsed>({ most: QUERY_CACHE, order: 'used' });
  const validated = new WeakMap<DocumentNode, readonly GraphQLError[]>();
  const documentOf = (text: string): DocumentNode => {
    const known = parsed.get(text);
    const entry = known ?? parsedOf(text);
    if (!known && text.length <= QUERY_CACHE_CHARS) parsed.set(text, entry);
    if ('error' in entry) throw entry.error;
    return entry.document;
  };
  const faults = (document: DocumentNode): readonly GraphQLError[] => {
    let found = validated.get(document);
    if (!found) validated.set(document, (found = faultsOf(schema, document)));
    return found;
  };
  return {
    /**
     * Returns the document of a text. Throws the text's syntax error, or an error about the limit that the text
     * exceeds.
     */
    parse: documentOf,
    /** Returns the faults of a document that `parse` returned; empty if it is valid. */
    faults,
    /**
     * Returns the document of a text if it is valid, otherwise its faults: the syntax error, the exceeded limits, or
     * the first QUERY_FAULTS faults of validation.
     */
    read(text: string): DocumentNode | readonly GraphQLError[] {
      try {
        const document = documentOf(text);
        const found = faults(document);
        return found.length > 0 ? found : document;
      } catch (error) {
        if (error instanceof GraphQLError) return [error];
        throw error;
      }
    },
  };
}

function parsedOf(text: string): Parsed {
  try {
    return { document: parseWithinLimits(text) };
  } catch (error) {
    return { error };
  }
}

function parseWithinLimits(text: string): DocumentNode {
  if (text.length > QUERY_CHARS) throw tooComplex(`A document has at most ${QUERY_CHARS} characters.`);
  if (isNestedDeeper(text, QUERY_NESTING, QUERY_TOKENS)) {
    throw tooComplex(`A document nests braces, brackets and parentheses at most ${QUERY_NESTING} deep.`);
  }
  try {
    return parse(text, { maxLexicalTokens: QUERY_TOKENS });
  } catch (error) {
    if (!(error instanceof GraphQLError)) throw error;
    // graphql-js gives this error no code, so it is recognized by its message.
    if (error.message.includes('Document contains more than')) {
      throw tooComplex(`A document has at most ${QUERY_TOKENS} tokens.`, error);
    }
    throw new GraphQLError(shortened(error.message), {
      source: error.source,
      positions: error.positions,
      extensions: { code: 'graphql_parse_failed' satisfies Code, http: { status: 400, spec: true } },
    });
  }
}

function tooComplex(message: string, at: GraphQLError | null = null): GraphQLError {
  return toGraphQLError(new CallboardError('too_complex', message), at);
}

function faultsOf(schema: GraphQLSchema, document: DocumentNode): readonly GraphQLError[] {
  const faults = shapeFaults(document);
  if (faults.length > 0) return faults.map((fault) => toGraphQLError(fault));
  const found = validate(schema, document, undefined, { hideSuggestions: true, maxErrors: QUERY_FAULTS });
  const extensions = { code: 'graphql_validation_failed' satisfies Code, http: { status: 400, spec: true } };
  return found.map((error) => new GraphQLError(shortened(error.message), { nodes: error.nodes, extensions }));
}

// Bounds the nesting of a document before it is parsed.

const OPENS: ReadonlySet<string> = new Set([TokenKind.BRACE_L, TokenKind.BRACKET_L, TokenKind.PAREN_L]);
const CLOSES: ReadonlySet<string> = new Set([TokenKind.BRACE_R, TokenKind.BRACKET_R, TokenKind.PAREN_R]);

/**
 * Whether braces, brackets and parentheses nest deeper than `most` within the first `tokens` tokens. Called before a
 * document is parsed, because the parser recurses into each of them and could overflow the stack. Returns false when
 * the text stops being GraphQL earlier: the parser stops at the same place and reports the error.
 */
function isNestedDeeper(source: string | Source, most: number, tokens: number): boolean {
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

// Bounds the work of validating that fields can be merged. It must be cheap for every document.

/**
 * The depth beyond which nothing is counted. No document that passes the depth limit is as deep. Introspection is
 * exempt from that limit; graphql-js has its own depth rule for it.
 */
const DEPTH = 32;

/**
 * Estimates the steps of graphql-js's rule `OverlappingFieldsCanBeMerged`. The rule compares fields in pairs. Each
 * selection counts one, and fragments count wherever they are spread. A field also counts one, plus the number of its
 * own selections, for every earlier field of the same response name. A fragment also counts the number of its own
 * selections for every fragment spread before it. Counting stops soon after `most`, so the work of counting is bounded
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

// Limits what may be executed without a token.

/** Who may read the schema through introspection. */
export type Introspection = 'admin' | 'all' | 'off';

/**
 * Checks that a document may be executed without a token: a query of `__typename` and, where introspection is open to
 * all, of the schema. Throws `unauthenticated` for every other text, valid or not. The document is not validated, and a
 * text longer than such a query needs is not parsed.
 */
export function requireAnonymousQuery(query: string, introspection: Introspection): void {
  const longest = introspection === 'all' ? ANONYMOUS_INTROSPECTION_CHARS : ANONYMOUS_QUERY_CHARS;
  const document = query.length <= longest ? parseQuietly(query) : null;
  const isOpen = document?.definitions.every((node) => isOpenDefinition(document, node, introspection));
  if (!isOpen) fail('unauthenticated', 'A bearer token is needed.');
}

function isOpenDefinition(document: DocumentNode, node: DefinitionNode, introspection: Introspection): boolean {
  if (node.kind === Kind.FRAGMENT_DEFINITION) return true;
  if (node.kind !== Kind.OPERATION_DEFINITION || node.operation !== OperationTypeNode.QUERY) return false;
  const isOpen = (name: string): boolean =>
    name === '__typename' || (introspection === 'all' && (name === '__schema' || name === '__type'));
  return [...rootFields(document, node.selectionSet)].every(isOpen);
}

function parseQuietly(query: string): DocumentNode | null {
  try {
    return parse(query, { maxLexicalTokens: 1000, noLocation: true });
  } catch (error) {
    if (error instanceof GraphQLError) return null;
    throw error;
  }
}
