/** Tests that the benchmark `parts` still finds the parts of a request in the sources, and that it removes them. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ADMIN_TOKEN, startRelay } from '../../bench/lib/callboard.ts';
import { PARTS, sourcesWithout } from '../../bench/suites/parts.ts';
import { copySources, mutate } from '../../faults/outages/mutants/plant.ts';

test('the text of each edit occurs exactly once in its file, as the edits before it left the file', async () => {
  await using copy = copySources();
  const faults = PARTS.flatMap(({ name, edits }) =>
    edits.flatMap((edit) => {
      try {
        const text = mutate(edit, copy.source);
        writeFileSync(join(copy.source, edit.file), text);
        return edit.replace === edit.find ? [`${name}: an edit changes nothing`] : [];
      } catch (error) {
        return [`${name}: ${String(error)}`];
      }
    }),
  );
  expect(faults).toEqual([]);
});

test('a relay without all the parts repeats its first answer, whatever is asked', async () => {
  await using copy = sourcesWithout(PARTS);
  await using whole = await startRelay();
  await using bare = await startRelay({}, { source: copy.source });
  const ask = async (url: string, query: string, site: string) => {
    const response = await fetch(`${url}/graphql`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${ADMIN_TOKEN}`,
        'content-type': 'application/json',
        'sec-fetch-site': site,
      },
      body: JSON.stringify({ query }),
    });
    return { status: response.status, id: response.headers.get('x-request-id'), body: await response.json() };
  };
  const first = await ask(bare.url, '{ __typename }', 'none');
  expect(first).toEqual({ ...(await ask(whole.url, '{ __typename }', 'none')), id: null });
  // The body is not read, the query is not executed, and the origin is not checked.
  expect(await ask(bare.url, '{ other: __typename }', 'cross-site')).toEqual(first);
  expect((await ask(whole.url, '{ other: __typename }', 'cross-site')).status).toBe(403);
  // There are no built-in routes.
  expect((await fetch(`${bare.url}/healthz`)).status).toBe(404);
  expect((await fetch(`${whole.url}/healthz`)).status).toBe(200);
});
