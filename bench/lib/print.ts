/** Writes the report of a suite as Markdown. */
import { shown } from './numbers.ts';
import { isMet, type Goal, type Report, type Row, type Table } from './report.ts';

/** Returns a report as Markdown that is readable on a terminal too. */
export function printed({ suite, tables, goals, notes }: Report): string {
  const parts = [
    `## ${suite}`,
    ...notes,
    ...tables.flatMap((table) => [table.title, grid(headOf(table), rowsOf(table)), comparison(table)]),
    ...(goals.length === 0 ? [] : [grid(['goal', 'measured', ''], goals.map(goalCells))]),
  ];
  return `${parts.filter((part) => part !== '').join('\n\n')}\n`;
}

function headOf({ columns }: Table): string[] {
  return ['', ...columns.map(({ label }) => label), 'note'];
}

function rowsOf({ columns, rows }: Table): string[][] {
  return rows.map(({ name, kind, values, note }) => [
    kind === 'own' ? `**${name}**` : kind === 'limit' ? `limit: ${name}` : name,
    ...columns.map(({ key }) => shown(values?.[key])),
    values ? note : `could not run: ${note}`,
  ]);
}

/**
 * Returns a table with the relay's values as multiples of those of each limit and each peer, for the column `by`. Empty
 * if there is nothing to compare.
 */
function comparison({ by, rows, columns }: Table): string {
  const others = rows.filter(({ kind, values }) => kind !== 'own' && values);
  const own = rows.filter(({ kind, values }) => kind === 'own' && values);
  if (own.length === 0 || others.length === 0) return '';
  const label = columns.find(({ key }) => key === by)?.label ?? by;
  const times = (a: Row, b: Row): string => shown((a.values?.[by] ?? NaN) / (b.values?.[by] ?? NaN));
  return grid(
    [`${label}, times that of`, ...others.map(({ name }) => name)],
    own.map((row) => [`**${row.name}**`, ...others.map((other) => times(row, other))]),
  );
}

function goalCells(goal: Goal): string[] {
  const met = isMet(goal);
  const bound = `${goal.at === 'most' ? '<=' : '>='} ${goal.bound}`;
  return [`${goal.text} ${bound}`, shown(goal.measured ?? NaN), met === null ? 'not measured' : met ? 'met' : 'missed'];
}

function grid(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [head, ...rows];
  const widths = head.map((_, i) => Math.max(3, ...all.map((cells) => cells[i]?.length ?? 0)));
  const line = (cells: readonly string[]): string =>
    `| ${widths.map((width, i) => (i === 0 ? (cells[i] ?? '').padEnd(width) : (cells[i] ?? '').padStart(width))).join(' | ')} |`;
  const rule = `| ${widths.map((width, i) => (i === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`)).join(' | ')} |`;
  return [line(head), rule, ...rows.map(line)].join('\n');
}
