/**
 * Keeps the rows of a list up to date with live changes. Known rows change in place; new rows wait until the user shows
 * them.
 */
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { whole } from './format.ts';
import { Icon } from './icon.tsx';
import { PAGE_SIZE } from './page-size.ts';

/** The time for which changes are collected before they are shown together, in milliseconds. */
const GATHER_MS = 250;
/**
 * The maximum number of new rows that are counted. A page that stays open for hours must not keep all of them.
 */
const FRESH_MAX = 1_000;

export type LiveRows<Row> = {
  /** The rows that were read, each in its latest known version. With `follow`, new rows come before them. */
  readonly rows: readonly Row[];
  /** The number of rows that have appeared since the list was read and are not shown; counted up to `FRESH_MAX`. */
  readonly fresh: number;
  /** Adds one change. `isNew`: a row that the list does not show counts as new. */
  readonly push: (row: Row, isNew: boolean) => void;
};

type LiveOptions<Row> = {
  readonly keyOf: (row: Row) => string;
  /** Whether new rows are shown at once, the latest first. The number of rows does not grow. */
  readonly follow?: boolean;
  /** The maximum number of rows of the list. */
  readonly size?: number;
};

type Changes<Row> = {
  readonly changed: ReadonlyMap<string, Row>;
  /** The latest new rows by their keys, at most as many as the list shows. */
  readonly latest: ReadonlyMap<string, Row>;
  readonly fresh: number;
};

/**
 * Returns the rows with their live changes. When `read` is replaced, the changes that have arrived until then are
 * dropped.
 */
export function useLiveRows<Row>(
  read: readonly Row[],
  { keyOf, follow = false, size = PAGE_SIZE }: LiveOptions<Row>,
): LiveRows<Row> {
  const [shown, setShown] = useState<Changes<Row>>(() => nothing());
  const gathered = useRef(gathering<Row>());
  const known = useMemo(() => new Set(read.map(keyOf)), [read]);
  const timer = useRef<ReturnType<typeof setTimeout> | null>(null);
  // A layout effect runs at once, so that no change that arrives after this answer is dropped.
  useLayoutEffect(() => {
    gathered.current = gathering();
    setShown(nothing());
  }, [read]);
  useEffect(() => () => void (timer.current !== null && clearTimeout(timer.current)), []);
  const push = (row: Row, isNew: boolean): void => {
    const key = keyOf(row);
    const { changed, latest, keys } = gathered.current;
    if (known.has(key)) changed.set(key, row);
    else if (isNew || latest.has(key)) {
      latest.set(key, row);
      if (keys.size < FRESH_MAX) keys.add(key);
      const [oldest] = latest.keys();
      if (latest.size > size && oldest !== undefined) latest.delete(oldest);
    } else return;
    timer.current ??= setTimeout(() => {
      timer.current = null;
      const { changed, latest, keys } = gathered.current;
      setShown({ changed: new Map(changed), latest: new Map(latest), fresh: keys.size });
    }, GATHER_MS);
  };
  const rows = read.map((row) => shown.changed.get(keyOf(row)) ?? row);
  if (!follow) return { rows, fresh: shown.fresh, push };
  return { rows: [...[...shown.latest.values()].reverse(), ...rows].slice(0, size), fresh: 0, push };
}

function nothing<Row>(): Changes<Row> {
  return { changed: new Map(), latest: new Map(), fresh: 0 };
}

/**
 * Creates the store of changes that arrived since the list was read. `keys` has the keys of new rows, so that each row
 * is counted once.
 */
function gathering<Row>() {
  return { changed: new Map<string, Row>(), latest: new Map<string, Row>(), keys: new Set<string>() };
}

type NewBarProps = { readonly count: number; readonly one: string; readonly many: string; readonly onShow: () => void };

/** Shows a bar above a list. A click on it shows the new rows, so that no row moves under the pointer before that. */
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
