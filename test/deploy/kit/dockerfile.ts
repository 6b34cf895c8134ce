/** Reads deploy/Dockerfile and compares its instructions with package.json, the build and the settings of the relay. */
import { existsSync, readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { z } from 'zod';
import { SETTINGS } from '../../../src/settings.ts';
import { configOf } from './settings.ts';
import { ROOT, textOf, type Tree } from './tree.ts';

const MANIFEST = z.object({
  bin: z.object({ callboard: z.string() }),
  devDependencies: z.object({ node: z.string() }),
});
const WORDS = z.array(z.string());
const INSTRUCTIONS = new Set([
  ...['ARG', 'FROM', 'RUN', 'WORKDIR', 'COPY', 'LABEL', 'ENV', 'USER', 'EXPOSE', 'STOPSIGNAL'],
  ...['HEALTHCHECK', 'ENTRYPOINT', 'CMD'],
]);
/** What the first stage makes; the second copies it. */
const MADE = ['node_modules', 'dist', '/usr/bin/tini'];

type Instruction = { readonly name: string; readonly rest: string };

function instructionsOf(text: string): readonly Instruction[] {
  const lines = text.replaceAll(/\\\n\s*/g, '').split('\n');
  return lines
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const [, name = '', rest = ''] = /^([A-Z]+) (.*)$/.exec(line) ?? [];
      if (!INSTRUCTIONS.has(name)) throw new Error(`Dockerfile: ${line}`);
      return { name, rest };
    });
}

/** Throws for an instruction that does not fit the project. */
export function readDockerfile(tree: Tree): void {
  const { bin, devDependencies } = MANIFEST.parse(JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')));
  const instructions = instructionsOf(textOf(tree, 'Dockerfile'));
  const all = (name: string): readonly string[] => instructions.flatMap((one) => (one.name === name ? [one.rest] : []));
  const expect = (name: string, holds: boolean): void => {
    if (!holds) throw new Error(`Dockerfile: ${name} does not fit`);
  };
  expect('ARG BASE', all('ARG')[0] === `BASE=node:${devDependencies.node}-trixie-slim`);
  expect(
    'FROM',
    all('FROM').every((from) => from.startsWith('${BASE}')),
  );
  for (const copied of all('COPY')) {
    const made = copied.startsWith('--from=build ');
    const sources = copied.replace('--from=build ', '').split(' ').slice(0, -1);
    const paths = sources.map((source) => source.replace('/build/', ''));
    for (const path of paths) expect(`COPY ${path}`, (made && MADE.includes(path)) || existsSync(join(ROOT, path)));
  }
  const environment = Object.fromEntries(all('ENV').flatMap((line) => line.split(' ').map((one) => one.split('='))));
  const secrets = new Map([['/secret', 's'.repeat(32)]]);
  const { host, port } = configOf({ ...environment, CALLBOARD_SECRET_FILE: '/secret' }, secrets);
  expect('ENV', isIP(host) === 4 && port === SETTINGS.parse({}).PORT && environment['NODE_ENV'] === 'production');
  expect('EXPOSE', all('EXPOSE').join() === String(port));
  expect('USER', /^[1-9]\d*:[1-9]\d*$/.test(all('USER').join()));
  expect('STOPSIGNAL', all('STOPSIGNAL').join() === 'SIGTERM');
  const start = WORDS.parse(JSON.parse(all('ENTRYPOINT').join()));
  expect('ENTRYPOINT', start.join(' ') === `/usr/bin/tini -- node ${bin.callboard}`);
  expect('CMD', all('CMD').join() === '["serve"]');
  const health = WORDS.parse(JSON.parse(/CMD (.*)$/.exec(all('HEALTHCHECK').join())?.[1] ?? ''));
  expect('HEALTHCHECK', health.join(' ') === `node ${bin.callboard} healthcheck`);
}
