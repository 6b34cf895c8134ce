/** Applies live changes to the rows of a list. Known rows change in place; new ones wait until the user shows them. */
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Query } from '../api/query.ts';
import { whole } from './amounts.ts';
import { Icon } from './icons.tsx';
import { PAGE_SIZE } from './table.tsx';

/** How long changes are collected before they are shown together, in milliseconds. */
const GATHER_MS = 250;
/**
 * The maximum number of new rows that are counted, and of changes that are kept for an awaited answer. It is needed
 * because pages stay open for hours.
 */
const FRESH_MAX = 1_000;

type LiveRows<Row> = {
  /** The rows that were read, each in its latest known version. With `follow`, new rows precede them. */
  readonly rows: readonly Row[];
  /** The number of rows that appeared since the list was read and are not shown yet, counted up to `FRESH_MAX`. */
  readonly fresh: number;
  /** Adds a change. `isNew`: whether a row that the list does not show counts as new. */
  readonly push: (row: Row, isNew: boolean) => void;
};

type LiveOptions<Row> = {
  readonly keyOf: (row: Row) => string;
  /** The query that has read the rows. */
  readonly query: Pick<Query<unknown>, 'loading' | 'sent'>;
  /** Whether new rows are shown at once, latest first. At most PAGE_SIZE rows are then shown. */
  readonly follow?: boolean;
};

type Changes<Row> = {
  readonly changed: ReadonlyMap<string, Row>;
  /** The latest new rows by key, at most PAGE_SIZE. */
  readonly latest: ReadonlyMap<string, Row>;
  readonly fresh: number;
};

/** Creates an empty collection of the changes since the list was read. */
function gathering<Row>() {
  return {
    changed: new Map<string, Row>(),
    latest: new Map<string, Row>(),
    /** The keys of new rows, so that each new row is counted once. */
    keys: new Set<string>(),
  };
}

const NO_ROWS: readonly never[] = [];

/**
 * Returns the rows with their live changes. When `read` is replaced by a new answer, changes that arrived before its
 * request was sent are dropped. Later changes are kept, because the relay may have read the rows before they happened.
 * `read`: undefined before the first answer.
 */
export function useLiveRows<Row>(
  read: readonly Row[] = NO_ROWS,
  { keyOf, query: { loading, sent }, follow = false }: LiveOptions<Row>,
): LiveRows<Row> {
  const [shown, setShown] = useState<Changes<Row>>(() => nothing());
  const gathered = useRef(gathering<Row>());
  const whileLoading = useRef(new Map<string, { readonly row: Row; readonly isNew: boolean }>());
  const known = useMemo(() => new Set(read.map(keyOf)), [read]);
  const timer = useRef<ReturnType<typeof setTimeout> | null>(null);
  /** Collects a change. Returns whether it concerns the list. */
  const gather = (row: Row, isNew: boolean): boolean => {
    const key = keyOf(row);
    const { changed, latest, keys } = gathered.current;
    if (known.has(key)) changed.set(key, row);
    else if (isNew || latest.has(key)) {
      latest.set(key, row);
      if (keys.size < FRESH_MAX) keys.add(key);
      boundSize(latest, PAGE_SIZE);
    } else return false;
    return true;
  };
  const show = (): void => {
    const { changed, latest, keys } = gathered.current;
    setShown({ changed: new Map(changed), latest: new Map(latest), fresh: keys.size });
  };
  // A layout effect, because it runs at once: no change that arrives after this answer is dropped.
  useLayoutEffect(() => {
    gathered.current = gathering();
    for (const { row, isNew } of whileLoading.current.values()) gather(row, isNew);
    whileLoading.current.clear();
    show();
  }, [read]);
  useLayoutEffect(() => whileLoading.current.clear(), [sent]);
  useEffect(() => () => void (timer.current !== null && clearTimeout(timer.current)), []);
  const push = (row: Row, isNew: boolean): void => {
    const key = keyOf(row);
    if (loading) {
      whileLoading.current.set(key, { row, isNew: isNew || !!whileLoading.current.get(key)?.isNew });
      boundSize(whileLoading.current, FRESH_MAX);
    }
    if (!gather(row, isNew)) return;
    timer.current ??= setTimeout(() => {
      timer.current = null;
      show();
    }, GATHER_MS);
  };
  const rows = read.map((row) => shown.changed.get(keyOf(row)) ?? row);
  if (!follow) return { rows, fresh: shown.fresh, push };
  return { rows: [...[...shown.latest.values()].reverse(), ...rows].slice(0, PAGE_SIZE), fresh: 0, push };
}

/** Deletes the oldest entry if a map has more than `max` entries. */
function boundSize<Key>(map: Map<Key, unknown>, max: number): void {
  const [oldest] = map.keys();
  if (map.size > max && oldest !== undefined) map.delete(oldest);
}

function nothing<Row>(): Changes<Row> {
  return { changed: new Map(), latest: new Map(), fresh: 0 };
}

type NewBarProps = { readonly count: number; readonly one: string; readonly many: string; readonly onShow: () => void };

/** Shows a bar above a list. A click on it shows the new rows. Until then, no row moves under the pointer. */
export function NewBar({ count, one, many, onShow }: NewBarProps) {
  return (
    <>
      {count > 0 && (
        <button class="newbar" type="button" onClick={onShow}>
          <Icon name="up" />
          Show {count < FRESH_MAX ? whole(count) : `more than ${whole(FRESH_MAX - 1)}`} new {count === 1 ? one : many}
        </button>
      )}
      <span class="sr" aria-live="polite">
        {count > 0 ? `${count} new` : ''}
      </span>
    </>
  );
}

/**
 * Returns the latest value that was neither null nor undefined, so that an update never removes what a person is
 * working on.
 */
export function useLatest<Value>(value: Value | null | undefined): Value | null {
  const latest = useRef<Value | null>(null);
  if (value !== null && value !== undefined) latest.current = value;
  return latest.current;
}
