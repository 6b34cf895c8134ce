/** Runs the examples of docs/clients.md, as they stand, in a folder where the package is installed. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

const PAGE = join(import.meta.dirname, '../../../docs/clients.md');

/** Writes each example that begins with its file name. Resolves with the names. */
export async function writeExamples(folder: string): Promise<readonly string[]> {
  const examples = [...(await readFile(PAGE, 'utf8')).matchAll(/^```js\n\/\/ (\S+\.mjs)\n(.*?)^```/gms)];
  for (const [, name = '', code = ''] of examples) await writeFile(join(folder, name), code);
  return examples.map(([, name = '']) => name);
}

export type Example = {
  /** Resolves with all output so far, once it contains the text. Rejects when the program ends without it. */
  shows(text: string): Promise<string>;
  /** Ends the program as a service manager does. Resolves with its exit code. */
  stop(): Promise<number | null>;
};

export function startExample(folder: string, name: string, relay: string, token: string): Example {
  const child = spawn(process.execPath, [name], { cwd: folder, env: { ...process.env, RELAY: relay, TOKEN: token } });
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
