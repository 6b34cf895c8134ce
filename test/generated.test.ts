/** Tests that the files that codegen writes are up to date, and that the generated types use the words of REST. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));
const generated = readFileSync(new URL('../generated/cli.ts', import.meta.url), 'utf8');

it('the generated files are up to date with the schema and the REST documents', async () => {
  const codegen = promisify(execFile)('node_modules/.bin/graphql-codegen', ['--config', 'codegen.ts', '--check'], {
    cwd: root,
  });
  // If a file is stale, the exit code is 1 and the output names the file.
  await expect(codegen).resolves.toMatchObject({ stdout: expect.not.stringContaining('stale') });
});

it('the generated types use the words of REST, not the names of GraphQL', () => {
  expect(generated).toContain("| 'late_result'");
  expect(generated).not.toContain("'LATE_RESULT'");
});
