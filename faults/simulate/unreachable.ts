/** Lists the branches of the stores that no simulation can reach, by the reasons. */
import type { StoreName } from './workloads.ts';

/** A reason, and the places that it holds for. `lines`: the lines in which they begin, without the spaces around them. */
type Reason = {
  readonly why: string;
  readonly places: readonly { readonly file: string; readonly lines: readonly string[] }[];
};

const REASONS: Readonly<Record<StoreName, readonly Reason[]>> = {
  owned: [
    {
      why: 'A fence, a lease or a note in the simulated Redis is always one that a relay wrote.',
      places: [
        {
          file: 'backends/owned/fence.ts',
          lines: [
            'const [, process, epoch, number] = /^(\\S+) (\\d+) (\\d+)$/.exec(text) ?? [];',
            'if (process === undefined) throw new Error(`"${text}" is no fence`);',
          ],
        },
        {
          file: 'backends/owned/lease.ts',
          lines: [
            'const [, sign, number, address = NONE, reportedAt = NONE] = /^([+-])(\\d+) (\\S+) (\\d+|-)$/.exec(text) ?? [];',
            'number: Number(number ?? 0),',
          ],
        },
        {
          file: 'backends/owned/owner.ts',
          lines: [
            "if (!note) return this.#options.log.warn({ from }, 'a note of another relay cannot be read');",
            'if (!isRecord(note)) return null;',
            "return isKnown || isEnd || OF_PROCESSES.has(note['kind']) ? (note as OwnerNote) : null;",
          ],
        },
      ],
    },
    {
      why: 'All relays of a run may own partitions, and send mail.',
      places: [
        {
          file: 'backends/owned/lease.ts',
          lines: [
            "return `${claims ? '+' : '-'}${number} ${address ?? NONE} ${reportedAt ?? NONE}`;",
            'const claiming = [...leases].flatMap(([name, lease]) => (lease.claims ? [name] : []));',
            'const leases = new Map((renewed[0]?.leases ?? []).map(([name, found]) => [name, readLease(found)]));',
          ],
        },
        { file: 'backends/owned/turns.ts', lines: ['const mail = this.#options.takeMail?.() ?? [];'] },
      ],
    },
    {
      why: 'All relays of a run have one division of users, and each partition is in a slot group.',
      places: [
        {
          file: 'backends/owned/slot-group.ts',
          lines: ["if (typeof map === 'string' && map !== keys.map) logs.forEach((log) => this.#lose(log));"],
        },
        {
          file: 'backends/owned/turns.ts',
          lines: ['if (!group) throw new Error(`the partition ${partition} is in no slot group`);'],
        },
      ],
    },
    {
      why: 'A relay of a run has far more memory than its users need.',
      places: [
        {
          file: 'backends/owned/owner.ts',
          lines: [
            "if (!has && !this.#isCramped) log.error({ partition: number }, 'this relay has no room for more partitions');",
          ],
        },
      ],
    },
    {
      why: 'Virtual time stands still within an event, so no slice of a replay is ever too long.',
      places: [
        { file: 'backends/owned/partition.ts', lines: ['await new Promise<void>((next) => loop.afterOthers(next));'] },
      ],
    },
    {
      why: 'Nobody signs in to a console.',
      places: [
        {
          file: 'backends/owned/partition.ts',
          lines: [
            'for (const [hash, until] of replay.tickets) if (until > now) void plain.tickets.take(hash, until - now);',
          ],
        },
      ],
    },
    {
      why: 'Less is written than after which memory is looked at again, or than one call takes.',
      places: [
        {
          file: 'backends/owned/slot-group.ts',
          lines: [
            'if (this.#unprobedChars > PROBED_CHARS) void this.probe();',
            'return end < 0 ? batches : batches.slice(0, Math.max(1, end));',
          ],
        },
      ],
    },
  ],
  directory: [
    {
      why: 'A simulated disk changes nothing that was synced, and the directory of a run is whole and of this version.',
      places: [
        {
          file: 'backends/journal/batches.ts',
          lines: [
            'if (hasOtherForm(read(0, MAGIC.length))) throw new Error(`${path} has the form of another version`);',
            "return start !== null && !start.equals(MAGIC) && /^cbj\\d/.test(start.toString('latin1'));",
            "if (later && later.synced > offset) return { kind: 'damaged', ...found };",
            "case 'damaged':",
          ],
        },
        {
          file: 'backends/journal/open.ts',
          lines: [
            "if (missing !== null) refuseDamage(missing, 'it is not there');",
            "if (end.kind !== 'whole') refuseDamage(snapshot, badPart(end));",
            "if (!replay.complete) refuseDamage(snapshot, 'it has no end');",
            'if (!mayBeCut(end, { disk, files: [path, ...later], lostPower })) refuseDamage(path, badPart(end));',
            'refuse(',
          ],
        },
        {
          file: 'backends/journal/files.ts',
          lines: ['missing: isMissing ? this.journal(from + Math.max(present, 0)) : null,'],
        },
      ],
    },
    {
      why: 'Node, the lock and the file system of a run are fit for a directory.',
      places: [
        {
          file: 'backends/journal/open.ts',
          lines: [
            'return refuse(`A data directory needs Node.js 24.15 or later.`, `this is ${process.versions.node}`);',
            "if (!lock) return refuse(`The data directory ${root} is in use by another process.`, 'it has the lock');",
            'if (error instanceof CallboardError) throw error;',
            "return refuse(`The data directory ${root} cannot be used.`, error instanceof Error ? error.message : 'unknown');",
            '} catch (error) {',
            "log.warn({ network }, 'the data directory is on a network file system, whose locks and syncs may not hold');",
          ],
        },
      ],
    },
    {
      why: 'A read of a simulated disk is never short.',
      places: [
        { file: 'backends/journal/batches.ts', lines: ['if (more === 0) break;'] },
        { file: 'backends/journal/files.ts', lines: ['if (more === 0) break;'] },
      ],
    },
    {
      why: 'Each run gives its own files, and no audit.',
      places: [
        {
          file: 'backends/journal/journal.ts',
          lines: ['this.#openFile = options.openFile ?? batchFilesOn(options.directory.disk);'],
        },
        { file: 'backends/journal/open.ts', lines: ['audit: openAudit?.(directory),'] },
      ],
    },
    {
      why: 'Only a relay with its whole server asks.',
      places: [
        {
          file: 'backends/journal/open.ts',
          lines: [
            'reportsMissingUntil: () => reportsMissingUntil,',
            'ready: () => room.requireSpace(),',
            'snapshot: () => snapshots.write(),',
          ],
        },
      ],
    },
    {
      why: 'Nobody signs in to a console.',
      places: [
        {
          file: 'backends/journal/open.ts',
          lines: [
            'for (const [hash, until] of replay.tickets) if (until > now) void plain.tickets.take(hash, until - now);',
          ],
        },
        {
          file: 'backends/journal/snapshot.ts',
          lines: ["for (const [hash, until] of tickets) records.add('ticket', hash, until);"],
        },
      ],
    },
    {
      why: 'One relay has no nodes beside it.',
      places: [
        {
          file: 'backends/journal/snapshot.ts',
          lines: ["for (const [nodeId, process] of nodes) records.add('node', nodeId, process);"],
        },
      ],
    },
    {
      why: 'No user adds as much as a share of recorded bytes has.',
      places: [
        {
          file: 'backends/journal/room.ts',
          lines: [
            'if (refusal) fail(refusal, SHARE_MESSAGE[refusal], { share: RECORDED_SHARE, retryAfterMs: RETRY_AFTER_MS });',
            'return code && { code, share: RECORDED_SHARE };',
          ],
        },
      ],
    },
  ],
};

/** A place that no run can reach. `file`: its path below src. `text`: the line in which it begins. */
export type Unreachable = { readonly file: string; readonly text: string; readonly why: string };

/** Returns what no run with this store can reach. */
export function unreachableIn(store: StoreName): readonly Unreachable[] {
  return REASONS[store].flatMap(({ why, places }) =>
    places.flatMap(({ file, lines }) => lines.map((text) => ({ file, text, why }))),
  );
}
