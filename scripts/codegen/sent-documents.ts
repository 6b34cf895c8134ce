/**
 * Selects the REST documents that the command line sends as GraphQL operations. So the command line has the names
 * and members of REST.
 */

/**
 * The operations of `src/rest/operations` that the command line sends over GraphQL, with the fragments that they use.
 * Users may read their own data with most of them, which the routes answer for administrators only. A refusal of
 * `DisconnectClient` says who refused, and a label of `ListDeliveryCommands` may hold a comma; REST has neither.
 */
const SENT: readonly string[] = [
  ...['ListConnections', 'ConnectionActions', 'DisconnectClient', 'ListDeliveryCommands'],
  ...['FindCommands', 'GroupFailures', 'ListPendingRpcs', 'CountPendingRpcs', 'UserSummary'],
  ...['ListStreams', 'ListMessages', 'ListContexts', 'ListBrowserWindows'],
];

type Definition = {
  readonly kind: string;
  readonly name?: { readonly value: string };
  readonly description?: object;
  readonly directives?: readonly { readonly name: { readonly value: string } }[];
};
type DocumentFile = { readonly document?: { readonly definitions: readonly object[] } };

/**
 * Keeps all fragments, the command line's own operations, and of the other operations those in SENT. Removes the
 * directive `@rest`, which the served schema does not have, and descriptions, which the relay need not read.
 */
export function keepSent<File extends DocumentFile>({ documents }: { readonly documents: readonly File[] }): File[] {
  return documents.map((file) => ({
    ...file,
    document: { ...file.document, definitions: (file.document?.definitions as Definition[]).flatMap(sentDefinition) },
  }));
}

function sentDefinition({ description: _, ...definition }: Definition): Definition[] {
  const directives = definition.directives?.filter(({ name }) => name.value !== 'rest') ?? [];
  const isRoute = directives.length < (definition.directives?.length ?? 0);
  if (isRoute && !SENT.includes(definition.name?.value ?? '')) return [];
  return [{ ...definition, directives }];
}
