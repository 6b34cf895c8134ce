/** Estimates the bytes that advertisements, contexts and windows hold in memory. */
import type { ActionAdvertisement } from '../connections/connection.ts';
import type { ContextReport, ReportPart } from '../contexts/store.ts';
import type { HelloRequest } from '../core.ts';
import { utf8Length } from '../json.ts';

/**
 * The bytes that one context or window takes besides its texts: the object, its index entries and its fixed fields. The
 * number is close to what was measured for a context with empty texts.
 */
const ROW_BYTES = 512;
const ACTION_BYTES = 128;

export function helloWeight({ metadata, actions }: Pick<HelloRequest, 'metadata' | 'actions'>) {
  return { metadata: metadata === null ? 0 : utf8Length(metadata), actions: actionsWeight(actions) };
}

export function actionsWeight(actions: readonly ActionAdvertisement[]): number {
  return actions.reduce((sum, action) => sum + ACTION_BYTES + textsOf(action), 0);
}

/** The change that one report makes, in bytes. Both methods read the rows as they are at the time of the call. */
export type RowsChange = { growth(): number; apply(): number };

/** The weight in bytes of each context and window of one client. It has as many entries as the client has rows. */
export class ReportedRows {
  #contexts: Weights | null = null;
  #windows: Weights | null = null;

  change({ contexts, windows }: ContextReport): RowsChange {
    const changes = [
      ...(contexts ? [changeOf((this.#contexts ??= new Weights()), contexts, ({ contextId }) => contextId)] : []),
      ...(windows ? [changeOf((this.#windows ??= new Weights()), windows, ({ windowId }) => windowId)] : []),
    ];
    return {
      growth: () => changes.reduce((sum, { growth }) => sum + growth(), 0),
      apply: () => changes.reduce((sum, { apply }) => sum + apply(), 0),
    };
  }

  /** Removes all rows. Returns the bytes that they weighed. */
  clear(): number {
    const bytes = (this.#contexts?.bytes ?? 0) + (this.#windows?.bytes ?? 0);
    this.#contexts = null;
    this.#windows = null;
    return bytes;
  }
}

class Weights {
  readonly rows = new Map<string, number>();
  bytes = 0;
}

function changeOf<T extends object>(weights: Weights, part: ReportPart<T>, idOf: (row: T) => string): RowsChange {
  const set = part.set.map((row): readonly [string, number] => [idOf(row), ROW_BYTES + textsOf(row)]);
  const weightOf = (id: string): number => weights.rows.get(id) ?? 0;
  const after = (): number => {
    if (part.snapshot) return set.reduce((sum, [, bytes]) => sum + bytes, 0);
    const added = set.reduce((sum, [id, bytes]) => sum + bytes - weightOf(id), 0);
    return weights.bytes + added - part.removed.reduce((sum, id) => sum + weightOf(id), 0);
  };
  return {
    growth: () => after() - weights.bytes,
    apply() {
      const growth = after() - weights.bytes;
      if (part.snapshot) weights.rows.clear();
      for (const id of part.removed) weights.rows.delete(id);
      for (const [id, bytes] of set) weights.rows.set(id, bytes);
      weights.bytes += growth;
      return growth;
    },
  };
}

function textsOf(row: object): number {
  let bytes = 0;
  for (const value of Object.values(row)) if (typeof value === 'string') bytes += utf8Length(value);
  return bytes;
}
