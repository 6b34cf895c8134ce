/** Writes the events of one process to a file, and reads and merges the files of all processes. */
import { closeSync, fsyncSync, openSync, readdirSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { FaultEvent, Logged } from './events.ts';

export interface FaultLog {
  /** Writes one line with a single system call, so that a killed process truncates at most its last line. */
  write(event: FaultEvent): void;
  /** Writes a line like `write`. The line is on disk when it returns. */
  record(event: FaultEvent): void;
  close(): void;
}

export type LogOptions = { readonly folder: string; readonly proc: string; readonly boot: string };

/** Opens the log of this process and boot, to which it appends. No other process writes to the file. */
export function openLog({ folder, proc, boot }: LogOptions): FaultLog {
  const file = openSync(join(folder, `${proc}.${boot}.ndjson`), 'a');
  let seq = 0;
  const write = (event: FaultEvent): void => {
    const stamp = { proc, boot, seq: ++seq, at: Number(process.hrtime.bigint()) };
    writeSync(file, `${JSON.stringify({ ...stamp, ...event })}\n`);
  };
  return {
    write,
    record(event) {
      write(event);
      fsyncSync(file);
    },
    close: () => closeSync(file),
  };
}

type ReadLogs = {
  readonly events: readonly Logged[];
  /** The number of lines that were truncated by kills. Each is the last line of its file. */
  readonly torn: number;
};

/**
 * Reads all logs of a folder and merges them in order of time. Throws for a malformed line that is not the last of its
 * file.
 */
export function readLogs(folder: string): ReadLogs {
  const names = readdirSync(folder).filter((name) => name.endsWith('.ndjson'));
  const logs = names.map((name) => parseLog(readFileSync(join(folder, name), 'utf8'), name));
  const events = mergeLogs(...logs.map((log) => log.events));
  return { events, torn: logs.filter(({ torn }) => torn).length };
}

/** Merges logs in order of time. */
export function mergeLogs(...logs: readonly (readonly Logged[])[]): readonly Logged[] {
  return logs.flat().sort((a, b) => a.at - b.at || a.seq - b.seq);
}

/** Parses the text of one file into events. `name`: the file's name, for errors. */
export function parseLog(text: string, name: string): { readonly events: readonly Logged[]; readonly torn: boolean } {
  const lines = text.split('\n');
  const rest = lines.pop() ?? '';
  const events = lines.map((line, index) => parseLine(line, `${name}:${index + 1}`));
  events.forEach((event, index) => {
    if (event.seq !== index + 1) throw new Error(`${name}:${index + 1} is out of order`);
  });
  return { events, torn: rest !== '' };
}

function parseLine(line: string, where: string): Logged {
  try {
    return JSON.parse(line);
  } catch (cause) {
    throw new Error(`${where} is not JSON`, { cause });
  }
}
