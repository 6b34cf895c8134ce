/** Decides which documents may be executed without a token. */
import { GraphQLError, Kind, OperationTypeNode, parse, type DefinitionNode, type DocumentNode } from 'graphql';
import { fail } from '../../core/errors.ts';
import { ANONYMOUS_INTROSPECTION_CHARS, ANONYMOUS_QUERY_CHARS } from '../../core/limits.ts';
import { rootFields } from '../selection.ts';

/** Who may read the schema through introspection. */
export type Introspection = 'admin' | 'all' | 'off';

/**
 * Checks that a document may be executed without a token: only a query of `__typename`, and of the schema if
 * introspection is open to all. Throws `unauthenticated` for every other text, valid or not. The document is not
 * validated, and a text that is longer than such a query needs is not parsed.
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
