/** Tests that the list of Redis commands that a relay needs is complete and contains no other command. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { COMMANDS, OWNED_CLUSTER_COMMANDS, OWNED_COMMANDS } from '../../src/backends/redis/rights-commands.ts';
import { COMMAND_RULES, OWNED_CLUSTER_RULES, OWNED_RULES } from '../kit/redis-user.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const BACKEND = join(ROOT, 'src', 'backends', 'redis');

/** The files whose Redis commands are sent only with certain settings (see docs/redis-rights.md). */
const CONDITIONAL = ['rights.ts', 'rights-commands.ts', 'legacy.ts'];
/** The Redis commands that are sent only if the user may run them. */
const OPTIONAL = ['CONFIG'];

function filesOf(extension: string): readonly string[] {
  return readdirSync(BACKEND, { recursive: true, encoding: 'utf8' }).filter(
    (name) => name.endsWith(extension) && !CONDITIONAL.some((file) => name.endsWith(file)),
  );
}

function found(text: string, pattern: RegExp): readonly string[] {
  return [...text.matchAll(pattern)].map(([, name = '']) => name.toUpperCase());
}

/**
 * Returns the Redis commands that scripts run. They are the quoted names in the first argument of `call`, `pcall` and
 * `inParts`.
 */
function ofLua(text: string): readonly string[] {
  const calls = [...text.matchAll(/\b(?:p?call|inParts)\(([^,)]*)/g)].map(([, first = '']) => first);
  return calls.flatMap((first) => found(first, /'([A-Z]+)'/g));
}

/**
 * Returns the Redis commands that TypeScript sends: the first words of lists of commands, methods of the Redis client,
 * and the commands of classes.
 */
function ofTypeScript(text: string): readonly string[] {
  return [
    ...found(text, /\[\s*'([A-Z]{3,})'(?=,)/g),
    ...found(text, /\b(?:client|redis|pipeline)\.(eval|info|xread|xtrim|subscribe|unsubscribe)\(/g),
    ...found(text, /\bsuper\('([a-z]+)', \[/g),
    ...found(text, /\.call\('([A-Z]+)'/g),
    ...found(text, /redis\.call\('([A-Z]+)'/g),
  ];
}

function used(): readonly string[] {
  const lua = filesOf('.lua').flatMap((name) => ofLua(readFileSync(join(BACKEND, name), 'utf8')));
  const typescript = filesOf('.ts').flatMap((name) => ofTypeScript(readFileSync(join(BACKEND, name), 'utf8')));
  return [...new Set([...lua, ...typescript])].filter((name) => !OPTIONAL.includes(name)).sort();
}

/** Returns the Redis commands that owners send, or run in scripts. */
function usedByOwners(): readonly string[] {
  const folder = join(ROOT, 'src', 'backends', 'owned');
  const texts = readdirSync(folder).map((name) => readFileSync(join(folder, name), 'utf8'));
  const sent = texts.flatMap((text) => found(text, /\bclient\.([a-z]+?)(?:Buffer)?\(/g));
  const piped = texts.flatMap((text) =>
    [...text.matchAll(/\.pipeline\(\)(.*)\.exec\(\)/g)].flatMap(([, calls = '']) => found(calls, /\.([a-z]+)\(/g)),
  );
  const others = texts.flatMap((text) => found(text, /\.call\('([A-Z]+)'/g));
  // The subscriber is that of the Redis backend, which has no sharded channels of its own.
  const sharded = found(readFileSync(join(BACKEND, 'subscriber.ts'), 'utf8'), /\bclient\.(ssubscribe)\(/g);
  const ofClient = ['CALL', 'CONNECT', 'DISCONNECT', 'PIPELINE'];
  return [...new Set([...sent, ...piped, ...others, ...sharded])].filter((name) => !ofClient.includes(name)).sort();
}

describe('the list of Redis commands', () => {
  it('has besides just what owners use', () => {
    const common: readonly string[] = Object.keys(COMMANDS);
    expect(usedByOwners().filter((name) => !common.includes(name))).toEqual(
      [...Object.keys(OWNED_COMMANDS), ...Object.keys(OWNED_CLUSTER_COMMANDS)].sort(),
    );
    const text = readFileSync(join(ROOT, 'docs/redis-rights.md'), 'utf8');
    expect(/With `STORE=redis`, `([^`]*)` are not needed/.exec(text)?.[1]?.split(' ')).toEqual(OWNED_RULES);
    expect(/unless `STORE=redis` *\| `([^`]*)`/.exec(text)?.[1]?.split(' ')).toEqual(OWNED_CLUSTER_RULES);
  });

  it('is the set that the sources use', () => {
    expect(used()).toEqual(Object.keys(COMMANDS).sort());
  });

  it.each(['docs/redis-rights.md'])('is complete in %s', (name) => {
    const text = readFileSync(join(ROOT, name), 'utf8');
    const [, block = ''] = /```text[^\n]*\n(ACL SETUSER callboard[^]*?)```/.exec(text) ?? [];
    const rules = block.split(/\s+/).filter((word) => /^\+[a-z]/.test(word));
    expect(rules.sort()).toEqual([...COMMAND_RULES, ...OWNED_RULES].sort());
    expect(block).toContain(' ~{cb:callboard:* &{cb:callboard:* ');
  });
});
