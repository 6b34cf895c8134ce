/** Tests `callboard data`: it finds what a start would refuse, gives it up, and copies the directory of a relay. */
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { main } from '../../src/cli/main.ts';
import { copyOf, makeFolder, openDurable, removeFolders } from '../backends/kit/durable.ts';
import { admission, keyFor } from '../contract/kit/bench.ts';
import { turns } from '../kit/clock.ts';

afterAll(removeFolders);

/** Runs `callboard data` for a directory. */
function data(verb: string, root: string, ...flags: readonly string[]) {
  return run('data', verb, '--data-dir', root, ...flags);
}

async function run(...argv: readonly string[]) {
  let [out, err] = ['', ''];
  const code = await main(argv, {
    env: { XDG_STATE_HOME: makeFolder(), CALLBOARD_SECRET: 'a secret of more than thirty-two bytes' },
    print: (text) => void (out += text),
    complain: (text) => void (err += text),
    onStop: () => {},
  });
  return { code, out, err };
}

/** Makes the directory of a relay that was killed: it has a snapshot with c1, and a journal with the other commands. */
async function killed(...ids: readonly string[]): Promise<string> {
  const open = await openDurable({ boot: 'one', sync: 'always' });
  const admit = async (id: string): Promise<void> => {
    await open.backend.commands.admit(admission(id, { connectWithinMs: 60_000 }));
    await new Promise<void>((synced) => open.backend.onRecord?.(synced));
  };
  await admit('c1');
  await open.backend.snapshot();
  for (const id of ids) await admit(id);
  const root = copyOf(open);
  await open.backend.close();
  return root;
}

/** Starts on the directory, and returns which of the commands are there, and how they ended. */
async function startOn(root: string, ...ids: readonly string[]) {
  const { backend } = await openDurable({ root, boot: 'one', sync: 'always' });
  const commands = await backend.commands.get(ids.map((id) => keyFor(id)));
  const { away } = backend.durability();
  await backend.close();
  return { lost: away?.lost, ends: commands.map((command) => command && (command.reason ?? command.stage)) };
}

const fileOf = (root: string, kind: string): string =>
  join(root, readdirSync(root).findLast((name) => name.startsWith(kind)) ?? '');

/** Changes one bit in the middle of a file. */
function damage(path: string, at = 0.5): void {
  const bytes = readFileSync(path);
  const place = Math.floor(bytes.length * at);
  bytes[place] = (bytes[place] ?? 0) ^ 1;
  writeFileSync(path, bytes);
}

describe('callboard data check', () => {
  it('lists what a start reads', async () => {
    const root = await killed('c2');
    const { code, out } = await data('check', root);
    const lines = out.trim().split('\n');
    expect([code, lines]).toEqual([
      0,
      [
        expect.stringMatching(/^snapshot-00000002: \d+ batches, \d+ bytes$/),
        expect.stringMatching(/^journal-00000002: \d+ batches, \d+ bytes$/),
      ],
    ]);
  });

  it('accepts an unfinished batch at the end, which a crash leaves', async () => {
    const root = await killed('c2', 'c3');
    const path = fileOf(root, 'journal');
    truncateSync(path, readFileSync(path).length - 5);
    const { code, out } = await data('check', root);
    expect([code, out]).toEqual([
      0,
      expect.stringMatching(/journal-00000002: .* torn bytes from byte \d+ on \(sha256 /),
    ]);
  });

  it('fails for what a start refuses: damage before the end, a damaged snapshot, and a file that is missing', async () => {
    const [middle, snapshot, missing] = [await killed('c2', 'c3', 'c4'), await killed(), await killed('c2')];
    damage(fileOf(middle, 'journal'));
    damage(fileOf(snapshot, 'snapshot'), 0.9);
    rmSync(fileOf(missing, 'journal'));
    for (const root of [middle, snapshot, missing]) {
      const { code, err } = await data('check', root);
      expect([code, err]).toEqual([1, expect.stringMatching(/accept-loss/)]);
      await expect(openDurable({ root, boot: 'one' })).rejects.toMatchObject({
        code: 'store_unavailable',
        message: expect.stringMatching(/accept-loss/),
      });
    }
  });

  it('is refused while the relay runs', async () => {
    const { backend, directory } = await openDurable();
    expect(await data('check', directory.root)).toMatchObject({ code: 1, err: expect.stringMatching(/in use/) });
    expect(await data('accept-loss', directory.root)).toMatchObject({ code: 1, err: expect.stringMatching(/in use/) });
    await backend.close();
  });
});

describe('callboard data accept-loss', () => {
  it('keeps what comes before the damage; what had not ended then ends as unknown', async () => {
    const root = await killed('c2', 'c3', 'c4');
    const path = fileOf(root, 'journal');
    const whole = readFileSync(path);
    damage(path);
    const damaged = readFileSync(path);
    const { code, out } = await data('accept-loss', root);
    expect([code, out]).toEqual([0, expect.stringMatching(/^journal-00000002 was cut at byte \d+\.\n/)]);
    const aside = fileOf(root, 'lost-');
    expect(readFileSync(join(aside, 'journal-00000002'))).toEqual(damaged);
    expect(whole.subarray(0, readFileSync(path).length)).toEqual(readFileSync(path));
    expect((await data('check', root)).code).toBe(0);
    const { lost, ends } = await startOn(root, 'c1', 'c4');
    expect({ lost, ends }).toEqual({ lost: true, ends: ['store_lost', null] });
    // The loss is over once a relay has started.
    expect((await startOn(root, 'c1')).lost).toBe(false);
  });

  it('puts a damaged snapshot aside, and what follows a file that is missing', async () => {
    const snapshot = await killed('c2');
    damage(fileOf(snapshot, 'snapshot'), 0.9);
    expect(await data('accept-loss', snapshot)).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^snapshot-00000002 was put aside/),
    });
    expect(await startOn(snapshot, 'c1', 'c2')).toEqual({ lost: true, ends: [null, 'store_lost'] });
    const missing = await killed('c2');
    rmSync(fileOf(missing, 'journal'));
    expect((await data('accept-loss', missing)).code).toBe(0);
    expect(await startOn(missing, 'c1', 'c2')).toEqual({ lost: true, ends: ['store_lost', null] });
  });

  it('changes nothing if nothing is damaged', async () => {
    const root = await killed('c2');
    const before = readdirSync(root).filter((name) => name !== 'lock');
    expect(await data('accept-loss', root)).toMatchObject({ code: 0, out: 'Nothing is damaged.\n' });
    expect(readdirSync(root).filter((name) => name !== 'lock')).toEqual(before);
    expect((await startOn(root, 'c2')).lost).toBe(false);
  });
});

describe('callboard data backup', () => {
  it('copies the directory of a relay that runs; a start from the copy counts as a loss', async () => {
    const { backend, directory } = await openDurable({ boot: 'one' });
    await backend.commands.admit(admission('c1', { connectWithinMs: 60_000 }));
    await turns();
    const to = join(makeFolder(), 'copy');
    expect(await data('backup', directory.root, '--to', to)).toMatchObject({ code: 0 });
    await backend.close();
    // The command may have been dispatched after the copy was made, so it must not run again.
    expect(await startOn(to, 'c1')).toEqual({ lost: true, ends: ['store_lost'] });
  });

  it('overwrites nothing, and asks where to copy to', async () => {
    const root = await killed('c2');
    const to = makeFolder();
    writeFileSync(join(to, 'file'), 'text');
    expect(await data('backup', root, '--to', to)).toMatchObject({
      code: 2,
      err: expect.stringMatching(/exists already/),
    });
    expect(await data('backup', root)).toMatchObject({ code: 2, err: expect.stringMatching(/--to: is required/) });
    expect(existsSync(join(to, 'file'))).toBe(true);
  });
});

it('spill-clean and audit verify use what is kept in the directory', async () => {
  const root = await killed('c2');
  const [hour, name] = ['100000', 'a'.repeat(32)];
  const folder = join(root, 'spill', hour, 'aa');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, name), '{}');
  expect(await run('spill-clean', '--data-dir', root)).toMatchObject({ code: 0, out: 'removed 1 expired payload\n' });
  expect(await run('audit', 'verify', '--data-dir', root)).toMatchObject({
    code: 1,
    err: expect.stringContaining(`${join(root, 'audit.jsonl')} cannot be read`),
  });
});

it('callboard data asks for a directory, and for a verb that it knows', async () => {
  const root = await killed('c2');
  expect(await data('repair', root)).toMatchObject({
    code: 2,
    err: expect.stringMatching(/expected check, backup or accept-loss/),
  });
  expect(await data('check', join(root, 'nothing'))).toMatchObject({
    code: 2,
    err: expect.stringMatching(/CALLBOARD_DATA_DIR/),
  });
});
