/** Tests that the resolvers of the schema keep to what the writer asks of them. */
import { isObjectType, type GraphQLSchema } from 'graphql';
import { describe, expect, it } from 'vitest';
import { builder } from '../../src/graphql/schema/builder.ts';
import '../../src/graphql/schema/schema.ts';
import { NO_INFO, takesInfo } from '../../src/graphql/writer/no-info.ts';

type Named = { readonly name: string; readonly resolve: { readonly length: number } };

function resolversOf(all: GraphQLSchema): readonly Named[] {
  return Object.values(all.getTypeMap()).flatMap((type) =>
    !isObjectType(type) || type.name.startsWith('__')
      ? []
      : Object.values(type.getFields()).flatMap(({ name, resolve }) =>
          resolve ? [{ name: `${type.name}.${name}`, resolve }] : [],
        ),
  );
}

describe('the resolvers of the schema', () => {
  it('declare no `info`, so that the writer can call them', () => {
    // Built anew, because the writer replaces the resolvers of mutations in the schema that it serves.
    const resolvers = resolversOf(builder.toSchema({ sortSchema: false }));
    expect(resolvers.length).toBeGreaterThan(300);
    expect(resolvers.filter(({ resolve }) => takesInfo(resolve)).map(({ name }) => name)).toEqual([]);
  });

  it('would be named if they did', () => {
    expect(takesInfo((_parent: unknown, _args: unknown, _context: unknown, info: unknown) => info)).toBe(true);
    expect(takesInfo((_parent: unknown, _args: unknown, context: unknown) => context)).toBe(false);
  });

  it('throw if they read `info` all the same, and graphql-js executes the query', () => {
    expect(() => Reflect.get(NO_INFO, 'fieldNodes')).toThrow('`info` is unavailable on the fast path.');
  });
});
