/** Tests that each option of the client libraries is described in docs/options.md, in its type, and used by an example. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { examplesOf, reasonNotRun, ROOT } from './kit/examples.ts';

const PAGE = 'docs/options.md';
const page = readFileSync(join(ROOT, PAGE), 'utf8');
const programs = examplesOf(PAGE).filter((example) => example.language === 'js' && reasonNotRun(example) === null);

/** The files with the types of options, and these types. */
const TYPES: Readonly<Record<string, readonly string[]>> = {
  'link/link.ts': ['LinkOptions'],
  'link/request-with-retries.ts': ['RelayRequestOptions'],
  'link/actions.ts': ['ActionSpec'],
  'runtime/types.ts': ['RuntimeOptions', 'SiteDefinition'],
  'caller/caller.ts': ['InvokeOptions', 'AwaitOptions'],
  'caller/http-caller.ts': ['HttpCallerOptions'],
  'caller/index.ts': ['LinkCallerOptions'],
  'host/publisher.ts': ['PublisherOptions', 'NewSiteEvent'],
  'host/control-server.ts': ['ControlServerOptions', 'ControlSitesOptions'],
  'site/index.ts': ['SiteClientOptions', 'SubscribeOptions', 'SiteInvokeOptions'],
};

type Option = { readonly type: string; readonly name: string; readonly documented: boolean };

/** Returns the members that a type declares itself. A docstring ends on the line before its member. */
function optionsOf(file: string, type: string): readonly Option[] {
  const text = readFileSync(join(ROOT, 'src/clients', file), 'utf8');
  const start = text.search(new RegExp(`^(export )?type ${type}\\b`, 'm'));
  const body = text.slice(start, text.indexOf('\n};', start));
  const lines = body.split('\n');
  return lines.flatMap((line, i) => {
    const name = /^  readonly (\w+)\??:/.exec(line)?.[1];
    return name === undefined ? [] : [{ type, name, documented: lines[i - 1]?.endsWith('*/') ?? false }];
  });
}

const OPTIONS = Object.entries(TYPES).flatMap(([file, types]) => types.flatMap((type) => optionsOf(file, type)));

describe('the options of the client libraries', () => {
  test('are found', () => {
    expect(OPTIONS.length).toBeGreaterThan(55);
    for (const type of Object.values(TYPES).flat()) expect(OPTIONS.map((option) => option.type)).toContain(type);
  });

  test('have a docstring', () => {
    const exceptions = ['SiteDefinition.siteId'];
    const bare = OPTIONS.filter(({ documented }) => !documented).map(({ type, name }) => `${type}.${name}`);
    expect(bare).toEqual(exceptions);
  });

  test(`are described in ${PAGE}`, () => {
    const missing = OPTIONS.filter(({ name }) => !page.includes(`\`${name}\``)).map(
      ({ type, name }) => `${type}.${name}`,
    );
    expect(missing).toEqual([]);
  });

  test('are used by an example that runs', () => {
    const used = (name: string): boolean => programs.some(({ text }) => new RegExp(`\\b${name}\\b`).test(text));
    const unused = OPTIONS.filter(({ name }) => !used(name)).map(({ type, name }) => `${type}.${name}`);
    expect(unused).toEqual([]);
  });
});
