import type { Command } from '../../../core/delivery/command.ts';
import type { DeliveryFilter, DeliveryInspector } from '../../../core/delivery/inspector.ts';
import { SCAN_BUDGET, type PageRequest, type Position, type Scan } from '../../../core/page.ts';
import { getCommands } from '../commands/get.ts';
import type { RedisParts } from '../parts.ts';
import { listOf } from '../replies.ts';
import type { Store } from '../store/store.ts';

/** Names that a filtered listing reads at once. */
const STEP = 1000;

/** Pages of commands: their names from the index, in order, then their records. */
export function createInspectorList(parts: Pick<RedisParts, 'store' | 'retentionMs'>): DeliveryInspector['list'] {
  const { store } = parts;
  return async (filter, page) => {
    const keep = matching(filter);
    const { userId, clientId, stage, outcome, nodeId, admittedAfter } = filter;
    const filtered = stage ?? outcome ?? nodeId ?? admittedAfter ?? (userId === null ? clientId : null);
    const step = filtered === null ? page.first + 1 : STEP;
    const rows: { row: Command; position: Position }[] = [];
    let scanned = 0;
    let last = page.after;
    for (;;) {
      const names = await namesAfter(store, filter, { first: step, after: last });
      const commands = await getCommands(parts, names.map(keyOfName));
      for (const [i, name] of names.entries()) {
        if (rows.length === page.first || scanned === SCAN_BUDGET) return pageOf(rows, last);
        scanned++;
        last = name.split('\0');
        const command = commands[i];
        if (command && keep(command)) rows.push({ row: command, position: last });
      }
      if (names.length < step) return pageOf(rows, null);
    }
  };
}

function pageOf(rows: Scan<Command>['rows'], next: Position | null): Scan<Command> {
  return { rows, next, gaps: [] };
}

/** The next names of one client, of one user or of all, merged over the partitions. */
async function namesAfter(
  store: Store,
  { userId, clientId }: DeliveryFilter,
  page: PageRequest,
): Promise<readonly string[]> {
  const all = userId === null ? [...Array(store.partitions).keys()] : [store.partitionOfUser(userId)];
  const whose = userId === null ? [null, null, null] : [userId, store.hash(userId), clientId];
  const args = [...whose, ...(page.after ?? [null, null, null]), page.first];
  const found = await Promise.all(
    all.map(async (partition) => listOf(await store.act(partition, 'inspector-names', args))),
  );
  const names = found.flat().map((name) => ({ name: String(name), bytes: Buffer.from(String(name)) }));
  names.sort((a, b) => Buffer.compare(a.bytes, b.bytes));
  return names.slice(0, page.first).map(({ name }) => name);
}

function keyOfName(name: string): { userId: string; clientId: string; commandId: string } {
  const [userId = '', clientId = '', commandId = ''] = name.split('\0');
  return { userId, clientId, commandId };
}

function matching(filter: DeliveryFilter): (command: Command) => boolean {
  const { clientId, stage, outcome, nodeId, admittedAfter } = filter;
  return (command) =>
    (clientId === null || command.clientId === clientId) &&
    (stage === null || command.stage === stage) &&
    (outcome === null || command.outcome === outcome) &&
    (nodeId === null || command.nodeId === nodeId) &&
    (admittedAfter === null || command.admittedAt > admittedAfter);
}
