/** Tests that a linter finds no error in the schema, by the rules of Relay for lists. */
import { buildSchema, parse, validate } from 'graphql';
import { RelayConnectionArgumentsSpec } from 'graphql-schema-linter/lib/rules/relay_connection_arguments_spec.js';
import { RelayConnectionTypesSpec } from 'graphql-schema-linter/lib/rules/relay_connection_types_spec.js';
import { RelayPageInfoSpec } from 'graphql-schema-linter/lib/rules/relay_page_info_spec.js';
import { describe, expect, it } from 'vitest';
import { printedSchema } from '../../src/graphql/schema/schema.ts';

/**
 * The linter's own rules, run by this test: the linter's command line depends on an older GraphQL and breaks when it
 * reports an error.
 */
const RULES = [RelayConnectionTypesSpec, RelayPageInfoSpec, RelayConnectionArgumentsSpec];

function lint(sdl: string): string[] {
  return validate(buildSchema(sdl), parse(sdl), RULES).map(({ message }) => message);
}

describe("graphql-schema-linter's Relay rules", () => {
  it('find no error in the printed schema', () => {
    expect(lint(printedSchema())).toEqual([]);
  });

  it('do report a schema that is broken on purpose', () => {
    const broken = printedSchema()
      .replace(/(type UserConnection \{[^}]*)pageInfo: PageInfo!/, '$1pageInfos: PageInfo!')
      .replace('hasPreviousPage: Boolean!', 'hasPreviousPage: Int!')
      .concat('extend type Query { bare(first: String): UserConnection! }');
    const errors = lint(broken);
    expect(errors).toHaveLength(3);
    for (const name of ['UserConnection', 'PageInfo', 'forward pagination arguments'])
      expect(errors.join('\n')).toContain(name);
  });
});
