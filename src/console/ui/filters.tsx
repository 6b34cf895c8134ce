/**
 * Shows the filters of a list: chips for filters that are set, controls for the others, and one text field that accepts
 * all of them.
 */
import { useRef, useState } from 'preact/hooks';
import { Icon } from './icons.tsx';
import { useKeys } from './keys.ts';
import { Fault } from './payload.tsx';
import { useUrlState, type UrlState } from './url-state.ts';
import { plainWord } from './text-format.ts';

export type Filter = {
  /** The name of the filter in the URL and in the text field, such as `user` in `user:alice`. */
  readonly name: string;
  readonly label: string;
  /** The allowed values with their texts. Absent: any text is allowed. */
  readonly choices?: readonly Choice[];
  /** Whether the filter can only be typed or pasted, and has no control until it is set. */
  readonly isTyped?: true;
  /** Whether any duration such as `30s` or `5m` is allowed. `choices` then contains the usual ones. */
  readonly isDuration?: true;
};

type Choice = { readonly value: string; readonly text: string };

/** Returns choices for the values of an enum of the schema. */
export const choicesOf = (names: readonly string[]): readonly Choice[] =>
  names.map((name) => ({ value: name.toLowerCase(), text: plainWord(name) }));

/** Returns a filter for a duration. `usual`: the values that its menu offers. */
export function durationFilter(name: string, label: string, usual: readonly string[]): Filter {
  return { name, label, isDuration: true, choices: usual.map((value) => ({ value, text: spacedDuration(value) })) };
}

const UNITS_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Returns the milliseconds of a duration such as `30s`, `5m`, `2h` or `1d`; null for any other text. */
export function durationMs(text: string | undefined): number | null {
  const [, count, unit = ''] = /^(\d{1,6})([smhd])$/.exec(text ?? '') ?? [];
  return count === undefined ? null : Number(count) * (UNITS_MS[unit] ?? 0);
}

/** Writes `5m` as `5 m`, the form in which durations are shown everywhere. */
const spacedDuration = (text: string): string => text.replace(/^(\d+)/, '$1 ');

/** The name of the filter for words that were typed without a name: one for all such words, or chosen for each word. */
export type BareFilter = string | ((word: string) => string);

type FilterBarProps = {
  readonly what: string;
  readonly filters: readonly Filter[];
  /** Absent: each word must have a name. */
  readonly bare?: BareFilter | undefined;
};

export function FilterBar({ what, filters, bare }: FilterBarProps) {
  const state = useUrlState();
  const field = useRef<HTMLInputElement>(null);
  const begin = (text: string): void => {
    if (!field.current) return;
    field.current.value = text;
    field.current.focus();
  };
  useKeys({ '/': () => field.current?.focus() });
  const set = filters.filter(({ name }) => state.values[name]);
  const unset = filters.filter(({ name, isTyped }) => !state.values[name] && !isTyped);
  return (
    <div class="filters" role="search">
      <FilterField what={what} filters={filters} bare={bare} state={state} field={field} />
      {set.map((filter) => (
        <Chip key={filter.name} filter={filter} state={state} />
      ))}
      {unset.map((filter) =>
        filter.choices ? (
          <ChoiceOf key={filter.name} filter={filter} state={state} />
        ) : (
          <button key={filter.name} class="btn btn-quiet" type="button" onClick={() => begin(`${filter.name}:`)}>
            {filter.label} <Icon name="plus" />
          </button>
        ),
      )}
    </div>
  );
}

type FieldProps = FilterBarProps & { readonly state: UrlState; readonly field: { current: HTMLInputElement | null } };

function FilterField({ what, filters, bare, state, field }: FieldProps) {
  const [problem, setProblem] = useState<string | null>(null);
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const read = readFilters(field.current?.value ?? '', { filters, bare });
    setProblem(typeof read === 'string' ? read : null);
    if (typeof read === 'string' || !field.current) return;
    field.current.value = '';
    state.change(read);
  };
  const example = filters.slice(0, 2).map(({ name, choices }) => `${name}:${choices?.[0]?.value ?? '…'}`);
  return (
    <form class="find-form" onSubmit={submit}>
      <label class="find">
        <Icon name="search" />
        <span class="sr">Filter {what}</span>
        <input
          ref={field}
          type="search"
          name="filter"
          placeholder={example.join(' ')}
          autocomplete="off"
          spellcheck={false}
          aria-invalid={problem !== null}
          onInput={() => setProblem(null)}
        />
      </label>
      {problem !== null && <Fault text={problem} />}
    </form>
  );
}

function Chip({ filter, state }: { readonly filter: Filter; readonly state: UrlState }) {
  const value = state.values[filter.name] ?? '';
  const text = textOf(filter, value);
  return (
    <span class="chip">
      <span>
        <span>{filter.label.toLowerCase()}</span> {text}
      </span>
      <button
        type="button"
        aria-label={`Remove ${filter.label.toLowerCase()} ${text}`}
        onClick={() => state.change({ [filter.name]: null })}
      >
        <Icon name="close" />
      </button>
    </span>
  );
}

function ChoiceOf({ filter, state }: { readonly filter: Filter; readonly state: UrlState }) {
  return (
    <select
      class="btn btn-quiet choice"
      aria-label={filter.label}
      value=""
      onChange={(event) => state.change({ [filter.name]: event.currentTarget.value })}
    >
      <option value="">{filter.label}</option>
      {filter.choices?.map(({ value, text }) => (
        <option key={value} value={value}>
          {text}
        </option>
      ))}
    </select>
  );
}

/** Returns the text for a value of a filter. */
export const textOf = ({ choices, isDuration }: Filter, value: string): string =>
  choices?.find((choice) => choice.value === value)?.text ?? (isDuration ? spacedDuration(value) : value);

type Reading = Pick<FilterBarProps, 'filters' | 'bare'>;

/**
 * Returns the filters that a text such as `user:alice outcome:failed` names, or a sentence about why it cannot be read.
 */
function readFilters(text: string, { filters, bare }: Reading): Readonly<Record<string, string>> | string {
  const read: Record<string, string> = {};
  for (const [, name = '', quoted, plain = ''] of text.matchAll(/(?:([a-z]+):)?(?:"([^"]*)"|(\S+))/g)) {
    const value = quoted ?? plain;
    const unnamed = typeof bare === 'function' ? bare(value) : bare;
    const filter = filters.find((candidate) => candidate.name === (name === '' ? unnamed : name));
    if (!filter) {
      const names = filters.map((candidate) => `${candidate.name}:`).join(' ');
      return name === '' ? `Say what “${value}” is: ${names}` : `There is no filter “${name}”, only ${names}`;
    }
    if (filter.isDuration) {
      const duration = value.replaceAll(' ', '');
      if (durationMs(duration) === null) return `${filter.label} is a duration such as 30s, 5m or 2h.`;
      read[filter.name] = duration;
      continue;
    }
    const known = filter.choices?.find((choice) => choice.value.toLowerCase() === value.toLowerCase());
    if (filter.choices && !known) {
      return `${filter.label} is one of ${filter.choices.map((choice) => choice.value).join(', ')}.`;
    }
    read[filter.name] = known?.value ?? value;
  }
  return read;
}
