/** Tests the Lua files: each declares what it needs, and programs contain nothing else. */
import { describe, expect, it } from 'vitest';
import { type LuaFile, loadPrograms, readRooms } from '../../src/backends/redis/program/program.ts';

const files: readonly LuaFile[] = readRooms();

const matches = (text: string, pattern: RegExp): readonly string[] => [
  ...new Set([...text.matchAll(pattern)].map(([, name = '']) => name)),
];
const definedBy = ({ text }: LuaFile): readonly string[] => matches(text, /^\s*lib\.(\w+) = /gm);
const usedBy = ({ text }: LuaFile): readonly string[] => matches(text, /\blib\.(\w+)/g);

describe('the Lua files of the Redis backend', () => {
  const libraries = new Map(files.filter(({ name }) => name.startsWith('lib-')).map((file) => [file.name, file]));

  it('declare every library whose functions they call, and no other', () => {
    const owner = new Map([...libraries.values()].flatMap((file) => definedBy(file).map((name) => [name, file.name])));
    const wrong = files.flatMap((file) => {
      const own = definedBy(file);
      const calls = usedBy(file).filter((name) => !own.includes(name));
      const needs = [...new Set(calls.map((name) => owner.get(name) ?? `nobody's ${name}`))].sort();
      return needs.join() === file.needs.toSorted().join() ? [] : [{ name: file.name, needs }];
    });
    expect(files.length).toBeGreaterThan(50);
    expect(wrong).toEqual([]);
  });

  it('form programs that contain an act and what it needs, and nothing else', () => {
    const programs = loadPrograms();
    const [alone, again, grouped, all] = [
      ['sites-close'],
      ['sites-close', 'sites-close'],
      ['connections-get', 'connections-touch'],
      ['sites-close', 'connections-touch'],
    ].map((names) => programs.programFor(names));
    expect(alone?.source).toContain("acts['sites-close'] =");
    expect(alone?.source).not.toContain('lib.commands_');
    expect(again).toBe(alone);
    expect(grouped?.source).toContain("acts['connections-touch'] =");
    expect(grouped?.source).not.toContain("acts['sites-close'] =");
    expect(all?.source).toContain("acts['connections-touch'] =");
    expect(all?.source).toContain("acts['sites-close'] =");
    expect(() => programs.programFor(['sites-unknown'])).toThrow('There is no act "sites-unknown".');
  });
});
