/**
 * The configuration of graphql-codegen: which typed documents and types are generated from schema.graphql, and where
 * they are written.
 */
import type { CodegenConfig } from '@graphql-codegen/cli';
import { keepSent } from './scripts/codegen/sent-documents.ts';
import { wireWords } from './scripts/codegen/enum-places.ts';

/** `graphql-codegen` writes these files; with `--check` it only compares them with what it would write. */
const config: CodegenConfig = {
  schema: 'schema.graphql',
  generates: {
    'generated/admin.ts': {
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
    'generated/console.ts': {
      documents: 'src/console/operations/*.graphql',
      plugins: ['typescript-operations', 'typed-document-node'],
      config: {
        scalars: { DateTime: 'string', JSON: 'unknown', ID: 'string' },
        strictScalars: true,
        useTypeImports: true,
        documentMode: 'string',
        importExtension: '.ts',
      },
    },
    'generated/live.ts': {
      documents: 'src/clients/live/*.graphql',
      plugins: ['typescript-operations', 'typed-document-node'],
      config: {
        scalars: { DateTime: 'string', JSON: 'unknown', ID: 'string' },
        strictScalars: true,
        useTypeImports: true,
        documentMode: 'string',
        importExtension: '.ts',
      },
    },
    'generated/cli.ts': {
      documents: ['src/rest/operations/*.graphql', 'src/cli/*.graphql'],
      documentTransforms: [{ transform: keepSent }],
      plugins: ['typescript-operations', 'typed-document-node'],
      config: {
        scalars: { DateTime: 'string', JSON: 'unknown', ID: 'string' },
        strictScalars: true,
        useTypeImports: true,
        enumValues: wireWords(),
        documentMode: 'string',
        importExtension: '.ts',
      },
    },
    'generated/cli-enums.ts': {
      documents: ['src/rest/operations/*.graphql', 'src/cli/*.graphql'],
      documentTransforms: [{ transform: keepSent }],
      plugins: ['./scripts/codegen/enum-places.ts'],
    },
  },
};

export default config;
