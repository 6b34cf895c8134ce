/** Parses, limits, validates and caches the documents of requests. */
import { GraphQLError, parse, validate, type DocumentNode, type GraphQLSchema } from 'graphql';
import { BoundedMap } from '../../core/collections.ts';
import { CallboardError, type Code } from '../../core/errors.ts';
import {
  QUERY_CACHE,
  QUERY_CACHE_CHARS,
  QUERY_CHARS,
  QUERY_FAULTS,
  QUERY_NESTING,
  QUERY_TOKENS,
} from '../../core/limits.ts';
import { isNestedDeeper, shapeFaults } from './document-bounds.ts';
import { shortened, toGraphQLError } from './mask.ts';

type Parsed = { readonly document: DocumentNode } | { readonly error: unknown };

export type Documents = ReturnType<typeof createDocuments>;

/**
 * Creates a cache of parsed documents by their text. It keeps the last QUERY_CACHE texts of up to QUERY_CACHE_CHARS
 * characters and their faults, so that a repeated text is neither parsed nor validated again.
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
     * Returns the document of a text. Throws the syntax error of the text, or an error about the limit that the text
     * exceeds.
     */
    parse: documentOf,
    /** Returns the faults of a document that `parse` returned; empty if it is valid. */
    faults,
    /**
     * Returns the document of a text if it is valid. Otherwise returns its faults: the syntax error, the exceeded
     * limits, or the first QUERY_FAULTS faults of validation.
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

/** `spec`: this status is used only for application/graphql-response+json (`httpOf` in mask.ts). */
const BAD_REQUEST = { status: 400, spec: true } as const;

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
      extensions: { code: 'graphql_parse_failed' satisfies Code, http: BAD_REQUEST },
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
  const extensions = { code: 'graphql_validation_failed' satisfies Code, http: BAD_REQUEST };
  return found.map((error) => new GraphQLError(shortened(error.message), { nodes: error.nodes, extensions }));
}
