import type { CodegenConfig } from '@graphql-codegen/cli';
import { schema } from './src/graphql/schema/schema.ts';

/** Enums as REST writes them: each name of GraphQL with its wire word. Asked by shape, since codegen has a graphql module of its own. */
function wireWords(): Record<string, Record<string, string>> {
  const words: Record<string, Record<string, string>> = {};
  for (const type of Object.values(schema.getTypeMap())) {
    if (!('getValues' in type) || type.name.startsWith('__')) continue;
    words[type.name] = Object.fromEntries(type.getValues().map(({ name, value }) => [name, String(value)]));
  }
  return words;
}

/** `graphql-codegen` writes these files; with `--check` it only compares them with what it would write. */
const config: CodegenConfig = {
  schema: 'schema.graphql',
  generates: {
    'src/generated/rest.ts': {
      documents: 'src/rest/operations/*.graphql',
      plugins: ['typescript-operations', 'typed-document-node'],
      config: {
        scalars: { DateTime: 'string', JSON: 'unknown', ID: 'string' },
        strictScalars: true,
        useTypeImports: true,
        enumValues: wireWords(),
        importExtension: '.ts',
      },
    },
    'src/generated/admin.ts': {
      documents: 'src/clients/admin/*.graphql',
      plugins: ['typescript-operations', 'typed-document-node'],
      config: {
        scalars: { DateTime: 'string', JSON: 'unknown', ID: 'string' },
        strictScalars: true,
        useTypeImports: true,
        // Texts, so that a browser needs no library of GraphQL to send them.
        documentMode: 'string',
        importExtension: '.ts',
      },
    },
  },
};

export default config;
