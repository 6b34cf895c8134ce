import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { printedSchema } from '../../src/graphql/print.ts';

const CLI = fileURLToPath(new URL('../../node_modules/graphql-schema-linter/lib/cli.js', import.meta.url));
const RULES = 'relay-connection-types-spec,relay-page-info-spec,relay-connection-arguments-spec';

/** The linter's errors, by rule and message. */
async function lint(sdl: string): Promise<string[]> {
  const child = spawn(process.execPath, [CLI, '--stdin', '--format', 'json', '--rules', RULES]);
  child.stdin.end(sdl);
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)]);
  if (!out.startsWith('{')) throw new Error(`The linter did not answer: ${out}${err}`);
  const { errors } = JSON.parse(out) as { errors: { rule: string; message: string }[] };
  return errors.map(({ rule, message }) => `${rule}: ${message}`);
}

describe("graphql-schema-linter's Relay rules", () => {
  it('find no error in the printed schema', async () => {
    expect(await lint(printedSchema())).toEqual([]);
  });

  it('do look: a connection without pageInfo, a wrong PageInfo and wrong arguments are found', async () => {
    const broken = printedSchema()
      .replace(/(type UserConnection \{[^}]*)pageInfo: PageInfo!/, '$1pageInfos: PageInfo!')
      .replace('hasPreviousPage: Boolean!', 'hasPreviousPage: Int!')
      .concat('extend type Query { bare(first: String): UserConnection! }');
    const errors = (await lint(broken)).join('\n');
    for (const rule of RULES.split(',')) expect(errors).toContain(rule);
  });
});
