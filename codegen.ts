import type { CodegenConfig } from '@graphql-codegen/cli';
import { isEnumType, isIntrospectionType } from 'graphql';
import { schema } from './src/graphql/schema.ts';

/** Enums as REST writes them: each name of GraphQL to its wire word. */
function wireWords(): Record<string, Record<string, string>> {
  const enums = Object.values(schema.getTypeMap()).filter((type) => isEnumType(type) && !isIntrospectionType(type));
  return Object.fromEntries(
    enums.map((type) => [type.name, Object.fromEntries(type.getValues().map(({ name, value }) => [name, String(value)]))]),
  );
}

/** `npm run codegen` writes these files; test/generated.test.ts compares them with what would be written. */
const config: CodegenConfig = {
  schema: 'schema.graphql',
  generates: {
    'src/generated/rest.ts': {
      documents: 'src/rest/operations/*.graphql',
      plugins: [
        { add: { content: '// Written by `npm run codegen` from the REST documents: the types of their variables and answers.' } },
        'typescript-operations',
        'typed-document-node',
      ],
      config: {
        scalars: { DateTime: 'string', JSON: 'unknown', ID: 'string' },
        strictScalars: true,
        useTypeImports: true,
        enumsAsTypes: true,
        enumValues: wireWords(),
        importExtension: '.ts',
      },
    },
  },
};

export default config;
