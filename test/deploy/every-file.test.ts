/** Tests that a reader reads each file of deploy/, and that it notices a wrong text in that file. */
import { describe, expect, it } from 'vitest';
import { READERS } from './kit/readers.ts';
import { changed, readTree, textOf } from './kit/tree.ts';

const tree = readTree();

describe('the files of deploy/', () => {
  it('each have one reader', () => {
    const read = READERS.flatMap(({ notices }) => Object.keys(notices));
    expect(read.toSorted()).toEqual([...tree.keys()]);
  });

  it.each(READERS)('can be used: $by', async ({ read }) => {
    await read(tree);
  });

  it('have no file that only the machine of its author has', () => {
    for (const path of tree.keys()) expect(path).not.toMatch(/(^|\/)\.|secrets\/|\.(pem|key|crt|env)$/);
    expect(() => textOf(tree, 'secrets/secret')).toThrow('deploy/ has no secrets/secret');
  });
});

const NOTICED = READERS.flatMap(({ read, notices }) =>
  Object.entries(notices).map(([path, [text, wrong]]) => ({ read, path, text, wrong })),
);
it.each(NOTICED)('"$wrong" in $path is noticed', async ({ read, path, text, wrong }) => {
  const other = changed(tree, path, text, wrong);
  await expect(Promise.resolve(other).then(read)).rejects.toThrow();
});
