/**
 * Selects the REST documents that the command line sends as GraphQL operations, so that the command line uses the names
 * and members of REST.
 */

/**
 * The operations of `src/rest/operations` that the command line sends over GraphQL, with the fragments that they use.
 * Over GraphQL, users may read their own data with most of these operations, while the REST routes are for
 * administrators only. Also, only GraphQL states which layer refused a `DisconnectClient`, and allows a comma in a
 * label of `ListDeliveryCommands`.
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
 * Keeps all fragments, all operations of the command line itself, and those REST operations that are in SENT. Removes
 * the directive `@rest`, which the served schema does not have, and descriptions, which the relay does not need.
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
