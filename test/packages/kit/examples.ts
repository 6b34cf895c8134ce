/** Runs the examples of docs/clients.md unchanged, in a folder where the package is installed. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { examplesOf } from '../../docs/kit/examples.ts';

const PAGE = 'docs/clients.md';

/** Writes each example of the page into the folder. Resolves with their names. */
export async function writeExamples(folder: string): Promise<readonly string[]> {
  const named = examplesOf(PAGE).flatMap(({ info, text }) => {
    const name = /^packages: (\S+)$/.exec(info)?.[1];
    return name === undefined ? [] : [{ name, text }];
  });
  for (const { name, text } of named) await writeFile(join(folder, name), text);
  return named.map(({ name }) => name);
}

export type Example = {
  /** Resolves with all output so far, once it contains the text. Rejects when the program ends without it. */
  shows(text: string): Promise<string>;
  /** Ends the program as a service manager does. Resolves with the program's exit code. */
  stop(): Promise<number | null>;
};

/** Starts an example with these environment variables. */
export function startExample(folder: string, name: string, env: Readonly<Record<string, string>>): Example {
  const child = spawn(process.execPath, [name], { cwd: folder, env: { ...process.env, ...env } });
  const ended = exitOf(child);
  let output = '';
  const heard = new EventTarget();
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      heard.dispatchEvent(new Event('output'));
    });
  }
  return {
    async shows(text) {
      const failed = ended.then(() => Promise.reject(new Error(`${name} ended without ${text}: ${output}`)));
      failed.catch(() => undefined);
      while (!output.includes(text)) {
        await Promise.race([new Promise((done) => heard.addEventListener('output', done, { once: true })), failed]);
      }
      return output;
    },
    async stop() {
      child.kill('SIGTERM');
      return ended;
    },
  };
}

/** Resolves when the program has ended and its output is read. */
async function exitOf(child: ChildProcess): Promise<number | null> {
  await once(child, 'close');
  return child.exitCode;
}
