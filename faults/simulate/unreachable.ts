/** Lists the branches of the stores that no simulation can reach, or hardly any does, by the reasons. */
import type { StoreName } from './workloads.ts';

/**
 * A reason, and the places that it holds for. `lines`: the lines in which they begin, without the spaces around them.
 * `isRare`: some runs of many thousands reach them.
 */
type Reason = {
  readonly why: string;
  readonly isRare?: true;
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
      why: 'A replica is behind by less than any fence is old.',
      places: [
        { file: 'backends/owned/fence.ts', lines: ["if (found === null) return { kind: 'behind', number: 0 };"] },
        {
          file: 'backends/owned/partition.ts',
          lines: [
            'if (!found || !own) return false;',
            'this.#seen = fence ?? (this.#given ? null : this.#seen);',
            'if (isAfter(fence, given) || (wasForgotten && isAfter(fence, seen))) this.forgetGiven();',
          ],
        },
        {
          file: 'backends/owned/slot-group.ts',
          lines: [
            'return logs.flatMap((log, i) => (this.#logs.has(log) ? [{ log, text: fences[i] ?? null }] : []));',
            'const epoch = Math.max(own.epoch, found?.epoch ?? 0) + 1;',
          ],
        },
      ],
    },
    {
      why: 'Each start of a relay has a node id of its own.',
      places: [{ file: 'backends/owned/owner.ts', lines: ['for (let beats = 0; await lives(); beats++) {'] }],
    },
    {
      why: 'Relays ask only for partitions that there are, and count only in those of their own.',
      places: [
        {
          file: 'backends/owned/owner.ts',
          lines: ['if (!partition) return;'],
        },
      ],
    },
    {
      why: 'A log that confirms a batch mostly has one.',
      isRare: true,
      places: [{ file: 'backends/owned/tail.ts', lines: ['const oldest = this.#batches[0]?.at ?? now;'] }],
    },
    {
      why: 'A partition must be lost between two steps of what counts in it.',
      isRare: true,
      places: [
        { file: 'backends/owned/owner.ts', lines: ['return this.#partitions[partition]?.decided ?? 0;'] },
        {
          file: 'backends/owned/partition.ts',
          lines: [
            'return this.#owned?.state.records.added ?? 0;',
            'for (const { nodeId, disconnectedAt } of this.#owned?.state.tables.connections.all(null) ?? []) {',
          ],
        },
      ],
    },
    {
      why: 'Mail has channels and texts, and goes with the call of a group only while that sends calls.',
      places: [
        {
          file: 'backends/owned/slot-group.ts',
          lines: ['if (turn.mail.length > 0) this.#unpublished.push(turn);'],
        },
        {
          file: 'backends/owned/turns.ts',
          lines: ["publish(client, mail[at] ?? '', mail[at + 1] ?? '').catch(() => undefined);"],
        },
      ],
    },
    {
      why: 'An answer of Redis must be lost, or another relay be faster, in the milliseconds of one step of a takeover, a handover or a settlement.',
      isRare: true,
      places: [
        {
          file: 'backends/owned/fence.ts',
          lines: [
            'const isOwnTry = tried > own.epoch && found.epoch === tried && found.process === own.process;',
            "if (isOwnTry && found.number <= own.number) return { kind: 'behind', number: found.number };",
            "if (found.epoch === own.epoch && found.process !== own.process) return { kind: 'lost' };",
          ],
        },
        {
          file: 'backends/owned/owner.ts',
          lines: [
            'return this.#departure ? undefined : this.#follow(partition, from);',
            'await this.#giving.catch(() => undefined);',
            'if (!this.#moves.mayTake(partition.number, this.#view()) || !this.#hasRoom(partition)) return;',
            'await this.#looking?.catch(() => undefined);',
            '} catch (error) {',
            'if (!(await partition.give(to))) return;',
          ],
        },
        {
          file: 'backends/owned/partition.ts',
          lines: [
            'const wasForgotten = !isGiven && !this.#isGiving && seen !== null && seen.epoch < given.epoch;',
            '} catch (error) {',
            'const given = this.#isGiving ? null : this.#given;',
            'return given && (fence === null || fence.epoch < given.fence.epoch) ? given : null;',
            'if (!owned) return false;',
            'if (owned.log.isLost || !owned.log.isConfirmed) return false;',
            'if (!(await this.#setGiven(owned.log, next))) {',
            'if (this.#given?.owned === owned) owned.state.onFirst = () => {};',
            'if (!this.#owned) return;',
            'const followed = await this.#readWhole(before, fence).catch(() => this.#readWhole(before, fence));',
            'throw new BrokenLog(`it ends with the batch ${reader.number}, and its fence is at ${number}`);',
            'if (this.#owned?.log !== log) return;',
          ],
        },
        {
          file: 'backends/owned/partition-log.ts',
          lines: [
            "if (text === '' || this.#isLost) return null;",
            'if (this.#isLost) return;',
            "if (this.#isLost) throw new CallboardError('store_unavailable', 'Another relay owns the partition.');",
            "if (!batches) throw new CallboardError('store_unavailable', 'The snapshot was begun too long ago.');",
            'this.confirm(batches.at(-1)?.number ?? commit.number);',
          ],
        },
        {
          file: 'backends/owned/slot-group.ts',
          lines: [
            'for (const found of await this.#find()) if (!(await this.#goOn(found))) return false;',
            'if (!(await setFence(client, { keys: log.keys, map: keys.map, found: text, next }))) return false;',
            'const batches = firstOf(log.tail.after(log.tail.confirmed) ?? []);',
          ],
        },
        {
          file: 'backends/owned/turns.ts',
          lines: [
            'if (!batch) continue;',
            'for (const look of this.#confirming.splice(0)) look();',
            'if (!logs) return;',
            'return logs.every((log) => log !== undefined) ? logs : null;',
          ],
        },
      ],
    },
    {
      why: 'Redis must forget a handover that is a few milliseconds old.',
      isRare: true,
      places: [
        {
          file: 'backends/owned/partition.ts',
          lines: [
            'const epoch = Math.max(before?.epoch ?? 0, given?.fence.epoch ?? 0) + 1;',
            'if (given) return this.#takeBack(given, epoch);',
            'begin: () => void = () => {},',
          ],
        },
      ],
    },
    {
      why: 'More must be decided in one partition than one call takes, while Redis does not answer.',
      isRare: true,
      places: [
        {
          file: 'backends/owned/slot-group.ts',
          lines: ['return end < 0 ? batches : batches.slice(0, Math.max(1, end));'],
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
            "case 'damaged':",
          ],
        },
        {
          file: 'backends/journal/open.ts',
          lines: [
            "if (missing !== null) refuseDamage(missing, 'it is not there');",
            'if (!mayBeCut(end, { disk, files: [path, ...later], lostPower })) refuseDamage(path, badPart(end));',
            "if (end.kind !== 'whole') refuseDamage(snapshot, badPart(end));",
            "if (!replay.complete) refuseDamage(snapshot, 'it has no end');",
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
      why: 'A process ends at once with its journal, and nothing is decided any more once a journal is closed.',
      places: [
        { file: 'backends/journal/gate.ts', lines: ["if (this.#state !== 'open') return;"] },
        { file: 'backends/journal/journal.ts', lines: ["if (this.#state.kind === 'failed') return;"] },
      ],
    },
    {
      why: 'A journal must fail in the turn that asks for its sync.',
      isRare: true,
      places: [
        { file: 'backends/journal/gate.ts', lines: ["if (this.#state === 'failed') return;"] },
        { file: 'backends/journal/journal.ts', lines: ["if (kind === 'failed') return;"] },
      ],
    },
    {
      why: 'What waits for a record goes on in a later step: it neither records nor syncs anything before.',
      places: [
        { file: 'backends/journal/gate.ts', lines: ['if (this.#opening) return;'] },
        { file: 'backends/journal/journal.ts', lines: ['if (this.#isRunning()) return;'] },
      ],
    },
    {
      why: 'No run has devices.',
      places: [
        {
          file: 'backends/journal/snapshot.ts',
          lines: ["for (const device of devices.all().toArray()) yield* one(records, 'device', device);"],
        },
      ],
    },
    {
      why: 'The disk must be full, fail or lose power in the milliseconds of a rotation, or at the beginning of a file.',
      isRare: true,
      places: [
        {
          file: 'backends/journal/journal.ts',
          lines: [
            "if (this.#unwritten !== '') throw noSpace('the journal');",
            'for (const file of this.#older.splice(0)) {',
          ],
        },
        {
          file: 'backends/journal/batches.ts',
          lines: [
            "return start !== null && !start.equals(MAGIC) && /^cbj\\d/.test(start.toString('latin1'));",
            "if (later && later.synced > offset) return { kind: 'damaged', ...found };",
          ],
        },
      ],
    },
    {
      why: 'A run says when a snapshot is due.',
      places: [
        {
          file: 'backends/journal/open.ts',
          lines: [
            'const room = new RecordRoom(options.journalCost === undefined ? {} : { dueCost: options.journalCost });',
          ],
        },
      ],
    },
    {
      why: 'Virtual time stands still within an event: no slice of a snapshot is ever too long, and no start slow.',
      places: [
        {
          file: 'backends/journal/open.ts',
          lines: ['if (clock.monotonic() - toldAt < SILENT_MS) return;'],
        },
        {
          file: 'backends/journal/snapshot.ts',
          lines: [
            'const appended = records.length >= BATCH_CHARS || done ? pieces.append(records.take()) : undefined;',
          ],
        },
      ],
    },
    {
      why: 'No run lasts as long as records and rows are kept, or has as many of them or as many clients as it would take.',
      places: [
        {
          file: 'backends/journal/snapshot.ts',
          lines: [
            'records.addText(`"entry",${differenceOf(NEW_COMMAND, command, at)},${marked ? 1 : 0},${texts},${more}`);',
            'if (stream.evictedAt > -Infinity) writeGapOf(stream, records);',
            "yield* one(records, 'marks', generation, wordsAsText(marks.words), Buffer.from(marks.codes).toString('base64'));",
            "for (const { generation, owner, count } of owners) yield* one(records, 'mark_owner', generation, owner.userId, count);",
            "if (shortUntil > -Infinity) yield* one(records, 'short', userId, shortUntil, unmarkedId);",
            "yield* one(records, 'gap', table, userId, null, droppedAt, wholeStreamAt === -Infinity ? null : wholeStreamAt);",
          ],
        },
      ],
    },
    {
      why: 'Power must be lost twice before the first snapshot, so that the first journal has nothing that is whole.',
      isRare: true,
      places: [{ file: 'backends/journal/batches.ts', lines: ['return this.#last ?? NO_BATCH;'] }],
    },
    {
      why: 'The process must end within the milliseconds in which a start removes the files before its snapshot.',
      isRare: true,
      places: [
        {
          file: 'backends/journal/open.ts',
          lines: [
            "void directory.removeBefore(from).catch((error: unknown) => log.warn({ err: error }, 'old files are still there'));",
          ],
        },
      ],
    },
  ],
};

/** A place that no run must reach. `file`: its path below src. `text`: the line in which it begins. */
export type Unreachable = {
  readonly file: string;
  readonly text: string;
  readonly why: string;
  /** Whether a run may reach it all the same. */
  readonly isRare: boolean;
};

/** Returns what no run with this store can reach, or hardly any does. */
export function unreachableIn(store: StoreName): readonly Unreachable[] {
  return REASONS[store].flatMap(({ why, isRare = false, places }) =>
    places.flatMap(({ file, lines }) => lines.map((text) => ({ file, text, why, isRare }))),
  );
}
